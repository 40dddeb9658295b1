"""Rings of the kernel's tracer: instances of our own, and files that hold what they recorded."""

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from latenz.obstacle import Obstacle

EVENTS = (
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_migrate_task",
    "sched/sched_pi_setprio",
    "lock/contention_begin",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "irq_vectors/local_timer_entry",
    "irq_vectors/local_timer_exit",
    "irq_vectors/reschedule_entry",
    "irq_vectors/reschedule_exit",
    "irq_vectors/call_function_entry",
    "irq_vectors/call_function_exit",
    "irq_vectors/call_function_single_entry",
    "irq_vectors/call_function_single_exit",
    "irq_vectors/irq_work_entry",
    "irq_vectors/irq_work_exit",
    "irq_vectors/thermal_apic_entry",
    "irq_vectors/thermal_apic_exit",
    "ipi/ipi_entry",
    "ipi/ipi_exit",
    "ipi/ipi_raise",
    "ipi/ipi_send_cpu",
    "ipi/ipi_send_cpumask",
    "tlb/tlb_flush",
    "nmi/nmi_handler",
    "exceptions/page_fault_user",
    "exceptions/page_fault_kernel",
    "timer/hrtimer_start",
    "timer/hrtimer_cancel",
    "timer/hrtimer_expire_entry",
    "timer/hrtimer_expire_exit",
    "timer/timer_expire_entry",
    "timer/timer_expire_exit",
    "workqueue/workqueue_execute_start",
    "workqueue/workqueue_execute_end",
    "printk/console",
    "vmscan/mm_vmscan_direct_reclaim_begin",
    "vmscan/mm_vmscan_direct_reclaim_end",
    "power/cpu_idle",
    "power/cpu_frequency",
    "kvm/kvm_entry",
    "kvm/kvm_exit",
    "kvm/kvm_userspace_exit",
)
"""What is recorded, where the kernel has it."""

_MEASURING = ("latenz", "cyclictest", "oslat", "timerlat")
_FILTERS = {
    "tlb/tlb_flush": "reason == 1",  # by another CPU's demand; there are very many others
    "exceptions/page_fault_user": " || ".join(f'comm ~ "{name}*"' for name in _MEASURING),
    "exceptions/page_fault_kernel": " || ".join(f'comm ~ "{name}*"' for name in _MEASURING),
}
"""Of these events only some: all of them would fill the rings, and cost too much."""

_PREFIX = "latenz-"
_LARGEST_KIB = 16 << 10
_SMALLEST_KIB = 256
_MAGIC = b"\x17\x08\x44tracing6\x00"
_END_OF_OPTIONS, _TRACE_CLOCK = 0, 4
_COMMIT, _MISSED, _COUNTED = 8, 1 << 31, 1 << 30  # a page's header (kernel/trace/ring_buffer.c)
_LOWEST_SYMBOL = 1 << 63  # kernels live in the upper half
_LARGEST_FUNCTION = 1 << 16  # bytes; what lies further behind a name is not code of it


