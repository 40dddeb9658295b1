"""Writes a perf.data as perf does: attributes, rounds of records, and formats of events behind.

Layout: tools/perf/Documentation/perf.data-file-format.txt and perf_event_open(2).
"""

import struct
from pathlib import Path

from two_sides import FIELDS, Event, Order, Side, content_of, format_of

IDENTIFIER, TID, TIME, CPU, PERIOD, RAW = 1 << 16, 1 << 1, 1 << 2, 1 << 7, 1 << 8, 1 << 10
SAMPLE_TYPE = IDENTIFIER | TID | TIME | CPU | PERIOD | RAW
LOST, COMM, SAMPLE, FINISHED_ROUND = 2, 3, 9, 68
_ATTRIBUTE, _SAMPLE_ID_ALL, _CLOCK_ID = 136, 18, 25
_FIRST_FORMAT = 100


class PerfFile:
    """A perf.data as it grows."""

    def __init__(self, order: Order = "little") -> None:
        self.order: Order = order
        self.mark = "<" if order == "little" else ">"
        self.ids = {name: _FIRST_FORMAT + place for place, name in enumerate(FIELDS)}
        self.sample_type = SAMPLE_TYPE
        self.data = b""

    def pack(self, form: str, *values: int) -> bytes:
        return struct.pack(self.mark + form, *values)

    def record(self, kind: int, body: bytes) -> None:
        body += b"\0" * (-len(body) % 8)
        self.data += self.pack("IHH", kind, 0, len(body) + 8) + body

    def behind(self, t_ns: int, cpu: int, pid: int = 0) -> bytes:
        """What stands behind records that are no samples."""
        return self.pack("IIQIIQ", pid, pid, t_ns, cpu, 0, 1)

    def sample(self, event: Event) -> None:
        raw = content_of(event, self.ids, self.order)
        raw += b"\0" * (-(len(raw) + 4) % 8)  # with its size before it whole words
        number, pid = self.ids[event.name], event.thread[1]
        head = self.pack("QIIQIIQ", number, pid, pid, event.t_ns, event.cpu, 0, 1)
        self.record(SAMPLE, head + self.pack("I", len(raw)) + raw)

    def comm(self, pid: int, name: str) -> None:
        text = name.encode().ljust(16, b"\0")
        self.record(COMM, self.pack("II", pid, pid) + text + self.behind(0, 0, pid))

    def lost(self, t_ns: int, cpu: int, count: int) -> None:
        self.record(LOST, self.pack("QQ", 1, count) + self.behind(t_ns, cpu))

    def attribute(self, kind: int, identities: tuple[int, int]) -> bytes:
        flags = [_SAMPLE_ID_ALL, _CLOCK_ID]
        bits = sum(1 << (each if self.order == "little" else 63 - each) for each in flags)
        head = self.pack("IIQQQQQ", kind, _ATTRIBUTE, 0, 1, self.sample_type, 4, bits)
        words = head.ljust(92, b"\0") + self.pack("i", 1)  # CLOCK_MONOTONIC
        return words.ljust(_ATTRIBUTE, b"\0") + self.pack("QQ", *identities)

    def tracing_data(self) -> bytes:
        formats = b""
        for name, number in self.ids.items():
            text = f"name: {name}\nID: {number}\nformat:\n{format_of(name)}".encode()
            formats += self.pack("Q", len(text)) + text
        head = b"\x17\x08\x44tracing0.6\0" + bytes([self.order == "big", 8])
        head += self.pack("I", 4096)
        for part in (b"header_page\0", b"header_event\0"):
            head += part + self.pack("Q", 0)
        made = self.pack("II", 0, 1) + b"made\0" + self.pack("I", len(self.ids)) + formats
        return head + made + self.pack("IIQ", 0, 0, 0)

    def write(self, path: Path, kind: int = 2, features: int = 1 << 1) -> Path:
        """Write the file; all events have the same attributes, but their own numbers."""
        numbers = b"".join(self.pack("Q", each) for each in self.ids.values())
        places = [(104 + 8 * place, 8) for place in range(len(self.ids))]
        attributes = b"".join(self.attribute(kind, place) for place in places)
        at = 104 + len(numbers)
        data_at = at + len(attributes)
        behind = data_at + len(self.data)
        tracing = self.tracing_data()
        head = b"PERFILE2" if self.order == "little" else b"2ELIFREP"
        head += self.pack(
            "QQQQQQ", 104, _ATTRIBUTE + 16, at, len(attributes), data_at, len(self.data)
        )
        head += self.pack("QQQQQQ", 0, 0, features, 0, 0, 0)
        place = self.pack("QQ", behind + 16, len(tracing))
        path.write_bytes(head + numbers + attributes + self.data + place + tracing)
        return path


def write_perf(side: Side, path: Path, order: Order = "little") -> Path:
    """Write a trace as perf does: in rounds, in each of which CPU follows CPU."""
    file = PerfFile(order)
    for pid, comm in {each.thread[1]: each.thread[0] for each in side.events}.items():
        file.comm(pid, comm)
    events = sorted(side.events, key=lambda event: event.t_ns)
    for start in range(0, len(events), 50):
        part = events[start : start + 50]
        for each in sorted(part, key=lambda event: -event.cpu):
            file.sample(each)
        file.record(FINISHED_ROUND, b"")
    return file.write(path)
