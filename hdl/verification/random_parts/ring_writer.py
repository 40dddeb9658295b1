# SPDX-License-Identifier: Apache-2.0
"""The ring writer under random traffic: what its page says of memory and counters, cycle by cycle.

The model numbers records: it knows which were taken, which the memory has answered and how, and so
what `written`, `dropped`, `bus_error` and the next record's place have to be.
"""

import random
from collections import deque
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from verification.random_parts.bins import Bins

CYCLES = 5_000
UNDER_WAY_MOST = 16
BASES = (0, 0xFFFF_FF80, 0xFF_FFFF_F000, 0x12_3456_7FF0)
RESPONSES = {"OKAY": 0, "EXOKAY": 1, "SLVERR": 2, "DECERR": 3}
BINS = (
    *(f"answered {name}" for name in RESPONSES),
    *(f"ring of {size}" for size in ("1", "2", "some", "more than are under way")),
    "ring full",
    "last place freed and taken",
    "consumed beyond written",
    "16 under way",
    "a record in each of two cycles",
    "disabled with writes under way",
    "enabled again before the last answer",
    "OKAY behind an error is dropped",
    "error in the cycle of clearing",
    "clearing without an error",
    "refused in the cycle in which the next was taken",
    "address waits longer than data",
    "data wait longer than address",
    "address carries into bit 32",
    "place wraps to the first",
    "reset with writes under way",
)


class Model:
    """What is under way and what was counted, from the page."""

    def __init__(self) -> None:
        self.under_way: deque[int] = deque()  # records, oldest first
        self.addresses: deque[int] = deque()  # taken from the stream, not yet by the memory
        self.data: deque[int] = deque()
        self.answerable = 0  # both halves are with the memory
        self.written = self.dropped = 0
        self.bus_error = self.spoiled = False

    def answer(self, response: int) -> bool:
        """The memory answers the oldest write; whether its record counts as dropped."""
        self.under_way.popleft()
        self.answerable -= 1
        refused = response >= RESPONSES["SLVERR"]
        lost = refused or self.spoiled
        self.dropped += lost
        self.written += not lost
        self.spoiled = self.spoiled or refused
        return lost


