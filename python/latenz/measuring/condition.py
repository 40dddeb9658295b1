"""A condition: one thing to measure."""

from dataclasses import dataclass
from pathlib import Path

from latenz.measuring.settings import ProbeSettings, StackSettings, StressorSettings


@dataclass(frozen=True)
class Condition:
    """One thing to measure: a probe on a stack on a bench under a load.

    Attributes:
        name: Unlike every other's in the experiment.
        bench: Where it runs.
        stack: What system software it runs on.
        system: Settings of the stack; None on benches whose stack has none.
        stressor: Name of the load.
        load: Settings of the load.
        probe: Name of the probe.
        engine: Settings of the engine.
        duration_ns: How long it is measured each time; 0 for what ends by itself.
        folder: What relative paths in the settings start from.
        target: Name of the target that it is measured on; empty: this machine, or whatever `--on`
            names.
        target_url: Where that target is.
    """

    name: str
    bench: str
    stack: str
    system: StackSettings | None
    stressor: str
    load: StressorSettings
    probe: str
    engine: ProbeSettings
    duration_ns: int
    folder: Path
    target: str = ""
    target_url: str = ""

    @property
    def place(self) -> str:
        """What sample sets call the place where it is measured: the target, or the bench."""
        return self.target or self.bench
