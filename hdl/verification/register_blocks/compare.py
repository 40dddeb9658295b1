# SPDX-License-Identifier: Apache-2.0
"""Both blocks get the same transactions; what they answer and what their fields are must agree.

Each side has its own pauses on every channel, so that the two never run in step.
"""

import json
import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, gather

OKAY, SLVERR = 0, 2
WINDOW = 4096
OFFSETS = json.loads(os.environ["LATENZ_OFFSETS"])  # of the registers that exist
FIELDS = json.loads(os.environ["LATENZ_FIELDS"])  # names and widths in the vectors of values
SWEPT = [  # every word of two maps' size, then every alias of the first ones
    *range(0, 512, 4),
    *(high + low for high in range(512, WINDOW, 256) for low in (0, 4, 252)),
]
TRANSACTIONS = int(os.environ["LATENZ_TRANSACTIONS"])


class Side:
    """A master of one block: it waits at random before each valid and each ready."""

    def __init__(self, dut, name: str, chance: random.Random) -> None:
        self._dut = dut
        self._name = name
        self._chance = chance
        for channel in ("aw", "w", "ar"):
            self._signal(f"{channel}valid").value = 0
        for channel in ("b", "r"):
            self._signal(f"{channel}ready").value = 0

    def _signal(self, name: str):
        return getattr(self._dut, f"{self._name}_axi_{name}")

    async def _wait(self) -> None:
        for _ in range(self._chance.choice((0, 0, 0, 1, 2, 3))):
            await RisingEdge(self._dut.aclk)

    async def _transfer(self, ours: str, theirs: str) -> None:
        """Raise our side of a handshake, after a while, until both are high at an edge."""
        await self._wait()
        self._signal(ours).value = 1
        await RisingEdge(self._dut.aclk)
        while not int(self._signal(theirs).value):
            await RisingEdge(self._dut.aclk)
        self._signal(ours).value = 0

    async def read(self, address: int) -> tuple[int, int]:
        """Return response and data, which is 0 beside an error."""
        self._signal("araddr").value = address
        self._signal("arprot").value = self._chance.getrandbits(3)
        await self._transfer("arvalid", "arready")
        await self._transfer("rready", "rvalid")
        # the edge of the handshake is now: the values are still those of before it
        return int(self._signal("rresp").value), int(self._signal("rdata").value)

    async def write(self, address: int, data: int, strobes: int) -> tuple[int]:
        """Return the response; lanes without strobe carry data, too."""
        self._signal("awaddr").value = address
        self._signal("awprot").value = self._chance.getrandbits(3)
        self._signal("wdata").value = data
        self._signal("wstrb").value = strobes
        await gather(
            self._transfer("awvalid", "awready"),
            self._transfer("wvalid", "wready"),
        )
        await self._transfer("bready", "bvalid")
        return (int(self._signal("bresp").value),)


class Pair:
    """The two blocks, with a master each."""

    def __init__(self, dut, chance: random.Random) -> None:
        self._dut = dut
        self._sides = [
            Side(dut, name, random.Random(chance.random())) for name in ("ours", "theirs")
        ]

    @classmethod
    async def start(cls, dut, chance: random.Random) -> "Pair":
        """Return both blocks after a reset."""
        dut.aresetn.value, dut.drive.value = 0, 0
        pair = cls(dut, chance)
        cocotb.start_soon(Clock(dut.aclk, 10, unit="ns").start())
        await ClockCycles(dut.aclk, 4)
        dut.aresetn.value = 1
        await ClockCycles(dut.aclk, 2)
        return pair

    async def read(self, address: int) -> int:
        """Read from both, which must agree; return the response."""
        answers = await gather(*[side.read(address) for side in self._sides])
        return await self._agree(answers, f"read of {address:#x}")

    async def write(self, address: int, data: int, strobes: int = 0xF) -> int:
        """Write to both, which must agree; return the response."""
        answers = await gather(*[side.write(address, data, strobes) for side in self._sides])
        return await self._agree(answers, f"write of {data:#010x}, {strobes:#06b} to {address:#x}")

    async def _agree(self, answers: list, what: str) -> int:
        dut = self._dut
        await ClockCycles(dut.aclk, 2)  # their pulses come a cycle after the write
        assert answers[0] == answers[1], (what, answers)
        ours, theirs = int(dut.ours_values.value), int(dut.theirs_values.value)
        low = 0
        for name, width in FIELDS:
            mask = ((1 << width) - 1) << low
            assert ours & mask == theirs & mask, (what, name, hex(ours & mask), hex(theirs & mask))
            low += width
        counts = int(dut.ours_counts.value), int(dut.theirs_counts.value)
        assert counts[0] == counts[1], (what, "pulses", *map(hex, counts))
        return answers[0][0]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def no_more_than_the_map(dut) -> None:
    """Exactly the registers of the map can be read; and writes answer the same."""
    pair = await Pair.start(dut, random.Random(1))
    assert [address for address in SWEPT if await pair.read(address) == OKAY] == OFFSETS
    for address in SWEPT:
        await pair.write(address, 0xFFFF_FFFF)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def random_transactions(dut) -> None:
    """Reads and writes with any strobes, while hardware drives random values."""
    chance = random.Random(2)
    pair = await Pair.start(dut, chance)
    seen = set()
    for _ in range(TRANSACTIONS):
        dut.drive.value = chance.getrandbits(len(dut.drive)) & chance.getrandbits(len(dut.drive))
        word = chance.choice(OFFSETS) if chance.random() < 0.9 else chance.randrange(0, WINDOW, 4)
        if chance.random() < 0.4:
            seen.add(("read", await pair.read(word)))
        else:
            answer = await pair.write(word, chance.getrandbits(32), chance.getrandbits(4))
            seen.add(("write", answer))
    assert seen == {(kind, each) for kind in ("read", "write") for each in (OKAY, SLVERR)}
