"""A user's two programs, for Cortex-A53 and Cortex-R5, compiled and run on the emulated board."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from latenz.boards.console import Received
from latenz.boards.pair_firmware import SENDERS, SIDES, Side, converse, of_programs
from latenz.errors import BadInput
from latenz.installation import built, clone, remedy

_INCLUDE = ("icc/include", "core/include", "firmware/icc/try")
_OF_CPP = ("-std=c++20", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics", "-Wno-psabi")
_LIMIT_S = 120
_NAMES: dict[Side, str] = {"a53": "Cortex-A53", "r5": "Cortex-R5"}


@dataclass(frozen=True)
class Tried:
    """How it went.

    Attributes:
        lines: What the programs said, in order.
        trouble: What ended them before their time; None if both came to their end.
    """

    lines: list[str]
    trouble: str | None


def sources_in(folder: Path) -> dict[Side, Path]:
    """Return the two programs' sources.

    Raises:
        BadInput: One is missing.
    """
    if not folder.is_dir():
        raise BadInput("is not a folder", str(folder), "name one with a53.cpp and r5.cpp")
    return {side: _source_of(folder, side) for side in SIDES}


def _source_of(folder: Path, side: Side) -> Path:
    in_cpp, in_c = folder / f"{side}.cpp", folder / f"{side}.c"
    if in_cpp.is_file() and in_c.is_file():
        raise BadInput("is there twice, in C and in C++", str(in_c), "remove one of them")
    if in_c.is_file():
        return in_c
    if not in_cpp.is_file():
        raise BadInput("is not there", str(in_cpp), "see icc/examples/pair")
    return in_cpp


def compile_program(side: Side, source: Path, output: Path) -> None:
    """Compile a program and link it with the processor's start-up; warnings go to standard error.

    Raises:
        BadInput: It does not compile, or set-up is not complete.
    """
    parts = built("firmware", "pair")
    try:
        compiler, *options = (parts / f"{side}-options.txt").read_text().splitlines()
    except (OSError, ValueError):
        raise BadInput("was not built", str(parts), remedy("boards")) from None
    words = [word for line in options for word in line.split()]
    is_c = source.suffix == ".c"
    if is_c:
        words = [word for word in words if word not in _OF_CPP]
    command = [compiler, *words]
    command += [f"-I{own_sources() / each}" for each in _INCLUDE]
    command += ["-T", str(parts / "image.ld"), "-o", str(output)]
    command += [*(("-x", "c", "-std=c99") if is_c else ()), str(source.resolve()), "-x", "none"]
    command += ["-Wl,--whole-archive", str(parts / f"{side}-board.a"), "-Wl,--no-whole-archive"]
    if subprocess.run([*command, "-lgcc"], stdout=sys.stderr, check=False).returncode:
        raise BadInput("does not compile, as said above", str(source), "it needs an int main()")


def own_sources() -> Path:
    """Return Latenz' own folder, whose headers and start-up the programs are built with.

    Raises:
        BadInput: Latenz is installed from a package.
    """
    root = clone()
    if root is None:
        what = "compiles with Latenz' own sources, which are not installed"
        raise BadInput(what, "icc try", "clone Latenz and run ./latenz there")
    return root


def attempt(folder: Path, scratch: Path) -> Tried:
    """Compile both programs of a folder, and run them until both have returned.

    Args:
        folder: Holds `a53.cpp` and `r5.cpp`, or either in C: `r5.c`.
        scratch: Takes programs and logs.

    Raises:
        BadInput: One is missing or does not compile.
    """
    programs = {}
    for side, source in sources_in(folder).items():
        programs[side] = scratch / f"{side}.elf"
        compile_program(side, source, programs[side])
    made = of_programs(programs["a53"], programs["r5"], tick_us=1, limit_s=_LIMIT_S)
    received, trouble = converse(made, scratch)
    if trouble is not None:
        trouble = _explained(trouble, received)
    return Tried(received.notes, trouble)


def _explained(trouble: str, received: Received) -> str:
    """Say which processor is meant: the one that faulted, or those that have not come to an end."""
    if received.disaster is not None:
        names = [_NAMES[side] for side in SIDES if SENDERS[side] == received.fault_sender]
        told = trouble.startswith(tuple(_NAMES.values()))
        return trouble if told or not names else f"{names[0]}: {trouble}"
    running = [_NAMES[side] for side in SIDES if SENDERS[side] not in received.ended]
    if not running:
        return trouble
    have = "has" if len(running) == 1 else "have"
    return f"{' and '.join(running)}: main {have} not returned after {_LIMIT_S} s"
