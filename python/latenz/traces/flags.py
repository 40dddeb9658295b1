"""The state that ftrace writes beside each event: interrupts, rescheduling, context, preemption.

Source: kernel/trace/trace_output.c (trace_print_lat_fmt) of Linux 6.1 to 6.18. What a character
means depends on its place, and a kernel patched with PREEMPT_RT before 6.13 has columns more.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Context = Literal["thread", "softirq", "hardirq", "nmi"]

_CONTEXTS: dict[str, Context] = {
    ".": "thread",
    "s": "softirq",
    "h": "hardirq",
    "H": "hardirq",
    "z": "nmi",
    "Z": "nmi",
}
_CONTEXT_AT = {4: 2, 5: 2, 6: 3, 7: 3}  # by the number of columns


@dataclass(frozen=True, slots=True)
class Flags:
    """What a CPU was allowed to do when an event was written.

    Attributes:
        irqs_off: Interrupts were disabled.
        softirqs_off: Softirqs were disabled, which on a kernel without PREEMPT_RT keeps threads
            from being preempted, too.
        resched: The thread that runs is to make way as soon as it can.
        lazy: It is to make way when it returns to user space, or at the next tick.
        context: Whose work the CPU did.
        depth: How many times preemption was disabled, the tracer's own not counted; 15 and more
            are 15. Always 0 on a kernel that does not count it.
    """

    irqs_off: bool
    softirqs_off: bool
    resched: bool
    lazy: bool
    context: Context
    depth: int


@lru_cache(maxsize=1024)
def parse(text: str) -> Flags | None:
    """Return what an event's flags mean; None if they are no such flags."""
    place = _CONTEXT_AT.get(len(text))
    if place is None:
        return None
    context = _CONTEXTS.get(text[place])
    depth = text[place + 1].replace(".", "0")
    if context is None or depth not in "0123456789abcdef":
        return None
    return Flags(
        irqs_off=text[0] in "dD",
        softirqs_off=text[0] in "bD",
        resched=text[1] in "NnBb",
        lazy=text[1] in "LlBb" or (place == 3 and text[2] in "Ll"),
        context=context,
        depth=int(depth, 16),
    )
