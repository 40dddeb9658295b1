"""Output of cyclictest and cyclicdeadline (rt-tests): JSON, histograms, every value, status lines.

cyclictest prints microseconds, or nanoseconds with `-N`. JSON says which; status lines show it by
their layout; histograms (`-h`, `-H`), values (`-v`) and spikes do not, so microseconds are taken
unless the user states the unit. After a late wake-up cyclictest leaves the missed periods out, so
that one long stall is one sample: its missed periods are unknown.
"""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from latenz.importers.account import account, command_line
from latenz.importers.bundle import described
from latenz.importers.sets import (
    Spool,
    beyond_from,
    cells_set,
    check_bounds,
    check_total,
    json_cells,
)
from latenz.importers.source import Fields, Source, is_json
from latenz.model import Metadata, Reported, SampleSet, WorstSample

NAME = "cyclictest"
MOST_SPIKES = 1000
STALLS = "cyclictest leaves out periods missed after a late wake-up: a long stall is one sample"
UNIT_TAKEN = "the file does not print its unit; microseconds taken, the default of cyclictest"
_STATUS = re.compile(
    r"T: *(\d+) \( *(\d+)\) (P: *\d+ )?I: *(\d+) C: *(\d+) "
    r"Min:( *-?\d+) Act:( *-?\d+) Avg:( *-?\d+) Max:( *-?\d+)\s*"
)
_SPIKE = re.compile(r"T: *(\d+) Spike: *(-?\d+): TS: *(\d+)\s*")
_VALUE = re.compile(r" *(\d+): *(\d+): *(-?\d+)\s*")
_INTERVAL = re.compile(r"Thread (\d+) Interval: (\d+)\s*")
_ROW = re.compile(r"(\d+)((?:\s+\d+)+)\s*")
_SUMMARY = re.compile(r"# (Total|(?:Min|Avg|Max) Latencies|Histogram Overflows):((?:\s+\d+)*)\s*")
_BREAK = re.compile(r"# Break (thread|value): (\d+)\s*")
_HEAD = re.compile(
    rb"^(?:# Histogram\s*$|T: *\d+ \( *\d+\) (?:P: *\d+ )?I: *\d+ C:|T: *\d+ Spike:"
    rb"|Thread \d+ Interval: \d+\s*$|(?: *\d+: *\d+: *-?\d+\r?\n){3})",
    re.MULTILINE,
)


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is output of cyclictest."""
    if is_json(head):
        return (
            b'"resolution_in_ns"' in head and b'"cpus_online"' not in head and b'"thread"' in head
        )
    return _HEAD.search(re.sub(rb"\x1b\[[0-9;?]{0,32}[A-Za-z]", b"", head)) is not None


def read(source: Source) -> list[SampleSet]:
    """Read the sets of all threads, with every kept value or the printed figures."""
    return _read_json(source) if is_json(source.head()) else _read_text(source)


def _read_json(source: Source) -> list[SampleSet]:
    document = source.document()
    resolution = document.integer("resolution_in_ns")
    if resolution not in (0, 1):
        raise document.bad("resolution_in_ns", f"is {resolution}; known are 0 (us) and 1 (ns)")
    unit_ns = 1 if resolution else 1000
    command = command_line(document)
    threads = document.inner("thread").inners()
    cpus = [fields.integer("cpu") if "cpu" in fields.values else -1 for _, fields in threads]
    known = account(document) | {
        "tool": _tool(command),
        **_threads_settings(command, len(threads)),
        "from_event": "timer expiry due",
        "to_event": "thread runs",
        "resolution_ns": unit_ns,
        "notes": (STALLS,) if _tool(command) == NAME else (),
    }
    own_cpu = len(set(cpus)) == len(cpus) and min(cpus, default=0) >= 0
    own = document.inner("latenz").values if "latenz" in document.values else {}
    sets = []
    for (thread, fields), cpu in zip(threads, cpus, strict=True):
        name = f"cpu{cpu}" if own_cpu else f"thread{thread}"
        known_thread = source.metadata(name, cpu=cpu if cpu >= 0 else None, **known)
        if thread in own:
            known_thread = _described(source, own[thread], known_thread)
        sets.append(_json_thread(fields, known_thread, unit_ns, _histogram_size(command)))
    return sets


def _described(source: Source, value: object, known: Metadata) -> Metadata:
    """Take over what Latenz wrote about a set when it exported it; values are read anew."""
    exported = described(source, json.dumps(value), None).metadata
    fresh = {"source": exported.source or known.source, "reported": None, "beyond_range": 0}
    return exported.model_copy(update=fresh)


def _json_thread(fields: Fields, known: Metadata, unit_ns: int, size: int | None) -> SampleSet:
    n = fields.count("cycles")
    reported = Reported(
        n=n,
        mean_ns=fields.mean_ns("avg", unit_ns),
        min_ns=fields.ns("min", unit_ns),
        max_ns=fields.ns("max", unit_ns),
    )
    if n == 0:
        return SampleSet.from_columns(known.model_copy(update={"reported": Reported(n=0)}))
    check_bounds(fields.source, reported.min_ns, reported.max_ns, None, fields.place)
    cells = json_cells(fields.inner("histogram"), unit_ns) if "histogram" in fields.values else {}
    changes: dict[str, object] = {"reported": reported}
    if cells or size:
        beyond = n - sum(cells.values())
        if beyond < 0:
            raise fields.bad("cycles", f"is {n}, but the histogram holds {n - beyond} samples")
        after_last = max(cells, default=-unit_ns) + unit_ns
        limit = max(after_last, (size or 0) * unit_ns, known.beyond_range_from_ns or 0)
        limit = beyond_from(cells, limit, reported.min_ns)
        changes |= {"beyond_range": beyond, "beyond_range_from_ns": limit if beyond else None}
    return cells_set(known.model_copy(update=changes), cells, unit_ns)


def _tool(command: str) -> str:
    program = command.split(maxsplit=1)[0].rsplit("/", 1)[-1] if command.strip() else NAME
    return program if re.fullmatch(r"[\w.-]{1,40}", program) else NAME


def _histogram_size(command: str) -> int | None:
    """Return the number of cells that the command line asked for, None if it does not tell."""
    return _option(command, "hH", ("histogram", "histofall"))


def _threads_settings(command: str, threads: int) -> dict[str, int | None]:
    """Return interval and priority, where all threads have the same.

    Threads of cyclictest have the same with -S only: without, the priority of each is one lower
    and the interval longer than those of the one before (rt-tests, cyclictest.c).
    """
    alike = threads == 1 or bool(re.search(r"\s(?:--smp|-[a-zA-Z]*S)\b", command))
    if not alike or _tool(command) != NAME:
        return {}
    interval_us = _option(command, "i", ("interval",))
    priority = _option(command, "p", ("priority", "prio"))
    return {
        "period_ns": interval_us * 1000 if interval_us else None,
        "priority": priority,
    }


def _option(command: str, letters: str, names: tuple[str, ...]) -> int | None:
    """Return the number that a command line gives an option, None if it does not tell."""
    try:
        words = shlex.split(command[:10_000])
    except ValueError:
        return None
    option = re.compile(rf"(?:--(?:{'|'.join(names)})=|-[{letters}])(\d{{1,9}})?")
    long = {f"--{name}" for name in names}
    for word, following in pairwise([*words, ""]):
        if match := option.fullmatch(word):
            number = match[1] or following
            return int(number) if re.fullmatch(r"\d{1,9}", number) else None
        if word in long and re.fullmatch(r"\d{1,9}", following):
            return int(following)
    return None


@dataclass
class _Status:
    """One thread's status line."""

    tool: str
    tid: int
    period_ns: int
    reported: Reported
    unit_ns: int
    priority: int | None


