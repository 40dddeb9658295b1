"""What kept a CPU from switching threads: disabled interrupts, disabled preemption, or the kernel.

Each event carries the state of its CPU. Some events say nothing by it, as the kernel disables
interrupts or preemption to bring them about; an interrupt's first event shows how deep preemption
was disabled in what it interrupted.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from latenz.traces import flags
from latenz.traces.occupancy import interrupt_of

if TYPE_CHECKING:
    from latenz.traces.model import Event

Held = Literal["interrupts", "preemption", "softirqs", "kernel", "unknown"]
"""`kernel`: neither was disabled, but the kernel preempts its own code only at set places
(PREEMPT_NONE, PREEMPT_VOLUNTARY), or not that of a thread that is to make way lazily."""

_SELF_DISABLING = (
    "sched_", "hrtimer_", "timer_", "cpu_", "softirq_", "rcu_", "ipi_", "kvm_", "irq_", "preempt_",
    "workqueue_queue", "workqueue_activate", "nmi_", "tick_", "local_", "reschedule_", "call_",
    "contention_", "kernel_stack", "user_stack", "csd_",
    "function",  # there are so many that some always have interrupts off for a moment
)  # fmt: skip
_RIGHT_BEFORE_NS = 100_000  # an interrupt that ended so long ago, with its softirqs, says it still
_SECTIONS = {
    "preempt_disable": ("preemption", True),
    "preempt_enable": ("preemption", False),
    "irq_disable": ("interrupts", True),
    "irq_enable": ("interrupts", False),
}

_OPENED: tuple[Held, ...] = ("interrupts", "preemption")


class Hold(NamedTuple):
    """What kept a thread on its CPU, and the function that saw to it; empty if nothing tells."""

    by: Held
    function: str


class _State(NamedTuple):
    t_ns: int
    pid: int
    held: Held  # `kernel` if neither interrupts nor preemption were disabled


class _Section(NamedTuple):
    start_ns: int
    end_ns: int
    held: Held
    caller: str


class Preemption:
    """Follows whether each CPU could switch threads, in a stretch of a trace.

    Args:
        events: In the order of their times.
    """

    def __init__(self, events: "Sequence[Event]") -> None:
        self._states: dict[int, list[_State]] = defaultdict(list)
        self._own: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._asked: dict[int, list[int]] = defaultdict(list)
        self._sections: dict[tuple[int, Held], list[_Section]] = defaultdict(list)
        self._open: dict[tuple[int, Held], tuple[int, str]] = {}
        switches = 0
        self._counted = 0
        for each in events:
            state = flags.parse(each.flags) if each.flags else None
            if each.name in _SECTIONS:
                self._section(each)
            elif state is not None:
                self._state(each, state)
                if each.name == "sched_switch":
                    switches += 1
                    self._counted += state.depth > 0
        self.is_counted = self._counted > 0 or switches == 0
        """Does the kernel count how often preemption is disabled? Its switches show it."""
        for (cpu, held), (start_ns, caller) in self._open.items():
            self._sections[cpu, held].append(_Section(start_ns, 2**63, held, caller))

    def asked(self, cpu: int, start_ns: int, end_ns: int) -> bool:
        """Return whether the thread on a CPU was seen to be asked to make way meanwhile."""
        times = self._asked.get(cpu, [])
        return bisect_right(times, end_ns) > bisect_left(times, start_ns)

    def worked(self, cpu: int, pid: int, start_ns: int, end_ns: int) -> bool:
        """Return whether a thread itself did something on a CPU meanwhile that was traced."""
        own = self._own.get(cpu, [])
        between = own[bisect_right(own, (start_ns, 2**63)) : bisect_left(own, (end_ns, -1))]
        return any(its == pid for _, its in between)

    def hold(self, cpu: int, pid: int, start_ns: int, end_ns: int) -> Hold:
        """Return what kept a thread on a CPU meanwhile, also by an interrupt right before."""
        section = self._longest(cpu, start_ns, end_ns)
        if section is not None:
            return Hold(section.held, section.caller)
        states = self._states.get(cpu, [])
        first = bisect_left(states, start_ns, key=lambda state: state.t_ns)
        last = bisect_right(states, end_ns, key=lambda state: state.t_ns)
        before = states[first - 1] if first else None
        is_near = before is not None and start_ns - before.t_ns < _RIGHT_BEFORE_NS
        if before and is_near and before.pid == pid and before.held != "interrupts":
            first -= 1
        seen = {state.held for state in states[first:last]}
        for held in ("interrupts", "preemption", "softirqs"):
            if held in seen:
                return Hold(held, "")
        if not self.is_counted or ("kernel" in seen and self.asked(cpu, start_ns, end_ns)):
            return Hold("kernel", "")
        return Hold("unknown", "")

    def _longest(self, cpu: int, start_ns: int, end_ns: int) -> _Section | None:
        """Return the section that took most of a stretch, if it took half of it."""
        parts = []
        for held in _OPENED:  # sections of one kind do not overlap
            sections = self._sections.get((cpu, held), [])
            first = bisect_right(sections, start_ns, key=lambda each: each.end_ns)
            last = bisect_left(sections, end_ns, key=lambda each: each.start_ns)
            parts += [
                (min(each.end_ns, end_ns) - max(each.start_ns, start_ns), each)
                for each in sections[first:last]
            ]
        length_ns, section = max(parts, key=lambda part: part[0], default=(0, None))
        return section if 2 * length_ns >= end_ns - start_ns > 0 else None

    def _section(self, event: "Event") -> None:
        held, begins = _SECTIONS[event.name]
        key: tuple[int, Held] = (event.cpu, "preemption" if held == "preemption" else "interrupts")
        if begins:
            self._open.setdefault(key, (event.t_ns, _caller(event)))
        elif (opened := self._open.pop(key, None)) is not None:
            self._sections[key].append(_Section(opened[0], event.t_ns, key[1], opened[1]))

    def _state(self, event: "Event", state: flags.Flags) -> None:
        if state.resched:
            self._asked[event.cpu].append(event.t_ns)
        edge = interrupt_of(event)
        if edge is not None and edge[0] == "interrupt" and edge[2]:
            held: Held = "preemption" if state.depth else "kernel"
        elif state.context != "thread" or event.name.startswith(_SELF_DISABLING):
            return
        elif state.irqs_off:
            held = "interrupts"
        elif state.depth:
            held = "preemption"
        else:
            held = "softirqs" if state.softirqs_off else "kernel"
        self._states[event.cpu].append(_State(event.t_ns, event.pid, held))
        if edge is None:
            self._own[event.cpu].append((event.t_ns, event.pid))


def _caller(event: "Event") -> str:
    """Return who disabled it: the caller, or the one above if that is a lock's own function."""
    caller = str(event.fields.get("caller", "")).split("+")[0]
    parent = str(event.fields.get("parent", "")).split("+")[0]
    is_lock = caller.startswith(("_raw_", "__raw_", "rt_spin_", "__schedule", "preempt_"))
    return parent if is_lock and parent else caller
