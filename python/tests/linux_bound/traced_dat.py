"""The trace of a simulated kernel as a trace.dat, once or several times one after the other."""

import re
import struct
from pathlib import Path

PAGE = 4096
_HEADER_PAGE = (
    b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    b"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    b"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    b"\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"
)
_FIELDS = {
    "irq_disable": "s32 caller_offs, s32 parent_offs",
    "irq_enable": "s32 caller_offs, s32 parent_offs",
    "preempt_disable": "s32 caller_offs, s32 parent_offs",
    "preempt_enable": "s32 caller_offs, s32 parent_offs",
    "irq_handler_entry": "int irq",
    "irq_handler_exit": "int irq, int ret",
    "softirq_entry": "unsigned int vec",
    "softirq_exit": "unsigned int vec",
    "local_timer_entry": "int vector",
    "local_timer_exit": "int vector",
    "sched_switch": "char prev_comm[16], pid_t prev_pid, int prev_prio, long prev_state,"
    " char next_comm[16], pid_t next_pid, int next_prio",
    "sched_waking": "char comm[16], pid_t pid, int prio, int target_cpu",
    "cpu_idle": "u32 state, u32 cpu_id",
    "hrtimer_start": "void * hrtimer, s64 expires, s64 softexpires",
    "hrtimer_expire_entry": "void * hrtimer, s64 now",
    "hrtimer_expire_exit": "void * hrtimer",
}
"""Of each event, as a kernel for 64-bit machines has them, but for some that nobody reads."""
_SIZES = {"s32": "i", "int": "i", "unsigned int": "I", "pid_t": "i", "u32": "I", "long": "q"}
_SIZES |= {"s64": "q", "void *": "Q", "char": "16s"}
_ABSOLUTE = ("expires", "softexpires", "now")
_IDS = {name: 300 + place for place, name in enumerate(_FIELDS)}
_TEXT = 0xFFFF800008010000
_LINE = re.compile(r"\s*(\S+)-(\d+) \[(\d+)\] (\S+) (\d+)\.(\d{9}): (\w+): (.*)")
_WORDS = {"R": 0, "S": 1, "D": 2, "R+": 0x100, "handled": 1}


