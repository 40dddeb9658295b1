"""Memory that the headers have written is what docs/icc-abi.md says, at its offsets."""

import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ICC = HERE.parents[1]
PAGE = (ICC.parent / "docs/icc-abi.md").read_text()
SAMPLE = [  # whole name, kind, size, offset, count, stride
    ("number", 1, 4, 0, 1, 4),
    ("joints.angle", 3, 4, 4, 6, 8),
    ("joints.torque", 3, 4, 8, 6, 8),
    ("mode", 1, 2, 52, 1, 2),
]
SAMPLE_BYTES = 56


def table(heading: str) -> dict[str, tuple[str, str]]:
    """Name to offset and bytes, of the rows under a heading."""
    [section] = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| `(\w+)` \|", section, re.M)
    assert rows, heading
    return {name: (offset, size) for offset, size, name in rows}


class Dump:
    """A channel's memory, read by the page's tables."""

    def __init__(self, path: Path, **known: int) -> None:
        self.memory = path.read_bytes()
        self.known = known
        identity = {name: self.word("Identity", name) for name in ("kind", "readers")}
        fields = self.words("Identity", "field_count")
        self.known |= {"F": sum(fields), "S": identity["readers"] + 1}
        self.known["P"] = max(self.words("Identity", "payload_bytes"))
        self.known["D"] = self.value(table("Channel")["data"][0])

    def value(self, formula: str, **more: int) -> int:
        functions = {
            "line": lambda x: -(-x // 64) * 64,
            "pair": lambda x: -(-x // 128) * 128,
            "words": lambda x: -(-x // 4),
        }
        return int(eval(formula, {"__builtins__": {}}, functions | self.known | more))

    def bytes(self, heading: str, name: str, at: int = 0, **more: int) -> bytes:
        offset, size = table(heading)[name]
        first = at + self.value(offset, **more)
        found = self.memory[first : first + self.value(size, **more)]
        assert len(found) == self.value(size, **more), f"{name} is behind the end"
        return found

    def words(self, heading: str, name: str, **more: int) -> list[int]:
        found = self.bytes(heading, name, **more)
        return [int.from_bytes(found[i : i + 4], "little") for i in range(0, len(found), 4)]

    def word(self, heading: str, name: str, **more: int) -> int:
        [word] = self.words(heading, name, **more)
        return word

    def number(self, heading: str, name: str, **more: int) -> int:
        """What is in the payload's first member."""
        return int.from_bytes(self.bytes(heading, name, **more)[:2], "little")

    def side(self, index: int) -> dict[str, int]:
        first = self.value(table("Channel")["sides"][0]) + 128 * index
        return {name: self.word("Side", name, at=first) for name in table("Side")}

    def fields(self) -> list[tuple[str, int, int, int, int, int]]:
        found = []
        for i in range(self.known["F"]):
            row = {
                name: self.bytes("Field", name, at=128 + 32 * i)
                for name in ("name", "kind", "size", "offset", "count", "stride")
            }
            text = row.pop("name").rstrip(b"\0").decode()
            found.append((text, *(int.from_bytes(part, "little") for part in row.values())))
        return found


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """The folder of the memories, and the lines of each as the headers tell them."""
    folder = tmp_path_factory.mktemp("abi")
    compile_it = ("g++", "-std=c++20", f"-I{ICC / 'include'}", HERE / "abi_dump.cpp", "-o")
    subprocess.run((*compile_it, folder / "dump"), check=True)
    run = subprocess.run(folder / "dump", cwd=folder, capture_output=True, text=True, check=True)
    lines: dict[str, list[tuple[str, int, int]]] = {}
    for line in run.stdout.splitlines():
        name, offset, size, part = line.split(maxsplit=3)
        lines.setdefault(name, []).append((part, int(offset), int(size)))
    return folder, lines


KINDS = {
    "mailbox": ("Mailbox", 1, 1),
    "mailbox_small": ("Mailbox", 1, 1),
    "exchange": ("Exchange", 2, 1),
    "exchange_two_lines": ("Exchange", 2, 1),
    "latest": ("Latest", 3, 6),
    "ring": ("Ring", 4, 4),
    "pool": ("Pool", 5, 4),
}
# of the pool: 4 blocks of 64 bytes, 2 of 192, 2 of 576
SIZES = {"R": 2, "N": 4, "L": 2, "B": 8, "E": 16, "C": 4 * 64 + 2 * 192 + 2 * 576}


@pytest.mark.parametrize("name", KINDS)
def test_identity_sides_and_end_are_where_the_page_says(dumps, name):
    folder, lines = dumps
    heading, kind, slots = KINDS[name]
    dump = Dump(folder / name, **SIZES)
    assert dump.bytes("Identity", "magic") == b"LICC"
    assert dump.word("Identity", "abi_version") == 3
    assert dump.word("Identity", "kind") == kind
    assert dump.word("Identity", "generation") == 1
    assert dump.word("Identity", "line") == 64
    assert dump.word("Identity", "slots") == slots
    assert dump.bytes("Identity", "name").rstrip(b"\0").decode() == heading.split()[0].lower()
    assert not any(dump.bytes("Identity", "reserved"))
    end = dump.value(table(heading)["end"][0])
    assert end == len(dump.memory) == dump.word("Identity", "channel_bytes")
    parts = lines[name]
    data = next(offset for part, offset, _ in parts[1:] if part != "presence and pulse")
    assert dump.known["D"] == data
    assert parts[1][1] == dump.value(table("Channel")["sides"][0])
    assert dump.side(0)["epoch"] == 1
    assert dump.side(0)["open"] == 1


def test_fields_are_those_of_the_payload(dumps):
    folder, _ = dumps
    cut = [(name[:15], *rest) for name, *rest in SAMPLE]
    assert Dump(folder / "mailbox").fields() == cut
    assert Dump(folder / "exchange").fields() == [*cut, ("number", 1, 2, 0, 1, 2)]


def fingerprint_of_sample() -> int:
    """As the page describes it."""
    data = b""
    for name, kind, size, offset, count, stride in SAMPLE:
        data += kind.to_bytes(1) + size.to_bytes(2, "little")
        data += b"".join(n.to_bytes(4, "little") for n in (offset, count, stride))
        data += name.encode() + b"\0"
    data += SAMPLE_BYTES.to_bytes(4, "little") + (4).to_bytes(4, "little")
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def test_fingerprint_is_computed_as_described(dumps):
    folder, _ = dumps
    expected = fingerprint_of_sample()
    words = Dump(folder / "mailbox").words("Identity", "fingerprint")
    assert words == [expected % 2**32, expected >> 32, 0, 0]
    assert f"it is `{expected:016X}`." in PAGE


def test_mailbox_holds_its_last_message_and_both_counts(dumps):
    folder, _ = dumps
    for name in ("mailbox", "mailbox_small"):
        dump = Dump(folder / name)
        assert dump.number("Mailbox", "payload") == 12
        assert dump.word("Mailbox", "taken") == 2
        assert dump.word("Mailbox", "written") == 1 << 24 | 3


def test_exchange_holds_its_last_request_and_the_servers_turn(dumps):
    folder, _ = dumps
    small = Dump(folder / "exchange")
    assert small.number("Exchange", "payload") == 22
    assert small.word("Exchange", "word") == 1 << 24 | 3
    wide = Dump(folder / "exchange_two_lines")
    assert wide.known["P"] == 104
    assert wide.number("Exchange", "payload") == 22
    assert wide.bytes("Exchange", "payload")[100] == 77
    assert wide.word("Exchange", "word") == 1 << 24 | 3


def test_latest_holds_both_values_and_the_announcement(dumps):
    folder, _ = dumps
    dump = Dump(folder / "latest", R=2)
    assert dump.word("Latest", "updates") == 2
    newest_pair = dump.word("Latest", "latest") - 1
    read_pair = dump.word("Latest", "announcement", i=1) - 1
    assert dump.word("Latest", "announcement", i=0) == 0
    assert read_pair != newest_pair, "the writer avoids what is announced"
    for pair, value, number in ((newest_pair, 31, 2), (read_pair, 30, 1)):
        slot = dump.word("Latest", "newest", p=pair)
        assert dump.number("Latest", "payload", p=pair, w=slot) == value
        assert dump.word("Latest", "number", p=pair, w=slot) == number


def test_ring_holds_the_last_messages_and_the_readers_place(dumps):
    folder, _ = dumps
    dump = Dump(folder / "ring", N=4, L=2)
    assert dump.word("Ring", "head") == 5
    assert [dump.word("Ring", "taken", i=i) for i in (0, 1)] == [0, 3]
    assert dump.word("Ring", "begun") == 5
    assert [dump.word("Ring", "left", i=i) for i in (0, 1)] == [0, 0]
    for n in (2, 3, 4, 5):
        assert dump.number("Ring", "payload", n=n) == 40 + n
    left = dump.side(2)
    assert (left["epoch"], left["open"], left["beats"]) == (1, 0, 1)


def test_pool_holds_messages_tickets_and_states(dumps):
    folder, _ = dumps
    dump = Dump(folder / "pool", **SIZES)
    assert dump.words("Identity", "payload_bytes") == [SAMPLE_BYTES, 10 * SAMPLE_BYTES]
    assert dump.known["P"] == 10 * SAMPLE_BYTES
    assert dump.word("Pool", "head") == 3
    assert dump.word("Pool", "taken") == 2
    blocks = [dump.word("Pool", "block", n=n) for n in (1, 2, 3)]
    assert blocks == [0, 6, 4]  # the first of each class
    assert [dump.word("Pool", "items", n=n) for n in (1, 2, 3)] == [1, 9, 2]
    assert [dump.word("Pool", "its_ticket", n=n) for n in (1, 2, 3)] == [2, 2, 2]
    assert [dump.word("Pool", "ticket", b=b) for b in range(8)] == [2, 0, 0, 0, 2, 0, 2, 0]
    # given back, held, on its way
    assert [dump.word("Pool", "state", b=b) for b in blocks] == [2, 1, 0]
    content = dump.bytes("Pool", "blocks")
    assert content[0] == 51
    assert content[4 * 64 + 2 * 192] == 52
