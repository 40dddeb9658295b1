"""Which of the events for a bound of the wake-up latency this kernel has."""

from pathlib import Path

BOUND_EVENTS = (
    "preemptirq/irq_disable",
    "preemptirq/irq_enable",
    "preemptirq/preempt_disable",
    "preemptirq/preempt_enable",
    "sched/sched_switch",
    "sched/sched_waking",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "timer/hrtimer_start",
    "timer/hrtimer_expire_entry",
    "timer/hrtimer_expire_exit",
    "power/cpu_idle",
)
"""Without one of these a trace gives no bound."""


def missing_for_bound(tracefs: Path) -> list[str]:
    """Return which of them a kernel lacks, as system:event."""
    return [
        each.replace("/", ":") for each in BOUND_EVENTS if not (tracefs / "events" / each).is_dir()
    ]
