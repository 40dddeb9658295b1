"""Loads that run while latencies are measured."""

from typing import Annotated, Any

from pydantic import Field

from latenz.stress.base import Stressor
from latenz.stress.memory import MemoryLoad, MemorySettings
from latenz.stress.none import NoLoad, NoneSettings
from latenz.stress.stress_ng import (
    StressNgAll,
    StressNgAllSettings,
    StressNgCpu,
    StressNgCpuSettings,
)

AnyStressorSettings = Annotated[
    NoneSettings | StressNgCpuSettings | StressNgAllSettings | MemorySettings,
    Field(discriminator="kind"),
]
"""Settings of any load, told apart by `kind`."""

STRESSORS: dict[str, type[Stressor[Any]]] = {
    stressor.name: stressor for stressor in (NoLoad, StressNgCpu, StressNgAll, MemoryLoad)
}
"""Every load by its name."""

__all__ = ["STRESSORS", "AnyStressorSettings", "Stressor"]
