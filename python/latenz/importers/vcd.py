"""Value change dumps (IEEE 1364): latencies from an edge of one signal to an edge of another.

The file is read as a stream. Times are whole ticks of the file's time scale; a latency is the
difference of two of them, and only then turned into nanoseconds. A time scale finer than 1 ns can
give latencies that are no whole nanoseconds: these are rounded down, and a note says how many.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from latenz.errors import BadInput
from latenz.importers.pairing import Pairing
from latenz.importers.sets import Spool
from latenz.importers.signals import Edge, bit_range, chosen, normal
from latenz.importers.source import INT64_MAX, Source
from latenz.model import SampleSet, TimeBase

NAME = "vcd"
_SCALE = re.compile(r"(1|10|100)\s*(s|ms|us|ns|ps|fs)")
_UNIT = {
    "s": Fraction(10**9),
    "ms": Fraction(10**6),
    "us": Fraction(1000),
    "ns": Fraction(1),
    "ps": Fraction(1, 1000),
    "fs": Fraction(1, 10**6),
}
_SCALARS = frozenset("01xXzZuUwWlLhH-")
_VALUE_BLOCKS = frozenset(("$end", "$dumpvars", "$dumpall", "$dumpon", "$dumpoff"))
_MOST_DIGITS = 30
_LONGEST_DECLARATION = 100

Token = tuple[int, str]


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is a value change dump."""
    return re.match(
        rb"\s*\$(?:date|version|timescale|comment|scope|var|enddefinitions)\s", head
    ) is not None and (b"$end" in head)


@dataclass
class _Variable:
    """One `$var` declaration."""

    code: str
    name: str
    size: int


@dataclass
class _Header:
    tick_ns: Fraction | None = None
    scope: list[str] = field(default_factory=list)
    variables: list[_Variable] = field(default_factory=list)


@dataclass
class _Watched:
    """A signal's bit that is watched, counted from the right."""

    edge: Edge
    position: int
    size: int


@dataclass(frozen=True)
class Trace:
    """The edges of a dump's start and end signal.

    Attributes:
        start: Full name of the start signal.
        end: Full name of the end signal.
        tick_ns: One tick of the file's time scale.
        instants: Each instant with edges: line, time in ticks, start edges, end edges.
    """

    start: str
    end: str
    tick_ns: Fraction
    instants: Iterator[tuple[int, int, int, int]]

    @property
    def name(self) -> str:
        """What a sample set of it is called."""
        return f"{self.start} to {self.end}".replace("/", ".")


def open_trace(source: Source) -> Trace:
    """Open a dump; its instants are read as they are asked for."""
    tokens = _tokens(source)
    header = _read_header(source, tokens)
    if header.tick_ns is None:
        raise source.bad("has no $timescale", remedy="add one, such as $timescale 1 ns $end")
    start_name, end_name, watched, edges = _watch(source, header)
    instants = _instants(source, tokens, watched, edges)
    return Trace(start_name, end_name, header.tick_ns, instants)


def read(source: Source) -> list[SampleSet]:
    """Read the one set of latencies from the start signal to the end signal."""
    trace = open_trace(source)
    pairing = Pairing(source.options.overlap)
    spool = Spool("t_ns", "latency_ns")
    rounded = 0
    ticks = trace.tick_ns
    for line, time, starts, ends in trace.instants:
        for begin, end in pairing.edges(time, starts, ends):
            latency = (end - begin) * ticks
            if end * ticks > INT64_MAX:
                raise source.bad("the time does not fit in 64 bits of nanoseconds", line)
            rounded += latency.denominator != 1
            spool.append(int(begin * ticks), int(latency))
    notes = ["the last change may be cut: the file does not end with a line end"]
    if _ends_with_space(source):
        notes.clear()
    if rounded:
        notes.append(f"{rounded} latencies are no whole nanoseconds and were rounded down")
    if not spool.rows:
        raise source.bad(
            f"holds no latency from {trace.start} to {trace.end}",
            remedy=f"{pairing.open_at_end} starts without end, {pairing.orphan_ends} ends "
            "without start",
        )
    metadata = source.metadata(
        trace.name,
        time_base=TimeBase.SIMULATED,
        tool="value change dump",
        from_event=source.options.start,
        to_event=source.options.end,
        resolution_ns=max(1, int(ticks)),
        overlaps=pairing.overlaps,
        orphan_ends=pairing.orphan_ends,
        open_at_end=pairing.open_at_end,
        notes=tuple(notes),
    )
    return [spool.sample_set(metadata)]


def _tokens(source: Source) -> Iterator[Token]:
    for line, content in source.lines():
        for word in content.split():
            yield line, word


def _declaration(source: Source, tokens: Iterator[Token], line: int, keep: bool) -> list[str]:
    """Read up to `$end`; the words if they are wanted and few."""
    words: list[str] = []
    for _, word in tokens:
        if word == "$end":
            return words
        if keep:
            words.append(word)
            if len(words) > _LONGEST_DECLARATION:
                raise source.bad("the declaration is too long", line, "is its $end missing?")
    raise source.bad("the declaration has no $end", line, "the file is cut")


