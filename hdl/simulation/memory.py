# SPDX-License-Identifier: Apache-2.0
"""The memory that a stream_ring_writer writes to; costs nothing while nothing is written."""

from cocotb.triggers import RisingEdge

BASE = 0x7000_0000
"""Address of the memory on the writer's bus."""
_OKAY, _SLVERR, _DECERR = 0, 2, 3
_BEAT = 16
_WORD = 4


class Memory:
    """Takes writes of one beat at any pace, and answers each in the cycle behind it.

    Software reads it without any simulated time: it is not a part of the logic's bus.

    Args:
        dut: The design, whose master is `m_axi`.
        records: Of 16 bytes each. What is written beyond them answers DECERR.
    """

    def __init__(self, dut, records: int) -> None:
        self._dut = dut
        self._content = bytearray(records * _BEAT)
        self.size = len(self._content)
        dut.m_axi_awready.value = 1
        dut.m_axi_wready.value = 1
        dut.m_axi_bvalid.value = 0
        dut.m_axi_bresp.value = _OKAY

    async def run(self) -> None:
        """Serve the design; never returns."""
        dut = self._dut
        edge, offered = RisingEdge(dut.aclk), RisingEdge(dut.m_axi_awvalid)
        while True:
            if dut.m_axi_awvalid.value != 1:
                dut.m_axi_bvalid.value = 0
                await offered
            await edge
            # Address and data are offered together, and always taken at once.
            if dut.m_axi_awvalid.value == 1:
                dut.m_axi_bresp.value = self._store(
                    int(dut.m_axi_awaddr.value) - BASE, int(dut.m_axi_wdata.value)
                )
                dut.m_axi_bvalid.value = 1

    def _store(self, place: int, beat: int) -> int:
        if not 0 <= place <= self.size - _BEAT:
            return _DECERR
        self._content[place : place + _BEAT] = beat.to_bytes(_BEAT, "little")
        return _OKAY

    async def read(self, address: int) -> tuple[int, int]:
        """Return response and word."""
        return _OKAY, int.from_bytes(self._content[address : address + _WORD], "little")

    async def write(self, _address: int, _word: int) -> int:
        """Return the response: software has nothing to write here."""
        return _SLVERR
