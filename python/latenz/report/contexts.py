"""What a tool recorded around a late sample, in words instead of the keys of its account."""

from collections.abc import Mapping

from latenz.durations import format_duration

_COUNTED = {
    "interrupts": "device interrupts",
    "timer_interrupts": "timer interrupts",
    "inter_processor_interrupts": "inter-processor interrupts",
    "softirqs": "softirqs",
    "context_switches": "context switches",
    "nmis": "non-maskable interrupts",
    "page_faults": "page faults",
    "own_involuntary_switches": "involuntary switches of the thread",
    "own_page_faults": "page faults of the thread",
    "window_smis": "system management interrupts",
}
"""Counts of events: zero says that this is not what made the sample late."""

_TOLD = {
    "cpu": "CPU",
    "moved_from": "moved from CPU",
    "exact_ns": "since the activation before",
    "ran_before": "ran before",
    "last_interrupt": "last interrupt",
    "own_window_ns": "since its last late activation",
    "window_interrupts": "busiest interrupts",
    "window_steal_ns": "taken by the hypervisor",
    "window_ns": "between readings of /proc",
    "frequency_khz": "clock frequency",
}


def in_words(context: Mapping[str, int | float | str]) -> list[tuple[str, str]]:
    """Return each thing recorded as its name and its value with unit, in the tool's order.

    Keys are those of `latenz-wakeup` (docs/probe.md). Another tool's key is shown with spaces for
    underscores; one that ends in `_ns` is a duration whoever wrote it.
    """
    return [(_name(key), _value(key, value)) for key, value in context.items()]


def _name(key: str) -> str:
    plain = key.removesuffix("_ns").replace("_", " ")
    return _COUNTED.get(key) or _TOLD.get(key) or plain


def _value(key: str, value: float | str) -> str:
    if isinstance(value, str):
        return value
    if key.endswith("_ns"):
        return format_duration(value)
    if key == "frequency_khz":
        return f"{value / 1_000:,.0f} MHz"
    return f"{value:,}"
