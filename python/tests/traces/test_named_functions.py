"""Functions that kept a processor to themselves: as traces tell, and as the emulator executed them.

A machine is emulated, its kernel traced, and a plugin of QEMU writes down every block that the
processor executed before a switch. A function that `explain` names must have been on the stack,
by that record, for most of the time that it is blamed for.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from latenz.boards import images
from latenz.path import symbols
from latenz.path.symbols import SymbolTable
from latenz.traces.causes import Cause
from latenz.traces.explaining import explain
from latenz.traces.opening import open_trace

# about two minutes of CPU time
pytestmark = [pytest.mark.boots, pytest.mark.timeout(1500)]

HERE = Path(__file__).parent
PLUGIN = Path(__file__).parents[3] / "probes/src"
HELD = ("preemption-off", "irqs-off", "console-output")
LOAD = "stress-ng --urandom 1 --fork 1 --vm 1 --vm-bytes 24M --timeout 0"
LEAST_NS = 20_000
APART_NS = 500_000
ENOUGH_PARTS = 100
MOST_BOOTS = 4
TRACING_NS = range(5_000, 13_000)  # tracing the switch, with its stack, and what lies around both

WRAPPER = f"""#!{sys.executable}
import os, re, sys
words = sys.argv[1:]
if "-append" in words:
    place = words.index("-append") + 1
    words[place] += ' latenz.load="{LOAD}"' + " " + os.environ["LATENZ_TEST_WORDS"]
    words += ["-plugin", os.environ["LATENZ_TEST_PLUGIN"]]
