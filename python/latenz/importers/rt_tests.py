"""Printed figures of the other rt-tests: signaltest, ptsematest, svsematest, pmqtest, sigwaittest.

They keep no values, only count, minimum, average and maximum in microseconds.
"""

import re
from typing import Any

from latenz.importers.account import account, command_line
from latenz.importers.sets import check_bounds
from latenz.importers.source import Fields, Source, is_json
from latenz.model import Metadata, Reported, SampleSet

NAME = "rt-tests"
_US = 1000
_STATUS = re.compile(
    r"T: *(\d+) \( *(\d+)\) P: *\d+ C: *(\d+) "
    r"Min: *(-?\d+) Act: *-?\d+ Avg: *(-?\d+) Max: *(-?\d+)\s*"
)
_PAIR = re.compile(r"#(\d+) -> #(\d+),? *Min *(\d+), Cur *\d+, Avg *(\d+), Max *(\d+)\s*")
_CYCLES = re.compile(r"#(\d+): ID\d+, P\d+, CPU(\d+), (?:TO \d+, )?Cycles (\d+)")


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this holds figures of one of these tools."""
    if is_json(head):
        return b'"rt_test_version' in head and b'"thread"' in head
    return (
        re.search(
            rb"^T: *\d+ \( *\d+\) P: *\d+ C: *\d+ Min:|^#\d+ -> #\d+,? *Min", head, re.MULTILINE
        )
        is not None
    )


def read(source: Source) -> list[SampleSet]:
    """Read one set of figures for each thread or pair of threads."""
    return _read_json(source) if is_json(source.head()) else _read_text(source)


def _described(source: Source, name: str, cpu: int | None, tool: str, **known: object) -> Metadata:
    return source.metadata(
        name,
        cpu=cpu,
        tool=tool,
        from_event="signal sent" if tool == "signaltest" else "sender posts",
        to_event="thread runs" if tool == "signaltest" else "receiver runs",
        resolution_ns=_US,
        **known,
    )


def _read_json(source: Source) -> list[SampleSet]:
    document = source.document()
    command = command_line(document).split()
    program = command[0].rsplit("/", 1)[-1][:40] if command else "rt-tests"
    sets = []
    for thread, fields in document.inner("thread").inners():
        pair = "receiver" in fields.values
        figures = fields.inner("receiver") if pair else fields
        n = fields.inner("sender").count("samples") if pair else fields.count("cycles")
        cpu = figures.count("cpu") if "cpu" in figures.values else None
        name = f"{'pair' if pair else 'thread'}{source.count(thread, None, fields.place)}"
        reported = _json_figures(figures, n)
        known = _described(source, name, cpu, program, reported=reported, **account(document))
        sets.append(SampleSet.from_columns(known))
    return sets


def _json_figures(fields: Fields, n: int) -> Reported:
    if n == 0:
        return Reported(n=0)
    low, high = fields.ns("min", _US), fields.ns("max", _US)
    check_bounds(fields.source, low, high, None, fields.place)
    return Reported(n=n, min_ns=low, max_ns=high, mean_ns=fields.mean_ns("avg", _US))


def _read_text(source: Source) -> list[SampleSet]:
    sets: dict[str, SampleSet] = {}
    receivers: dict[int, tuple[int, int]] = {}
    for line, content in source.lines():
        for found in _CYCLES.finditer(content):
            receiver, cpu, n = (source.count(found[g], line, "a number") for g in (1, 2, 3))
            receivers[receiver] = (cpu, n)
        if known := _text_line(source, line, content, receivers):
            sets[known.name] = SampleSet.from_columns(known)
    return list(sets.values())


def _text_line(
    source: Source, line: int, content: str, receivers: dict[int, tuple[int, int]]
) -> Metadata | None:
    if match := _STATUS.fullmatch(content):
        name = f"thread{source.count(match[1], line, 'T')}"
        n = source.count(match[3], line, "C")
        figures = _text_figures(source, line, n, (match[4], match[5], match[6]))
        return _described(source, name, None, "signaltest", reported=figures)
    if match := _PAIR.fullmatch(content):
        one, other = (source.count(match[g], line, "the thread") for g in (1, 2))
        pair = receivers.get(one) or receivers.get(other)
        figures = _text_figures(source, line, pair[1] if pair else None, match.group(3, 4, 5))
        name = f"pair{other // 2}"
        return _described(source, name, pair[0] if pair else None, NAME, reported=figures)
    if re.match(r"T:|#\d+ ->", content):
        raise source.bad("the line is damaged", line)
    return None


def _text_figures(
    source: Source, line: int, n: int | None, printed: tuple[str | Any, ...]
) -> Reported:
    if n == 0:
        return Reported(n=0)
    low, mean, high = (source.whole(text, _US, line, "a latency") for text in printed)
    check_bounds(source, low, high, line, "the line")
    return Reported(n=n, min_ns=low, mean_ns=mean, max_ns=high)
