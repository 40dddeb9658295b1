"""Why somebody had to wait: each nanosecond of a late moment is given to what had the CPU.

The shares of a wait are net: what interrupts something else takes its time from it, so that they
sum to the wait. What the trace does not tell is the share `unknown`, never somebody else's.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from latenz.traces.advice import remedy
from latenz.traces.blocking import Chain, Lock, Piece
from latenz.traces.causes import Cause, Share
from latenz.traces.evidence import Tally, sentence
from latenz.traces.interprocessor import is_interprocessor
from latenz.traces.occupancy import Stretch, number
from latenz.traces.preemption import Hold
from latenz.traces.scene import Scene, with_rest
from latenz.traces.wakeups import Choice, Window, could_run

if TYPE_CHECKING:
    from latenz.traces.model import Event

State = Literal["due", "ready", "running", "blocked"]
Work = dict[tuple[str, int], tuple[int, int]]
"""By kind of work and thread: how often it was seen, and for how long (ns)."""

_REAL_TIME = 100  # priorities below, as the kernel counts, are real-time
_STORM_COUNT = 10
_STORM_EVERY_NS = 250_000
ENTRY_NS = 10_000  # entering an interrupt and switching threads take this long without any cause
_DEEPEST_IDLE_NS = 1_500_000  # no idle state of x86 or Arm takes longer to leave
_WAY_TO_SLEEP_NS = 100_000  # from a page fault to the switch, if the page must be read
_SHALLOW_IDLE_NS = 60_000  # leaving the shallowest one, also in a virtual machine
_FIRST_STATES: dict[str, State] = {
    "wakeup": "ready",
    "ready": "ready",
    "blocked": "blocked",
    "exit": "running",
}
_HELD = {
    "interrupts": "interrupts were off",
    "preemption": "preemption was disabled",
    "softirqs": "softirqs were disabled, and but for PREEMPT_RT preemption with them",
    "kernel": "this kernel preempts its own code at set places only (PREEMPT_NONE or VOLUNTARY)",
    "unknown": "",
}


@dataclass(frozen=True)
class Phase:
    """What the waiting thread did for a while, and on which CPU's time it depended."""

    start_ns: int
    end_ns: int
    state: State
    cpu: int


