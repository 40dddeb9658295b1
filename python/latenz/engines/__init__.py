"""Programs that measure, each driven through the same life cycle."""

from typing import Annotated, Any

from pydantic import Field

from latenz.engines.base import Engine, Task
from latenz.engines.cyclictest import Cyclictest, CyclictestSettings
from latenz.engines.intercore import Intercore, IntercoreSettings
from latenz.engines.interrupt import InterruptSettings
from latenz.engines.oslat import Oslat, OslatSettings
from latenz.engines.robot import Robot, RobotSettings
from latenz.engines.simulation import SimulationSettings
from latenz.engines.timerlat import Timerlat, TimerlatSettings
from latenz.engines.wakeup import Wakeup, WakeupSettings
from latenz.engines.xenomai import XenomaiLatency, XenomaiLatencySettings
from latenz.measuring.settings import EngineSettings
from latenz.obstacle import Obstacle

AnyEngineSettings = Annotated[
    WakeupSettings
    | CyclictestSettings
    | OslatSettings
    | TimerlatSettings
    | XenomaiLatencySettings
    | IntercoreSettings
    | RobotSettings
    | SimulationSettings
    | InterruptSettings,
    Field(discriminator="engine"),
]
"""Settings of any engine, told apart by `engine`."""

ENGINES: dict[str, type[Engine[Any]]] = {
    engine.name: engine
    for engine in (Wakeup, Cyclictest, Oslat, Timerlat, XenomaiLatency, Intercore, Robot)
}
"""Every engine that is a program of this machine, by its name."""

PROBE_SETTINGS: dict[str, type[EngineSettings | InterruptSettings]] = {
    **{name: engine.settings_type for name, engine in ENGINES.items()},
    "interrupt": InterruptSettings,
}
"""Settings of every engine that needs none, by its name."""

__all__ = [
    "ENGINES",
    "PROBE_SETTINGS",
    "AnyEngineSettings",
    "Engine",
    "EngineSettings",
    "IntercoreSettings",
    "InterruptSettings",
    "Obstacle",
    "RobotSettings",
    "SimulationSettings",
    "Task",
]
