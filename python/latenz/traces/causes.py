"""Why somebody had to wait: each nanosecond of a late moment is given to what had the CPU.

The shares of a wait are net: what interrupts something else takes its time from it, so that they
sum to the wait. What the trace does not tell is the share `unknown`, never somebody else's.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from heapq import nlargest
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from latenz.durations import format_duration
from latenz.traces.advice import remedy
from latenz.traces.occupancy import Occupancy, Stretch, number
from latenz.traces.wakeups import Wakings, Window, could_run

if TYPE_CHECKING:
    from latenz.traces.model import Event, Loss

Confidence = Literal["certain", "likely", "perhaps"]
State = Literal["due", "ready", "running", "blocked"]

_STORM_COUNT = 10
_STORM_EVERY_NS = 250_000
_ENTRY_NS = 10_000  # entering an interrupt and switching threads take this long without any cause
_DEEPEST_IDLE_NS = 1_500_000  # no idle state of x86 or Arm takes longer to leave
_SHALLOW_IDLE_NS = 60_000  # leaving the shallowest one, also in a virtual machine
_FEW_EVENTS = 5
_MOST_NAMES = 4
_FIRST_STATES: dict[str, State] = {"wakeup": "ready", "ready": "ready", "exit": "running"}


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


@dataclass(frozen=True)
class Share:
    """What one cause contributed to a wait.

    Attributes:
        cause: Stable name, such as `throttled` or `exit:HLT`.
        share_ns: Its net time.
        count: How often it came.
        by: What it consists of, the largest first.
        confidence: How sure it is that this is the cause.
        evidence: One sentence with figures.
        tunings: Ids of the tuning catalogue that remove or shorten it.
        advice: What helps besides.
    """

    cause: str
    share_ns: int
    count: int
    by: tuple[Part, ...]
    confidence: Confidence
    evidence: str
    tunings: tuple[str, ...]
    advice: str


@dataclass(frozen=True)
class Cause:
    """Why one wait was so long.

    Attributes:
        rank: 1 is the longest wait.
        t_ns: When it began, in the trace's clock.
        latency_ns: How long it was; the shares sum to it.
        what: Who waited for what.
        cpu: Where.
        window: What was explained.
        shares: All causes, the largest first.
    """

    rank: int
    t_ns: int
    latency_ns: int
    what: str
    cpu: int
    window: Window
    shares: tuple[Share, ...]

    @property
    def first(self) -> Share:
        """The cause that took most of the time."""
        return self.shares[0]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        first = self.first
        return {
            "rank": self.rank,
            "t_ns": self.t_ns,
            "latency_ns": self.latency_ns,
            "what": self.what,
            "cpu": self.cpu,
            "cause": first.cause,
            "share_ns": first.share_ns,
            "evidence": first.evidence,
            "confidence": first.confidence,
            "tunings": list(first.tunings),
            "advice": first.advice,
            "shares": [asdict(share) for share in self.shares],
        }


@dataclass(frozen=True)
class _Phase:
    """What the waiting thread did for a while, and on which CPU's time it depended."""

    start_ns: int
    end_ns: int
    state: State
    cpu: int


@dataclass
class _Tally:
    """What is found of one cause while a wait is gone through."""

    confidence: Confidence = "certain"
    notes: set[str] = field(default_factory=set)
    share_ns: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    seen: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(self, name: str, stretch: Stretch) -> None:
        self.share_ns[name] += stretch.length_ns
        self.seen[name].add(stretch.entered_ns)

    @property
    def total_ns(self) -> int:
        return sum(self.share_ns.values())

    @property
    def count(self) -> int:
        return sum(len(each) for each in self.seen.values())

    def parts(self) -> tuple[Part, ...]:
        found = [Part(name, ns, len(self.seen[name])) for name, ns in self.share_ns.items()]
        return tuple(sorted(found, key=lambda part: (-part.share_ns, part.name)))


