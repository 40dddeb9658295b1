# SPDX-License-Identifier: Apache-2.0
"""The generator under random interrupts and accesses, against a model that counts clock edges.

The model follows the page's table of timing: a request is taken S edges after the interrupt was
sampled, then one word an edge goes into the FIFO. `pl_ps_irq` and `data_read` are judged at every
edge, each word that is handed over, and all registers whenever nothing is under way.
"""

import logging
import random
from collections import deque
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from verification.linear_feedback_register.reference import words
from verification.passing import generic
from verification.random_parts.bins import Bins

DATA, SEED, WORDS, LEVEL, STATUS, OVERRUNS, REQUESTS = 0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18
EMPTY, FULL = 1, 2
COUNT = int(generic("words_g", "16"))
DEPTH = int(generic("fifo_depth_g", "64"))
STAGES = int(generic("synchroniser_stages_g", "2"))
ROUNDS = 90
BINS = (
    "request with nothing to do",
    "request while words are made",
    "request before all were read",
    "request in the cycle of the last read",
    "request for no words",
    "request for one word",
    "request for as many as fit",
    "request for more than fit",
    "seed 0",
    "seed while words are made",
    "seed while words wait",
    "data read from an empty FIFO",
    "word handed over while others are made",
    "FIFO full",
    "reset while words are made",
    "reset while words wait",
)


class Model:
    """The generator by its page, one clock edge after the other."""

    def __init__(self, bins: Bins) -> None:
        self.bins = bins
        # Before it was ever sampled the input counts as high: a level is not an edge.
        self.sampled = deque([True] * (STAGES + 2), maxlen=STAGES + 2)
        self.reset()

    def reset(self) -> None:
        """As the page has it; the input is sampled on."""
        self.fifo: deque[int] = deque()
        self.words, self.remaining = COUNT, 0
        self.requests = self.overruns = 0
        self.interrupt = False
        self.seed(1)

    def seed(self, value: int) -> None:
        """The sequence begins anew."""
        self.last_seed = value
        self.source = words(value)

    @property
    def busy(self) -> bool:
        """Words are being made."""
        return self.remaining > 0

    def edge(self, level: bool, handed: bool, seed: int | None, count: int | None) -> None:
        """One clock edge: the input's level, whether a word was handed over, what was written."""
        self.sampled.append(level)
        last_read = handed and len(self.fifo) == 1 and not self.busy
        was_busy, was_waiting = self.busy, self.interrupt
        if handed:
            self.fifo.popleft()
            self.bins.hit("word handed over while others are made", was_busy)
        if was_busy:
            self.remaining -= 1
            self.fifo.append(next(self.source))
            self.interrupt = self.interrupt or not self.busy
            self.bins.hit("FIFO full", len(self.fifo) == DEPTH)
        if last_read:
            self.interrupt = False
        if self.sampled[1] and not self.sampled[0]:
            self._request(was_busy, was_waiting, last_read)
        if seed is not None:
            self.bins.hit("seed 0", seed == 0)
            self.bins.hit("seed while words are made", was_busy)
            self.bins.hit("seed while words wait", was_waiting)
            self.seed(seed)
        if count is not None:
            self.words = count

    def _request(self, busy: bool, waiting: bool, last_read: bool) -> None:
        self.requests += 1
        self.bins.hit("request while words are made", busy)
        self.bins.hit("request before all were read", waiting and not last_read)
        self.bins.hit("request in the cycle of the last read", last_read)
        if busy or waiting:
            self.overruns += 1
            return
        self.bins.hit("request with nothing to do")
        names = {0: "no words", 1: "one word", DEPTH: "as many as fit"}
        if self.words in names or self.words > DEPTH:
            self.bins.hit(f"request for {names.get(self.words, 'more than fit')}")
        self.remaining = min(self.words, DEPTH)


