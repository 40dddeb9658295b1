"""Values wider than a simulation lasts: 48-bit latencies, 64-bit times, and all that comes of them.

With the queue and a shared time a latency is the difference of two values of `time_in`, so that a
jump of it makes any latency within some cycles. What is expected is computed here, from the jumps
and the clock cycles between the edges: neither from the design nor from the other tests' model.
"""

import random

import cocotb
from cocotb.triggers import RisingEdge

from verification.latencies_ip.bench import Bench, case

LONGEST = 2**48 - 1
EDGES = (2**32, 2**33, 2**47, 2**32 + 2**31)


class Jumps:
    """Drives `time_in`: it rises by 1 every cycle, and jumps when it is told to."""

    def __init__(self, bench: Bench, begin: int) -> None:
        self.bench = bench
        self.now = begin
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        while True:
            self.bench.dut.time_in.value = self.now % 2**64
            await RisingEdge(self.bench.dut.aclk)
            self.now += 1

    async def measure(self, latency: int) -> None:
        """Make a latency of 12 cycles or more."""
        bench = self.bench
        await bench.set(irq=1)
        begun = self.now
        await bench.set(irq=0)
        await bench.cycles(8)  # through the synchronisers
        self.now += max(0, latency - 12)
        await bench.cycles(1)
        await bench.cycles(min(latency, 12) - 11)
        while self.now - begun < latency - 1:
            await bench.cycles(1)
        await bench.set(ack=1)
        assert self.now - begun == latency
        await bench.set(ack=0)
        await bench.settle()


async def _jumps(bench: Bench, begin: int) -> Jumps:
    jumps = Jumps(bench, begin)
    await bench.write("alarm_lat", bench.ip.latency_max)
    await bench.write("alarm", 1)
    await bench.begin()
    return jumps


def _drawn() -> list[int]:
    chance = random.Random(48)
    around = [edge + chance.randrange(-3, 4) for edge in EDGES]
    drawn = [chance.randrange(12, 2 ** chance.randrange(5, 49)) for _ in range(12)]
    latencies = [*around, *drawn, 2**32 - 1, LONGEST, 13]
    chance.shuffle(latencies)
    return latencies


async def _pair(bench: Bench, name: str) -> int:
    return await bench.read(name) | await bench.read(f"{name}_high") << 32


@case()
async def latencies_of_48_bits(bench: Bench) -> None:
    """Statistics, memory, sums, snapshot, stream: each is of the whole latency."""
    jumps = await _jumps(bench, 2**32 - 200)
    made: list[int] = []
    for latency in _drawn():
        await jumps.measure(latency)
        made.append(latency)
        await bench.write("command", 1)
        for prefix in ("", "snapshot_"):
            read = [await _pair(bench, f"{prefix}{name}") for name in ("last", "max", "min")]
            assert read == [latency, max(made), min(made)], prefix
        assert await _pair(bench, "snapshot_sum") == sum(made) % 2**64
        squares = [await bench.read(f"snapshot_sum_of_squares_{word}") for word in range(4)]
        wanted = sum(one * one for one in made)
        assert sum(word << 32 * index for index, word in enumerate(squares)) == wanted
    assert await bench.read("snapshot_num") == len(made)
    assert await bench.samples(len(made)) == made
    fields = [beat >> 64 & LONGEST for beat in bench.beats]
    assert fields == made


@case()
async def times_of_64_bits(bench: Bench) -> None:
    """Time stamps in memory and stream, the time of a snapshot, `time_high` with `time_low`."""
    jumps = await _jumps(bench, 5)
    for begin in (2**32 - 60, 2**48 - 60, 2**63 - 60, 7 << 40):
        await bench.begin()
        jumps.now = begin
        delay = bench.ip.synchroniser_stages
        bench.beats.clear()
        wanted = []
        for latency in (12, 30, 2**33 + 5):
            wanted.append(jumps.now + delay)
            await jumps.measure(latency)
        region = bench.ip.region_bytes
        for index, start in enumerate(wanted):
            low = await bench.read_word(bench.s00, 2 * region + 4 * index)
            high = await bench.read_word(bench.s00, 3 * region + 4 * index)
            found = low | high << 32
            assert 0 <= found - start <= 2, (found, start)
            assert bench.beats[index] % 2**64 == found
        before = jumps.now
        await bench.write("command", 1)
        assert before <= await _pair(bench, "snapshot_time") <= jumps.now
        jumps.now = (jumps.now | 2**32 - 1) - 8  # the low word is about to wrap
        for _ in range(6):
            before = jumps.now
            low = await bench.read("time_low")
            after = jumps.now
            await bench.cycles(12)
            found = low | await bench.read("time_high") << 32
            assert before <= found <= after


