"""Output of rtla: `timerlat hist`, `osnoise hist` and `timerlat top`.

Each column is a sample set: timer interrupt, thread and user-space latencies of one CPU are three
populations and are never added up. The `over:` row becomes `beyond_range`. rtla prints neither
the bucket size (`-b`) nor the number of entries (`-E`), and leaves out rows without samples; the
bucket size is derived from the rows, see `bucket_size`, and samples counted as `over:` are known
to lie beyond the last printed row.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd

from latenz.importers.sets import beyond_from, cells_set, check_bounds, check_total
from latenz.importers.source import INT64_MAX, Source
from latenz.model import Metadata, Reported, SampleSet

NAME = "rtla"
_NO_MINIMUM = 2**64 - 1
_UNITS = {"us": 1000, "ns": 1}
_KINDS = {
    "IRQ": ("irq", "timer expiry due", "timer interrupt handler runs"),
    "Thr": ("thread", "timer expiry due", "thread runs"),
    "Usr": ("user", "timer expiry due", "thread back in user space"),
    "CPU": ("noise", "thread interrupted", "thread runs again"),
}
_TITLE = re.compile(r"# RTLA (timerlat|osnoise) histogram\s*")
_UNIT = re.compile(r"# Time unit is \w+ \((us|ns)\)\s*")
_HEADER = re.compile(r"Index((?:\s+(?:IRQ|Thr|Usr|CPU)-\d+)+)\s*")
_ROW = re.compile(r"(\d+|over:|count:|min:|avg:|max:)((?:\s+(?:\d+|-))+)\s*")
_TOP_ROW = re.compile(r"\s*(\d+)\s+#(\d+)((?:\s*\|(?:\s+(?:\d+|-)){4})+)\s*")
_TOP_TITLE = re.compile(r"Timer Latency\s*$")


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is output of rtla."""
    text = re.sub(rb"\x1b\[[0-9;?]{0,32}[A-Za-z]", b"", head)
    return (
        re.search(
            rb"^# RTLA (?:timerlat|osnoise) histogram|^[ \t]*Timer Latency[ \t]*\r?$"
            rb"|^[ \t]*Operating System Noise[ \t]*\r?$"
            rb"|^Index(?:[ \t]+(?:IRQ|Thr|Usr|CPU)-\d+)+[ \t]*\r?$",
            text,
            re.MULTILINE,
        )
        is not None
    )


@dataclass
class _Histogram:
    """What the lines told so far."""

    unit_ns: int | None = None
    columns: list[tuple[str, int]] = field(default_factory=list)
    rows: list[tuple[int, list[int]]] = field(default_factory=list)
    summary: dict[str, list[int | None]] = field(default_factory=dict)
    last_line: int = 0


@dataclass
class _Top:
    unit_ns: int = 1000
    rows: dict[int, tuple[int, list[list[int | None]]]] = field(default_factory=dict)


def read(source: Source) -> list[SampleSet]:
    """Read one set for each CPU and kind of latency."""
    histogram, top = _Histogram(), None
    for line, content in source.lines():
        if _TOP_TITLE.search(content):
            top = top or _Top()
        elif "Operating System Noise" in content:
            raise source.bad(
                "`rtla osnoise top` prints sums, not latencies",
                line,
                "import the output of `rtla osnoise hist`",
            )
        elif top is not None:
            _take_top_line(source, top, line, content)
        elif _take_line(source, histogram, line, content):
            break
    return _top_sets(source, top) if top is not None else _histogram_sets(source, histogram)


