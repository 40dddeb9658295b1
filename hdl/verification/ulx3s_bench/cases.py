# SPDX-License-Identifier: Apache-2.0
"""What runs on a ULX3S: stimuli, what begins and ends a latency, lights, all read over the line."""

import itertools
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time

from verification.passing import generic
from verification.uart_axi_bridge.serial import OKAY, Line

CLOCK_NS = 10
BIT_NS = int(generic("cycles_per_bit_g", "100")) * CLOCK_NS
LEAST = 1 << int(generic("stimulus_bits_g", "17"))
DEPTH, BINS = int(generic("depth_g", "1024")), int(generic("bins_g", "1024"))
SAMPLES, REGISTERS = 0, 1
WE, ALARM_LAT, NUM, ALARM, CONFIGURATION, FEATURES, CLOCK_HZ = 0, 4, 0x14, 0x18, 0x24, 0x28, 0x2C
INTERRUPT_ENABLE = 0x68
SLVERR = 2


async def started(dut: Any) -> Line:
    """The design, out of its reset, and the computer's end of the line."""
    dut.rst.value = 1
    dut.answer.value = dut.begin_in.value = dut.sw.value = 0
    line = Line(dut.ftdi_txd, dut.ftdi_rxd, BIT_NS)
    cocotb.start_soon(Clock(dut.clk, CLOCK_NS, unit="ns").start())
    await ClockCycles(dut.clk, 6)
    cocotb.start_soon(line.run())
    dut.rst.value = 0
    await ClockCycles(dut.clk, 6)
    return line


async def answering(dut: Any, latencies: list[int]) -> None:
    """Answer each stimulus after so many cycles."""
    for latency in latencies:
        await RisingEdge(dut.stimulus)
        if latency:
            await ClockCycles(dut.clk, latency)
        dut.answer.value = 1
        await ClockCycles(dut.clk, 3)
        dut.answer.value = 0


@cocotb.test()
async def a_latency_is_from_stimulus_to_answer(dut: Any) -> None:
    """Each is exact; the stamps' distances are those of the stimuli."""
    line = await started(dut)
    latencies = [1, 40, 7, 100, 3, 60]
    assert await line.write(REGISTERS, WE, 1) == OKAY
    begun: list[int] = []

    async def note() -> None:
        while True:
            await RisingEdge(dut.stimulus)
            begun.append(int(get_sim_time("ns")) // CLOCK_NS)

    cocotb.start_soon(note())
    await answering(dut, latencies)
    assert await line.read(REGISTERS, NUM, 1) == ([len(latencies)], OKAY)
    words, status = await line.read(SAMPLES, 0, len(latencies))
    # The stimulus leaves a register: an answer is seen a cycle after the edge behind it.
    assert (words, status) == (latencies, OKAY)
    ticks, _ = await line.read(SAMPLES, 2 * 4 * max(DEPTH, BINS), len(latencies))
    distances = [b - a for a, b in itertools.pairwise(begun[: len(latencies)])]
    assert [b - a for a, b in itertools.pairwise(ticks)] == distances
    assert all(LEAST <= distance < 3 * LEAST for distance in distances)
    assert len(set(distances)) > 3


@cocotb.test()
async def with_the_switch_a_latency_begins_with_begin(dut: Any) -> None:
    """The stimulus is nothing then."""
    line = await started(dut)
    dut.sw.value = 1
    assert await line.write(REGISTERS, WE, 1) == OKAY
    await ClockCycles(dut.clk, 4 * LEAST)
    for latency in (9, 20):
        dut.begin_in.value = 1
        await ClockCycles(dut.clk, latency)
        assert (int(dut.led.value) >> 3 & 1, int(dut.led.value) >> 4 & 1) == (1, 0)
        dut.answer.value = 1
        await ClockCycles(dut.clk, 3)
        assert int(dut.led.value) >> 4 & 1 == 1
        dut.begin_in.value = dut.answer.value = 0
        await ClockCycles(dut.clk, 3)
    assert await line.read(SAMPLES, 0, 2) == ([9, 20], OKAY)
    assert await line.read(REGISTERS, NUM, 1) == ([2], OKAY)


@cocotb.test()
async def lights_and_registers(dut: Any) -> None:
    """Alarm and interrupt have their lights; what there is not answers so; it tells what it is."""
    line = await started(dut)
    assert await line.write(REGISTERS, ALARM_LAT, 10) == OKAY
    assert await line.write(REGISTERS, INTERRUPT_ENABLE, 1) == OKAY
    assert await line.write(REGISTERS, WE, 1) == OKAY
    await answering(dut, [10])
    assert int(dut.led.value) & 0b1110_0011 == 0
    await answering(dut, [11])
    await ClockCycles(dut.clk, 8)
    assert int(dut.led.value) & 0b1110_0011 == 0b11
    assert await line.write(REGISTERS, ALARM, 1) == OKAY
    assert int(dut.led.value) & 0b1110_0011 == 0b10
    await RisingEdge(dut.stimulus)
    await ClockCycles(dut.clk, 1)
    assert int(dut.led.value) >> 2 & 1 == 1
    assert await line.read(2, 0, 1) == ([], SLVERR)
    assert await line.write(15, 0, 0) == SLVERR
    assert await line.write(SAMPLES, 0, 0) == SLVERR
    assert await line.read(REGISTERS, 0xF00, 1) == ([], SLVERR)
    (configuration, features, clock_hz), _ = await line.read(REGISTERS, CONFIGURATION, 3)
    sizes = (DEPTH.bit_length() - 1) << 8 | (BINS.bit_length() - 1) << 20
    assert configuration == 32 | 2 << 18 | 4 << 25 | 1 << 29 | sizes
    assert features == 0b11_0011_1111  # all but stream and freeze; a num of 32 bits
    assert clock_hz == int(generic("clock_frequency_hz_g", "75000000"))


@cocotb.test()
async def a_stimulus_is_as_long_as_the_page_says(dut: Any) -> None:
    """It falls when half of the least distance is left, and begins a distance after a reset."""
    await started(dut)
    for _ in range(5):
        await RisingEdge(dut.stimulus)
        high, low = 0, 0
        while dut.stimulus.value == 1:
            await ClockCycles(dut.clk, 1)
            high += 1
        while dut.stimulus.value == 0:
            await ClockCycles(dut.clk, 1)
            low += 1
        assert low == LEAST // 2
        assert high + low >= LEAST