class Recording:
    """Pages of a ring buffer, with the events of the text of a trace.

    Args:
        lines: The text.
    """

    def __init__(self, lines: list[str]) -> None:
        self.pages = bytearray()
        self.events = 0
        self._offsets: dict[str, int] = {}
        self._threads: dict[int, str] = {}
        self._absolute: list[int] = []  # where times of the clock are, in `pages`
        self._page, self._page_ns, self._last_ns, self.first_ns = bytearray(), 0, 0, None
        for line in lines:
            if matched := _LINE.match(line):
                self._add(*matched.groups())
        self._close()

    @property
    def length_ns(self) -> int:
        """From the first to the last event."""
        return self._last_ns - (self.first_ns or 0)

    def write(self, path: Path, times: int = 1, gap_ns: int = 1000) -> Path:
        """Write the trace so often one after the other, with a gap between."""
        pages = bytearray(self.pages)
        stamps = [*range(0, len(pages), PAGE), *self._absolute]
        head = self._head()
        offset = -(-(len(head) + 16) // PAGE) * PAGE
        with path.open("wb") as file:
            file.write((head + struct.pack("<QQ", offset, len(pages) * times)).ljust(offset, b"\0"))
            for _ in range(times):
                file.write(pages)
                for place in stamps:
                    (before,) = struct.unpack_from("<q", pages, place)
                    struct.pack_into("<q", pages, place, before + self.length_ns + gap_ns)
        return path

    def _add(
        self, comm: str, pid: str, _cpu: str, flags: str, s: str, ns: str, name: str, told: str
    ) -> None:
        self._threads[int(pid)] = comm
        stamp = int(s) * 10**9 + int(ns)
        if self.first_ns is None:
            self.first_ns = stamp
        bits = 0x01 * (flags[0] == "d") | 0x04 * (flags[1] == "N")
        bits |= {"h": 0x08, "s": 0x10}.get(flags[2], 0)
        content = struct.pack("<HBB", _IDS[name], bits, 0 if flags[3] == "." else int(flags[3]))
        content += struct.pack("<i", int(pid))
        values = dict(re.findall(r"(\w+)=(\S+)", told))
        absolute = []
        for kind, field in _fields_of(name):
            content += b"\0" * (-len(content) % min(struct.calcsize("<" + _SIZES[kind]), 8))
            absolute += [len(content)] * (field in _ABSOLUTE)
            content += struct.pack("<" + _SIZES[kind], self._value(kind, field, values))
        content += b"\0" * (-len(content) % 4)
        self._append(stamp, content, absolute)

    def _value(self, kind: str, field: str, values: dict[str, str]) -> int | bytes:
        if field.endswith("_offs"):
            function = values[field.removesuffix("_offs")].split("+")[0]
            return self._offsets.setdefault(function, 0x1000 * (1 + len(self._offsets))) + 0x10
        value = values.get(field, "0")
        if kind == "char":
            return value.encode()
        if value in _WORDS:
            return _WORDS[value]
        return int(value, 16 if kind == "void *" else 10)

    def _append(self, stamp: int, content: bytes, absolute: list[int]) -> None:
        if not self._page or 16 + len(self._page) + len(content) + 12 > PAGE:
            self._close()
            self._page_ns = self._last_ns = stamp
        delta = stamp - self._last_ns
        if delta >= 1 << 27:
            self._page += struct.pack("<II", 30 | (delta & (1 << 27) - 1) << 5, delta >> 27)
            delta = 0
        start = len(self.pages) + 16 + len(self._page) + 4
        self._absolute += [start + place for place in absolute]
        self._page += struct.pack("<I", len(content) // 4 | delta << 5) + content
        self._last_ns = stamp
        self.events += 1

    def _close(self) -> None:
        if self._page:
            self.pages += struct.pack("<QQ", self._page_ns, len(self._page)) + self._page
            self.pages += b"\0" * (-len(self.pages) % PAGE)
            self._page = bytearray()

    def _head(self) -> bytes:
        formats = [_format(name) for name in _FIELDS]
        symbols = [f"{_TEXT:x} T _text", f"{_TEXT:x} T _stext"]
        symbols += [f"{_TEXT + place:x} t {name}" for name, place in self._offsets.items()]
        text = "".join(f"{line}\n" for line in symbols).encode()
        names = "".join(f"{pid} {comm}\n" for pid, comm in self._threads.items() if pid).encode()
        return b"".join(
            (
                b"\x17\x08\x44tracing6\0",
                struct.pack("<BBI", 0, 8, PAGE),
                b"header_page\0" + struct.pack("<Q", len(_HEADER_PAGE)) + _HEADER_PAGE,
                b"header_event\0" + struct.pack("<Q", 0),
                struct.pack("<I", 0),
                struct.pack("<I", 1) + b"made\0" + struct.pack("<I", len(formats)),
                *(struct.pack("<Q", len(each)) + each for each in formats),
                struct.pack("<I", len(text)) + text,
                struct.pack("<I", 0),
                struct.pack("<Q", len(names)) + names,
                struct.pack("<I", 1),
                b"options  \0",
                struct.pack("<HI", 4, 7) + b"[mono]\0",
                struct.pack("<H", 0),
                b"flyrecord\0",
            )
        )


def _fields_of(name: str) -> list[tuple[str, str]]:
    told = [each.strip().removesuffix("[16]") for each in _FIELDS[name].split(",")]
    return [(each.rpartition(" ")[0], each.rpartition(" ")[2]) for each in told]


def _format(name: str) -> bytes:
    text = f"name: {name}\nID: {_IDS[name]}\nformat:\n"
    common = (("unsigned short common_type", 0, 2), ("unsigned char common_flags", 2, 1))
    common += (("unsigned char common_preempt_count", 3, 1), ("int common_pid", 4, 4))
    for told, offset, size in common:
        text += f"\tfield:{told};\toffset:{offset};\tsize:{size};\tsigned:0;\n"
    offset = 8
    for kind, field in _fields_of(name):
        size = struct.calcsize("<" + _SIZES[kind])
        offset += -offset % min(size, 8)
        told = f"{kind} {field}[16]" if kind == "char" else f"{kind} {field}"
        is_signed = int(_SIZES[kind] in "iq")
        text += f"\tfield:{told};\toffset:{offset};\tsize:{size};\tsigned:{is_signed};\n"
        offset += size
    return text.encode()
