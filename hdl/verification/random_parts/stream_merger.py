# SPDX-License-Identifier: Apache-2.0
"""The merger under random traffic: every beat once, in order, and each input has its turn."""

import random
from collections import deque
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from verification.passing import generic
from verification.random_parts.bins import Bins

INPUTS = int(generic("inputs_g", "2"))
CYCLES = 2_000
BINS = (
    "no input has a beat",
    "one input has a beat",
    "several have",
    "all have",
    "the same input twice running",
    "the turn goes down to a lower input",
    "the turn goes up",
    "a beat waits for its receiver",
    "another input begins while a beat waits",
    "reset while a beat is on offer",
)


class Inputs:
    """What each input offers, and what came out for it.

    Attributes:
        offered: The beat on offer of each input, or None.
        others: For each input, how often each other one was served since its beat is on offer.
    """

    def __init__(self) -> None:
        self.offered: list[int | None] = [None] * INPUTS
        self.others: list[list[int]] = [[0] * INPUTS for _ in range(INPUTS)]

    def offer(self, dut: Any, chance: random.Random, share: float) -> None:
        """Begin to offer a new beat on some inputs that have none."""
        for number, beat in enumerate(self.offered):
            if beat is None and chance.random() < share:
                self.offered[number] = chance.getrandbits(128)
                self.others[number] = [0] * INPUTS
        data = b"".join((beat or 0).to_bytes(16, "little") for beat in self.offered)
        dut.s_axis_tdata.value = int.from_bytes(data, "little")
        dut.s_axis_tvalid.value = sum(
            1 << number for number, beat in enumerate(self.offered) if beat is not None
        )

    def take(self, number: int) -> None:
        """A beat has been handed over: no input may wait for more than one of each other one."""
        self.offered[number] = None
        for waiting, beat in enumerate(self.offered):
            if beat is not None:
                self.others[waiting][number] += 1
                assert max(self.others[waiting]) <= 1, f"{waiting} waits for {number} twice"


@cocotb.test()
async def random_beats(dut: Any) -> None:
    """All shares of senders and receivers; a reset now and then, after which it begins anew."""
    bins, chance, inputs = Bins(BINS), random.Random(INPUTS), Inputs()
    dut.aresetn.value = dut.m_axis_tready.value = 0
    inputs.offer(dut, chance, 0.0)
    cocotb.start_soon(Clock(dut.aclk, 10, unit="ns").start())
    waiting: int | None = None
    last: int | None = None
    idle = deque([False, False], maxlen=2)
    share = ready = 1.0
    in_reset, before = True, 0
    for cycle in range(CYCLES):
        await RisingEdge(dut.aclk)
        valid, takes = bool(dut.m_axis_tvalid.value), bool(dut.m_axis_tready.value)
        present = [number for number, beat in enumerate(inputs.offered) if beat is not None]
        counted = {0: "no input has a beat", 1: "one input has a beat"}
        bins.hit(counted.get(len(present), "several have"))
        bins.hit("all have", len(present) == INPUTS)
        found = _source(dut, inputs) if valid else None
        if in_reset:
            waiting = last = None
            idle.extend((False, False))
        else:
            assert waiting is None or found == waiting, "a beat on offer was withdrawn"
            bins.hit("a beat waits for its receiver", waiting is not None)
            bins.hit(
                "another input begins while a beat waits",
                waiting is not None and len(present) > before,
            )
            idle.append(bool(present) and not valid)
            assert not all(idle), "nobody is served though there is a beat"
            waiting = found if found is not None and not takes else None
        before = len(present)
        accepted = int(dut.s_axis_tready.value) & int(dut.s_axis_tvalid.value)
        assert accepted == (1 << found if found is not None and takes else 0)
        if found is not None and takes:
            if not in_reset:
                bins.hit("the same input twice running", found == last)
                bins.hit("the turn goes down to a lower input", last is not None and found < last)
                bins.hit("the turn goes up", last is not None and found > last)
            last = found
            inputs.take(found)
        if cycle % 200 == 0:
            share, ready = chance.choice((0.05, 0.3, 1.0)), chance.choice((0.2, 0.7, 1.0))
        resets = cycle < 3 or chance.random() < 0.004
        bins.hit("reset while a beat is on offer", resets and found is not None)
        in_reset = resets
        dut.aresetn.value = not resets
        if resets:
            inputs = Inputs()
        inputs.offer(dut, chance, 0.0 if resets else share)
        dut.m_axis_tready.value = chance.random() < ready
    bins.save()


def _source(dut: Any, inputs: Inputs) -> int:
    """Whose beat is at the output: just one input has it."""
    [number] = [n for n, beat in enumerate(inputs.offered) if beat == int(dut.m_axis_tdata.value)]
    return number
