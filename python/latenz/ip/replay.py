"""A trace drives a simulated Latencies IP: what it measures must be what the trace contains."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from latenz.errors import BadInput
from latenz.files import scratch_place
from latenz.ip.edges import Edge, write_edges
from latenz.ip.instance import LatenciesInstance, open_instances
from latenz.ip.link import SocketLink
from latenz.ip.record import TOOL
from latenz.ip.simulated import Scenario, simulated_board
from latenz.ip.tally import Tally
from latenz.ip.trace import Instant, Paired, Sampled, Segment, Trace, pair, sample, segments
from latenz.model import Metadata, SampleSet, TimeBase

_WIDTHS = (16, 32, 48)
_SEGMENT_SAMPLES = 4096
_MOST_DEPTH = 65536
_MOST_CYCLES = 1_000_000_000
_CYCLES_PER_MINUTE = 3_000_000
"""Which GHDL simulates, about."""
_SOME_MINUTES = 20_000_000
_UNASKED = 10 * _CYCLES_PER_MINUTE
"""Cycles of a replay that nobody has chosen a clock for."""
_LEAST_QUEUE = 16
_MOST_QUEUE = 1024
_AFTER_END = 20
_STEP_CYCLES = 20_000
_FEATURES = ("counters_g", "time_stamp_g", "snapshot_g", "sums_g")


@dataclass(frozen=True)
class Plan:
    """A trace, as the simulated IP is going to see it.

    Attributes:
        trace: What is replayed.
        overlap: The IP's overlap policy.
        sampled: The trace as the IP's clock samples it.
        expected: What must come out of that.
        cycles: That have to be simulated.
        parts: The trace in pieces that fit in the IP's memory.
        generics: What the IP is built with.
    """

    trace: Trace
    overlap: str
    sampled: Sampled
    expected: Paired
    cycles: int
    parts: list[Segment]
    generics: dict[str, int | bool | str]

    @classmethod
    def of(cls, trace: Trace, overlap: str, clock_hz: int | None) -> "Plan":
        """Plan a replay.

        Args:
            trace: What is to be replayed.
            overlap: What a start does while a latency is open.
            clock_hz: Of the IP; None: so fast that every edge lies on a clock edge.

        Raises:
            BadInput: It does not fit in an IP, or takes too long.
        """
        period = None if clock_hz is None else Fraction(10**9, clock_hz) / trace.tick_ns
        sampled = sample(trace.instants, period)
        expected = pair(sampled.instants, overlap)
        parts = list(segments(sampled, overlap, _SEGMENT_SAMPLES))
        cycles = sum(part.instants[-1].time + _AFTER_END for part in parts)
        if cycles > (_UNASKED if clock_hz is None else _MOST_CYCLES):
            slower = _slower(sampled.period * trace.tick_ns, cycles)
            raise BadInput(
                f"{cycles:,} clock cycles take {_minutes(cycles)} to simulate",
                trace.name,
                f"give a slower clock, such as --clock {slower}; that takes some minutes, and times"
                " are rounded to its cycles",
            )
        return cls(
            trace,
            overlap,
            sampled,
            expected,
            cycles,
            parts,
            _generics(trace, overlap, expected, parts),
        )

    @property
    def announcement(self) -> str:
        """What is going to be simulated and about how long that takes; empty if it is soon done."""
        if self.cycles < _CYCLES_PER_MINUTE:
            return ""
        return f"simulating {self.cycles:,} clock cycles: {_minutes(self.cycles)}"

    @property
    def cycle_ns(self) -> Fraction:
        """A clock cycle in nanoseconds."""
        return self.sampled.period * self.trace.tick_ns


def _minutes(cycles: int) -> str:
    """Return about how long it takes to simulate so many cycles."""
    minutes = -(-cycles // _CYCLES_PER_MINUTE)
    return f"about {minutes} min" if minutes < 120 else f"about {minutes // 60} h"


def _slower(cycle_ns: Fraction, cycles: int) -> str:
    """Return a clock, a power of ten, by which a trace takes some minutes."""
    hertz = 1_000_000_000 * _SOME_MINUTES // (cycle_ns * cycles)
    hertz = 10 ** (len(str(max(1, hertz))) - 1)
    units = {"GHz": 1_000_000_000, "MHz": 1_000_000, "kHz": 1_000, "Hz": 1}
    return next(f"{hertz // size}{unit}" for unit, size in units.items() if hertz >= size)


def _generics(
    trace: Trace, overlap: str, expected: Paired, parts: list[Segment]
) -> dict[str, int | bool | str]:
    longest = max((each.end - each.begin for each in expected.pairs), default=0)
    width = next((each for each in _WIDTHS if longest < (1 << each) - 1), None)
    if width is None:
        raise BadInput(f"a latency of {longest} cycles does not fit in 48 bits", trace.name)
    depth = _power_of_two(max(2, *(len(part.pairs) for part in parts)))
    queue = _power_of_two(max(_LEAST_QUEUE, expected.most_open))
    if depth > _MOST_DEPTH or queue > _MOST_QUEUE:
        raise BadInput(
            f"up to {expected.most_open} latencies are open at once, and never none",
            trace.name,
            "is the end signal the right one?",
        )
    return {
        "latency_width_g": width,
        "depth_g": depth,
        "num_width_g": 32,
        "overlap_policy_g": overlap,
        "queue_depth_g": queue,
        **dict.fromkeys(_FEATURES, True),
    }


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


@dataclass
class Replayed:
    """What the IP measured, in cycles of the whole trace.

    Attributes:
        latencies: As read from its memory.
        begins: Cycle of each start by its time stamps, None where no edge was there.
        overlaps: As it counted.
        orphan_ends: As it counted.
        open_at_end: Whether a measurement was open after the last edge.
        disagreements: Where its own statistics contradict its samples.
    """

    latencies: list[int] = field(default_factory=list)
    begins: list[int | None] = field(default_factory=list)
    overlaps: int = 0
    orphan_ends: int = 0
    open_at_end: bool = False
    disagreements: list[str] = field(default_factory=list)
    is_whole: bool = False


def replay(plan: Plan, stopped: Callable[[], bool], progress: Callable[[int], None]) -> Replayed:
    """Replay a trace through a simulated IP; stops early when `stopped` says so.

    Args:
        plan: What to replay.
        stopped: Asked now and then.
        progress: Told how many cycles have been simulated.
    """
    measured = Replayed()
    done = 0
    for part in plan.parts:
        for cycles in _replay_part(plan, part, measured):
            progress(done + cycles)
            if stopped():
                return measured
        done += part.instants[-1].time + _AFTER_END
    measured.is_whole = True
    return measured


def _replay_part(plan: Plan, part: Segment, measured: Replayed) -> Iterator[int]:
    """Replay one segment; give the cycles done so far. What it measured is added at the end."""
    with tempfile.TemporaryDirectory(prefix="latenz-replay-", dir=scratch_place()) as folder:
        path = Path(folder, "edges.csv")
        write_edges(path, _levels(part.instants))
        scenario = Scenario(replay=path)
        with (
            simulated_board("latencies_ip", plan.generics, scenario) as socket,
            SocketLink("replay", str(socket)) as link,
        ):
            instance = open_instances(link)[0]
            instance.start()
            total = part.instants[-1].time + _AFTER_END
            for at in range(0, total, _STEP_CYCLES):
                link.wait(min(_STEP_CYCLES, total - at))
                yield min(at + _STEP_CYCLES, total)
            _take(instance, part, measured)


def _levels(instants: list[Instant]) -> Iterator[Edge]:
    """Give pulses of one cycle; `sample` has seen to it that they do not touch."""
    low_at: int | None = None
    for cycle, starts, ends in instants:
        if low_at is not None and low_at < cycle:
            yield Edge(low_at, 0, 0)
        yield Edge(cycle, starts, ends)
        low_at = cycle + 1
    if low_at is not None:
        yield Edge(low_at, 0, 0)


def _take(instance: LatenciesInstance, part: Segment, measured: Replayed) -> None:
    """Read what was measured, and hold it against the IP's own statistics."""
    measured.open_at_end = instance.status("open")
    instance.stop()
    told = instance.statistics()
    kept = min(told.num, instance.configuration.depth)
    samples = instance.read_samples(0, kept)
    tally = Tally(instance.configuration, 0, instance.latency_register("alarm_lat"))
    tally.add(samples.latency)
    measured.disagreements += tally.disagreements(told, None, told.num - kept)
    measured.overlaps += told.overlaps or 0
    measured.orphan_ends += told.orphans or 0
    measured.latencies += samples.latency.tolist()
    if samples.start is not None and kept:
        ticks = samples.start.tolist()
        # The tick of cycle 0 follows from the first sample: all others must then fit.
        offset = ticks[0] - (part.pairs[0].begin if part.pairs else 0)
        measured.begins += [part.original.get(tick - offset) for tick in ticks]


