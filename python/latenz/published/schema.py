"""What the data files of `latenz.published` hold, checked when they are read.

Figures stand in them as strings, exactly as printed. They become nanoseconds by decimal
arithmetic, so nothing is rounded on the way.
"""

import re
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from latenz.durations import NANOSECONDS
from latenz.model import Handling

Statistic = Literal["n", "mean", "median", "min", "max", "jitter", "stdev"]
STATISTICS: tuple[Statistic, ...] = ("n", "mean", "median", "min", "max", "jitter", "stdev")

_NUMBER = re.compile(r"~?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(\.[0-9]+)?")
Text = Annotated[str, Field(min_length=1)]
Number = Annotated[str, Field(pattern=f"^{_NUMBER.pattern}$")]
Unit = Literal["ns", "us", "ms", "s", "min", "h"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def number(printed: str) -> Decimal | None:
    """Return the number a printed figure stands for; None if it is not a number.

    A leading "~" marks an approximate figure, a comma between groups of three digits separates
    thousands.
    """
    if not _NUMBER.fullmatch(printed):
        return None
    return Decimal(printed.removeprefix("~").replace(",", ""))


class Correction(_Strict):
    """What a printed figure should have been, in the table's unit, and why."""

    value: Number
    why: Text


class Limit(_Strict):
    """A limit the publication judges its figures by, as a duration with a unit."""

    name: Text
    limit: Text


class PrintedSet(_Strict):
    """One row of a table: the figures of one measurement."""

    name: Text
    row: Text
    """Label of the row, or the place in the text."""
    columns: str | None = None
    """Heading above the columns, where a table has several groups of them."""
    condition: Text
    stack: str | None = None
    stressor: str | None = None
    cpu: int | None = None
    n: Number | None = None
    mean: Number | None = None
    median: Number | None = None
    min: Number | None = None
    max: Number | None = None
    jitter: Number | None = None
    stdev: Number | None = None
    handled: dict[Handling, Number] | None = None
    """Share of the interrupts by how they were handled, in per cent."""
    corrected: dict[Statistic, Correction] = Field(default_factory=dict)
    remarks: dict[Statistic, Text] = Field(default_factory=dict)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Which figures the row has."""
        return tuple(name for name in STATISTICS if getattr(self, name) is not None)

    @model_validator(mode="after")
    def _comments_belong_to_figures(self) -> Self:
        printed = set(self.statistics)
        if not printed - {"n"}:
            raise ValueError(f"{self.name!r} has no figure")
        if stray := (self.corrected.keys() | self.remarks.keys()) - printed:
            raise ValueError(f"{self.name!r} comments on {sorted(stray)}, which it does not have")
        return self


class Table(_Strict):
    """One table or figure of a publication, or the figures of one section."""

    key: Annotated[str, Field(pattern="^[a-z0-9]+$")]
    place: Text
    title: Text
    headings: dict[Statistic, Text]
    unit_printed: Text
    unit: Unit
    unit_correction: str | None = None
    """Why `unit` differs from what is printed."""
    resolution: str = "1 ns"
    from_event: Text
    to_event: Text
    tool: Text
    bench: str | None = None
    machine: Text
    kernel: str | None = None
    stack: str | None = None
    deadlines: tuple[Limit, ...] = ()
    notes: tuple[Text, ...] = ()
    set: tuple[PrintedSet, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _another_unit_needs_a_reason(self) -> Self:
        differs = self.unit_printed.replace("µ", "u") != self.unit
        if differs != bool(self.unit_correction):
            raise ValueError("unit_correction is needed exactly where unit is not what is printed")
        return self

    @property
    def count(self) -> int:
        """Number of figures in the table."""
        return sum(len(printed.statistics) for printed in self.set)

    @property
    def scale(self) -> int:
        """Nanoseconds in one unit of the table."""
        return NANOSECONDS[self.unit]


class Fact(_Strict):
    """A printed figure or statement that is not a statistic of a latency."""

    name: Text
    place: Text
    printed: Text
    value: Number | None = None
    """The number it stands for, where the printed form does not follow the usual notation."""
    unit: str | None = None
    correction: str | None = None
    note: str | None = None

    @property
    def number(self) -> Decimal | None:
        """The figure as a number; None for a statement in words."""
        return number(self.value or self.printed)

    @property
    def nanoseconds(self) -> Decimal | None:
        """The figure in nanoseconds; None if it is not a time."""
        if self.number is None or self.unit not in NANOSECONDS:
            return None
        return self.number * NANOSECONDS[self.unit]


class Publication(_Strict):
    """Where the figures are from."""

    key: Annotated[str, Field(pattern="^[a-z]+[0-9]{4}$")]
    authors: Text
    title: Text
    venue: Text

    @property
    def citation(self) -> str:
        """Authors, title and venue on one line."""
        return f"{self.authors}: {self.title}, {self.venue}"


class PublicationFile(_Strict):
    """One data file: everything taken over from one publication."""

    publication: Publication
    table: tuple[Table, ...] = ()
    fact: tuple[Fact, ...] = ()

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        for kind in (
            [table.key for table in self.table],
            [printed.name for table in self.table for printed in table.set],
            [fact.name for fact in self.fact],
        ):
            if repeated := {name for name in kind if kind.count(name) > 1}:
                raise ValueError(f"repeated: {sorted(repeated)}")
        return self
