"""A running virtual machine: QEMU, its monitor, its threads, and what the guest says."""

import logging
import os
import shutil
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from qemu.qmp.legacy import QEMUMonitorProtocol

from latenz.errors import BadInput
from latenz.files import scratch_place
from latenz.keeper import KeptProgram
from latenz.programs import escaped, listen
from latenz.vm.command import VCPU_PRIORITY, Boot, Piece, arguments, command, host_cpu
from latenz.vm.guest import Guest
from latenz.vm.settings import VmSettings

# What goes wrong with the monitor is told in our own words.
logging.getLogger("qemu.qmp").addHandler(logging.NullHandler())

_START_LIMIT_S = 60.0  # locking and clearing huge pages takes its time
_GRACE_S = 2.0
_CHUNK = 1 << 16


class Machine:
    """A virtual machine, from its start to its end; nothing of it outlives Latenz.

    Args:
        settings: What it is.
        guest: What it boots.
        options: What the guest's first program is told.
        folder: Takes the console's and QEMU's logs.

    Attributes:
        pieces: QEMU's command line.
        threads: What was done to its threads, for people.
    """

    def __init__(self, settings: VmSettings, guest: Guest, options: str, folder: Path) -> None:
        self.settings = settings
        self.threads: list[str] = []
        self._folder = folder.absolute()  # QEMU runs elsewhere
        self._console = self._folder / "console.log"
        self._read_to = 0
        # Paths of sockets must be short: not in the run folder.
        self._sockets = Path(tempfile.mkdtemp(prefix="latenz-vm-", dir=scratch_place()))
        self._program: KeptProgram | None = None
        self._monitor: QEMUMonitorProtocol | None = None
        self._port: socket.socket | None = None
        boot = Boot(
            kernel=guest.kernel.path,
            initrd=guest.initrd.path,
            options=options,
            console=Path(escaped(self._console)),
            results=f"socket,path={self._sockets / 'results'}",
            monitor=self._sockets / "monitor",
            paused=True,
        )
        self.pieces: list[Piece] = command(settings, boot)

    def __enter__(self) -> "Machine":
        """Start QEMU, place its threads, and let the guest run.

        Raises:
            BadInput: QEMU refuses, or its threads may not be placed.
        """
        try:
            self._start()
        except BaseException:
            self.off()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End QEMU."""
        self.off()

    def off(self) -> None:
        """End QEMU; harmless if it has ended."""
        if self._monitor is not None:
            with suppress(Exception):
                self._monitor.close()
            self._monitor = None
        if self._port is not None:
            self._port.close()
            self._port = None
        if self._program is not None:
            self._program.stop()
            self._program = None
        shutil.rmtree(self._sockets, ignore_errors=True)

    @property
    def alive(self) -> bool:
        """Whether QEMU runs."""
        return self._program is not None and self._program.alive

    def console(self) -> bytes:
        """Return what the console has said since the last call."""
        try:
            with self._console.open("rb") as file:
                file.seek(self._read_to)
                said = file.read()
        except FileNotFoundError:
            return b""
        self._read_to += len(said)
        return said

    def results(self, timeout_s: float) -> bytes | None:
        """Return what has come through the port of results, waiting a while; None at its end."""
        if self._port is None:
            return None
        self._port.settimeout(timeout_s)
        try:
            return self._port.recv(_CHUNK) or None
        except TimeoutError:
            return b""
        except OSError:
            return None

    def ask_to_stop(self) -> None:
        """Ask the guest to end its measurement and to send what it has."""
        if self._port is not None:
            with suppress(OSError):
                self._port.sendall(b"stop\n")

    def last_words(self) -> str:
        """Return what QEMU said last on standard error."""
        log = self._folder / "emulator.log"
        text = log.read_text("utf-8", "replace") if log.exists() else ""
        lines = [line.strip() for line in text.splitlines() if ": warning: " not in line]
        return next(filter(None, reversed(lines)), "it said nothing")

    def _start(self) -> None:
        monitor, port = (listen(self._sockets / name) for name in ("monitor", "results"))
        with monitor, port:
            log = self._folder / "emulator.log"
            self._program = KeptProgram(
                arguments(self.pieces), self._folder / "emulator.out", log, _GRACE_S
            )
            self._port = self._accepted(port)
            self._monitor = QEMUMonitorProtocol(self._accepted(monitor))
        try:
            self._monitor.connect()
            self._monitor.settimeout(_START_LIMIT_S)
            cpus: Any = self._monitor.cmd("query-cpus-fast")
        except Exception as error:  # whatever the monitor's library raises
            raise self._refused(str(error)) from None
        if self.settings.accelerator == "kvm":
            self._place({cpu["cpu-index"]: cpu["thread-id"] for cpu in cpus})
        self._monitor.cmd("cont")

    def _accepted(self, listening: socket.socket) -> socket.socket:
        until = time.monotonic() + _START_LIMIT_S
        while time.monotonic() < until and self.alive:
            with suppress(TimeoutError):
                return listening.accept()[0]
        raise self._refused("")

    def _refused(self, reason: str) -> BadInput:
        where = str(self._folder / "emulator.log")
        told = " ".join(filter(None, (self.last_words(), reason and f"({reason})")))
        return BadInput(f"QEMU did not start: {told}", where)

    def _place(self, vcpus: dict[int, int]) -> None:
        """Pin threads and give them their policy, before the guest's first instruction."""
        settings = self.settings
        if settings.on("emulator-pinning") and settings.housekeeping:
            for thread in _threads_beside(set(vcpus.values())):
                self._pin(thread, settings.housekeeping, "the other threads of QEMU")
        for number, thread in sorted(vcpus.items()):
            if settings.on("vcpu-pinning") and settings.cpus:
                self._pin(thread, (host_cpu(settings, number),), f"vCPU {number}")
            if settings.on("vcpu-sched-fifo"):
                self._prefer(thread, number)

    def _pin(self, thread: int, cpus: tuple[int, ...], who: str) -> None:
        try:
            os.sched_setaffinity(thread, cpus)
        except ProcessLookupError:  # a worker that has ended meanwhile
            return
        except OSError as error:
            what = f"{who} cannot run on CPU {cpus} ({error.strerror})"
            raise BadInput(what, "--cpus", "choose CPUs that this process may use") from None
        self._note(f"{who}: CPU {','.join(map(str, cpus))}")

    def _prefer(self, thread: int, number: int) -> None:
        try:
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(VCPU_PRIORITY))
        except OSError as error:
            what = f"SCHED_FIFO {VCPU_PRIORITY} is refused ({error.strerror})"
            remedy = "run as root, or --without vcpu-sched-fifo"
            raise BadInput(what, f"vCPU {number}", remedy) from None
        self._note(f"vCPU {number}: SCHED_FIFO {VCPU_PRIORITY}")

    def _note(self, text: str) -> None:
        if text not in self.threads:
            self.threads.append(text)


def _threads_beside(vcpus: set[int]) -> list[int]:
    """Return all other threads of the process that vCPU threads belong to."""
    some = next(iter(vcpus))
    status = Path(f"/proc/{some}/status").read_text()
    process = next(line.split()[1] for line in status.splitlines() if line.startswith("Tgid:"))
    return [
        int(path.name)
        for path in Path(f"/proc/{process}/task").iterdir()
        if int(path.name) not in vcpus
    ]
