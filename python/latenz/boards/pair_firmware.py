"""Programs for two processors of a board that talk to each other; set-up built them."""

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from latenz.boards.firmware import with_block
from latenz.boards.payload import Load, Payload
from latenz.errors import BadInput
from latenz.installation import built_file

if TYPE_CHECKING:
    from latenz.boards.console import Received

Side = Literal["a53", "r5"]
SIDES: tuple[Side, ...] = ("a53", "r5")
SENDERS: dict[Side, int] = {"a53": 0, "r5": 2}
"""Numbers of the two programs in their frames."""
MOST_SAMPLES = 100_000
"""Measured ones, with warm-up."""

_FIRST_R5 = 4  # QEMU counts the four A53 first
_MAGIC = b"LATENZIC"
_VERSION = 2
_BLOCK = struct.Struct("<8s13I")  # followed by its CRC-32; firmware/icc/src/task.hpp
_SIZE = _BLOCK.size + 4
_KINDS = ("measure", "check", "unlike", "restart")
_THROUGH = ("raw", "mailbox", "exchange", "latest", "ring", "interrupt", "rpmsg")
_MEMORIES = ("ocm", "ddr", "ddr-cci", "tcm")
_DIRECTIONS = ("there", "back")
_LOADS = ("none", "spin", "memory")
_RESTARTS = ("begins", "answers")
_WAITS = ("poll", "doorbell")


@dataclass(frozen=True)
class PairTask:
    """What the two programs are to do together.

    Attributes:
        kind: `measure` latencies, `check` that messages arrive, `unlike`: refuse what does not fit,
            `restart` at many points.
        through: Kind of channel; `raw`: a word that both poll; `rpmsg`: the peer.
        message_bytes: Size of a measured message, a power of two.
        samples: Measured or checked round trips; `restart`: points.
        warm_up: Measured before and forgotten.
        memory: Where the channels lie.
        direction: Who begins; `there`: the Cortex-A53.
        load: What the second Cortex-A53 does.
        seed: Of payloads, and of points of restarts.
        restarts: `restart`: which side does.
        wait: `measure`: whether a side polls, or waits for the other processor's doorbell.
    """

    kind: Literal["measure", "check", "unlike", "restart"] = "measure"
    through: Literal["raw", "mailbox", "exchange", "latest", "ring", "interrupt", "rpmsg"] = (
        "exchange"
    )
    message_bytes: int = 8
    samples: int = 1000
    warm_up: int = 10
    memory: Literal["ocm", "ddr", "ddr-cci", "tcm"] = "ocm"
    direction: Literal["there", "back"] = "there"
    load: Literal["none", "spin", "memory"] = "none"
    seed: int = 1
    restarts: Literal["begins", "answers"] = "begins"
    wait: Literal["poll", "doorbell"] = "poll"

    def block(self) -> bytes:
        """Return the block as the programs read it, with its checksum."""
        fields = _BLOCK.pack(
            _MAGIC,
            _VERSION,
            _SIZE,
            _KINDS.index(self.kind),
            _THROUGH.index(self.through),
            self.message_bytes,
            self.samples,
            self.warm_up,
            _MEMORIES.index(self.memory),
            _DIRECTIONS.index(self.direction),
            _LOADS.index(self.load),
            self.seed,
            _RESTARTS.index(self.restarts),
            _WAITS.index(self.wait),
        )
        return fields + zlib.crc32(fields).to_bytes(4, "little")


def installed(side: Side, where: Literal["emulated", "silicon"] = "emulated") -> Path:
    """Return a program as it was built: an ELF file.

    Raises:
        BadInput: It was not built.
    """
    return built_file("firmware", "pair", f"{side}-{where}.elf")


def image(
    side: Side, task: PairTask, folder: Path, where: Literal["emulated", "silicon"] = "emulated"
) -> Path:
    """Write the program of one side with its task in it.

    Args:
        side: `a53` or `r5`.
        task: What it is to do; the other side's program must get the same.
        folder: Takes the file.
        where: For QEMU's ZCU102, or for a real one.

    Returns:
        The file.

    Raises:
        BadInput: The program was not built, or is not what this version of Latenz knows, or the
            file cannot be written.
    """
    head = _MAGIC + struct.pack("<2I", _VERSION, _SIZE)
    return with_block(installed(side, where), head, task.block(), folder / f"pair-{side}.elf")


def payload(
    task: PairTask, folder: Path, tick_us: int | None = None, limit_s: int = 300
) -> Payload:
    """Return both programs for QEMU's ZCU102.

    Args:
        task: What they are to do.
        folder: Takes their files.
        tick_us: Longest turn of all emulated cores together; None: they end by themselves.
        limit_s: Wall time until all must be done.

    Raises:
        BadInput: As `image`.
    """
    programs = image("a53", task, folder), image("r5", task, folder)
    return of_programs(*programs, tick_us, limit_s)


def of_programs(a53: Path, r5: Path, tick_us: int | None, limit_s: int) -> Payload:
    """Return two programs, one for each processor, for QEMU's ZCU102."""
    return Payload(
        kernel=a53,
        cpus=4,
        memory_mib=2048,
        loads=(Load(r5, cpu=_FIRST_R5),),
        real_time_cores=True,
        uarts=2,
        tick_us=tick_us,
        limit_s=limit_s,
    )


def all_said(received: "Received") -> bool:
    """Return whether both programs have said their last word."""
    return set(SENDERS.values()) <= received.ended


def carry_out(
    task: PairTask, folder: Path, tick_us: int | None = None, limit_s: int = 300
) -> "Received":
    """Let both programs carry out a task on QEMU's ZCU102, and return what they said.

    Args:
        task: What they are to do.
        folder: Takes their files and logs.
        tick_us: As `payload`.
        limit_s: As `payload`.

    Raises:
        BadInput: They did not come to their end.
    """
    received, trouble = converse(payload(task, folder, tick_us, limit_s), folder)
    if trouble is not None:
        raise BadInput(trouble, str(folder / "console.log"))
    return received


def converse(made: Payload, folder: Path) -> tuple["Received", str | None]:
    """Run two programs on QEMU's ZCU102 until both have said their last word.

    Returns:
        What they said, and why it did not come to that, None if it did.
    """
    from latenz.boards.console import Collector
    from latenz.boards.environment import board_in
    from latenz.boards.places import ENVIRONMENTS
    from latenz.boards.reception import Listener

    collector = Collector(made.uarts)
    with board_in(ENVIRONMENTS / "zcu102.yaml") as (target, driver):
        driver.prepare(made, folder, ())
        target.activate(driver)
        driver.on()
        listener = Listener(all_said, lambda: False, lambda _: None)
        trouble = listener.receive(driver, collector, made)
        collector.finish()
    return collector.received, trouble
