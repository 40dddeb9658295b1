import os
import stat
from pathlib import Path

import pytest

from latenz.errors import BadInput
from latenz.files import replacing


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
