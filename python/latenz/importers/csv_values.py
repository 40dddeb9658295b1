"""Plain CSV with the unit in the header, and the CSV that Latenz exports.

`latency_us`, `latency (us)` and `latency [us]` name a column of latencies in microseconds; each
such column is a sample set. A column named time, t, timestamp or when, with a unit, says when. A
column `missed` counts activations left out after a sample, and with times all a multiple of one
period apart (those at which activations were due, or ran) that is the period; a column `count`
makes the file a histogram, with the width of its cells in `width_ns` or one unit wide. Values are
read as exact decimals; what is finer than 1 ns is rounded down, and a note says so. Samples that
are all whole microseconds, or whole ones of a coarser unit in the header, have that resolution.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd
from typing import Any

from latenz.durations import NANOSECONDS, format_duration
from latenz.importers.bundle import Described, described
from latenz.importers.sets import Spool
from latenz.importers.source import INT64_MAX, LONGEST_LINE, Source
from latenz.model import SampleSet

NAME = "csv"
DESCRIPTION = "latenz_metadata"
"""The column that describes a sample set in its first row, in the CSV that Latenz exports."""
_UNIT = "ns|us|µs|μs|ms|s"
_LABEL = re.compile(
    rf"((?:[^\W\d][\w .>/-]{{0,200}}?)?)\s*(?:[\[(]\s*({_UNIT})\s*[\])]|(?:^|[_ ])({_UNIT}))"
)
TIMES = frozenset(
    (
        "t",
        "time",
        "timestamp",
        "time_stamp",
        "when",
        "sample_time",
        "due",
        "zeit",
        "temps",
        "tiempo",
    )
)
"""What a column is called that says when."""
_REMEDY = "name a column with its unit, such as latency_us, or state --unit"
_MOST_COLUMNS = 4096
_LONGEST_LABEL = 300
_US_NS = 1000
_FEWEST_DIFFERENT = 3
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,40},\d{1,40}(?:[eE][+-]?\d{1,3})?\s*")
_PLAIN = re.compile(r"(-?)([0-9]{1,18})(?:\.([0-9]{1,18}))?")


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is CSV with a unit in its header."""
    text = head.decode("utf-8", errors="replace").lstrip("\ufeff")
    if "\0" in text:
        return False
    first = next((line for line in text.splitlines() if line.strip() and line[0] != "#"), "")
    words = [word.strip().strip('"') for word in re.split(r"[,;\t]", first[:100_000])]
    return DESCRIPTION in words or any(
        with_unit(word) is not None or word.lower().startswith("latency") for word in words
    )


def with_unit(label: str) -> tuple[str, int] | None:
    """Split a column's label into its name and its unit in nanoseconds; None without a unit."""
    match = _LABEL.fullmatch(label.strip()) if len(label) <= _LONGEST_LABEL else None
    return (match[1].strip(" _"), NANOSECONDS[match[2] or match[3]]) if match else None


def read(source: Source) -> list[SampleSet]:
    """Read the sets of a CSV file."""
    rows = csv_rows(source)
    line, header = next(rows, (1, []))
    names = [name.strip().lstrip("\ufeff") for name in header]
    if len(names) > _MOST_COLUMNS:
        raise source.bad(f"has {len(names)} columns", line, f"at most {_MOST_COLUMNS} are read")
    if len(set(names)) != len(names):
        raise source.bad("two columns have the same name", line)
    if DESCRIPTION in names:
        return _read_own(source, names, rows)
    return _read_plain(source, line, names, rows)


def csv_rows(source: Source, comments: str = "#") -> Iterator[tuple[int, list[str]]]:
    """Give each row with its line; the first row that is not a comment tells the delimiter.

    Where that is not a comma, numbers may have a decimal comma; rows have points.

    Args:
        source: The file.
        comments: Characters that lines begin with which are comments.
    """
    csv.field_size_limit(LONGEST_LINE)
    lines = (line for line in source.lines() if line[1].strip() and line[1][0] not in comments)
    number, first = next(lines, (0, ""))
    delimiter = max(",;\t", key=first.count)

    def contents() -> Iterator[str]:
        nonlocal number
        yield first + "\n"
        for number, content in lines:  # noqa: B007 - the line of the row that is being read
            yield content + "\n"

    try:
        for row in csv.reader(contents(), delimiter=delimiter, skipinitialspace=True):
            yield number, row if delimiter == "," else [_with_point(cell) for cell in row]
    except csv.Error as error:
        raise source.bad(f"is not readable CSV ({error})", number) from None


def _with_point(cell: str) -> str:
    return cell.replace(",", ".", 1) if _DECIMAL_COMMA.fullmatch(cell) else cell