def _take_line(source: Source, found: _Histogram, line: int, content: str) -> bool:
    """Take one line of a histogram; True once the per-CPU figures are over."""
    if match := _UNIT.fullmatch(content):
        found.unit_ns = _UNITS[match[1]]
    elif match := _HEADER.fullmatch(content):
        if found.columns:
            raise source.bad("a second histogram begins", line, "import one output at a time")
        words = match[1].split()
        found.columns = [(word[:3], source.count(word[4:], line, "a CPU")) for word in words]
        if len(set(found.columns)) != len(words):
            raise source.bad("two columns have the same name", line)
    elif found.columns and content.startswith("ALL:"):
        return True
    elif found.columns and (match := _ROW.fullmatch(content)):
        _take_row(source, found, line, match)
        found.last_line = line
    elif found.columns and "over:" not in found.summary and content.strip():
        raise source.bad("is not a histogram row", line, "the file is damaged")
    return "max:" in found.summary


def _take_row(source: Source, found: _Histogram, line: int, match: re.Match[str]) -> None:
    label, words = match[1], match[2].split()
    if len(words) != len(found.columns):
        raise source.bad(
            f"the row has {len(words)} figures for {len(found.columns)} columns",
            line,
            "the file is cut or damaged",
        )
    if label.endswith(":"):
        if label in found.summary:
            raise source.bad(f"a second row `{label}`", line)
        found.summary[label] = [_figure(source, word, line, label) for word in words]
        return
    if found.summary:
        raise source.bad("a histogram row stands after `over:`", line)
    index = source.count(label, line, "the row's value")
    if found.rows and index <= found.rows[-1][0]:
        raise source.bad("the row does not follow the one before", line, "the file is damaged")
    found.rows.append((index, [source.count(word, line, "a count") for word in words]))


def _figure(source: Source, word: str, line: int, label: str) -> int | None:
    """`-` means no data; so does the largest unsigned number, which rtla 6.1 prints instead."""
    if word == "-" or (label == "min:" and word == str(_NO_MINIMUM)):
        return None
    return source.count(word, line, f"`{label}`")


def bucket_size(
    indexes: Sequence[int], extremes: Sequence[tuple[int, int]] = ()
) -> tuple[int, bool]:
    """Derive the bucket size of a histogram from the rows that were printed.

    It divides the distance of any two rows and every row's value. Rows that fill at least half
    of the multiples of their greatest common divisor leave no doubt that it is the size.
    Otherwise the smallest divisor is taken that agrees with every printed minimum and maximum.

    Args:
        indexes: The rows' values, ascending.
        extremes: Printed minima and maxima with the row each of them was counted in.

    Returns:
        The size, and whether it is certain.
    """
    divisor = gcd(*indexes) or 1
    if len(indexes) > 2 and 2 * len(indexes) >= (indexes[-1] - indexes[0]) // divisor + 1:
        return divisor, True
    beyond = max((value - index for value, index in extremes), default=0)
    small = (n for n in range(1, min(divisor, 10_000) + 1) if divisor % n == 0)
    return next((size for size in small if size > beyond), divisor), divisor == 1


def _extremes(found: _Histogram) -> list[tuple[int, int]]:
    """Printed minima and maxima, each with the last row that begins at or below it."""
    pairs = []
    for column in range(len(found.columns)):
        filled = [index for index, counts in found.rows if counts[column]]
        low = found.summary.get("min:", [None] * len(found.columns))[column]
        high = found.summary.get("max:", [None] * len(found.columns))[column]
        if filled and low is not None and low >= filled[0]:
            pairs.append((low, filled[0]))
        inside = found.summary["over:"][column] == 0
        if inside and filled and high is not None and high >= filled[-1]:
            pairs.append((high, filled[-1]))
    return pairs


def _histogram_sets(source: Source, found: _Histogram) -> list[SampleSet]:
    if not found.columns:
        raise source.bad(
            "the row `Index` is missing",
            remedy="import the whole output, without --no-index and --no-header",
        )
    if found.unit_ns is None and source.options.unit_ns is None:
        raise source.bad("the row `# Time unit is` is missing", remedy="state it with --unit")
    if "over:" not in found.summary:
        raise source.bad(
            "the row `over:` is missing", found.last_line or None, "the file ends too early"
        )
    size, certain = 1, True
    if found.rows:
        size, certain = bucket_size([index for index, _ in found.rows], _extremes(found))
    notes = () if certain else (f"rtla does not print its bucket size; {size} taken",)
    return [_column(source, found, column, size, notes) for column in range(len(found.columns))]


