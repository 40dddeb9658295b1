"""Tars of at most 1 MB that are a burden to whoever reads them without care."""

import bz2
import gzip
import lzma
import tarfile
import zlib

LARGEST = 1_000_000
GIB = 1 << 30


def header(
    name: str = "proc/cmdline",
    kind: bytes = b"0",
    size: int = 0,
    target: str = "",
    size_field: bytes | None = None,
) -> bytes:
    """One header of a tar, with its checksum."""
    member = tarfile.TarInfo(name)
    member.type, member.size, member.linkname = kind, min(size, 8**11 - 1), target
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")[-512:])
    if size_field is not None or size >= 8**11:
        block[124:136] = size_field or b"\x80" + size.to_bytes(11, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def filled(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 512)


END = b"\0" * 1024
_COMPRESSORS = {
    "gz": lambda content: gzip.compress(content, 9, mtime=0),
    "bz2": bz2.compress,
    "xz": lambda content: lzma.compress(content, preset=1),
}


def packed(by: str, *pieces: bytes | tuple[bytes, int]) -> bytes:
    """Pack pieces, each a stream of its own, which may stand there several times."""
    pack = _COMPRESSORS[by]
    parts = [(piece, 1) if isinstance(piece, bytes) else piece for piece in pieces]
    return b"".join(pack(content) * times for content, times in parts)


def pax(content: bytes) -> bytes:
    return header("PaxHeader", b"x", len(content)) + filled(content)


def link(name: str, target: str) -> bytes:
    return header(name, b"2", target=target)


def tars() -> dict[str, bytes]:
    """All bombs by name; each is smaller than 1 MB."""
    zeros = (b"\0" * (32 << 20), 64)
    few_zeros = (b"\0" * (8 << 20), 100)
    deep = filled(b"a/" * 30_000 + b"x\0")
    long_names = b"".join(
        pax(b"2017 path=%b%04d\n" % (b"a/" * 1001, number)) + header() for number in range(1000)
    )
    sparse = bytearray(header(kind=b"S"))
    sparse[482] = 1
    sparse[148:156] = b" " * 8
    sparse[148:156] = b"%06o\0 " % sum(sparse)
    loops = b"".join(
        link(f"sys/devices/system/cpu/cpu{number}", f"../cpu/cpu{number + 1}")
        for number in range(3000)
    )
    winding = b"".join(link(f"proc/irq/{number}", "../irq/" * 13 + "0") for number in range(5000))
    names = b"".join(header(f"proc/irq/{number}/spurious") for number in range(100_000))
    return {
        "long name": packed("bz2", header("@", b"L", 2 * GIB), zeros),
        "long link": packed("bz2", header("@", b"K", 2 * GIB), zeros),
        "large pax header": packed("bz2", header("@", b"x", 2 * GIB), zeros),
        "large file": packed("bz2", header(size=2 * GIB), zeros),
        "large file by gz": packed("gz", header(size=800 << 20), few_zeros),
        "large file by xz": packed("xz", header(size=2 * GIB), zeros),
        "file of 2^80 bytes": packed("bz2", header(size=1 << 80), zeros),
        "many files of 4 MiB": packed(
            "bz2", (header("etc/a", size=4 << 20) + b"\1" * (4 << 20), 300)
        ),
        "10^6 members": packed("xz", (names, 6)),
        "100,000 names": packed("xz", names, END),
        "10^6 pax headers": packed("bz2", (pax(b"6 a=b\n") * 10_000, 100)),
        "records without end": packed("bz2", (pax(b"5 a=\n" * 13_000) * 100, 160)),
        "quadratic pax header": packed("bz2", (pax(b"2 " * 32_000 + b"=") + header(), 5000)),
        "digits in a pax header": packed("bz2", (pax(b"1" * 65_000) + header(), 5000)),
        "deep name": packed("gz", header("@", b"L", len(deep)), deep, header(), END),
        "deep names": packed("bz2", (long_names, 20)),
        "negative size": packed("gz", header(size_field=b"\xff" * 12), END),
        "size with a sign": packed("gz", header(size_field=b"-0000000001\0"), END),
        "negative size in pax": packed("gz", pax(b"11 size=-1\n"), header(), END),
        "sparse without end": packed("bz2", bytes(sparse), (b"\1" * (32 << 20), 64)),
        "loops": packed("gz", loops, END),
        "winding links": packed("xz", winding, link("proc/irq/0", "0"), END),
        "members of gz": packed("gz", (b"", 45_000)),
        "xz that wants 4 GiB": _thirsty_xz(),
    }


def _thirsty_xz() -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 20}]
    content = bytearray(lzma.compress(header() + END, filters=filters))
    at = content.index(b"\x21\x01", 12)
    content[at + 2] = 40  # of the dictionary: 4 GiB - 1
    size = (content[12] + 1) * 4
    content[12 + size - 4 : 12 + size] = zlib.crc32(content[12 : 12 + size - 4]).to_bytes(
        4, "little"
    )
    return bytes(content)
