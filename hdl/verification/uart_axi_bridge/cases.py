# SPDX-License-Identifier: Apache-2.0
"""The bridge from a serial line to AXI4-Lite: what a program may believe of its answers."""

import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Timer

from verification.passing import generic
from verification.uart_axi_bridge.serial import (
    DAMAGED,
    OKAY,
    Line,
    Slave,
    check,
    checked,
    read_request,
    write_request,
)

CLOCK_NS = 10
BIT_NS = int(generic("cycles_per_bit_g", "100")) * CLOCK_NS
SILENCE_BITS = int(generic("silence_bits_g", "32768"))
SLVERR, DECERR = 2, 3


async def started(dut: Any) -> tuple[Line, Slave]:
    """Clock, line and slave; the design has been reset."""
    line, slave = Line(dut.rxd, dut.txd, BIT_NS), Slave(dut)
    dut.aresetn.value = 0
    cocotb.start_soon(Clock(dut.aclk, CLOCK_NS, unit="ns").start())
    slave.start()
    await ClockCycles(dut.aclk, 4)
    cocotb.start_soon(line.run())
    dut.aresetn.value = 1
    await ClockCycles(dut.aclk, 4)
    return line, slave


@cocotb.test()
async def words_are_written_and_read(dut: Any) -> None:
    """In every window, with a slave at any pace, one by one and many at once."""
    line, slave = await started(dut)
    chance, expected = random.Random(1), {}
    for turn in range(16):
        slave.pause = chance.choice((0.0, 0.6))
        address, word = chance.randrange(0, 0x10000, 4), chance.getrandbits(32)
        assert await line.write(turn, address, word) == OKAY
        expected[turn << 16 | address] = word
        assert await line.read(turn, address, 1) == ([word], OKAY)
    assert slave.words == expected
    slave.words |= {0x3_0100 + 4 * index: chance.getrandbits(32) for index in range(255)}
    words, status = await line.read(3, 0x100, 255)
    assert (words, status) == ([slave.words[0x3_0100 + 4 * index] for index in range(255)], OKAY)
    assert slave.accesses[-1] == ("read", 0x3_0100 + 4 * 254)


@cocotb.test()
async def a_bus_error_ends_an_answer(dut: Any) -> None:
    """The words before it are there, the status is the bus's, and nothing behind it is touched."""
    line, slave = await started(dut)
    slave.words = {0x20: 7, 0x24: 8, 0x28: 9}
    for error in (SLVERR, DECERR):
        slave.answer = lambda _kind, address, error=error: error if address == 0x28 else OKAY
        slave.accesses.clear()
        assert await line.read(0, 0x20, 4) == ([7, 8], error)
        assert slave.accesses == [("read", 0x20), ("read", 0x24), ("read", 0x28)]
        assert await line.read(0, 0x28, 1) == ([], error)
        assert await line.write(0, 0x28, 1) == error
        assert slave.words[0x28] == 9
        assert await line.read(0, 0x24, 1) == ([8], OKAY)
    await line.silence(30)


@cocotb.test()
async def what_is_damaged_does_nothing(dut: Any) -> None:
    """Each single bit of both requests is turned: the answer says so, the bus is not touched.

    A first byte that is not an operation is not a request; all that follows is skipped, or damaged.
    """
    line, slave = await started(dut)
    for request in (read_request(1, 0x20, 2), write_request(1, 0x04, 0x5A)):
        for place in range(8, 8 * len(request)):
            wrong = bytearray(request)
            wrong[place // 8] ^= 1 << place % 8
            await line.send(wrong)
            assert await line.hear(2) == checked(bytes([DAMAGED])), place
    await line.send(checked(b"R\x01\x20\x00\x00"))  # no words
    assert await line.hear(2) == checked(bytes([DAMAGED]))
    await line.send(b"\x00\xff\x55")
    await line.silence(20)
    assert not slave.accesses
    assert await line.write(1, 0x04, 0x5A) == OKAY


@cocotb.test()
async def what_is_cut_is_forgotten(dut: Any) -> None:
    """After each length of a request: silence, then a whole one is served."""
    line, slave = await started(dut)
    for request in (read_request(1, 0x20, 2), write_request(1, 0x04, 0x5A)):
        for length in range(1, len(request)):
            await line.send(request[:length])
            await line.silence(SILENCE_BITS + 2)
            assert await line.read(0, 0x10, 1) == ([0], OKAY), length
    assert {address for _, address in slave.accesses} == {0x10}
    # A pause that is shorter is none.
    request = write_request(0, 0x30, 0x1234)
    await line.send(request[:5])
    await line.silence(SILENCE_BITS - 12)
    await line.send(request[5:])
    assert await line.hear(2) == bytes([OKAY, check(bytes([OKAY]))])
    assert slave.words == {0x30: 0x1234}


@cocotb.test()
async def disturbances_and_other_clocks(dut: Any) -> None:
    """A pulse of less than half a bit is not a byte, nor what has no stop bit; 2 % are fine."""
    line, slave = await started(dut)
    for width in (1, BIT_NS // CLOCK_NS // 2 - 2):
        dut.rxd.value = 0
        await Timer(width * CLOCK_NS, "ns")
        dut.rxd.value = 1
        await Timer(12 * BIT_NS, "ns")
        assert await line.read(0, 0x10, 1) == ([0], OKAY)
    dut.rxd.value = 0  # as long as a byte and its stop bit, as when a cable is pulled
    await Timer(10 * BIT_NS, "ns")
    dut.rxd.value = 1
    await Timer(12 * BIT_NS, "ns")
    assert await line.read(0, 0x10, 1) == ([0], OKAY)
    for share in (0.98, 1.02):
        line.sends_bit_ns = round(BIT_NS * share)
        assert await line.write(2, 0x44, 0x8001_7FFE) == OKAY
        assert slave.words == {0x2_0044: 0x8001_7FFE}


@cocotb.test()
async def a_reset_ends_what_is_under_way(dut: Any) -> None:
    """In the middle of a request, of an access and of an answer; then all is as at the start."""
    line, slave = await started(dut)
    for bits in (3, 25, 55, 59, 61, 70, 85, 110):
        sending = cocotb.start_soon(line.send(read_request(0, 0x20, 4)))
        await Timer(bits * BIT_NS, "ns")
        sending.cancel()
        dut.rxd.value = 1
        dut.aresetn.value = 0
        await Timer(12 * BIT_NS, "ns")
        assert dut.txd.value == 1
        line.heard.clear()
        slave.start()
        dut.aresetn.value = 1
        await ClockCycles(dut.aclk, 4)
        await line.silence(12)
        assert await line.write(0, 0x20, bits) == OKAY
        assert await line.read(0, 0x20, 1) == ([bits], OKAY)


@cocotb.test()
async def a_short_reset_ends_a_byte_at_once(dut: Any) -> None:
    """Two cycles amid an answer: nothing more of the byte that was under way is sent."""
    line, slave = await started(dut)
    for bits in (64, 70, 85, 110):
        sending = cocotb.start_soon(line.send(read_request(0, 0x20, 4)))
        await Timer(bits * BIT_NS, "ns")
        sending.cancel()
        dut.rxd.value = 1
        dut.aresetn.value = 0
        await ClockCycles(dut.aclk, 2)
        slave.start()
        dut.aresetn.value = 1
        await ClockCycles(dut.aclk, 2)
        for _ in range(12 * BIT_NS // CLOCK_NS):
            await ClockCycles(dut.aclk, 1)
            assert dut.txd.value == 1, bits
        line.heard.clear()
        assert await line.read(0, 0x20, 1) == ([0], OKAY)
