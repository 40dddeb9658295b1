"""Which function had a CPU: from stacks, the function tracer, work items and system calls."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple

from latenz.traces import flags
from latenz.traces.calls import Call, at_work
from latenz.traces.occupancy import function_of, interrupt_of

if TYPE_CHECKING:
    from latenz.traces.model import Event
    from latenz.traces.occupancy import Stretch

_ENTRIES = re.compile(
    r"(asm_sysvec_|asm_common_interrupt|asm_exc_|ret_from_intr|el[01]\w*_irq|el1_interrupt"
    r"|call_on_irq_stack|irq_svc|handle_exception|ret_from_exception)"
)
"""Frames by which an interrupt is entered: what is below them was interrupted."""

_MACHINERY = re.compile(
    r"(__traceiter_|trace_|ftrace_|stack_trace|event_trigger|ring_buffer_|perf_|bpf_"
    r"|try_to_wake_up|ttwu_|wake_up|__wake_up|default_wake_function|resched_|check_preempt"
    r"|wakeup_preempt|__?schedule\b|schedule|preempt_schedule|preempt_count|irqentry_"
    r"|_raw_(spin|read|write)_|local_bh_|__local_bh_|rcu_read_|hrtimer_|__hrtimer_|tick_"
    r"|__?sysvec_|irq_exit|__irq_exit|asm_|exc_|do_syscall_|entry_SYSCALL|(syscall_)?exit_to_user_"
    r"|syscall_exit_|__?cond_resched|rt_mutex_schedule|el[01]|invoke_syscall|ret_(from|to|fast)_)"
)
"""Frames of the tracer, the scheduler and locks, which say nothing about why they were called."""

_ENABLING = re.compile(
    r"(_raw_(spin|read|write)_unlock_irq|(raw_)?local_irq_(enable|restore)|trace_hardirqs_on"
    r"|finish_task_switch|handle_softirqs|__do_softirq|irqentry_exit)"
)
"""Functions that enable interrupts: what was due meanwhile comes right then."""

_CONSOLE = re.compile(r"console_(write|emit|unlock|flush)|con_write|nbcon_|wait_for_(lsr|xmitr)")
"""Functions that write to a console, or wait until it takes more."""

_PRINTERS = "pr/"  # threads of consoles, since Linux 6.12
_MESSAGE_NS = 100_000  # from a message to the console that prints it
_AT_WORK = re.compile(r"function (\S+)")
_STALE_NS = 100_000  # a stack from so long before says nothing any more
_STACK_NS = 50_000  # from an interrupt to the stack of the thread that it wakes
_LONGEST_CALL_NS = 10_000_000_000  # an end further away belongs to another system call


Interrupted = Literal["user space", "enabling interrupts", "kernel", "unknown"]
"""Where an interrupt came. In user space interrupts are never disabled."""


class _Seen(NamedTuple):
    t_ns: int
    pid: int
    function: str
    at: Interrupted = "unknown"
    frames: tuple[str, ...] = ()  # of a stack: of what was at work, the innermost first


class _Span(NamedTuple):
    start_ns: int
    end_ns: int
    name: str


def interrupted(stack: str) -> str:
    """Return the function of a stack that was at work: what was interrupted, or what called.

    Args:
        stack: Names, the innermost first, with `;` between them.
    """
    return next((each for each in _frames_of(stack) if _says(each)), "")


def _frames_of(stack: str) -> tuple[str, ...]:
    """Return the frames of a stack below the last interrupt; without one, all of them."""
    frames = tuple(each for each in stack.split(";") if each)
    entries = [place for place, name in enumerate(frames) if _ENTRIES.match(name)]
    return frames[entries[-1] + 1 :] if entries else frames


def _says(frame: str) -> bool:
    return not _MACHINERY.match(frame) and not frame.startswith(("0x", "<"))


def place(stack: str) -> Interrupted:
    """Return where the interrupt of a stack came; unknown if it shows none."""
    frames = [each for each in stack.split(";") if each]
    entries = [number for number, name in enumerate(frames) if _ENTRIES.match(name)]
    if not entries:
        return "unknown"
    below = frames[entries[-1] + 1 :]
    if not below:
        return "user space"
    return "enabling interrupts" if _ENABLING.match(below[0]) else "kernel"


class Functions:
    """What functions the events of a stretch tell of.

    Args:
        events: In the order of their times.
    """

    def __init__(self, events: "Sequence[Event]") -> None:
        self._stacks: dict[int, list[_Seen]] = defaultdict(list)
        self._calls: dict[int, list[Call]] = defaultdict(list)
        self._consoles: dict[int, list[int]] = defaultdict(list)
        self._spans: dict[int, list[_Span]] = defaultdict(list)
        self._open: dict[tuple[int, str], tuple[int, str]] = {}
        for each in events:
            self._take(each)
        for (pid, _), (start_ns, name) in self._open.items():
            self._spans[pid].append(_Span(start_ns, 2**63, name))

    @property
    def known(self) -> bool:
        """Does anything tell of functions?"""
        return bool(self._stacks or self._calls or self._spans)

    def of(self, cpu: int, pid: int, start_ns: int, end_ns: int) -> str:
        """Return what a thread did on a CPU meanwhile, in a few words; empty if nothing tells."""
        span = (start_ns, end_ns)
        function = self._of_both(cpu, pid, start_ns, end_ns)
        function = function or _longest(self._stacks.get(cpu, []), pid, span, _STALE_NS)
        if not function and (after := self._first_after(cpu, pid, end_ns)):
            function = after.function
        function = function or at_work(self._calls.get(cpu, []), pid, span, _says)
        for each in reversed(self._spans.get(pid, ())):
            if each.start_ns < end_ns and start_ns < each.end_ns:
                return f"{function} ({each.name})" if function else each.name
        return function

    def _of_both(self, cpu: int, pid: int, start_ns: int, end_ns: int) -> str:
        """Return the innermost function that a thread was in both first and when it gave way."""
        own = [row.frames for row in self._around(cpu, pid, start_ns, end_ns)]
        if len(own) < 2 or not any(each.endswith("schedule") for each in own[-1]):
            return ""
        common = takewhile(
            lambda pair: pair[0] == pair[1], zip(own[0][::-1], own[-1][::-1], strict=False)
        )
        inner = [frame for frame, _ in common if _says(frame)]
        return inner[-1] if inner else ""

    def was(self, cpu: int, pid: int, start_ns: int, end_ns: int) -> Interrupted:
        """Return where a thread was that was first interrupted in a stretch, or right before it."""
        rows = self._around(cpu, pid, start_ns, end_ns)
        return rows[0].at if rows else "unknown"

    def _around(self, cpu: int, pid: int, start_ns: int, end_ns: int) -> list[_Seen]:
        """Return the stacks of a thread in a stretch, and close to it."""
        rows = self._stacks.get(cpu, [])
        first = bisect_right(rows, start_ns - _STALE_NS, key=lambda row: row.t_ns)
        last = bisect_right(rows, end_ns + _STACK_NS, key=lambda row: row.t_ns)
        return [row for row in rows[first:last] if row.pid == pid]

    def came(self, cpu: int, pid: int, t_ns: int) -> Interrupted:
        """Return where a thread was when the first interrupt after a moment came, by its stack."""
        after = self._first_after(cpu, pid, t_ns)
        return after.at if after else "unknown"

    def _first_after(self, cpu: int, pid: int, t_ns: int) -> _Seen | None:
        rows = self._stacks.get(cpu, [])
        first = bisect_left(rows, t_ns, key=lambda row: row.t_ns)
        for row in rows[first : first + 1]:
            if row.pid == pid and row.t_ns - t_ns < _STACK_NS:
                return row
        return None

    def messages(self, cpu: int, start_ns: int, end_ns: int) -> bool:
        """Return whether the kernel wrote a message on a CPU meanwhile, or right before."""
        times = self._consoles.get(cpu, [])
        return bisect_right(times, end_ns) > bisect_left(times, start_ns - _MESSAGE_NS)

    def prints(self, cpu: int, stretch: "Stretch") -> bool:
        """Return whether a thread was seen to write to a console: by its name, or where it was."""
        if stretch.name.startswith(_PRINTERS):
            return True
        function = self.of(cpu, stretch.pid, stretch.start_ns, stretch.end_ns)
        return _CONSOLE.search(function) is not None

    def _take(self, event: "Event") -> None:
        name = event.name
        if name == "kernel_stack":
            stack = str(event.fields.get("stack", ""))
            frames = _frames_of(stack)
            seen = _Seen(event.t_ns, event.pid, interrupted(stack), place(stack), frames)
            self._stacks[event.cpu].append(seen)
        elif name == "function":
            self._call(event)
        elif name == "console":
            self._consoles[event.cpu].append(event.t_ns)
        else:
            self._edge(event)

    def _call(self, event: "Event") -> None:
        """Take a call that a thread made; those of interrupts say nothing about it."""
        state = flags.parse(event.flags) if event.flags else None
        if state is not None and state.context != "thread":
            return
        function, caller = (
            str(event.fields.get(key, "")).split("+")[0] for key in ("ip", "parent_ip")
        )
        is_held = state is not None and (state.irqs_off or state.depth > 0)
        self._calls[event.cpu].append(Call(event.t_ns, event.pid, function, caller, is_held))

    def _edge(self, event: "Event") -> None:
        """Take the beginning or the end of a work item or a system call."""
        name = event.name
        if name == "workqueue_execute_start":
            self._open[event.pid, "work"] = event.t_ns, f"work {worked_on(event)}"
        elif name.startswith("sys_enter") and interrupt_of(event) is None:
            called = name.removeprefix("sys_enter").removeprefix("_")
            told = str(event.fields.get("text", event.fields.get("id", "")))
            self._open[event.pid, "call"] = event.t_ns, f"system call {called or told[:12]}"
        elif name == "workqueue_execute_end":
            self._close(event, "work")
        elif name.startswith("sys_exit"):
            self._close(event, "call")

    def _close(self, event: "Event", kind: str) -> None:
        opened = self._open.pop((event.pid, kind), None)
        if opened is not None and event.t_ns - opened[0] < _LONGEST_CALL_NS:
            self._spans[event.pid].append(_Span(opened[0], event.t_ns, opened[1]))


def _longest(rows: list[_Seen], pid: int, span: tuple[int, int], stale_ns: int) -> str:
    """Return the function that was seen longest in a span, each until the next one was."""
    start_ns, end_ns = span
    first = max(0, bisect_right(rows, start_ns, key=lambda row: row.t_ns) - 1)
    last = bisect_right(rows, end_ns, key=lambda row: row.t_ns)
    taken: dict[str, int] = defaultdict(int)
    ends = [row.t_ns for row in rows[first + 1 : last]]
    for row, until_ns in zip(rows[first:last], [*ends, end_ns], strict=False):
        if row.function and row.pid == pid and row.t_ns > start_ns - stale_ns:
            taken[row.function] += until_ns - max(row.t_ns, start_ns)
    return max(taken, key=lambda name: (taken[name], name), default="")


def worked_on(event: "Event") -> str:
    """Return the function of a work item; in text it is "work struct ADDRESS: function NAME"."""
    found = _AT_WORK.search(str(event.fields.get("text", "")))
    return found[1].split("+")[0] if found else function_of(event)
