# SPDX-License-Identifier: Apache-2.0
"""One IP and its ring writer: three slaves that answer for themselves, and samples in memory."""

import itertools
import logging
import random
from collections.abc import Iterator
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from verification.passing import generic
from verification.stream_ring_writer.memory import Memory

WE, ALARM_LAT, LAST, NUM, ALARM = 0x00, 0x04, 0x08, 0x14, 0x18
STATUS, READY = 0x38, 1 << 5
CONFIGURATION, FEATURES, CLOCK_HZ, ENABLE_INTERRUPT = 0x24, 0x28, 0x2C, 0x68
ENABLE, BASE_LOW, BASE_HIGH, SIZE_LOG2, WRITTEN = 0x00, 0x04, 0x08, 0x0C, 0x10
THRESHOLD = 0x20
BASE = 0x12_3456_7800
WIDTH = int(generic("latency_width_g", "16"))
DEPTH = int(generic("depth_g", "512"))
BINS = 1024 if generic("histogram_g", "false") == "true" else 0
CHANNEL = int(generic("channel_g", "0"))


class Bench:
    """The design with a master at each of its slaves and a memory behind it."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.memory = Memory(dut)

    @classmethod
    async def start(cls, dut: Any) -> "Bench":
        """A bench whose design has been reset, writes into a ring of 8 and measures."""
        logging.getLogger(f"cocotb.{dut._name}").setLevel(logging.WARNING)
        bench = cls(dut)
        dut.aresetn.value = dut.irq_in.value = dut.ack_in.value = dut.m_axi_bid.value = 0
        cocotb.start_soon(Clock(dut.aclk, 10, unit="ns").start())
        await ClockCycles(dut.aclk, 4)
        bench.masters = {
            name: AxiLiteMaster(
                AxiLiteBus.from_prefix(dut, f"{name}_axi"),
                dut.aclk,
                dut.aresetn,
                reset_active_level=False,
            )
            for name in ("s00", "s01", "ring")
        }
        cocotb.start_soon(bench.memory.run())
        dut.aresetn.value = 1
        await ClockCycles(dut.aclk, 2)
        for address, value in (
            (BASE_LOW, BASE & 0xFFFF_FFFF),
            (BASE_HIGH, BASE >> 32),
            (SIZE_LOG2, 3),
            (THRESHOLD, 5),
            (ENABLE, 1),
        ):
            await bench.write("ring", address, value)
        await bench.write("s01", WE, 1)
        while not await bench.read("s01", STATUS) & READY:
            pass
        return bench

    async def write(self, slave: str, address: int, value: int) -> None:
        """Write a register."""
        done = await self.masters[slave].write(address, value.to_bytes(4, "little"))
        assert done.resp == AxiResp.OKAY

    async def read(self, slave: str, address: int) -> int:
        """Read a register."""
        answer = await self.masters[slave].read(address, 4)
        assert answer.resp == AxiResp.OKAY
        return int.from_bytes(answer.data, "little")

    async def measure(self, latency: int) -> None:
        """One interrupt and its acknowledgement."""
        dut = self.dut
        dut.irq_in.value = 1
        if latency:
            await ClockCycles(dut.aclk, latency)
        dut.ack_in.value = 1
        await ClockCycles(dut.aclk, 2)
        dut.irq_in.value = dut.ack_in.value = 0
        await ClockCycles(dut.aclk, 4)


def paused(share: float, seed: int) -> Iterator[bool]:
    """A pause generator of cocotbext-axi."""
    chance = random.Random(seed)
    return (chance.random() < share for _ in itertools.count())


@cocotb.test()
async def samples_are_in_the_ring_and_in_the_window(dut: Any) -> None:
    """What was measured, in both places; the interrupt of the ring at its threshold."""
    bench = await Bench.start(dut)
    bench.memory.pause = 0.4
    latencies = [3, 17, 1, 250, 42]
    for number, latency in enumerate(latencies):
        assert dut.ring_interrupt.value == 0, number
        await bench.measure(latency)
        await ClockCycles(dut.aclk, 60)
    assert dut.ring_interrupt.value == 1
    assert await bench.read("ring", WRITTEN) == len(latencies)
    assert await bench.read("s01", NUM) == len(latencies)
    assert [await bench.read("s00", 4 * i) for i in range(len(latencies))] == latencies
    words = [bench.memory.words[BASE + 16 * i] for i in range(len(latencies))]
    assert [word >> 64 & 0xFFFF_FFFF_FFFF for word in words] == latencies
    assert [word >> 112 for word in words] == [i << 9 | CHANNEL for i in range(len(latencies))]
    ticks = [word & (1 << 64) - 1 for word in words]
    low = 2 * 4 * max(DEPTH, BINS)  # the region of time stamps
    assert [await bench.read("s00", low + 4 * i) for i in range(len(latencies))] == ticks
    distances = [b - a for a, b in itertools.pairwise(ticks)]
    assert distances == [latency + 66 for latency in latencies[:-1]]


@cocotb.test()
async def alarm_and_interrupt_have_their_pins(dut: Any) -> None:
    """Both rise with a late sample, and only the one that was cleared falls."""
    bench = await Bench.start(dut)
    await bench.write("s01", ALARM_LAT, 20)
    await bench.write("s01", ENABLE_INTERRUPT, 1)
    await bench.measure(20)
    assert (dut.alarm.value, dut.interrupt.value) == (0, 0)
    await bench.measure(21)
    await ClockCycles(dut.aclk, 2)
    assert (dut.alarm.value, dut.interrupt.value, dut.ring_interrupt.value) == (1, 1, 0)
    await bench.write("s01", ALARM, 1)
    await ClockCycles(dut.aclk, 2)
    assert (dut.alarm.value, dut.interrupt.value) == (0, 1)
    await bench.write("s01", WE, 0)


@cocotb.test()
async def it_tells_its_generics(dut: Any) -> None:
    """Those that the wrapper hands on, as software reads them."""
    bench = await Bench.start(dut)
    told = await bench.read("s01", CONFIGURATION)
    policies = {"drop": 0, "restart": 1, "queue": 2}
    assert told & 0xFF == WIDTH
    assert told >> 8 & 31 == (DEPTH - 1).bit_length()
    assert told >> 16 & 3 == policies[generic("overlap_policy_g", "drop")]
    assert told >> 18 & 3 == int(generic("synchroniser_stages_g", "2"))
    assert told >> 29 & 1 == (generic("histogram_kind_g", "linear") == "log-linear")
    names = ("counters", "watchdog", "time_stamp", "snapshot", "sums", "histogram", "stream")
    defaults = dict.fromkeys(("counters", "time_stamp", "stream"), "true")
    features = await bench.read("s01", FEATURES)
    for bit, name in enumerate((*names, "freeze", "self_test")):
        wanted = generic(f"{name}_g", defaults.get(name, "false")) == "true"
        assert bool(features >> bit & 1) == wanted, name
    assert await bench.read("s01", CLOCK_HZ) == int(generic("clock_frequency_hz_g", "100000000"))


@cocotb.test()
async def slaves_answer_for_themselves(dut: Any) -> None:
    """All at once, each at its own pace: words, strobes, errors."""
    bench = await Bench.start(dut)
    for seed, master in enumerate(bench.masters.values()):
        for number, channel in enumerate(
            (
                master.write_if.aw_channel,
                master.write_if.w_channel,
                master.write_if.b_channel,
                master.read_if.ar_channel,
                master.read_if.r_channel,
            )
        ):
            channel.set_pause_generator(paused(0.5, 10 * seed + number))

    async def registers(slave: str, address: int, bits: int, seed: int) -> None:
        chance, held = random.Random(seed), 0
        for _ in range(40):
            lane = chance.randrange(4)
            byte = chance.randrange(256)
            done = await bench.masters[slave].write(address + lane, bytes([byte]))
            assert done.resp == AxiResp.OKAY
            held = held & ~(0xFF << 8 * lane) | byte << 8 * lane
            assert await bench.read(slave, address) == held & (1 << bits) - 1
        assert (await bench.masters[slave].read(0xF00, 4)).resp == AxiResp.SLVERR
        assert (await bench.masters[slave].write(0xF00, bytes(4))).resp == AxiResp.SLVERR

    async def window() -> None:
        for _ in range(40):
            assert (await bench.masters["s00"].write(0, bytes(4))).resp == AxiResp.SLVERR
            assert (await bench.masters["s00"].read(0, 4)).resp == AxiResp.OKAY

    await bench.write("s01", ALARM_LAT, 0)
    await bench.write("ring", THRESHOLD, 0)
    under_way = [
        cocotb.start_soon(registers("s01", ALARM_LAT, WIDTH, 1)),
        cocotb.start_soon(registers("ring", THRESHOLD, 32, 2)),
        cocotb.start_soon(window()),
    ]
    for each in under_way:
        await each
