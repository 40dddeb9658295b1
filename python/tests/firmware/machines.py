"""Boots firmware on QEMU's machines and reads what it sends."""

import json
import os
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from latenz._core import EndFrame, FrameReader, SamplesFrame, TextFrame
from latenz.boards.firmware import Parameters, image
from latenz.programs import plugin_arguments

COMMON = ["-display", "none", "-monitor", "none", "-nic", "none", "-icount", "shift=0,sleep=off"]
CLOCK = ["-rtc", "base=2026-01-01,clock=vm", *plugin_arguments("latenz-exact-wait")]
# Generic timers count nanoseconds: one instruction is one tick.
MACHINES = {
    "virt": "-M virt,gic-version=2 -cpu cortex-a53,cntfrq=1000000000 -m 128",
    "zcu102": "-M xlnx-zcu102 -smp 4 -m 2048 -audio none",
    "zcu102-r5": "-S -M xlnx-zcu102 -smp 6 -m 2048 -audio none -serial null",
    "mps3-an536": "-M mps3-an536 -global cortex-r52-arm-cpu.cntfrq=1000000000",
}
R5_POWERED_OFF = {
    "path": "/machine/soc/rpu-cluster/rpu-cpu[0]",
    "property": "start-powered-off",
}


@dataclass
class Sent:
    """All that one run of the firmware sent."""

    hello: dict[str, Any] = field(default_factory=dict)
    latency: list[int] = field(default_factory=list)
    interarrival: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    complete: bool | None = None
    lost: int = 0


def heard(console: bytes) -> Sent:
    reader = FrameReader()
    sent = Sent()
    for each in [*reader.feed(console), *reader.finish()]:
        match each:
            case SamplesFrame():
                assert each.first == len(sent.latency)
                sent.latency += each.latency_ticks.tolist()
                sent.interarrival += each.interarrival_ticks.tolist()
            case TextFrame(kind="hello"):
                sent.hello = json.loads(each.text)
            case TextFrame(kind="fault"):
                sent.faults.append(each.text)
            case EndFrame():
                sent.complete = each.complete
    sent.lost = reader.damaged + reader.missing
    return sent


_RUNS: dict[tuple[Any, ...], Sent] = {}


def run(board: str, optimization: str, folder: Path, *, again: bool = False, **given: Any) -> Sent:
    """Build the image, boot it, and read until its last frame; once for the same, unless again."""
    key = (board, optimization, *sorted(given.items()))
    if again or key not in _RUNS:
        built = image(board, optimization, Parameters(**given), folder)
        _RUNS[key] = run_image(board, built, folder)
    return _RUNS[key]


def run_image(board: str, kernel: Path, folder: Path, limit_s: int = 240, more: str = "") -> Sent:
    loaded = ["-kernel", str(kernel)]
    if board == "zcu102-r5":  # the A53 sleeps beside it
        asleep = image("zcu102", "O2", Parameters(provoke="hang"), folder)
        loaded = ["-kernel", str(asleep), "-device", f"loader,file={kernel},cpu-num=4"]
        loaded += ["-qmp", f"unix:{folder}/qmp,server=on,wait=off"]
    machine = [*MACHINES[board].split(), *more.split(), *COMMON, *CLOCK]
    with subprocess.Popen(
        ["qemu-system-aarch64", *machine, "-serial", "stdio", *loaded],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as emulator:
        try:
            if board == "zcu102-r5":
                power_on(folder / "qmp")
            return heard(until_end(emulator, limit_s))
        finally:
            emulator.kill()


def until_end(emulator: "subprocess.Popen[bytes]", limit_s: int) -> bytes:
    """Return the console up to the last frame, or what came within the limit."""
    console = b""
    reader = FrameReader()
    deadline = time.monotonic() + limit_s
    os.set_blocking(emulator.stdout.fileno(), False)
    while time.monotonic() < deadline:
        piece = emulator.stdout.read()
        if piece == b"":
            break
        console += piece or b""
        if any(isinstance(each, EndFrame) for each in reader.feed(piece or b"")):
            break
        time.sleep(0.02)
    return console


def power_on(monitor: Path) -> None:
    """Power the first R5 on, which QEMU leaves off, and start all."""
    deadline = time.monotonic() + 60
    with socket.socket(socket.AF_UNIX) as connection:
        while connection.connect_ex(str(monitor)) != 0:
            assert time.monotonic() < deadline, "QEMU's monitor does not answer"
            time.sleep(0.02)
        connection.settimeout(60)
        lines = connection.makefile("rw")
        lines.readline()
        for name, arguments in (
            ("qmp_capabilities", {}),
            ("qom-set", {**R5_POWERED_OFF, "value": False}),
            ("system_reset", {}),
            ("cont", {}),
        ):
            print(json.dumps({"execute": name, "arguments": arguments}), file=lines, flush=True)
            while "event" in (answer := json.loads(lines.readline())):
                pass
            assert "return" in answer, answer
