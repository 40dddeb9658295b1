# SPDX-License-Identifier: Apache-2.0
"""The random data generator against its documentation; run with any generics.

A monitor looks at every clock edge: `data_read` must be high exactly in the cycles in which a word
of the FIFO is handed over, and these words must be the reference's, each once and in order.
"""

import logging
import random
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from verification.linear_feedback_register.reference import words
from verification.passing import generic

DATA, SEED, WORDS, LEVEL, STATUS, OVERRUNS, REQUESTS = 0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18
EMPTY, FULL, BUSY = 1, 2, 4
COUNT = int(generic("words_g", "16"))
DEPTH = int(generic("fifo_depth_g", "64"))
STAGES = int(generic("synchroniser_stages_g", "2"))


class Bench:
    """Clock, master, and the monitor's queue of words that were handed over."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.handed: list[int] = []
        self._asked: deque[int] = deque()

    @classmethod
    async def start(cls, dut) -> "Bench":
        """Return a bench whose design has been reset."""
        bench = cls(dut)
        logging.getLogger(f"cocotb.{dut._name}.s_axi").setLevel(logging.WARNING)
        dut.aresetn.value, dut.ps_pl_irq.value = 0, 1  # high in reset is not an edge
        cocotb.start_soon(Clock(dut.aclk, 10, unit="ns").start())
        await ClockCycles(dut.aclk, 4)
        bus = AxiLiteBus.from_prefix(dut, "s_axi")
        bench.master = AxiLiteMaster(bus, dut.aclk, dut.aresetn, reset_active_level=False)
        cocotb.start_soon(bench._watch())
        await ClockCycles(dut.aclk, 4)
        dut.aresetn.value = 1
        await ClockCycles(dut.aclk, 4)
        dut.ps_pl_irq.value = 0
        await ClockCycles(dut.aclk, 4)
        return bench

    async def _watch(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.aclk)
            if not int(dut.aresetn.value):
                continue
            delivered = bool(int(dut.s_axi_rvalid.value) and int(dut.s_axi_rready.value))
            a_word = (
                delivered and self._asked[0] == DATA and int(dut.s_axi_rresp.value) == AxiResp.OKAY
            )
            assert int(dut.data_read.value) == a_word
            if a_word:
                self.handed.append(int(dut.s_axi_rdata.value))
                assert int(dut.pl_ps_irq.value) or int(dut.level.value)
            if delivered:
                self._asked.popleft()
            if int(dut.s_axi_arvalid.value) and int(dut.s_axi_arready.value):
                self._asked.append(int(dut.s_axi_araddr.value) & ~3)

    async def read(self, address: int) -> int:
        """Return a register's value; it must answer."""
        response = await self.master.read(address, 4)
        assert response.resp == AxiResp.OKAY
        return int.from_bytes(response.data, "little")

    async def write(self, address: int, value: int) -> None:
        """Write a register; it must take it."""
        response = await self.master.write(address, value.to_bytes(4, "little"))
        assert response.resp == AxiResp.OKAY

    async def interrupt(self) -> None:
        """Pulse ps_pl_irq for one cycle."""
        await FallingEdge(self.dut.aclk)
        self.dut.ps_pl_irq.value = 1
        await FallingEdge(self.dut.aclk)
        self.dut.ps_pl_irq.value = 0

    async def fill(self) -> None:
        """Ask for words and wait until they are there."""
        await self.interrupt()
        while not int(self.dut.pl_ps_irq.value):
            await FallingEdge(self.dut.aclk)

    async def drain(self) -> list[int]:
        """Read until the interrupt falls."""
        found = []
        while int(self.dut.pl_ps_irq.value):
            found.append(await self.read(DATA))
            await FallingEdge(self.dut.aclk)
        return found

    async def refused_data(self) -> None:
        """Read an empty FIFO: SLVERR, and nothing changes."""
        before = await self.read(STATUS), await self.read(LEVEL)
        assert (await self.master.read(DATA, 4)).resp == AxiResp.SLVERR
        assert before == (await self.read(STATUS), await self.read(LEVEL))


@cocotb.test()
async def after_reset_nothing_was_asked_and_nothing_is_there(dut) -> None:
    """An input that is high in reset is not a request."""
    bench = await Bench.start(dut)
    assert [await bench.read(each) for each in (LEVEL, OVERRUNS, REQUESTS)] == [0, 0, 0]
    assert await bench.read(STATUS) == EMPTY
    assert await bench.read(WORDS) == COUNT
    assert not int(dut.pl_ps_irq.value)
    await bench.refused_data()


@cocotb.test()
async def the_interrupt_comes_when_the_formula_says(dut) -> None:
    """pl_ps_irq is high first, as sampled, stages + words + 1 cycles after ps_pl_irq."""
    bench = await Bench.start(dut)
    for count in (1, 2, COUNT, DEPTH):
        await bench.write(WORDS, count)
        await FallingEdge(dut.aclk)
        dut.ps_pl_irq.value = 1
        await RisingEdge(dut.aclk)
        cycles = 0
        while not int(dut.pl_ps_irq.value):
            await RisingEdge(dut.aclk)
            cycles += 1
        dut.ps_pl_irq.value = 0
        assert cycles == STAGES + count + 1
        assert await bench.read(LEVEL) == count
        assert await bench.read(STATUS) == (FULL if count == DEPTH else 0)
        assert len(await bench.drain()) == count


