"""Whether this installation of Latenz is whole, and what it can do on this machine."""

import base64
import ctypes
import hashlib
import importlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, PackagePath, distribution
from pathlib import Path
from typing import Any

from latenz.doctor import Check
from latenz.errors import EXIT_BAD_INPUT, BadInput
from latenz.installation import built, clone, experiments, package, shipped
from latenz.programs import program_version
from latenz.setup import missing

AGENTS = "agents"
"""Folder of the programs for other machines, one for each of their processors."""
_PROGRAMS = ("wakeup", "attach", "memory-load", "cpu-load", "intercore", "robot", "trace")
_PLUGINS = ("exact-wait", "path-recorder", "kernel-recorder", "coherence", "logic")
_REINSTALL = "install Latenz anew"
_TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
_BPF_CALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "armv7l": 386}
_BPF_MAP_CREATE = 0
_BPF_ARRAY = 2


@dataclass(frozen=True)
class SelfCheck:
    """What was found.

    Attributes:
        version: Of Latenz.
        folder: Where its code is.
        kind: "clone" or "installed".
        checks: `missing` is something that belongs to Latenz itself, `limited` what this machine
            lacks or does not allow.
    """

    version: str
    folder: str
    kind: str
    checks: tuple[Check, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing of Latenz itself is missing or damaged."""
        return all(check.state != "missing" for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "whole": self.whole}


def self_check() -> SelfCheck:
    """Check this installation; changes nothing."""
    from latenz.environment import own_version

    kind = "clone" if clone() else "installed"
    folder = str(Path(__file__).parent)
    version = str(own_version()["version"])
    return SelfCheck(version, folder, kind, tuple(check() for check in CHECKS))


def _files() -> Check:
    """Hold every installed file against the record that the package came with."""
    if clone():
        return Check("files", "ok", "a clone: git status tells what was changed")
    try:
        recorded = distribution("latenz").files or []
    except PackageNotFoundError:
        return Check("files", "missing", "no record of what is installed", fix=_REINSTALL)
    wrong = [str(each) for each in recorded if not _as_recorded(each)]
    if not wrong:
        return Check("files", "ok", f"{len(recorded)} files as they were packed")
    found = f"{len(wrong)} of {len(recorded)} files are missing or changed, such as {wrong[0]}"
    return Check("files", "missing", found, "what it prints may be wrong", _REINSTALL)


def _as_recorded(file: PackagePath) -> bool:
    if file.hash is None:
        return True
    try:
        content = file.read_binary()
    except OSError:
        return False
    found = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, content).digest())
    return found.rstrip(b"=").decode() == file.hash.value


def _core() -> Check:
    try:
        core = importlib.import_module("latenz._core")
        moments = core.Moments()
        moments.add_counts(*_numbers())
    except (ImportError, OSError) as error:
        return Check("core", "missing", str(error), "nothing can be computed", _REINSTALL)
    if (moments.n, moments.sum) != (3, 8):
        return Check("core", "missing", "computes wrongly", "nothing can be trusted", _REINSTALL)
    return Check("core", "ok", str(core.__file__))


def _numbers() -> tuple[Any, Any]:
    import numpy as np

    return np.array([1, 6], dtype=np.int64), np.array([2, 1], dtype=np.int64)


def _native_programs() -> Check:
    folder = package() / "bin"
    absent = [f"latenz-{name}" for name in _PROGRAMS if not _runs(folder / f"latenz-{name}")]
    absent += [
        f"latenz-{name}.so" for name in _PLUGINS if not (folder / f"latenz-{name}.so").is_file()
    ]
    if absent:
        found = f"{', '.join(absent)} missing, or does not run"
        fix = "setup/ensure base" if clone() else _REINSTALL
        return Check("programs", "missing", found, "nothing can be measured here", fix)
    return Check("programs", "ok", f"{len(_PROGRAMS)} programs run, {len(_PLUGINS)} QEMU plugins")


def _runs(program: Path) -> bool:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode in (0, EXIT_BAD_INPUT)  # latenz-trace has no version and says so


def _experiments() -> Check:
    from latenz.experiment.schema import Experiment

    known = shipped("experiment")
    if not known:
        found = f"none in {experiments()}"
        return Check("experiments", "missing", found, "none can be run by name", _REINSTALL)
    for name, path in known.items():
        try:
            Experiment.read(path)
        except BadInput as mistake:
            return Check("experiments", "missing", f"{name}: {mistake}", fix=_REINSTALL)
    found = f"{', '.join(known)} in {experiments()}"
    return Check("experiments", "ok", found)


def _compiler() -> Check:
    found = next((name for name in ("g++", "c++", "clang++") if shutil.which(name)), None)
    if clone() is None:
        return Check("compiler", "ok", f"none needed ({found or 'none'} on this machine)")
    if found:
        return Check("compiler", "ok", f"{found} builds this clone")
    consequence = "what setup/ensure builds cannot be built"
    return Check("compiler", "limited", "none", consequence, "apt-get install g++")


def _images() -> Check:
    firmware = sorted(path.name for path in built("firmware").glob("*/") if path.is_dir())
    hypervisor = built("firmware", "hypervisor").is_dir()
    if firmware and hypervisor and built("linux-arm64", "bin").is_dir():
        found = f"firmware for {len(firmware)} places, the hypervisor, programs for boards' Linux"
        return Check("images", "ok", found)
    fix = "setup/ensure boards" if clone() else "install a wheel of a release"
    consequence = "no experiment can run on emulated boards, nor the hypervisor"
    return Check("images", "limited", "not built", consequence, fix)


def _agents() -> Check:
    folder = package() / AGENTS
    found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if found:
        return Check("agents", "ok", ", ".join(found))
    consequence = "other machines cannot be measured from here"
    return Check("agents", "limited", "none", consequence)


def _emulator(group: str, who: str, processor: str) -> Callable[[], Check]:
    """Return the check of an emulator and of what drives it."""

    def check() -> Check:
        program = f"qemu-system-{processor}"
        name = f"qemu-{processor}"
        if obstacle := missing(group, who):
            consequence = f"{who} cannot be emulated"
            return Check(name, "limited", obstacle.reason, consequence, obstacle.fix)
        return Check(name, "ok", f"QEMU {program_version(program, '--version')}")

    return check


def _tracefs() -> Check:
    consequence = "kernel traces cannot be recorded, nor late samples explained"
    for folder in _TRACEFS:
        if (folder / "instances").is_dir():
            if os.access(folder / "instances", os.W_OK):
                return Check("tracefs", "ok", str(folder))
            return Check("tracefs", "limited", f"{folder}, not for you", consequence, "run as root")
    found = "not mounted, or not for you"
    fix = "as root: mount -t tracefs tracefs /sys/kernel/tracing"
    return Check("tracefs", "limited", found, consequence, fix)


def _bpf() -> Check:
    number = _BPF_CALL.get(platform.machine())
    consequence = "interrupts around a late sample are counted in a window, not exactly"
    if number is None:
        return Check("bpf", "limited", f"not tried on {platform.machine()}", consequence)
    # of an array of one value of 4 bytes: what the probe's own counters need
    attributes = (ctypes.c_uint32 * 18)(_BPF_ARRAY, 4, 4, 1)
    library = ctypes.CDLL(None, use_errno=True)
    made = library.syscall(number, _BPF_MAP_CREATE, attributes, ctypes.sizeof(attributes))
    if made >= 0:
        os.close(made)
        return Check("bpf", "ok", "programs can be loaded")
    reason = os.strerror(ctypes.get_errno())
    return Check("bpf", "limited", reason, consequence, "run as root")


def _scratch() -> Check:
    try:
        with tempfile.TemporaryFile():
            pass
    except OSError as error:
        consequence = "nothing that needs files for a while works"
        return Check("scratch", "missing", f"no temporary file can be made: {error}", consequence)
    return Check("scratch", "ok", tempfile.gettempdir())


CHECKS: tuple[Callable[[], Check], ...] = (
    _files,
    _core,
    _native_programs,
    _experiments,
    _scratch,
    _compiler,
    _images,
    _agents,
    _emulator("boards", "boards", "aarch64"),
    _emulator("vm", "virtual machines", "x86_64"),
    _tracefs,
    _bpf,
)
"""Every check; none changes anything."""
