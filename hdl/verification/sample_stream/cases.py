# SPDX-License-Identifier: Apache-2.0
"""The sample stream against a queue of sixteen, with receivers of every pace."""

import random
from collections import deque
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from verification.passing import generic

CHANNEL = int(generic("channel_g", "0"))
DEPTH = 16


def beat(tick: int, latency: int, saturated: int, number: int) -> int:
    """The beat that a sample becomes."""
    return tick | latency << 64 | CHANNEL << 112 | saturated << 120 | (number % 128) << 121


class Bench:
    """Drives samples, receives beats, and knows what must come.

    Attributes:
        waiting: Beats that are stored, oldest first.
        number: Of the next sample in its series.
        dropped: Samples of the series that found no place.
        sent: Beats received in the series.
        received: Beats received at all.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.chance = random.Random(11)
        self.waiting: deque[int] = deque()
        self.number = self.dropped = self.sent = self.received = 0

    @classmethod
    async def start(cls, dut: Any) -> "Bench":
        """A bench whose design has been reset."""
        for name in ("clear", "sample_valid", "sample", "saturated", "start_tick", "m_axis_tready"):
            getattr(dut, name).value = 0
        dut.rst.value = 1
        cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
        await ClockCycles(dut.clk, 3)
        dut.rst.value = 0
        return cls(dut)

    async def step(self, sample: bool, ready: bool, clear: bool = False) -> None:
        """One cycle; what the ports say in it must be what the queue says."""
        dut, chance = self.dut, self.chance
        tick, latency = chance.getrandbits(64), chance.getrandbits(48)
        saturated = chance.getrandbits(1)
        dut.sample_valid.value, dut.sample.value = sample, latency
        dut.saturated.value, dut.start_tick.value = saturated, tick
        dut.m_axis_tready.value, dut.clear.value = ready, clear
        await RisingEdge(dut.clk)
        assert bool(dut.m_axis_tvalid.value) == bool(self.waiting)
        assert int(dut.dropped.value) == self.dropped
        assert int(dut.sent.value) == self.sent
        stored = len(self.waiting)
        if self.waiting:
            assert int(dut.m_axis_tdata.value) == self.waiting[0]
            if ready:
                self.waiting.popleft()
                self.sent += 1
                self.received += 1
        if sample and not clear:
            if stored < DEPTH:
                self.waiting.append(beat(tick, latency, saturated, self.number))
            else:
                self.dropped += 1
            self.number += 1
        if clear:
            self.number = self.dropped = self.sent = 0


@cocotb.test()
async def any_pace(dut: Any) -> None:
    """Samples and receiver from rare to every cycle; a clear now and then, its beats kept."""
    bench = await Bench.start(dut)
    for samples in (0.05, 0.4, 0.6, 1.0):
        for ready in (0.05, 0.5, 1.0):
            for _ in range(250):
                chance = bench.chance.random
                await bench.step(chance() < samples, chance() < ready, chance() < 0.01)
    assert bench.received > 500


@cocotb.test()
async def the_sequence_shows_a_gap(dut: Any) -> None:
    """Twenty samples, none taken: sixteen are kept, the next sequence number is twenty."""
    bench = await Bench.start(dut)
    for _ in range(20):
        await bench.step(sample=True, ready=False)
    await bench.step(sample=False, ready=True)
    assert int(dut.dropped.value) == 4
    await bench.step(sample=True, ready=True)
    sequence = [each >> 121 for each in bench.waiting]
    assert sequence == [*range(2, 16), 20]
    for _ in range(150):
        await bench.step(sample=True, ready=True)
    assert bench.waiting[0] >> 121 < 128


@cocotb.test()
async def reset_empties(dut: Any) -> None:
    """Also with a beat on offer."""
    bench = await Bench.start(dut)
    for _ in range(18):
        await bench.step(sample=True, ready=False)
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    dut.sample_valid.value = 0
    bench.waiting.clear()
    bench.number = bench.dropped = bench.sent = 0
    await bench.step(sample=True, ready=True)
    await bench.step(sample=False, ready=True)
