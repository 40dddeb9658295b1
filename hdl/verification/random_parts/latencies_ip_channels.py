# SPDX-License-Identifier: Apache-2.0
"""Several channels under random edges, each against a model of its own, and software at work.

The models are those of a single IP (`verification.model`); they see what the pins show, `we` and
`alarm_lat` as the bus writes them. Registers, memory, stream, alarms and interrupt must agree.
"""

import random
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from verification.latencies_ip_channels.cases import (
    ALARM,
    ALARM_LAT,
    CHAINED,
    CHANNELS,
    LAST,
    NUM,
    STAGES,
    WE,
    Bench,
)
from verification.model.configuration import Configuration
from verification.model.latencies import Latencies
from verification.passing import generic
from verification.random_parts.bins import Bins

MAX, MIN, ENABLE, STATUS = 0x0C, 0x10, 0x68, 0x64
DEPTH = int(generic("depth_g", "512"))
SERIES, EDGES = 6, 60
DELAY = 2 * STAGES if CHAINED else STAGES
BINS = (
    "edges on several channels in one cycle",
    "edges on all channels in one cycle",
    "orphan",
    "overlap",
    "latency 0",
    "alarm of one channel only",
    "alarms of several channels",
    "a channel is off while another measures",
    "a new series of one channel while another is open",
    "samples of all channels",
    "more samples than the memory holds",
    "beats of several channels wait",
    "the stream's receiver pauses",
)


class Watch:
    """Sees the pins at every clock edge and tells each channel's model of their edges."""

    def __init__(self, bench: Bench, bins: Bins) -> None:
        self.bench, self.bins = bench, bins
        ip = Configuration(depth=DEPTH, stream=True, time_stamp=True, synchroniser_stages=STAGES)
        self.models = [Latencies(ip) for _ in range(CHANNELS)]
        self.earlier = [0] * CHANNELS  # samples of the series before
        self.tick = 0

    async def run(self) -> None:
        """For ever."""
        dut, before = self.bench.dut, (0, 0)
        held: list[tuple[int, int]] = [(0, 0)] * DELAY
        while True:
            await RisingEdge(dut.aclk)
            self.tick += 1
            self._waits()
            now = int(dut.irq_in.value), int(dut.ack_in.value)
            risen = now[0] & ~before[0], now[1] & ~before[1]
            before = now
            held.append(risen)
            self._edges(*held.pop(0))

    def _waits(self) -> None:
        dut = self.bench.dut
        waits = bool(dut.m_axis_tvalid.value) and not dut.m_axis_tready.value
        self.bins.hit("the stream's receiver pauses", waits)
        behind = sum(
            self.earlier[channel] + len(model.starts) > len(self.bench.beats[channel])
            for channel, model in enumerate(self.models)
        )
        self.bins.hit("beats of several channels wait", waits and behind > 1)

    def _edges(self, irqs: int, acks: int) -> None:
        if CHAINED:
            irqs = irqs & 1 | acks << 1
        busy = 0
        for channel, model in enumerate(self.models):
            irq, ack = bool(irqs >> channel & 1), bool(acks >> channel & 1)
            if not (irq or ack):
                continue
            busy += 1
            self.bins.hit("orphan", model.we and ack and not irq and not model.open)
            self.bins.hit("overlap", model.we and irq and not ack and model.open > 0)
            self.bins.hit("latency 0", model.we and ack and irq and not model.open)
            model.edges(self.tick, irq, ack)
        self.bins.hit("edges on several channels in one cycle", busy > 1)
        self.bins.hit("edges on all channels in one cycle", busy == CHANNELS)


async def edges(bench: Bench) -> None:
    """Random pulses and levels on all pins, at most one sample in three cycles of each channel."""
    dut, chance = bench.dut, bench.chance
    for _ in range(EDGES):
        style = chance.randrange(4)
        for port in (dut.irq_in, dut.ack_in) if style else (dut.irq_in,):
            every = (1 << CHANNELS) - 1
            port.value = every if chance.random() < 0.2 else chance.getrandbits(CHANNELS)
            await ClockCycles(dut.aclk, chance.choice((0, 1, 2, 15)) or 1)
            if chance.random() < 0.3:
                dut.ack_in.value = port.value = chance.getrandbits(CHANNELS)
                await ClockCycles(dut.aclk, 1)
            port.value = 0
        dut.irq_in.value = dut.ack_in.value = 0
        await ClockCycles(dut.aclk, 12)


