import os
from pathlib import Path

import pytest
from strangers import IS_ROOT, give_away, plant

from latenz.errors import BadInput
from latenz.path_walk import Walk


def reached(path: Path) -> Path:
    with Walk(path) as walk:
        return Path(f"/proc/self/fd/{walk.folder()}").readlink()


def is_private(path: Path) -> bool:
    with Walk(path) as walk:
        walk.folder()
        return walk.is_private


def test_a_path_leads_where_the_kernel_goes(tmp_path, monkeypatch):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "c").symlink_to("a/b")
    (tmp_path / "a/up").symlink_to("..")
    (tmp_path / "away").symlink_to(tmp_path / "a/up/c")
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", "a/..", "c", "c/..", "a/up/c/../b", "away", "away/../up", "/", "/.."):
        assert reached(Path(path)) == Path(os.path.realpath(path)), path
        assert reached(tmp_path / path) == Path(os.path.realpath(tmp_path / path)), path


def test_links_without_end_and_parts_that_are_no_folders_are_told(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="symbolic links without end"):
        reached(tmp_path / "a")
    with pytest.raises(NotADirectoryError):
        reached(tmp_path / "file/x")
    with pytest.raises(FileNotFoundError):
        reached(tmp_path / "absent")


def test_what_a_process_holds_is_reached_by_its_name_in_proc(tmp_path):
    descriptor = os.open(tmp_path, os.O_PATH)
    try:
        assert reached(Path(f"/proc/self/fd/{descriptor}")) == tmp_path
        (tmp_path / "in").mkdir()
        assert reached(Path(f"/proc/{os.getpid()}/fd/{descriptor}/in")) == tmp_path / "in"
    finally:
        os.close(descriptor)


def test_a_folder_is_private_if_nobody_else_can_exchange_it(tmp_path):
    inner = tmp_path / "outer/inner"
    inner.mkdir(parents=True)
    assert is_private(inner)
    for mode, expected in ((0o777, False), (0o1777, True), (0o755, True)):
        (tmp_path / "outer").chmod(mode)
        assert is_private(inner) is expected
    give_away(tmp_path / "outer")
    inner.chmod(0o755)
    assert not is_private(inner)


def test_the_users_own_group_is_nobody_else(tmp_path):
    found = tmp_path / "shared"
    found.mkdir()
    found.chmod(0o775)
    assert is_private(found) is (os.getgid() == os.getuid())
    others = [group for group in os.getgroups() if group != os.getuid()]
    if IS_ROOT or others:
        os.chown(found, -1, 4 if IS_ROOT else others[0])
        assert not is_private(found)


def test_a_link_of_another_user_is_not_followed_wherever_it_is(tmp_path):
    (tmp_path / "target/in").mkdir(parents=True)
    plant(tmp_path / "link", tmp_path / "target")
    (tmp_path / "ours").symlink_to("link")
    for path in ("link", "link/in", "ours/in"):
        if IS_ROOT:
            with pytest.raises(BadInput, match=r"leads through a symbolic link of user nobody"):
                reached(tmp_path / path)
        else:
            assert reached(tmp_path / path) == (tmp_path / path).resolve()


def test_folders_are_made_so_that_others_cannot_write(tmp_path):
    mask = os.umask(0)
    try:
        with Walk(tmp_path / "a/b", make=True) as walk:
            walk.folder()
    finally:
        os.umask(mask)
    assert [(tmp_path / each).stat().st_mode & 0o777 for each in ("a", "a/b")] == [0o755] * 2
