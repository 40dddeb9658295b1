# SPDX-License-Identifier: Apache-2.0
"""What happens around a simulated design: a processor that is interrupted, or a replay.

Inputs change at falling edges of the clock, half a cycle before they are sampled.
"""

import random

from cocotb.triggers import FallingEdge, RisingEdge, Timer

CLOCK_NS = 10
PULSE_CYCLES = 4
_DATA, _STATUS = 0x00, 0x10


class Draws:
    """Latencies of the answers, reproducible: only `random()` is the same in every Python."""

    def __init__(self, answers: dict, seed: int) -> None:
        self._answers = answers
        self._random = random.Random(seed)  # noqa: S311 - a model, no secret

    def _below(self, limit: int) -> int:
        return int(self._random.random() * limit)

    def cycles(self) -> int:
        """Return the next latency in clock cycles."""
        answers = self._answers
        cycles = answers["least_cycles"] + self._below(answers["spread_cycles"] + 1)
        if answers["late_one_in"] and self._below(answers["late_one_in"]) == 0:
            cycles += 1 + self._below(answers["late_cycles"])
        return cycles


async def cycles(count: int) -> None:
    """Let whole clock cycles pass, from the middle of one to the middle of another."""
    await Timer(count * CLOCK_NS, "ns")


async def edges(dut, count: int) -> None:
    """Let rising edges of the clock pass: ends after the last one, not between it and its effects.

    One callback however many there are: a simulation runs faster than with one for each edge.
    """
    await Timer(count * CLOCK_NS - CLOCK_NS // 2, "ns")
    await RisingEdge(dut.aclk)


async def interrupts(dut, signal, scenario: dict) -> None:
    """The processor's timer: pulses one input every period, from one period after the start."""
    await FallingEdge(dut.aclk)
    fired = 0
    while scenario["count"] == 0 or fired < scenario["count"]:
        await cycles(scenario["period_cycles"] - (PULSE_CYCLES if fired else 0))
        signal.value = 1
        await cycles(PULSE_CYCLES)
        signal.value = 0
        fired += 1


def _lost(number: int, scenario: dict) -> bool:
    return scenario["lose_every"] > 0 and number % scenario["lose_every"] == 0


async def handler(dut, generator, scenario: dict) -> None:
    """The handler of pl_ps_irq: reads words until none is left, as our driver's `drain` does.

    An interrupt that is lost is noticed when the processor's own timer fires next.
    """
    draws = Draws(scenario["answers"], scenario["seed"])
    number = 0
    while True:
        if dut.pl_ps_irq.value != 1:
            await RisingEdge(dut.pl_ps_irq)
        number += 1
        if _lost(number, scenario):
            await RisingEdge(dut.ps_pl_irq)
        await edges(dut, draws.cycles())
        empty = 0
        while not empty:
            await generator.read(_DATA)
            _, status = await generator.read(_STATUS)
            empty = status & 1
        await RisingEdge(dut.aclk)  # pl_ps_irq falls in the cycle after the last word


async def acknowledge(dut, scenario: dict) -> None:
    """Answers irq_in of the IP alone: ack_in is sampled high exactly the drawn cycles later."""
    draws = Draws(scenario["answers"], scenario["seed"])
    number = 0
    while True:
        await RisingEdge(dut.irq_in)
        number += 1
        if _lost(number, scenario):
            continue
        await cycles(draws.cycles())
        dut.ack_in.value = 1
        await cycles(PULSE_CYCLES)
        dut.ack_in.value = 0


async def replay(dut, trace) -> None:
    """Drives irq_in and ack_in; cycle 0 is the coming rising edge of the clock."""
    await FallingEdge(dut.aclk)
    now = 0
    for edge in trace:
        if edge.cycle > now:
            await cycles(edge.cycle - now)
            now = edge.cycle
        dut.irq_in.value = edge.irq
        dut.ack_in.value = edge.ack
