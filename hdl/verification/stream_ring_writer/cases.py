# SPDX-License-Identifier: Apache-2.0
"""The ring writer: what software may believe of the memory, at any pace of all who take part."""

import itertools
import logging
import random
from collections.abc import Iterator
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiRamWrite, AxiResp, AxiWriteBus

from verification.stream_ring_writer.memory import DECERR, OKAY, SLVERR, Memory

ENABLE, BASE_LOW, BASE_HIGH, SIZE_LOG2, WRITTEN = 0x00, 0x04, 0x08, 0x0C, 0x10
CONSUMED, DROPPED, STATUS, THRESHOLD = 0x14, 0x18, 0x1C, 0x20
FULL, IDLE, BUS_ERROR = 1, 2, 4
UNDER_WAY_MOST = 16
BASE = 0x12_3456_7890


class Source:
    """Sends records on the stream.

    Attributes:
        records: All that were taken.
        gap: Share of cycles without a record; 1 for none at all.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.records: list[int] = []
        self.gap = 1.0
        self._chance = random.Random(5)
        dut.s_axis_tvalid.value = dut.s_axis_tdata.value = 0

    async def run(self) -> None:
        """Look at every clock edge, and drive the next."""
        dut, offered = self.dut, None
        while True:
            await RisingEdge(dut.aclk)
            if not int(dut.aresetn.value):
                offered = None
                dut.s_axis_tvalid.value = 0
                continue
            if offered is not None and dut.s_axis_tready.value:
                self.records.append(offered)
                offered = None
            if offered is None and self._chance.random() >= self.gap:
                offered = self._chance.getrandbits(128)
                dut.s_axis_tdata.value = offered
            dut.s_axis_tvalid.value = offered is not None


class Bench:
    """The design, its registers' master, and a source of records."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.source = Source(dut)

    @classmethod
    async def start(cls, dut: Any) -> "Bench":
        """A bench whose design has been reset; its memory is to be added."""
        logging.getLogger(f"cocotb.{dut._name}").setLevel(logging.WARNING)
        bench = cls(dut)
        dut.aresetn.value = dut.m_axi_bvalid.value = dut.m_axi_bid.value = 0
        cocotb.start_soon(Clock(dut.aclk, 10, unit="ns").start())
        await ClockCycles(dut.aclk, 4)
        bus = AxiLiteBus.from_prefix(dut, "s_axi")
        bench.master = AxiLiteMaster(bus, dut.aclk, dut.aresetn, reset_active_level=False)
        cocotb.start_soon(bench.source.run())
        return bench

    @classmethod
    async def with_memory(cls, dut: Any) -> tuple["Bench", Memory]:
        """The same with a memory, ready to go."""
        bench = await cls.start(dut)
        memory = Memory(dut)
        cocotb.start_soon(memory.run())
        await bench.release()
        return bench, memory

    async def release(self) -> None:
        """End the reset."""
        await ClockCycles(self.dut.aclk, 2)
        self.dut.aresetn.value = 1
        await ClockCycles(self.dut.aclk, 2)

    async def reset(self) -> None:
        """Reset all, and forget which records were taken."""
        self.dut.aresetn.value = 0
        await self.cycles(2)
        self.source.records.clear()
        await self.release()

    async def write(self, address: int, value: int) -> AxiResp:
        """Write a register."""
        return (await self.master.write(address, value.to_bytes(4, "little"))).resp

    async def read(self, address: int) -> int:
        """Read a register."""
        answer = await self.master.read(address, 4)
        assert answer.resp == AxiResp.OKAY
        return int.from_bytes(answer.data, "little")

    async def go(self, base: int, size_log2: int) -> None:
        """Configure and enable."""
        await self.write(BASE_LOW, base & 0xFFFF_FFFF)
        await self.write(BASE_HIGH, base >> 32)
        await self.write(SIZE_LOG2, size_log2)
        await self.write(ENABLE, 1)

    async def cycles(self, count: int) -> None:
        """Let time pass."""
        await ClockCycles(self.dut.aclk, count)


def paused(share: float, seed: int) -> Iterator[bool]:
    """A pause generator of cocotbext-axi."""
    chance = random.Random(seed)
    return (chance.random() < share for _ in itertools.count())


