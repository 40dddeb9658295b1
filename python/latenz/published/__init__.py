"""The figures of the five publications that Latenz builds on, as reference data.

Each publication is one TOML file beside this module. Every figure stands there as printed, with
its place; where a publication is wrong or loose, the correction and its reason stand beside it,
and the sample sets carry both: the corrected value, and a note that says so.

Names are `<publication>.<table>`, such as `alonso2021.table1`, and `<publication>.facts` for
figures that are no statistics of a latency (code sizes, shares, limits).
"""

import tomllib
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from pydantic import ValidationError

from latenz.durations import parse_duration
from latenz.errors import BadInput
from latenz.model import Deadline, Handling, Metadata, Reported, SampleSet, TimeBase
from latenz.published.schema import (
    Fact,
    PrintedSet,
    Publication,
    PublicationFile,
    Statistic,
    Table,
    number,
)

__all__ = ["Value", "fact_names", "facts", "find", "load", "names", "publications", "values"]

_FACTS = "facts"


@dataclass(frozen=True)
class Value:
    """One printed figure.

    Attributes:
        set_name: The measurement it belongs to.
        row: Label of its row, as printed.
        column: Label of its column, as printed, with the heading above it if there is one.
        statistic: What it is.
        printed: The figure as printed.
        unit: The unit as printed; None for counts.
        exact: The figure in nanoseconds (counts: as it is), without corrections to it; where the
            printed unit is wrong, in the right one.
        corrected: What it should have been, in nanoseconds; None if nothing is wrong with it.
        remark: Why it was corrected, or what else to know of it.
    """

    set_name: str
    row: str
    column: str
    statistic: Statistic
    printed: str
    unit: str | None
    exact: Decimal
    corrected: Decimal | None
    remark: str | None

    @property
    def best(self) -> Decimal:
        """The corrected figure where there is one, else the printed one."""
        return self.exact if self.corrected is None else self.corrected


def publications() -> list[PublicationFile]:
    """Return all publications, sorted by key."""
    return list(_files().values())


def names() -> list[str]:
    """Return the names of all tables, such as "alonso2021.table1"."""
    return [f"{key}.{table.key}" for key, file in _files().items() for table in file.table]


def fact_names() -> list[str]:
    """Return the names of all collections of facts, such as "beckert2014.facts"."""
    return [f"{key}.{_FACTS}" for key, file in _files().items() if file.fact]


def find(name: str) -> tuple[Publication, Table]:
    """Return a table and its publication.

    Raises:
        BadInput: There is no such table; the nearest names are told.
    """
    key, _, table_key = name.partition(".")
    if key in _files():
        for table in _files()[key].table:
            if table.key == table_key:
                return _files()[key].publication, table
    raise _unknown(name, names())


def facts(name: str) -> tuple[Fact, ...]:
    """Return the figures of a publication that are no statistics of a latency.

    Raises:
        BadInput: There is no such collection; the nearest names are told.
    """
    if name not in fact_names():
        raise _unknown(name, fact_names())
    return _files()[name.removesuffix("." + _FACTS)].fact


def values(name: str) -> list[Value]:
    """Return every figure of a table.

    Raises:
        BadInput: There is no such table; the nearest names are told.
    """
    _, table = find(name)
    return [value for printed in table.set for value in _values(table, printed)]


def load(name: str) -> list[SampleSet]:
    """Return a table as sample sets that hold no samples, only the reported figures.

    A corrected figure takes the place of the printed one; `Metadata.notes` tells each correction.

    Raises:
        BadInput: There is no such table; the nearest names are told.
    """
    publication, table = find(name)
    return [_sample_set(publication, table, printed) for printed in table.set]


def _unknown(name: str, known: list[str]) -> BadInput:
    near = get_close_matches(name, known, n=3, cutoff=0.5) or known
    return BadInput(
        f"there are no published values {name!r}", "published", "near: " + ", ".join(near)
    )


@cache
def _files() -> dict[str, PublicationFile]:
    entries = sorted(files(__package__).iterdir(), key=lambda entry: entry.name)
    read = [
        _read(entry.name, entry.read_text("utf-8"))
        for entry in entries
        if entry.name.endswith(".toml")
    ]
    return {file.publication.key: file for file in read}