@dataclass(frozen=True)
class _Others:
    """What the CPUs but one did.

    Attributes:
        times: Of their events, in order.
        longest: Their two longest silences, each with the place of the event before it.
    """

    times: list[int]
    longest: list[tuple[int, int]]

    @staticmethod
    def than(cpu: int, times_of: dict[int, list[int]]) -> "_Others":
        times = sorted(t_ns for number, own in times_of.items() if number != cpu for t_ns in own)
        silences = (
            (after - before, place) for place, (before, after) in enumerate(pairwise(times))
        )
        return _Others(times, nlargest(2, silences))


class Scene:
    """A stretch of a trace in which waits can be explained.

    Args:
        events: All of that stretch, of all CPUs, in the order of their times.
        start_ns: When it begins, a while before the waits.
        losses: Where events are missing in the trace.
        end_ns: When it ends if the trace goes on; None: with the events.
    """

    def __init__(
        self,
        events: "Sequence[Event]",
        start_ns: int,
        losses: "Sequence[Loss]" = (),
        end_ns: int | None = None,
    ) -> None:
        self.occupancy = Occupancy(events, start_ns, losses, end_ns)
        self._losses = losses
        self.wakings = Wakings(events)
        self._times: dict[int, list[int]] = defaultdict(list)
        self._of_pid: dict[int, list[Event]] = defaultdict(list)
        self._faults: dict[int, list[int]] = defaultdict(list)
        self._hardware: list[Event] = []
        self._others: dict[int, _Others] = {}
        for each in events:
            self._times[each.cpu].append(each.t_ns)
            if each.name in ("hwlat", "sample_threshold", "nmi_noise"):
                self._hardware.append(each)
            elif each.name in ("page_fault_user", "page_fault_kernel"):
                self._faults[each.pid].append(each.t_ns)
            elif each.name == "sched_switch":
                for side in ("prev_pid", "next_pid"):
                    self._of_pid[number(each, side, 0)].append(each)
            elif each.name in ("sched_waking", "sched_wakeup", "sched_migrate_task"):
                self._of_pid[number(each, "pid", 0)].append(each)

    def explain(self, window: Window, rank: int, looked_ns: int | None = None) -> Cause:
        """Tell why a wait was so long.

        Args:
            window: The wait.
            rank: 1 is the longest one.
            looked_ns: How much of it is in the scene, from its start; None: all.
        """
        if looked_ns is None or looked_ns >= window.latency_ns:
            return _Explanation(self, self.wakings.refined(window)).cause(rank)
        end_ns = window.start_ns + looked_ns
        known = _Explanation(self, self.wakings.refined(replace(window, end_ns=end_ns)))
        return _with_rest(known.cause(rank), window)

    def of_thread(self, pid: int, start_ns: int, end_ns: int) -> "list[Event]":
        """Return what the scheduler did with a thread in a window, in order."""
        return [each for each in self._of_pid.get(pid, ()) if start_ns <= each.t_ns <= end_ns]

    def faults(self, pid: int, start_ns: int, end_ns: int) -> int:
        """Return how many page faults a thread had in a window."""
        times = self._faults.get(pid, [])
        return bisect_right(times, end_ns) - bisect_left(times, start_ns)

    def hardware_says(self, start_ns: int, end_ns: int) -> bool:
        """Return whether a tracer saw the hardware take the CPU away in a window."""
        return any(start_ns <= each.t_ns <= end_ns + 1_000_000 for each in self._hardware)

    def others_silent(self, cpu: int, start_ns: int, end_ns: int) -> bool | None:
        """Return whether all other CPUs were silent, too, though they are not usually.

        None: they are silent so often, or there are none, or their events were lost, that it
        tells nothing.
        """
        if any(
            each.cpu != cpu and each.start_ns < end_ns and start_ns < each.end_ns
            for each in self._losses
        ):
            return None
        if cpu not in self._others:
            self._others[cpu] = _Others.than(cpu, self._times)
        others = self._others[cpu]
        times = others.times
        first, last = bisect_right(times, start_ns), bisect_left(times, end_ns)
        if last > first:
            return False
        length_ns = end_ns - start_ns
        outside_ns = (times[-1] - times[0]) - length_ns if times else 0
        if outside_ns <= 0 or not 0 < first < len(times):
            return None
        expected = len(times) * length_ns / outside_ns
        longest_ns = max(
            (silence_ns for silence_ns, place in others.longest if place != first - 1), default=0
        )
        return True if expected >= _FEW_EVENTS and length_ns > 2 * longest_ns else None


