"""Edges of an interrupt and its acknowledgement from a file, and how a clock samples them."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from latenz import importers
from latenz.errors import BadInput, closest
from latenz.importers import vcd
from latenz.importers.opening import open_sample_sets
from latenz.importers.pairing import Pairing
from latenz.importers.source import HEAD_BYTES, INT64_MAX, Options, Source
from latenz.model import SampleSet

IDLE_CYCLES = 4
"""What is left of a gap in which nothing is open: enough for signals to fall and rise again."""


class Instant(NamedTuple):
    """Edges of one moment, in ticks or clock cycles."""

    time: int
    starts: int
    ends: int


class Pair(NamedTuple):
    """A latency: when it began and ended, in ticks or clock cycles."""

    begin: int
    end: int


@dataclass(frozen=True)
class Paired:
    """What a trace says itself, edges paired as an importer pairs them."""

    pairs: list[Pair]
    overlaps: int
    orphan_ends: int
    open_at_end: int
    most_open: int


@dataclass(frozen=True)
class Trace:
    """Edges from a file.

    Attributes:
        name: Of its sample set.
        from_event: What starts a latency.
        to_event: What ends it.
        tick_ns: One tick.
        instants: With edges; times rise strictly.
        own: The latencies that the file itself gives.
        notes: What was assumed.
    """

    name: str
    from_event: str
    to_event: str
    tick_ns: Fraction
    instants: list[Instant]
    own: Paired
    notes: tuple[str, ...] = ()


def pair(instants: Iterable[Instant], overlap: str) -> Paired:
    """Pair starts and ends by an overlap policy."""
    pairing = Pairing(overlap)
    pairs: list[Pair] = []
    most_open = 0
    for instant in instants:
        pairs += (Pair(*each) for each in pairing.edges(*instant))
        most_open = max(most_open, pairing.open_at_end)
    return Paired(pairs, pairing.overlaps, pairing.orphan_ends, pairing.open_at_end, most_open)


def read_trace(
    path: Path, start: str | None, end: str | None, overlap: str, name: str | None = None
) -> Trace:
    """Read a value change dump, or a sample set of a run, a Parquet file or an importable one.

    Args:
        path: The file or run folder.
        start: Signal whose edge starts a latency; value change dumps only.
        end: Signal whose edge ends it.
        overlap: What a start does while a latency is open.
        name: The sample set, where there are several.

    Raises:
        BadInput: It cannot be read, or has no single latencies.
    """
    if path.is_file() and _is_dump(path):
        return _from_dump(path, start, end, overlap)
    if start or end:
        raise BadInput("only a value change dump has signals", "--start, --end", str(path))
    return _from_samples(_chosen(open_sample_sets(path), path, name), path)


def _is_dump(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return importers.recognise(file.read(HEAD_BYTES), str(path)) == vcd.NAME
    except BadInput:
        return False  # a journal, for instance: what it is will be told by who opens it
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None


def _from_dump(path: Path, start: str | None, end: str | None, overlap: str) -> Trace:
    source = Source(path, vcd.NAME, Options(start=start, end=end, overlap=overlap))
    opened = vcd.open_trace(source)
    instants = [Instant(time, starts, ends) for _, time, starts, ends in opened.instants]
    own = pair(instants, overlap)
    if not own.pairs:
        raise BadInput(f"holds no latency from {opened.start} to {opened.end}", str(path))
    return Trace(opened.name, start or "", end or "", opened.tick_ns, instants, own)


def _chosen(sets: Sequence[SampleSet], path: Path, name: str | None) -> SampleSet:
    names = [each.metadata.name for each in sets]
    if name is None and len(sets) != 1:
        raise BadInput(f"has {len(sets)} sample sets", str(path), f"--set: {', '.join(names[:10])}")
    chosen = [each for each in sets if name in (None, each.metadata.name)]
    if not chosen:
        raise BadInput(f"there is no sample set {name!r}", str(path), closest(name or "", names))
    return chosen[0]


def _from_samples(sample_set: SampleSet, path: Path) -> Trace:
    metadata = sample_set.metadata
    if sample_set.form != "samples":
        raise BadInput(f"{metadata.name} is a {sample_set.form}", str(path), "samples are needed")
    pairs: list[Pair] = []
    timed = "t_ns" in sample_set.columns
    for batch in sample_set.batches(*(("latency_ns", "t_ns") if timed else ("latency_ns",))):
        latencies = batch.column("latency_ns").to_pylist()
        if min(latencies, default=0) < 0:
            raise BadInput(f"{metadata.name} has negative latencies", str(path))
        if timed:
            begins = batch.column("t_ns").to_pylist()
        else:
            begins = _one_after_another(latencies, pairs[-1].end if pairs else 0)
        pairs += (Pair(at, at + each) for at, each in zip(begins, latencies, strict=True))
    if not pairs:
        raise BadInput(f"{metadata.name} holds no samples", str(path))
    if max(each.end for each in pairs) > INT64_MAX:
        raise BadInput("the time does not fit in 64 bits of nanoseconds", str(path))
    note = "the set has no times: its samples were replayed one after the other"
    return Trace(
        name=metadata.name,
        from_event=metadata.from_event,
        to_event=metadata.to_event,
        tick_ns=Fraction(1),
        instants=_instants(pairs),
        own=Paired(pairs, 0, 0, 0, 1),
        notes=() if timed else (note,),
    )


def _one_after_another(latencies: list[int], at: int) -> Iterator[int]:
    for each in latencies:
        yield at + 1
        at += each + 1


def _instants(pairs: Iterable[Pair]) -> list[Instant]:
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for begin, end in pairs:
        starts[begin] = starts.get(begin, 0) + 1
        ends[end] = ends.get(end, 0) + 1
    times = sorted(starts.keys() | ends.keys())
    return [Instant(time, starts.get(time, 0), ends.get(time, 0)) for time in times]


@dataclass(frozen=True)
class Sampled:
    """A trace as a clock samples it.

    Attributes:
        period: A clock cycle, in ticks.
        is_exact: Every edge lies on a clock edge.
        instants: In clock cycles; at most one edge of each signal, and never in two cycles running.
        merged: Edges that the clock cannot tell from the one before.
        origin: Time of cycle 0, in ticks.
    """

    period: Fraction
    is_exact: bool
    instants: list[Instant]
    merged: int
    origin: int

    def cycle_of(self, time: int) -> int:
        """Return the cycle in which an edge is seen: the first that does not begin before it."""
        return math.ceil((time - self.origin) / self.period)


def exact_period(instants: Sequence[Instant]) -> Fraction:
    """Return the longest period in ticks of a clock that samples every edge where it is.

    Between two edges of one signal there is a cycle in which it is low.
    """
    first = instants[0].time
    common = math.gcd(*(each.time - first for each in instants)) or 1
    nearest = min(
        (
            later - earlier
            for which in (1, 2)
            for earlier, later in _neighbours([each.time for each in instants if each[which]])
        ),
        default=2 * common,
    )
    return Fraction(common) if nearest >= 2 * common else Fraction(common, 2)


def _neighbours(times: Sequence[int]) -> Iterator[tuple[int, int]]:
    return itertools.pairwise(times)


def sample(instants: Sequence[Instant], period: Fraction | None = None) -> Sampled:
    """Sample a trace by a clock: an edge is seen at the first clock edge that is not before it.

    Args:
        instants: In ticks.
        period: Of the clock, in ticks, with a clock edge at time 0; None: one that is exact.
    """
    exact = period is None
    origin = instants[0].time if period is None else 0
    period = exact_period(instants) if period is None else period
    sampled = Sampled(period, exact, [], 0, origin)
    cycles: dict[int, tuple[bool, bool]] = {}
    edges = 0
    for time, starts, ends in instants:
        cycle = sampled.cycle_of(time)
        before = cycles.get(cycle, (False, False))
        cycles[cycle] = (before[0] or starts > 0, before[1] or ends > 0)
        edges += starts + ends
    seen: list[Instant] = []
    last = [-2, -2]
    for cycle, signals in cycles.items():
        new = [int(signal and last[i] != cycle - 1) for i, signal in enumerate(signals)]
        last = [cycle if signal else last[i] for i, signal in enumerate(signals)]
        if any(new):
            seen.append(Instant(cycle, *new))
    merged = edges - sum(each.starts + each.ends for each in seen)
    return replace(sampled, instants=seen, merged=merged)


@dataclass(frozen=True)
class Segment:
    """A part of a sampled trace that is replayed at once; nothing is open before it.

    Attributes:
        instants: In clock cycles from the segment's beginning, gaps shortened.
        pairs: What must come out, in these cycles.
        original: The cycle in the whole trace for each cycle with an edge here.
    """

    instants: list[Instant]
    pairs: list[Pair]
    original: dict[int, int]


def segments(sampled: Sampled, overlap: str, most_samples: int) -> Iterator[Segment]:
    """Cut a trace where nothing is open, and shorten the gaps in which nothing is.

    Latencies stay what they are. A segment has about `most_samples` samples, or more if something
    is open all the time.
    """
    pairing = Pairing(overlap)
    segment = Segment([], [], {})
    here = before = 0
    for instant in sampled.instants:
        if pairing.open_at_end:
            here += instant.time - before
        else:
            if len(segment.pairs) >= most_samples:
                yield segment
                segment, here = Segment([], [], {}), 0
            here += min(instant.time - before, IDLE_CYCLES) if segment.instants else IDLE_CYCLES
        before = instant.time
        segment.instants.append(Instant(here, instant.starts, instant.ends))
        segment.original[here] = instant.time
        found = pairing.edges(here, instant.starts, instant.ends)
        segment.pairs.extend(Pair(*each) for each in found)
    if segment.instants:
        yield segment
