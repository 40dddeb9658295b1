"""Output of Xenomai's `latency`: the table, its histograms (`-h`), and the gnuplot file (`-g`).

What the tool does and its output does not say: a histogram has a fixed number of cells (300
unless `-H`), the last of which also counts everything larger; the statistics under `HSS` are
computed on the numbers of the cells, so that a latency beyond the last cell makes the printed
average and deviation too small; latencies below zero are counted under their absolute value; the
gnuplot file holds each count plus one and two extra points at the ends.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction

from latenz.importers.sets import cells_set, check_bounds, check_total, split_last_cell
from latenz.importers.source import Source, decimal
from latenz.model import Metadata, Reported, SampleSet

NAME = "xenomai"
CELLS = 300
"""The tool's default number of histogram cells."""
_CELL_NS = 1000
_TIME = r" *(-?\d+\.\d{3})"
_RTD = re.compile(rf"RTD\|{_TIME}\|{_TIME}\|{_TIME}\| *(\d+)\|(?: *(\d+)\|)?{_TIME}\|{_TIME}\s*")
_RTS = re.compile(
    rf"RTS\|{_TIME}\|{_TIME}\|{_TIME}\| *(\d+)\|(?: *(\d+)\|)? *(\d+:\d+:\d+)/\d+:\d+:\d+\s*"
)
_HSD = re.compile(r"HSD\| *(min|avg|max)\| *(\d+) *- *(\d+) *\| *(\d+)\s*")
_HSS = re.compile(r"HSS\| *(min|avg|max)\| *(\d+)\| *([^\s|]{1,20})\| *([^\s|]{1,20})\s*")
_PERIOD = re.compile(r"== Sampling period: (\d+(?:\.\d+)?) us\s*")
_MODE = re.compile(r"== Test mode: (.{1,80}?)\s*")
_POINT = re.compile(rb"-?\d+(?:\.\d+)?(?:e[+-]\d+)? \d+")


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is output of Xenomai's `latency`."""
    table = re.search(rb"^(?:RT[HDST]|HS[HSD])\||^== Sampling period: ", head, re.MULTILINE)
    return table is not None or _is_plot(head)


def _is_plot(head: bytes) -> bool:
    """Three points, the first with count 1 and half a cell before the second."""
    lines = head.split(b"\n", 3)[:3]
    if len(lines) < 3 or not all(_POINT.fullmatch(line.rstrip(b"\r")) for line in lines):
        return False
    points = [[decimal(word.decode()) for word in line.split()] for line in lines]
    (x0, y0), (x1, _), (x2, _) = points
    if x0 is None or x1 is None or x2 is None:
        return False
    return y0 == 1 and x1 > x0 and (x2 - x1 == 2 * (x1 - x0) or x2 - x1 == x1 - x0)


def read(source: Source) -> list[SampleSet]:
    """Read the one set of the output."""
    return [_read_plot(source) if _is_plot(source.head()) else _read_table(source)]


@dataclass
class _Table:
    """What the lines told so far; times in nanoseconds."""

    mode: str | None = None
    period_ns: int | None = None
    seconds: list[tuple[int, int, int, int]] = field(default_factory=list)
    """The latest RTD row: line, best, worst and overruns so far."""
    final: tuple[int, int, int, int, int] | None = None
    """The RTS row: line, minimum, average, maximum, overruns."""
    extremes: dict[int, tuple[int, int]] = field(default_factory=dict)
    cells: dict[int, int] = field(default_factory=dict)
    statistics: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    damaged: list[int] = field(default_factory=list)
    widest: tuple[int, int, int] | None = None
    """Best and worst over all RTD rows, and the line of the worst."""