class _Explanation:
    """Goes through one wait."""

    def __init__(self, scene: Scene, window: Window) -> None:
        self.scene = scene
        self.window = window
        self.tallies: dict[str, _Tally] = defaultdict(_Tally)
        self._chosen_ns: dict[int, int | None] = {}
        self._interrupted_ns: dict[_Phase, int] = {}
        self._work: dict[_Phase, dict[tuple[str, int], tuple[int, int]]] = {}
        self._waker = ""

    def cause(self, rank: int) -> Cause:
        for phase in self._phases():
            if phase.state == "blocked":
                self._blocked(phase)
                continue
            for stretch in self.scene.occupancy.of(phase.cpu, phase.start_ns, phase.end_ns):
                self._give(phase, stretch)
        window = self.window
        known_ns = sum(tally.total_ns for tally in self.tallies.values())
        if known_ns < window.latency_ns:
            tally = self.tallies["unknown"]
            tally.share_ns["not traced"] += window.latency_ns - known_ns
            tally.seen["not traced"].add(0)
        shares = [self._share(name, tally) for name, tally in self.tallies.items()]
        shares.sort(key=lambda share: (share.cause == "unknown", -share.share_ns, share.cause))
        if shares and shares[0].share_ns == 0:
            shares = shares[:1]
        return Cause(
            rank,
            window.start_ns,
            window.latency_ns,
            window.what(),
            window.cpu,
            window,
            tuple(_unknown_first(shares)),
        )

    def _phases(self) -> list[_Phase]:
        """Follow the waiting thread through the window."""
        window = self.window
        state = _FIRST_STATES.get(window.kind) or self._state_before()
        cpu, since_ns = window.cpu, window.start_ns
        phases: list[_Phase] = []
        events = (
            self.scene.of_thread(window.pid, window.start_ns, window.end_ns)
            if window.pid is not None
            else []
        )
        cpu = _began_on(events, state, cpu)
        for event in events:
            after, where = self._followed(event, state, cpu)
            if (after, where) != (state, cpu):
                if event.t_ns > since_ns:
                    phases.append(_Phase(since_ns, event.t_ns, state, cpu))
                state, cpu, since_ns = after, where, event.t_ns
        return [*phases, _Phase(since_ns, window.end_ns, state, cpu)]

    def _state_before(self) -> State:
        """Return what the thread did when its timer was due; it may not have been asleep yet."""
        window = self.window
        if window.pid is None:
            return "due"
        for event in reversed(self.scene.of_thread(window.pid, 0, window.start_ns - 1)):
            if event.name == "sched_switch":
                if number(event, "next_pid", -1) == window.pid:
                    return "running"
                return "ready" if could_run(event.fields.get("prev_state")) else "due"
        return "due"

    def _followed(self, event: "Event", state: State, cpu: int) -> tuple[State, int]:
        if event.name == "sched_migrate_task":
            return state, number(event, "dest_cpu", cpu)
        if event.name != "sched_switch":
            self._waker = self._waker or f"{event.comm}-{event.pid}"
            target = number(event, "target_cpu", cpu)
            return ("ready" if state != "running" else state), target
        if number(event, "next_pid", -1) == self.window.pid:
            return "running", event.cpu
        return ("ready" if could_run(event.fields.get("prev_state")) else "blocked"), event.cpu

    def _blocked(self, phase: _Phase) -> None:
        tally = self.tallies["blocked"]
        name = f"until woken by {self._waker}" if self._waker else "asleep"
        tally.share_ns[name] += phase.end_ns - phase.start_ns
        tally.seen[name].add(phase.start_ns)

    def _give(self, phase: _Phase, stretch: Stretch) -> None:
        """Give a stretch of the CPU's time to a cause."""
        if stretch.kind == "nmi":
            self.tallies["nmi"].add(stretch.name, stretch)
        elif stretch.kind in ("interrupt", "softirq"):
            self.tallies["interrupt"].add(stretch.name, stretch)
        elif stretch.kind == "irqs-off":
            self.tallies["irqs-off"].add(f"{stretch.name}-{stretch.pid}", stretch)
        elif phase.state == "running":
            self._own(stretch)
        elif phase.state == "ready":
            self._waiting(phase, stretch)
        else:
            self._untaken(phase, stretch)

    def _own(self, stretch: Stretch) -> None:
        if stretch.pid != self.window.pid:
            return  # it went elsewhere unseen: not known
        reason = stretch.reason or (self.window.of if self.window.kind == "exit" else None)
        if reason is not None:
            where = "in user space" if stretch.kind == "user" else "in the kernel"
            self.tallies[f"exit:{reason}"].add(where, stretch)
        elif self.scene.faults(stretch.pid, stretch.start_ns, stretch.end_ns - 1):
            self.tallies["page-fault"].add("after a page fault", stretch)
        else:
            self.tallies["own-execution"].add(stretch.name, stretch)

    def _waiting(self, phase: _Phase, stretch: Stretch) -> None:
        """The thread could have run, but something else had its CPU."""
        name = "idle" if stretch.kind == "idle" else f"{stretch.name}-{stretch.pid}"
        priority = self.window.priority
        chosen_ns = self._lower_chosen(phase)
        lower = stretch.kind == "idle" or stretch.priority > priority
        if lower and chosen_ns is not None and stretch.start_ns >= chosen_ns:
            kind = "deadline-budget" if priority < 0 else "throttled"
            self.tallies[kind].add(name, stretch)
        elif stretch.kind == "idle":
            self._idle(stretch, phase)
        elif not lower or priority >= 100:
            kind = "vcpu-preempted" if self.window.vcpu is not None else "preempted"
            self.tallies[kind].add(name, stretch)
        elif stretch.length_ns > _ENTRY_NS and self._surely_gone(stretch, phase.cpu):
            self._gone(stretch)
        elif phase.end_ns - phase.start_ns <= _ENTRY_NS:
            self.tallies["scheduling"].add(name, stretch)
        else:
            self.tallies["preemption-off"].add(name, stretch)

    def _lower_chosen(self, phase: _Phase) -> int | None:
        """Return when the scheduler first chose something less urgent though the thread was ready.

        No scheduler does that to a real-time thread but by throttling it.
        """
        if phase.start_ns not in self._chosen_ns:
            self._chosen_ns[phase.start_ns] = self.scene.wakings.lower_chosen_ns(
                self.window, phase.cpu, phase.start_ns, phase.end_ns
            )
        return self._chosen_ns[phase.start_ns]

    def _untaken(self, phase: _Phase, stretch: Stretch) -> None:
        """A timer was due, but the CPU did something else, or nothing."""
        if stretch.length_ns <= _ENTRY_NS:
            self.tallies["scheduling"].add("interrupt entry", stretch)
        elif self._interrupted_before(phase, stretch):
            self.tallies["timer-late"].add(f"{stretch.name}-{stretch.pid}", stretch)
        elif stretch.kind == "idle":
            self._idle(stretch, phase)
        elif self._worked(phase, stretch) and not self._surely_gone(stretch, phase.cpu):
            self.tallies["irqs-off"].add(f"{stretch.name}-{stretch.pid}", stretch)
        else:
            self._gap(stretch, phase.cpu)

    def _interrupted_before(self, phase: _Phase, stretch: Stretch) -> bool:
        """Return whether an interrupt was taken after the timer was due and before a stretch."""
        if phase not in self._interrupted_ns:
            self._interrupted_ns[phase] = next(
                (
                    each.start_ns
                    for each in self.scene.occupancy.of(phase.cpu, phase.start_ns, phase.end_ns)
                    if each.kind == "interrupt" and each.entered_ns > phase.start_ns
                ),
                phase.end_ns,
            )
        return self._interrupted_ns[phase] < stretch.start_ns

    def _worked(self, phase: _Phase, stretch: Stretch) -> bool:
        """Return whether the same thread left other traces meanwhile: the CPU was running."""
        if phase not in self._work:
            work = self._work[phase] = {}
            for each in self.scene.occupancy.of(phase.cpu, phase.start_ns, phase.end_ns):
                count, total_ns = work.get((each.kind, each.pid), (0, 0))
                work[each.kind, each.pid] = (count + 1, total_ns + each.length_ns)
        count, total_ns = self._work[phase].get((stretch.kind, stretch.pid), (0, 0))
        return count > 1 and stretch.length_ns < 0.9 * total_ns

    def _idle(self, stretch: Stretch, phase: _Phase) -> None:
        """The CPU was idle though something was to be done."""
        state = stretch.idle_state
        limit_ns = _DEEPEST_IDLE_NS if state else _SHALLOW_IDLE_NS
        if stretch.length_ns > limit_ns or (
            stretch.length_ns > _ENTRY_NS and self._surely_gone(stretch, phase.cpu)
        ):
            self._gap(stretch, phase.cpu)
            return
        tally = self.tallies["host-idle"]
        if state is None:
            tally.confidence = "perhaps"
            tally.add("idle (its state was not traced)", stretch)
        else:
            tally.confidence = "likely"
            tally.add(f"idle state {state}", stretch)

    def _surely_gone(self, stretch: Stretch, cpu: int) -> bool:
        return (
            self.scene.hardware_says(stretch.start_ns, stretch.end_ns)
            or self.scene.others_silent(cpu, stretch.start_ns, stretch.end_ns) is True
        )

    def _gap(self, stretch: Stretch, cpu: int) -> None:
        if self._surely_gone(stretch, cpu):
            self._gone(stretch)
            return
        tally = self.tallies["smi-like-gap"]
        tally.confidence = "likely" if self.window.stolen else "perhaps"
        elsewhere = self.scene.others_silent(cpu, stretch.start_ns, stretch.end_ns)
        if self.window.stolen:
            tally.notes.add("steal time was counted around it: the host had the CPU")
        elif elsewhere is False:
            tally.notes.add("other CPUs went on, so code that disables interrupts looks the same")
        else:
            tally.notes.add("code that disables interrupts looks the same")
        tally.add(_place(stretch), stretch)

    def _gone(self, stretch: Stretch) -> None:
        tally = self.tallies["smi-like-gap"]
        if self.scene.hardware_says(stretch.start_ns, stretch.end_ns):
            tally.confidence = "certain"
            tally.notes.add("a hardware latency event confirms it")
        else:
            tally.confidence = "likely"
            tally.notes.add("all CPUs were silent at once")
        tally.add(_place(stretch), stretch)

    def _share(self, name: str, tally: _Tally) -> Share:
        if name == "interrupt" and _is_storm(tally, self.window.latency_ns):
            name = "interrupt-storm"
        known = remedy(name)
        tunings, advice = known.tunings, known.advice
        if name.startswith("exit:") and 2 * tally.share_ns["in user space"] > tally.total_ns:
            tunings = tuple(dict.fromkeys((*remedy("user-space-exit").tunings, *tunings)))
        return Share(
            name,
            tally.total_ns,
            tally.count,
            tuple(part for part in tally.parts() if part.share_ns),
            tally.confidence,
            sentence(name, tally, self.window),
            tunings,
            advice,
        )


