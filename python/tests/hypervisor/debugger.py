"""QEMU's debugger, by the protocol of GDB: stops an emulated board and looks into it.

Time of the emulated board is the number of its instructions: it stands still while the board is
stopped, however long that takes here.
"""

import re
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from elftools.elf.elffile import ELFFile

from latenz.boards.console import Collector, Received
from latenz.hypervisor.guest import installed

_LIMIT_S = 30.0
_STACK_POINTER, _PROGRAM_COUNTER = 31, 32


class Debugger:
    """An emulator that waits to be told to go on.

    Args:
        command: Starts the emulator; without `-S` and `-gdb`.
        folder: Takes the socket.
    """

    def __init__(self, command: list[str], folder: Path) -> None:
        path = folder / "gdb"
        options = ["-S", "-gdb", f"unix:{path},server=on,wait=off"]
        self._program = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_LIMIT_S)
        until = time.monotonic() + _LIMIT_S
        while not path.exists():
            assert time.monotonic() < until, "the emulator did not start"
            time.sleep(0.02)
        self._socket.connect(str(path))
        self._read = self._socket.makefile("rb")
        self._last = 0
        self._stops: set[int] = set()
        self._ask("?")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._program.kill()
        self._program.wait()
        self._read.close()
        self._socket.close()

    def stop_at(self, address: int) -> None:
        """Let the board stop before it executes the instruction there, each time."""
        assert self._ask(f"Z0,{address:x},4") == "OK"
        self._stops.add(address)

    def stop_no_more_at(self, address: int) -> None:
        assert self._ask(f"z0,{address:x},4") == "OK"
        self._stops.remove(address)

    def go_on(self) -> None:
        """Let the board run until it stops."""
        self._leave()
        self._ask("c")

    def wait(self) -> None:
        """Let the board run to its end."""
        self._leave()
        self._send("c")
        self._program.wait(_LIMIT_S)

    def run(self) -> None:
        """Let the board run on, and do not wait."""
        self._send("c")

    def halt(self) -> None:
        """Stop the board that runs."""
        self._socket.sendall(b"\x03")
        self._answer()

    def _leave(self) -> None:
        """Execute the instruction at which the board has stopped, else it stops there again."""
        place = self.place()
        if place in self._stops:
            self.stop_no_more_at(place)
            self._ask("s")
            self.stop_at(place)

    def register(self, number: int) -> int:
        """Return x0 to x30 by number."""
        return int.from_bytes(bytes.fromhex(self._ask(f"p{number:x}")), "little")

    def set_register(self, number: int, value: int) -> None:
        assert self._ask(f"P{number:x}={value.to_bytes(8, 'little').hex()}") == "OK"

    def place(self) -> int:
        """Return the program counter."""
        return self.register(_PROGRAM_COUNTER)

    def set_place(self, address: int) -> None:
        self.set_register(_PROGRAM_COUNTER, address)

    def system_register(self, name: str) -> int:
        """Return a system register, by its name in the manual."""
        return self.register(self._numbers()[name])

    def _numbers(self) -> dict[str, int]:
        """Return the numbers of system registers, from the emulator's own description."""
        found: dict[str, int] = {}
        for file in re.findall(r'<xi:include href="([^"]+)"', self._described("target.xml")):
            for tag in re.findall(r"<reg [^>]*>", self._described(file)):
                fields = dict(re.findall(r'(\w+)="([^"]*)"', tag))
                if "regnum" in fields:
                    self._last = int(fields["regnum"])
                found[fields["name"]] = self._last
                self._last += 1
        return found

    def _described(self, file: str) -> str:
        whole, begin = "", 0
        while True:
            piece = self._ask(f"qXfer:features:read:{file}:{begin:x},800")
            whole += piece[1:]
            begin += len(piece) - 1
            if piece[0] == "l":
                return whole

    def stack(self) -> int:
        """Return the stack pointer."""
        return self.register(_STACK_POINTER)

    def can_read(self, address: int) -> bool:
        """Return whether the processor can read there, with its translation of now."""
        return not self._ask(f"m{address:x},4").startswith("E")

    def _ask(self, what: str) -> str:
        self._send(what)
        return self._answer()

    def _send(self, what: str) -> None:
        self._socket.sendall(f"${what}#{sum(what.encode()) % 256:02x}".encode())

    def _answer(self) -> str:
        while (first := self._read.read(1)) != b"$":
            assert first, "the emulator has ended"
        found = bytearray()
        while (each := self._read.read(1)) != b"#":
            assert each, "the emulator has ended"
            found += each
        self._read.read(2)
        self._socket.sendall(b"+")
        return found.decode()


def emulator_of(image: Path, console: Path) -> list[str]:
    """Return the command that boots an image as the bench `virt` does, its console to a file."""
    machine = ["-M", "virt,gic-version=2,virtualization=on,dtb-randomness=off"]
    processor = ["-cpu", "cortex-a53,cntfrq=1000000000", "-icount", "shift=0", "-m", "1024"]
    lines = ["-nodefaults", "-display", "none", "-serial", f"file:{console}"]
    return ["qemu-system-aarch64", *machine, *processor, *lines, "-kernel", str(image)]


def symbols() -> dict[str, int]:
    """Return the addresses of the hypervisor's symbols, by their names in the image."""
    with installed("hypervisor.elf").open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        return {each.name: each["st_value"] for each in table.iter_symbols()}


def received(console: Path) -> Received:
    """Return what a board has told, by the file that its console went to."""
    collector = Collector()
    collector.feed([(0, console.read_bytes())])
    collector.finish()
    return collector.received