@dataclass
class _Text:
    """What the lines of a text output told so far."""

    status: dict[int, _Status] = field(default_factory=dict)
    intervals: dict[int, int] = field(default_factory=dict)
    values: dict[int, Spool] = field(default_factory=dict)
    next_cycle: dict[int, int] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    spikes: dict[int, list[WorstSample]] = field(default_factory=dict)
    spikes_left_out: int = 0
    rows: list[tuple[int, list[int]]] | None = None
    last_row_line: int = 0
    summary: dict[str, list[int]] = field(default_factory=dict)
    breaks: dict[str, int] = field(default_factory=dict)


def _read_text(source: Source) -> list[SampleSet]:
    text = _Text()
    for line, content in source.lines():
        _take_line(source, text, line, content)
    if text.rows is not None:
        return list(_histogram_sets(source, text, text.rows))
    if text.values:
        return list(_value_sets(source, text))
    return list(_status_sets(source, text))


def _take_line(source: Source, text: _Text, line: int, content: str) -> None:
    if content.startswith("T:"):
        if not (_take_status(source, text, line, content) or _take_spike(source, text, content)):
            raise source.bad("the status line is damaged", line)
    elif content.startswith("#"):
        _take_comment(source, text, line, content)
    elif text.rows is not None and not text.summary:
        _take_row(source, text, line, content)
    elif match := _INTERVAL.fullmatch(content):
        text.intervals[int(match[1][:9])] = source.whole(match[2], 1000, line, "the interval")
    elif match := _VALUE.fullmatch(content):
        _take_value(source, text, line, match)
    elif text.values and content.strip():
        raise source.bad("is not a `thread: cycle: value` line", line)


