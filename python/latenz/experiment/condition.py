"""A condition: one thing to measure."""

from dataclasses import dataclass

from latenz.engines import EngineSettings
from latenz.stress.base import StressorSettings


@dataclass(frozen=True)
class Condition:
    """One thing to measure: a probe on a stack on a bench under a load.

    Attributes:
        name: Unlike every other's in the experiment.
        bench: Where it runs.
        stack: What system software it runs on.
        stressor: Name of the load.
        load: Settings of the load.
        probe: Name of the probe.
        engine: Settings of the engine.
        duration_ns: How long it is measured each time.
    """

    name: str
    bench: str
    stack: str
    stressor: str
    load: StressorSettings
    probe: str
    engine: EngineSettings
    duration_ns: int
