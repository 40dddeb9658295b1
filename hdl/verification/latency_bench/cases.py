# SPDX-License-Identifier: Apache-2.0
"""T1 and T2 of the bench against what was seen on its pins, by a count of clock edges.

The monitor knows nothing of the design but its ports: when ps_pl_irq and pl_ps_irq rise, and when a
read of the generator's address 0 hands over a word.
"""

import logging
import random

import cocotb
from axi import Master
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from verification.passing import generic

EXTENDED = generic("time_stamp_g", "false") == "true"
WORDS = int(generic("words_g", "16"))
STAGES = int(generic("synchroniser_stages_g", "2"))
DEPTH = 512
REGION = 4 * DEPTH
WE, ALARM_LAT, LAST, MAX, MIN, NUM, ALARM = range(0, 0x1C, 4)
TIME_LOW = 0xE8
COMMAND, ORPHANS, OVERLAPS, MISSED, SUM = 0x34, 0x4C, 0x50, 0x54, 0x9C
DATA, LEVEL, STATUS, EMPTY = 0x00, 0x0C, 0x10, 1
SETTLE_CYCLES = 12


class Bench:
    """Clock, masters, and the times of what was seen."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.asked: list[int] = []
        self.ready: list[int] = []
        self.read_at: list[int] = []

    @classmethod
    async def start(cls, dut) -> "Bench":
        """Return a bench after reset, both IPs measuring."""
        bench = cls(dut)
        dut.ps_pl_irq.value = 0
        dut.aresetn.value = 0
        bench.slaves = {
            f"{ip}_{slave}": Master(dut, f"{ip}_{slave}_axi")
            for ip in ("t1", "t2")
            for slave in ("s00", "s01")
        }
        cocotb.start_soon(Clock(dut.aclk, 10, unit="ns").start())
        await ClockCycles(dut.aclk, 4)
        logging.getLogger(f"cocotb.{dut._name}.generator_axi").setLevel(logging.WARNING)
        bus = AxiLiteBus.from_prefix(dut, "generator_axi")
        bench.generator = AxiLiteMaster(bus, dut.aclk, dut.aresetn, reset_active_level=False)
        cocotb.start_soon(bench._watch())
        await ClockCycles(dut.aclk, 4)
        dut.aresetn.value = 1
        await ClockCycles(dut.aclk, 2)
        for ip in ("t1", "t2"):
            assert await bench.slaves[f"{ip}_s01"].write(WE, 1) == AxiResp.OKAY
        return bench

    async def _watch(self) -> None:
        dut, tick, address = self.dut, 0, None
        before = (1, 1)
        while True:
            await RisingEdge(dut.aclk)
            tick += 1
            now = int(dut.ps_pl_irq.value), int(dut.pl_ps_irq.value)
            for seen, was, level in zip((self.asked, self.ready), before, now, strict=True):
                if level > was:
                    seen.append(tick)
            before = now
            delivered = int(dut.generator_axi_rvalid.value) and int(dut.generator_axi_rready.value)
            if delivered and (address, int(dut.generator_axi_rresp.value)) == (DATA, AxiResp.OKAY):
                self.read_at.append(tick)
            if int(dut.generator_axi_arvalid.value) and int(dut.generator_axi_arready.value):
                address = int(dut.generator_axi_araddr.value) & ~3

    async def register(self, ip: str, address: int) -> int:
        """Return a register of T1 or T2."""
        response, word = await self.slaves[f"{ip}_s01"].read(address)
        assert response == AxiResp.OKAY
        return word

    async def samples(self, ip: str, region: int = 0) -> list[int]:
        """Return what the memory of T1 or T2 holds."""
        count = await self.register(ip, NUM)
        slave = self.slaves[f"{ip}_s00"]
        return [(await slave.read(region * REGION + 4 * i))[1] for i in range(count)]

    async def interrupt(self) -> None:
        """Pulse ps_pl_irq for one cycle."""
        await FallingEdge(self.dut.aclk)
        self.dut.ps_pl_irq.value = 1
        await FallingEdge(self.dut.aclk)
        self.dut.ps_pl_irq.value = 0

    async def answer(self, chance: random.Random, others: int) -> None:
        """Wait for pl_ps_irq and a little more, read other registers, then the words."""
        while not int(self.dut.pl_ps_irq.value):
            await RisingEdge(self.dut.aclk)
        await ClockCycles(self.dut.aclk, chance.randrange(1, 40))
        for _ in range(others):
            await self.generator.read(chance.choice((0x04, 0x08, LEVEL, STATUS, 0x14, 0x18)), 4)
        while not (await self.generator.read(STATUS, 4)).data[0] & EMPTY:
            await self.generator.read(DATA, 4)


async def measured(dut, interrupts: int, seed: int) -> Bench:
    """Return a bench that has measured some interrupts, with pauses on the generator's bus."""
    bench = await Bench.start(dut)
    chance = random.Random(seed)

    def pauses():
        while True:
            yield chance.random() < 0.4

    bench.generator.read_if.ar_channel.set_pause_generator(pauses())
    bench.generator.read_if.r_channel.set_pause_generator(pauses())
    for _ in range(interrupts):
        await bench.interrupt()
        await bench.answer(chance, chance.randrange(4))
        assert (await bench.generator.read(DATA, 4)).resp == AxiResp.SLVERR  # no word: no end
        await ClockCycles(dut.aclk, chance.randrange(1, 30))
    await ClockCycles(dut.aclk, SETTLE_CYCLES)
    return bench