os.execv({shutil.which("qemu-system-x86_64")!r}, ["qemu-system-x86_64", *words])
"""


class _X86(symbols._Embedded):
    """The table of names of a 64-bit x86 kernel: addresses by a base, but for per-CPU ones."""

    BASE = 0xFFFF_FFFF_8100_0000

    def _addresses(self, names_at: int, count: int) -> Iterator[np.ndarray]:
        end = self._image.rindex(self.BASE.to_bytes(8, "little"), 0, names_at)
        for at in range(end - 4 * count, end - 4 * count - 256, -4):
            offsets = np.frombuffer(self._image, "<i4", count, at).astype(np.int64)
            addresses = np.where(offsets < 0, self.BASE - 1 - offsets.astype(object), offsets)
            if offsets[0] == 0 and np.all(addresses[1:] >= addresses[:-1]):
                yield addresses.astype(np.uint64)


def kernel_symbols(kernel: Path) -> SymbolTable:
    image = kernel.read_bytes()
    tables = (_X86(image, index).table() for index in symbols._token_indexes(image))
    return next(table for table in tables if table is not None)


@dataclass(frozen=True)
class Window:
    """What the plugin wrote: blocks from before an interrupt up to a switch."""

    entered: int
    switched: int
    addresses: np.ndarray
    began: np.ndarray

    @property
    def length(self) -> int:
        return self.switched - self.entered

    def on_stack(self, start: int, end: int) -> float:
        """Return for how much of it a function was on the stack, as far as its blocks prove it.

        A block that is not its first is executed only by a function that was called. If that is the
        first of its blocks after the interrupt, it had been called before.
        """
        inside = (self.began >= self.entered) & (self.addresses >= start) & (self.addresses < end)
        at = self.began[inside]
        if not len(at):
            return 0.0
        was_called = int(self.addresses[inside][0]) == start
        since = int(at[0]) if was_called else self.entered
        return (int(at[-1]) - since) / self.length


def windows(path: Path) -> list[Window]:
    """Read what the plugin wrote; a window at the end may be cut."""
    words = np.fromfile(path, "<u8")
    found, at = [], 0
    while at + 3 <= len(words):
        count, entered, switched = (int(word) for word in words[at : at + 3])
        blocks = words[at + 3 : at + 3 + 2 * count].reshape(-1, 2)
        found.append(Window(entered, switched, blocks[:, 0], blocks[:, 1]))
        at += 3 + 2 * count
    return found


@dataclass
class Recorded:
    """A run of the emulated machine."""

    trace: Path
    windows: list[Window]
    symbols: SymbolTable
    causes: list[Cause]


def _built(folder: Path) -> Path:
    plugin = folder / "work_recorder.so"
    sources = [HERE / "work_recorder.cpp", PLUGIN / "qemu_plugin.cpp"]
    options = ["-std=c++20", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{PLUGIN}"]
    subprocess.run(["c++", *options, *sources, "-o", plugin], check=True)
    return plugin


def record(
    folder: Path,
    words: str = "",
    duration: str = "500ms",
    start: str = "trace_event_buffer_reserve",
) -> Recorded:
    """Boot the machine under load with the plugin, trace it, and explain its worst moments."""
    table = kernel_symbols(images.linux("stock", "amd64").path)
    ends = {
        "start": start,
        "interrupt": "asm_sysvec_apic_timer_interrupt",
        "switch": "__switch_to_asm",
    }
    places = {key: table.find(name) for key, name in ends.items()}
    recording = folder / "windows"
    options = [f"{key}={place.address:#x}" for key, place in places.items() if place]
    options += [f"least={LEAST_NS}", "windows=3000", f"output={recording}"]
    wrapper = folder / "bin/qemu-system-x86_64"
    wrapper.parent.mkdir()
    wrapper.write_text(WRAPPER)
    wrapper.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{wrapper.parent}:{os.environ['PATH']}",
        "LATENZ_TEST_PLUGIN": ",".join([f"file={_built(folder)}", *options]),
        "LATENZ_TEST_WORDS": words,
    }
    command = [sys.executable, "-m", "latenz", "vm", "run", "--accelerator", "tcg", "--default"]
    command += ["--trace", "--duration", duration, "--memory", "256", "-o", str(folder / "run")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    [trace] = (folder / "run").glob("*/received/trace.txt")
    causes = list(explain(open_trace(trace), worst=2000).causes)
    return Recorded(trace, windows(recording), table, causes)


@dataclass(frozen=True)
class Named:
    """A part of a wait that somebody else's kernel code is blamed for.

    Attributes:
        entered_ns: When the last timer interrupt before the switch was traced.
        switched_ns: When the switch was traced.
        share_ns: How much of the wait it took.
        function: What the evidence names; empty: none.
    """

    entered_ns: int
    switched_ns: int
    share_ns: int
    function: str


def named(run: Recorded) -> list[Named]:
    """Return the parts of all waits that end with a switch, by their functions."""
    trace = open_trace(run.trace)
    summary = trace.summary(1)
    events = list(trace.events([(summary.start_ns, summary.end_ns)], 1_000_000))
    entries = [each.t_ns for each in events if each.name == "local_timer_entry"]
    switches = [each for each in events if each.name == "sched_switch"]
    found = []
    for cause in run.causes:
        end_ns = cause.t_ns + cause.latency_ns
        before = [t_ns for t_ns in entries if t_ns < end_ns]
        if not before or not any(each.t_ns == end_ns for each in switches):
            continue
        for share in cause.shares:
            for part in share.by if share.cause in HELD else ():
                function = part.name.rpartition(" in ")[2] if " in " in part.name else ""
                found.append(Named(before[-1], end_ns, part.share_ns, function.split(" (")[0]))
    return found


def matched(parts: list[Named], windows: list[Window]) -> list[tuple[Named, Window]]:
    """Match by how far time and executed instructions are apart: the same for nearly all.

    The processor takes a nanosecond for each instruction, and time passes without any only while
    it is idle, which the load does not let it be.
    """
    fits = [
        (part, window, part.switched_ns - window.switched)
        for part in parts
        for window in windows
        if window.length - (part.switched_ns - part.entered_ns) in TRACING_NS
    ]
    apart = [shift for *_, shift in fits]
    usual = max(apart, key=lambda each: sum(abs(each - other) < APART_NS for other in apart))
    return [(part, window) for part, window, shift in fits if abs(shift - usual) < APART_NS]


def parts_of(run: Recorded) -> list[Named]:
    return [each for each in named(run) if each.share_ns >= LEAST_NS]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Recorded]:
    """Record until there are a hundred parts: how many a boot gives is up to its load's timing."""
    found: list[Recorded] = []
    while sum(len(parts_of(each)) for each in found) < ENOUGH_PARTS and len(found) < MOST_BOOTS:
        found.append(record(tmp_path_factory.mktemp("named")))
    return found


def test_a_function_is_named_for_nearly_all_of_the_time(recordings: list[Recorded]) -> None:
    held = [
        part
        for recorded in recordings
        for cause in recorded.causes
        for share in cause.shares
        if share.cause in HELD
        for part in share.by
    ]
    total_ns = sum(part.share_ns for part in held)
    named_ns = sum(part.share_ns for part in held if " in " in part.name)
    assert len(held) > 100
    assert named_ns > 0.95 * total_ns


def test_what_is_named_is_what_the_emulator_executed(recordings: list[Recorded]) -> None:
    parts = [part for each in recordings for part in parts_of(each)]
    pairs = [
        (part, window, recorded.symbols)
        for recorded in recordings
        for part, window in matched(parts_of(recorded), recorded.windows)
    ]
    assert len(parts) >= ENOUGH_PARTS
    assert len(pairs) >= 0.95 * len(parts)
    right_ns = 0
    for part, window, symbols_of in pairs:
        found = symbols_of.find(part.function)
        if found is not None and window.on_stack(found.address, found.end) >= 0.5:
            right_ns += part.share_ns
    assert right_ns > 0.95 * sum(part.share_ns for part, *_ in pairs)
    assert len({part.function for part, *_ in pairs}) > 3
