"""What `latenz-coherence`, the emulator's plugin, wrote.

The format is described in `probes/coherence/src/findings.hpp`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from latenz.errors import BadInput, shown

Reading = Literal["load", "walk", "fetch"]
Cause = Literal[
    "dirty", "stale", "overwritten", "discarded", "incomplete", "uncleaned", "instructions"
]


@dataclass(frozen=True)
class Party:
    """An instruction that read or wrote.

    Attributes:
        cpu: The core, in the order in which they began.
        level: The exception level.
        address: Of the instruction, virtual.
    """

    cpu: int
    level: int
    address: int


@dataclass(frozen=True)
class Finding:
    """An access that may read old data.

    Attributes:
        reading: A load, a walk of translation tables, or a fetch of instructions.
        cause: Why what is read may be old.
        physical: What is read.
        address: The same, virtual; for a walk what was translated.
        time_ns: When it was first seen, in virtual time.
        reader: Who reads.
        writer: Who wrote what may be missed; None if that was before the program.
    """

    reading: Reading
    cause: Cause
    physical: int
    address: int
    time_ns: int
    reader: Party
    writer: Party | None


@dataclass
class Recording:
    """Everything that the plugin wrote.

    Attributes:
        findings: In the order in which they were found.
        notes: What it could not follow.
        accesses: Accesses to memory that it followed; None if it was cut off.
    """

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    accesses: int | None = None


def read_recording(path: Path) -> Recording:
    """Read what the plugin wrote; a line that was cut off at the end is left out.

    Raises:
        BadInput: The file cannot be read, or is none.
    """
    try:
        lines = path.read_text("ascii").split("\n")[:-1]
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    except UnicodeDecodeError:
        raise BadInput("is not a recording of coherence", str(path)) from None
    recording = Recording()
    for number, line in enumerate(lines, 1):
        try:
            _take(recording, number, line)
        except (ValueError, IndexError):
            what = f"{shown(line)} is not understood"
            raise BadInput(what, f"{path}:{number}", "check the image again") from None
    if not lines:
        raise BadInput("is empty", str(path), "check the image again")
    return recording


def _take(recording: Recording, number: int, line: str) -> None:
    kind, *fields = line.split(" ")
    if number == 1:
        if kind != "latenz-coherence" or fields[0] != "1":
            raise ValueError
    elif kind == "found":
        recording.findings.append(_finding(fields))
    elif kind == "note":
        recording.notes.append(" ".join(fields)[:200])
    elif kind == "end":
        recording.accesses = int(fields[0])
    else:
        raise ValueError


def _finding(fields: list[str]) -> Finding:
    reading, cause, physical, address, time_ns, reader, writer = fields
    if reading not in get_args(Reading) or cause not in get_args(Cause):
        raise ValueError
    read_by = _party(reader)
    if read_by is None:
        raise ValueError
    return Finding(
        reading,  # type: ignore[arg-type]
        cause,  # type: ignore[arg-type]
        int(physical, 16),
        int(address, 16),
        int(time_ns),
        read_by,
        _party(writer),
    )


def _party(text: str) -> Party | None:
    if text == "-":
        return None
    cpu, level, address = text.split(":")
    return Party(int(cpu), int(level), int(address, 16))
