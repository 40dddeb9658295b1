# SPDX-License-Identifier: Apache-2.0
"""The selector under random traffic: the addressed slave gets it, and its answer comes back.

A model knows, of each request, which slave has to see it and what the answer is; slaves answer late
and with any response; a reset comes at any time and leaves nothing behind.
"""

import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from verification.passing import generic
from verification.random_parts.bins import Bins

CHANNELS = int(generic("channels_g", "2"))
WINDOW_BITS = int(generic("window_bits_g", "12"))
CYCLES = 3_000
SLVERR = 2
KINDS = ("write", "read")
BINS = (
    *(
        f"{kind}, {place}"
        for kind in KINDS
        for place in ("lowest slave", "highest slave", "absent")
    ),
    *(f"{kind} refused by its slave" for kind in KINDS),
    *(f"{kind}'s answer waits" for kind in KINDS),
    *(f"{kind}, next request at once" for kind in KINDS),
    *(f"reset while a {kind} waits for its slave" for kind in KINDS),
    *(f"reset while the answer to a {kind} waits" for kind in KINDS),
    "address of a write before its data",
    "data of a write before its address",
    "both at once",
    "a write and a read answered in one cycle",
)


class Side:
    """One kind of request, from the master's offer to the answer's handover.

    Attributes:
        address: On offer or under way; None: no request.
        taken: The selector has taken the request.
        seen: Channels whose slave has got it.
        answer: What the slave says: response and word; None: not yet.
        delay: Cycles until the slave answers.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.forget()

    def forget(self) -> None:
        """As after a reset."""
        self.address: int | None = None
        self.taken = False
        self.seen: list[int] = []
        self.answer: tuple[int, int] | None = None
        self.delay = 0
        self.waiting: tuple[int, int] | None = None

    @property
    def channel(self) -> int:
        """Which is addressed."""
        assert self.address is not None
        return self.address >> WINDOW_BITS

    @property
    def absent(self) -> bool:
        """Nobody is there."""
        return self.channel >= CHANNELS

    def expected(self) -> tuple[int, int] | None:
        """Response and word that the master must get, once it can be."""
        return (SLVERR, 0) if self.absent else self.answer


class Bench:
    """Master and slaves, cycle by cycle."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.chance = random.Random(CHANNELS)
        self.bins = Bins(BINS)
        self.write, self.read = Side("write"), Side("read")
        self.aw = self.w = False  # on offer
        self.ready_pulse = -1
        self.just_answered: set[str] = set()
        self.pause = 0.3

    def high(self, name: str) -> bool:
        """An output or input of one bit."""
        return bool(getattr(self.dut, name).value)

    def look(self, in_reset: bool) -> None:
        """Judge one cycle; nothing counts in a reset."""
        if in_reset:
            return
        dut = self.dut
        self._offered_to(self.write, int(dut.channel_awvalid.value), self.aw and self.w)
        self._taken_write()
        self._offered_to(self.read, int(dut.channel_arvalid.value), self.high("arvalid"))
        if self.high("arvalid") and self.high("arready"):
            assert not self.read.taken
            self.read.taken = True
            assert self.read.seen == ([] if self.read.absent else [self.read.channel])
            self.read.delay = self.chance.randrange(6)
        answered = [
            self._answered(self.write, "b", 0),
            self._answered(self.read, "r", int(dut.rdata.value)),
        ]
        self.bins.hit("a write and a read answered in one cycle", all(answered))

    def _offered_to(self, side: Side, valid: int, allowed: bool) -> None:
        if not valid:
            return
        assert allowed, f"a {side.kind} that nobody asked for"
        assert not side.taken, f"a second {side.kind} before the answer"
        assert valid == 1 << side.channel, "the wrong slave is asked"
        side.seen = [side.channel]

    def _taken_write(self) -> None:
        taken = self.high("awready")
        assert self.high("wready") == taken
        if not taken:
            return
        assert self.aw, "a write is taken that nobody offers"
        assert self.w, "a write is taken without its data"
        assert not self.write.taken
        assert self.write.seen == ([] if self.write.absent else [self.write.channel])
        self.write.taken, self.aw, self.w = True, False, False
        self.write.delay = self.chance.randrange(6)

    def _answered(self, side: Side, prefix: str, word: int) -> bool:
        """Whether an answer is handed over in this cycle."""
        if not self.high(f"{prefix}valid"):
            assert side.waiting is None, "an answer was withdrawn"
            return False
        assert side.taken, "an answer without a request"
        told = (int(getattr(self.dut, f"{prefix}resp").value), word)
        assert told == side.expected()
        if not self.high(f"{prefix}ready"):
            self.bins.hit(f"{side.kind}'s answer waits")
            side.waiting = told
            return False
        place = "lowest slave" if side.channel == 0 else "highest slave"
        if side.absent:
            self.bins.hit(f"{side.kind}, absent")
        elif side.channel in (0, CHANNELS - 1):
            self.bins.hit(f"{side.kind}, {place}")
        self.bins.hit(f"{side.kind} refused by its slave", not side.absent and told[0] == SLVERR)
        side.forget()
        self.just_answered.add(side.kind)
        return True

    def drive(self, resets: bool) -> None:
        """Set all inputs for the next cycle."""
        dut, chance = self.dut, self.chance
        dut.aresetn.value = not resets
        if resets:
            for side in (self.write, self.read):
                waits = side.address is not None and side.taken
                name = "the answer to a" if side.waiting else "a"
                slave = " waits" if side.waiting else " waits for its slave"
                self.bins.hit(f"reset while {name} {side.kind}{slave}", waits)
                side.forget()
            self.aw = self.w = False
            self.ready_pulse = -1
        else:
            self._offer()
        dut.awvalid.value, dut.wvalid.value = self.aw, self.w
        dut.arvalid.value = self.read.address is not None and not self.read.taken
        dut.awaddr.value, dut.araddr.value = self.write.address or 0, self.read.address or 0
        dut.bready.value = chance.random() >= self.pause
        dut.rready.value = chance.random() >= self.pause
        self._slaves()
        self.just_answered.clear()

    def _offer(self) -> None:
        chance = self.chance
        for side in (self.write, self.read):
            if side.address is None and chance.random() < 0.5:
                channel = chance.choice((0, CHANNELS - 1, chance.randrange(16)))
                side.address = channel << WINDOW_BITS | chance.randrange(1 << WINDOW_BITS)
                self.bins.hit(f"{side.kind}, next request at once", side.kind in self.just_answered)
        if self.write.address is None or self.write.taken:
            return
        before = self.aw, self.w
        self.aw, self.w = (on or chance.random() < 0.5 for on in before)
        if not any(before) and (self.aw or self.w):
            both = "both at once"
            first = "address of a write before its data" if self.aw else ""
            first = first or "data of a write before its address"
            self.bins.hit(both if self.aw and self.w else first)

    def _slaves(self) -> None:
        """Slaves take a write in the cycle after it was offered, and answer after a while."""
        dut = self.dut
        side = self.write
        asked = bool(side.seen) and not side.taken and side.address is not None
        dut.channel_awready.value = 1 << side.channel if asked else 0
        for side, prefix in ((self.write, "b"), (self.read, "r")):
            self._answer(side, prefix)
        # a slave whose answer is under way takes no read
        busy = self.read.taken and not self.read.absent
        every = (1 << CHANNELS) - 1
        dut.channel_arready.value = every & ~(1 << self.read.channel) if busy else every

    def _answer(self, side: Side, prefix: str) -> None:
        dut, chance = self.dut, self.chance
        present = side.taken and not side.absent
        if present and side.answer is None:
            if side.delay:
                side.delay -= 1
            else:
                word = chance.getrandbits(32) if side.kind == "read" else 0
                side.answer = (chance.choice((0, 0, SLVERR, 3, 1)), word)
        valid, response, word = (
            0,
            chance.getrandbits(2 * CHANNELS),
            chance.getrandbits(32 * CHANNELS),
        )
        if present and side.answer is not None:
            channel = side.channel
            valid = 1 << channel
            response = response & ~(3 << 2 * channel) | side.answer[0] << 2 * channel
            word = word & ~(0xFFFF_FFFF << 32 * channel) | side.answer[1] << 32 * channel
        getattr(dut, f"channel_{prefix}valid").value = valid
        getattr(dut, f"channel_{prefix}resp").value = response
        if side.kind == "read":
            dut.channel_rdata.value = word


@cocotb.test()
async def random_requests(dut: Any) -> None:
    """Writes and reads to every slave and to none, pauses everywhere, resets at any time."""
    bench = Bench(dut)
    chance = bench.chance
    bench.drive(resets=True)
    cocotb.start_soon(Clock(dut.aclk, 10, unit="ns").start())
    in_reset, since = True, 0
    for cycle in range(CYCLES):
        await RisingEdge(dut.aclk)
        bench.look(in_reset)
        since = 0 if in_reset or bench.just_answered or not bench.read.address else since + 1
        assert since < 100, "a read has no answer"
        if cycle % 300 == 0:
            bench.pause = chance.choice((0.0, 0.4, 0.9))
        in_reset = cycle < 3 or chance.random() < 0.01
        bench.drive(in_reset)
    bench.bins.save()