@dataclass(frozen=True)
class Comparison:
    """What was measured beside what the trace contains.

    Attributes:
        samples: Measured.
        expected: In the trace, as the clock samples it.
        in_trace: In the trace itself.
        identical: Every latency, every start and every count is as in the trace itself, or, where
            the clock is coarser than the trace, as in the trace sampled by that clock.
        differences: What is not, the first few.
        largest_ns: The most by which a latency differs from the trace's own, because of the clock;
            None where other latencies were measured at all: from other starts.
    """

    samples: int
    expected: int
    in_trace: int
    identical: bool
    differences: list[str]
    largest_ns: Fraction | None


def compare(plan: Plan, measured: Replayed) -> Comparison:
    """Compare what was measured with the trace."""
    expected = plan.expected
    differences = list(measured.disagreements)
    found = list(zip(measured.begins, measured.latencies, strict=True))
    wanted = [(each.begin, each.end - each.begin) for each in expected.pairs]
    differences += [
        f"sample {i}: {got[1]} cycles from cycle {got[0]}, {want[1]} from {want[0]} in the trace"
        for i, (got, want) in enumerate(zip(found, wanted, strict=False))
        if got != want
    ]
    counts = {
        "samples": (len(found), len(wanted)),
        "overlaps": (measured.overlaps, expected.overlaps),
        "orphan ends": (measured.orphan_ends, expected.orphan_ends),
        "open at the end": (int(measured.open_at_end), int(expected.open_at_end > 0)),
    }
    differences += [
        f"{name}: {got}, {want} in the trace" for name, (got, want) in counts.items() if got != want
    ]
    if plan.sampled.is_exact and plan.sampled.merged:
        differences.append(
            f"{plan.sampled.merged} edges come together with another of their signal, at one time: "
            "no clock can tell them apart"
        )
    own = sorted(plan.trace.own.pairs)
    largest = None
    if measured.begins == [plan.sampled.cycle_of(each.begin) for each in own]:
        own_ticks = (each.end - each.begin for each in own)
        errors = (
            abs(got * plan.sampled.period - want)
            for got, want in zip(measured.latencies, own_ticks, strict=True)
        )
        largest = max(errors, default=Fraction(0)) * plan.trace.tick_ns
    if plan.sampled.is_exact and not differences and largest != 0:
        differences.append(
            "the trace's own latencies are others: with this policy, some are left out"
        )
    return Comparison(len(found), len(wanted), len(own), not differences, differences[:10], largest)


