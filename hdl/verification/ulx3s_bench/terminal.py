# SPDX-License-Identifier: Apache-2.0
"""The design behind a pseudo terminal, until the file that names it is removed.

Each byte that comes there goes over the simulated line, bit by bit, and back. While nothing comes,
simulated time goes on a little at a time, so that stimuli are made and answered.
"""

import os
import pty
import select
import tty
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import Timer

from verification.ulx3s_bench.answers import drawn
from verification.ulx3s_bench.cases import BIT_NS, CLOCK_NS, answering, started

NAMED = "LATENZ_TERMINAL"  # environment: the file that tells the terminal's name
IDLE_CYCLES = 400
FRAME_CYCLES = 10 * BIT_NS // CLOCK_NS


@cocotb.test()
async def serve(dut: Any) -> None:
    """Be the board."""
    line = await started(dut)
    cocotb.start_soon(answering(dut, drawn()))
    leader, follower = pty.openpty()
    tty.setraw(follower)
    place = Path(os.environ[NAMED])
    made = place.with_suffix(".made")
    made.write_text(os.ttyname(follower))
    made.rename(place)
    while place.exists():
        ready, _, _ = select.select([leader], [], [], 0)
        if ready:
            await line.send(os.read(leader, 64))
        await Timer((FRAME_CYCLES if line.heard else IDLE_CYCLES) * CLOCK_NS, "ns")
        if line.heard:
            os.write(leader, bytes(line.heard))
            line.heard.clear()
