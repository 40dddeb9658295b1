"""What a target tells of its files is a stranger's: it leads nowhere but into the run."""

import errno
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.errors import BadInput
from latenz.remote.connection import Lost, Reply, _fields, pack
from latenz.remote.mirror import Mirror


def reply(*fields: bytes) -> Reply:
    return Reply(0, list(fields))


@pytest.mark.parametrize(
    "name",
    [
        b"../run.json",
        b"/etc/passwd",
        b"cpu0/../../x",
        b"",
        b".hidden",
        b"a//b",
        b"a/./b",
        b"a\0b",
        b"a\nb",
        b"\xff",
        b"a/b/c/d/e/f/g",
        b"x" * 200,
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name, tmp_path):
    folder = tmp_path / "run/idle"
    folder.mkdir(parents=True)
    with pytest.raises(BadInput, match="damaged"):
        Mirror(folder, "idle", "ssh://board").take(reply(b"0", name, b"1", b"0", b"1", b"x"))
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_a_link_in_the_run_is_not_written_through(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    secret = tmp_path / "secret"
    secret.write_text("mine")
    (folder / "samples.journal").symlink_to(secret)
    with pytest.raises(BadInput, match="cannot be written"):
        Mirror(folder, "run", "x").take(reply(b"0", b"samples.journal", b"1", b"0", b"1", b"x"))
    assert secret.read_text() == "mine"


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [b"0", b"a"],
        [b"0", b"a", b"1", b"-1", b"1", b"x"],
        [b"0", b"a", b"1", b"5", b"6", b"x"],
        [b"0", b"a.json", b"1", b"0", b"99999999999999", b"x"],
        [b"0", b"a", b"one", b"0", b"1", b"x"],
    ],
)
def test_damaged_words_are_refused(fields, tmp_path):
    with pytest.raises((BadInput, OSError)):
        Mirror(tmp_path, "run", "x").take(reply(*fields))


def test_a_replaced_file_appears_when_it_is_whole(tmp_path):
    mirror = Mirror(tmp_path, "run", "x")
    path = tmp_path / "probe.json"
    mirror.take(reply(b"0", b"probe.json", b"1-1-1", b"0", b"3", b"{1}"))
    mirror.take(reply(b"1", b"probe.json", b"1-2-2", b"0", b"5", b"{22"))
    assert path.read_text() == "{1}"
    mirror.take(reply(b"0", b"probe.json", b"1-2-2", b"3", b"5", b"2}"))
    assert path.read_text() == "{222}"
    assert mirror.request()[1] == ["run", str(4 << 20), "probe.json", "1-2-2", "5"]


def test_a_refusal_is_an_error(tmp_path):
    with pytest.raises(OSError, match="no such folder"):
        Mirror(tmp_path, "run", "x").take(Reply(errno.ENOENT, [b"no such folder"]))


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_fields_come_back_as_they_went(fields):
    header, _, payload = pack("read", 3, fields).partition(b"\n")
    assert header == b"read 3 %d" % len(payload)
    assert _fields(payload) == fields


@given(st.binary(max_size=60))
def test_damaged_fields_end_the_link_and_nothing_else(payload):
    with suppress(Lost):
        assert sum(map(len, _fields(payload))) < max(1, len(payload))
