"""Programs: where our native ones are, which version others are, how QEMU is connected with."""

import os
import re
import socket
from pathlib import Path

from latenz.errors import BadInput
from latenz.installation import built_file, package, remedy
from latenz.machine import measured_machine, measured_target

LEAST_QEMU = 10
"""The first version that models all boards of Latenz, and has the interface of its plugins."""


def probe_program(name: str) -> Path:
    """Return the installed program of that name, such as `latenz-wakeup`.

    The programs are installed beside the native core, in an editable install as in any other.

    Raises:
        BadInput: There is no such program, or Latenz was not built.
    """
    path = package() / "bin" / name
    if Path(name).name != name or not path.is_file():
        raise BadInput("is not installed", str(path), f"{remedy('base')} to build it")
    return path


def own_program(name: str) -> list[str]:
    """Return how a native program of ours is called on the measured machine.

    Raises:
        BadInput: It is not there.
    """
    target = measured_target()
    return target.own_program(name) if target else [str(probe_program(name))]


def program_version(*command: str) -> str | None:
    """Return the first thing like a version that a program prints, None without the program."""
    printed = measured_machine().output_of(command)
    match = re.search(r"\d+\.\d[\w.]*", printed or "")
    return match.group() if match else None


def board_program(name: str) -> Path:
    """Return the installed program of that name for the 64-bit Arm Linux of boards.

    Raises:
        BadInput: There is no such program, or what boards need was not set up.
    """
    return built_file("linux-arm64", "bin", Path(name).name)


def agents_folder() -> Path:
    """Return where the programs are that are sent to targets."""
    from latenz import _core

    return Path(_core.__file__).parent / "agents"


def agent_program(processor: str) -> Path:
    """Return the program that is sent to targets with a kind of processor.

    Args:
        processor: `x86_64`, `aarch64`, `armhf` or `riscv64`.

    Raises:
        BadInput: It is not built.
    """
    path = agents_folder() / f"latenz-agent-{processor}"
    if not path.is_file():
        raise BadInput("is not installed", str(path), f"{remedy('agent')} to build it")
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