@cocotb.test()
async def every_record_in_its_place(dut: Any) -> None:
    """Against cocotbext-axi's memory: a ring of 8, forty times round, software at random pace.

    Whatever `written` has counted is in memory; nothing beside the ring changes.
    """
    bench = await Bench.start(dut)
    bus = AxiWriteBus.from_prefix(dut, "m_axi")
    memory = AxiRamWrite(bus, dut.aclk, dut.aresetn, reset_active_level=False, size=4096)
    memory.write(0, b"\xa5" * 4096)
    await bench.release()
    base, places, consumed = 0x7F0, 8, 0
    await bench.go(base, 3)
    chance = random.Random(9)
    for share in (0.0, 0.6):
        for number, channel in enumerate((memory.aw_channel, memory.w_channel, memory.b_channel)):
            channel.set_pause_generator(paused(share, number))
        for gap in (0.0, 0.7):
            bench.source.gap = gap
            until = consumed + 80
            while consumed < until:
                written = await bench.read(WRITTEN)
                assert consumed <= written <= consumed + places
                for number in range(consumed, written):
                    found = memory.read(base + 16 * (number % places), 16)
                    assert int.from_bytes(found, "little") == bench.source.records[number]
                consumed = chance.randint(consumed, written)
                await bench.write(CONSUMED, consumed)
                await bench.cycles(chance.randrange(20))
    assert memory.read(0, base) == b"\xa5" * base
    behind = base + 16 * places
    assert memory.read(behind, 4096 - behind) == b"\xa5" * (4096 - behind)


@cocotb.test()
async def a_full_ring_waits(dut: Any) -> None:
    """Sizes 1, 2 and 16: so many records are taken, and one more for each consumed."""
    bench, memory = await Bench.with_memory(dut)
    memory.pause = 0.3
    for size_log2 in (0, 1, 4):
        await bench.go(BASE, size_log2)
        bench.source.gap, places = 0.0, 2**size_log2
        for consumed in (0, 1, 2, 5, 9):
            if consumed > len(bench.source.records):
                break
            await bench.write(CONSUMED, consumed)
            await bench.cycles(150)
            records, expected = bench.source.records, consumed + places
            assert len(records) == expected
            assert await bench.read(WRITTEN) == expected
            assert await bench.read(STATUS) == FULL | IDLE
            newest = {BASE + 16 * (i % places): records[i] for i in range(expected)}
            assert {place: memory.words[place] for place in newest} == newest
        await bench.write(CONSUMED, 1000)  # never written: nothing is taken
        await bench.cycles(60)
        assert len(bench.source.records) == expected
        assert await bench.read(STATUS) == FULL | IDLE
        await bench.reset()


@cocotb.test()
async def written_only_when_answered(dut: Any) -> None:
    """No answer: nothing is written, at most 16 are under way; then all at once."""
    bench, memory = await Bench.with_memory(dut)
    memory.holds_answers = True
    bench.source.gap = 0.0
    await bench.go(BASE, 8)
    await bench.cycles(100)
    assert len(memory.writes) == len(bench.source.records) == UNDER_WAY_MOST
    assert await bench.read(WRITTEN) == 0
    assert await bench.read(STATUS) == 0
    bench.source.gap = 1.0
    memory.holds_answers = False
    await bench.cycles(40)
    count = len(bench.source.records)
    assert await bench.read(WRITTEN) == count
    assert await bench.read(STATUS) == IDLE
    assert memory.writes == [
        (BASE + 16 * number, record) for number, record in enumerate(bench.source.records)
    ]


@cocotb.test()
async def one_record_a_cycle(dut: Any) -> None:
    """A memory that answers at once is written every cycle."""
    bench, _ = await Bench.with_memory(dut)
    await bench.go(BASE, 10)
    bench.source.gap = 0.0
    await bench.cycles(40)
    before = len(bench.source.records)
    await bench.cycles(200)
    assert len(bench.source.records) - before == 200


