"""Drivers of labgrid that boot a payload: the emulator here, real boards in `hardware.py`."""

import logging
import os
import select
import shutil
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import attr
from labgrid import target_factory
from labgrid.driver.common import Driver
from qemu.qmp.legacy import QEMUMonitorProtocol

from latenz.boards.payload import Load, Payload
from latenz.boards.protocol import PayloadProtocol
from latenz.errors import BadInput
from latenz.files import scratch_place
from latenz.keeper import KeptProgram
from latenz.programs import LEAST_QEMU, escaped, listen, plugin_arguments, turn_arguments

# What goes wrong with the monitor is told in our own words.
logging.getLogger("qemu.qmp").addHandler(logging.NullHandler())

_START_LIMIT_S = 30.0
_GRACE_S = 2.0
_CHUNK = 1 << 16
_PAUSE_S = 0.02


@target_factory.reg_driver
@attr.s(eq=False)
class LatenzEmulatorDriver(Driver, PayloadProtocol):
    """Runs a payload in QEMU, so that nothing of it outlives Latenz and no wait lasts for ever.

    Unlike labgrid's own driver it takes any number of files and serial lines, keeps what the
    board says in a log, counts instructions as time, and can switch on real-time cores.

    Args:
        machine: QEMU's machine with its options.
        cpu: QEMU's core; empty for the machine's own.
        real_time_core: Path of the first real-time core in QEMU's object tree; empty for none.
        real_time_smp: How many cores QEMU must be told of, so that the real-time ones exist.
        hypervisor: What is added to the machine so that there is EL2.
        enabled_cpus: The property by which a machine that always has all of its cores is told how
            many of them are on; empty for machines with as many cores as are asked for.
        extra_args: Further arguments.
    """

    machine: str = attr.ib(validator=attr.validators.instance_of(str))
    cpu: str = attr.ib(default="", validator=attr.validators.instance_of(str))
    real_time_core: str = attr.ib(default="", validator=attr.validators.instance_of(str))
    real_time_smp: int = attr.ib(default=0, validator=attr.validators.instance_of(int))
    hypervisor: str = attr.ib(
        default=",virtualization=on", validator=attr.validators.instance_of(str)
    )
    enabled_cpus: str = attr.ib(default="", validator=attr.validators.instance_of(str))
    extra_args: list[str] = attr.ib(factory=list, validator=attr.validators.instance_of(list))

    def __attrs_post_init__(self) -> None:
        """Begin without a payload."""
        super().__attrs_post_init__()
        self._payload: Payload | None = None
        self._folder = Path()
        self._extra: tuple[str, ...] = ()
        self._program: KeptProgram | None = None
        self._monitor: QEMUMonitorProtocol | None = None
        self._threads: tuple[int, ...] = ()
        self._lines: list[BinaryIO] = []
        self._logs: list[BinaryIO] = []
        self.command: list[str] = []

    def prepare(self, payload: Payload, folder: Path, extra: tuple[str, ...]) -> None:
        """Take what to boot."""
        self._payload, self._folder, self._extra = payload, folder, extra

    def identity(self) -> dict[str, str]:
        """Return the emulator's version and machine."""
        from latenz.programs import program_version

        version = program_version(self._emulator(), "--version")
        return {
            "qemu": version or "unknown",
            "machine": self.machine,
            "cpu": self.cpu,
            "options": " ".join(self.extra_args),
        }

    def on(self) -> None:
        """Start the emulator; when its monitor answers, let it run."""
        if self._program is not None:
            return
        # Paths of sockets must be short: not in the run folder.
        sockets = Path(tempfile.mkdtemp(prefix="latenz-board-", dir=scratch_place()))
        try:
            self._start(sockets)
        except BaseException:
            self.off()
            raise
        finally:
            shutil.rmtree(sockets, ignore_errors=True)

    def off(self) -> None:
        """End the emulator; harmless if it has ended."""
        if self._monitor is not None:
            with suppress(Exception):
                self._monitor.close()
            self._monitor = None
        for each in (*self._lines, *self._logs):
            each.close()
        self._lines, self._logs = [], []
        if self._program is not None:
            self._program.stop()
            self._program = None

    def cycle(self) -> None:
        """Start again."""
        self.off()
        self.on()

    def on_deactivate(self) -> None:
        """End the emulator with the driver."""
        self.off()

    @property
    def alive(self) -> bool:
        """Whether the emulator runs."""
        return self._program is not None and self._program.alive

    def read_all(self, timeout_s: float) -> list[tuple[int, bytes]]:
        """Return what the serial lines have brought, waiting for at most the given time."""
        until = time.monotonic() + timeout_s
        while True:
            alive = self.alive  # asked first: what it said before its end is read
            pieces = [line.read(_CHUNK) for line in self._lines]
            found = [(number, piece) for number, piece in enumerate(pieces) if piece]
            for number, piece in found:
                self._logs[number].write(piece)
                self._logs[number].flush()
            if found:
                return found
            if not alive:
                raise BadInput(self._ending(), os.fspath(self._folder))
            if time.monotonic() >= until:
                return []
            time.sleep(_PAUSE_S)

    def starved_s(self) -> float:
        """Return how long the emulator's slowest core was ready and had no processor of ours."""
        return max((_ready_ns(each) for each in self._threads), default=0) / 1e9

    def _ending(self) -> str:
        """Return how the emulator ended."""
        status = self._program.stop() if self._program is not None else 0
        if status < 0:
            return f"the emulator was killed by signal {-status}"
        if status > 0:
            return f"the emulator failed: {self._last_words()}"
        return "the board switched itself off before it was done"

    def _start(self, sockets: Path) -> None:
        payload = self._payload
        if payload is None:
            raise BadInput("has nothing to boot", "the emulator", "prepare a payload first")
        listening = listen(sockets / "monitor")
        for number in range(payload.uarts):
            self._lines.append(_empty(sockets / f"serial{number}"))
            self._logs.append((self._folder / _log_name(number)).open("wb"))
        self.command = [self._emulator(), *self._arguments(payload, sockets), *self._extra]
        log = self._folder / "emulator.log"
        self._program = KeptProgram(self.command, self._folder / "emulator.out", log, _GRACE_S)
        try:
            self._monitor = monitor = QEMUMonitorProtocol(self._accepted(listening))
            monitor.connect()
            monitor.settimeout(_START_LIMIT_S)
            if payload.real_time_cores:
                self._switch_on_real_time_core(monitor)
            cores: Any = monitor.cmd("query-cpus-fast")
            self._threads = tuple({int(core["thread-id"]) for core in cores})
            monitor.cmd("cont")
        except BadInput:
            raise
        except Exception as error:  # whatever the monitor's library raises
            raise BadInput(
                f"the emulator did not start: {self._last_words()} ({error})", str(log)
            ) from None
        finally:
            listening.close()

    def _accepted(self, listening: socket.socket) -> socket.socket:
        """Wait until the emulator has connected its monitor and speaks, or has ended."""
        deadline = time.monotonic() + _START_LIMIT_S
        while time.monotonic() < deadline and self.alive:
            with suppress(TimeoutError):
                line, _ = listening.accept()
                select.select([line], [], [], _START_LIMIT_S)
                return line
        raise BadInput(
            f"the emulator did not start: {self._last_words()}",
            str(self._folder / "emulator.log"),
        )

    def _switch_on_real_time_core(self, monitor: QEMUMonitorProtocol) -> None:
        # A non-secure boot leaves every core but the first switched off, whatever else is said;
        # the property can be set before a reset.
        path = self.real_time_core
        monitor.cmd("qom-set", path=path, property="start-powered-off", value=False)
        monitor.cmd("system_reset")
        while (event := monitor.pull_event(wait=_START_LIMIT_S)) and event["event"] != "RESET":
            pass

    def _arguments(self, payload: Payload, sockets: Path) -> list[str]:
        machine = self.machine + self.hypervisor * payload.hypervisor
        smp = self.real_time_smp if payload.real_time_cores else payload.cpus
        if payload.memory_file:
            machine += ",memory-backend=latenz-memory"
        arguments = ["-M", machine, *(["-cpu", self.cpu] if self.cpu else [])]
        if self.enabled_cpus:
            arguments += ["-global", f"{self.enabled_cpus}={smp}"]
        else:
            arguments += ["-smp", str(smp)]
        arguments += ["-m", str(payload.memory_mib)]
        arguments += ["-nodefaults", "-display", "none", "-S", *self.extra_args]
        if not payload.real_time_cores:  # those are switched on by a reset
            arguments.append("-no-reboot")
        # Time is instructions, and the date is always the same: see docs/boards.md.
        arguments += ["-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm"]
        arguments += plugin_arguments("latenz-exact-wait")
        if payload.logic:
            arguments += payload.logic.arguments(self._folder)
        # To files, which take all at once: the models of some serial lines tell the guest when
        # whoever reads is slow.
        for number in range(payload.uarts):
            line = f"serial{number}"
            arguments += ["-chardev", f"file,id={line},path={sockets / line}"]
            arguments += ["-serial", f"chardev:{line}"]
        arguments += ["-chardev", f"socket,id=monitor,path={sockets / 'monitor'}"]
        arguments += ["-mon", "chardev=monitor,mode=control"]
        arguments += _files(payload)
        if payload.memory_file:
            size = f"size={payload.memory_mib}M,share=on"
            place = f"mem-path={escaped(payload.memory_file)}"
            arguments += ["-object", f"memory-backend-file,id=latenz-memory,{size},{place}"]
        return arguments + list(turn_arguments(payload.tick_us) if payload.tick_us else ())

    def _emulator(self) -> str:
        named = self.target.env.config.get_tool("qemu") if self.target.env else None
        found = shutil.which(named or "qemu-system-aarch64")
        if found is None:
            remedy = f"install QEMU {LEAST_QEMU} or later"
            raise BadInput(f"{named} is not installed", "the emulator", remedy)
        return found

    def _last_words(self) -> str:
        path = self._folder / "emulator.log"
        text = path.read_text("utf-8", "replace") if path.exists() else ""
        lines = [line.strip() for line in text.splitlines() if ": warning: " not in line]
        errors = [line for line in lines if line.startswith("qemu-system-")]
        return next(iter([*errors, *filter(None, reversed(lines))]), "it said nothing")


