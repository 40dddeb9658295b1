# SPDX-License-Identifier: Apache-2.0
"""The histogram against the definition of its scales, and against what must hold whatever the
order of samples, reads and clears: no sample is lost, none is counted twice."""

import itertools
import random
from collections import Counter
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from verification.latency_histogram.reference import linear_bin, log_linear_bin
from verification.passing import generic

WIDTH = int(generic("latency_width_g", "16"))
BINS = int(generic("bins_g", "1024"))
KIND = generic("kind_g", "linear")
SUB_BITS = int(generic("sub_bits_g", "4"))
READ_CYCLES = 4
CYCLES, QUIET = 4000, 16  # of random traffic, and behind it
MOST = 2 ** int(generic("count_bits_g", "32")) - 1


def case(*, small: bool = False) -> Any:
    """A test; one of counts of few bits is for those only, and no other is."""
    return cocotb.test(skip=small != (MOST < 1000))


def bin_of(latency: int, shift: int = 0) -> int:
    """The bin by the reference."""
    return linear_bin(latency, shift) if KIND == "linear" else log_linear_bin(latency, SUB_BITS)


def one_of_bin(number: int) -> int:
    """A latency of this bin, one of the first sixteen."""
    return next(latency for latency in range(2**WIDTH) if bin_of(latency) == number)


class Bench:
    """Drives the ports for one cycle at a time.

    Attributes:
        cycle: Clock edges so far.
        reads: Cycle and data of every answer to a read.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.cycle = 0
        self.reads: list[tuple[int, int]] = []
        self._driven: dict[str, int] = {}

    @classmethod
    async def start(cls, dut: Any) -> "Bench":
        """A bench whose bins have been swept."""
        bench = cls(dut)
        dut.shift.value = 0
        dut.rst.value = 1
        bench._drive(clear=0, sample_valid=0, read_request=0)
        cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
        await ClockCycles(dut.clk, 3)
        dut.rst.value = 0
        await bench.until_ready()
        return bench

    def _drive(self, **values: int) -> None:
        for name, value in values.items():
            if self._driven.get(name) != value:
                self._driven[name] = value
                getattr(self.dut, name).value = value

    async def until_ready(self) -> int:
        """Cycles with ready low from now on."""
        for cycles in range(BINS + 10):
            await self.step()
            if self.dut.ready.value:
                return cycles
        raise AssertionError("never ready")

    async def step(
        self,
        sample: int | None = None,
        read: int | None = None,
        *,
        saturated: int = 0,
        clears: int = 0,
        clear: int = 0,
    ) -> None:
        """One cycle with these inputs, up to the edge that takes them."""
        self._drive(
            sample_valid=sample is not None,
            sample=sample or 0,
            saturated=saturated,
            read_request=read is not None,
            read_address=read or 0,
            read_clears=clears,
            clear=clear,
        )
        await RisingEdge(self.dut.clk)
        self.cycle += 1
        if self.dut.read_valid.value:
            self.reads.append((self.cycle, int(self.dut.read_data.value)))

    async def read(self, number: int, clears: int = 0) -> int:
        """The count of a bin, read alone."""
        seen = len(self.reads)
        await self.step(read=number, clears=clears)
        while len(self.reads) == seen:
            await self.step()
        return self.reads[-1][1]

    async def all_bins(self) -> Counter[int]:
        """All bins that are not empty."""
        return Counter({i: count for i in range(BINS) if (count := await self.read(i))})

    async def clear(self) -> None:
        """All to 0, and wait."""
        await self.step(clear=1)
        await self.step()
        await self.until_ready()

    def overflow(self) -> int:
        """The overflow counter."""
        return int(self.dut.overflow.value)


def latencies(chance: random.Random) -> list[int]:
    """Latencies at and around every power of two, and some anywhere on a logarithmic scale."""
    edges = [2**bit + offset for bit in range(WIDTH + 1) for offset in (-2, -1, 0, 1)]
    spread = [chance.getrandbits(chance.randint(1, WIDTH)) for _ in range(200)]
    found = [each for each in edges + spread if 0 <= each < 2**WIDTH]
    chance.shuffle(found)
    return found


@case()
async def every_latency_in_its_bin(dut: Any) -> None:
    """All scales, with the shifts that matter; back to back; beyond the last bin: overflow."""
    bench = await Bench.start(dut)
    chance = random.Random(1)
    for shift in (0, 1, WIDTH // 2, 63) if KIND == "linear" else (0, 5):
        dut.shift.value = shift
        await bench.clear()
        values = latencies(chance)
        for value in values:
            await bench.step(value)
        for _ in range(5):
            await bench.step()
        expected = Counter(bin_of(value, shift) for value in values)
        beyond = sum(count for number, count in expected.items() if number >= BINS)
        assert bench.overflow() == beyond
        assert await bench.all_bins() == {i: n for i, n in expected.items() if i < BINS}


@case()
async def saturated_is_overflow(dut: Any) -> None:
    """A latency that its width cannot say has no bin."""
    bench = await Bench.start(dut)
    await bench.step(3, saturated=1)
    await bench.step(3)
    await bench.step(2**WIDTH - 1, saturated=1)
    for _ in range(4):
        await bench.step()
    assert bench.overflow() == 2
    assert await bench.all_bins() == {bin_of(3): 1}


@case()
async def a_clearing_read_meets_a_sample(dut: Any) -> None:
    """Every distance between them, with samples before and behind: none lost, none twice."""
    bench = await Bench.start(dut)
    value = one_of_bin(5)
    for pattern in range(16):
        for distance in range(-5, 5):
            seen = len(bench.reads)
            for cycle in range(-5, 10):
                burst = 0 <= cycle < 4 and pattern >> cycle & 1
                asks = 5 if cycle == distance else None
                await bench.step(value if burst else None, asks, clears=1)
            assert len(bench.reads) == seen + 1
            total = bench.reads[-1][1] + await bench.read(5, clears=1)
            assert total == pattern.bit_count(), (pattern, distance)


@case()
async def random_traffic_conserves_samples(dut: Any) -> None:
    """Samples in half of the cycles or more, on few bins, among reads that clear or do not.

    A read must give what came before its request, and may give what came until its answer.
    """
    bench = await Bench.start(dut)
    chance = random.Random(2)
    came: list[list[int]] = [[] for _ in range(4)]  # cycles of each bin's samples
    taken = [0] * 4
    asked: tuple[int, int, int] | None = None
    answered = 0
    for cycle in range(CYCLES + QUIET):
        busy = cycle < CYCLES
        number = chance.randrange(4) if busy and chance.random() < 0.75 else None
        asks = chance.randrange(4) if busy and asked is None and chance.random() < 0.5 else None
        clears = chance.getrandbits(1)
        await bench.step(None if number is None else one_of_bin(number), asks, clears=clears)
        if number is not None:
            came[number].append(bench.cycle)
        if asks is not None:
            asked = (asks, clears, bench.cycle)
        elif asked is not None and len(bench.reads) > answered:
            wanted, cleared, since = asked
            until, count = bench.reads[answered]
            answered, asked = answered + 1, None
            least = sum(each < since for each in came[wanted]) - taken[wanted]
            most = sum(each < until for each in came[wanted]) - taken[wanted]
            assert least <= count <= most
            taken[wanted] += count * cleared
    assert asked is None
    assert answered > CYCLES // 20
    left = [await bench.read(number) for number in range(4)]
    assert [a + b for a, b in zip(taken, left, strict=True)] == [len(each) for each in came]
    assert bench.overflow() == 0


@case()
async def reads_take_four_cycles_or_more(dut: Any) -> None:
    """Four cycles; one more for every sample from the request's cycle on, back to back."""
    bench = await Bench.start(dut)
    await bench.step()
    for samples in range(4):
        await bench.step(one_of_bin(2) if samples else None, read=1)
        asked = bench.cycle
        for _ in range(samples - 1):
            await bench.step(one_of_bin(2))
        for _ in range(8):
            await bench.step()
        assert bench.reads[-1][0] - asked == READ_CYCLES + samples