def _read_table(source: Source) -> SampleSet:
    table = _Table()
    for line, content in source.lines():
        _take_line(source, table, line, content)
    known = source.metadata(
        "latency",
        tool="xenomai latency",
        stack="xenomai",
        from_event=f"{table.mode or 'task'} due",
        to_event=f"{table.mode or 'task'} runs",
        period_ns=table.period_ns,
    )
    figures, notes = _figures(source, table)
    low, high = figures.min_ns, figures.max_ns
    check_bounds(source, low, high, None, "the table")
    return _with_cells(source, table, known, figures, notes)


def _take_line(source: Source, table: _Table, line: int, content: str) -> None:
    if match := _RTD.fullmatch(content):
        best, worst = (source.whole(match[g], 1000, line, "a latency") for g in (6, 7))
        overruns = source.count(match[4], line, "overrun")
        table.seconds = [(line, best, worst, overruns)]
        low, high, where = table.widest or (best, worst, line)
        table.widest = (min(low, best), max(high, worst), line if worst > high else where)
    elif match := _RTS.fullmatch(content):
        if table.final:
            raise source.bad("a second RTS row", line, "import one output at a time")
        low, mean, high = (source.whole(match[g], 1000, line, "a latency") for g in (1, 2, 3))
        table.final = (line, low, mean, high, source.count(match[4], line, "overrun"))
    elif match := _HSD.fullmatch(content):
        _take_cell(source, table, line, match)
    elif match := _HSS.fullmatch(content):
        n = source.count(match[2], line, "the number of samples")
        table.statistics[match[1]] = (n, match[3], match[4])
    elif match := _PERIOD.fullmatch(content):
        table.period_ns = source.whole(match[1], 1000, line, "the sampling period") or None
    elif match := _MODE.fullmatch(content):
        table.mode = match[1]
    elif re.match(r"(?:RTD|HSS)\||\d[\d ]*\|", content):
        table.damaged.append(line)
    elif re.match(r"(?:RTS|HSD)\|", content):
        raise source.bad("the row is damaged", line, "a row is not to be wrapped or cut")


def _take_cell(source: Source, table: _Table, line: int, match: re.Match[str]) -> None:
    """Only `avg` counts every latency; `min` and `max` hold one value for each second."""
    if match[1] != "avg":
        return
    cell = source.whole(match[2], _CELL_NS, line, "the cell")
    if source.whole(match[3], _CELL_NS, line, "the cell") != cell + _CELL_NS:
        raise source.bad("the cell is not one wide", line, "the row is damaged")
    if cell in table.cells:
        raise source.bad("the cell comes twice", line, "import one output at a time")
    table.cells[cell] = source.count(match[4], line, "the count")


def _figures(source: Source, table: _Table) -> tuple[Reported, list[str]]:
    notes = []
    if table.damaged:
        lines = ", ".join(str(line) for line in table.damaged[:10])
        more = "" if len(table.damaged) <= 10 else f" and {len(table.damaged) - 10} more"
        notes.append(f"damaged rows were left out: line {lines}{more}")
    n = table.statistics["avg"][0] if "avg" in table.statistics else None
    if table.final:
        _, low, mean, high, _ = table.final
        if table.widest and (table.widest[1] > high or table.widest[0] < low):
            notes.append(
                f"line {table.widest[2]} speaks of latencies outside the final row "
                f"({table.widest[0]} to {table.widest[1]} ns): rows of another run are among these"
            )
        notes.append("the tool's average is that of its integer averages of each second")
        return Reported(n=n, mean_ns=mean, min_ns=low, max_ns=high), notes
    if not table.seconds:
        raise source.bad("no whole RTD or RTS row", remedy="import the whole output")
    _, best, worst, _ = table.seconds[-1]
    notes.append("the final row (RTS) is missing: minimum and maximum up to the last row kept")
    return Reported(n=n, min_ns=best, max_ns=worst), notes