class Bench:
    """Stream, memory and software, cycle by cycle."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.chance = random.Random(11)
        self.bins = Bins(BINS)
        self.model = Model()
        self.share, self.ready, self.answers, self.errors = 1.0, 1.0, 0.5, 0.0
        self.offered: int | None = None
        self.settings = self.fresh_settings()
        self.enable = self.clear = self.answering = False
        self.response = self.consumed = 0
        self.history: deque[tuple[bool, int]] = deque([(False, 0)] * 3, maxlen=3)
        self.stuck = 0
        self.took_before = False
        self.waits = {"aw": 0, "w": 0}

    def fresh_settings(self) -> tuple[int, int]:
        """Base and size_log2 of another ring."""
        size_log2 = self.chance.choice((0, 1, 2, 3, 4, 6))
        told = {0: "1", 1: "2", 6: "more than are under way"}.get(size_log2, "some")
        self.bins.hit(f"ring of {told}")
        return self.chance.choice(BASES), size_log2

    def value(self, name: str) -> int:
        """Of a port."""
        return int(getattr(self.dut, name).value)

    def look(self) -> None:
        """Judge one cycle against the model, then let the model take what happens in it."""
        model, dut = self.model, self.dut
        assert self.value("written") == model.written
        assert self.value("dropped") == model.dropped
        assert self.value("bus_error") == model.bus_error
        assert self.value("idle") == (not model.under_way)
        assert self.value("m_axi_awvalid") == bool(model.addresses)
        assert self.value("m_axi_wvalid") == bool(model.data)
        if model.addresses:
            assert self.value("m_axi_awaddr") == model.addresses[0]
        if model.data:
            assert self.value("m_axi_wdata") == model.data[0]
        takes = bool(dut.s_axis_tvalid.value) and bool(dut.s_axis_tready.value)
        if dut.s_axis_tready.value:
            self._may_take()
        self._is_not_stuck(takes)
        self._memory()
        refused = False
        idle, number = not model.under_way, self._next()
        if self.answering:
            name = next(name for name, code in RESPONSES.items() if code == self.response)
            self.bins.hit(f"answered {name}")
            refused = self.response >= RESPONSES["SLVERR"]
            lost = model.answer(self.response)
            self.bins.hit("OKAY behind an error is dropped", lost and not refused)
            self.bins.hit("refused in the cycle in which the next was taken", refused and takes)
        self.bins.hit("error in the cycle of clearing", refused and self.clear)
        self.bins.hit("clearing without an error", self.clear and not model.bus_error)
        model.bus_error = refused or (model.bus_error and not self.clear)
        if idle and not takes and not refused:
            model.spoiled = False
        if takes:
            self._take(number)
        self.bins.hit("a record in each of two cycles", takes and self.took_before)
        self.took_before = takes
        self.bins.hit("16 under way", len(model.under_way) == UNDER_WAY_MOST)
        self.history.append((self.enable, self.consumed))

    def _next(self) -> int:
        """Number of the next record."""
        return self.model.written + len(self.model.under_way)

    def _room(self, consumed: int) -> bool:
        return (self._next() - consumed) % 2**32 < 1 << self.settings[1]

    def _may_take(self) -> None:
        """Enabled a cycle ago, no error, room by `consumed` of a cycle ago, a place free."""
        enabled, consumed = self.history[-1]
        assert enabled, "takes while disabled"
        assert not self.model.bus_error, "takes after an error"
        assert not self.model.spoiled
        assert self._room(consumed), "takes a record that has no place"
        assert len(self.model.under_way) < UNDER_WAY_MOST
        assert not self.model.addresses or self.dut.m_axi_awready.value
        assert not self.model.data or self.dut.m_axi_wready.value

    def _is_not_stuck(self, takes: bool) -> None:
        """With nothing in the way for some cycles, a record on offer is taken."""
        model = self.model
        free = (
            not (model.addresses or model.data or model.bus_error or model.under_way or takes)
            and self.enable
            and self.history[-1][0]
            and self._room(self.consumed)
            and self._room(self.history[-1][1])
            and self.offered is not None
        )
        self.stuck = self.stuck + 1 if free else 0
        assert self.stuck < 4, "a record is not taken"
        self.bins.hit("ring full", self.value("full") == 1 and self.enable)

    def _take(self, number: int) -> None:
        """A record is taken from the stream: it has the next number, and so its place."""
        assert self.offered is not None
        base, size_log2 = self.settings
        place = number % (1 << size_log2)
        address = (base + 16 * place) % 2**40
        self.bins.hit("address carries into bit 32", address >> 32 != base >> 32)
        self.bins.hit("place wraps to the first", number > 0 and place == 0)
        room = (number - self.consumed) % 2**32
        self.bins.hit("last place freed and taken", room + 1 == 1 << size_log2 and number > 16)
        self.model.under_way.append(self.offered)
        self.model.addresses.append(address)
        self.model.data.append(self.offered)
        self.offered = None

    def _memory(self) -> None:
        """The memory takes address and data, each when it likes."""
        model = self.model
        for half, queue in (("aw", model.addresses), ("w", model.data)):
            if queue and getattr(self.dut, f"m_axi_{half}ready").value:
                queue.popleft()
                self.waits[half] = 0
            elif queue:
                self.waits[half] += 1
        self.bins.hit("address waits longer than data", bool(model.addresses) and not model.data)
        self.bins.hit("data wait longer than address", bool(model.data) and not model.addresses)
        model.answerable = len(model.under_way) - max(len(model.addresses), len(model.data))

    def drive(self, cycle: int) -> None:
        """Set all inputs for the next cycle."""
        dut, chance, model = self.dut, self.chance, self.model
        if cycle % 150 == 0:
            self.share, self.ready = chance.choice((0.1, 0.8, 1.0)), chance.choice((0.3, 1.0, 1.0))
            self.answers, self.errors = (
                chance.choice((0.0, 0.2, 1.0)),
                chance.choice((0, 0.05, 0.3)),
            )
        resets = cycle < 3 or chance.random() < 0.002
        if resets:
            self.bins.hit("reset with writes under way", bool(model.under_way))
            self.model = model = Model()
            self.offered, self.consumed, self.stuck, self.took_before = None, 0, 0, False
            self.enable = False
            self.history.extend([(False, 0)] * 3)
        dut.aresetn.value = not resets
        self._software()
        if self.offered is None and not resets and chance.random() < self.share:
            self.offered = chance.getrandbits(128)
        dut.s_axis_tvalid.value, dut.s_axis_tdata.value = (
            self.offered is not None,
            self.offered or 0,
        )
        for half in ("aw", "w"):
            getattr(dut, f"m_axi_{half}ready").value = chance.random() < self.ready
        self.answering = model.answerable > 0 and chance.random() < self.answers
        codes = (2, 3) if chance.random() < self.errors else (0, 0, 0, 1)
        self.response = chance.choice(codes)
        dut.m_axi_bvalid.value, dut.m_axi_bresp.value = self.answering, self.response
        dut.enable.value, dut.consumed.value = self.enable, self.consumed
        dut.clear_bus_error.value = self.clear
        dut.base.value, dut.size_log2.value = self.settings[0] >> 4, self.settings[1]

    def _software(self) -> None:
        """Free places, enable and disable, clear errors; another ring only when idle."""
        chance, model = self.chance, self.model
        was_on = self.enable
        if chance.random() < (0.03 if self.enable else 0.2):
            self.enable = not self.enable
        self.bins.hit(
            "disabled with writes under way", was_on and not self.enable and bool(model.under_way)
        )
        self.bins.hit(
            "enabled again before the last answer",
            self.enable and not was_on and bool(model.under_way),
        )
        disabled = not any(enabled for enabled, _ in self.history) and not self.enable
        if disabled and not model.under_way and chance.random() < 0.3:
            self.settings = self.fresh_settings()
            self.consumed = model.written
        if chance.random() < 0.4:
            self.consumed = chance.choice((model.written, chance.randint(0, model.written)))
            if chance.random() < 0.03:
                self.consumed = model.written + 100
                self.bins.hit("consumed beyond written")
        self.clear = chance.random() < (0.2 if model.bus_error else 0.1)


@cocotb.test()
async def random_records(dut: Any) -> None:
    """Records, answers, errors and software at any pace; resets at any time."""
    bench = Bench(dut)
    bench.drive(0)
    cocotb.start_soon(Clock(dut.aclk, 10, unit="ns").start())
    for cycle in range(CYCLES):
        await RisingEdge(dut.aclk)
        if dut.aresetn.value and cycle > 3:
            bench.look()
        bench.drive(cycle)
    bench.bins.save()
