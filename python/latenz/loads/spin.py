"""A load that only spins: it keeps CPUs busy and touches nothing."""

import json
from typing import Any, Literal

from latenz.loads.base import Stressor
from latenz.measuring.settings import StressorSettings
from latenz.obstacle import Obstacle, missing_own_program
from latenz.programs import own_program
from latenz.settings import format_cpu_list

_PROGRAM = "latenz-cpu-load"


class SpinSettings(StressorSettings):
    """CPUs spin, each in a loop of its own.

    On an emulated board it is the neighbours that spin, and all cores share one thread of the
    host. What changes in the figures when a neighbour merely spins is the emulator's doing; only
    what a load adds to that is the load's.
    """

    kind: Literal["spin"]


class Spin(Stressor[SpinSettings]):
    """Computes in registers on every CPU; needs nothing that is not Latenz' own."""

    name = "spin"
    settings_type = SpinSettings

    @classmethod
    def missing(cls) -> Obstacle | None:
        """Return that the load's program is not here, or None if it is."""
        return missing_own_program(_PROGRAM)

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        cpus = format_cpu_list(tuple(sorted(self.cpus)))
        return [*own_program(_PROGRAM), f"--cpus={cpus}"]

    def account(self) -> dict[str, Any]:
        """Return how much CPU time each thread got."""
        try:
            told = json.loads((self.folder / self.output_file).read_bytes())
        except (OSError, ValueError):  # it was killed
            return {}
        return {key: told[key] for key in ("program_version", "duration_ns", "threads")}