@dataclass
class _Own:
    """A set that Latenz exported, as its rows are read."""

    described: Described
    spool: Spool
    samples: int = 0

    def append(self, source: Source, line: int, values: list[int]) -> None:
        """Take one row."""
        self.spool.append(*values)
        if self.described.form == "histogram":
            row = dict(zip(self.spool.columns, values, strict=True))
            if row["count"] < 0 or row["width_ns"] < 1:
                raise source.bad("is not a cell of a histogram", line, "the file is damaged")
            self.samples += row["count"]

    def sample_set(self, source: Source) -> SampleSet:
        """Return the set, unless rows are missing."""
        known = self.described.metadata
        told = known.reported.n if known.reported else None
        kept = self.samples + known.beyond_range
        if self.described.form == "histogram" and told not in (None, kept):
            raise source.bad(f"{known.name}: the rows hold {kept} of {told} samples")
        return self.spool.sample_set(known, self.described.form)


def _read_own(
    source: Source, names: list[str], rows: Iterator[tuple[int, list[str]]]
) -> list[SampleSet]:
    """Read what Latenz exported: the first row of each set holds the set's description."""
    found: list[_Own] = []
    description = names.index(DESCRIPTION)
    position = names.index("sample_set") if "sample_set" in names else None
    where: list[int] = []
    for line, row in rows:
        if len(row) != len(names):
            raise source.bad(f"the row has {len(row)} cells for {len(names)} columns", line)
        if row[description]:
            one = described(source, row[description], line)
            if missing := [column for column in one.columns if column not in names]:
                raise source.bad(f"the column {missing[0]} is missing", line)
            where = [names.index(column) for column in one.columns]
            found.append(_Own(one, Spool(*one.columns)))
        if not found:
            raise source.bad("the first row has no description of its sample set", line)
        own = found[-1]
        if position is not None and row[position] != own.described.metadata.name:
            raise source.bad(f"the row is not of {own.described.metadata.name}", line)
        if any(row[i] for i in where):
            own.append(source, line, [source.integer(row[i], line, names[i]) for i in where])
    return [own.sample_set(source) for own in found]


@dataclass
class _Columns:
    """The columns of a plain CSV file: position and unit."""

    latencies: list[tuple[int, str, int]] = field(default_factory=list)
    time: tuple[int, int] | None = None
    width: tuple[int, int] | None = None
    missed: int | None = None
    count: int | None = None
    rounded: int = 0


def _columns(source: Source, line: int, names: list[str]) -> _Columns:
    found = _Columns()
    for position, name in enumerate(names):
        base, unit_ns = with_unit(name) or (name, source.options.unit_ns)
        if base in ("missed", "count"):
            setattr(found, base, position)
        elif unit_ns is None:
            continue
        elif base.lower() in TIMES and found.time is None:
            found.time = (position, unit_ns)
        elif base.lower() == "width":
            found.width = (position, unit_ns)
        elif with_unit(name) or len(names) == 1 or "latency" in base.lower():
            found.latencies.append((position, base or "latency", unit_ns))
    if not found.latencies:
        raise source.bad(
            f"no column of latencies has a unit ({', '.join(names)[:200]})", line, _REMEDY
        )
    if len({base for _, base, _ in found.latencies}) != len(found.latencies):
        raise source.bad("two columns of latencies have the same name", line)
    if found.count is not None and len(found.latencies) > 1:
        raise source.bad("one column of counts belongs to several of latencies", line)
    return found


@dataclass
class _Pace:
    """The period of activations, if all due times agree on one: at least three of them."""

    _due_ns: int | None = None
    _missed: int = 0
    _periods: set[int] = field(default_factory=set)
    _gaps: int = 0

    def add(self, due_ns: int, missed: int) -> None:
        """Take the next due time, and how many activations were left out after it."""
        if self._due_ns is not None and len(self._periods) < 2:
            period_ns, rest = divmod(due_ns - self._due_ns, self._missed + 1)
            self._periods |= {period_ns, period_ns + rest}  # two of them if it is not whole
            self._gaps += 1
        self._due_ns, self._missed = due_ns, missed

    @property
    def period_ns(self) -> int | None:
        """The period; None without one."""
        if len(self._periods) != 1 or self._gaps < 2:
            return None
        return max(0, min(self._periods)) or None


@dataclass
class _Paces:
    """Times may be those at which activations were due, or those at which they ran."""

    due: _Pace = field(default_factory=_Pace)
    ran: _Pace = field(default_factory=_Pace)

    def add(self, row: tuple[int, ...]) -> None:
        """Take the next row: time, latency, and activations left out."""
        t_ns, latency_ns, missed = row
        self.due.add(t_ns, missed)
        self.ran.add(t_ns - latency_ns, missed)

    @property
    def period_ns(self) -> int | None:
        """The period; None where the times do not tell one."""
        return self.due.period_ns or self.ran.period_ns


