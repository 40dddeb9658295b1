"""What a virtual CPU's thread did on the host while its guest was late.

The thread is followed as any other is: ready, running or asleep. While it runs, KVM's events tell
whether it was in its guest. All other time of it was taken from the guest, and has a cause on the
host.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from latenz.traces.blocking import Piece
from latenz.traces.causes import Share
from latenz.traces.evidence import Tally
from latenz.traces.explanation import ENTRY_NS, Explanation, Phase, State
from latenz.traces.model import IDLE_REASONS
from latenz.traces.occupancy import Stretch, number
from latenz.traces.wakeups import Window, could_run
from latenz.traces.whereabouts import Segment, Whereabouts

if TYPE_CHECKING:
    from latenz.traces.model import Event, Loss
    from latenz.traces.scene import Scene

_OF_HALTING = frozenset({"scheduling", "host-idle", "timer-late"})
"""What waking a halted virtual CPU consists of, by the causes of any thread's wake-up."""
_SURELY_LONG_NS = 50_000


class VcpuTime(Explanation):
    """Gives the time that a virtual CPU was kept from its guest to causes on the host.

    Args:
        scene: The stretch of the host's trace that the guest's wait lies in.
        events: Its events.
        window: The guest's wait, with the thread of the virtual CPU.
        names: What other virtual CPUs are called, by their threads.
        losses: Where events of the host are missing.
    """

    def __init__(
        self,
        scene: "Scene",
        events: "Sequence[Event]",
        window: Window,
        names: Mapping[int, str],
        losses: "Sequence[Loss]" = (),
    ) -> None:
        pid = window.pid or 0
        near = [each for each in events if each.pid == pid]
        before = [each for each in near if each.t_ns <= window.start_ns]
        first = before[-1] if before else near[0] if near else None
        known = replace(window, cpu=first.cpu if first else -1, comm=first.comm if first else "")
        super().__init__(scene, scene.wakings.refined(known))
        self._whereabouts = Whereabouts(events, pid)
        self._names = {other: name for other, name in names.items() if other != pid}
        self._losses = losses
        self._clip = window.start_ns, window.end_ns
        self._followed_phases = self._phases()
        self._phase_ends = [each.end_ns for each in self._followed_phases]
        self._slept_in = {
            self._whereabouts.at(each.start_ns).entered_ns
            for each in self._followed_phases
            if each.state in ("blocked", "due")
        }
        """When the exits began in which the thread slept, as far as the wait shows."""

    def take(self, start_ns: int, end_ns: int) -> int:
        """Account for what the host took of a stretch of the guest's time; return how much (ns)."""
        before_ns = self._given_ns()
        for phase, first, last in self._within(start_ns, end_ns):
            if phase.state == "running":
                self._ran(phase, first, last)
            elif phase.state == "ready":
                self._on_cpu(phase, phase.cpu, first, last)
            else:
                self._slept(phase, first, last)
        return self._given_ns() - before_ns

    def hardware_took(self, start_ns: int, end_ns: int, least_ns: int) -> bool:
        """Return whether the whole host stood still while the thread was in its guest.

        Args:
            start_ns: From when.
            end_ns: Until when.
            least_ns: Of a silence that explains the wait.
        """
        times = [
            (first, last, phase.cpu)
            for phase, since_ns, until_ns in self._within(start_ns, end_ns)
            if phase.state == "running"
            for first, last, segment in self._whereabouts.between(since_ns, until_ns)
            if segment.kind == "guest"
        ]
        first, last, cpu = max(times, key=lambda each: each[1] - each[0], default=(0, 0, -1))
        return last - first >= max(1, least_ns) and (
            self.scene.hardware_says(first, last)
            or self.scene.others_silent(cpu, first, last) is True
        )

    def _within(self, start_ns: int, end_ns: int) -> Iterator[tuple[Phase, int, int]]:
        """Give the phases of a part of the wait, with from when until when they are in it."""
        for place in range(bisect_right(self._phase_ends, start_ns), len(self._phase_ends)):
            phase = self._followed_phases[place]
            first, last = max(start_ns, phase.start_ns), min(end_ns, phase.end_ns)
            if first >= end_ns:
                return
            if last > first:
                yield phase, first, last

    def _given_ns(self) -> int:
        return sum(tally.total_ns for tally in self.tallies.values())

    def _state_before(self) -> State:
        """Return what the thread did when the wait began, by the scheduler's events around it."""
        pid, start_ns = self.window.pid or 0, self.window.start_ns
        woken = False
        for event in reversed(self.scene.of_thread(pid, -(2**63), start_ns)):
            if event.name != "sched_switch":
                woken = woken or event.name != "sched_migrate_task"
                continue
            if number(event, "next_pid", -1) == pid:
                return "running"
            is_ready = woken or could_run(event.fields.get("prev_state"))
            return "ready" if is_ready else "blocked"
        for event in self.scene.of_thread(pid, start_ns + 1, 2**63):
            if event.name == "sched_switch":
                return "ready" if number(event, "next_pid", -1) == pid else "running"
            if event.name != "sched_migrate_task":
                return "blocked"
        return "running"

    def _ran(self, phase: Phase, start_ns: int, end_ns: int) -> None:
        """The thread was current on a CPU: in its guest, out of it, or interrupted."""
        at_ns = start_ns
        for stretch in self.scene.occupancy.of(phase.cpu, start_ns, end_ns):
            self._untraced(phase.cpu, at_ns, stretch.start_ns)
            at_ns = stretch.end_ns
            if stretch.pid == self.window.pid and stretch.kind in ("task", "guest", "exit", "user"):
                self._own_time(stretch)
            else:
                self._account(stretch, partial(self._give, phase, stretch))
        self._untraced(phase.cpu, at_ns, end_ns)

    def _untraced(self, cpu: int, start_ns: int, end_ns: int) -> None:
        """The thread had the CPU, and no event tells more."""
        if end_ns <= start_ns:
            return
        window = self.window
        whole = Stretch(
            start_ns, end_ns, "task", window.comm, window.pid or 0, window.priority, start_ns
        )
        is_lost = any(
            each.cpu == cpu and each.start_ns < end_ns and start_ns < each.end_ns
            for each in self._losses
        )
        if is_lost:
            self._account(whole, lambda: None)
        else:
            self._own_time(whole)

    def _own_time(self, stretch: Stretch) -> None:
        for first, last, segment in self._whereabouts.between(stretch.start_ns, stretch.end_ns):
            if segment.kind == "guest":
                continue
            part = replace(
                stretch, start_ns=first, end_ns=last, entered_ns=segment.entered_ns, taken_ns=0
            )
            self._account(part, partial(self._out, part, segment))

    def _out(self, part: Stretch, segment: Segment) -> None:
        """The thread worked for an exit."""
        is_gone = part.length_ns > _SURELY_LONG_NS and self._surely_gone(part, self.window.cpu)
        where = "in user space" if segment.kind == "user" else "in the kernel"
        if is_gone:
            self._gone(part)
        elif segment.is_nested:
            self.tallies["nested-exit"].add(f"{segment.reason}, {where}", part)
        elif segment.reason in IDLE_REASONS and segment.entered_ns in self._slept_in:
            self.tallies["halt-wakeup"].add(where, part)
        else:
            self.tallies[f"exit:{segment.reason}"].add(where, part)

    def _on_cpu(self, phase: Phase, cpu: int, start_ns: int, end_ns: int) -> None:
        """The thread depended on a CPU on which it did not run."""
        at_ns = start_ns
        segment = self._whereabouts.at(phase.start_ns)
        is_halted = segment.kind != "guest" and segment.reason in IDLE_REASONS
        for stretch in [*self.scene.occupancy.of(cpu, start_ns, end_ns), None]:
            until_ns = end_ns if stretch is None else stretch.start_ns
            self._nobody_tells(at_ns, until_ns)
            if stretch is not None:
                at_ns = stretch.end_ns
                named = self._named(stretch)
                self._account(named, partial(self._give, phase, named), is_halted)

    def _named(self, stretch: Stretch) -> Stretch:
        name = self._names.get(stretch.pid)
        return stretch if name is None else replace(stretch, name=f"{name} ({stretch.name})")

    def _slept(self, phase: Phase, start_ns: int, end_ns: int) -> None:
        """The thread slept: halted, for QEMU, or for something else that the kernel waited for."""
        segment = self._whereabouts.at(phase.start_ns)
        is_user = segment.kind == "user"
        if segment.kind != "guest" and segment.reason in IDLE_REASONS:
            self._halted(phase, start_ns, end_ns)
            return
        for name, tally in self._sleep_of(phase, start_ns, end_ns).items():
            cause = "qemu-lock" if is_user and name in ("blocked", "priority-inversion") else name
            self._merge(cause, tally)
        if is_user:
            tally = self.tallies["qemu-lock"]
            tally.alternatives.clear()  # those of a thread that is not a virtual CPU's
            tally.record.clear()
            other = "work that another thread of QEMU did for it, or a sleep that was meant"
            tally.doubt("likely", other, "syscalls:sys_enter_futex")

    def _sleep_of(self, phase: Phase, start_ns: int, end_ns: int) -> dict[str, Tally]:
        """Return what a part of a sleep was for; the whole of it is looked at to tell."""
        before, self._clip = self.tallies, (start_ns, end_ns)
        self.tallies = defaultdict(Tally)
        self._blocked(phase)
        found, self.tallies = self.tallies, before
        return found

    def _own_ns(self, piece: Piece) -> int:
        return max(0, min(piece.end_ns, self._clip[1]) - max(piece.start_ns, self._clip[0]))

    def _halted(self, phase: Phase, start_ns: int, end_ns: int) -> None:
        """It slept as its guest was idle, though something was due: it depended on what woke it."""
        pid = self.window.pid or 0
        waker = next(
            (
                each
                for each in self.scene.of_thread(pid, phase.start_ns, phase.end_ns + 1)
                if each.name in ("sched_waking", "sched_wakeup") and each.t_ns > phase.start_ns
            ),
            None,
        )
        if waker is None:
            self._merge("halt-wakeup", _tally("asleep", start_ns, end_ns))
            return
        due = Phase(self.window.start_ns, phase.end_ns, "due", waker.cpu)
        at_ns = start_ns
        for stretch in self.scene.occupancy.of(waker.cpu, start_ns, end_ns):
            self._nobody_tells(at_ns, stretch.start_ns)
            at_ns = stretch.end_ns
            self._account(stretch, partial(self._give, due, stretch), True)
        self._nobody_tells(at_ns, end_ns)

    def _nobody_tells(self, start_ns: int, end_ns: int) -> None:
        if end_ns > start_ns:
            self._merge("unknown", _tally("not traced", start_ns, end_ns))

    def _account(self, stretch: Stretch, give: Callable[[], None], is_halted: bool = False) -> None:
        """Have a stretch given to causes; what none of them takes is not known."""
        whole, self.tallies = self.tallies, defaultdict(Tally)
        give()
        found, self.tallies = self.tallies, whole
        known_ns = sum(tally.total_ns for tally in found.values())
        for name, tally in found.items():
            self._merge("halt-wakeup" if is_halted and name in _OF_HALTING else name, tally)
        self._nobody_tells(stretch.start_ns + known_ns, stretch.end_ns)

    def _gap(self, stretch: Stretch, cpu: int) -> None:
        """An idle CPU whose others went on was slow to wake up; nobody took it away."""
        if stretch.kind != "idle" or self._surely_gone(stretch, cpu):
            super()._gap(stretch, cpu)
            return
        tally = self.tallies["host-idle"]
        tally.doubt("likely", "firmware that had this one CPU meanwhile", "power:cpu_idle")
        tally.add("idle for longer than leaving an idle state takes", stretch)

    def _merge(self, name: str, tally: Tally) -> None:
        if tally.total_ns:
            self.tallies[name].merge(tally)


