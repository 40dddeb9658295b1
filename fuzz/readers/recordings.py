"""Tables and traces of perf, of the path recorder and of our hypervisor."""

from pathlib import Path

from latenz.hypervisor.results import measured
from latenz.hypervisor.trace import RECORD, read_records, read_statistics
from latenz.path.recording import read_recording
from latenz.system import Monitor, Periodic, Platform, Slot, Source, System
from latenz.traces.ctf import EventWords
from latenz.traces.perf_kvm import Report
from outcomes import require

_SYSTEM = System(
    Platform(),
    (Slot("A", 1_000_000), Slot("B", 1_000_000)),
    (Source("one", "A", 0, 1000, Periodic(500_000), Monitor((500_000,))),),
)


def exit_table(path: Path) -> None:
    """Read a table of perf kvm."""
    summary = Report(path).summary()
    require(all(each.count >= 0 for each in summary.exits), "exits are counted")


def ctf_text(path: Path) -> None:
    """Read what babeltrace2 would have printed."""
    words = EventWords()
    for line in words.lines(path.read_text(errors="replace").splitlines(keepends=True)):
        require(line.endswith("\n") and len(line.splitlines()) == 1, "an event is a line")
    require(all("\n" not in note for note in words.notes()), "a note is a sentence")


def path_recording(path: Path) -> None:
    """Read what the path recorder wrote."""
    for capture in read_recording(path).captures:
        for event in capture:
            require(event.vcpu >= 0 or event.vcpu < 0, "a CPU has a number")


def hypervisor_trace(path: Path) -> None:
    """Read statistics, a zero, and the trace that belongs to them."""
    told, _, trace = path.read_bytes().partition(b"\0")
    statistics = read_statistics(told)
    whole = trace[: len(trace) // RECORD.itemsize * RECORD.itemsize]
    records = read_records(whole)
    for complete in (True, False):
        measured(_SYSTEM, "carry", records, statistics, complete=complete)


def hypervisor_statistics(path: Path) -> None:
    """Read statistics alone."""
    read_statistics(path.read_bytes())


def hypervisor_records(path: Path) -> None:
    """Read a trace alone."""
    read_records(path.read_bytes())
