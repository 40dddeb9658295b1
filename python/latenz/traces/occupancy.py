"""Who had a CPU at each moment, from the events of a trace."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from latenz.traces.model import Losses

if TYPE_CHECKING:
    from latenz.traces.model import Event, Loss

Kind = Literal["nmi", "interrupt", "softirq", "irqs-off", "idle", "task", "guest", "exit", "user"]
"""What has a CPU: a context that interrupts threads; nothing (`idle`); a thread (`task`); or a
virtual CPU's thread: in the `guest`, handling an `exit` in the kernel, or in `user` space for it.
`irqs-off` is a thread that was seen to have interrupts disabled."""

VECTORS = {
    "local_timer": "local timer interrupt",
    "reschedule": "reschedule interrupt",
    "call_function": "function call interrupt",
    "call_function_single": "function call interrupt",
    "irq_work": "IRQ work interrupt",
    "x86_platform_ipi": "platform interrupt",
    "error_apic": "APIC error interrupt",
    "spurious_apic": "spurious interrupt",
    "thermal_apic": "thermal interrupt",
    "threshold_apic": "machine check threshold interrupt",
    "deferred_error_apic": "deferred error interrupt",
}
"""Interrupts of the processor itself on x86, by their events."""
NORMAL_PRIORITY = 120
_SOFTIRQS = (
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
)  # fmt: skip
_OF_BEFORE = ("sched_switch", "kernel_stack", "user_stack")  # of who had the CPU until then
_AWAKE = 2**32 - 1  # what cpu_idle says when a CPU leaves its idle state


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time between two events of a CPU, during which one thing had it.

    Attributes:
        start_ns: When it began.
        end_ns: When it was over.
        kind: What had the CPU.
        name: Which one.
        pid: The thread that ran, or that was interrupted.
        priority: That thread's, as the kernel counts: below 100 real-time, smaller is more urgent.
        entered_ns: When the interrupt, softirq, idle state or exit began that this is a part of.
        idle_state: Of an idle CPU: the state that it entered; None: not known.
        reason: Of an exit: its reason.
        taken_ns: Of a guest's CPU: for how much of it the host had the CPU.
    """

    start_ns: int
    end_ns: int
    kind: Kind
    name: str
    pid: int
    priority: int
    entered_ns: int
    idle_state: int | None = None
    reason: str | None = None
    taken_ns: int = 0

    @property
    def length_ns(self) -> int:
        """How long it lasted, without what the host took."""
        return self.end_ns - self.start_ns - self.taken_ns

    def within(self, start_ns: int, end_ns: int) -> "Stretch":
        """Return the part of it that lies in a window."""
        return replace(self, start_ns=max(self.start_ns, start_ns), end_ns=min(self.end_ns, end_ns))


@dataclass(frozen=True, slots=True)
class _Context:
    kind: Kind
    name: str
    since_ns: int
    timer: bool = False


@dataclass(slots=True)
class _VirtualCpu:
    """Where a virtual CPU's thread is: in the guest, or out of it for an exit."""

    kind: Kind
    reason: str
    since_ns: int


class _Cpu:
    """Follows one CPU from event to event."""

    def __init__(self, first: "Event", start_ns: int) -> None:
        self.contexts: list[_Context] = []
        self.pid = first.pid
        self.comm = first.comm
        self.priority = NORMAL_PRIORITY
        self.idle_state: int | None = None
        self.idle_since_ns = start_ns
        self.running_since_ns = start_ns
        self.last_ns = start_ns  # nothing happened there before its first event
        self.stretches: list[Stretch] = []
        self.since_switch = 0

    def correct_priority(self, priority: int) -> None:
        """Take what a thread had when it left for what it had all the time it ran."""
        if priority != self.priority:
            for place in range(self.since_switch, len(self.stretches)):
                self.stretches[place] = replace(self.stretches[place], priority=priority)

    def close(self, t_ns: int, virtual: "_VirtualCpu | None") -> None:
        """Add what had the CPU from the event before until now."""
        if t_ns > self.last_ns:
            self.stretches.append(self._stretch(t_ns, virtual))
        self.last_ns = max(t_ns, self.last_ns)  # a damaged trace may go back

    def _stretch(self, t_ns: int, virtual: "_VirtualCpu | None") -> Stretch:
        start_ns, pid, priority = self.last_ns, self.pid, self.priority
        if self.contexts:
            top = self.contexts[-1]
            return Stretch(start_ns, t_ns, top.kind, top.name, pid, priority, top.since_ns)
        if pid == 0:
            state, since_ns = self.idle_state, self.idle_since_ns
            return Stretch(start_ns, t_ns, "idle", "idle", pid, priority, since_ns, state)
        if virtual is None:
            since_ns = self.running_since_ns
            return Stretch(start_ns, t_ns, "task", self.comm, pid, priority, since_ns)
        reason, since_ns = virtual.reason or None, virtual.since_ns
        return Stretch(
            start_ns, t_ns, virtual.kind, self.comm, pid, priority, since_ns, reason=reason
        )

    def resume(self, event: "Event", t_ns: int) -> None:
        """Go on after events were lost: what had the CPU meanwhile is not known."""
        self.contexts.clear()
        self.pid, self.comm, self.priority = event.pid, event.comm, NORMAL_PRIORITY
        self.idle_state = None
        self.idle_since_ns = self.running_since_ns = t_ns
        self.last_ns = max(t_ns, self.last_ns)
        self.since_switch = len(self.stretches)

    def push(self, kind: Kind, name: str, t_ns: int, timer: bool = False) -> None:
        self.contexts.append(_Context(kind, name, t_ns, timer))

    def pop(self, kind: Kind, name: str) -> None:
        """Leave a context; one that was entered before the trace began is known only now."""
        for position in range(len(self.contexts) - 1, -1, -1):
            found = self.contexts[position]
            if found.kind == kind and (found.name == name or not name):
                del self.contexts[position:]
                return
        if not self.contexts and len(self.stretches) == 1:
            self.stretches[0] = replace(self.stretches[0], kind=kind, name=name or kind)


