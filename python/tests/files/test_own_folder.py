import gc
import os
from contextlib import suppress
from pathlib import Path

import pytest
from strangers import IS_ROOT, give_away, plant

from latenz.errors import BadInput
from latenz.files import OwnFolder, appearing_folder, file_in, lock_file, make_folder, replacing


@pytest.fixture
def stranger(tmp_path):
    folder = tmp_path / "stranger"
    folder.mkdir()
    give_away(folder)
    return folder


def test_a_private_folder_is_written_by_its_own_name(tmp_path):
    assert OwnFolder(tmp_path / "a/b").path == tmp_path / "a/b"
    assert (tmp_path / "a/b").is_dir()
    assert OwnFolder(tmp_path / "a/b").path == tmp_path / "a/b"


def test_a_strangers_exchange_does_not_lead_us_away(stranger, tmp_path):
    (tmp_path / "victims").mkdir()
    own = OwnFolder(stranger / "run")
    (stranger / "run").rename(stranger / "aside")
    plant(stranger / "run", tmp_path / "victims")
    (own.path / "file").write_text("ours")
    with replacing(own.path / "whole") as partial:
        partial.write_text("ours")
    assert not list((tmp_path / "victims").iterdir())
    assert {each.name for each in (stranger / "aside").iterdir()} == {"file", "whole"}
    descriptor = int(own.path.name)
    del own
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_messages_name_a_folder_as_the_user_does(stranger):
    own = OwnFolder(stranger / "run")
    assert str(BadInput("is damaged", str(own.path / "x"))) == f"{stranger}/run/x: is damaged"
    assert str(BadInput("is damaged", f"{own.path}0/x")) == f"{own.path}0/x: is damaged"


def test_a_folder_that_others_write_to_is_refused(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    for mode in (0o777, 0o1777, 0o757):
        shared.chmod(mode)
        with pytest.raises(BadInput, match=r"others may write to; name a new folder"):
            OwnFolder(shared)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    give_away(foreign)
    with pytest.raises(BadInput, match=r"name a new folder, such as one in it"):
        OwnFolder(foreign)
    assert OwnFolder(foreign / "new").path.is_dir()


def test_rights_that_a_strangers_folder_gives_are_not_taken_over(stranger):
    """A default access control list: read, write and execute for user 4 and all others."""
    entry = b"\x02\0\0\0" + b"".join(
        tag.to_bytes(2, "little") + b"\x07\0" + number.to_bytes(4, "little")
        for tag, number in (
            (1, 2**32 - 1),
            (2, 4),
            (4, 2**32 - 1),
            (16, 2**32 - 1),
            (32, 2**32 - 1),
        )
    )
    with suppress(OSError):  # a file system without such lists gives none away
        os.setxattr(stranger, "system.posix_acl_default", entry)
    own = OwnFolder(stranger / "run")
    (own.path / "inner").mkdir()
    assert not (own.path / "inner").stat().st_mode & 0o022
    assert "system.posix_acl_access" not in os.listxattr(own.path / "inner")


def fail_half_way(path):
    with appearing_folder(path) as making:
        (making / "file").touch()
        raise ZeroDivisionError


def test_a_folder_appears_whole_or_not_at_all(stranger, tmp_path):
    for place in (stranger, tmp_path / "new"):
        with appearing_folder(place / "run") as making:
            (making / "file").write_text("whole")
            assert not (place / "run").exists()
        assert [each.name for each in place.iterdir()] == ["run"]
        assert (place / "run/file").read_text() == "whole"
        with (
            pytest.raises(BadInput, match="exists and is not empty"),
            appearing_folder(place / "run"),
        ):
            raise AssertionError("never reached")
        with pytest.raises(ZeroDivisionError):
            fail_half_way(place / "other")
        assert [each.name for each in place.iterdir()] == ["run"]


def test_an_empty_folder_is_taken_and_a_link_is_not(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    with appearing_folder(tmp_path / "empty") as making:
        (making / "file").touch()
    assert (tmp_path / "empty/file").exists()
    with pytest.raises(BadInput, match="exists"), appearing_folder(tmp_path / "link"):
        raise AssertionError("never reached")


def test_folders_of_others_may_take_files(stranger, tmp_path):
    make_folder(stranger / "a/b")
    assert (stranger / "a/b").is_dir()
    plant(stranger / "link", tmp_path)
    if IS_ROOT:
        with pytest.raises(BadInput, match="leads through a symbolic link of user"):
            make_folder(stranger / "link/c")
        assert not (tmp_path / "c").exists()


def test_a_lock_is_no_link(tmp_path):
    (tmp_path / "victim").write_text("as it was")
    (tmp_path / "lock").symlink_to("victim")
    with pytest.raises(BadInput, match="cannot be written"), lock_file(tmp_path / "lock"):
        raise AssertionError("never reached")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="cannot be written"), lock_file(tmp_path / "pipe"):
        raise AssertionError("never reached")
    assert (tmp_path / "victim").read_text() == "as it was"


def test_a_file_of_a_folder_is_regular_and_lies_in_it(tmp_path):
    folder = tmp_path / "run"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "outside").write_text("secret")
    (folder / "file").write_text("inside")
    (folder / "inner").symlink_to("file")
    (folder / "outer").symlink_to("../outside")
    (folder / "nowhere").symlink_to("absent")
    (folder / "loop").symlink_to("loop")
    (folder / "away").symlink_to("..")
    os.mkfifo(folder / "pipe")
    assert file_in(folder, "file") == folder / "file"
    assert file_in(folder, "inner") == folder / "inner"
    assert file_in(folder, "absent") is None
    assert file_in(folder, "file/x") is None
    assert file_in(tmp_path / "absent", "x") is None
    for name, told in (
        ("outer", "leaves its folder"),
        ("../outside", "leaves its folder"),
        ("away/outside", "leaves its folder"),
        (str(tmp_path / "outside"), "leaves its folder"),
        ("nowhere", "leads nowhere"),
        ("loop", "cannot be read"),
        ("a\0b", "cannot be read"),
        ("x" * 300, "cannot be read"),
        ("sub", "is not a regular file"),
        ("pipe", "is not a regular file"),
    ):
        with pytest.raises(BadInput, match=told):
            file_in(folder, name)


def test_the_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/file").touch()
    (tmp_path / "latest").symlink_to("run")
    assert file_in(tmp_path / "latest", "file") == Path(tmp_path / "latest/file")
