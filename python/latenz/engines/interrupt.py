"""The engine `interrupt`: our firmware, which measures how late its interrupt is answered."""

from typing import Literal

from pydantic import Field, model_validator

from latenz.measuring.settings import ProbeSettings
from latenz.settings import Duration


class InterruptSettings(ProbeSettings):
    """How the firmware measures: from an event to the first action of its handler."""

    engine: Literal["interrupt"]
    measured_by: Literal["timer", "latencies-ip"] = "timer"
    """What raises and times the interrupts: the processor's timer, or the bench of the Latencies IP
    in programmable logic, which tells T1 and T2 of `alonso2024`."""
    samples: int = Field(default=400, ge=1, le=15_000)
    """How many interrupts are measured; `alonso2024` took 400."""
    period: Duration = 250_000
    """Distance of the interrupts; on average, if they are exponential."""
    arrivals: Literal["periodic", "exponential"] = "periodic"
    min_distance: int = Field(default=0, ge=0)
    """Smallest distance of exponential arrivals, in nanoseconds; what is drawn shorter is this."""
    seed: int = Field(default=1, ge=0, lt=2**32)
    """Of exponential arrivals."""
    wait: Literal["poll", "wfi"] = "poll"
    """What runs until the interrupt comes: a loop, or the processor's wait for interrupts."""
    optimization: Literal["O0", "O2"] = "O0"
    """How the firmware was compiled; the publication took O0."""
    path: bool = False
    """Record where the instructions of an interrupt go, in a second run."""

    @model_validator(mode="after")
    def _drawn(self) -> "InterruptSettings":
        if self.measured_by == "latencies-ip" and self.arrivals != "periodic":
            raise ValueError("the timer that asks the logic for data is periodic only")
        if self.arrivals == "periodic" and self.min_distance:
            raise ValueError("min_distance is for exponential arrivals; leave it out")
        if self.min_distance >= self.period:
            raise ValueError("min_distance is not below the mean distance, period")
        return self