def _with_rest(cause: Cause, window: Window) -> Cause:
    """Return the cause of the beginning of a wait as one of all of it."""
    rest_ns = window.latency_ns - cause.latency_ns
    evidence = f"the last {format_duration(rest_ns)} were not looked at: too many events"
    part = Part("after the beginning", rest_ns, 1)
    name = "not-looked-at"
    known = remedy(name)
    share = Share(name, rest_ns, 1, (part,), "certain", evidence, known.tunings, known.advice)
    return replace(
        cause,
        latency_ns=window.latency_ns,
        window=replace(cause.window, end_ns=window.end_ns),
        shares=(*cause.shares, share),
    )


def _began_on(events: "Sequence[Event]", state: State, cpu: int) -> int:
    """Return which CPU a thread depended on before what the scheduler did with it in a window.

    One whose timer is due depends on the CPU that takes the interrupt, and wakes it.
    """
    for event in events:
        if event.name == "sched_migrate_task":
            return number(event, "orig_cpu", cpu)
        if event.name == "sched_switch" or state == "due":
            return event.cpu
    return cpu


def _unknown_first(shares: list[Share]) -> list[Share]:
    """Put what is not known first if it is more than all that is."""
    unknown = [each for each in shares if each.cause == "unknown"]
    known = [each for each in shares if each.cause != "unknown"]
    if unknown and unknown[0].share_ns > sum(each.share_ns for each in known):
        return [*unknown, *known]
    return [*known, *unknown]


