"""Runs a program on an emulated board, with the plugin that follows what caches could do."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from latenz.boards.setup import ensure_boards
from latenz.coherence.machine import Machine
from latenz.coherence.names import names_of
from latenz.coherence.places import Place, places_of
from latenz.coherence.recording import Recording, read_recording
from latenz.errors import BadInput
from latenz.files import scratch_place
from latenz.programs import escaped, plugin_arguments

if TYPE_CHECKING:
    from latenz.boards.protocol import PayloadProtocol

_RECORDING = "coherence.txt"
_TURN_S = 0.2
_OFF = "the program switched the board off"


@dataclass(frozen=True)
class Checked:
    """What a check brought.

    Attributes:
        places: What may read old data.
        notes: What could not be followed, and how the run ended.
        accesses: Accesses to memory that were followed.
        console: What the program said on its serial lines.
    """

    places: tuple[Place, ...]
    notes: tuple[str, ...]
    accesses: int | None
    console: bytes


def check(
    machine: Machine,
    symbols: tuple[tuple[Path, int | None], ...] = (),
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> Checked:
    """Run a program until it switches the board off, or its time is up; return what was found.

    Args:
        machine: The program, and what it is started on.
        symbols: Files with symbols and the exception level of each; none: the image's own.
        stopped: Asked now and then; True ends the run, and what was found counts.

    Raises:
        BadInput: The program cannot be started, or a file cannot be read.
    """
    environment, payload = machine.environment(), machine.payload()
    if obstacle := ensure_boards():
        raise BadInput(obstacle.reason, "coherence", obstacle.fix and f"run {obstacle.fix}")
    names = names_of(machine.image, symbols)
    with tempfile.TemporaryDirectory(prefix="latenz-coherence-", dir=scratch_place()) as name:
        from latenz.boards.environment import board_in

        folder = Path(name)
        with board_in(environment) as (target, driver):
            driver.prepare(payload, folder, _plugin(machine, folder))
            target.activate(driver)
            driver.on()
            console, ending = _console(driver, machine.limit_s, stopped)
        recording = _recording(folder, ending)
    notes = (*recording.notes, ending)
    return Checked(places_of(recording.findings, names), notes, recording.accesses, console)


def _plugin(machine: Machine, folder: Path) -> tuple[str, ...]:
    output = f"output={escaped(folder / _RECORDING)}"
    return plugin_arguments("latenz-coherence", output, f"caches={machine.caches}")


def _console(
    driver: "PayloadProtocol", limit_s: int, stopped: Callable[[], bool]
) -> tuple[bytes, str]:
    """Return what a board says until it is off, and how it ended."""
    said = bytearray()
    until = time.monotonic() + limit_s
    while time.monotonic() < until and not stopped():
        try:
            for _, piece in driver.read_all(_TURN_S):
                said += piece
        except BadInput as ending:
            return bytes(said), _OFF if "switched itself off" in ending.what else ending.what
    return bytes(said), f"it was switched off after {limit_s} s" if not stopped() else "interrupted"


def _recording(folder: Path, ending: str) -> Recording:
    path = folder / _RECORDING
    if not path.is_file() or not path.stat().st_size:
        raise BadInput(ending, "the emulator")
    return read_recording(path)
