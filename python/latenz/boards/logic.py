"""Programmable logic on an emulated board, and what its processor did with it.

The logic is the bench of the Latencies IP, compiled from its VHDL; probes/logic puts it on the
board, and docs/emulated-logic.md tells how.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from latenz.errors import BadInput
from latenz.programs import escaped, plugin_arguments
from latenz.setup import ensure_group

ANSWER_CYCLES = 1
"""Cycles from the clock edge that takes the address of a word to that which hands it over."""
CLOCK_HZ = 1_000_000_000
"""Of the emulated logic: one cycle for each instruction."""
_COMPILE = Path(__file__).parents[3] / "hdl/simulation/compile"
_RECORD = "logic.txt"
_GENERATOR = "4"
_DATA = "0"


@dataclass(frozen=True)
class Logic:
    """Logic for an emulated board.

    Attributes:
        design: The compiled design.
        base: Where its slaves begin on the bus.
        interrupt: Which shared interrupt it raises, counted from 0.
        controller: The board's interrupt controller in QEMU's object tree.
        source: The device there whose first interrupt goes to the logic.
    """

    design: Path
    base: int
    interrupt: int
    controller: str
    source: str

    def arguments(self, folder: Path) -> tuple[str, ...]:
        """Return what makes QEMU have it; it leaves its record in the folder.

        Raises:
            BadInput: The plugin is not installed.
        """
        return plugin_arguments(
            "latenz-logic",
            f"design={escaped(self.design)}",
            f"base={self.base:#x}",
            f"period={1_000_000_000 // CLOCK_HZ}",
            f"controller={self.controller}",
            f"interrupt={self.interrupt}",
            f"source={self.source}",
            f"output={escaped(folder / _RECORD)}",
        )


@functools.cache
def bench_logic() -> Logic:
    """Return the bench of the Latencies IP in its published configuration, for a ZCU102.

    It stands where hdl/vivado/latenz.tcl places it; TTC1 asks it for data.

    Raises:
        BadInput: It cannot be compiled.
    """
    if obstacle := ensure_group("hdl", "logic on emulated boards"):
        raise BadInput(obstacle.reason, "the Latencies IP", obstacle.fix and f"run {obstacle.fix}")
    command = [sys.executable, os.fspath(_COMPILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise BadInput(said[-1] if said else "cannot be compiled", "the Latencies IP")
    design = Path(done.stdout.strip())
    return Logic(design, 0xA000_0000, 89, "/machine/soc/gic", "/machine/soc/ttc[1]")


def check_cycles(folder: Path, cycles: Sequence[int]) -> None:
    """Hold T2 of the last interrupts against the instructions that were executed.

    Args:
        folder: Of the measurement.
        cycles: What the Latencies IP has measured.

    Raises:
        BadInput: They do not agree, or there is no record of the instructions.
    """
    executed = instructions(folder)[-len(cycles) :]
    if len(executed) != len(cycles):
        what = f"tells of {len(executed)} interrupts, but {len(cycles)} were measured"
        raise BadInput(what, str(folder / _RECORD))
    for number, (measured, counted) in enumerate(zip(cycles, executed, strict=True)):
        right = counted + ANSWER_CYCLES
        if measured != right:
            raise BadInput(
                f"T2 of sample {number} is {measured} cycles, but {counted} instructions were"
                f" executed: {right} would be right",
                str(folder / _RECORD),
            )


def instructions(folder: Path) -> list[int]:
    """Return how many instructions passed from each interrupt of the logic to the first word read.

    They are those of all cores: the emulated board's time.

    Raises:
        BadInput: There is no record, or it tells of a mistake.
    """
    path = folder / _RECORD
    try:
        text = path.read_text("ascii", "replace")
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    return list(_waits(text, path))


def _waits(text: str, path: Path) -> Iterator[int]:
    raised: int | None = None
    for line in text.splitlines():
        match line.split():
            case ["interrupt", time, _, "1"]:
                raised = int(time)
            case ["read", time, _, bus, address, _, "0"] if (bus, address) == (_GENERATOR, _DATA):
                if raised is not None:
                    yield int(time) - raised
                raised = None
            case ["fault", *words]:
                raise BadInput(" ".join(words), str(path))