def _read_header(source: Source, tokens: Iterator[Token]) -> _Header:
    header = _Header()
    for line, keyword in tokens:
        if not keyword.startswith("$"):
            raise source.bad(f"{keyword[:40]!r} stands between declarations", line)
        wanted = keyword in ("$timescale", "$scope", "$upscope", "$var", "$enddefinitions")
        words = _declaration(source, tokens, line, wanted)
        if keyword == "$enddefinitions":
            return header
        if keyword == "$timescale":
            match = _SCALE.fullmatch(" ".join(words))
            if match is None:
                text = " ".join(words)[:40]
                raise source.bad(f"the time scale is {text!r}", line, "1, 10 or 100 of s ... fs")
            header.tick_ns = int(match[1]) * _UNIT[match[2]]
        elif keyword == "$scope":
            header.scope.append(words[-1] if words else "")
        elif keyword == "$upscope":
            if not header.scope:
                raise source.bad("$upscope without $scope", line)
            header.scope.pop()
        elif keyword == "$var":
            _declare(source, header, line, words)
    raise source.bad("has no $enddefinitions", remedy="the file is cut")


def _declare(source: Source, header: _Header, line: int, words: list[str]) -> None:
    if len(words) < 4:
        raise source.bad("the variable is not declared whole", line, "type, size, code, name")
    size = source.count(words[1], line, "the size")
    name = normal(" ".join(words[3:]))
    header.variables.append(_Variable(words[2], ".".join([*header.scope, name]), size))


def _watch(
    source: Source, header: _Header
) -> tuple[str, str, dict[str, list[_Watched]], tuple[Edge, Edge]]:
    names = [variable.name for variable in header.variables]
    codes = [variable.code for variable in header.variables]
    watched: dict[str, list[_Watched]] = {v.code: [] for v in header.variables}
    found, edges = [], []
    for index, falling in chosen(source.options, names, codes, str(source.path)):
        variable = header.variables[index]
        edge = Edge(falling)
        edges.append(edge)
        found.append(variable.name)
        position = _bit_zero(source, variable)
        watched[variable.code].append(_Watched(edge, position, variable.size))
    return found[0], found[1], watched, (edges[0], edges[1])


def _bit_zero(source: Source, variable: _Variable) -> int:
    """Return where bit 0 stands, counted from the right."""
    if variable.size <= 1:
        return 0
    left, right = bit_range(variable.name) or (variable.size - 1, 0)
    if not min(left, right) <= 0 <= max(left, right):
        raise source.bad(f"{variable.name} has no bit 0", remedy="name another signal")
    return abs(right)


def _level(value: str, position: int) -> str:
    """Return one bit of a value; a short one is extended on the left, by 0 unless x or z leads."""
    if position < len(value):
        return value[len(value) - 1 - position]
    return "0" if value[0] in "01" else value[0]


def _instants(
    source: Source,
    tokens: Iterator[Token],
    watched: dict[str, list[_Watched]],
    edges: tuple[Edge, Edge],
) -> Iterator[tuple[int, int, int, int]]:
    """Give each instant with edges: line, time in ticks, start edges, end edges."""
    start, end = edges
    time, line = 0, 0
    for line, word in tokens:
        if word[0] == "#":
            before, time = time, _time(source, line, word, time)
            if time > before and (start.count or end.count):
                yield line, before, start.count, end.count
                start.count = end.count = 0
        elif word[0] in _SCALARS and len(word) > 1:
            if (signals := watched.get(word[1:])) is None:
                raise _undeclared(source, line, word[1:])
            for signal in signals:
                signal.edge.take(_level(word[0], signal.position))
        elif word not in _VALUE_BLOCKS:
            _take_other(source, tokens, line, word, watched)
    if start.count or end.count:
        yield line, time, start.count, end.count


def _take_other(
    source: Source,
    tokens: Iterator[Token],
    line: int,
    word: str,
    watched: dict[str, list[_Watched]],
) -> None:
    """Take a vector, pass over a real number, a string or a comment."""
    if word[0] == "$":
        _declaration(source, tokens, line, keep=False)
        return
    if word[0] not in "bBrRsS":
        raise source.bad(f"{word[:40]!r} is not a value change", line, "the file is damaged")
    _, code = next(tokens, (line, ""))
    if not code:
        raise source.bad("a value without a signal", line, "the file is cut")
    if (signals := watched.get(code)) is None:
        raise _undeclared(source, line, code)
    if word[0] in "bB" and signals:
        _take_vector(source, line, word[1:], signals)


def _undeclared(source: Source, line: int, code: str) -> BadInput:
    return source.bad(f"no signal has the code {code[:40]!r}", line, "the file is damaged")


def _take_vector(source: Source, line: int, value: str, signals: list[_Watched]) -> None:
    if not value or not _SCALARS.issuperset(value):
        raise source.bad(f"the value {value[:40]!r} is damaged", line)
    for signal in signals:
        if len(value) > signal.size:
            raise source.bad("the value is wider than its signal", line, "the file is damaged")
        signal.edge.take(_level(value, signal.position))


def _time(source: Source, line: int, word: str, before: int) -> int:
    if not (word[1:].isascii() and word[1:].isdigit()) or len(word) > _MOST_DIGITS:
        raise source.bad(f"the time {word[:40]!r} is damaged", line)
    time = int(word[1:])
    if time < before:
        raise source.bad(f"the time goes back from {before} to {time}", line)
    return time


def _ends_with_space(source: Source) -> bool:
    with source.path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1).isspace()
