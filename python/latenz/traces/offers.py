"""Which of the events for a bound of the wake-up latency a kernel has, and what is open without."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Need:
    """Events that a term of the bound needs.

    Attributes:
        events: All of them, as system/event.
        terms: What stays open without one, in words.
        remedy: What a kernel needs to have them.
    """

    events: tuple[str, ...]
    terms: str
    remedy: str


_FTRACE = "CONFIG_FTRACE"
NEEDS = (
    Need(
        ("preemptirq/irq_disable", "preemptirq/irq_enable"),
        "blocking and switching",
        "CONFIG_IRQSOFF_TRACER",
    ),
    Need(
        ("preemptirq/preempt_disable", "preemptirq/preempt_enable"),
        "blocking on a kernel that preempts",
        "CONFIG_PREEMPT_TRACER",
    ),
    Need(("sched/sched_switch", "sched/sched_waking"), "the scheduler and wake-ups", _FTRACE),
    Need(
        (
            "irq/irq_handler_entry",
            "irq/irq_handler_exit",
            "irq/softirq_entry",
            "irq/softirq_exit",
        ),
        "interrupts",
        _FTRACE,
    ),
    Need(
        ("timer/hrtimer_start", "timer/hrtimer_expire_entry", "timer/hrtimer_expire_exit"),
        "when wake-ups are due, and the way in from hardware",
        _FTRACE,
    ),
    Need(("power/cpu_idle",), "idle", _FTRACE),
)
"""What the terms of the theorem of docs/linux-bound.md need."""

BOUND_EVENTS = tuple(event for need in NEEDS for event in need.events)
"""Without one of these a trace gives no bound."""

WINDOW_EVENTS = (
    *BOUND_EVENTS,
    "timer/hrtimer_cancel",
    "ipi/ipi_entry",
    "ipi/ipi_exit",
    "nmi/nmi_handler",
    *(
        f"irq_vectors/{vector}_{end}"
        for vector in (
            "local_timer",
            "reschedule",
            "call_function",
            "call_function_single",
            "irq_work",
            "x86_platform_ipi",
            "thermal_apic",
            "threshold_apic",
            "deferred_error_apic",
            "error_apic",
            "spurious_apic",
        )
        for end in ("entry", "exit")
    ),
)
"""What `latenz bound --linux` reads of a trace, where the kernel has it."""


def missing_for_bound(tracefs: Path) -> list[str]:
    """Return which of `BOUND_EVENTS` a kernel lacks, as system:event."""
    return [_named(each) for each in BOUND_EVENTS if not _has(tracefs, each)]


def open_terms(tracefs: Path) -> list[str]:
    """Return a clause for each term that traces of a kernel leave open: which, and why."""
    told = []
    for need in NEEDS:
        missing = [_named(each) for each in need.events if not _has(tracefs, each)]
        if missing:
            told.append(f"{need.terms} ({', '.join(missing)}: {need.remedy})")
    return told


def _has(tracefs: Path, event: str) -> bool:
    return (tracefs / "events" / event).is_dir()


def _named(event: str) -> str:
    return event.replace("/", ":")
