# SPDX-License-Identifier: Apache-2.0
"""The bridge under random requests, whole, damaged and cut: the model is a memory and its page.

Of each message the model knows what the bus has to see, in order, and each byte that comes back.
"""

import random
from typing import Any

import cocotb
from cocotb.triggers import Timer

from verification.random_parts.bins import Bins
from verification.uart_axi_bridge.cases import BIT_NS, SILENCE_BITS, started
from verification.uart_axi_bridge.serial import (
    DAMAGED,
    OKAY,
    Line,
    Slave,
    checked,
    read_request,
    write_request,
)

MESSAGES = 90
SLVERR, DECERR = 2, 3
KINDS = ("read", "write")
BINS = (
    "read of one word",
    "read of several",
    "write",
    "read back what was written",
    *(f"{kind} refused with {error}" for kind in KINDS for error in ("SLVERR", "DECERR")),
    "read refused at its first word",
    "read refused behind some words",
    *(f"{kind} damaged" for kind in KINDS),
    *(f"{kind} cut" for kind in KINDS),
    "read of no words",
    "a byte before that begins no request",
    "window 0",
    "window 15",
    "a slower sender",
    "a faster sender",
    "a slave at once",
    "a slave with pauses",
    "whole requests behind a cut one",
)


class Model:
    """What is behind the bridge: words, addresses that refuse, and the accesses it must see."""

    def __init__(self, chance: random.Random) -> None:
        self.words: dict[int, int] = {}
        self.accesses: list[tuple[str, int]] = []
        self.refused: dict[int, int] = {}
        for window in range(16):
            for error in (SLVERR, DECERR):
                self.refused[window << 16 | chance.randrange(0, 0x40, 4)] = error

    def read(self, window: int, address: int, count: int) -> bytes:
        """The answer to a read."""
        answer = b""
        for place in range(address, address + 4 * count, 4):
            here = window << 16 | place
            self.accesses.append(("read", here))
            status = self.refused.get(here, OKAY)
            answer += bytes([status])
            if status != OKAY:
                break
            answer += self.words.get(here, 0).to_bytes(4, "little")
        return checked(answer)

    def write(self, window: int, address: int, word: int) -> bytes:
        """The answer to a write."""
        here = window << 16 | address
        self.accesses.append(("write", here))
        status = self.refused.get(here, OKAY)
        if status == OKAY:
            self.words[here] = word
        return checked(bytes([status]))


class Bench:
    """Line, slave, model and bins of one run."""

    def __init__(self, line: Line, slave: Slave) -> None:
        self.chance = random.Random(41)
        self.line, self.slave = line, slave
        self.model, self.bins = Model(self.chance), Bins(BINS)
        self.behind_cut = False
        slave.answer = lambda _kind, address: self.model.refused.get(address, OKAY)

    def request(self, kind: str) -> tuple[bytes, Any]:
        """A message, and what tells the model of it."""
        chance = self.chance
        window = chance.choice((0, 15, chance.randrange(16)))
        self.bins.hit("window 0", window == 0)
        self.bins.hit("window 15", window == 15)
        address = chance.randrange(0, 0x40, 4)
        if kind == "write":
            word = chance.getrandbits(32)
            told = write_request(window, address, word)
            return told, lambda: self.model.write(window, address, word)
        count = chance.choice((1, 1, 2, 5))
        told = read_request(window, address, count)
        return told, lambda: self.model.read(window, address, count)

    async def served(self, kind: str) -> None:
        """A whole request: its answer is the model's, to the byte."""
        message, effect = self.request(kind)
        if self.chance.random() < 0.15:
            self.bins.hit("a byte before that begins no request")
            message = bytes([self.chance.choice((0x00, 0xFF, 0x53, 0x72))]) + message
        known = set(self.model.words)
        expected = effect()
        await self.line.send(message)
        heard = await self.line.hear(len(expected))
        assert heard == expected, (kind, heard, expected)
        self._count(kind, expected, known)
        self.bins.hit("whole requests behind a cut one", self.behind_cut)
        self.behind_cut = False

    def _count(self, kind: str, answer: bytes, known: set[int]) -> None:
        status = answer[-2] if kind == "write" or len(answer) % 5 == 2 else OKAY
        words = 0 if kind == "write" else (len(answer) - 1) // 5
        self.bins.hit("write", kind == "write" and status == OKAY)
        self.bins.hit("read of one word", status == OKAY and words == 1)
        self.bins.hit("read of several", status == OKAY and words > 1)
        self.bins.hit(
            "read back what was written", words > 0 and self.model.accesses[-1][1] in known
        )
        for code, name in ((SLVERR, "SLVERR"), (DECERR, "DECERR")):
            self.bins.hit(f"{kind} refused with {name}", status == code)
        if kind == "read" and status != OKAY:
            self.bins.hit(f"read refused {'behind some words' if words else 'at its first word'}")

    async def damaged(self, kind: str) -> None:
        """One to three bits are turned behind the first byte: nothing happens but the answer."""
        message, _ = self.request(kind)
        wrong = bytearray(message)
        for bit in self.chance.sample(range(8, 8 * len(wrong)), self.chance.randrange(1, 4)):
            wrong[bit // 8] ^= 1 << bit % 8
        if checked(bytes(wrong[:-1])) == wrong:
            return  # one in 256 is a message again
        await self.line.send(wrong)
        assert await self.line.hear(2) == checked(bytes([DAMAGED]))
        self.bins.hit(f"{kind} damaged")

    async def cut(self, kind: str) -> None:
        """A part of a request, then silence: it is forgotten."""
        message, _ = self.request(kind)
        await self.line.send(message[: self.chance.randrange(1, len(message))])
        await self.line.silence(SILENCE_BITS + 2)
        self.bins.hit(f"{kind} cut")
        self.behind_cut = True

    async def no_words(self) -> None:
        """A read of none, its check right."""
        await self.line.send(checked(b"R\x01\x20\x00\x00"))
        assert await self.line.hear(2) == checked(bytes([DAMAGED]))
        self.bins.hit("read of no words")


@cocotb.test()
async def random_messages(dut: Any) -> None:
    """Messages of all kinds, at other speeds of line and slave; at the end the bus is compared."""
    line, slave = await started(dut)
    bench = Bench(line, slave)
    chance, bins = bench.chance, bench.bins
    for number in range(MESSAGES):
        if number % 10 == 0:
            share = chance.choice((0.98, 1.0, 1.02))
            line.sends_bit_ns = round(BIT_NS * share)
            slave.pause = chance.choice((0.0, 0.6))
        bins.hit("a slower sender", line.sends_bit_ns > BIT_NS)
        bins.hit("a faster sender", line.sends_bit_ns < BIT_NS)
        bins.hit("a slave at once", slave.pause == 0)
        bins.hit("a slave with pauses", slave.pause > 0)
        kind, style = chance.choice(KINDS), chance.random()
        if style < 0.75:
            await bench.served(kind)
        elif style < 0.85:
            await bench.damaged(kind)
        elif style < 0.97:
            await bench.cut(kind)
        else:
            await bench.no_words()
        await Timer((chance.randrange(3) * BIT_NS) or 1, "ns")
    await line.silence(20)
    assert slave.accesses == bench.model.accesses
    assert slave.words == bench.model.words
    bins.save()