def _ready_ns(thread: int) -> int:
    """Return how long a thread was ready without running (the kernel's sched-stats.rst)."""
    try:
        return int(Path(f"/proc/{thread}/schedstat").read_text().split()[1])
    except (OSError, IndexError):
        return 0


def _log_name(number: int) -> str:
    return "console.log" if number == 0 else f"console{number}.log"


def _empty(path: Path) -> BinaryIO:
    """Return a new file to read from, while the emulator writes."""
    path.write_bytes(b"")
    return path.open("rb", buffering=0)


def _files(payload: Payload) -> list[str]:
    arguments = ["-kernel", os.fspath(payload.kernel)]
    if payload.device_tree:
        arguments += ["-dtb", os.fspath(payload.device_tree)]
    if payload.initrd:
        arguments += ["-initrd", os.fspath(payload.initrd)]
    if payload.command_line:
        arguments += ["-append", payload.command_line]
    for load in payload.loads:
        arguments += ["-device", _loader(load)]
    return arguments


def _loader(load: Load) -> str:
    words = [f"loader,file={escaped(load.path)}"]
    if load.address is not None:
        words += [f"addr={load.address:#x}", "force-raw=on"]
    if load.cpu is not None:
        words += [f"cpu-num={load.cpu}"]
    return ",".join(words)