@case()
async def clear_wins(dut: Any) -> None:
    """Samples before, with and behind a clear are gone; ready is low for one cycle a bin."""
    bench = await Bench.start(dut)
    value, beyond = one_of_bin(3), 2**WIDTH - 1
    for lead in range(6):
        for _ in range(3):
            await bench.step(value)
            await bench.step(beyond, saturated=1)
        for _ in range(lead):
            await bench.step()
        await bench.step(value, clear=1, saturated=lead % 2)
        await bench.step(beyond, saturated=1)
        assert not dut.ready.value
        await bench.step(value)
        assert await bench.until_ready() == BINS - 2
        assert await bench.all_bins() == {}
        assert bench.overflow() == 0


@case()
async def a_read_waits_for_ready(dut: Any) -> None:
    """A bin asked for while the bins are swept is answered behind it, with 0."""
    bench = await Bench.start(dut)
    await bench.step(one_of_bin(7))
    await bench.step(clear=1)
    assert await bench.read(7) == 0
    assert dut.ready.value


@case(small=True)
async def counts_stop_at_their_maximum(dut: Any) -> None:
    """Back to back and one by one; a clearing read begins anew."""
    bench = await Bench.start(dut)
    value = one_of_bin(6)
    for _ in range(MOST - 1):
        await bench.step(value)
    assert await bench.read(6) == MOST - 1
    for _ in range(3):
        await bench.step(value)
    for _ in range(2):
        await bench.step(value)
        assert await bench.read(6) == MOST
    assert await bench.read(6, clears=1) == MOST
    await bench.step(value)
    assert await bench.read(6) == 1


@case()
async def reset_forgets(dut: Any) -> None:
    """Reset at every moment of a read, also of one that waits: no answer behind it, all bins 0."""
    bench = await Bench.start(dut)
    idle: tuple[int | None, ...] = (None, one_of_bin(1))
    for moment, length, meanwhile in itertools.product(range(6), (1, 2), idle):
        await bench.step(one_of_bin(1))
        await bench.step(one_of_bin(1), read=1)
        for _ in range(moment):
            await bench.step(meanwhile)
        dut.rst.value = 1
        for _ in range(length):
            await bench.step(meanwhile)
        dut.rst.value = 0
        seen = len(bench.reads)
        await bench.until_ready()
        for _ in range(6):
            await bench.step()
        assert len(bench.reads) == seen
        assert await bench.read(1) == 0