@cocotb.test()
async def a_bus_error_stops(dut: Any) -> None:
    """SLVERR and DECERR, anywhere: what is behind it counts as dropped; the ring has no hole."""
    bench, memory = await Bench.with_memory(dut)
    memory.pause = 0.3
    await bench.go(BASE, 8)
    kept: list[int] = []
    taken_before = dropped = 0
    for kind, at in ((SLVERR, 0), (DECERR, 5), (SLVERR, 20)):
        first = len(memory.writes)
        memory.answer = lambda number, bad=first + at, kind=kind: kind if number == bad else OKAY
        bench.source.gap = 0.0
        await bench.cycles(150)
        bench.source.gap = 1.0
        assert await bench.read(STATUS) & ~FULL == BUS_ERROR | IDLE
        assert not dut.s_axis_tready.value
        kept += bench.source.records[taken_before : taken_before + at]
        dropped += len(bench.source.records) - taken_before - at
        assert await bench.read(WRITTEN) == len(kept)
        assert await bench.read(DROPPED) == dropped
        taken_before = len(bench.source.records)
        await bench.write(STATUS, FULL | IDLE)  # not the error's bit
        assert await bench.read(STATUS) & BUS_ERROR
        await bench.write(STATUS, BUS_ERROR)
        await bench.cycles(60)
        assert await bench.read(STATUS) & BUS_ERROR == 0
        # a record that was on offer has been taken since
        kept += bench.source.records[taken_before:]
        taken_before = len(bench.source.records)
        assert await bench.read(WRITTEN) == len(kept)
        assert [memory.words[BASE + 16 * i] for i in range(len(kept))] == kept


@cocotb.test()
async def disabling_finishes(dut: Any) -> None:
    """What is under way is written; nothing else is taken; enabled again, it goes on behind."""
    bench, memory = await Bench.with_memory(dut)
    memory.pause = 0.7
    await bench.go(BASE, 8)
    for _ in range(6):
        bench.source.gap = 0.2
        await bench.write(ENABLE, 1)
        await bench.cycles(40)
        await bench.write(ENABLE, 0)
        taken = len(bench.source.records)
        await bench.cycles(120)
        assert len(bench.source.records) == taken
        assert await bench.read(STATUS) == IDLE
        assert await bench.read(WRITTEN) == taken
    places = [BASE + 16 * number for number in range(len(bench.source.records))]
    assert [memory.words[place] for place in places] == bench.source.records


@cocotb.test()
async def off_and_on_while_under_way(dut: Any) -> None:
    """Enabled again before the answers have come: it waits for them, and no record is lost."""
    bench, memory = await Bench.with_memory(dut)
    await bench.go(BASE, 8)
    for _ in range(4):
        memory.holds_answers = True
        bench.source.gap = 0.3
        await bench.cycles(12)
        await bench.write(ENABLE, 0)
        await bench.write(ENABLE, 1)
        taken = len(bench.source.records)
        await bench.cycles(20)
        assert len(bench.source.records) == taken
        memory.holds_answers = False
        await bench.cycles(30)
        assert len(bench.source.records) > taken
    bench.source.gap = 1.0
    await bench.cycles(60)
    places = [BASE + 16 * number for number in range(len(bench.source.records))]
    assert [memory.words[place] for place in places] == bench.source.records


@cocotb.test()
async def reset_in_flight(dut: Any) -> None:
    """At any moment, memory and writer together: all registers as at first, and it works again."""
    bench, memory = await Bench.with_memory(dut)
    for moment in range(1, 30, 3):
        memory.pause, bench.source.gap = 0.5, 0.1
        await bench.go(BASE, 4)
        await bench.cycles(moment)
        dut.aresetn.value = 0
        await bench.cycles(2)
        assert not dut.m_axi_awvalid.value
        assert not dut.m_axi_wvalid.value
        assert not dut.s_axis_tready.value
        bench.source.records.clear()
        await bench.release()
        bench.source.gap = 1.0
        registers = [await bench.read(address) for address in range(0, 0x24, 4)]
        assert registers == [0, 0, 0, 0, 0, 0, 0, IDLE, 0]
        await bench.go(BASE, 4)
        bench.source.gap = 0.0
        await bench.cycles(80)
        # a record that was on offer before it was enabled is the first
        assert await bench.read(WRITTEN) == 16
        assert [memory.words[BASE + 16 * i] for i in range(16)] == bench.source.records
        await bench.reset()