def _with_cells(
    source: Source, table: _Table, known: Metadata, figures: Reported, notes: list[str]
) -> SampleSet:
    overruns = table.final[4] if table.final else table.seconds[-1][3]
    cells = {cell: count for cell, count in table.cells.items() if count}
    changes: dict[str, object] = {"missed_periods": overruns}
    if "avg" in table.statistics:
        _, mean, deviation = table.statistics["avg"]
        notes.append(
            f"HSS average {mean} and deviation {deviation} are of cell numbers, of which the last "
            "absorbs larger latencies: at most lower bounds"
        )
    low, high = figures.min_ns or 0, figures.max_ns or 0
    if cells and not _one_microsecond_cells(cells, low, high):
        notes.append("the histogram is left out: its cells are not 1 us wide (option -B)")
        cells = {}
    if cells:
        total = check_total(source, cells, None, "the histogram")
        if figures.n not in (None, total):
            raise source.bad(f"the histogram holds {total} samples, HSS says {figures.n}")
        figures = figures.model_copy(update={"n": total})
        beyond, beyond_from = split_last_cell(cells, high, _CELL_NS)
        changes |= {"beyond_range": beyond, "beyond_range_from_ns": beyond_from}
        changes["resolution_ns"] = _CELL_NS
        if low < 0:
            notes.append("latencies below zero are counted under their absolute value")
    changes |= {"reported": figures, "notes": tuple(notes)}
    return cells_set(known.model_copy(update=changes), cells, _CELL_NS)


def _one_microsecond_cells(cells: dict[int, int], low: int, high: int) -> bool:
    first, last = min(cells), max(cells)
    return (low < 0 or first <= low < first + _CELL_NS) and abs(high) >= last


def _read_plot(source: Source) -> SampleSet:
    """The gnuplot file: an end point, each cell's middle with its count plus one, an end point."""
    points: list[tuple[Fraction, int]] = []
    for line, content in source.lines():
        words = content.split()
        if not words:
            continue
        if len(words) != 2:
            raise source.bad("is no point", line, "a line holds a latency in us and a count")
        x_ns = source.exact(words[0], 1000, line, "the latency")
        points.append((x_ns, source.count(words[1], line, "the count")))
    if len(points) < 3:
        raise source.bad("the histogram holds no cell", remedy="the file is cut")
    width = 2 * (points[1][0] - points[0][0])
    cells = {}
    for number, (x_ns, count) in enumerate(points[1:-1]):
        lowest = points[0][0] + number * width
        # printed with 6 digits, so that large values may be rounded
        if abs(x_ns - lowest - width / 2) * 1000 > abs(x_ns) + 1 or count < 1:
            raise source.bad("does not continue the histogram", number + 2, "the file is damaged")
        if lowest.denominator != 1 or width.denominator != 1:
            raise source.bad("the cells are not whole nanoseconds", number + 2)
        if count > 1:
            cells[int(lowest)] = count - 1
    end, count = points[-1]
    expected = points[0][0] + (len(points) - 2) * width
    if count != 1 or abs(end - expected) * 1000 > abs(end):
        raise source.bad("the last point is missing", len(points), "the file is cut")
    return _plot_set(source, cells, int(width))


def _plot_set(source: Source, cells: dict[int, int], width_ns: int) -> SampleSet:
    if not cells:
        raise source.bad("the histogram holds no sample")
    total = check_total(source, cells, None, "the histogram")
    notes = ["counts are those of the file minus one; its two end points are not samples"]
    beyond, beyond_from = 0, None
    if max(cells) == (CELLS - 1) * width_ns:
        beyond_from = max(cells)
        beyond = cells.pop(beyond_from)
    else:
        notes.append("had the tool no cell after the last one here, that one holds larger ones too")
    return cells_set(
        source.metadata(
            "latency",
            tool="xenomai latency",
            stack="xenomai",
            from_event="task due",
            to_event="task runs",
            resolution_ns=width_ns,
            beyond_range=beyond,
            beyond_range_from_ns=beyond_from,
            reported=Reported(n=total),
            notes=tuple(notes),
        ),
        cells,
        width_ns,
    )