def _column(
    source: Source, found: _Histogram, column: int, size: int, notes: tuple[str, ...]
) -> SampleSet:
    kind, cpu = found.columns[column]
    unit_ns = source.options.unit_ns if found.unit_ns is None else found.unit_ns
    unit_ns = unit_ns or 1000
    known = _described(source, kind, cpu, unit_ns)
    place = known.name
    last = found.rows[-1][0] + size if found.rows else 0
    if last * unit_ns > INT64_MAX:
        raise source.bad(f"{place}: the row {last - size} does not fit in 64 bits")
    cells = {index * unit_ns: row[column] for index, row in found.rows if row[column]}
    total = check_total(source, cells, None, place)
    over = found.summary["over:"][column]
    printed = {row: figures[column] for row, figures in found.summary.items()}
    if over is None or (printed.get("count:", total + over) != total + over):
        raise source.bad(
            f"{place}: the rows and `over:` hold {total + (over or 0)} samples, `count:` says "
            f"{printed.get('count:')}",
            remedy="the file is damaged",
        )
    reported = _reported(source, printed, total + over, unit_ns, place)
    changes = {
        "beyond_range": over,
        "beyond_range_from_ns": beyond_from(cells, last * unit_ns, reported.min_ns)
        if over
        else None,
        "reported": reported,
        "notes": notes,
    }
    return cells_set(known.model_copy(update=changes), cells, size * unit_ns)


def _reported(
    source: Source, printed: dict[str, int | None], n: int, unit_ns: int, place: str
) -> Reported:
    if n == 0:
        return Reported(n=0)
    low, mean, high = (
        None if (figure := printed.get(row)) is None else figure * unit_ns
        for row in ("min:", "avg:", "max:")
    )
    if any(figure is not None and figure > INT64_MAX for figure in (low, mean, high)):
        raise source.bad(f"{place}: a figure does not fit in 64 bits of nanoseconds")
    check_bounds(source, low, high, None, place)
    return Reported(n=n, mean_ns=mean, min_ns=low, max_ns=high)


def _described(source: Source, kind: str, cpu: int, unit_ns: int) -> Metadata:
    name, begin, end = _KINDS[kind]
    return source.metadata(
        f"cpu{cpu}/{name}",
        cpu=cpu,
        tool="rtla osnoise" if kind == "CPU" else "rtla timerlat",
        from_event=begin,
        to_event=end,
        resolution_ns=unit_ns,
    )


def _take_top_line(source: Source, top: _Top, line: int, content: str) -> None:
    if "Timer Latency (ns)" in content:
        top.unit_ns = 1
    match = _TOP_ROW.fullmatch(content)
    if match is None:
        if re.match(r"\s*\d+\s+#", content):
            raise source.bad("the row is cut or damaged", line)
        return
    groups = [
        [_figure(source, word, line, "min:") for word in group.split()]
        for group in match[3].split("|")[1:]
    ]
    cpu = source.count(match[1], line, "the CPU")
    top.rows[cpu] = (source.count(match[2], line, "the count"), groups)


def _top_sets(source: Source, top: _Top) -> list[SampleSet]:
    sets = []
    for cpu, (n, groups) in sorted(top.rows.items()):
        for kind, (_, low, mean, high) in zip(("IRQ", "Thr", "Usr"), groups, strict=False):
            printed = {"min:": low, "avg:": mean, "max:": high}
            known = _described(source, kind, cpu, top.unit_ns)
            reported = _reported(source, printed, n, top.unit_ns, known.name)
            note = "n is the number of timer interrupts; rtla top prints no other"
            changes = {"reported": reported, "notes": (note,)}
            sets.append(SampleSet.from_columns(known.model_copy(update=changes)))
    return sets
