"""Programs that measure, each driven through the same life cycle."""

from typing import Annotated, Any

from pydantic import Field

from latenz.engines.base import Engine, EngineSettings, Obstacle, Task
from latenz.engines.cyclictest import Cyclictest, CyclictestSettings
from latenz.engines.oslat import Oslat, OslatSettings
from latenz.engines.simulation import SimulationSettings
from latenz.engines.timerlat import Timerlat, TimerlatSettings
from latenz.engines.wakeup import Wakeup, WakeupSettings
from latenz.engines.xenomai import XenomaiLatency, XenomaiLatencySettings

AnyEngineSettings = Annotated[
    WakeupSettings
    | CyclictestSettings
    | OslatSettings
    | TimerlatSettings
    | XenomaiLatencySettings
    | SimulationSettings,
    Field(discriminator="engine"),
]
"""Settings of any engine, told apart by `engine`."""

ENGINES: dict[str, type[Engine[Any]]] = {
    engine.name: engine for engine in (Wakeup, Cyclictest, Oslat, Timerlat, XenomaiLatency)
}
"""Every engine that is a program, by its name."""

__all__ = [
    "ENGINES",
    "AnyEngineSettings",
    "Engine",
    "EngineSettings",
    "Obstacle",
    "SimulationSettings",
    "Task",
]
