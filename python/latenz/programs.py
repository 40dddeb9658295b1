"""Programs: where our native ones are, which version others are, how QEMU is connected with."""

import os
import re
import socket
import subprocess
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


def program_version(*command: str) -> str | None:
    """Return the first thing like a version that a program prints, None without the program."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\d+\.\d[\w.]*", done.stdout + done.stderr)
    return match.group() if match else None


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


def turn_arguments(longest_us: int) -> tuple[str, ...]:
    """Return what bounds the turns that QEMU's cores take while it counts instructions.

    An object with a timer in virtual time ends the turn of whichever core runs.

    Args:
        longest_us: How long a turn is at most.
    """
    return (
        *("-netdev", "hubport,id=tick0,hubid=0"),
        *("-object", f"filter-buffer,id=tick,netdev=tick0,interval={longest_us}"),
    )


def escaped(path: Path) -> str:
    """Write a path as a value in QEMU's options, where a comma separates."""
    return os.fspath(path).replace(",", ",,")


def listen(path: Path) -> socket.socket:
    """Return a socket at which an emulator can connect once; waiting on it gives up after 0.1 s."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen(1)
    listening.settimeout(0.1)
    return listening