@cocotb.test()
async def interrupt_at_the_threshold(dut: Any) -> None:
    """From so many records not consumed on; never with 0."""
    bench, _ = await Bench.with_memory(dut)
    await bench.go(BASE, 4)
    bench.source.gap = 0.0
    await bench.cycles(60)
    assert await bench.read(WRITTEN) == 16
    for threshold in (0, 1, 15, 16, 17):
        await bench.write(THRESHOLD, threshold)
        await bench.cycles(3)
        assert bool(dut.interrupt.value) == (0 < threshold <= 16), threshold
    bench.source.gap = 1.0
    await bench.write(THRESHOLD, 4)
    for consumed in (13, 14):
        await bench.write(ENABLE, 0)
        await bench.write(CONSUMED, consumed)
        await bench.cycles(3)
        written = await bench.read(WRITTEN)
        assert bool(dut.interrupt.value) == (written - consumed >= 4)


@cocotb.test()
async def registers_answer(dut: Any) -> None:
    """Read-only and absent ones refuse writes; bits without meaning read 0."""
    bench, _ = await Bench.with_memory(dut)
    ones = 0xFFFF_FFFF
    for address, kept in (
        (BASE_LOW, ones - 15),
        (BASE_HIGH, 0xFF),
        (SIZE_LOG2, 31),
        (CONSUMED, ones),
        (THRESHOLD, ones),
    ):
        assert await bench.write(address, ones) == AxiResp.OKAY
        assert await bench.read(address) == kept
    for address in (WRITTEN, DROPPED, 0x24, 0xFFC):
        assert await bench.write(address, ones) == AxiResp.SLVERR
    assert (await bench.master.read(0x24, 4)).resp == AxiResp.SLVERR
    assert await bench.read(WRITTEN) == await bench.read(DROPPED) == 0


@cocotb.test()
async def rings_larger_than_a_page_and_across_4_gib(dut: Any) -> None:
    """Each record at `base + 16 * (i mod size)`, over 4 KiB pages, carries into address bit 32."""
    bench, memory = await Bench.with_memory(dut)
    for base, size_log2 in ((0xFFFF_E010, 10), (0x1F_FFFF_FFF0, 3), (0x12_3456_7FF0, 9)):
        await bench.go(base, size_log2)
        bench.source.gap = 0.0
        count = 2**size_log2 + 40
        while len(bench.source.records) < count:
            await bench.cycles(50)
            await bench.write(CONSUMED, await bench.read(WRITTEN))
        bench.source.gap = 1.0
        await bench.cycles(60)
        wanted = [
            (base + 16 * (index % 2**size_log2), record)
            for index, record in enumerate(bench.source.records)
        ]
        assert memory.writes == wanted
        await bench.reset()


@cocotb.test()
async def exclusive_okay_is_no_error_and_an_error_wins_over_clearing(dut: Any) -> None:
    """EXOKAY counts as written; an error in the cycle of clearing `bus_error` stays."""
    bench, memory = await Bench.with_memory(dut)
    memory.answer = lambda _: 1  # EXOKAY
    await bench.go(BASE, 6)
    bench.source.gap = 0.5
    await bench.cycles(40)
    bench.source.gap = 1.0
    await bench.cycles(20)
    assert not await bench.read(STATUS) & BUS_ERROR
    assert await bench.read(WRITTEN) == len(bench.source.records) > 0
    together = 0
    for offset in range(12):
        await bench.reset()
        memory.answer = lambda _: SLVERR
        memory.holds_answers = True
        await bench.go(BASE, 6)
        bench.source.gap = 0.0
        while not bench.source.records:
            await bench.cycles(1)
        bench.source.gap = 1.0
        await bench.cycles(6)
        errors: list[int] = []
        clears: list[int] = []
        watching = cocotb.start_soon(_errors_and_clears(dut, errors, clears))
        clearing = cocotb.start_soon(bench.write(STATUS, BUS_ERROR))
        await bench.cycles(offset)
        memory.holds_answers = False
        await clearing
        await bench.cycles(40)
        watching.cancel()
        together += errors[-1] == clears[0]
        assert bool(await bench.read(STATUS) & BUS_ERROR) == (errors[-1] >= clears[0]), offset
    assert together, "no error came in the cycle of clearing"


async def _errors_and_clears(dut: Any, errors: list[int], clears: list[int]) -> None:
    """Cycles in which an answer is an error, and in which a write of software is taken."""
    for cycle in itertools.count():
        await RisingEdge(dut.aclk)
        if dut.m_axi_bvalid.value and int(dut.m_axi_bresp.value) >= SLVERR:
            errors.append(cycle)
        if dut.s_axi_awvalid.value and dut.s_axi_awready.value:
            clears.append(cycle)
