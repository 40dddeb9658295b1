"""Output of oslat (rt-tests): text and JSON.

oslat counts gaps in a busy loop in cells of 1 us. It rounds up: a gap it prints as N us lasted
from N - 1 to N us. Its last cell also holds every longer gap; the text says so, the JSON of
rt-tests 2.4 does not, but the printed maximum tells.
"""

import re
from dataclasses import dataclass, field

from latenz.importers.account import account
from latenz.importers.sets import cells_set, check_bounds, check_total, json_cells, split_last_cell
from latenz.importers.source import Source, is_json
from latenz.model import Reported, SampleSet

NAME = "oslat"
_CELL_NS = 1000
_ROUNDS_UP = "oslat rounds up: a gap printed as N us lasted from N - 1 to N us"
_MEAN = "its mean is over all loops, most of which were not interrupted"
_ROW = re.compile(r"\s*(\d+(?:\.\d+)?) \(us\):\s*(\d+(?:\s+\d+)*)(\s*\(including overflows\))?\s*")
_CORES = re.compile(r"\s*Core:\s*(\d+(?:\s+\d+)*)\s*")
_FIGURES = re.compile(r"\s*(Minimum|Average|Maximum):\s*((?:\d+(?:\.\d+)?\s+)+)\(us\)\s*")


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is output of oslat."""
    if is_json(head):
        return b'"freq"' in head and b'"thread"' in head
    return re.search(rb"^oslat V |^[ \t]*Counter Freq:", head, re.MULTILINE) is not None


def read(source: Source) -> list[SampleSet]:
    """Read one histogram for each core."""
    return _read_json(source) if is_json(source.head()) else _read_text(source)


def _set(
    source: Source, cpu: int, reported: Reported, cells: dict[int, int], told: dict[str, str | None]
) -> SampleSet:
    place = f"core {cpu}"
    if reported.max_ns is None or reported.min_ns is None:
        raise source.bad(f"{place}: the minimum or maximum is missing", remedy="the file is cut")
    check_bounds(source, reported.min_ns, reported.max_ns, None, place)
    total = check_total(source, cells, None, place)
    beyond, beyond_from = split_last_cell(cells, reported.max_ns, _CELL_NS)
    return cells_set(
        source.metadata(
            f"cpu{cpu}",
            cpu=cpu,
            tool=NAME,
            **told,
            from_event="busy loop interrupted",
            to_event="busy loop runs again",
            resolution_ns=_CELL_NS,
            beyond_range=beyond,
            beyond_range_from_ns=beyond_from,
            reported=reported.model_copy(update={"n": total}),
            notes=(_ROUNDS_UP, _MEAN),
        ),
        cells,
        _CELL_NS,
    )


def _read_json(source: Source) -> list[SampleSet]:
    document = source.document()
    told = account(document)
    sets = []
    for _, fields in document.inner("thread").inners():
        reported = Reported(
            mean_ns=fields.mean_ns("avg", _CELL_NS),
            min_ns=fields.ns("min", _CELL_NS),
            max_ns=fields.ns("max", _CELL_NS),
        )
        cells = json_cells(fields.inner("histogram"), _CELL_NS)
        made = _set(source, fields.count("cpu"), reported, cells, told)
        if "duration" in fields.values:
            observed_ns = round(fields.mean_ns("duration", 1_000_000_000))
            made = made.with_metadata(observed_ns=max(observed_ns, 0))
        sets.append(made)
    return sets


@dataclass
class _Text:
    version: str | None = None
    cores: list[int] | None = None
    cells: list[dict[int, int]] = field(default_factory=list)
    last_ns: int = 0
    figures: dict[str, list[str]] = field(default_factory=dict)


def _read_text(source: Source) -> list[SampleSet]:
    text = _Text()
    for line, content in source.lines():
        _take_line(source, text, line, content)
    if text.cores is None:
        raise source.bad("the row `Core:` is missing", remedy="import the whole output of oslat")
    for wanted in ("Minimum", "Average", "Maximum"):
        if len(text.figures.get(wanted, [])) != len(text.cores):
            raise source.bad(f"the row `{wanted}:` is missing or cut")
    sets = []
    for column, cpu in enumerate(text.cores):
        low, mean, high = (
            source.exact(text.figures[row][column], _CELL_NS, None, row)
            for row in ("Minimum", "Average", "Maximum")
        )
        reported = Reported(mean_ns=float(mean), min_ns=int(low), max_ns=int(high))
        sets.append(_set(source, cpu, reported, text.cells[column], {"tool_version": text.version}))
    return sets


def _take_line(source: Source, text: _Text, line: int, content: str) -> None:
    if content.startswith("oslat V "):
        text.version = content[8:].strip()[:40] or None
    elif match := _CORES.fullmatch(content):
        if text.cores is not None:
            raise source.bad("a second result begins", line, "import one output at a time")
        text.cores = [source.count(word, line, "a core") for word in match[1].split()]
        text.cells = [{} for _ in text.cores]
    elif match := _ROW.fullmatch(content):
        _take_row(source, text, line, match)
    elif match := _FIGURES.fullmatch(content):
        text.figures[match[1]] = match[2].split()
    elif re.match(r"\s*\d", content) and "(us)" in content:
        raise source.bad("the histogram row is damaged", line)


def _take_row(source: Source, text: _Text, line: int, match: re.Match[str]) -> None:
    value = source.whole(match[1], _CELL_NS, line, "the row's value")
    counts = [source.count(word, line, "a count") for word in match[2].split()]
    if text.cores is None or len(counts) != len(text.cores):
        raise source.bad(f"the row has {len(counts)} counts", line, "one per core is needed")
    if value <= text.last_ns:
        raise source.bad("the row does not follow the one before", line, "the file is damaged")
    text.last_ns = value
    for cells, count in zip(text.cells, counts, strict=True):
        if count:
            cells[value] = count
