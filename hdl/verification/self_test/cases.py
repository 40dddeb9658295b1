# SPDX-License-Identifier: Apache-2.0
"""The self-test generator: the edges it makes, counted by what any receiver would see."""

from collections.abc import AsyncIterator
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

REST = 7  # cycles at least without an edge before each pair and after the last


class Watch:
    """What irq, ack, active and done did.

    Attributes:
        pairs: irq's and ack's cycle of each pair.
        done: Cycles of done.
        active: Cycles of active.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.cycle = 0
        self.pairs: list[list[int]] = []
        self.done: list[int] = []
        self.active: list[int] = []
        self._low = 0

    async def run(self) -> None:
        """Look at every clock edge."""
        while True:
            await RisingEdge(self.dut.clk)
            self.cycle += 1
            self.look(int(self.dut.irq.value), int(self.dut.ack.value))

    def look(self, irq: int, ack: int) -> None:
        """At one cycle."""
        if irq:
            assert self._low >= REST
            assert not self.pairs or len(self.pairs[-1]) == 2
            self.pairs.append([self.cycle])
        if ack:
            assert len(self.pairs[-1]) == 1
            self.pairs[-1].append(self.cycle)
        if int(self.dut.done.value):
            assert self._low >= REST
            self.done.append(self.cycle)
        if int(self.dut.active.value):
            self.active.append(self.cycle)
        else:
            assert not irq
            assert not ack
        self._low = 0 if irq or ack else self._low + 1

    def delays(self) -> list[int]:
        """The latency of each pair."""
        return [ack - irq for irq, ack in self.pairs]


async def started(dut: Any, runs: int) -> AsyncIterator[Watch]:
    """So many watches, one after the other, each on a generator that has been reset."""
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    for _ in range(runs):
        dut.start.value = dut.delay.value = dut.count.value = 0
        dut.rst.value = 1
        await ClockCycles(dut.clk, 3)
        dut.rst.value = 0
        watch = Watch(dut)
        watching = cocotb.start_soon(watch.run())
        await ClockCycles(dut.clk, 12)
        yield watch
        watching.cancel()


async def order(dut: Any, delay: int, count: int) -> None:
    """A start pulse; delay and count are other values behind it."""
    dut.start.value, dut.delay.value, dut.count.value = 1, delay, count
    await ClockCycles(dut.clk, 1)
    dut.start.value, dut.delay.value, dut.count.value = 0, 99, 99


@cocotb.test()
async def delays_are_as_ordered(dut: Any) -> None:
    """From 0 on, one pair, none, and further on."""
    orders = [(0, 12), (1, 3), (0, 1), (5, 0), (40, 5), (300, 2)]
    async for watch in started(dut, len(orders)):
        delay, count = orders.pop()
        await order(dut, delay, count)
        while not watch.done:
            await ClockCycles(dut.clk, 1)
        await ClockCycles(dut.clk, 20)
        assert watch.delays() == [delay + i for i in range(count)]
        assert len(watch.done) == 1
        assert watch.active == list(range(watch.active[0], watch.done[0]))
        cycles = count * (delay + 9) + count * (count - 1) // 2 + 9  # as the page says
        assert len(watch.active) == cycles - 1


@cocotb.test()
async def a_start_while_active_is_ignored(dut: Any) -> None:
    """At any moment of the test, which takes more than 40 cycles."""
    moments = list(range(1, 40, 3))
    async for watch in started(dut, len(moments)):
        await order(dut, 2, 3)
        await ClockCycles(dut.clk, moments.pop())
        assert not watch.done
        await order(dut, 7, 7)
        await ClockCycles(dut.clk, 80)
        assert watch.delays() == [2, 3, 4]
        assert len(watch.done) == 1


@cocotb.test()
async def reset_ends_it(dut: Any) -> None:
    """At any moment: no further edge, no done; the next test is whole."""
    moments = list(range(1, 30, 2))
    async for watch in started(dut, len(moments)):
        await order(dut, 3, 4)
        await ClockCycles(dut.clk, moments.pop())
        dut.rst.value = 1
        await ClockCycles(dut.clk, 2)
        dut.rst.value = 0
        watch.pairs.clear()
        await ClockCycles(dut.clk, 40)
        assert not watch.pairs
        assert not watch.done
        await order(dut, 0, 2)
        await ClockCycles(dut.clk, 60)
        assert watch.delays() == [0, 1]
        assert len(watch.done) == 1