def find_tracefs() -> Path | None:
    """Return where the tracing file system is mounted, None if it is not."""
    for place in (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing")):
        with suppress(OSError):
            if (place / "instances").is_dir():
                return place
    return None


def obstacle() -> Obstacle | None:
    """Return why nothing can be recorded on this machine, or None if it can."""
    tracefs = find_tracefs()
    if os.geteuid() != 0 and (tracefs is None or not os.access(tracefs / "instances", os.W_OK)):
        return Obstacle("the kernel's tracer may not be used", "run as root")
    if tracefs is None:
        return Obstacle(
            "the kernel's tracing file system is not mounted",
            "as root: mount -t tracefs tracefs /sys/kernel/tracing",
        )
    if not (tracefs / "events/sched/sched_switch").is_dir():
        return Obstacle("this kernel has no events to trace", "boot one with CONFIG_FTRACE=y")
    return None


def leftovers() -> list[Path]:
    """Return the instances of processes of ours that were killed before they could remove them."""
    tracefs = find_tracefs()
    found = tracefs.glob(f"instances/{_PREFIX}*-*-*") if tracefs else iter(())
    return sorted(each for each in found if not _owner_lives(each.name))


def remove_leftovers() -> list[str]:
    """Remove them; return their names."""
    removed = []
    for each in leftovers():
        with suppress(OSError):
            each.rmdir()
            removed.append(each.name)
    return removed


def _owner_lives(name: str) -> bool:
    """Return whether the process runs that made an instance; others' names count as alive."""
    parts = name.removeprefix(_PREFIX).split("-")
    if len(parts) != 3 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        return True
    return _started(int(parts[0])) == parts[1]


def _started(pid: int) -> str | None:
    """Return when a process started, in ticks since boot, None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()[19]


def ring_kib(rings: int, cpus: int = 0, largest_kib: int = _LARGEST_KIB) -> int:
    """Return how large each CPU's part of a ring may be: in all 1/16 of free memory.

    Args:
        rings: How many there are.
        cpus: How many CPUs have such a part; 0: all.
        largest_kib: It is never larger.
    """
    words = Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()
    share = int(words[0]) // 16 // rings // (cpus or os.cpu_count() or 1)
    return max(_SMALLEST_KIB, min(largest_kib, share))


class Ring:
    """An instance of the tracer, in which the events go on overwriting the oldest.

    Args:
        label: Tells the rings of one process apart; letters.
        kib: Size of each CPU's part.
        wanted: What is recorded, where the kernel has it.
        stacks: Whether to record where threads were that a real-time thread waited for.
        cpus: What happens elsewhere is not recorded; none: all CPUs.

    Raises:
        OSError: The kernel refuses.
    """

    def __init__(
        self,
        label: str,
        kib: int,
        wanted: Sequence[str] = EVENTS,
        *,
        stacks: bool = True,
        cpus: frozenset[int] = frozenset(),
    ) -> None:
        tracefs = find_tracefs()
        if tracefs is None:
            raise FileNotFoundError("tracefs")
        name = f"{_PREFIX}{os.getpid()}-{_started(os.getpid())}-{label}"
        self.path = tracefs / "instances" / name
        self.path.mkdir()
        try:
            self._write("tracing_on", "0")
            self._write("trace_clock", "mono")
            self._take_room(kib, cpus)
            self.events = [each for each in wanted if self._enabled(each)]
            self.has_stacks = stacks and self._stacks_enabled()
        except OSError:
            self.remove()
            raise

    def _take_room(self, kib: int, cpus: frozenset[int]) -> None:
        if not cpus:
            self._write("buffer_size_kb", str(kib))
            return
        words = [0] * (max(cpus) // 32 + 1)
        for cpu in cpus:
            words[cpu // 32] |= 1 << cpu % 32
        self._write("tracing_cpumask", ",".join(f"{word:x}" for word in reversed(words)))
        self._write("buffer_size_kb", str(_SMALLEST_KIB))
        for cpu in cpus:
            self._write(f"per_cpu/cpu{cpu}/buffer_size_kb", str(kib))

    def _write(self, file: str, text: str) -> None:
        (self.path / file).write_text(text)

    def _enabled(self, event: str) -> bool:
        """Record an event, if the kernel has it and lets it be recorded."""
        with suppress(OSError):
            if event in _FILTERS:
                self._write(f"events/{event}/filter", _FILTERS[event])
            self._write(f"events/{event}/enable", "1")
            return True
        return False

    def _stacks_enabled(self) -> bool:
        """Record where an ordinary thread was when a real-time one was woken, and when it gave way.

        The waker may run on another CPU; the second stack tells of the one that was waited for.
        Stacks cost time, so there is none where a CPU was idle.
        """
        with suppress(OSError):
            interrupts = "prio < 100 && common_pid != 0"
            self._write("events/sched/sched_waking/trigger", f"stacktrace if {interrupts}")
            gives_way = "next_prio < 100 && prev_prio > 99 && prev_pid > 0"
            self._write("events/sched/sched_switch/trigger", f"stacktrace if {gives_way}")
            return True
        return False

    def clear(self) -> None:
        """Forget what was recorded."""
        self._write("trace", "")

    def go_on(self) -> None:
        """Record from now on."""
        self._write("tracing_on", "1")

    def stop(self) -> None:
        """Record no more; what was recorded stays."""
        self._write("tracing_on", "0")

    def pages(self) -> "list[list[Page]]":
        """Take what was recorded out of the ring, by CPU, each page as the kernel has it."""
        return [list(self.pages_of(each)) for each in self.folders()]

    def folders(self) -> list[Path]:
        """Return what the tracer has of each CPU, in their order."""
        return sorted(self.path.glob("per_cpu/cpu*"), key=lambda each: int(each.name[3:]))

    def pages_of(self, folder: Path) -> "Iterator[Page]":
        """Take what was recorded on one CPU out of the ring."""
        return _read_pages(folder / "trace_pipe_raw", self._page_bytes())

    def _page_bytes(self) -> int:
        with suppress(OSError, ValueError):
            return int((self.path / "buffer_subbuf_size_kb").read_text()) << 10
        return os.sysconf("SC_PAGE_SIZE")

    def remove(self) -> None:
        """Remove the instance with all it recorded; a second time does nothing."""
        with suppress(FileNotFoundError):
            self.path.rmdir()


@dataclass(frozen=True)
class Page:
    """A page of a ring: when its first event was, and its bytes."""

    t_ns: int
    content: bytes

    def after_others(self) -> "Page":
        """Return it as a page before which others are missing, as the kernel would mark it."""
        (commit,) = struct.unpack_from("<I", self.content, _COMMIT)
        marked = bytearray(self.content)
        struct.pack_into("<I", marked, _COMMIT, commit | _MISSED)
        return Page(self.t_ns, bytes(marked))

    def first(self) -> "Page":
        """Return it without the mark that others are missing before it."""
        (commit,) = struct.unpack_from("<I", self.content, _COMMIT)
        marked = bytearray(self.content)
        struct.pack_into("<I", marked, _COMMIT, commit & ~(_MISSED | _COUNTED))
        return Page(self.t_ns, bytes(marked))


def _read_pages(path: Path, size: int) -> Iterator[Page]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while content := os.read(descriptor, size):
            (t_ns,) = struct.unpack_from("<Q", content)
            yield Page(t_ns, content.ljust(size, b"\0"))
    except BlockingIOError:
        pass  # the ring is empty
    finally:
        os.close(descriptor)


def around(pages: Sequence[Page], windows: Iterable[tuple[int, int]], margin_ns: int) -> list[Page]:
    """Return the pages that hold events of some windows, or near them.

    What follows a page that is left out is marked, so that no reader joins what is not together.
    """
    wanted = [(start - margin_ns, end + margin_ns) for start, end in windows]
    ends = [*(page.t_ns for page in pages[1:]), 2**63][: len(pages)]
    kept: list[Page] = []
    is_gap = False
    for page, end_ns in zip(pages, ends, strict=True):
        if any(page.t_ns <= last and end_ns >= first for first, last in wanted):
            kept.append(page.after_others() if is_gap and kept else page)
            is_gap = False
        else:
            is_gap = True
    return kept


def write_trace(ring: Ring, pages: Sequence[Sequence[Page]], path: Path) -> None:
    """Write pages as a trace.dat of version 6, which trace-cmd and KernelShark read, too.

    Format: trace-cmd.dat.v6(5). Of the kernel's symbols only those that occur in the pages are
    written.

    Args:
        ring: Where the pages come from.
        pages: By CPU.
        path: The file to write.
    """
    from latenz.files import replacing

    page_bytes = ring._page_bytes()
    head = _head(ring, _symbols(pages), len(pages))
    offset = _data_offset(head, len(pages), page_bytes)
    table = []
    for of_cpu in pages:
        table.append(struct.pack("<QQ", offset, len(of_cpu) * page_bytes))
        offset += len(of_cpu) * page_bytes
    with replacing(path, renewable=False) as partial, partial.open("wb") as file:
        file.write(head + b"".join(table))
        file.write(b"\0" * (-file.tell() % page_bytes))
        for of_cpu in pages:
            file.writelines(page.content for page in of_cpu)


def write_whole(ring: Ring, path: Path) -> list[tuple[int, int]]:
    """Write all that a ring holds as a trace.dat, page by page, with all of the kernel's functions.

    What was overwritten lies before each CPU's first page, so that nothing is missing between its
    events; where the ring lost events otherwise, its first page is marked.

    Returns:
        For each CPU how many pages there are, and the time of the first; 0 if there is none.
    """
    from latenz.files import replacing

    page_bytes = ring._page_bytes()
    folders = ring.folders()
    head = _head(ring, "".join(f"{line}\n" for line in _functions()).encode(), len(folders))
    offset = _data_offset(head, len(folders), page_bytes)
    told: list[tuple[int, int]] = []
    table: list[bytes] = []
    with replacing(path, renewable=False) as partial, partial.open("wb") as file:
        file.seek(offset)
        for folder in folders:
            count, first_ns = 0, 0
            for page in ring.pages_of(folder):
                whole = page
                if count == 0:
                    first_ns = page.t_ns
                    whole = page.after_others() if lost_in(folder) else page.first()
                file.write(whole.content)
                count += 1
            told.append((count, first_ns))
            table.append(struct.pack("<QQ", offset, count * page_bytes))
            offset += count * page_bytes
        file.truncate(offset)
        file.seek(0)
        file.write(head + b"".join(table))
    return told


def _data_offset(head: bytes, cpus: int, page_bytes: int) -> int:
    return -(-(len(head) + 16 * cpus) // page_bytes) * page_bytes


def _head(ring: Ring, symbols: bytes, cpus: int) -> bytes:
    """Return what comes before the table of each CPU's place."""
    events = ring.path / "events"
    tracefs = ring.path.parent.parent
    parts = [
        _MAGIC,
        struct.pack("<BBI", 0, 8, ring._page_bytes()),
        *(_block(name, tracefs / "events" / name) for name in ("header_page", "header_event")),
        _formats(sorted((tracefs / "events/ftrace").glob("*/format"))),
        _systems(events, ring.events),
        _sized("<I", symbols),
        _sized("<I", b""),
        _sized("<Q", (tracefs / "saved_cmdlines").read_bytes()),
        struct.pack("<I", cpus),
        b"options  \0",
        struct.pack("<H", _TRACE_CLOCK),
        _sized("<I", (ring.path / "trace_clock").read_bytes().strip() + b"\0"),
        struct.pack("<H", _END_OF_OPTIONS),
        b"flyrecord\0",
    ]
    return b"".join(parts)


def lost_in(folder: Path) -> int:
    """Return how many events a CPU's part of a ring could not take."""
    return sum(counted(folder, name) for name in ("commit overrun", "dropped events"))


def counted(folder: Path, name: str) -> int:
    """Return a count that the tracer keeps of a CPU's part; 0 if this kernel has none."""
    for line in (folder / "stats").read_text().splitlines():
        told, _, value = line.partition(":")
        if told == name and value.strip().isdecimal():
            return int(value)
    return 0


def _block(name: str, path: Path) -> bytes:
    return name.encode() + b"\0" + _sized("<Q", path.read_bytes())


def _sized(form: str, content: bytes) -> bytes:
    return struct.pack(form, len(content)) + content


def _formats(paths: Sequence[Path]) -> bytes:
    return struct.pack("<I", len(paths)) + b"".join(
        _sized("<Q", each.read_bytes()) for each in paths
    )


def _systems(events: Path, recorded: Sequence[str]) -> bytes:
    systems = sorted({each.partition("/")[0] for each in recorded})
    parts = [struct.pack("<I", len(systems))]
    for system in systems:
        paths = [events / each / "format" for each in recorded if each.startswith(f"{system}/")]
        parts += [system.encode() + b"\0", _formats(paths)]
    return b"".join(parts)


def _symbols(pages: Sequence[Sequence[Page]]) -> bytes:
    """Return the lines of /proc/kallsyms of functions that addresses in the pages lie in.

    The line after each of them is there, too, so that a reader knows where the function ends.
    """
    import numpy as np

    lines = _functions()
    starts = np.array([int(line[:16], 16) for line in lines], dtype=np.uint64)
    wanted: set[int] = set()
    for of_cpu in pages:
        content = b"".join(page.content for page in of_cpu)
        for shift in (0, 4):  # events are aligned to 4 bytes
            words = np.frombuffer(content[shift : len(content) - shift], dtype=np.uint64)
            found = np.unique(words[words >= _LOWEST_SYMBOL])
            places = np.searchsorted(starts, found, side="right").astype(np.int64) - 1
            places = places[(places >= 0) & (found - starts[places] < _LARGEST_FUNCTION)]
            wanted.update(places.tolist())
    kept = sorted({each for place in wanted for each in (place, place + 1)} & {*range(len(lines))})
    return "".join(f"{lines[place]}\n" for place in kept).encode()


def _functions() -> list[str]:
    """Return the lines of /proc/kallsyms of functions, by address; none where it hides them."""
    return sorted(
        line
        for line in Path("/proc/kallsyms").read_text().splitlines()
        if line[17:18] in "tTwW" and not line.startswith("0000000000000000")
    )
