"""Programs that measure, each driven through the same life cycle."""

from typing import TYPE_CHECKING, Any

from latenz import extensions
from latenz.engines.attach import Attach
from latenz.engines.base import Engine, Task
from latenz.engines.cyclictest import Cyclictest
from latenz.engines.intercore import Intercore, IntercoreSettings
from latenz.engines.interrupt import InterruptSettings
from latenz.engines.oslat import Oslat
from latenz.engines.robot import Robot, RobotSettings
from latenz.engines.simulation import SimulationSettings
from latenz.engines.timerlat import Timerlat
from latenz.engines.wakeup import Wakeup
from latenz.engines.xenomai import XenomaiLatency
from latenz.measuring.settings import EngineSettings, ProbeSettings, any_of
from latenz.obstacle import Obstacle

_OWN: tuple[type[Engine[Any]], ...] = (
    *(Wakeup, Cyclictest, Oslat, Timerlat, XenomaiLatency),
    *(Intercore, Robot, Attach),
)

ENGINES: dict[str, type[Engine[Any]]] = {
    engine.name: engine
    for engine in (
        *_OWN,
        *extensions.kinds("latenz.engines", Engine, {engine.name for engine in _OWN}),
    )
}
"""Every engine that is a program of this machine, by its name; others' packages may add some."""

if TYPE_CHECKING:
    AnyEngineSettings = ProbeSettings
else:
    AnyEngineSettings = any_of(
        (
            *(engine.settings_type for engine in ENGINES.values()),
            *(SimulationSettings, InterruptSettings),
        ),
        "engine",
    )
"""Settings of any engine, told apart by `engine`."""

PROBE_SETTINGS: dict[str, type[EngineSettings | InterruptSettings]] = {
    **{name: engine.settings_type for name, engine in ENGINES.items() if name != "attach"},
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
