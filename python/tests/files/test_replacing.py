import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from strangers import IS_ROOT, STRANGER, give_away, plant

from latenz.errors import BadInput
from latenz.files import replacing, scratch_place


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    place = tmp_path / "report.html"
    place.write_text("old")

    def fail_half_way():
        with replacing(place) as partial:
            partial.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert place.read_text() == "old"
    with replacing(place) as partial:
        partial.write_text("new")
        assert place.read_text() == "old"
    assert place.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_device_is_written_to_and_stays_a_device(tmp_path):
    device = Path("/dev/null")
    if IS_ROOT:
        device = tmp_path / "null"
        os.mknod(device, stat.S_IFCHR | 0o666, Path("/dev/null").stat().st_rdev)
    with replacing(device) as partial:
        partial.write_text("gone")
    assert device.is_char_device()


def test_a_folder_and_an_absent_place_are_named(tmp_path):
    with pytest.raises(BadInput, match="is a folder"), replacing(tmp_path):
        raise AssertionError("never reached")
    absent = Path("/nonexistent/x.html")
    with pytest.raises(BadInput, match="cannot be written"), replacing(absent):
        raise AssertionError("never reached")


def write(path: Path, text: str) -> None:
    with replacing(path) as partial:
        partial.write_text(text)


def test_a_strangers_folder_takes_a_file_and_keeps_nothing_else(tmp_path):
    place = tmp_path / "stranger"
    place.mkdir()
    (place / "old").write_text("old")
    give_away(place)
    write(place / "new", "new")
    write(place / "old", "also new")
    assert {each.name: each.read_text() for each in place.iterdir()} == {
        "new": "new",
        "old": "also new",
    }
    assert (place / "old").stat().st_uid == os.geteuid()
    mask = os.umask(0o022)
    os.umask(mask)
    assert (place / "new").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_strangers_folder_that_is_exchanged_meanwhile_leads_nowhere_else(tmp_path):
    place, victims = tmp_path / "stranger", tmp_path / "victims"
    victims.mkdir()
    (victims / "file").write_text("as it was")
    (place / "deep").mkdir(parents=True)
    give_away(place)
    with replacing(place / "deep/file") as partial:
        partial.write_text("ours")
        (place / "deep").rename(place / "aside")
        plant(place / "deep", victims)
    assert (victims / "file").read_text() == "as it was"
    assert (place / "aside/file").read_text() == "ours"


def test_a_link_in_its_place_is_replaced_or_refused_but_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    (tmp_path / "own").symlink_to(victim)
    write(tmp_path / "own", "new")
    assert (tmp_path / "own").read_text() == "new"
    plant(tmp_path / "foreign", victim)
    if IS_ROOT:
        with pytest.raises(BadInput, match=r"leads through a symbolic link of user nobody; name"):
            write(tmp_path / "foreign", "new")
    else:
        write(tmp_path / "foreign", "new")
    assert victim.read_text() == "as it was"


def test_a_pipe_is_written_to_unless_it_is_a_strangers(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write(pipe, "through the pipe")
    reader.join()
    assert read == ["through the pipe"]
    assert pipe.is_fifo()
    if IS_ROOT:
        os.chown(pipe, STRANGER, STRANGER)
        with pytest.raises(BadInput, match=r"is not a regular file, and belongs to user nobody"):
            write(pipe, "never")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_written_to_wherever_it_goes(tmp_path, name):
    """Also into a file: it goes on where the file was, and the name in /dev stays."""
    code = f"""
import sys
from pathlib import Path
from latenz.files import replacing
print("before", flush=True)
with replacing(Path({name!r})) as partial:
    partial.write_text("written\\n")
print("after", flush=True)
"""
    command = [sys.executable, "-c", code]
    kind = Path("/dev/stdout").lstat().st_mode
    piped = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    with (tmp_path / "out").open("w") as out:
        out.write("kept\n")
        out.flush()
        subprocess.run(command, stdout=out, check=True)
    assert piped.stdout == "before\nwritten\nafter\n"
    assert (tmp_path / "out").read_text() == "kept\nbefore\nwritten\nafter\n"
    assert Path("/dev/stdout").lstat().st_mode == kind


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    write(tmp_path / ("x" * 255), "whole")
    assert (tmp_path / ("x" * 255)).read_text() == "whole"


def test_temporary_files_keep_off_folders_that_others_can_exchange(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert scratch_place() == tmp_path
    give_away(tmp_path)
    assert scratch_place() in (Path("/tmp"), Path("/var/tmp"))