def _take_comment(source: Source, text: _Text, line: int, content: str) -> None:
    if content.rstrip() == "# Histogram":
        if text.rows is not None:
            raise source.bad("a second histogram begins", line, "import one output at a time")
        text.rows = []
    elif match := _SUMMARY.fullmatch(content):
        if match[1] in text.summary:
            raise source.bad(f"a second row `# {match[1]}:`", line)
        text.summary[match[1]] = [source.count(word, line, match[1]) for word in match[2].split()]
    elif match := _BREAK.fullmatch(content):
        text.breaks[match[1]] = source.count(match[2], line, "the break")
    elif re.match("# (?:Total|Min|Avg|Max|Histogram Overflows)", content):
        raise source.bad("the row of figures is damaged", line)


def _take_status(source: Source, text: _Text, line: int, content: str) -> bool:
    match = _STATUS.fullmatch(content)
    if match is None:
        return False
    # us: Act and Avg stand in fields of 5 characters; ns (-N): in fields of 8
    unit_ns = 1 if len(match[7]) >= 8 and len(match[8]) >= 8 else 1000
    low, mean, high = (
        source.whole(match[group].strip(), unit_ns, line, what)
        for group, what in ((6, "Min"), (8, "Avg"), (9, "Max"))
    )
    n = source.count(match[5], line, "C")
    if n:
        check_bounds(source, low, high, line, "the status line")
    figures = Reported(n=n, mean_ns=mean, min_ns=low, max_ns=high) if n else Reported(n=0)
    period_ns = source.whole(match[4], 1000, line, "I")
    thread = source.count(match[1], line, "T")
    tid = source.count(match[2], line, "the thread id")
    tool = NAME if match[3] else "cyclicdeadline"  # which prints no priority
    priority = source.count(match[3][2:].strip(), line, "P") if match[3] else None
    text.status[thread] = _Status(tool, tid, period_ns, figures, unit_ns, priority)
    return True


def _take_spike(source: Source, text: _Text, content: str) -> bool:
    match = _SPIKE.fullmatch(content)
    if match is None:
        return False
    unit_ns = source.options.unit_ns or 1000
    spike = WorstSample(
        latency_ns=source.whole(match[2], unit_ns, None, "a spike"),
        t_ns=source.whole(match[3], 1000, None, "TS"),
    )
    worst = text.spikes.setdefault(source.count(match[1], None, "T"), [])
    worst.append(spike)
    if len(worst) > 2 * MOST_SPIKES:
        worst.sort(key=lambda sample: -sample.latency_ns)
        text.spikes_left_out += len(worst) - MOST_SPIKES
        del worst[MOST_SPIKES:]
    return True


def _take_row(source: Source, text: _Text, line: int, content: str) -> None:
    rows = text.rows or []
    if not content.strip():
        return
    match = _ROW.fullmatch(content)
    if match is None:
        raise source.bad("is not a histogram row", line, "a row is a value and a count per thread")
    value = source.count(match[1], line, "the row's value")
    counts = [source.count(word, line, "a count") for word in match[2].split()]
    if rows and (value <= rows[-1][0] or len(counts) != len(rows[-1][1])):
        raise source.bad("the row does not follow the one before", line, "the file is damaged")
    rows.append((value, counts))
    text.rows = rows
    text.last_row_line = line


def _take_value(source: Source, text: _Text, line: int, match: re.Match[str]) -> None:
    thread = source.count(match[1], line, "the thread")
    cycle = source.count(match[2], line, "the cycle")
    expected = text.next_cycle.get(thread, 0)
    if cycle < expected:
        raise source.bad(f"cycle {cycle} of thread {thread} comes again", line)
    text.lost[thread] = text.lost.get(thread, 0) + cycle - expected
    text.next_cycle[thread] = cycle + 1
    spool = text.values.setdefault(thread, Spool("latency_ns"))
    spool.append(source.whole(match[3], source.options.unit_ns or 1000, line, "the value"))


def _known(source: Source, text: _Text, thread: int, unit_ns: int, *notes: str) -> Metadata:
    status = text.status.get(thread)
    period_ns = status.period_ns if status else text.intervals.get(thread)
    tool = status.tool if status else NAME
    said = [STALLS, *notes] if tool == NAME else [*notes]
    if "thread" in text.breaks:
        by = "this" if status and status.tid == text.breaks["thread"] else "another"
        said.append(f"stopped by {by} thread at the break value {text.breaks.get('value', '?')}")
    return source.metadata(
        f"thread{thread}",
        tool=tool,
        from_event="timer expiry due",
        to_event="thread runs",
        resolution_ns=unit_ns,
        period_ns=period_ns or None,
        priority=status.priority if status else None,
        notes=tuple(said),
    )


