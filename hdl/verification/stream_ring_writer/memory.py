# SPDX-License-Identifier: Apache-2.0
"""A memory behind AXI4 writes of one beat, and a check of what a master may do."""

import random
from collections import deque
from collections.abc import Callable
from typing import Any

from cocotb.triggers import RisingEdge

OKAY, SLVERR, DECERR = 0, 2, 3
FIXED = {"awlen": 0, "awsize": 4, "awburst": 1, "wstrb": 0xFFFF, "wlast": 1}


class Memory:
    """Takes addresses and data in any order, at any pace, and answers later, in order.

    Attributes:
        words: What was written, by byte address.
        writes: Address and data of every write, in order.
        answered: How many were answered.
        pause: Share of cycles in which a channel is not ready.
        holds_answers: No answer is given while it is set.
        answer: The response to the write of a number.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.chance = random.Random(3)
        self.words: dict[int, int] = {}
        self.writes: list[tuple[int, int]] = []
        self.answered = 0
        self.pause = 0.0
        self.holds_answers = False
        self.answer: Callable[[int], int] = lambda _: OKAY
        self._addresses: deque[int] = deque()
        self._data: deque[int] = deque()
        self._offered: dict[str, int] = {}
        dut.m_axi_awready.value = dut.m_axi_wready.value = 0
        dut.m_axi_bvalid.value = dut.m_axi_bresp.value = 0

    def _taken(self, channel: str, payload: str) -> int | None:
        """The payload handed over in this cycle; what is offered may not change before."""
        dut = self.dut
        valid = getattr(dut, f"m_axi_{channel}valid").value
        value = int(getattr(dut, f"m_axi_{payload}").value) if valid else None
        before = self._offered.pop(channel, None)
        assert before is None or value == before, f"{channel} changed before it was taken"
        if value is None:
            return None
        if not getattr(dut, f"m_axi_{channel}ready").value:
            self._offered[channel] = value
            return None
        return value

    async def run(self) -> None:
        """Look at every clock edge, and drive the next."""
        dut = self.dut
        while True:
            await RisingEdge(dut.aclk)
            if not int(dut.aresetn.value):
                self._reset()
                continue
            if (address := self._taken("aw", "awaddr")) is not None:
                assert address % 16 == 0
                assert all(
                    int(getattr(dut, f"m_axi_{name}").value) == value
                    for name, value in FIXED.items()
                )
                self._addresses.append(address)
            if (data := self._taken("w", "wdata")) is not None:
                self._data.append(data)
            while self._addresses and self._data:
                self.writes.append((self._addresses.popleft(), self._data.popleft()))
            if dut.m_axi_bvalid.value and dut.m_axi_bready.value:
                self.answered += 1
            self._drive()

    def _drive(self) -> None:
        dut, chance = self.dut, self.chance.random
        dut.m_axi_awready.value = chance() >= self.pause
        dut.m_axi_wready.value = chance() >= self.pause
        answers = (
            self.answered < len(self.writes) and not self.holds_answers and chance() >= self.pause
        )
        dut.m_axi_bvalid.value = answers  # bready is always 1: nothing to hold
        if answers:
            address, data = self.writes[self.answered]
            response = self.answer(self.answered)
            dut.m_axi_bresp.value = response
            if response == OKAY:
                self.words[address] = data  # as late as it may be

    def _reset(self) -> None:
        self.writes.clear()
        self._addresses.clear()
        self._data.clear()
        self._offered.clear()
        self.answered = 0
        self.dut.m_axi_bvalid.value = 0
