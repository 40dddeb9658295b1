"""Whether this host's KVM runs the guest's kernel: found out by letting it."""

import json
import os
import platform
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from latenz.boards import cache
from latenz.boards.images import Image
from latenz.errors import BadInput
from latenz.files import scratch_place
from latenz.keeper import KeptProgram
from latenz.programs import escaped, program_version
from latenz.vm.command import PROGRAM
from latenz.vm.settings import Accelerator

Wanted = Literal["auto", "kvm", "tcg"]
_DEVICE = Path("/dev/kvm")
_LIMIT_S = 15.0
_SIGN = b"Linux version "


@dataclass(frozen=True)
class Acceleration:
    """What a guest runs by.

    Attributes:
        accelerator: `kvm`, or `tcg` where KVM does not run the kernel.
        reason: Why not KVM; empty with KVM.
    """

    accelerator: Accelerator
    reason: str = ""


def acceleration(wanted: Wanted, kernel: Image) -> Acceleration:
    """Return what a kernel runs by here.

    A device /dev/kvm is no proof: where this host is a virtual machine itself, KVM may be there
    and fail. So the kernel is booted for a moment. What came of it is kept for the same kernel,
    QEMU and host.

    Args:
        wanted: `auto` takes KVM where it works.
        kernel: What is to run.

    Raises:
        BadInput: KVM is wanted and does not work.
    """
    if wanted == "tcg":
        return Acceleration("tcg", "it was asked for")
    trouble = kvm_trouble(kernel)
    if not trouble:
        return Acceleration("kvm")
    if wanted == "kvm":
        raise BadInput(f"KVM does not run the guest: {trouble}", "--accelerator", "take tcg")
    return Acceleration("tcg", f"KVM does not run the guest: {trouble}")


def kvm_trouble(kernel: Image) -> str:
    """Return why KVM does not run a kernel here; empty if it does."""
    if not _DEVICE.exists():
        return f"{_DEVICE} is not there"
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return f"{_DEVICE} may not be opened by this user"
    known = _record(kernel)
    with suppress(OSError, ValueError, KeyError):
        return str(json.loads(known.read_bytes())["trouble"])
    trouble = _tried(kernel)
    with cache.appearing(known) as partial:
        partial.write_text(json.dumps({"trouble": trouble}) + "\n")
    return trouble


def _record(kernel: Image) -> Path:
    """Where it is kept what came of trying."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model" in line]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    host = [platform.release(), platform.version(), sorted(set(models)), boot]
    tried = [kernel.sha256, program_version(PROGRAM, "--version"), host]
    return cache.folder("kvm") / cache.digest(json.dumps(tried).encode())[:16]


def _tried(kernel: Image) -> str:
    """Boot a kernel by KVM until it says its name; return what went wrong, empty if nothing."""
    with tempfile.TemporaryDirectory(prefix="latenz-kvm-", dir=scratch_place()) as name:
        console, log = Path(name, "console"), Path(name, "log")
        command = [
            *(PROGRAM, "-machine", "pc,accel=kvm", "-cpu", "host", "-m", "256", "-nodefaults"),
            *("-display", "none", "-no-reboot", "-kernel", str(kernel.path)),
            *("-chardev", f"file,id=console,path={escaped(console)}", "-serial", "chardev:console"),
            *("-append", "console=ttyS0 panic=-1"),
        ]
        program = KeptProgram(command, Path(name, "out"), log, 0.5)
        try:
            until = time.monotonic() + _LIMIT_S
            while program.alive and time.monotonic() < until:
                if console.exists() and _SIGN in console.read_bytes():
                    return ""
                time.sleep(0.05)
        finally:
            program.stop()
        if console.exists() and _SIGN in console.read_bytes():
            return ""
        said = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        return said[0].strip() if said else f"it said nothing in {_LIMIT_S:.0f} s"
