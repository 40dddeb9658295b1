"""Captures of a Vivado ILA, as `write_hw_ila_data -csv_file` writes them.

Latencies run from an edge of one probe to an edge of another, paired as in a value change dump.
The file holds sample numbers, not times: the period of the ILA's clock has to be stated. Between
two capture windows an unknown time passes, so levels and open latencies do not carry over; the
same holds for rows marked as a gap. A capture with storage qualification has left-out samples
that the file does not show: it is not to be imported.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass

from latenz.durations import parse_duration
from latenz.errors import BadInput
from latenz.importers.pairing import Pairing
from latenz.importers.sets import Spool
from latenz.importers.signals import Edge, bit_range, chosen
from latenz.importers.source import INT64_MAX, Source
from latenz.model import SampleSet

NAME = "ila"
_BASES = {"HEX": 16, "UNSIGNED": 10, "SIGNED": 10, "BINARY": 2, "OCTAL": 8}
_INDEX = ("Sample in Buffer", "Sample in Window", "TRIGGER", "GAP")
_LONGEST_VALUE = 1200
"""Digits of the widest probe Vivado allows (4096 bits) in hexadecimal, with some to spare."""


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is an ILA capture."""
    return head.lstrip(b'\xef\xbb\xbf"').startswith(b"Sample in Buffer")


@dataclass
class _Probe:
    """A watched column."""

    name: str
    column: int
    base: int
    bit: int
    edge: Edge


def read(source: Source) -> list[SampleSet]:
    """Read the one set of latencies from the start probe to the end probe."""
    period_ns = _period(source)
    rows = _rows(source)
    _, header = next(rows, (1, []))
    names = [name.strip().lstrip("\ufeff") for name in header]
    probes = _probes(source, names)
    layout = _Layout(names)
    pairing = Pairing(source.options.overlap)
    spool = Spool("t_ns", "latency_ns")
    for line, row in rows:
        if row[0].strip().startswith("Radix"):
            _take_radix(source, line, row, probes)
            continue
        sample = _take_row(source, line, row, (layout, probes, pairing))
        for begin, end in pairing.edges(sample, probes[0].edge.count, probes[1].edge.count):
            if end * period_ns > INT64_MAX:
                raise source.bad("the time does not fit in 64 bits of nanoseconds", line)
            spool.append(begin * period_ns, (end - begin) * period_ns)
        for probe in probes:
            probe.edge.count = 0
    if not spool.rows:
        raise source.bad(f"holds no latency from {probes[0].name} to {probes[1].name}")
    metadata = source.metadata(
        f"{probes[0].name} to {probes[1].name}".replace("/", "."),
        tool="Vivado ILA",
        from_event=source.options.start,
        to_event=source.options.end,
        resolution_ns=period_ns,
        overlaps=pairing.overlaps,
        orphan_ends=pairing.orphan_ends,
        open_at_end=pairing.open_at_end + pairing.abandoned,
        notes=("times count samples of the buffer; gaps between windows are not in them",)
        if layout.windows > 1
        else (),
    )
    return [spool.sample_set(metadata)]


def _take_row(
    source: Source,
    line: int,
    row: list[str],
    state: "tuple[_Layout, tuple[_Probe, _Probe], Pairing]",
) -> int:
    """Take the probes' levels; return the sample number."""
    layout, probes, pairing = state
    sample, broken = layout.place(source, line, row)
    if broken:
        pairing.abandon()
    for probe in probes:
        if broken:
            probe.edge.forget()
        probe.edge.take("x" if layout.gap(row) else _level(source, line, row, probe))
    return sample


class _Layout:
    """Where sample numbers stand, and whether a row continues the one before."""

    def __init__(self, names: list[str]) -> None:
        self._window = names.index("Sample in Window") if "Sample in Window" in names else None
        self._gap = names.index("GAP") if "GAP" in names else None
        self._columns = len(names)
        self._sample = -1
        self._in_window: int | None = None
        self.windows = 1

    def place(self, source: Source, line: int, row: list[str]) -> tuple[int, bool]:
        """Return the row's sample number, and whether a new window begins."""
        if len(row) != self._columns:
            raise source.bad(f"the row has {len(row)} cells for {self._columns} columns", line)
        sample = source.count(row[0].strip(), line, "the sample number")
        if sample <= self._sample:
            raise source.bad("the sample number does not grow", line, "the file is damaged")
        broken = self._sample >= 0 and sample != self._sample + 1
        if self._window is not None:
            within = source.integer(row[self._window].strip(), line, "the sample in its window")
            broken = broken or (self._in_window is not None and within != self._in_window + 1)
            self._in_window = within
        self._sample = sample
        self.windows += broken
        return sample, broken

    def gap(self, row: list[str]) -> bool:
        """Tell whether the row is marked as holding no data."""
        return self._gap is not None and row[self._gap].strip() not in ("0", "")


def _period(source: Source) -> int:
    text = source.options.clock_period
    if not text:
        raise BadInput(
            "an ILA capture holds sample numbers, not times",
            f"{source.path} ({NAME})",
            'state the period of its clock, such as --clock-period "10 ns"',
        )
    period_ns = parse_duration(text, "--clock-period")
    if period_ns <= 0:
        raise BadInput(f"{text!r} is not a period", "--clock-period", "it must be above 0")
    return period_ns


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(content + "\n" for _, content in source.lines())
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise source.bad(f"is not readable CSV ({error})", reader.line_num + 1) from None


def _probes(source: Source, names: list[str]) -> tuple[_Probe, _Probe]:
    columns = [i for i, name in enumerate(names) if name not in _INDEX]
    signals = [names[i] for i in columns]
    found = []
    for index, falling in chosen(source.options, signals, signals, str(source.path)):
        column = columns[index]
        left, right = bit_range(names[column]) or (0, 0)
        bit = abs(right) if min(left, right) <= 0 <= max(left, right) and left != right else 0
        found.append(_Probe(names[column], column, 16, bit, Edge(falling)))
    return found[0], found[1]


def _take_radix(source: Source, line: int, row: list[str], probes: tuple[_Probe, _Probe]) -> None:
    for probe in probes:
        radix = row[probe.column].strip().upper() if probe.column < len(row) else ""
        if radix not in _BASES:
            raise source.bad(f"the radix of {probe.name} is {radix[:20]!r}", line)
        probe.base = _BASES[radix]


def _level(source: Source, line: int, row: list[str], probe: _Probe) -> str:
    text = row[probe.column].strip()
    try:
        if len(text) > _LONGEST_VALUE or (probe.base == 10 and len(text) > 40):
            raise ValueError
        return "1" if int(text, probe.base) >> probe.bit & 1 else "0"
    except ValueError:
        raise source.bad(
            f"{probe.name} is {text[:40]!r}", line, f"it must be a number of base {probe.base}"
        ) from None
