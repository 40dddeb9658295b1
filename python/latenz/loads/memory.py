"""Memory bandwidth, by Latenz' own load with the kernels of STREAM."""

import json
from typing import Any, Literal

from pydantic import Field

from latenz.loads.base import Stressor
from latenz.measuring.settings import StressorSettings
from latenz.obstacle import Obstacle, missing_own_program
from latenz.programs import own_program
from latenz.settings import CpuList, format_cpu_list

_PROGRAM = "latenz-memory-load"


class MemorySettings(StressorSettings):
    """Load like that of `coppik2025`: STREAM, with arrays larger than the caches."""

    kind: Literal["memory"]
    spare: CpuList = ()
    """CPUs to leave to what is measured, as long as others are left for the load."""
    array_bytes: int = Field(default=32 * 1024 * 1024, ge=4096, le=1 << 40)
    """Size of each of the three arrays of each CPU."""
    kernel: Literal["copy", "scale", "add", "triad"] | None = None
    """The kernel of STREAM; None: all in turn."""


class MemoryLoad(Stressor[MemorySettings]):
    """Reads and writes large arrays on every CPU, and tells the bandwidth it reached."""

    name = "memory"
    settings_type = MemorySettings

    @classmethod
    def missing(cls) -> Obstacle | None:
        """Return that the load's program is not here, or None if it is."""
        return missing_own_program(_PROGRAM)

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        settings = self.settings
        cpus = [f"--cpus={format_cpu_list(self._cpus())}"]
        kernel = [f"--kernel={settings.kernel}"] if settings.kernel else []
        program = own_program(_PROGRAM)
        return [*program, f"--array-bytes={settings.array_bytes}", *cpus, *kernel]

    def _cpus(self) -> tuple[int, ...]:
        chosen = tuple(sorted(self.cpus))
        return tuple(cpu for cpu in chosen if cpu not in self.settings.spare) or chosen

    @property
    def notes(self) -> tuple[str, ...]:
        """What the sample sets must say about the load."""
        shared = set(self._cpus()) & set(self.settings.spare)
        if not shared:
            return ()
        cpus = format_cpu_list(tuple(shared))
        return (f"no other CPU was left for the load: it ran on CPU {cpus}, which was measured",)

    def account(self) -> dict[str, Any]:
        """Return the bytes moved, the bandwidth, and both for each CPU and kernel."""
        try:
            told = json.loads((self.folder / self.output_file).read_bytes())
        except (OSError, ValueError):  # it was killed
            return {}
        return {key: told[key] for key in ("program_version", "bytes", "bytes_per_s", "threads")}
