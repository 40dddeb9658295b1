"""Settings that all kinds of probes, stacks and loads share, as experiment files have them."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import Field

from latenz.affinity import enterable_cpus
from latenz.idle import DmaLatency
from latenz.settings import CpuList, Duration, Settings


class ProbeSettings(Settings):
    """Settings that all probes share, whether a program of this machine measures or not."""

    engine: str

    @property
    def started(self) -> tuple[str, ...]:
        """A program that the file itself names to be started, with its arguments; empty: none."""
        return ()


class EngineSettings(ProbeSettings):
    """Settings that all engines share which are programs."""

    cpus: CpuList | None = None
    """CPUs to measure on; None: all that can be entered, isolated ones included."""

    def measured_cpus(self) -> tuple[int, ...]:
        """Return the CPUs to measure on."""
        return self.cpus or tuple(sorted(enterable_cpus()))

    @property
    def held_ns(self) -> int | None:
        """What is held in /dev/cpu_dma_latency meanwhile; None: it is left alone."""
        return None


class SleepingEngineSettings(EngineSettings):
    """Settings of the engines whose threads sleep, so that idle states matter to them."""

    dma_latency: DmaLatency = None
    """Held in /dev/cpu_dma_latency while measuring, which keeps CPUs out of idle states that take
    longer to leave: "0 us", "20 us", or "left alone", as it is for a program that asks for
    nothing."""

    @property
    def held_ns(self) -> int | None:
        """What is held in /dev/cpu_dma_latency meanwhile; None: it is left alone."""
        return self.dma_latency


class WakingEngineSettings(SleepingEngineSettings):
    """Settings of the engines that measure the wake-up latency of one thread on each CPU."""

    windows: bool = False
    """Record what bounds the latency, in a second run: the kernel's longest windows, on an emulated
    board with one core. `latenz bound --linux` makes a bound of them."""


class StackSettings(Settings):
    """Settings that all stacks share."""

    kind: str


class StressorSettings(Settings):
    """Settings that all loads share."""

    kind: str
    settle: Duration = 2_000_000_000
    """How long the load runs before measuring starts."""
    cpus: CpuList | None = None
    """CPUs that the load runs on; None: those that programs are started on, so that isolated ones
    are left alone."""


def any_of(kinds: Iterable[type[Settings]], key: str) -> Any:
    """Return the type of settings that are of one of several kinds, told apart by a key."""
    return Annotated[reduce(or_, kinds), Field(discriminator=key)]
