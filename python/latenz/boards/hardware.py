"""The driver of labgrid that boots a payload on a real board through its U-Boot.

Not run yet: nobody of us had a board. labgrid checks that drivers and resources fit together.
"""

import os
from pathlib import Path
from typing import Any

import attr
from labgrid import target_factory
from labgrid.driver.common import Driver
from labgrid.driver.exception import ExecutionError
from labgrid.driver.provider import TFTPProviderDriver
from labgrid.driver.ubootdriver import UBootDriver
from labgrid.protocol import ConsoleProtocol, PowerProtocol
from pexpect import TIMEOUT

from latenz.boards.payload import Payload
from latenz.boards.protocol import PayloadProtocol
from latenz.errors import BadInput

_CHUNK = 4096
_LOAD_LIMIT_S = 300
_IMAGE_MAGIC = b"ARM\x64"
_KERNEL_ADDRESS = 0x00200000
"""Where an arm64 Image is put on a ZCU102: memory that neither U-Boot nor a payload uses."""
_ELF_ADDRESS = 0x20000000
_TREE_ADDRESS = 0x1F000000
_INITRD_ADDRESS = 0x30000000


@target_factory.reg_driver
@attr.s(eq=False)
class LatenzBoardDriver(Driver, PayloadProtocol):
    """Switches a board on, loads a payload by TFTP and starts it with U-Boot's commands."""

    bindings = {  # noqa: RUF012 - labgrid's way
        "power": PowerProtocol,
        "console": ConsoleProtocol,
        "tftp": TFTPProviderDriver,
        "uboot": UBootDriver,
    }

    def __attrs_post_init__(self) -> None:
        """Begin without a payload."""
        super().__attrs_post_init__()
        self._payload: Payload | None = None
        self._log = Path()
        self.command: list[str] = []

    def prepare(self, payload: Payload, folder: Path, extra: tuple[str, ...]) -> None:
        """Take what to boot.

        Raises:
            BadInput: The payload needs what only the emulator has.
        """
        if extra or payload.real_time_cores:
            raise BadInput("works in the emulator only", "zcu102-board", "take bench zcu102")
        self._payload, self._log = payload, folder / "console.log"

    def identity(self) -> dict[str, str]:
        """Return what is known of the board's own software."""
        return {"boot_loader": " ".join(self._run("version"))}

    def on(self) -> None:
        """Switch the board on, load every file and start the first one."""
        payload = self._payload
        if payload is None:
            raise BadInput("has nothing to boot", "the board", "prepare a payload first")
        self.power.cycle()
        self.target.activate(self.uboot)
        for load in payload.loads:
            if load.address is None or load.cpu is not None:
                raise BadInput("cannot be loaded by U-Boot", str(load.path), "give an address")
            self._fetch(load.path, load.address)
        self.uboot.console.sendline(self._start(payload))

    def off(self) -> None:
        """Switch the board off."""
        self.power.off()

    def cycle(self) -> None:
        """Start again."""
        self.off()
        self.on()

    def on_deactivate(self) -> None:
        """Leave the board switched off."""
        self.off()

    def read_all(self, timeout_s: float) -> list[tuple[int, bytes]]:
        """Return what the serial line has brought, waiting for at most the given time."""
        try:
            data: bytes = self.console.read(_CHUNK, timeout=timeout_s)
        except TIMEOUT:
            return []
        with self._log.open("ab") as log:
            log.write(data)
        return [(0, data)]

    def _fetch(self, path: Path, address: int) -> int:
        """Load a file into the board's memory; return its size."""
        self._run(f"tftpboot {address:#x} {self.tftp.stage(os.fspath(path))}", _LOAD_LIMIT_S)
        return path.stat().st_size

    def _start(self, payload: Payload) -> str:
        """Load the first image and what belongs to it; return the command that starts it."""
        with payload.kernel.open("rb") as file:
            is_image = file.read(64)[56:60] == _IMAGE_MAGIC
        if not is_image:
            self._fetch(payload.kernel, _ELF_ADDRESS)
            return f"bootelf {_ELF_ADDRESS:#x}"
        self._fetch(payload.kernel, _KERNEL_ADDRESS)
        initrd = "-"
        if payload.initrd:
            initrd = f"{_INITRD_ADDRESS:#x}:{self._fetch(payload.initrd, _INITRD_ADDRESS):#x}"
        if payload.device_tree:
            self._fetch(payload.device_tree, _TREE_ADDRESS)
        if payload.command_line:
            self._run(f"setenv bootargs '{payload.command_line}'")
        return f"booti {_KERNEL_ADDRESS:#x} {initrd} {_TREE_ADDRESS:#x}"

    def _run(self, command: str, limit_s: int = 30) -> list[str]:
        try:
            told: Any = self.uboot.run_check(command, timeout=limit_s)
        except (ExecutionError, TIMEOUT) as error:
            raise BadInput(f"U-Boot refused {command!r}: {error}", "the board") from None
        return list(told)