@case()
async def alarms_of_48_bits(bench: Bench) -> None:
    """Both words of `alarm_lat` count."""
    jumps = await _jumps(bench, 5)
    for limit in (2**32 + 20, 2**47 + 2**31, 2**33):
        await bench.write("alarm_lat", limit)
        for latency, alarms in ((limit, 0), (13, 0), (limit - 2**32 + 12, 0), (limit + 1, 1)):
            await jumps.measure(latency)
            assert await bench.read("alarm") == alarms, (limit, latency)
        await bench.write("alarm", 1)


@case()
async def saturation_at_48_bits(bench: Bench) -> None:
    """One more than the longest is marked wherever it is told; a new series forgets it."""
    jumps = await _jumps(bench, 99)
    await jumps.measure(LONGEST)
    assert await bench.read("saturations") == 0
    assert not await bench.read("status") & 16
    assert await bench.read("alarm") == 0
    await jumps.measure(LONGEST + 1)
    assert await bench.read("saturations") == 1
    assert await bench.read("status") & 16
    assert await bench.read("alarm") == 1
    assert [beat >> 120 & 1 for beat in bench.beats] == [0, 1]
    assert await _pair(bench, "last") == LONGEST
    await bench.begin()
    assert not await bench.read("status") & 16
    assert await bench.read("saturations") == 0


@case()
async def counts_of_a_snapshot_are_apart(bench: Bench) -> None:
    """Each count of a snapshot is its own: all of them differ."""
    jumps = await _jumps(bench, 5)
    await jumps.measure(LONGEST + 3)
    for _ in range(7):
        await bench.pulse(ack=1)
    for _ in range(bench.ip.queue_depth + 3):
        await bench.pulse(irq=1)
    await bench.settle()
    names = ("orphans", "overlaps", "missed", "saturations")
    live = [await bench.read(name) for name in names]
    assert live == [7, bench.ip.queue_depth + 2, 3, 1]
    await bench.write("command", 1)
    await bench.begin()
    assert [await bench.read(f"snapshot_{name}") for name in names] == live
    assert [await bench.read(name) for name in names] == [0] * 4


@case()
async def timeouts_are_of_a_series(bench: Bench) -> None:
    """What was given up is counted, and forgotten by the next series."""
    await bench.write("timeout", 20)
    await _jumps(bench, 5)
    for count in (1, 2):
        await bench.pulse(irq=1)
        await bench.cycles(60)
        assert await bench.read("timeouts") == count
    assert await bench.read("interrupt_status") & 2
    await bench.begin()
    assert await bench.read("timeouts") == 0
    await bench.write("timeout", 0)
    await bench.write("interrupt_status", 15)


@case()
async def a_new_event_wins_over_clearing_interrupt_status(bench: Bench) -> None:
    """At every offset of the clearing write: the event is cleared before, or stays."""
    jumps = await _jumps(bench, 5)
    await bench.write("alarm_lat", 20)
    left = []
    for offset in range(14):
        await jumps.measure(30)
        assert await bench.read("interrupt_status") & 1
        await bench.pulse(irq=1)
        jumps.now += 2**20
        bench.dut.ack_in.value = 1
        await bench.cycles(offset)
        await bench.write("interrupt_status", 1)
        await bench.set(ack=0)
        await bench.settle()
        left.append(await bench.read("interrupt_status") & 1)
        assert int(bench.dut.alarm.value) == 1
        await bench.write("interrupt_status", 1)
    # The write that is taken in the event's own cycle is the last one that the event survives.
    last = bench.ip.synchroniser_stages - 1
    assert left == [int(offset <= last) for offset in range(14)], left


@case()
async def self_test_is_of_its_own_edges_alone(bench: Bench) -> None:
    """Edges that are still in the synchronisers, and a second command, disturb nothing."""
    await bench.write("self_test_delay", 3)
    await bench.write("self_test_count", 4)
    Jumps(bench, 5)
    for ahead in range(6):
        await bench.begin()
        command = cocotb.start_soon(bench.write("command", 2))
        await bench.cycles(ahead)
        await bench.set(irq=1)
        await bench.set(irq=0, ack=ahead & 1)
        await bench.set(ack=0)
        await command
        await bench.cycles(30)
        if ahead == 5:
            await bench.write("command", 2)  # begins anew
        await bench.cycles(150)
        assert not await bench.read("status") & 0x40
        assert await bench.read("num") == 4
        assert await bench.samples(4) == [3, 4, 5, 6], ahead
        counts = [await bench.read(name) for name in ("orphans", "overlaps", "missed")]
        assert counts == [0, 0, 0], ahead