def _read(file_name: str, text: str) -> PublicationFile:
    try:
        return PublicationFile.model_validate(tomllib.loads(text))
    except ValidationError as mistake:
        first = mistake.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise BadInput(first["msg"], f"{file_name}: {field}", "restore the file") from mistake
    except tomllib.TOMLDecodeError as mistake:
        raise BadInput(f"not TOML: {mistake}", file_name, "restore the file") from mistake


def _values(table: Table, printed: PrintedSet) -> list[Value]:
    return [_value(table, printed, statistic) for statistic in printed.statistics]


def _value(table: Table, printed: PrintedSet, statistic: Statistic) -> Value:
    figure: str = getattr(printed, statistic)
    scale = 1 if statistic == "n" else table.scale
    correction = printed.corrected.get(statistic)
    heading = table.headings.get(statistic, statistic)
    remarks = (correction.why if correction else None, printed.remarks.get(statistic))
    return Value(
        set_name=printed.name,
        row=printed.row,
        column=f"{printed.columns}, {heading}" if printed.columns else heading,
        statistic=statistic,
        printed=figure,
        unit=None if statistic == "n" else table.unit_printed,
        exact=_exact(figure) * scale,
        corrected=_exact(correction.value) * scale if correction else None,
        remark=" ".join(remark for remark in remarks if remark) or None,
    )


def _exact(figure: str) -> Decimal:
    value = number(figure)
    if value is None:
        raise BadInput(f"{figure!r} is not a number", "published", "write it as printed")
    return value


def _sample_set(publication: Publication, table: Table, printed: PrintedSet) -> SampleSet:
    figures = _values(table, printed)
    place = f"{publication.key} {table.place}"
    metadata = Metadata(
        name=f"{place}, {printed.name}",
        time_base=TimeBase.PUBLISHED,
        from_event=table.from_event,
        to_event=table.to_event,
        tool=table.tool,
        bench=table.bench,
        stack=printed.stack or table.stack,
        stressor=printed.stressor,
        condition=printed.condition,
        cpu=printed.cpu,
        machine=table.machine,
        kernel=table.kernel,
        resolution_ns=parse_duration(table.resolution, place),
        reported=_reported(figures),
        handled=_handled(printed),
        deadlines=tuple(
            Deadline(name=limit.name, limit_ns=parse_duration(limit.limit, place), allowed="0")
            for limit in table.deadlines
        ),
        source=f"{publication.citation}; {table.place}, {printed.row}",
        notes=(*_notes(table, figures), *_approximate_shares(printed)),
    )
    return SampleSet.from_columns(metadata)


def _reported(figures: list[Value]) -> Reported:
    """Fill the reported figures; counts and extremes are whole, or pydantic refuses them."""
    fields: dict[str, int | float] = {}
    for figure in figures:
        field = "n" if figure.statistic == "n" else f"{figure.statistic}_ns"
        whole = figure.best == int(figure.best)
        fields[field] = int(figure.best) if whole else float(figure.best)
    return Reported.model_validate(fields)


def _handled(printed: PrintedSet) -> dict[Handling, float] | None:
    if printed.handled is None:
        return None
    return {handling: float(_exact(share) / 100) for handling, share in printed.handled.items()}


def _approximate_shares(printed: PrintedSet) -> list[str]:
    return [
        f"share of {handling} interrupts printed as approximate ({share} %)"
        for handling, share in (printed.handled or {}).items()
        if share.startswith("~")
    ]


def _notes(table: Table, figures: list[Value]) -> tuple[str, ...]:
    notes = list(table.notes)
    if table.unit_correction:
        notes.append(
            f"unit corrected from {table.unit_printed} to {table.unit}: {table.unit_correction}"
        )
    for figure in figures:
        if figure.remark:
            corrected = (
                f" corrected to {figure.corrected} ns" if figure.corrected is not None else ""
            )
            notes.append(f"{figure.statistic} printed {figure.printed}{corrected}: {figure.remark}")
        if figure.printed.startswith("~"):
            notes.append(f"{figure.statistic} printed as approximate ({figure.printed})")
    return tuple(notes)
