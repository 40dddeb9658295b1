# SPDX-License-Identifier: Apache-2.0
"""The other end of the serial line, and a slave behind the bridge: what software sees of both."""

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, Timer, with_timeout

READ, WRITE = b"R", b"W"
OKAY, DAMAGED = 0, 0xFE


def check(message: bytes) -> int:
    """The remainder of a message by x^8 + x^2 + x + 1, by long division."""
    rest = int.from_bytes(message, "big") << 8
    for place in reversed(range(8, rest.bit_length())):
        if rest >> place & 1:
            rest ^= 0x107 << (place - 8)
    return rest


def checked(message: bytes) -> bytes:
    """A message with its check."""
    return message + bytes([check(message)])


def read_request(window: int, address: int, count: int) -> bytes:
    """As docs/ip.md has it."""
    return checked(READ + bytes([window]) + address.to_bytes(2, "little") + bytes([count]))


def write_request(window: int, address: int, word: int) -> bytes:
    """As docs/ip.md has it."""
    place = bytes([window]) + address.to_bytes(2, "little")
    return checked(WRITE + place + word.to_bytes(4, "little"))


class Line:
    """Sends and hears bytes, bit by bit, by its own clock.

    Attributes:
        heard: What came and was not taken yet.
        sends_bit_ns: How long a bit is that we send.
    """

    def __init__(self, to_device: Any, from_device: Any, bit_ns: int) -> None:
        self.heard: deque[int] = deque()
        self.sends_bit_ns = bit_ns
        self._bit_ns = bit_ns
        self._to, self._from = to_device, from_device
        to_device.value = 1

    async def run(self) -> None:
        """Hear for ever."""
        while True:
            await FallingEdge(self._from)
            await Timer(self._bit_ns // 2, "ns")
            assert self._from.value == 0, "a start bit of less than half a bit"
            byte = 0
            for place in range(8):
                await Timer(self._bit_ns, "ns")
                byte |= int(self._from.value) << place
            await Timer(self._bit_ns, "ns")
            assert self._from.value == 1, "no stop bit"
            self.heard.append(byte)

    async def send(self, content: bytes) -> None:
        """Send bytes without a pause."""
        for byte in content:
            for bit in (0, *(byte >> place & 1 for place in range(8)), 1):
                self._to.value = bit
                await Timer(self.sends_bit_ns, "ns")

    async def hear(self, count: int) -> bytes:
        """So many bytes; a test that waits for ever for them fails."""

        async def enough() -> None:
            while len(self.heard) < count:
                await Timer(self._bit_ns, "ns")

        await with_timeout(enough(), (count * 10 + 2_000) * self._bit_ns, "ns")
        return bytes(self.heard.popleft() for _ in range(count))

    async def silence(self, bits: int) -> None:
        """Let time pass; nothing may be heard."""
        await Timer(bits * self._bit_ns, "ns")
        assert not self.heard, bytes(self.heard)

    async def write(self, window: int, address: int, word: int) -> int:
        """Write a word; the status."""
        await self.send(write_request(window, address, word))
        answer = await self.hear(2)
        assert check(answer[:1]) == answer[1]
        return answer[0]

    async def read(self, window: int, address: int, count: int) -> tuple[list[int], int]:
        """Read words; those before the first that failed, and the status."""
        await self.send(read_request(window, address, count))
        words, answer, status = [], b"", OKAY
        while status == OKAY and len(words) < count:
            answer += await self.hear(1)
            status = answer[-1]
            if status == OKAY:
                answer += await self.hear(4)
                words.append(int.from_bytes(answer[-4:], "little"))
        assert (await self.hear(1))[0] == check(answer)
        return words, status


class Slave:
    """A memory on the bus that takes address and word in any order and answers when it likes.

    Attributes:
        words: By address, of all windows.
        accesses: Kind and address of each that was answered.
        answer: The response to an access.
        pause: Share of cycles in which a channel does not go on.
    """

    def __init__(self, dut: Any) -> None:
        self.words: dict[int, int] = {}
        self.accesses: list[tuple[str, int]] = []
        self.answer: Callable[[str, int], int] = lambda _kind, _address: OKAY
        self.pause = 0.0
        self._dut = dut
        self._chance = random.Random(29)
        self._tasks: list[Any] = []

    def start(self) -> None:
        """Serve from now on, as after a reset."""
        for task in self._tasks:
            task.cancel()
        for name in ("awready", "wready", "bvalid", "bresp", "arready", "rvalid", "rresp", "rdata"):
            self._port(name).value = 0
        self._tasks = [cocotb.start_soon(each) for each in (self._writes(), self._reads())]

    def _port(self, name: str) -> Any:
        return getattr(self._dut, f"m_axi_{name}")

    async def _goes_on(self) -> None:
        while True:
            await RisingEdge(self._dut.aclk)
            if self._chance.random() >= self.pause:
                return

    async def _take(self, channel: str, *payload: str) -> list[int]:
        await self._goes_on()
        self._port(f"{channel}ready").value = 1
        while True:
            await RisingEdge(self._dut.aclk)
            if self._port(f"{channel}valid").value == 1:
                break
        found = [int(self._port(name).value) for name in payload]
        self._port(f"{channel}ready").value = 0
        return found

    async def _give(self, channel: str, **payload: int) -> None:
        await self._goes_on()
        for name, value in payload.items():
            self._port(name).value = value
        self._port(f"{channel}valid").value = 1
        while True:
            await RisingEdge(self._dut.aclk)
            if self._port(f"{channel}ready").value == 1:
                break
        self._port(f"{channel}valid").value = 0

    async def _writes(self) -> None:
        while True:
            word_first = self._chance.random() < 0.5
            if word_first:
                data, strobes = await self._take("w", "wdata", "wstrb")
            address, protection = await self._take("aw", "awaddr", "awprot")
            if not word_first:
                data, strobes = await self._take("w", "wdata", "wstrb")
            assert (strobes, protection) == (0xF, 0)
            response = self.answer("write", address)
            if response == OKAY:
                self.words[address] = data
            self.accesses.append(("write", address))
            await self._give("b", bresp=response)

    async def _reads(self) -> None:
        while True:
            address, protection = await self._take("ar", "araddr", "arprot")
            assert protection == 0
            response = self.answer("read", address)
            self.accesses.append(("read", address))
            await self._give("r", rresp=response, rdata=self.words.get(address, 0))
