"""Idle states of the CPUs: how long leaving them takes, and who keeps the CPUs out of them."""

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from latenz.durations import parse_duration
from latenz.errors import BadInput
from latenz.machine import measured_machine

_CPU = "sys/devices/system/cpu"
_REQUEST = Path("/dev/cpu_dma_latency")
_NOBODY_ASKS_US = 2_000_000_000
"""What the kernel holds by itself (PM_QOS_CPU_LATENCY_DEFAULT_VALUE)."""
LEFT_ALONE = "left alone"
_MOST_US = 2**31  # the kernel takes 32 bits
DEEP_US = 5
"""Leaving a state that takes longer shows beside the latency of an undisturbed wake-up."""


def _dma_latency(value: Any) -> int | None:
    if value is None or value == LEFT_ALONE:
        return None
    try:
        latency_ns = parse_duration(value)
    except BadInput as mistake:  # pydantic knows the place better
        raise ValueError(f'{mistake.what}; {mistake.remedy}; or "{LEFT_ALONE}"') from None
    if latency_ns < 0 or latency_ns % 1000 or latency_ns >= _MOST_US * 1000:
        raise ValueError('the kernel takes whole microseconds; write for example "20 us"')
    return latency_ns


DmaLatency = Annotated[
    int | None,
    BeforeValidator(_dma_latency),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}],
            "examples": [LEFT_ALONE, "0 us", "20 us"],
        }
    ),
]
"""What is held in /dev/cpu_dma_latency while measuring: CPUs enter no idle state that takes longer
to leave. Nanoseconds; None: it is left alone."""


@dataclass(frozen=True)
class IdleState:
    """A state that CPUs may enter.

    Attributes:
        name: As the driver calls it, such as C6.
        exit_us: How long leaving it takes, as the driver says.
    """

    name: str
    exit_us: int

    def __str__(self) -> str:
        return f"{self.name} takes {self.exit_us} us to leave"


def deepest_state(cpus: Iterable[int], root: Path = Path("/")) -> IdleState | None:
    """Return the state that takes longest to leave, of those that some CPUs may enter.

    Args:
        cpus: Which.
        root: The folder of the machine's files.
    """
    found = [
        state
        for cpu in cpus
        for folder in measured_machine().matching(f"{root / _CPU}/cpu{cpu}/cpuidle/state*")
        if (state := _enabled_state(folder)) is not None
    ]
    return max(found, key=lambda state: state.exit_us, default=None)


def _enabled_state(folder: str) -> IdleState | None:
    disabled, name, latency = (
        measured_machine().content(f"{folder}/{name}") for name in ("disable", "name", "latency")
    )
    if disabled is None or name is None or latency is None or disabled.strip() != b"0":
        return None
    try:
        return IdleState(name.decode("utf-8", "replace").strip(), int(latency))
    except ValueError:
        return None


def requested_us() -> int | None:
    """Return the shortest wake-up time that anybody asks for; None if nobody does, or not known."""
    if not measured_machine().is_here:
        return None
    try:
        descriptor = os.open(_REQUEST, os.O_RDONLY)
        try:
            (latency_us,) = struct.unpack("=i", os.read(descriptor, 4))
        finally:
            os.close(descriptor)
    except (OSError, struct.error):
        return None
    return int(latency_us) if latency_us < _NOBODY_ASKS_US else None


def deep_idle_note(cpus: Iterable[int], held_us: int | None, root: Path = Path("/")) -> str | None:
    """Return what a reader of latencies must know of idle states, None if nothing.

    Args:
        cpus: Where they were measured.
        held_us: The longest wake-up time that was allowed; None: any.
        root: The folder of the machine's files.
    """
    deepest = deepest_state(cpus, root)
    if deepest is None or deepest.exit_us <= DEEP_US:
        return None
    if held_us is not None and held_us < deepest.exit_us:
        return None
    return (
        f"idle states were left alone: {deepest}, which is part of these latencies;"
        ' dma_latency = "0 us" keeps the CPUs awake'
    )


def dma_latency_in_words(held_ns: int | None, others_us: int | None = None) -> str:
    """Return what became of /dev/cpu_dma_latency while measuring.

    Args:
        held_ns: What we held in it; None: nothing.
        others_us: What others held in it.
    """
    if held_ns is not None:
        return f"held at {held_ns // 1000} us"
    return LEFT_ALONE if others_us is None else f"{LEFT_ALONE}, others held {others_us} us"