class Occupancy:
    """Who had each CPU during some stretch of a trace.

    Args:
        events: All of a stretch, in the order of their times.
        start_ns: When the stretch begins, a while before what is looked at.
        losses: Where events are missing.
        end_ns: Until when there were no others; None: after a CPU's last one nothing is known.
    """

    def __init__(
        self,
        events: "Iterable[Event]",
        start_ns: int,
        losses: "Sequence[Loss]" = (),
        end_ns: int | None = None,
    ) -> None:
        self._start_ns = start_ns
        self._losses = Losses(losses)
        self._cpus: dict[int, _Cpu] = {}
        self._virtual: dict[int, _VirtualCpu] = {}
        for event in events:
            self._take(event)
        if end_ns is not None:
            self._go_on(end_ns, losses)
        self.stretches: dict[int, list[Stretch]] = {
            number: cpu.stretches for number, cpu in self._cpus.items()
        }

    def of(self, cpu: int, start_ns: int, end_ns: int) -> list[Stretch]:
        """Return what had a CPU in a window, in order; parts that are not known are left out."""
        stretches = self.stretches.get(cpu, [])
        first = bisect_right(stretches, start_ns, key=lambda each: each.end_ns)
        last = bisect_left(stretches, end_ns, key=lambda each: each.start_ns)
        return [each.within(start_ns, end_ns) for each in stretches[first:last]]

    def _go_on(self, end_ns: int, losses: "Sequence[Loss]") -> None:
        """What had a CPU at its last event had it on, up to a loss."""
        for which, cpu in self._cpus.items():
            known = [
                each.start_ns for each in losses if each.cpu == which and each.end_ns > cpu.last_ns
            ]
            cpu.close(min([end_ns, *known]), self._virtual.get(cpu.pid))

    def _take(self, event: "Event") -> None:
        cpu = self._cpus.get(event.cpu)
        if cpu is None:
            cpu = self._cpus[event.cpu] = _Cpu(event, self._start_ns)
        if (loss := self._losses.passed(event)) is not None and loss.end_ns > self._start_ns:
            self._virtual.pop(cpu.pid, None)
            cpu.resume(event, loss.end_ns)
        if event.name == "nmi_handler":
            self._non_maskable(cpu, event)
            return
        cpu.close(event.t_ns, self._virtual.get(cpu.pid))
        if cpu.pid != event.pid and event.name not in _OF_BEFORE:  # a switch was lost
            cpu.pid, cpu.comm, cpu.running_since_ns = event.pid, event.comm, event.t_ns
        handler = _HANDLERS.get(event.name)
        if handler is not None:
            handler(self, cpu, event)
        else:
            _interrupt_edge(cpu, event)

    def _non_maskable(self, cpu: _Cpu, event: "Event") -> None:
        """The event comes at the end of the handler and tells how long it took."""
        length_ns = _handler_ns(event)
        start_ns = max(cpu.last_ns, event.t_ns - length_ns)
        virtual = self._virtual.get(cpu.pid)
        cpu.close(start_ns, virtual)
        cpu.push("nmi", "non-maskable interrupt", start_ns)
        cpu.close(event.t_ns, virtual)
        cpu.contexts.pop()

    def _switch(self, cpu: _Cpu, event: "Event") -> None:
        if cpu.pid == number(event, "prev_pid", -1):
            cpu.correct_priority(number(event, "prev_prio", NORMAL_PRIORITY))
        cpu.contexts.clear()  # nobody is switched away inside an interrupt
        cpu.pid = number(event, "next_pid", event.pid)
        cpu.comm = str(event.fields.get("next_comm", ""))
        cpu.priority = number(event, "next_prio", NORMAL_PRIORITY)
        cpu.running_since_ns = event.t_ns
        cpu.since_switch = len(cpu.stretches)
        cpu.idle_state = None

    def _idle(self, cpu: _Cpu, event: "Event") -> None:
        state = number(event, "state", _AWAKE)
        cpu.idle_state = None if state in (_AWAKE, -1) else state
        cpu.idle_since_ns = event.t_ns

    def _exit(self, cpu: _Cpu, event: "Event") -> None:
        reason = str(event.fields.get("reason", event.fields.get("exit_reason", "unknown")))
        self._virtual[cpu.pid] = _VirtualCpu("exit", reason, event.t_ns)

    def _entry(self, cpu: _Cpu, event: "Event") -> None:
        self._virtual[cpu.pid] = _VirtualCpu("guest", "", event.t_ns)

    def _user(self, cpu: _Cpu, event: "Event") -> None:
        before = self._virtual.get(cpu.pid)
        reason = before.reason if before else str(event.fields.get("reason", ""))
        since_ns = before.since_ns if before else event.t_ns
        self._virtual[cpu.pid] = _VirtualCpu("user", reason, since_ns)

    def _timer(self, cpu: _Cpu, event: "Event") -> None:
        """A timer's callback, in the timer interrupt or, where the trace lacks that, for it."""
        is_soft = event.name == "timer_expire_entry"
        kind: Kind = "softirq" if is_soft else "interrupt"
        unseen = "softirq TIMER" if is_soft else "timer interrupt"
        around = cpu.contexts[-1].name if cpu.contexts else unseen
        kind = cpu.contexts[-1].kind if cpu.contexts else kind
        cpu.push(kind, f"{around}: {function_of(event)}", event.t_ns, timer=True)

    def _timer_end(self, cpu: _Cpu, event: "Event") -> None:  # noqa: ARG002 - one of a table
        if cpu.contexts and cpu.contexts[-1].timer:
            cpu.contexts.pop()


