"""Loads that run while latencies are measured."""

from typing import TYPE_CHECKING, Any

from latenz import extensions
from latenz.loads.base import Stressor
from latenz.loads.hackbench import Hackbench
from latenz.loads.kernel_compile import KernelCompile
from latenz.loads.memory import MemoryLoad
from latenz.loads.none import NoLoad
from latenz.loads.spin import Spin
from latenz.loads.stress_ng import (
    Disk,
    Network,
    StressNgAll,
    StressNgCpu,
    StressNgOneSettings,
)
from latenz.measuring.settings import StressorSettings, any_of

_OWN: tuple[type[Stressor[Any]], ...] = (
    *(NoLoad, StressNgCpu, StressNgAll, MemoryLoad, Spin),
    *(Hackbench, KernelCompile, Network, Disk),
)

_ON_BOARDS: dict[str, type[StressorSettings]] = {"stress-ng": StressNgOneSettings}

STRESSORS: dict[str, type[Stressor[Any]]] = {
    stressor.name: stressor
    for stressor in (
        *_OWN,
        *extensions.kinds("latenz.loads", Stressor, {*_ON_BOARDS, *(each.name for each in _OWN)}),
    )
}
"""Every load of this machine by its name; others' packages may add some."""

if TYPE_CHECKING:
    AnyStressorSettings = StressorSettings
else:
    AnyStressorSettings = any_of(
        (*(each.settings_type for each in STRESSORS.values()), *_ON_BOARDS.values()), "kind"
    )
"""Settings of any load, told apart by `kind`."""

LOAD_SETTINGS: dict[str, type[StressorSettings]] = {
    **{name: stressor.settings_type for name, stressor in STRESSORS.items()},
    **_ON_BOARDS,
}
"""Settings of every load by its name, also of those that only boards have."""

__all__ = ["LOAD_SETTINGS", "STRESSORS", "AnyStressorSettings", "Stressor"]