async def settle(bench: Bench) -> None:
    """Nothing is on its way."""
    bench.dut.irq_in.value = bench.dut.ack_in.value = 0
    bench.ready = 1.0
    await ClockCycles(bench.dut.aclk, 8 + DELAY + 20 * CHANNELS)


async def compare(bench: Bench, watch: Watch, channel: int) -> None:
    """All that software can know of a channel."""
    model = watch.models[channel]
    found = [await bench.read(channel, each) for each in (LAST, MAX, MIN, NUM, ALARM)]
    assert found == [model.last, model.max, model.min, model.num, model.alarm], channel
    samples = model.samples()
    beats = bench.beats[channel][-len(samples) :] if samples else []
    assert [latency for _, latency in beats] == [sample.latency for sample in samples]
    offset = beats[0][0] - samples[0].start if samples else 0  # when the counter began
    assert [start for start, _ in beats] == [sample.start + offset for sample in samples]
    newest = samples[:DEPTH]
    kept = bench.chance.sample(range(len(newest)), min(3, len(newest)))
    for index in kept:
        begin = index * 4 + (1 << 12) * channel
        assert await bench.word(bench.s00, begin) == newest[index].latency
    watch.bins.hit("more samples than the memory holds", len(samples) > DEPTH)


async def restart(bench: Bench, watch: Watch, channel: int) -> None:
    """Another series, with another limit; or none."""
    model = watch.models[channel]
    others = [each for number, each in enumerate(watch.models) if number != channel]
    await bench.write(channel, WE, 0)
    model.write_we(False)
    limit = bench.chance.choice((0, 3, 20, 0xFFFF))
    await bench.write(channel, ALARM_LAT, limit)
    model.alarm_lat = limit
    await bench.write(channel, ALARM, 1)
    await bench.write(channel, STATUS, 1)
    model.alarm = False
    if bench.chance.random() < 0.8:
        await bench.write(channel, WE, 1)
        watch.earlier[channel] += len(model.starts)
        model.write_we(True)
        other_open = any(each.open for each in others)
        watch.bins.hit("a new series of one channel while another is open", other_open)


@cocotb.test()
async def random_edges(dut: Any) -> None:
    """Series of random edges on all channels; after each, all of every channel is compared."""
    bench, bins = await Bench.start(dut), Bins(BINS)
    bench.chance = random.Random(CHANNELS + STAGES)
    watch = Watch(bench, bins)
    for channel, model in enumerate(watch.models):
        model.write_we(True)
        await bench.write(channel, ENABLE, 1)
    cocotb.start_soon(watch.run())
    await ClockCycles(dut.aclk, 2 + DELAY)
    for series in range(SERIES):
        bench.ready = bench.chance.choice((1.0, 0.5))
        await edges(bench)
        if series == 1:  # a level that lasts while others begin anew
            dut.irq_in.value = 1
            await ClockCycles(dut.aclk, 4 + DELAY)
        else:
            await settle(bench)
        alarms = int(dut.alarm.value)
        assert alarms == sum(model.alarm << number for number, model in enumerate(watch.models))
        assert bool(dut.interrupt.value) == bool(alarms)
        bins.hit("alarm of one channel only", alarms.bit_count() == 1)
        bins.hit("alarms of several channels", alarms.bit_count() > 1)
        on = [model.we for model in watch.models]
        bins.hit("a channel is off while another measures", any(on) and not all(on))
        bins.hit("samples of all channels", all(model.starts for model in watch.models))
        for channel in range(CHANNELS):
            if series != 1:
                await compare(bench, watch, channel)
            if channel or series != 1:
                await restart(bench, watch, channel)
        await settle(bench)
    bins.save()
