"""A program that runs while something is measured: an engine or a load."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from latenz.errors import BadInput
from latenz.keeper import KeptProgram
from latenz.machine import Running, measured_machine, measured_target

_LAST = 4096  # bytes of what a program printed in which its last line is looked for


class Activity(ABC):
    """One run of a program, which ends with Latenz at the latest.

    Args:
        folder: Takes what the program prints.

    Attributes:
        target: Where it runs; None: on this machine.
        command: The program with its arguments, once started; empty if there is none.
        cpus: Where the program may run, whatever becomes of the mask of this process.
    """

    output_file: ClassVar[str]
    """Name of the file that takes standard output."""
    log_file: ClassVar[str]
    """Name of the file that takes standard error."""
    grace_s: ClassVar[float] = 10.0
    """Seconds the program gets to end by itself before it is killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = measured_target()
        self.command: list[str] = []
        self.cpus = measured_machine().inherited_cpus()
        self._program: Running | None = None

    @property
    def place(self) -> Path:
        """What the program calls its folder, where it runs."""
        return self.target.place(self.folder) if self.target else self.folder

    @abstractmethod
    def arguments(self) -> list[str]:
        """Return the program with its arguments; an empty list for no program at all."""

    def start(self) -> None:
        """Start the program."""
        self.command = self.arguments()
        if self.command:
            self._program = self._run_program()

    def _run_program(self) -> Running:
        if self.target:
            names = (self.output_file, self.log_file)
            return self.target.start(self.command, self.folder, *names, self.grace_s, self.cpus)
        output, log = self.folder / self.output_file, self.folder / self.log_file
        return KeptProgram(self.command, output, log, self.grace_s, self.cpus)

    @property
    def alive(self) -> bool:
        """Whether the program still runs; True if there is none that could end."""
        return self._program is None or self._program.alive

    def stop(self) -> int:
        """End the program and everything it started; return its exit status."""
        return self._program.stop() if self._program else 0

    def last_words(self) -> str:
        """Return the last line that the program printed, errors first."""
        for name in (self.log_file, self.output_file):
            path = self.folder / name
            text = path.read_bytes()[-_LAST:].decode("utf-8", "replace") if path.exists() else ""
            if lines := [line.strip() for line in text.splitlines() if line.strip()]:
                return lines[-1]
        return "it printed nothing"

    def result_file(self, name: str) -> Path:
        """Return the path of a file that the program must have written.

        Raises:
            BadInput: It has not.
        """
        path = self.folder / name
        if not path.exists():
            raise BadInput(f"{self.command[0]} left no result: {self.last_words()}", str(path))
        return path
