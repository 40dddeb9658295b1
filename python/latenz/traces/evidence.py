"""What is found of each cause while a wait is gone through, and the sentence that tells it."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from latenz.durations import format_duration
from latenz.traces.occupancy import Stretch

Confidence = Literal["certain", "likely", "perhaps"]

_MOST_NAMES = 4
_DOUBT: dict[Confidence, int] = {"certain": 0, "likely": 1, "perhaps": 2}


@dataclass(frozen=True)
class Part:
    """What one thing contributed to a cause.

    Attributes:
        name: Which interrupt, thread or the like.
        share_ns: Its net time in the wait.
        count: How often it came.
    """

    name: str
    share_ns: int
    count: int


@dataclass
class Tally:
    """What is found of one cause while a wait is gone through.

    Attributes:
        confidence: The least of all its parts.
        notes: What else is known of it.
        alternatives: What else it could be.
        record: Events that would decide.
        share_ns: The net time of each part.
        seen: When each part came: they are counted.
        total_ns: The net time of all parts.
    """

    confidence: Confidence = "certain"
    notes: set[str] = field(default_factory=set)
    alternatives: set[str] = field(default_factory=set)
    record: set[str] = field(default_factory=set)
    share_ns: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    seen: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    total_ns: int = 0

    def add(self, name: str, stretch: Stretch) -> None:
        """Add a stretch of a CPU's time."""
        self.add_time(name, stretch.length_ns, stretch.entered_ns)

    def add_time(self, name: str, length_ns: int, entered_ns: int) -> None:
        """Add a time; parts of one thing have the same `entered_ns`."""
        self.share_ns[name] += length_ns
        self.total_ns += length_ns
        self.seen[name].add(entered_ns)

    def doubt(self, confidence: Confidence, alternative: str = "", *record: str) -> None:
        """Take confidence away, with what else it could be and the events that would decide."""
        if _DOUBT[confidence] > _DOUBT[self.confidence]:
            self.confidence = confidence
        self.alternatives.update([alternative] if alternative else [])
        self.record.update(record)

    def merge(self, other: "Tally") -> None:
        """Take all of another one in."""
        for name, ns in other.share_ns.items():
            self.share_ns[name] += ns
            self.seen[name] |= other.seen[name]
        self.total_ns += other.total_ns
        self.notes |= other.notes
        self.doubt(other.confidence, "", *other.record)
        self.alternatives |= other.alternatives

    @property
    def count(self) -> int:
        """How often any part came."""
        return sum(len(each) for each in self.seen.values())

    def parts(self) -> tuple[Part, ...]:
        """Return what it consists of, the largest first."""
        found = [Part(name, ns, len(self.seen[name])) for name, ns in self.share_ns.items()]
        return tuple(sorted(found, key=lambda part: (-part.share_ns, part.name)))


def _named(tally: Tally, counted: bool = False) -> str:
    parts = [part for part in tally.parts() if part.share_ns]
    told = [
        f"{part.name} {format_duration(part.share_ns)}"
        + (f" ({part.count} times)" if counted and part.count > 1 else "")
        for part in parts[:_MOST_NAMES]
    ]
    more = len(parts) - _MOST_NAMES
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


_SENTENCES = {
    "interrupt-storm": "{count} interrupts, softirqs and timers took {share}, net: {counted}",
    "interrupt": "interrupts took {share}, net: {counted}",
    "softirq": "softirqs took {share}, net: {counted}",
    "inter-processor-interrupt": "interrupts from other CPUs took {share}, net: {counted}",
    "tlb-shootdown": "other CPUs had translations of addresses forgotten, which took {share}, net: "
    "{counted}",
    "nmi": "non-maskable interrupts took {share}",
    "throttled": "the thread was ready for {share} while the scheduler let lower priorities have "
    "its CPU: {named}",
    "fair-server": "the thread was ready for {share} while the fair server let ordinary threads "
    "have its CPU: {named}",
    "deadline-budget": "the deadline thread was ready for {share} but had used up its run time: "
    "{named}",
    "cgroup-quota": "the thread was ready for {share}, but its control group had used up its quota "
    "of the period: {named}",
    "preempted": "threads of the same or a higher priority ran for {share}: {named}",
    "threaded-interrupt": "threads that handle interrupts ran for {share}: {named}",
    "stopper": "the kernel stopped the CPU for {share}: {named}",
    "vcpu-preempted": "the virtual CPU's thread was off its CPU for {share}: {named}",
    "preemption-off": "a thread of lower priority could not be preempted for {share}: {named}",
    "console-output": "text was written to a console for {share}: {named}",
    "irqs-off": "interrupts were not taken for {share} while the CPU ran {named}",
    "smi-like-gap": "nothing at all was traced on the CPU for {share}, {named}",
    "host-idle": "leaving an idle state took {share}: {named}",
    "timer-late": "interrupts were taken, but the timer's came {share} late",
    "page-fault": "the thread took {share} with page faults",
    "reclaim": "the thread had to free memory for {share} before it got some",
    "blocked": "the thread slept for {share}, {named}",
    "mmap-lock": "the thread waited for its address space's lock for {share}: {named}",
    "priority-inversion": "less urgent threads ran for {share} in place of the one that was waited "
    "for: {named}",
    "low-frequency": "the thread itself ran for {share} on a slow CPU: {named}",
    "own-execution": "the thread itself ran for {share}",
    "scheduling": "entering the interrupt and switching threads took {share}",
    "halt-wakeup": "the virtual CPU slept, as its guest had halted, and waking it took {share}: "
    "{named}",
    "qemu-lock": "the virtual CPU's thread slept in QEMU for {share}, {named}",
    "nested-exit": "exits of the guest's own guest took {share}: {named}",
    "unknown": "the trace does not tell about {share}",
    "exit": "handling the exit {reason} took {share}: {named}",
}


def sentence(cause: str, tally: Tally, latency_ns: int) -> str:
    """Return the evidence for one cause: a sentence with figures."""
    kind, _, reason = cause.partition(":")
    told = _SENTENCES[kind].format(
        share=f"{format_duration(tally.total_ns)} of {format_duration(latency_ns)}",
        count=tally.count,
        named=_named(tally),
        counted=_named(tally, counted=True),
        reason=reason,
    )
    return told + "".join(f"; {note}" for note in sorted(tally.notes))
