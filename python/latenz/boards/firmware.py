"""Measuring programs for boards: set-up built them, a run gives them its parameters."""

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from latenz.errors import BadInput
from latenz.files import replacing
from latenz.installation import built_file, remedy

Optimization = Literal["O0", "O2"]

_MAGIC = b"LATENZPB"
_VERSION = 1
_BLOCK = struct.Struct("<8s4I4Q9I")  # followed by its CRC-32; firmware/src/parameters.hpp
_SIZE = _BLOCK.size + 4
_MOST_SAMPLES = 100_000
_TIMERS = ("auto", "generic", "ttc", "dual")
_DELIVERIES = ("auto", "interrupt", "polled")
_PROVOCATIONS = ("nothing", "undefined instruction", "hang")


@dataclass(frozen=True)
class Parameters:
    """What the firmware is to do.

    Attributes:
        samples: How many interrupts it reports.
        warm_up: How many it takes before and forgets; with `samples` at most 100 000.
        period_ns: Distance of the interrupts, or its mean; to be rounded to the timer's ticks.
        exponential: Whether the distances are drawn from an exponential distribution.
        min_distance_ns: What is drawn shorter is this.
        seed: Of what is drawn.
        start_after_ns: Time from the firmware's start to its first interrupt.
        wait_for_interrupt: Whether the core sleeps (`wfi`) until the interrupt; else it loops.
        timer: Where the interrupts come from; `auto`: the board's usual timer.
        delivery: Whether an interrupt handler sees the event, or a loop that polls the timer;
            `auto`: a handler, but on an emulated `zcu102-r5`, whose interrupts are not emulated.
        timer_hz: Clock of a timer that cannot tell it, where it is not the emulated board's.
        sender: Its number in the frames.
        provoke: What it does instead of measuring, to test who listens.
        await_command: Whether it waits for `start` in its control block (`zcu102-r5` only).
    """

    samples: int = 400
    warm_up: int = 10
    period_ns: int = 250_000
    exponential: bool = False
    min_distance_ns: int = 0
    seed: int = 1
    start_after_ns: int = 0
    wait_for_interrupt: bool = False
    timer: Literal["auto", "generic", "ttc", "dual"] = "auto"
    delivery: Literal["auto", "interrupt", "polled"] = "auto"
    timer_hz: int = 0
    sender: int = 0
    provoke: Literal["nothing", "undefined instruction", "hang"] = "nothing"
    await_command: bool = False

    def __post_init__(self) -> None:
        """Refuse what the firmware would refuse.

        Raises:
            BadInput: A field is out of its range.
        """
        ranges = {
            "samples": (1, _MOST_SAMPLES),
            "warm_up": (0, _MOST_SAMPLES - self.samples),
            "period_ns": (1, 10_000_000_000),
            "min_distance_ns": (0, 10_000_000_000),
            "seed": (0, 2**64 - 1),
            "start_after_ns": (0, 3_600_000_000_000),
            "timer_hz": (0, 1_000_000_000),
            "sender": (0, 255),
        }
        for name, (least, most) in ranges.items():
            value = getattr(self, name)
            if not least <= value <= most:
                where = f"firmware parameter {name}"
                raise BadInput(f"{value} is out of range", where, f"take {least} to {most}")

    def block(self) -> bytes:
        """Return the block as the firmware reads it, with its checksum."""
        fields = _BLOCK.pack(
            _MAGIC,
            _VERSION,
            _SIZE,
            self.samples,
            self.warm_up,
            self.period_ns,
            self.min_distance_ns,
            self.seed,
            self.start_after_ns,
            int(self.exponential),
            int(self.wait_for_interrupt),
            _TIMERS.index(self.timer),
            _DELIVERIES.index(self.delivery),
            self.timer_hz,
            self.sender,
            _PROVOCATIONS.index(self.provoke),
            int(self.await_command),
            0,
        )
        return fields + zlib.crc32(fields).to_bytes(4, "little")


def installed(board: str, optimization: Optimization, program: str = "latency") -> Path:
    """Return the firmware as it was built: an ELF file, for a guest of Xen an arm64 Image.

    Raises:
        BadInput: It was not built.
    """
    name = f"{program}.bin" if board.startswith("xen-") else f"{program}.elf"
    return built_file("firmware", f"{board}-{optimization}", name)


def image(
    board: str,
    optimization: Optimization,
    parameters: Parameters,
    folder: Path,
    program: str = "latency",
) -> Path:
    """Write firmware with parameters in it.

    Args:
        board: `virt`, `zcu102`, `xen-virt`, `xen-zcu102`, `zcu102-r5` or `mps3-an536`.
        optimization: `O0`, as the publications compiled, or `O2`.
        parameters: What it is to do.
        folder: Takes the file.
        program: `latency`, or `bench_latency`: with the Latencies IP.

    Returns:
        The file, named after the board and the optimization.

    Raises:
        BadInput: The firmware was not built, or is not what this version of Latenz knows, or the
            file cannot be written.
    """
    source = installed(board, optimization, program)
    head = _MAGIC + struct.pack("<2I", _VERSION, _SIZE)
    target = folder / f"{board}-{optimization}{source.suffix}"
    return with_block(source, head, parameters.block(), target)


def with_block(source: Path, head: bytes, block: bytes, target: Path) -> Path:
    """Write a program with another block of parameters in place of the one it was built with.

    Args:
        source: The program.
        head: What the block begins with, there and in the new one.
        block: The new one, as long as the old.
        target: Takes the file.

    Returns:
        The target.

    Raises:
        BadInput: The program has no such block, or the file cannot be written.
    """
    content = source.read_bytes()
    if content.count(head) != 1:
        raise BadInput("holds no parameters of version 1", str(source), remedy("boards"))
    start = content.index(head)
    with replacing(target) as partial:
        partial.write_bytes(content[:start] + block + content[start + len(block) :])
    return target