@cocotb.test()
async def words_follow_from_the_seed(dut) -> None:
    """The reference's words; the same seed again begins anew, and 0 counts as 1."""
    bench = await Bench.start(dut)
    for seed in (0, 1, 0xDEADBEEF, 0xDEADBEEF, 0x80000000):
        await bench.write(SEED, seed)
        assert await bench.read(SEED) == seed
        reference = words(seed)
        for _ in range(3):
            await bench.fill()
            found = await bench.drain()
            assert found == [next(reference) for _ in range(COUNT)]


@cocotb.test()
async def the_interrupt_is_high_until_the_last_word_was_handed_over(dut) -> None:
    """Not one word earlier, whatever else is read meanwhile; then the FIFO is empty."""
    bench = await Bench.start(dut)
    await bench.fill()
    for left in range(COUNT, 0, -1):
        assert int(dut.pl_ps_irq.value)
        assert await bench.read(LEVEL) == left
        await bench.read(DATA)
        await FallingEdge(dut.aclk)
    assert not int(dut.pl_ps_irq.value)
    assert await bench.read(STATUS) == EMPTY
    await bench.refused_data()


@cocotb.test()
async def more_words_than_fit_fill_it_and_none_make_no_interrupt(dut) -> None:
    """A full FIFO ends the making: no word is made that nobody can read."""
    bench = await Bench.start(dut)
    reference = words(1)
    for wanted in (DEPTH + 3, DEPTH, 0xFFFF_FFFF, 1 << 16):
        await bench.write(WORDS, wanted)
        await bench.fill()
        assert await bench.read(STATUS) == FULL
        assert await bench.drain() == [next(reference) for _ in range(DEPTH)]
    await bench.write(WORDS, 0)
    await bench.interrupt()
    await ClockCycles(dut.aclk, 20)
    assert not int(dut.pl_ps_irq.value)
    assert await bench.read(REQUESTS) == 5
    assert await bench.read(OVERRUNS) == 0


@cocotb.test()
async def requests_while_busy_or_not_drained_are_overruns(dut) -> None:
    """They are counted and make no words."""
    bench = await Bench.start(dut)
    await bench.write(WORDS, DEPTH)
    await bench.interrupt()
    await bench.interrupt()
    await bench.fill()
    await bench.interrupt()
    await ClockCycles(dut.aclk, DEPTH + 8)
    assert await bench.read(REQUESTS) == 4
    assert await bench.read(OVERRUNS) == 3
    assert len(await bench.drain()) == DEPTH
    await bench.fill()
    assert await bench.read(OVERRUNS) == 3


@cocotb.test()
async def a_held_level_asks_once(dut) -> None:
    """One request for each edge."""
    bench = await Bench.start(dut)
    await FallingEdge(dut.aclk)
    dut.ps_pl_irq.value = 1
    await ClockCycles(dut.aclk, 3 * DEPTH + 20)
    assert await bench.read(REQUESTS) == 1


@cocotb.test()
async def reset_forgets_everything(dut) -> None:
    """In the middle of making, and of a drained FIFO."""
    bench = await Bench.start(dut)
    await bench.write(WORDS, DEPTH)
    await bench.interrupt()
    await ClockCycles(dut.aclk, STAGES + 2)
    dut.aresetn.value = 0
    await ClockCycles(dut.aclk, 3)
    dut.aresetn.value = 1
    await ClockCycles(dut.aclk, 3)
    assert await bench.read(STATUS) == EMPTY
    assert await bench.read(REQUESTS) == 0
    await bench.fill()
    reference = words(1)
    assert await bench.drain() == [next(reference) for _ in range(COUNT)]


@cocotb.test()
async def any_order_of_accesses_hands_over_each_word_once(dut) -> None:
    """Random interrupts, reads of any register and pauses on all channels; the monitor judges."""
    bench = await Bench.start(dut)
    chance = random.Random(cocotb.RANDOM_SEED)

    def pauses(share: float):
        while True:
            yield chance.random() < share

    for channel in (bench.master.read_if.ar_channel, bench.master.read_if.r_channel):
        channel.set_pause_generator(pauses(0.6))
    for _ in range(400):
        choice = chance.random()
        if choice < 0.15:
            await bench.interrupt()
        elif choice < 0.75:
            await bench.master.read(DATA, 4)
        elif choice < 0.95:
            await bench.read(chance.choice((SEED, WORDS, LEVEL, STATUS, OVERRUNS, REQUESTS)))
        else:
            assert (await bench.master.read(0x1C, 4)).resp == AxiResp.SLVERR
    await ClockCycles(dut.aclk, STAGES + 2)  # until the last interrupt counts
    while (await bench.read(STATUS)) & (EMPTY | BUSY) != EMPTY:
        await bench.master.read(DATA, 4)
    made = await bench.read(REQUESTS) - await bench.read(OVERRUNS)
    reference = words(1)
    assert len(bench.handed) == made * COUNT
    assert bench.handed == [next(reference) for _ in bench.handed]
    assert made > 5
