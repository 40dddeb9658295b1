"""A model of what the counts of a path would take on silicon, and how far off it is.

An emulator counts instructions; it has no caches, buses or pipelines. The model gives each
instruction, exception and device access a cost, and adds what none of them explains: a fixed time
for everything outside the path, such as the way of the signal and the read that ends the
measurement. That time is fitted to some rows of a published table; the others are predicted. What
comes out is an estimate: it is not a sample of any time base and never stands among silicon values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Literal

from pydantic import Field

from latenz import published
from latenz.errors import BadInput, closest
from latenz.path.model import InterruptPath
from latenz.settings import Settings
from latenz.toml_file import read_toml


class Parameter(Settings):
    """A figure of the model, and where it is from.

    Attributes:
        value: The figure, in the unit that its name says.
        origin: `published` by someone who measured it, or `assumed`.
        source: Where it was published, or why it is plausible.
    """

    value: float = Field(ge=0, allow_inf_nan=False)
    origin: Literal["published", "assumed"]
    source: str = Field(min_length=1)


class Calibration(Settings):
    """A core's costs.

    Attributes:
        core: Which core.
        table: The published table that the model is compared with.
        conditions: Its rows that this core is in, by the names of their conditions.
        fitted_to: Those of them that the fixed time is taken from.
        clock_mhz: Clock of the core.
        cycles_per_instruction: On average.
        exception_cycles: Of each exception's entry, and of each return from one.
        device_read_ns: Of each read of a device, which the core waits for.
        device_write_ns: Of each write to one.
    """

    core: str = Field(min_length=1)
    table: str = Field(min_length=1)
    conditions: tuple[str, ...] = Field(min_length=1)
    fitted_to: tuple[str, ...] = Field(min_length=1)
    clock_mhz: Parameter
    cycles_per_instruction: Parameter
    exception_cycles: Parameter
    device_read_ns: Parameter
    device_write_ns: Parameter

    def parameters(self) -> dict[str, Parameter]:
        """Return every figure by its name."""
        found = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in found.items() if isinstance(value, Parameter)}


@dataclass(frozen=True)
class Estimate:
    """What a path would take, in nanoseconds: a model's answer, not a measurement.

    Attributes:
        instructions_ns: For its instructions.
        exceptions_ns: For entries into and returns from exceptions.
        devices_ns: For accesses to devices.
        fixed_ns: For what is outside of the path.
    """

    instructions_ns: float
    exceptions_ns: float
    devices_ns: float
    fixed_ns: float

    @property
    def total_ns(self) -> float:
        """All of it."""
        return self.instructions_ns + self.exceptions_ns + self.devices_ns + self.fixed_ns


@dataclass(frozen=True)
class Comparison:
    """A row of the published table beside the model.

    Attributes:
        condition: Which row.
        published_ns: Its average.
        estimate: The model's answer.
        fitted: Whether the model was fitted to this row, which then shows nothing.
    """

    condition: str
    published_ns: float
    estimate: Estimate
    fitted: bool

    @property
    def error_percent(self) -> float:
        """How far the model is from the published average; above 0: too high."""
        return 100 * (self.estimate.total_ns / self.published_ns - 1)


@cache
def calibrations() -> dict[str, Calibration]:
    """Return the calibrations that come with Latenz, by their names."""
    folder = Path(str(files("latenz.path"))) / "calibration"
    return {path.stem: calibration(path) for path in sorted(folder.glob("*.toml"))}


def calibration(path: Path) -> Calibration:
    """Read a calibration.

    Raises:
        BadInput: The file cannot be read, is wrong, or names rows that its table does not have.
    """
    read = read_toml(path, Calibration, "a calibration")
    found = read.content
    averages = _averages(found.table)
    for field in ("conditions", "fitted_to"):
        known = averages if field == "conditions" else found.conditions
        for name in getattr(found, field):
            if name not in known:
                raise BadInput(f"{name!r} is not a row", read.where((field,)), closest(name, known))
    if found.clock_mhz.value == 0:
        raise BadInput("0 is not a clock", read.where(("clock_mhz", "value")), "give it in MHz")
    return found


def estimate(core: Calibration, path: InterruptPath, fixed_ns: float = 0.0) -> Estimate:
    """Return what a path would take on a core; what other CPUs did in the emulator is left out."""
    instructions = sum(segment.instructions for segment in path.own())
    exceptions = path.exception_entries + path.exception_returns
    cycle_ns = 1000 / core.clock_mhz.value
    return Estimate(
        instructions_ns=instructions * core.cycles_per_instruction.value * cycle_ns,
        exceptions_ns=exceptions * core.exception_cycles.value * cycle_ns,
        devices_ns=path.device_reads * core.device_read_ns.value
        + path.device_writes * core.device_write_ns.value,
        fixed_ns=fixed_ns,
    )


def compare(core: Calibration, paths: Mapping[str, InterruptPath]) -> list[Comparison]:
    """Put the model beside the published table.

    Args:
        core: The core of the table's rows.
        paths: The usual path of each condition, by the condition's name.

    Returns:
        A comparison for each row of the core whose path is there; empty if a row is missing that
        the model is fitted to.
    """
    averages = _averages(core.table)
    if not all(name in paths for name in core.fitted_to):
        return []
    fixed_ns = fmean(
        averages[name] - estimate(core, paths[name]).total_ns for name in core.fitted_to
    )
    return [
        Comparison(
            condition=name,
            published_ns=averages[name],
            estimate=estimate(core, paths[name], fixed_ns),
            fitted=name in core.fitted_to,
        )
        for name in core.conditions
        if name in paths
    ]


def _averages(table: str) -> dict[str, float]:
    """Return the published average of each row, in nanoseconds."""
    return {
        one.metadata.condition: one.metadata.reported.mean_ns
        for one in published.load(table)
        if one.metadata.condition and one.metadata.reported and one.metadata.reported.mean_ns
    }
