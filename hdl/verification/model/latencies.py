"""What the Latencies IP must answer, written from its specification alone.

The circuit counts in every clock cycle; this model only looks at events, keeps the start and the
latency of each sample and derives everything else (statistics, sums, histogram, memory, stream)
from these lists when asked. So the two share neither structure nor code. Times are clock cycles
("ticks"): an edge belongs to the cycle in which the signal was first sampled high. An event that a
register write causes belongs to the cycle of the write's handshake and comes after the edges of
that cycle.
"""

from collections import Counter, deque
from collections.abc import Iterable
from typing import NamedTuple

from verification.model.configuration import Configuration


class Sample(NamedTuple):
    """One finished measurement: when it started, and how many cycles it took in truth."""

    start: int
    latency: int


class Frozen(NamedTuple):
    """A half of the memory that keeps what came around a trigger."""

    half: int
    trigger_position: int
    end: int
    held: int


class Latencies:
    """One instance of the IP, fed with events, asked for what its registers must read.

    Attributes:
        we: Whether a series is being measured.
        alarm: Sticky: a latency was beyond `alarm_lat`, or beyond what the width can tell.
        alarm_lat: Longest latency without an alarm; the value at the ack counts.
        timeout: Cycles after which an open measurement is given up; 0: never.
        wrap: The memory is a ring; otherwise it stops when it is full.
        freeze_on_alarm: An alarm freezes as a new maximum does.
        post_trigger: Samples that a half of the memory takes after its trigger.
        starts: Start of each sample of the series.
        true_latencies: Its latency, however long.
        orphans: Acks with nothing open.
        overlaps: Irqs while something was open.
        missed: Irqs that will get no sample.
        timeouts: Measurements given up.
        alarmed: Indices of samples that were alarms.
    """

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.we = False
        self.alarm = False
        self._alarm_tick = -1
        self.alarm_lat = configuration.latency_max
        self.timeout = 0
        self.wrap = False
        self.freeze_on_alarm = False
        self.post_trigger = 0
        self._memory: dict[int, Sample] = {}  # what earlier series left behind
        self._begin()

    def _begin(self) -> None:
        self.starts: list[int] = []
        self.true_latencies: list[int] = []
        self.alarmed: list[int] = []
        self.orphans = self.overlaps = self.missed = self.timeouts = 0
        self._open: deque[int] = deque()

    @property
    def open(self) -> int:
        """How many measurements are open."""
        return len(self._open)

    def write_we(self, value: bool) -> None:
        """Write `we`: a rising edge starts a new series; a falling one aborts what is open."""
        if value and not self.we:
            self._memory = self.memory()
            self._begin()
        elif not value:
            self._open.clear()
        self.we = value

    def clear_alarm(self, tick: int) -> None:
        """Write 1 to `alarm`; one that rises in the same cycle stays."""
        self.alarm = self._alarm_tick >= tick

    def edges(self, tick: int, irq: bool, ack: bool) -> None:
        """Take the rising edges of one cycle."""
        if not self.we:
            return
        if self.timeout:
            self.pass_time(tick)
        if ack:
            if self._open:
                self._finish(self._open.popleft(), tick)
            elif irq:
                self._finish(tick, tick)
                return
            else:
                self.orphans += 1
        if self.timeout:
            self.pass_time(tick + 1)  # an ack in the last cycle was in time
        if irq:
            self._start(tick)

    def run(self, ticks: Iterable[int], kinds: Iterable[int]) -> None:
        """Take many edges: kind 1 is an irq, 2 an ack, 3 both in one cycle."""
        for tick, kind in zip(ticks, kinds, strict=True):
            self.edges(tick, kind & 1 == 1, kind & 2 == 2)

    def pass_time(self, tick: int) -> None:
        """Give up what was open for `timeout` cycles before this one and had no ack."""
        while self.timeout and self._open and tick - self._open[0] > self.timeout:
            self._open.popleft()
            self.timeouts += 1
            self.missed += 1

    def _start(self, tick: int) -> None:
        if not self._open:
            self._open.append(tick)
            return
        self.overlaps += 1
        policy = self.configuration.overlap_policy
        if policy == "queue" and len(self._open) < self.configuration.queue_depth:
            self._open.append(tick)
            return
        self.missed += 1  # this one, or with "restart" the one it replaces
        if policy == "restart":
            self._open[0] = tick

    def _finish(self, start: int, tick: int) -> None:
        latency = tick - start
        self.starts.append(start)
        self.true_latencies.append(latency)
        # all ones as alarm_lat: only a latency that is longer than can be told exceeds it
        if latency > self.alarm_lat:
            self.alarm = True
            # with the queue the alarm rises one cycle later, and wins over a clear until then
            self._alarm_tick = tick + (self.configuration.overlap_policy == "queue")
            self.alarmed.append(len(self.starts) - 1)

    # What the registers read, derived from the samples.

    def told(self, latency: int) -> int:
        """The latency as the IP tells it: all ones if it is longer than that."""
        return min(latency, self.configuration.latency_max)

    def latencies(self) -> list[int]:
        """Every latency of the series as told."""
        return [self.told(latency) for latency in self.true_latencies]

    def samples(self) -> list[Sample]:
        """Every sample of the series, in order."""
        return list(map(Sample, self.starts, self.true_latencies))

    @property
    def num(self) -> int:
        """Samples of the series; stops at its largest value."""
        return min(len(self.starts), (1 << self.configuration.num_width) - 1)

    @property
    def last(self) -> int:
        """The newest latency; 0 before the first."""
        return self.told(self.true_latencies[-1]) if self.starts else 0

    @property
    def max(self) -> int:
        """The largest latency; 0 before the first."""
        return max(self.latencies(), default=0)

    @property
    def min(self) -> int:
        """The smallest latency; all ones before the first."""
        return min(self.latencies(), default=self.configuration.latency_max)

    @property
    def saturations(self) -> int:
        """Samples longer than the width can tell."""
        largest = self.configuration.latency_max
        return sum(latency > largest for latency in self.true_latencies)

    @property
    def sum(self) -> int:
        """Sum of the latencies as told, modulo 2**64."""
        return sum(self.latencies()) % 2**64

    @property
    def sum_of_squares(self) -> int:
        """Sum of their squares, modulo 2**128."""
        return sum(latency * latency for latency in self.latencies()) % 2**128

    @property
    def full(self) -> bool:
        """The series has at least as many samples as the memory."""
        return len(self.starts) >= self.configuration.depth

    def memory(self) -> dict[int, Sample]:
        """Samples by index, those of earlier series included where nothing is newer."""
        return self._memory | self.stored()

    def stored(self) -> dict[int, Sample]:
        """Samples of this series by index."""
        if self.configuration.freeze:
            return self.halves()[0]
        depth = self.configuration.depth
        samples = self.samples()
        kept = samples if self.wrap else samples[:depth]
        return {index % depth: sample for index, sample in enumerate(kept)}

    def halves(self) -> tuple[dict[int, Sample], Frozen | None, int]:
        """The memory as two rings: its contents, the frozen one, where the next sample goes."""
        size = self.configuration.depth // 2
        memory: dict[int, Sample] = {}
        frozen: Frozen | None = None
        half = taken = trigger = largest = 0
        ends_at: int | None = None  # samples of this half when it is frozen
        for index, sample in enumerate(self.samples()):
            memory[half * size + taken % size] = sample
            told = self.told(sample.latency)
            if told > largest or (self.freeze_on_alarm and index in self.alarmed):
                trigger, ends_at = taken % size, taken + 1 + min(self.post_trigger, size - 1)
            largest = max(largest, told)
            taken += 1
            if taken == ends_at:
                frozen = Frozen(half, trigger, taken % size, min(taken, size))
                half, taken, ends_at = 1 - half, 0, None
        return memory, frozen, half * size + taken % size

    def histogram(self, shift: int = 0) -> tuple[Counter[int], int]:
        """Samples in each bin, and samples beyond the last one."""
        largest = self.configuration.latency_max
        bins = Counter(
            self.bin(latency >> shift) for latency in self.true_latencies if latency <= largest
        )
        inside = {i: n for i, n in bins.items() if i < self.configuration.histogram_bins}
        return Counter(inside), len(self.starts) - sum(inside.values())

    def bin(self, value: int) -> int:
        """The bin of a latency; as in HDR histograms if the bins are log-linear."""
        if not self.configuration.log_linear:
            return value
        sub_bits = self.configuration.histogram_sub_bits
        doublings = max(0, value.bit_length() - 1 - sub_bits)
        return (doublings << sub_bits) + (value >> doublings)

    def beats(self) -> list[int]:
        """The stream's 128-bit data for every sample of the series, none lost."""
        channel = self.configuration.channel
        largest = self.configuration.latency_max
        return [
            (start % 2**64)
            | self.told(latency) << 64
            | channel << 112
            | (latency > largest) << 120
            | index % 128 << 121
            for index, (start, latency) in enumerate(self.samples())
        ]