def _is_storm(tally: _Tally, latency_ns: int) -> bool:
    return tally.count >= _STORM_COUNT and latency_ns <= tally.count * _STORM_EVERY_NS


def _place(stretch: Stretch) -> str:
    return "while idle" if stretch.kind == "idle" else f"while {stretch.name}-{stretch.pid} ran"


def _named(tally: _Tally, counted: bool = False) -> str:
    parts = [part for part in tally.parts() if part.share_ns]
    told = [
        f"{part.name} {format_duration(part.share_ns)}"
        + (f" ({part.count} times)" if counted and part.count > 1 else "")
        for part in parts[:_MOST_NAMES]
    ]
    more = len(parts) - _MOST_NAMES
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


def sentence(name: str, tally: _Tally, window: Window) -> str:
    """Return the evidence for one cause: a sentence with figures."""
    total = format_duration(tally.total_ns)
    share = f"{total} of {format_duration(window.latency_ns)}"
    notes = "".join(f"; {note}" for note in sorted(tally.notes))
    kind, _, reason = name.partition(":")
    return {
        "interrupt-storm": f"{tally.count} interrupts, softirqs and timers took {share}, net: "
        f"{_named(tally, counted=True)}",
        "interrupt": f"interrupts took {share}, net: {_named(tally, counted=True)}",
        "nmi": f"non-maskable interrupts took {share}",
        "throttled": f"the thread was ready for {share} while the scheduler let lower priorities "
        f"have its CPU: {_named(tally)}",
        "deadline-budget": f"the deadline thread was ready for {share} but had used up its run "
        f"time: {_named(tally)}",
        "preempted": f"threads of the same or a higher priority ran for {share}: {_named(tally)}",
        "vcpu-preempted": f"the virtual CPU's thread was off its CPU for {share}: {_named(tally)}",
        "preemption-off": f"a thread of lower priority could not be preempted for {share}: "
        f"{_named(tally)}",
        "irqs-off": f"interrupts were not taken for {share} while the CPU ran {_named(tally)}",
        "smi-like-gap": f"nothing at all was traced on the CPU for {share}, {_named(tally)}{notes}",
        "host-idle": f"leaving an idle state took {share}: {_named(tally)}",
        "timer-late": f"interrupts were taken, but the timer's came {share} late",
        "page-fault": f"the thread took {share} with page faults",
        "blocked": f"the thread slept for {share}, {_named(tally)}",
        "own-execution": f"the thread itself ran for {share}",
        "scheduling": f"entering the interrupt and switching threads took {share}",
        "unknown": f"the trace does not tell about {share}",
        "exit": f"handling the exit {reason} took {share}: {_named(tally)}",
    }[kind]
