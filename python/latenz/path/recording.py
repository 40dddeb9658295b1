"""What `latenz-path-recorder` wrote: for each interrupt, the instructions executed before its end.

The format is described in `probes/src/path_recorder.cpp`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from latenz.errors import BadInput, shown


@dataclass(frozen=True)
class Block:
    """Instructions that lie one after the other.

    Attributes:
        address: Of the first one.
        code: Each of them, as in memory.
    """

    address: int
    code: tuple[bytes, ...]

    def addresses(self) -> Iterator[int]:
        """Yield the address of each instruction."""
        at = self.address
        for instruction in self.code:
            yield at
            at += len(instruction)


@dataclass(frozen=True)
class Ran:
    """A virtual CPU executed the first instructions of a block."""

    vcpu: int
    block: Block
    executed: int

    @property
    def last(self) -> bytes:
        """The last of the executed instructions."""
        return self.block.code[self.executed - 1]

    @property
    def next_address(self) -> int:
        """The address after the last of the executed instructions."""
        return self.block.address + sum(map(len, self.block.code[: self.executed]))


@dataclass(frozen=True)
class Accessed:
    """An instruction read or wrote a device."""

    vcpu: int
    address: int
    store: bool
    device: str


Event = Ran | Accessed


@dataclass
class Recording:
    """Everything a recorder wrote.

    Attributes:
        captures: For each interrupt the events before its handler's first action, which is the
            last of them, in the order of execution.
    """

    captures: list[tuple[Event, ...]] = field(default_factory=list)


def read_recording(path: Path) -> Recording:
    """Read what a recorder wrote; a capture that was cut off at the end is left out.

    Raises:
        BadInput: The file cannot be read, is none, or says that recording failed.
    """
    reader = _Reader(path)
    try:
        with path.open(encoding="ascii") as lines:
            for number, line in enumerate(lines, 1):
                if line.endswith("\n"):  # else it was cut off
                    reader.take(number, line)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    except UnicodeDecodeError:
        raise BadInput("is not a recording of paths", str(path), "record again") from None
    return reader.recording


class _Reader:
    def __init__(self, path: Path) -> None:
        self.recording = Recording()
        self._path = path
        self._blocks: dict[str, Block] = {}
        self._known: dict[str, Event] = {}  # lines repeat very often
        self._capture: list[Event] | None = None

    def take(self, number: int, line: str) -> None:
        event = self._known.get(line)
        if event is not None and self._capture is not None:
            self._capture.append(event)
            return
        try:
            self._take(number, line)
        except (ValueError, KeyError, IndexError):
            what = f"{shown(line.rstrip())} is not understood"
            raise BadInput(what, f"{self._path}:{number}", "record again") from None

    def _take(self, number: int, line: str) -> None:
        kind, *fields = line.rstrip("\n").split(" ")
        if number == 1:
            if kind != "latenz-path" or fields[0] != "1":
                raise ValueError
        elif kind == "block":
            name, address, code = fields
            instructions = tuple(bytes.fromhex(each) for each in code.split("."))
            self._blocks[name] = Block(int(address, 16), instructions)
        elif kind == "capture":
            self._capture = []
        elif kind == "end" and self._capture is not None:
            self.recording.captures.append(tuple(self._capture))
            self._capture = None
        elif kind == "fault":
            raise BadInput(" ".join(fields)[:200], str(self._path))
        elif self._capture is not None:
            event = self._event(kind, fields)
            self._known[line] = event
            self._capture.append(event)
        else:
            raise ValueError

    def _event(self, kind: str, fields: list[str]) -> Event:
        if kind == "run":
            vcpu, name, executed = fields
            block = self._blocks[name]
            if not 0 < int(executed) <= len(block.code):
                raise ValueError
            return Ran(int(vcpu), block, int(executed))
        if kind == "io":
            vcpu, address, access, *device = fields
            return Accessed(int(vcpu), int(address, 16), access == "w", " ".join(device))
        raise ValueError
