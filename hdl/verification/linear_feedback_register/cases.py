# SPDX-License-Identifier: Apache-2.0
"""The register against the recurrence: through its whole period where that is short."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from verification.linear_feedback_register.reference import words


@cocotb.test()
async def every_word_once_a_period_and_as_the_recurrence_says(dut) -> None:
    """At width 8, 255 different words, then the first again; at others as far as 3,000 words."""
    width = len(dut.word)
    dut.reset.value, dut.load.value, dut.advance.value, dut.seed.value = 1, 0, 1, 0
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    await FallingEdge(dut.clk)
    dut.reset.value = 0
    found = []
    period = (1 << width) - 1
    for _ in range(min(period + 1, 3_000)):
        await FallingEdge(dut.clk)
        found.append(int(dut.word.value))
    assert len(set(found)) == min(period, 3_000)
    assert 0 not in found
    assert period > len(found) or found[-1] == found[0]
    reference = words(1, width)
    next(reference)  # came before the first falling edge
    assert all(word == next(reference) for word in found)


@cocotb.test()
async def a_seed_of_zero_counts_as_one_and_reset_wins_over_load(dut) -> None:
    """From 0 nothing but 0 would follow."""
    width = len(dut.word)
    dut.reset.value, dut.load.value, dut.advance.value, dut.seed.value = 0, 1, 0, 0
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    for seed, reset, state in (
        (0, 0, 1),
        (5, 0, 5),
        (9, 1, 1),
        (1 << (width - 1), 0, 1 << (width - 1)),
    ):
        dut.seed.value, dut.reset.value = seed, reset
        await FallingEdge(dut.clk)
        assert int(dut.word.value) == next(words(state, width))
