"""Where the native programs of the probes room are installed, and how QEMU loads our plugins."""

import os
import sys
from pathlib import Path

from latenz.errors import BadInput


def probe_program(name: str) -> Path:
    """Return the installed program of that name, such as `latenz-wakeup`.

    The programs are installed beside the native core, in an editable install as in any other.

    Raises:
        BadInput: There is no such program, or Latenz was not built.
    """
    from latenz import _core

    path = Path(_core.__file__).parent / "bin" / name
    if Path(name).name != name or not path.is_file():
        raise BadInput("is not installed", str(path), "run setup/ensure base to build it")
    return path


def board_program(name: str) -> Path:
    """Return the installed program of that name for the 64-bit Arm Linux of boards.

    Raises:
        BadInput: There is no such program, or what boards need was not set up.
    """
    path = Path(sys.prefix) / "linux-arm64" / "bin" / name
    if Path(name).name != name or not path.is_file():
        raise BadInput("is not installed", str(path), "run setup/ensure boards to build it")
    return path


def plugin_arguments(name: str, *options: str) -> tuple[str, ...]:
    """Return what makes QEMU load a plugin of ours.

    Args:
        name: The plugin, such as `latenz-exact-wait`.
        options: What it is given, each as NAME=VALUE.

    Raises:
        BadInput: The plugin is not installed.
    """
    return ("-plugin", ",".join((f"file={escaped(probe_program(f'{name}.so'))}", *options)))


def escaped(path: Path) -> str:
    """Write a path as a value in QEMU's options, where a comma separates."""
    return os.fspath(path).replace(",", ",,")
