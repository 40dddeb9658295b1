"""Loads that run while latencies are measured."""

from typing import Annotated, Any

from pydantic import Field

from latenz.measuring.settings import StressorSettings
from latenz.stress.base import Stressor
from latenz.stress.hackbench import Hackbench, HackbenchSettings
from latenz.stress.kernel_compile import KernelCompile, KernelCompileSettings
from latenz.stress.memory import MemoryLoad, MemorySettings
from latenz.stress.none import NoLoad, NoneSettings
from latenz.stress.spin import SpinSettings
from latenz.stress.stress_ng import (
    Disk,
    DiskSettings,
    Network,
    NetworkSettings,
    StressNgAll,
    StressNgAllSettings,
    StressNgCpu,
    StressNgCpuSettings,
)

AnyStressorSettings = Annotated[
    NoneSettings
    | SpinSettings
    | StressNgCpuSettings
    | StressNgAllSettings
    | MemorySettings
    | HackbenchSettings
    | KernelCompileSettings
    | NetworkSettings
    | DiskSettings,
    Field(discriminator="kind"),
]
"""Settings of any load, told apart by `kind`."""

STRESSORS: dict[str, type[Stressor[Any]]] = {
    stressor.name: stressor
    for stressor in (
        *(NoLoad, StressNgCpu, StressNgAll, MemoryLoad),
        *(Hackbench, KernelCompile, Network, Disk),
    )
}
"""Every load of this machine by its name."""

LOAD_SETTINGS: dict[str, type[StressorSettings]] = {
    **{name: stressor.settings_type for name, stressor in STRESSORS.items()},
    "spin": SpinSettings,
}
"""Settings of every load by its name, also of those that only boards have."""

__all__ = ["LOAD_SETTINGS", "STRESSORS", "AnyStressorSettings", "Stressor"]