def number(event: "Event", name: str, default: int) -> int:
    """Return a field that is a number; the default if it is missing or damaged."""
    value = event.fields.get(name)
    return value if isinstance(value, int) else default


def _handler_ns(event: "Event") -> int:
    """Return how long a non-maskable interrupt's handler took; in text it is "delta_ns: N"."""
    found = re.search(r"delta_ns: (\d{1,18})", str(event.fields.get("text", "")))
    return int(found[1]) if found else number(event, "delta_ns", 0)


def function_of(event: "Event") -> str:
    """Return the function that an event names, without what some tools append to it."""
    return re.split(r"[/+ ]", str(event.fields.get("function", "?")))[0]


def interrupt_of(event: "Event") -> tuple[Kind, str, bool] | None:
    """Return kind and name of the interrupt or softirq an event is an edge of.

    The third part tells the beginning (True) from the end. None: the event is no such edge.
    """
    base, _, edge = event.name.rpartition("_")
    if edge not in ("entry", "exit") or not base:
        return None
    begins = edge == "entry"
    fields = event.fields
    if base == "irq_handler":
        name = f" ({fields['name']})" if "name" in fields else ""
        return "interrupt", f"interrupt {fields.get('irq', '?')}{name}", begins
    if base == "softirq":
        return "softirq", f"softirq {_softirq(event)}", begins
    if base == "ipi":
        return "interrupt", f"interrupt from another CPU ({fields.get('reason', '?')})", begins
    if base in VECTORS:
        return "interrupt", VECTORS[base], begins
    return None


def _softirq(event: "Event") -> str:
    """Return a softirq's name; recorded in binary it is a number (include/linux/interrupt.h)."""
    vector = number(event, "vec", -1)
    known = _SOFTIRQS[vector] if 0 <= vector < len(_SOFTIRQS) else "?"
    return str(event.fields.get("action", known))


def _interrupt_edge(cpu: _Cpu, event: "Event") -> None:
    edge = interrupt_of(event)
    if edge is not None:
        kind, name, begins = edge
        if begins:
            cpu.push(kind, name, event.t_ns)
        else:
            cpu.pop(kind, _at_exit(cpu, kind, name))
    elif event.name == "irq_disable" and not cpu.contexts:
        cpu.push("irqs-off", cpu.comm, event.t_ns)
    elif event.name == "irq_enable":
        cpu.pop("irqs-off", "")


def _at_exit(cpu: _Cpu, kind: Kind, name: str) -> str:
    """The end of a device's interrupt tells its number alone; return its whole name."""
    for context in reversed(cpu.contexts):
        if context.kind == kind and context.name.startswith(f"{name} ("):
            return context.name
    return name


_HANDLERS = {
    "sched_switch": Occupancy._switch,
    "cpu_idle": Occupancy._idle,
    "kvm_exit": Occupancy._exit,
    "kvm_entry": Occupancy._entry,
    "kvm_userspace_exit": Occupancy._user,
    "hrtimer_expire_entry": Occupancy._timer,
    "hrtimer_expire_exit": Occupancy._timer_end,
    "timer_expire_entry": Occupancy._timer,
    "timer_expire_exit": Occupancy._timer_end,
}