def _tally(name: str, start_ns: int, end_ns: int) -> Tally:
    tally = Tally()
    tally.add_time(name, end_ns - start_ns, start_ns)
    return tally


class GuestWait(Explanation):
    """Goes through one wait in a guest, of which the host had a part.

    Args:
        scene: The stretch of the guest's trace that it lies in, by the host's clock.
        window: The wait.
        vcpu_of: Gives what the host did with a CPU of the guest; None: not known.
    """

    def __init__(
        self, scene: "Scene", window: Window, vcpu_of: Callable[[int], VcpuTime | None]
    ) -> None:
        super().__init__(scene, window)
        self._vcpu_of = vcpu_of
        self._vcpus: dict[int, VcpuTime | None] = {}
        self._gone_tally = Tally()

    def _divide(self, phase: Phase) -> None:
        at_ns = phase.start_ns
        for stretch in self.scene.occupancy.of(phase.cpu, phase.start_ns, phase.end_ns):
            self._taken_ns(phase.cpu, at_ns, stretch.start_ns)
            at_ns = stretch.end_ns
            taken_ns = self._taken_ns(phase.cpu, stretch.start_ns, stretch.end_ns)
            if taken_ns < stretch.length_ns:
                self._give(phase, replace(stretch, taken_ns=taken_ns))
        self._taken_ns(phase.cpu, at_ns, phase.end_ns)

    def _vcpu(self, cpu: int) -> VcpuTime | None:
        if cpu not in self._vcpus:
            self._vcpus[cpu] = self._vcpu_of(cpu)
        return self._vcpus[cpu]

    def _taken_ns(self, cpu: int, start_ns: int, end_ns: int) -> int:
        vcpu = self._vcpu(cpu)
        return vcpu.take(start_ns, end_ns) if vcpu and end_ns > start_ns else 0

    def _own_ns(self, piece: Piece) -> int:
        whole_ns = piece.end_ns - piece.start_ns
        if piece.cpu is None:
            return whole_ns
        return whole_ns - self._taken_ns(piece.cpu, piece.start_ns, piece.end_ns)

    def _waiting(self, phase: Phase, stretch: Stretch) -> None:
        if stretch.taken_ns and stretch.length_ns <= ENTRY_NS:
            self.tallies["scheduling"].add(f"{stretch.name}-{stretch.pid}", stretch)
        else:
            super()._waiting(phase, stretch)

    def _surely_gone(self, stretch: Stretch, cpu: int) -> bool:
        vcpu = self._vcpu(cpu)
        if vcpu is None:
            return super()._surely_gone(stretch, cpu)
        least_ns = stretch.length_ns * 4 // 5
        return vcpu.hardware_took(stretch.start_ns, stretch.end_ns, least_ns)

    def _gap(self, stretch: Stretch, cpu: int) -> None:
        """The virtual CPU was in its guest all the while: nobody took it away."""
        if self._vcpu(cpu) is None or self._surely_gone(stretch, cpu):
            super()._gap(stretch, cpu)
        elif stretch.kind == "idle":
            self.tallies["timer-late"].add("while idle", stretch)
        else:
            tally = self.tallies["irqs-off"]
            tally.notes.add("on the host, the virtual CPU was in its guest all the while")
            self._irqs_off(stretch, cpu)

    def _gone(self, stretch: Stretch) -> None:
        """Of a guest that its host was traced with, it is the host's hardware that was gone."""
        if not any(self._vcpus.values()):
            super()._gone(stretch)
            return
        tally = self._gone_tally
        tally.doubt("likely", "a machine below the host", "hwlat, a tracer of its own")
        tally.notes.add(
            "all CPUs of the host were silent at once, with the virtual CPU in its guest"
        )
        tally.add(f"while {stretch.name}-{stretch.pid} ran in the guest", stretch)

    def _shares(self) -> list[Share]:
        host: dict[str, Tally] = defaultdict(Tally)
        if self._gone_tally.total_ns:
            host["smi-like-gap"] = self._gone_tally
        for vcpu in self._vcpus.values():
            for name, tally in vcpu.tallies.items() if vcpu else ():
                into = self.tallies if name == "unknown" else host
                into[name].merge(tally)
        guest, self.tallies = self.tallies, host
        self._join_storm()
        host, self.tallies = self.tallies, guest
        known_ns = sum(tally.total_ns for tally in [*guest.values(), *host.values()])
        if known_ns < self.window.latency_ns:
            guest["unknown"].add_time("not traced", self.window.latency_ns - known_ns, 0)
        shares = [self._share(name, tally) for name, tally in host.items()]
        on_host = [_on_host(each) for each in shares]
        shares = [self._share(name, tally) for name, tally in guest.items()]
        in_guest = [each if each.cause == "unknown" else _in_guest(each) for each in shares]
        return [*on_host, *in_guest]


def _on_host(share: Share) -> Share:
    return replace(share, side="host", evidence=f"on the host, {share.evidence}")


def _in_guest(share: Share) -> Share:
    return replace(share, side="guest", evidence=f"in the guest, {share.evidence}")