def sample_set(plan: Plan, measured: Replayed) -> SampleSet | None:
    """Return what was measured as a sample set; None if nothing was."""
    if not measured.latencies:
        return None
    origin = plan.sampled.origin
    tick_ns, period = plan.trace.tick_ns, plan.sampled.period
    exact = [latency * plan.cycle_ns for latency in measured.latencies]
    columns = {"latency_ns": [int(each) for each in exact]}
    if None not in measured.begins:
        begins = [
            (origin + begin * period) * tick_ns for begin in measured.begins if begin is not None
        ]
        columns = {"t_ns": [int(each) for each in begins], **columns}
    rounded = sum(each.denominator != 1 for each in exact)
    metadata = Metadata(
        name=plan.trace.name,
        time_base=TimeBase.SIMULATED,
        from_event=plan.trace.from_event,
        to_event=plan.trace.to_event,
        tool=TOOL,
        tool_version="replay",
        resolution_ns=max(1, int(plan.cycle_ns) + (0 if plan.cycle_ns.denominator == 1 else 2)),
        overlaps=measured.overlaps,
        orphan_ends=measured.orphan_ends,
        open_at_end=plan.expected.open_at_end if measured.open_at_end else 0,
        notes=tuple(_notes(plan, measured, rounded)),
    )
    return SampleSet.from_columns(metadata, **columns)


def _notes(plan: Plan, measured: Replayed, rounded: int) -> Iterator[str]:
    yield from plan.trace.notes
    if not plan.sampled.is_exact:
        yield f"edges were sampled by a clock of {float(plan.cycle_ns):g} ns"
    if plan.sampled.merged:
        yield f"{plan.sampled.merged} edges came too soon after another one for that clock"
    if rounded:
        yield f"{rounded} latencies are no whole nanoseconds and were rounded down"
    if not measured.is_whole:
        yield "interrupted: only the beginning of the trace was replayed"