class Bench:
    """The design, its master, and the model beside it."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.chance = random.Random(COUNT)
        self.bins = Bins(BINS)
        self.model = Model(self.bins)
        self._asked: deque[tuple[int, bool]] = deque()
        logging.getLogger(f"cocotb.{dut._name}.s_axi").setLevel(logging.WARNING)
        dut.aresetn.value, dut.ps_pl_irq.value = 0, 0
        cocotb.start_soon(Clock(dut.aclk, 10, unit="ns").start())

    async def start(self) -> None:
        """Give it a master, and end the reset."""
        await ClockCycles(self.dut.aclk, 2)
        bus = AxiLiteBus.from_prefix(self.dut, "s_axi")
        self.master = AxiLiteMaster(bus, self.dut.aclk, self.dut.aresetn, reset_active_level=False)
        cocotb.start_soon(self._watch())
        await ClockCycles(self.dut.aclk, STAGES + 3)
        self.dut.aresetn.value = 1
        await ClockCycles(self.dut.aclk, 2)

    def _both(self, *names: str) -> bool:
        return all(int(getattr(self.dut, f"s_axi_{name}").value) for name in names)

    async def _watch(self) -> None:
        dut, model = self.dut, self.model
        while True:
            await RisingEdge(dut.aclk)
            level = bool(dut.ps_pl_irq.value)
            if not dut.aresetn.value:
                self.bins.hit("reset while words are made", model.busy)
                self.bins.hit("reset while words wait", model.interrupt)
                model.sampled.append(level)
                model.reset()
                self._asked.clear()
                continue
            assert bool(dut.pl_ps_irq.value) == model.interrupt
            handed = self._handed()
            assert bool(dut.data_read.value) == handed
            model.edge(level, handed, *self._written())

    def _handed(self) -> bool:
        """Whether a word of the FIFO is handed over; it must be the model's oldest."""
        handed = False
        if self._both("rvalid", "rready"):
            address, had_words = self._asked.popleft()
            if address == DATA:
                handed = int(self.dut.s_axi_rresp.value) == AxiResp.OKAY
                assert handed == had_words, "a word is refused, or there is none"
                assert not handed or int(self.dut.s_axi_rdata.value) == self.model.fifo[0]
                self.bins.hit("data read from an empty FIFO", not handed)
        if self._both("arvalid", "arready"):
            address = int(self.dut.s_axi_araddr.value) & ~3
            self._asked.append((address, bool(self.model.fifo)))
        return handed

    def _written(self) -> tuple[int | None, int | None]:
        """Seed and number of words, if they are written in this cycle."""
        if not self._both("awvalid", "awready", "wvalid", "wready"):
            return None, None
        address, value = (int(getattr(self.dut, f"s_axi_{n}").value) for n in ("awaddr", "wdata"))
        return (value if address == SEED else None), (value if address == WORDS else None)

    async def read(self, address: int) -> int:
        """A register's value."""
        answer = await self.master.read(address, 4)
        assert answer.resp == AxiResp.OKAY
        return int.from_bytes(answer.data, "little")

    async def pulse(self) -> None:
        """An interrupt, for some cycles."""
        self.dut.ps_pl_irq.value = 1
        await ClockCycles(self.dut.aclk, self.chance.randrange(1, 4))
        self.dut.ps_pl_irq.value = 0
        await ClockCycles(self.dut.aclk, 1)

    async def interrupts(self, count: int) -> None:
        """Some, with any distance."""
        for _ in range(count):
            await self.pulse()
            await ClockCycles(self.dut.aclk, self.chance.randrange(1, 12))

    async def software(self) -> None:
        """One access, of any kind."""
        chance, kind = self.chance, self.chance.random()
        if kind < 0.6:
            await self.master.read(DATA, 4)
        elif kind < 0.75:
            seed = chance.choice((0, 1, chance.getrandbits(32)))
            await self.master.write(SEED, seed.to_bytes(4, "little"))
        elif kind < 0.9:
            count = chance.choice((0, 1, DEPTH, DEPTH + 1, 2**32 - 1, chance.randrange(DEPTH)))
            await self.master.write(WORDS, count.to_bytes(4, "little"))
        else:
            await self.read(chance.choice((LEVEL, STATUS)))

    async def drain(self) -> None:
        """Read until nothing is left."""
        while self.model.fifo or self.model.busy:
            await self.master.read(DATA, 4)

    async def compare(self) -> None:
        """All registers, with nothing under way."""
        model = self.model
        await ClockCycles(self.dut.aclk, DEPTH + STAGES + 4)
        assert await self.read(LEVEL) == len(model.fifo)
        full = FULL * (len(model.fifo) == DEPTH)
        assert await self.read(STATUS) == EMPTY * (not model.fifo) | full
        assert await self.read(REQUESTS) == model.requests
        assert await self.read(OVERRUNS) == model.overruns
        assert await self.read(SEED) == model.last_seed
        assert await self.read(WORDS) == model.words


@cocotb.test()
async def random_interrupts_and_accesses(dut: Any) -> None:
    """Interrupts while software reads, seeds and asks for other numbers; resets in between."""
    bench = Bench(dut)
    await bench.start()
    chance = bench.chance
    read = bench.master.read_if
    for channel in (read.ar_channel, read.r_channel):
        channel.set_pause_generator(chance.random() < 0.3 for _ in iter(int, 1))
    for number in range(ROUNDS):
        driving = cocotb.start_soon(bench.interrupts(chance.randrange(1, 4)))
        for _ in range(chance.randrange(8)):
            await bench.software()
        await driving
        if number % 4 == 0:
            await bench.drain()
        if number % 5 == 1:
            await bench.compare()
        if number % 8 == 3:
            await bench.drain()
            await bench.master.write(WORDS, DEPTH.to_bytes(4, "little"))
            await bench.pulse()
            await ClockCycles(dut.aclk, chance.randrange(DEPTH + STAGES))
            dut.aresetn.value = 0
            await ClockCycles(dut.aclk, 2)
            dut.aresetn.value = 1
            await ClockCycles(dut.aclk, 2)
    bench.bins.save()