def _histogram_sets(
    source: Source, text: _Text, rows: list[tuple[int, list[int]]]
) -> Iterator[SampleSet]:
    for wanted in ("Max Latencies", "Min Latencies", "Histogram Overflows"):
        if wanted not in text.summary:
            raise source.bad(
                f"the row `# {wanted}:` is missing",
                text.last_row_line or None,
                "the file ends too early; import the whole output",
            )
    if not rows:
        raise source.bad("the histogram has no rows")
    threads = len(text.summary["Min Latencies"])
    _check_columns(source, text, rows, threads)
    unit_ns, taken = _unit(source, text)
    for thread in range(threads):
        cells = {value * unit_ns: counts[thread] for value, counts in rows if counts[thread]}
        total = check_total(source, cells, None, f"thread {thread}")
        if text.summary.get("Total", [total] * threads)[thread] != total:
            raise source.bad(
                f"thread {thread}: the rows hold {total} samples, `# Total:` says "
                f"{text.summary['Total'][thread]}",
                remedy="the file is damaged",
            )
        beyond = text.summary["Histogram Overflows"][thread]
        low, high, mean = (
            source.whole(str(text.summary[row][thread]), unit_ns, None, row)
            if row in text.summary
            else None
            for row in ("Min Latencies", "Max Latencies", "Avg Latencies")
        )
        n = total + beyond
        if n:
            check_bounds(source, low, high, None, f"thread {thread}")
        changes = {
            "beyond_range": beyond,
            "beyond_range_from_ns": beyond_from(cells, (rows[-1][0] + 1) * unit_ns, low)
            if beyond
            else None,
            "reported": Reported(n=n, mean_ns=mean, min_ns=low, max_ns=high)
            if n
            else Reported(n=0),
        }
        known = _known(source, text, thread, unit_ns, *taken)
        yield cells_set(known.model_copy(update=changes), cells, unit_ns)


def _unit(source: Source, text: _Text) -> tuple[int, tuple[str, ...]]:
    """Return the unit of a histogram: as stated, as status lines show it, or microseconds."""
    shown = {status.unit_ns for status in text.status.values()}
    if source.options.unit_ns:
        return source.options.unit_ns, ()
    return (shown.pop(), ()) if len(shown) == 1 else (1000, (UNIT_TAKEN,))


def _check_columns(
    source: Source, text: _Text, rows: list[tuple[int, list[int]]], threads: int
) -> None:
    """`-H` adds a last column that is the sum of the others, not a thread."""
    columns = len(rows[0][1])
    for row, figures in text.summary.items():
        if len(figures) not in (threads, columns):
            raise source.bad(f"`# {row}:` has {len(figures)} figures for {threads} threads")
    if columns == threads + 1:
        wrong = next((v for v, counts in rows if sum(counts[:-1]) != counts[-1]), None)
        if wrong is not None:
            raise source.bad(f"row {wrong:06d}: the last column is not the sum of the others")
    elif columns != threads:
        raise source.bad(f"the rows have {columns} columns, `# Min Latencies:` has {threads}")


def _value_sets(source: Source, text: _Text) -> Iterator[SampleSet]:
    taken = () if source.options.unit_ns else (UNIT_TAKEN,)
    for thread, spool in sorted(text.values.items()):
        lost = text.lost[thread]
        gaps = (f"{lost} cycles are not in the file",) if lost else ()
        known = _known(source, text, thread, source.options.unit_ns or 1000, *taken, *gaps)
        yield spool.sample_set(known)


def _status_sets(source: Source, text: _Text) -> Iterator[SampleSet]:
    for thread in text.spikes:
        if thread not in text.status:
            raise source.bad(f"thread {thread} has spikes but no status line")
    for thread, status in sorted(text.status.items()):
        worst = sorted(text.spikes.get(thread, []), key=lambda sample: -sample.latency_ns)
        left = len(worst) - MOST_SPIKES
        notes = (f"only the worst {MOST_SPIKES} spikes are kept",) if left > 0 else ()
        if text.spikes_left_out and not notes:
            notes = (f"only the worst {MOST_SPIKES} spikes of each thread are kept",)
        known = _known(source, text, thread, status.unit_ns, *notes)
        changes = {"reported": status.reported, "worst": tuple(worst[:MOST_SPIKES])}
        yield SampleSet.from_columns(known.model_copy(update=changes))