@dataclass
class _Step:
    """The resolution that shows in samples: a unit that all of three or more values are whole in.

    Values of 1 ns resolution are all whole microseconds by chance once in 10^9 such files.

    Args:
        unit_ns: The unit of the column's header.
    """

    unit_ns: int
    _common_ns: int = 0
    _different: set[int] = field(default_factory=set)

    def add(self, latency_ns: int) -> None:
        """Take the next latency."""
        if self._common_ns % _US_NS == 0:  # else it is finer, whatever follows
            self._common_ns = gcd(self._common_ns, latency_ns)
            if len(self._different) < _FEWEST_DIFFERENT:
                self._different.add(latency_ns)

    @property
    def found_ns(self) -> int:
        """The resolution; 1 where none shows."""
        if len(self._different) < _FEWEST_DIFFERENT:
            return 1
        coarser = (self.unit_ns, _US_NS) if self.unit_ns > _US_NS else (_US_NS,)
        return next((step for step in coarser if self._common_ns % step == 0), 1)

    @property
    def known(self) -> dict[str, Any]:
        """What the set's metadata say of it."""
        if self.found_ns == 1:
            return {}
        step = format_duration(self.found_ns)
        note = f"all latencies are whole multiples of {step}: v stands for all from v to v + {step}"
        return {"notes": (note,), "resolution_ns": self.found_ns}


def _read_plain(
    source: Source, line: int, names: list[str], rows: Iterator[tuple[int, list[str]]]
) -> list[SampleSet]:
    columns = _columns(source, line, names)
    extra = [] if columns.time is None else ["t_ns"]
    last = ["width_ns", "count"] if columns.count is not None else []
    last += ["missed"] if columns.missed is not None and not last else []
    spools = [Spool(*extra, "latency_ns", *last) for _ in columns.latencies]
    paces = [_Paces() for _ in columns.latencies]
    steps = [_Step(unit_ns) for _, _, unit_ns in columns.latencies]
    paced = columns.time is not None and last == ["missed"]
    for line, row in rows:
        if len(row) > len(names):
            raise source.bad(
                f"the row has {len(row)} cells for {len(names)} columns",
                line,
                "where numbers have a decimal comma, separate columns by ; or tabs",
            )
        for spool, pace, step, (position, base, unit_ns) in zip(
            spools, paces, steps, columns.latencies, strict=True
        ):
            if position < len(row) and row[position].strip():
                latency = _ns(source, columns, row[position], unit_ns, line, base)
                rest = _rest(source, columns, row, unit_ns, line)
                values = (*_when(source, columns, row, line), latency, *rest)
                spool.append(*values)
                step.add(latency)
                if paced:
                    pace.add(values)
    rounded = (f"{columns.rounded} values are finer than 1 ns and were rounded down",)
    found = []
    for spool, pace, step, (_, base, _) in zip(
        spools, paces, steps, columns.latencies, strict=True
    ):
        whole = {"notes": rounded} if columns.rounded else {}
        if columns.count is None and not columns.rounded:
            whole = step.known
        known = source.metadata(base.replace("/", "."), period_ns=pace.period_ns, **whole)
        found.append(spool.sample_set(known, "samples" if columns.count is None else "histogram"))
    return found


def _ns(source: Source, columns: _Columns, text: str, unit_ns: int, line: int, what: str) -> int:
    if plain := _PLAIN.fullmatch(text):
        sign, whole, fraction = plain.groups()
        digits = int(whole + fraction) if fraction else int(whole)
        scale = 10 ** len(fraction) if fraction else 1
        value, finer = divmod((-digits if sign else digits) * unit_ns, scale)
        columns.rounded += finer != 0
        if abs(value) <= INT64_MAX:
            return value
    exact = source.exact(text, unit_ns, line, what[:80])
    columns.rounded += exact.denominator != 1
    return exact.numerator // exact.denominator


def _cell(source: Source, row: list[str], position: int, line: int, what: str) -> str:
    if position >= len(row) or not row[position].strip():
        raise source.bad(f"{what} is missing", line)
    return row[position].strip()


def _when(source: Source, columns: _Columns, row: list[str], line: int) -> tuple[int, ...]:
    if columns.time is None:
        return ()
    position, unit_ns = columns.time
    return (
        _ns(source, columns, _cell(source, row, position, line, "time"), unit_ns, line, "time"),
    )


def _rest(
    source: Source, columns: _Columns, row: list[str], unit_ns: int, line: int
) -> tuple[int, ...]:
    if columns.count is not None:
        count = source.count(_cell(source, row, columns.count, line, "count"), line, "count")
        if columns.width is None:
            return (unit_ns, count)
        position, width_unit_ns = columns.width
        text = _cell(source, row, position, line, "width")
        width = source.whole(text, width_unit_ns, line, "width")
        if width < 1:
            raise source.bad(f"the width is {width} ns", line, "it must be above 0")
        return (width, count)
    if columns.missed is not None:
        text = _cell(source, row, columns.missed, line, "missed")
        return (source.count(text, line, "missed"),)
    return ()
