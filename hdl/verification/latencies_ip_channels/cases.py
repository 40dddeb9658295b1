# SPDX-License-Identifier: Apache-2.0
"""Several channels behind one pair of slaves: who is asked, who answers, and what adds up."""

import itertools
import logging
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, Timer
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from verification.passing import generic

CHANNELS = int(generic("channels_g", "2"))
CHAINED = generic("chained_g", "false") == "true"
STAGES = int(generic("synchroniser_stages_g", "2"))
WINDOW = 0x1000  # of a channel's registers
SAMPLES = 0x1000  # of a channel's memory
REGION = 4 * int(generic("depth_g", "512"))  # its regions: latencies, -, time stamps low and high
WE, ALARM_LAT, LAST, NUM, ALARM = 0x00, 0x04, 0x08, 0x14, 0x18
TIME_LOW = 0xE8
CLOCK_NS = 10


class Bench:
    """Clock, masters, and what the stream brought.

    Attributes:
        beats: Start tick and latency of every beat, by channel.
        order: Channels of the beats, as they came.
        ready: Share of cycles in which the stream's receiver is ready.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.chance = random.Random(17)
        self.beats: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.order: list[int] = []
        self.ready = 1.0

    @classmethod
    async def start(cls, dut: Any) -> "Bench":
        """A bench whose design has been reset and measures on all channels."""
        logging.getLogger(f"cocotb.{dut._name}").setLevel(logging.WARNING)
        bench = cls(dut)
        dut.aresetn.value = dut.irq_in.value = dut.ack_in.value = dut.m_axis_tready.value = 0
        cocotb.start_soon(Clock(dut.aclk, CLOCK_NS, unit="ns").start())
        await ClockCycles(dut.aclk, 4)
        bench.s00, bench.s01 = (bench._master(name) for name in ("s00_axi", "s01_axi"))
        cocotb.start_soon(bench._receive())
        await ClockCycles(dut.aclk, 2)
        dut.aresetn.value = 1
        await ClockCycles(dut.aclk, 2)
        for channel in range(CHANNELS):
            await bench.write(channel, WE, 1)
        return bench

    def _master(self, prefix: str) -> AxiLiteMaster:
        bus = AxiLiteBus.from_prefix(self.dut, prefix)
        return AxiLiteMaster(bus, self.dut.aclk, self.dut.aresetn, reset_active_level=False)

    async def _receive(self) -> None:
        dut, offered = self.dut, None
        while True:
            await RisingEdge(dut.aclk)
            now = int(dut.m_axis_tdata.value) if dut.m_axis_tvalid.value else None
            assert offered is None or now == offered, "a beat changed before it was taken"
            offered = now
            if now is not None and dut.m_axis_tready.value:
                channel = now >> 112 & 0xFF
                self.order.append(channel)
                self.beats[channel].append((now & (1 << 64) - 1, now >> 64 & (1 << 48) - 1))
                offered = None
            dut.m_axis_tready.value = self.chance.random() < self.ready

    async def write(self, channel: int, address: int, value: int) -> AxiResp:
        """Write a register of a channel."""
        answer = await self.s01.write(WINDOW * channel + address, value.to_bytes(4, "little"))
        return answer.resp

    async def read(self, channel: int, address: int) -> int:
        """Read a register of a channel."""
        return await self.word(self.s01, WINDOW * channel + address)

    async def word(self, port: AxiLiteMaster, address: int) -> int:
        """Read a word that is there."""
        answer = await port.read(address, 4)
        assert answer.resp == AxiResp.OKAY
        return int.from_bytes(answer.data, "little")

    async def samples(self, channel: int, count: int) -> list[tuple[int, int]]:
        """Time stamp and latency of the first samples, from the memory."""
        begin = SAMPLES * channel
        found = []
        for at in range(begin, begin + 4 * count, 4):
            low = await self.word(self.s00, at + 2 * REGION)
            high = await self.word(self.s00, at + 3 * REGION)
            found.append((high << 32 | low, await self.word(self.s00, at)))
        return found

    async def pulses(self, *channels: int, ack: bool = False) -> None:
        """Raise irq or ack of these channels for a cycle."""
        port = self.dut.ack_in if ack else self.dut.irq_in
        port.value = sum(1 << channel for channel in channels)
        await ClockCycles(self.dut.aclk, 1)
        port.value = 0
        await ClockCycles(self.dut.aclk, 1)


async def chains(bench: Bench, count: int, rest: Any) -> AsyncIterator[list[int]]:
    """Ways through all channels: irq, and one ack after the other; yields the distances."""
    dut = bench.dut
    for _ in range(count):
        gaps = [bench.chance.randrange(1, 60) for _ in range(CHANNELS)]
        dut.irq_in.value = 1
        for channel, gap in enumerate(gaps):
            await rest(gap)
            dut.ack_in.value = (2 << channel) - 1
        await rest(4)
        dut.irq_in.value = dut.ack_in.value = 0
        await rest(8)
        yield gaps


def adds_up(beats: dict[int, list[tuple[int, int]]], count: int) -> None:
    """Each channel begins, by its time stamp, when the one before has ended."""
    for number in range(count):
        ways = [beats[channel][number] for channel in range(CHANNELS)]
        for (start, latency), (behind, _) in itertools.pairwise(ways):
            assert start + latency == behind
        whole = ways[-1][0] + ways[-1][1] - ways[0][0]
        assert whole == sum(latency for _, latency in ways)


@cocotb.test()
async def each_channel_has_its_own_registers(dut: Any) -> None:
    """What is written to one is read from this one only; both slaves at once."""
    bench = await Bench.start(dut)
    for channel in range(CHANNELS):
        assert await bench.write(channel, ALARM_LAT, 1000 + channel) == AxiResp.OKAY
    for channel in range(CHANNELS):
        asked = cocotb.start_soon(bench.read(channel, ALARM_LAT))
        assert await bench.word(bench.s00, SAMPLES * channel) == 0
        assert await asked == 1000 + channel
    assert await bench.write(0, LAST, 1) == AxiResp.SLVERR
    assert (await bench.s00.write(0, bytes(4))).resp == AxiResp.SLVERR


@cocotb.test(skip=CHANNELS == 16)
async def absent_channels_answer_slverr(dut: Any) -> None:
    """Reads and writes, on both slaves; nothing changes, and the next request is served."""
    bench = await Bench.start(dut)
    for channel in range(CHANNELS, 16):
        for port, window in ((bench.s00, SAMPLES), (bench.s01, WINDOW)):
            answer = await port.read(window * channel, 4)
            assert answer.resp == AxiResp.SLVERR
            assert answer.data == bytes(4)
            assert (await port.write(window * channel, bytes(4))).resp == AxiResp.SLVERR
    assert [await bench.read(channel, WE) for channel in range(CHANNELS)] == [1] * CHANNELS


@cocotb.test()
async def random_requests(dut: Any) -> None:
    """Pauses on all of the bus, absent channels among them: the one that is asked answers."""
    bench = await Bench.start(dut)
    chance = bench.chance
    for port in (bench.s00, bench.s01):
        for part in (port.write_if.aw_channel, port.write_if.w_channel, port.write_if.b_channel):
            part.set_pause_generator(chance.random() < 0.6 for _ in iter(int, 1))
        for part in (port.read_if.ar_channel, port.read_if.r_channel):
            part.set_pause_generator(chance.random() < 0.6 for _ in iter(int, 1))
    kept = [0xFFFF] * CHANNELS
    for _ in range(150):
        channel, value = chance.randrange(min(CHANNELS + 2, 16)), chance.getrandbits(16)
        there = channel < CHANNELS
        expected = AxiResp.OKAY if there else AxiResp.SLVERR
        if chance.getrandbits(1):
            assert await bench.write(channel, ALARM_LAT, value) == expected
            if there:
                kept[channel] = value
        else:
            answer = await bench.s01.read(WINDOW * channel + ALARM_LAT, 4)
            assert answer.resp == expected
            assert int.from_bytes(answer.data, "little") == (kept[channel] if there else 0)


@cocotb.test(skip=CHAINED or STAGES > 0)
async def all_streams_come_through(dut: Any) -> None:
    """Every channel measures another latency at the same time; the receiver is slow or not.

    While all have beats, each has its turn before another has its second.
    """
    bench = await Bench.start(dut)
    every = range(CHANNELS)
    for ready in (1.0, 0.3, 0.0):
        bench.ready = ready
        first = len(bench.order)
        for _ in range(4):
            await bench.pulses(*every)
            for channel in every:
                await bench.pulses(channel, ack=True)
        bench.ready = max(ready, 0.5)
        await ClockCycles(dut.aclk, 60 * CHANNELS)
        assert sorted(bench.order[first:]) == sorted(list(every) * 4)
    # the last four rounds were held back, so that all had beats
    assert [sorted(bench.order[-CHANNELS * (i + 1) :][:CHANNELS]) for i in range(4)] == [
        list(every)
    ] * 4
    for channel in every:
        assert [latency for _, latency in bench.beats[channel]] == [2 + 2 * channel] * 12
        assert await bench.samples(channel, 12) == bench.beats[channel]
    starts = {channel: [start for start, _ in bench.beats[channel]] for channel in every}
    assert all(starts[channel] == starts[0] for channel in every), "one time stamp for all"


@cocotb.test(skip=CHAINED or STAGES > 0)
async def alarms_and_interrupt(dut: Any) -> None:
    """The alarm is the channel's own; the interrupt is any channel's."""
    bench = await Bench.start(dut)
    for channel in range(CHANNELS):
        await bench.write(channel, ALARM_LAT, 1)
        await bench.write(channel, 0x68, 1)  # interrupt_enable: alarm
    for channel in range(CHANNELS):
        assert not dut.interrupt.value
        await bench.pulses(channel)
        await bench.pulses(channel, ack=True)
        await ClockCycles(dut.aclk, 4)
        assert int(dut.alarm.value) == 1 << channel
        assert dut.interrupt.value
        await bench.write(channel, ALARM, 1)
        await bench.write(channel, 0x64, 1)
        await ClockCycles(dut.aclk, 2)
    assert not dut.interrupt.value
    assert not int(dut.alarm.value)


@cocotb.test(skip=not CHAINED)
async def parts_add_up_to_the_whole(dut: Any) -> None:
    """Chained, in step with the clock: each part is what was made, and starts where one ended."""
    bench = await Bench.start(dut)
    made = [gaps async for gaps in chains(bench, 40, lambda gap: ClockCycles(dut.aclk, gap))]
    await ClockCycles(dut.aclk, 40)
    for channel in range(CHANNELS):
        assert [latency for _, latency in bench.beats[channel]] == [gaps[channel] for gaps in made]
        assert await bench.read(channel, NUM) == len(made)
        assert await bench.samples(channel, len(made)) == bench.beats[channel]
    adds_up(bench.beats, len(made))


@cocotb.test(skip=not CHAINED or STAGES == 0)
async def parts_add_up_whatever_the_phase(dut: Any) -> None:
    """Edges at any nanosecond: a part may be a cycle more or less, the sum is still exact."""
    bench = await Bench.start(dut)
    way = chains(bench, 60, lambda gap: Timer(CLOCK_NS * gap + bench.chance.randrange(10), "ns"))
    made = [gaps async for gaps in way]
    await ClockCycles(dut.aclk, 40)
    for channel in range(CHANNELS):
        told = [latency for _, latency in bench.beats[channel]]
        assert all(0 <= found - gaps[channel] <= 1 for found, gaps in zip(told, made, strict=True))
    adds_up(bench.beats, len(made))


@cocotb.test()
async def a_reset_sets_the_common_time_back(dut: Any) -> None:
    """Of all channels."""
    bench = await Bench.start(dut)
    await ClockCycles(dut.aclk, 1000)
    assert all([await bench.read(channel, TIME_LOW) >= 1000 for channel in range(CHANNELS)])
    dut.aresetn.value = 0
    await ClockCycles(dut.aclk, 3)
    dut.aresetn.value = 1
    await ClockCycles(dut.aclk, 2)
    times = [await bench.read(channel, TIME_LOW) for channel in range(CHANNELS)]
    assert 0 < times[0] < 100
    assert all(0 < later - earlier < 20 for earlier, later in itertools.pairwise(times))


@cocotb.test()
async def a_beat_is_offered_before_it_can_be_taken(dut: Any) -> None:
    """`tvalid` never waits for `tready` (AXI-Stream, IHI 0051, 2.2.1)."""
    bench = await Bench.start(dut)
    bench.ready = 0.0
    await ClockCycles(dut.aclk, 3)
    assert not dut.m_axis_tvalid.value
    dut.irq_in.value = dut.ack_in.value = (1 << CHANNELS) - 1
    await ClockCycles(dut.aclk, 20)
    assert not dut.m_axis_tready.value
    assert dut.m_axis_tvalid.value


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_reset_forgets_a_read_and_a_write_under_way(dut: Any) -> None:
    """Of a channel and of an absent one: the answer is gone, and the next request is answered."""
    bench = await Bench.start(dut)
    for channel in {0, CHANNELS - 1, min(CHANNELS, 15)}:
        for port in (bench.s00, bench.s01):
            port.read_if.r_channel.pause = port.write_if.b_channel.pause = True
            address = channel * WINDOW
            under_way = [
                cocotb.start_soon(port.read(address, 4)),
                cocotb.start_soon(port.write(address, bytes(4))),
            ]
            await ClockCycles(dut.aclk, 12)
            dut.aresetn.value = 0
            await ClockCycles(dut.aclk, 3)
            for task in under_way:
                task.cancel()
            assert not dut.s01_axi_rvalid.value
            assert not dut.s01_axi_bvalid.value
            assert not dut.s00_axi_rvalid.value
            assert not dut.s00_axi_bvalid.value
            port.read_if.r_channel.pause = port.write_if.b_channel.pause = False
            dut.aresetn.value = 1
            await ClockCycles(dut.aclk, 2)
        for each in range(CHANNELS):
            await bench.write(each, ALARM_LAT, 100 + each)
        for each in range(CHANNELS):
            answer = await bench.s01.read(each * WINDOW + ALARM_LAT, 4)
            assert (answer.resp, answer.data[0]) == (AxiResp.OKAY, 100 + each)
