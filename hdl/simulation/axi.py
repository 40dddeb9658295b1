# SPDX-License-Identifier: Apache-2.0
"""A master of AXI4-Lite that costs nothing while it is idle.

Those of cocotbext-axi, which our tests use, wake up in every clock cycle: with five of them, a
simulation is twenty times slower.
"""

from cocotb.triggers import Lock, RisingEdge

_DRIVEN = (
    *("awaddr", "awprot", "awvalid", "wdata", "wstrb", "wvalid", "bready"),
    *("araddr", "arprot", "arvalid", "rready"),
)
_SAMPLED = ("awready", "wready", "bresp", "bvalid", "arready", "rdata", "rresp", "rvalid")


class Master:
    """Reads and writes words, one after the other, for whoever asks just after a rising edge.

    Args:
        dut: The design.
        prefix: Of the slave's ports.
    """

    def __init__(self, dut, prefix: str) -> None:
        self._edge = RisingEdge(dut.aclk)
        self._lock = Lock()
        self._ports = {name: getattr(dut, f"{prefix}_{name}") for name in (*_DRIVEN, *_SAMPLED)}
        for name in _DRIVEN:
            self._ports[name].value = 0
        self.size = 1 << len(self._ports["araddr"])

    async def read(self, address: int) -> tuple[int, int]:
        """Return response and word; the slave has at least a cycle between two calls."""
        async with self._lock:
            self._ports["araddr"].value = address
            self._ports["rready"].value = 1
            await self._hand_over("ar")
            await self._until("rvalid")
            found = int(self._ports["rresp"].value), int(self._ports["rdata"].value)
            self._ports["rready"].value = 0
            return found

    async def write(self, address: int, word: int) -> int:
        """Return the response; address and data are offered together."""
        async with self._lock:
            self._ports["awaddr"].value = address
            self._ports["wdata"].value = word
            self._ports["wstrb"].value = 0xF
            self._ports["bready"].value = 1
            await self._hand_over("aw", "w")
            await self._until("bvalid")
            self._ports["bready"].value = 0
            return int(self._ports["bresp"].value)

    async def _hand_over(self, *channels: str) -> None:
        for channel in channels:
            self._ports[f"{channel}valid"].value = 1
        offered = list(channels)
        while offered:
            await self._edge
            for channel in [each for each in offered if self._ports[f"{each}ready"].value == 1]:
                self._ports[f"{channel}valid"].value = 0
                offered.remove(channel)

    async def _until(self, name: str) -> None:
        """Wait for a clock edge with a signal high: it is sampled as a flip-flop does."""
        port = self._ports[name]
        while True:
            await self._edge
            if port.value == 1:
                return