class Explanation:
    """Goes through one wait.

    Args:
        scene: The stretch of the trace that it lies in.
        window: The wait.
    """

    def __init__(self, scene: Scene, window: Window) -> None:
        self.scene = scene
        self.window = window
        self.tallies: dict[str, Tally] = defaultdict(Tally)
        self._chosen: dict[int, Choice | None] = {}
        self._moves: list[str] = []
        self._interrupted_ns: dict[tuple[int, int], int] = {}
        self._work: dict[tuple[int, int], tuple[int, Work]] = {}

    def cause(self, rank: int) -> Cause:
        """Return why it was so long; rank: 1 is the longest wait."""
        for phase in self._phases():
            if phase.state == "blocked":
                self._blocked(phase)
            else:
                self._divide(phase)
        self._join_storm()
        self._note_moves()
        window = self.window
        shares = self._shares()
        shares.sort(key=lambda share: (share.cause == "unknown", -share.share_ns, share.cause))
        shares = [share for share in shares if share.share_ns] or shares[:1]
        return Cause(
            rank,
            window.start_ns,
            window.latency_ns,
            window.what(),
            window.cpu,
            window,
            tuple(_unknown_first(shares)),
        )

    def _divide(self, phase: Phase) -> None:
        """Give the time of a phase to what had the CPU that the thread depended on."""
        for stretch in self.scene.occupancy.of(phase.cpu, phase.start_ns, phase.end_ns):
            self._give(phase, stretch)

    def _shares(self) -> list[Share]:
        """Return all causes, in any order; what nobody has is `unknown`."""
        known_ns = sum(tally.total_ns for tally in self.tallies.values())
        if known_ns < self.window.latency_ns:
            tally = self.tallies["unknown"]
            tally.add_time("not traced", self.window.latency_ns - known_ns, 0)
        return [self._share(name, tally) for name, tally in self.tallies.items()]

    def _note_moves(self) -> None:
        """Tell with the largest cause that the thread was moved while it was ready."""
        if self._moves and self.tallies:
            largest = max(self.tallies.values(), key=lambda tally: tally.total_ns)
            largest.notes.add(f"ready, the thread was moved {', then '.join(self._moves[:3])}")

    def _phases(self) -> list[Phase]:
        """Follow the waiting thread through the window."""
        window = self.window
        state = _FIRST_STATES.get(window.kind) or self._state_before()
        cpu, since_ns = window.cpu, window.start_ns
        phases: list[Phase] = []
        events = (
            self.scene.of_thread(window.pid, window.start_ns, window.end_ns)
            if window.pid is not None
            else []
        )
        cpu = _began_on(events, state, cpu)
        for event in events:
            after, where = self._followed(event, state, cpu)
            if event.name == "sched_migrate_task" and state == "ready" and where != cpu:
                self._moves.append(f"from CPU {cpu} to CPU {where}")
            if (after, where) != (state, cpu):
                if event.t_ns > since_ns:
                    phases.append(Phase(since_ns, event.t_ns, state, cpu))
                state, cpu, since_ns = after, where, event.t_ns
        return [*phases, Phase(since_ns, window.end_ns, state, cpu)]

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
            target = number(event, "target_cpu", cpu)
            return ("ready" if state != "running" else state), target
        if number(event, "next_pid", -1) == self.window.pid:
            return "running", event.cpu
        return ("ready" if could_run(event.fields.get("prev_state")) else "blocked"), event.cpu

    def _blocked(self, phase: Phase) -> None:
        """Follow the thread that it waited for."""
        window, scene = self.window, self.scene
        lock = scene.locks.of(window.pid or -1, phase.start_ns)
        plain = "mmap-lock" if lock is not None and lock.is_of_memory else "blocked"
        if lock is None and self._faulted(phase):
            plain = "page-fault"
        chain = Chain(scene.of_thread, scene.occupancy)
        for piece in chain.pieces(window.pid or -1, window.priority, phase.start_ns, phase.end_ns):
            tally = self.tallies[piece.kind if piece.kind != "blocked" else plain]
            tally.add_time(piece.name, self._own_ns(piece), piece.start_ns)
            if lock is not None:
                tally.notes.update(_of_lock(lock))
            elif plain == "page-fault":
                tally.notes.add("it slept until the page was there")
                tally.doubt("likely", "a sleep for something else right after a page fault")
            else:
                other = "data that another thread gives, not a lock"
                other = other if piece.name != "asleep" else "a sleep that was meant"
                tally.doubt("likely", other, "lock:contention_begin", "sched:sched_pi_setprio")

    def _faulted(self, phase: Phase) -> bool:
        """Return whether a thread had a page fault right before it went to sleep."""
        since_ns = phase.start_ns - _WAY_TO_SLEEP_NS
        pid = self.window.pid or -1
        return self.scene.memory.faults(pid, since_ns, phase.start_ns) > 0

    def _own_ns(self, piece: Piece) -> int:
        """Return for how long a piece of a sleep is this machine's own doing: all of it."""
        return piece.end_ns - piece.start_ns

    def _give(self, phase: Phase, stretch: Stretch) -> None:
        """Give a stretch of the CPU's time to a cause."""
        if stretch.kind == "nmi":
            self.tallies["nmi"].add(stretch.name, stretch)
        elif stretch.kind in ("interrupt", "softirq"):
            self._interrupted(phase, stretch)
        elif stretch.kind == "irqs-off":
            self._irqs_off(stretch, phase.cpu)
        elif phase.state == "running":
            self._own(stretch)
        elif phase.state == "ready":
            self._waiting(phase, stretch)
        else:
            self._untaken(phase, stretch)

    def _interrupted(self, phase: Phase, stretch: Stretch) -> None:
        if stretch.kind == "softirq" or not is_interprocessor(stretch):
            kind = "softirq" if stretch.kind == "softirq" else "interrupt"
            self.tallies[kind].add(stretch.name, stretch)
            return
        senders = self.scene.senders
        is_shootdown = senders.is_shootdown(phase.cpu, stretch)
        tally = self.tallies["tlb-shootdown" if is_shootdown else "inter-processor-interrupt"]
        tally.add(senders.named(phase.cpu, stretch), stretch)
        if not senders.are_known:
            tally.notes.add("who sent them was not recorded")
            tally.record.update(("ipi:ipi_send_cpu", "ipi:ipi_send_cpumask", "tlb:tlb_flush"))

    def _join_storm(self) -> None:
        """Interrupts and softirqs that come one after the other are one cause."""
        both = Tally()
        for kind in ("interrupt", "softirq"):
            if kind in self.tallies:
                both.merge(self.tallies[kind])
        if _is_storm(both, self.window.latency_ns):
            self.tallies["interrupt-storm"] = both
            for kind in ("interrupt", "softirq"):
                self.tallies.pop(kind, None)

    def _irqs_off(self, stretch: Stretch, cpu: int) -> None:
        tally = self._console_or("irqs-off", cpu, stretch)
        hold = self.scene.preemption.hold(cpu, stretch.pid, stretch.start_ns, stretch.end_ns)
        tally.add(self._with_function(stretch, cpu, hold), stretch)
        if stretch.kind != "irqs-off" and hold.by != "interrupts":
            other = "the timer's interrupt itself came late"
            tally.doubt("likely", other, "preemptirq:irq_disable")

    def _console_or(self, kind: str, cpu: int, stretch: Stretch) -> Tally:
        """Return where the time of a CPU that took no notice goes: consoles are told apart."""
        functions = self.scene.functions
        is_printing = functions.prints(cpu, stretch)
        if not is_printing and not functions.messages(cpu, stretch.start_ns, stretch.end_ns):
            return self.tallies[kind]
        tally = self.tallies["console-output"]
        if not is_printing:
            tally.doubt(
                "likely", "a message that no console shows", "sched:sched_waking with stacks"
            )
        return tally

    def _with_function(self, stretch: Stretch, cpu: int, hold: Hold | None = None) -> str:
        """Return a thread with the function that it was in, if that is known."""
        start_ns, end_ns = stretch.start_ns, stretch.end_ns
        thread = f"{stretch.name}-{stretch.pid}"
        hold = hold or self.scene.preemption.hold(cpu, stretch.pid, start_ns, end_ns)
        function = self.scene.functions.of(cpu, stretch.pid, start_ns, end_ns)
        where = " in ".join(each for each in (hold.function, function) if each)
        return f"{thread} in {where}" if where else thread

    def _own(self, stretch: Stretch) -> None:
        if stretch.pid != self.window.pid:
            return  # it went elsewhere unseen: not known
        reason = stretch.reason or (self.window.of if self.window.kind == "exit" else None)
        if reason is not None:
            where = "in user space" if stretch.kind == "user" else "in the kernel"
            self.tallies[f"exit:{reason}"].add(where, stretch)
        elif self.scene.memory.reclaims(stretch.pid, stretch.start_ns, stretch.end_ns):
            self.tallies["reclaim"].add("freeing memory", stretch)
        elif self.scene.memory.faults(stretch.pid, stretch.start_ns, stretch.end_ns - 1):
            self.tallies["page-fault"].add("after a page fault", stretch)
        elif slow := self.scene.memory.slow(self.window.cpu, stretch.start_ns):
            self.tallies["low-frequency"].add(slow, stretch)
        else:
            self.tallies["own-execution"].add(stretch.name, stretch)

    def _waiting(self, phase: Phase, stretch: Stretch) -> None:
        """The thread could have run, but something else had its CPU."""
        name = "idle" if stretch.kind == "idle" else f"{stretch.name}-{stretch.pid}"
        priority = self.window.priority
        choice = self._choice(phase)
        lower = stretch.kind == "idle" or stretch.priority > priority
        if lower and choice is not None and stretch.start_ns >= choice.since_ns:
            self._chosen_lower(choice, name, stretch)
        elif stretch.kind == "idle":
            self._idle(stretch, phase)
        elif priority >= _REAL_TIME and self._quota_used_up(phase):
            tally = self.tallies["cgroup-quota"]
            tally.add(name, stretch)
            tally.doubt(
                "likely", "threads that took turns with it, and a timer that came by chance"
            )
        elif not lower or priority >= _REAL_TIME:
            tally = self.tallies[self._preempted_by(stretch)]
            tally.add(name, stretch)
            if priority >= _REAL_TIME and not self.scene.wakings.tells_timers:
                other = "its control group's quota was used up"
                tally.doubt("likely", other, "timer:hrtimer_expire_entry")
        elif stretch.length_ns > ENTRY_NS and self._surely_gone(stretch, phase.cpu):
            self._gone(stretch)
        elif phase.end_ns - phase.start_ns <= ENTRY_NS or self._left_user_space(phase, stretch):
            self.tallies["scheduling"].add(name, stretch)
        else:
            self._held(phase, stretch)

    def _choice(self, phase: Phase) -> Choice | None:
        """Return whether the scheduler chose something less urgent though the thread was ready."""
        if phase.start_ns not in self._chosen:
            self._chosen[phase.start_ns] = self.scene.wakings.lower_chosen(
                self.window, phase.cpu, phase.start_ns, phase.end_ns
            )
        return self._chosen[phase.start_ns]

    def _chosen_lower(self, choice: Choice, name: str, stretch: Stretch) -> None:
        """No scheduler chooses something less urgent but to keep time free for it."""
        tally = self.tallies[choice.kind]
        tally.add(name, stretch)
        if choice.is_certain:
            return
        record = () if self.scene.wakings.tells_timers else ("timer:hrtimer_expire_entry",)
        tally.doubt(
            "likely", "core scheduling, which lets only threads of one group share a core", *record
        )

    def _preempted_by(self, stretch: Stretch) -> str:
        if self.window.vcpu is not None:
            return "vcpu-preempted"
        if stretch.name.startswith("migration/"):
            return "stopper"
        handles = stretch.name.startswith(("irq/", "ksoftirqd/", "ktimers/"))
        return "threaded-interrupt" if handles else "preempted"

    def _held(self, phase: Phase, stretch: Stretch) -> None:
        """A less urgent thread went on: it was in a part of the kernel that is not preemptible."""
        start_ns, end_ns = stretch.start_ns, stretch.end_ns
        scene = self.scene
        hold = scene.preemption.hold(phase.cpu, stretch.pid, start_ns, end_ns)
        if not self._request_came(phase, stretch) and self._request_waited(phase, stretch, hold):
            return
        tally = self._console_or("preemption-off", phase.cpu, stretch)
        tally.add(self._with_function(stretch, phase.cpu, hold), stretch)
        if stretch.length_ns > ENTRY_NS and _HELD[hold.by]:
            tally.notes.add(_HELD[hold.by])
        if not hold.function and self._left_no_trace(phase, stretch, hold):
            other = "a non-maskable interrupt or firmware, which left no trace"
            tally.doubt("likely", other, "nmi:nmi_handler", "hwlat, a tracer of its own")
        if not scene.preemption.asked(phase.cpu, phase.start_ns, phase.end_ns):
            other = "the CPU learnt late that it was to switch"
            tally.doubt("likely", other, "sched:sched_wakeup", "irq_vectors:reschedule_entry")
        if not scene.tells_interrupts:
            other = "interrupts and softirqs, which are not all in the trace"
            tally.doubt("likely", other, "irq", "irq_vectors")
        if self.window.priority < 0 and not scene.wakings.tells_timers:
            tally.doubt("likely", "run time that was used up", "timer:hrtimer_expire_entry")
        if hold.by == "unknown":
            tally.record.add("preemptirq:preempt_disable")
        if not (hold.function or scene.functions.known):
            tally.record.add("sched:sched_waking with stacks")

    def _left_no_trace(self, phase: Phase, stretch: Stretch, hold: Hold) -> bool:
        """Return whether nothing shows what a thread did in a stretch, nor that it ran at all."""
        cpu, pid = phase.cpu, stretch.pid
        return (
            hold.by in ("kernel", "unknown")
            and stretch.length_ns > ENTRY_NS
            and not self.scene.preemption.worked(cpu, pid, phase.start_ns, phase.end_ns)
            and not self.scene.functions.of(cpu, pid, stretch.start_ns, stretch.end_ns)
        )

    def _request_waited(self, phase: Phase, stretch: Stretch, hold: Hold) -> bool:
        """Return whether a CPU had interrupts off when another one asked it to switch.

        It is seen by its flags, or by the request, which is taken late.
        """
        stretches = self.scene.occupancy.of(phase.cpu, stretch.end_ns, phase.end_ns)
        after = next((each for each in stretches if each.kind != stretch.kind), None)
        came_late = after is not None and is_interprocessor(after)
        if hold.by != "interrupts" and not (came_late and stretch.length_ns > ENTRY_NS):
            return False
        self._irqs_off(stretch, phase.cpu)
        if hold.by != "interrupts" or not came_late:
            other = "preemption was disabled, and the request was taken unseen or sent late"
            self._console_or("irqs-off", phase.cpu, stretch).doubt(
                "likely", other, "irq_vectors:reschedule_entry", "preemptirq:irq_disable"
            )
        return True

    def _left_user_space(self, phase: Phase, stretch: Stretch) -> bool:
        """Return whether a thread was on its way out of user space, where nothing holds it."""
        if stretch.length_ns > ENTRY_NS:
            return False
        functions = self.scene.functions
        return functions.was(phase.cpu, stretch.pid, phase.start_ns, stretch.end_ns) == "user space"

    def _request_came(self, phase: Phase, stretch: Stretch) -> bool:
        """Return whether a CPU was seen to know before a stretch was over that it is to switch."""
        asked = self.scene.preemption.asked(phase.cpu, phase.start_ns, stretch.end_ns - 1)
        return asked or any(
            each.kind == "interrupt"
            for each in self.scene.occupancy.of(phase.cpu, phase.start_ns, stretch.end_ns)
        )

    def _untaken(self, phase: Phase, stretch: Stretch) -> None:
        """A timer was due, but the CPU did something else, or nothing."""
        if stretch.length_ns <= ENTRY_NS:
            self.tallies["scheduling"].add("interrupt entry", stretch)
        elif self._interrupted_before(phase, stretch):
            self.tallies["timer-late"].add(f"{stretch.name}-{stretch.pid}", stretch)
        elif stretch.kind == "idle":
            self._idle(stretch, phase)
        elif self._irqs_seen_off(phase, stretch) and not self._surely_gone(stretch, phase.cpu):
            self._irqs_off(stretch, phase.cpu)
        else:
            self._gap(stretch, phase.cpu)

    def _irqs_seen_off(self, phase: Phase, stretch: Stretch) -> bool:
        """Return whether interrupts were off: an event says so, or the CPU worked and took none."""
        hold = self.scene.preemption.hold(phase.cpu, stretch.pid, stretch.start_ns, stretch.end_ns)
        came = self.scene.functions.came(phase.cpu, stretch.pid, stretch.end_ns)
        if hold.by == "interrupts" or came == "enabling interrupts":
            return True
        return came != "user space" and self._worked(phase, stretch)

    def _interrupted_before(self, phase: Phase, stretch: Stretch) -> bool:
        """Return whether an interrupt was taken after the timer was due and before a stretch."""
        key = phase.cpu, phase.start_ns
        if key not in self._interrupted_ns:
            self._interrupted_ns[key] = next(
                (
                    each.start_ns
                    for each in self.scene.occupancy.of(*key, self.window.end_ns)
                    if each.kind == "interrupt" and each.entered_ns > phase.start_ns
                ),
                self.window.end_ns,
            )
        return self._interrupted_ns[key] < stretch.start_ns

    def _worked(self, phase: Phase, stretch: Stretch) -> bool:
        """Return whether the same thread left other traces meanwhile: the CPU was running."""
        key = phase.cpu, phase.start_ns
        known_ns, work = self._work.get(key, (phase.start_ns, {}))
        if known_ns < phase.end_ns:  # others with the same start go on where this one ends
            for each in self.scene.occupancy.of(phase.cpu, known_ns, phase.end_ns):
                count, total_ns = work.get((each.kind, each.pid), (0, 0))
                work[each.kind, each.pid] = (count + 1, total_ns + each.length_ns)
            self._work[key] = phase.end_ns, work
        count, total_ns = work.get((stretch.kind, stretch.pid), (0, 0))
        return count > 1 and stretch.length_ns < 0.9 * total_ns

    def _idle(self, stretch: Stretch, phase: Phase) -> None:
        """The CPU was idle though something was to be done."""
        state = stretch.idle_state
        limit_ns = _DEEPEST_IDLE_NS if state else _SHALLOW_IDLE_NS
        if stretch.length_ns > limit_ns and self._quota_used_up(phase):
            self.tallies["cgroup-quota"].add("idle", stretch)
            return
        if stretch.length_ns > limit_ns or (
            stretch.length_ns > ENTRY_NS and self._surely_gone(stretch, phase.cpu)
        ):
            self._gap(stretch, phase.cpu)
            return
        tally = self.tallies["host-idle"]
        if state is None:
            if stretch.length_ns > ENTRY_NS:
                tally.doubt("perhaps", "", "power:cpu_idle")
            tally.add("idle (its state was not traced)", stretch)
        else:
            tally.doubt("likely", "firmware or a host that had the CPU meanwhile")
            tally.add(f"idle state {state}", stretch)

    def _quota_used_up(self, phase: Phase) -> bool:
        """Return whether an ordinary thread could run on when its group's period began anew."""
        functions = ("sched_cfs_period_timer", "sched_cfs_slack_timer")
        is_ordinary = phase.state == "ready" and self.window.priority >= _REAL_TIME
        return is_ordinary and self.scene.wakings.expired(functions, phase.end_ns)

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
        tally.doubt("likely" if self.window.stolen else "perhaps")
        elsewhere = self.scene.others_silent(cpu, stretch.start_ns, stretch.end_ns)
        came = self.scene.functions.came(cpu, stretch.pid, stretch.end_ns)
        in_user_space = came == "user space"
        if in_user_space:
            tally.notes.add("the interrupt came in user space, where interrupts are never off")
            before = "code that disabled interrupts right before it went back to user space"
            tally.doubt("perhaps", before, "preemptirq:irq_disable")
        if self.window.stolen:
            tally.notes.add("steal time was counted around it: the host had the CPU")
        elif elsewhere is False:
            tally.notes.add("other CPUs went on")
        if not self.window.stolen and not in_user_space:
            looks = "code that disables interrupts, and leaves no trace meanwhile"
            tally.doubt("perhaps", looks, "preemptirq:irq_disable", "osnoise:sample_threshold")
        tally.add(_place(stretch), stretch)

    def _gone(self, stretch: Stretch) -> None:
        tally = self.tallies["smi-like-gap"]
        if self.scene.hardware_says(stretch.start_ns, stretch.end_ns):
            tally.notes.add("a hardware latency event confirms it")
        else:
            other = "a host that stopped the whole virtual machine"
            tally.doubt("likely", other, "hwlat, a tracer of its own")
            tally.notes.add("all CPUs were silent at once")
        tally.add(_place(stretch), stretch)

    def _share(self, name: str, tally: Tally) -> Share:
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
            sentence(name, tally, self.window.latency_ns),
            tunings,
            advice,
            tuple(sorted(tally.alternatives)),
            tuple(sorted(tally.record)),
        )


def _of_lock(lock: Lock) -> list[str]:
    """Return what is told of a lock that was waited for."""
    told = [f"it waited for {lock.name}"] if lock.name else []
    return [*told, *([f"its priority was lent to {lock.boosted}"] if lock.boosted else [])]


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


def _is_storm(tally: Tally, latency_ns: int) -> bool:
    return tally.count >= _STORM_COUNT and latency_ns <= tally.count * _STORM_EVERY_NS


def _place(stretch: Stretch) -> str:
    return "while idle" if stretch.kind == "idle" else f"while {stretch.name}-{stretch.pid} ran"


def explain_wait(scene: Scene, window: Window, rank: int, looked_ns: int | None = None) -> Cause:
    """Tell why a wait was so long.

    Args:
        scene: The stretch of the trace that it lies in.
        window: The wait.
        rank: 1 is the longest one.
        looked_ns: How much of it is in the scene, from its start; None: all.
    """
    if looked_ns is None or looked_ns >= window.latency_ns:
        return Explanation(scene, scene.wakings.refined(window)).cause(rank)
    end_ns = window.start_ns + looked_ns
    known = Explanation(scene, scene.wakings.refined(replace(window, end_ns=end_ns)))
    return with_rest(known.cause(rank), window)
