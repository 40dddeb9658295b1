"""Stands in for QEMU in tests: starts the real one, but spoils what it is given or what it says.

Usage as an environment's tool: a script that calls `main(how)`. Everything but the sabotage is the
real thing: real emulator, real firmware, real frames.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

QEMU = "qemu-system-aarch64"


def value_of(option: str) -> str:
    return sys.argv[sys.argv.index(option) + 1]


def console_path() -> str:
    word = next(each for each in sys.argv if each.startswith("file,id=serial0,"))
    return word.split("path=")[1]


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([QEMU, *arguments])


def spoiled_copy(option: str, spoil) -> list[str]:
    """Give QEMU a spoiled copy of one of its files."""
    path = Path(value_of(option))
    copy = path.parent / f"spoiled-{path.name}"
    copy.write_bytes(spoil(path.read_bytes()))
    return [str(copy) if each == str(path) else each for each in sys.argv[1:]]


def through(spoil) -> int:
    """Run QEMU with its serial line led through a function on bytes."""
    real = console_path()
    false = real + "-spoiled"
    Path(false).touch()
    with Path(false).open("rb", buffering=0) as emulator, Path(real).open("ab", buffering=0) as out:
        program = start([each.replace(f"path={real}", f"path={false}") for each in sys.argv[1:]])
        while True:
            ended = program.poll() is not None
            if data := emulator.read(4096):
                out.write(spoil(data))
            elif ended:
                return program.wait()
            else:
                time.sleep(0.01)


def dropping(data: bytes, source=random.Random(3)) -> bytes:  # noqa: B008
    return bytes(each for each in data if source.random() > 0.0005)


def noisy(data: bytes, source=random.Random(4)) -> bytes:  # noqa: B008
    noise = bytes(source.randrange(256) for _ in range(20))
    return data.replace(b"\n", b"\n" + noise + b"\n")


def killed_while_measuring() -> int:
    console = Path(console_path())
    with console.open("rb") as said:  # its folder goes once the emulator runs
        program = start(sys.argv[1:])
        while not said.read(1) and program.poll() is None:
            time.sleep(0.05)
    time.sleep(1.0)
    program.send_signal(signal.SIGKILL)
    program.wait()
    os.kill(os.getpid(), signal.SIGKILL)
    return 1


def with_late_wakeups(arguments: list[str]) -> int:
    """Run QEMU as on a loaded host; what delays it is built beside the tool that stands for it."""
    os.environ["LD_PRELOAD"] = str(Path(sys.argv[0]).with_name("late_wakeups.so"))
    return start(arguments).wait()


def without_plugin(arguments: list[str]) -> list[str]:
    at = arguments.index("-plugin")
    return arguments[:at] + arguments[at + 2 :]


FILES = {
    "truncated kernel": ("-kernel", lambda data: data[:100]),
    "damaged parameters": ("-kernel", lambda data: data.replace(b"LATENZPB", b"LATENZXX")),
    "damaged tree": ("-dtb", lambda data: data[: len(data) // 2]),
    "no first program": ("-initrd", lambda data: data[:512]),
    "no stress-ng": ("-initrd", lambda d: d.replace(b"bin/stress-ng\0", b"bin/stress-no\0")),
}
"""What is spoiled of which file that QEMU is given."""


def main(how: str) -> int:
    if "--version" in sys.argv:
        return subprocess.call([QEMU, "--version"])
    if how in FILES:
        return start(spoiled_copy(*FILES[how])).wait()
    if how == "dropping":
        return through(dropping)
    if how == "noisy":
        return through(noisy)
    if how == "silent":
        return through(lambda _data: b"")
    if how == "late":
        return with_late_wakeups(sys.argv[1:])
    if how == "late, plugin left out":
        return with_late_wakeups(without_plugin(sys.argv[1:]))
    if how == "killed":
        return killed_while_measuring()
    raise SystemExit(f"no such sabotage: {how}")
