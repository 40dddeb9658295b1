"""Snapshots of other people's machines, files of such machines, and journals of changes."""

import zlib
from pathlib import Path

from latenz.tune.catalogue import load
from latenz.tune.check import check
from latenz.tune.context import Context
from latenz.tune.journal import Journal
from latenz.tune.places import Place
from latenz.tune.qemu import QemuProcess, parse_option, size_bytes
from latenz.tune.root import Root
from latenz.vm.own_domain import read_domain, settings_for, tuned_domain
from latenz.vm.xml_edit import Document
from outcomes import require

_BLOCK = 512
_ENTRIES = load()
_QEMU = b"qemu-system-x86_64\0-accel\0kvm\0"
_FILES = (
    "boot/config-6.1.0",
    "etc/default/grub",
    "etc/libvirt/qemu/guest.xml",
    "etc/sysctl.d/90.conf",
    "etc/systemd/system.conf",
    "proc/1/status",
    "proc/cmdline",
    "proc/interrupts",
    "proc/meminfo",
    "proc/mounts",
    "proc/stat",
    "proc/sys/kernel/osrelease",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/vulnerabilities/meltdown",
    "sys/kernel/mm/transparent_hugepage/enabled",
)


def snapshot(path: Path) -> None:
    """Read all of a snapshot: as it is, or with the checksums of its headers put right."""
    content = path.read_bytes()
    _read_all(Root(path))
    sealed = path.parent / "sealed.tar"
    sealed.write_bytes(_with_checksums(content))
    _read_all(Root(sealed))


def _read_all(root: Root) -> None:
    Context.of(root)
    for name in root.glob("/**/*")[:100]:
        require(name.startswith("/"), "paths are absolute")
        root.read(name)
        root.link(name)
        root.names(name)


def _with_checksums(tar: bytes) -> bytes:
    """Return a tar in which every block that may be a header has the checksum of one."""
    blocks = [tar[at : at + _BLOCK] for at in range(0, len(tar), _BLOCK)]
    return b"".join(_sealed(block) if b"ustar" in block[257:262] else block for block in blocks)


def _sealed(header: bytes) -> bytes:
    blank = header[:148] + b" " * 8 + header[156:]
    return header[:148] + b"%06o\0 " % sum(blank) + header[156:]


def own_domain(path: Path) -> None:
    """Tune a domain of libvirt; what comes out is one that is tuned."""
    document = read_domain(path)
    made = _tuned(document, path)
    again = path.parent / "tuned.xml"
    again.write_text(made)
    require(_tuned(read_domain(again), again) == made, "a tuned domain is tuned")


def _tuned(document: Document, path: Path) -> str:
    return tuned_domain(document, settings_for(document, path, True, (), (), "0-63")).text


def machine_files(path: Path) -> None:
    """Check a machine, each of whose settings is the input."""
    content = path.read_bytes()
    folder = path.parent / "machine"
    for name in _FILES:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    process = folder / "proc/7/cmdline"
    process.parent.mkdir(exist_ok=True)
    process.write_bytes(_QEMU + content)
    found = check(Context.of(Root(folder), profile="kvm-host"), _ENTRIES)
    require(len(found) == len(_ENTRIES), "every setting is judged")


def command_lines(path: Path) -> None:
    """Read the options of a QEMU."""
    words = path.read_bytes().decode("utf-8", "replace").split("\0")
    process = QemuProcess(1, tuple(words))
    require(process.memory_bytes >= 0, "memory is counted")
    require(isinstance(process.uses_kvm, bool) and process.name != "", "it has a name")
    for word in words:
        parse_option("device", word)
        require(size_bytes(word) >= 0, "sizes are counted")


def change_journal(path: Path) -> None:
    """Read the journal of a transaction: as it is, and with the checksum of each line put right."""
    path.chmod(0o600)
    sealed = path.parent / "sealed.journal"
    lines = path.read_bytes().splitlines()
    bodies = [line[9:] for line in lines]
    sealed.write_bytes(b"".join(b"%08x %b\n" % (zlib.crc32(body), body) for body in bodies))
    sealed.chmod(0o600)
    place = Place(path.parent)
    journal = Journal.read(place, sealed)
    require(len(journal.records) <= len(lines), "there are no more records than lines")
    Journal.read(place, path)
