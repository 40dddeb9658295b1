"""A stranger's snapshot is checked or refused within a gigabyte and half a minute."""

import io
import tarfile
from pathlib import Path

import bombs
import pytest
from small_commands import MOST_KIB, latenz

from latenz.unpacking import Damaged, members, unpack

pytestmark = pytest.mark.fuzzing

TARS = bombs.tars()
HARMLESS = {"100,000 names", "loops", "winding links"}


@pytest.mark.parametrize("name", sorted(TARS))
def test_a_tar_that_is_a_burden(name: str, tmp_path: Path) -> None:
    assert len(TARS[name]) <= bombs.LARGEST
    path = tmp_path / "machine.tar"
    path.write_bytes(TARS[name])
    answer = latenz("tune", "check", "--root", path, "--cpus", "1")
    assert answer.is_one_line() or (answer.code in (0, 1) and name in HARMLESS), answer.errors
    assert answer.resident_kib <= MOST_KIB


FORMS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
KINDS = {
    tarfile.REGTYPE: "file",
    tarfile.DIRTYPE: "folder",
    tarfile.SYMTYPE: "link",
    tarfile.LNKTYPE: "hard link",
    tarfile.CHRTYPE: "other",
    tarfile.FIFOTYPE: "other",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packing", ["", "gz", "bz2", "xz"])
def test_members_are_those_that_pythons_own_module_writes(form: int, packing: str) -> None:
    names = ["a", "a/b", "ü/€", "d" * 90 + "/" + "e" * 90]
    if form != tarfile.USTAR_FORMAT:
        names += ["long/" * 60 + "x", "surrogate-\udcff"]
    contents = [b"", b"1", b"2" * 512, b"3" * 513, b"4" * 70_000]
    target = io.BytesIO()
    wanted = []
    with tarfile.open(fileobj=target, mode=f"w:{packing}", format=form) as archive:  # type: ignore[call-overload]
        for kind in KINDS:
            for number, name in enumerate(names):
                member = tarfile.TarInfo(name)
                member.type, member.mtime = kind, 1.5 if form == tarfile.PAX_FORMAT else 1
                content = contents[number % len(contents)] if kind == tarfile.REGTYPE else b""
                member.linkname = name[-90:] if kind in (b"1", b"2") else ""
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
                wanted.append((name, KINDS[kind], member.linkname, content))
    target.seek(0)
    found = [
        (each.name.rstrip("/"), each.kind, each.target, each.content(1 << 20) if each.size else b"")
        for each in members(target, 1 << 24)
    ]
    assert found == wanted
    target.seek(0)
    assert [each.name.rstrip("/") for each in members(target, 1 << 24)] == [
        each[0] for each in wanted
    ]


@pytest.mark.parametrize("by", ["gz", "bz2", "xz"])
def test_streams_one_behind_another_are_one_and_the_limit_counts_all(by: str) -> None:
    pieces = [b"%d" % number * (number % 40_000) for number in range(0, 400_000, 7001)]
    content, plain = bombs.packed(by, *pieces), b"".join(pieces)
    assert unpack(content, len(plain)) == plain
    assert unpack(content + b"\0" * 512, len(plain)) == plain
    with pytest.raises(Damaged, match="unpacks to more than"):
        unpack(content, len(plain) - 1)
    for cut in (1, 5, 9, 200):
        with pytest.raises(Damaged, match=r"cut off|damaged"):
            unpack(bombs.packed(by, plain)[:-cut], len(plain))


def test_what_is_not_packed_stays_as_it_is() -> None:
    for content in (b"", b"\x1f", b"plain" * 1000):
        assert unpack(content, 5000) == content


def test_a_sparse_file_is_no_file_of_which_something_is_told() -> None:
    block = bytearray(bombs.header("a", b"S", 512))
    tar = bytes(block) + b"\1" * 512 + bombs.header("b", size=3) + bombs.filled(b"yes") + bombs.END
    first, second = [
        (each.name, each.kind, each.content(9) if each.size == 3 else b"")
        for each in members(io.BytesIO(tar), 1 << 20)
    ]
    assert first == ("a", "other", b"")
    assert second == ("b", "file", b"yes")


def sent_by_a_guest(*blocks: bytes) -> bytes:
    return bombs.packed("gz", *blocks, bombs.END)


def test_a_guest_that_sends_links_and_bombs_writes_nothing_elsewhere(tmp_path: Path) -> None:
    from latenz.boards.console import Received
    from latenz.errors import BadInput
    from latenz.stacks import guest_linux

    victim = tmp_path / "victim"
    victim.write_text("whole")
    evil = sent_by_a_guest(
        bombs.link("./stat", str(victim)),
        bombs.header("./stat", size=4) + bombs.filled(b"evil"),
        bombs.header("./../victim", size=4) + bombs.filled(b"evil"),
        bombs.header(str(victim), size=4) + bombs.filled(b"evil"),
        bombs.link("./before", str(tmp_path)),
        bombs.header("./before/victim", size=4) + bombs.filled(b"evil"),
        bombs.header("./before", size=4) + bombs.filled(b"evil"),
    )
    for number, archive in enumerate((evil, TARS["long name"], b"", b"\x1f\x8b")):
        run = tmp_path / f"run{number}"
        received = Received(files={guest_linux.RESULTS: bytearray(archive)})
        with pytest.raises(BadInput) as mistake:
            guest_linux._unpack(received, run / "received", run)
        assert "\n" not in str(mistake.value)
        assert victim.read_text() == "whole"
        assert not any(each.is_symlink() for each in tmp_path.rglob("*"))