@cocotb.test()
async def no_memory_takes_a_write(dut) -> None:
    """Each is answered, by an error, and the registers beside it stay as they are."""
    bench = await Bench.start(dut)
    for ip in ("t1", "t2"):
        assert await bench.slaves[f"{ip}_s00"].write(4, 5) == AxiResp.SLVERR
        assert await bench.register(ip, NUM) == 0


@cocotb.test()
async def both_measure_what_the_pins_show(dut) -> None:
    """T1 ends where T2 starts: their sums are the time from ps_pl_irq to the first word read."""
    bench = await measured(dut, 60, 3)
    first_read = bench.read_at[::WORDS]
    t1 = [end - start for start, end in zip(bench.asked, bench.ready, strict=True)]
    t2 = [end - start for start, end in zip(bench.ready, first_read, strict=True)]
    assert await bench.samples("t1") == t1
    assert await bench.samples("t2") == t2
    assert set(t1) == {STAGES + WORDS + 1}
    assert len(set(t2)) > 10
    assert sum(t1) + sum(t2) == sum(first_read) - sum(bench.asked)
    for ip, samples in (("t1", t1), ("t2", t2)):
        statistics = [await bench.register(ip, each) for each in (LAST, MAX, MIN, NUM, ALARM)]
        assert statistics == [samples[-1], max(samples), min(samples), len(samples), 0]


@cocotb.test(skip=not EXTENDED)
async def time_stamps_chain_and_only_words_are_ends(dut) -> None:
    """In one time, T1's start plus T1 is T2's start; every later word of a drain is an orphan."""
    bench = await measured(dut, 40, 4)
    starts = {ip: await bench.samples(ip, 2) for ip in ("t1", "t2")}
    t1 = await bench.samples("t1")
    assert [start + length for start, length in zip(starts["t1"], t1, strict=True)] == starts["t2"]
    seen = [tick - bench.asked[0] for tick in bench.asked]
    assert [start - starts["t1"][0] for start in starts["t1"]] == seen
    assert await bench.register("t2", ORPHANS) == 40 * (WORDS - 1)
    assert await bench.register("t1", ORPHANS) == 0
    for ip in ("t1", "t2"):
        assert await bench.register(ip, MISSED) == 0
        assert await bench.slaves[f"{ip}_s01"].write(COMMAND, 1) == AxiResp.OKAY
        assert await bench.register(ip, SUM) == sum(await bench.samples(ip))


@cocotb.test(skip=not EXTENDED)
async def a_reset_sets_the_common_time_back(dut) -> None:
    """Of both IPs; before it they have one time, too."""
    bench = await Bench.start(dut)
    await ClockCycles(dut.aclk, 400)
    for least, most in ((400, 600), (0, 100)):
        times = [await bench.register(ip, TIME_LOW) for ip in ("t1", "t2")]
        assert all(least <= time < most for time in times)
        assert 0 < times[1] - times[0] < 20
        dut.aresetn.value = 0
        await ClockCycles(dut.aclk, 3)
        dut.aresetn.value = 1
        await ClockCycles(dut.aclk, 2)


@cocotb.test()
async def a_late_answer_raises_the_alarm_of_t2_alone(dut) -> None:
    """alarm_lat counts T2's cycles: the alarm comes with the sample that is longer."""
    bench = await Bench.start(dut)
    await bench.slaves["t2_s01"].write(ALARM_LAT, 100)
    for late in (False, True):
        await bench.interrupt()
        if late:
            await ClockCycles(dut.aclk, 200)
        await bench.answer(random.Random(1), 0)
        await ClockCycles(dut.aclk, SETTLE_CYCLES)
        assert int(dut.t2_alarm.value) == late
        assert not int(dut.t1_alarm.value)
    last = await bench.register("t2", LAST)
    assert last > 100
