"""The engine `intercore`: a message from one processor to another and back, through shared memory.

On this machine the probe `latenz-intercore` measures between two of its CPUs; on boards our
firmware measures between a Cortex-A53 and a Cortex-R5, from the same settings.
"""

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from latenz.affinity import enterable_cpus
from latenz.engines.base import Engine, Task
from latenz.errors import BadInput
from latenz.measuring.settings import EngineSettings
from latenz.model import SampleSet
from latenz.obstacle import Obstacle, forbidden_cpus, missing_own_program
from latenz.programs import own_program

_PROGRAM = "latenz-intercore"
ACCOUNT_FILE = "intercore.json"  # replaced as a whole, so that it can be read at any moment

Through = Literal[
    "raw",
    "mailbox",
    "exchange",
    "latest",
    "ring",
    "interrupt",
    "rpmsg",
    "boost-spsc",
    "eventfd",
    "pipe",
    "futex",
    "posix-mq",
]
Memory = Literal["shared", "ocm", "ddr", "ddr-cci", "tcm"]
PEERS = ("boost-spsc", "eventfd", "pipe", "futex", "posix-mq")
"""What others offer for the same purpose; only a Linux has them."""
ASLEEP = ("eventfd", "pipe", "futex", "posix-mq")
"""Those of which both sides sleep in the kernel between messages."""
WITHOUT_PAYLOAD = ("raw", "interrupt")
ON_SILICON_ONLY = ("ddr-cci", "tcm")
"""Memories that the emulated boards do not have as the chip has them."""
DEFAULT_BYTES = 8
RPMSG_BYTES = 256
"""Largest power of two that a buffer of rpmsg carries: 512 bytes with a header of 16."""
BY_DOORBELL = ("mailbox", "exchange", "ring", "rpmsg")
DOORBELL_BYTES = (8, 64, 256)
"""Sizes that our firmware measures where the receiver waits for a doorbell."""

_NS = 1_000_000_000
_MOVED = 1.2
"""Factor by which the raw limit may change without being told."""
_SLICE_NS = 500_000
"""No cache line, and no wake-up of an undisturbed process, takes so long."""
_TRIPS = 3
"""Round trips for one sample of a set: of the raw limit, of the case, and of the case with stamps
on both CPUs."""


class IntercoreSettings(EngineSettings):
    """What goes between two processors, and how."""

    engine: Literal["intercore"]
    through: Through = "exchange"
    """`raw`: one word that both poll, the least that shared memory can take; `interrupt`: from
    processor to processor, on boards only; `mailbox`, `exchange`, `latest`, `ring`: the channels of
    `latenz::icc`; `rpmsg`: rpmsg over virtio queues, the peer on boards; the others: peers, on this
    machine only."""
    bytes: int | None = Field(default=None, ge=1, le=4096)
    """Of the message, a power of two; None: 8. `raw` and `interrupt` carry no message."""
    samples: int = Field(default=10_000, ge=1, le=1_000_000)
    """How many messages are measured; `coppik2025` took 10 times 1000."""
    memory: Memory = "shared"
    """Where the channel lies: `shared` between two processes of this machine; on boards `ocm`
    (on-chip), `ddr`, `ddr-cci` (through the cache-coherent interconnect) or `tcm` (tightly coupled
    to the Cortex-R5); the last two exist on silicon only."""
    direction: Literal["there", "back"] = "there"
    """`there`: from the first of `cpus` to the second, on boards from Cortex-A53 to Cortex-R5;
    `back`: the other way."""
    wait: Literal["spin", "pause", "doorbell"] = "pause"
    """What a waiting processor does between two looks: nothing, or its pause instruction, which
    leaves the cache line to the writer while it is being filled; on boards also `doorbell`: it
    sleeps until the other one calls it by an interrupt."""

    @property
    def payload_bytes(self) -> int:
        """Bytes that a message carries; 0 if it is but a signal."""
        return 0 if self.through in WITHOUT_PAYLOAD else self.bytes or DEFAULT_BYTES

    @model_validator(mode="after")
    def _fits(self) -> "IntercoreSettings":
        if self.through in WITHOUT_PAYLOAD and self.bytes is not None:
            raise ValueError(f"{self.through} carries no message; leave bytes out")
        if self.bytes is not None and self.bytes.bit_count() != 1:
            raise ValueError("messages are compiled for powers of two; write bytes = 1 to 4096")
        if self.through in (*PEERS, "interrupt") and self.memory != "shared":
            raise ValueError(f"{self.through} has no choice of memory; leave memory out")
        if self.through == "rpmsg" and self.payload_bytes > RPMSG_BYTES:
            raise ValueError("a buffer of rpmsg carries 496 bytes; write bytes = 256 or less")
        if self.wait == "doorbell":
            self._can_wait_for_doorbell()
        if self.cpus is not None and len(self.cpus) != 2:
            raise ValueError("cpus must be two; write for example [0, 1]")
        return self

    def _can_wait_for_doorbell(self) -> None:
        if self.through not in BY_DOORBELL:
            raise ValueError(
                f"nobody waits for a doorbell with {self.through}; choose one of: "
                + ", ".join(BY_DOORBELL)
            )
        if self.payload_bytes not in DOORBELL_BYTES:
            raise ValueError("by doorbell are measured: bytes = 8, 64 or 256")


def board_obstacle(settings: IntercoreSettings, emulated: bool) -> Obstacle | None:
    """Return why boards cannot measure something, or None if they can.

    Args:
        settings: What to measure.
        emulated: The board is one of QEMU's.
    """
    through, memory = settings.through, settings.memory
    if through in PEERS:
        return Obstacle(f"{through} needs a Linux on both sides; it is measured on bench host")
    if settings.cpus is not None:
        return Obstacle("cpus are those of bench host; boards measure from Cortex-A53 to Cortex-R5")
    if memory == "shared" and through != "interrupt":
        return Obstacle('memory "shared" is that of bench host; write memory = "ocm" or "ddr"')
    if emulated and memory in ON_SILICON_ONLY:
        return Obstacle(f'memory "{memory}" exists on silicon only; take bench zcu102-board')
    return None


class Intercore(Engine[IntercoreSettings]):
    """Runs `latenz-intercore`, two processes on two CPUs; it records into the run folder itself.

    A case has three sample sets: half of each round trip, the way there by stamps of both CPUs,
    and the raw limit: half a round trip of one cache line, measured in turns with the case.
    """

    name = "intercore"
    settings_type = IntercoreSettings
    measures = "messages between two CPUs through shared memory, beside the raw cache-line limit"
    output_file = "intercore.out"

    @classmethod
    def obstacle(cls, settings: IntercoreSettings) -> Obstacle | None:
        """Return why the probe cannot measure here, or None if it can."""
        if settings.through == "interrupt" or settings.wait == "doorbell":
            return Obstacle("processes have no inter-processor interrupts; boards measure them")
        if settings.through == "rpmsg":
            return Obstacle("rpmsg is measured between the processors of a board")
        if settings.memory != "shared":
            return Obstacle(f'this machine has no memory "{settings.memory}"; boards have')
        missing = missing_own_program(_PROGRAM)
        if missing is None and settings.cpus is not None:
            missing = forbidden_cpus(settings.cpus)
        if missing is None and len(enterable_cpus()) < 2:
            return Obstacle("two CPUs are needed, and only one can be entered")
        return missing

    @classmethod
    def planned_ns(cls, settings: IntercoreSettings, duration_ns: int) -> int:  # noqa: ARG003
        """Return about how long the probe takes; its end depends on the number of samples."""
        trip_ns = 20_000 if settings.through in ASLEEP else 1_000 + settings.payload_bytes
        return settings.samples * _TRIPS * trip_ns + cls.start_up_ns

    @classmethod
    def longest_ns(cls, settings: IntercoreSettings, duration_ns: int) -> int:
        """Return how long to wait at most: loads on the same CPUs cost whole time slices."""
        return 10 * cls.planned_ns(settings, duration_ns) + 60 * _NS

    def __init__(self, settings: IntercoreSettings, task: Task) -> None:
        super().__init__(settings, task)
        self._cpus = settings.measured_cpus()[:2]
        if settings.direction == "back":
            self._cpus = self._cpus[::-1]

    def measured(self) -> frozenset[int]:
        """Return the two CPUs."""
        return frozenset(self._cpus)

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        settings = self.settings
        size = [f"--bytes={settings.payload_bytes}"] if settings.payload_bytes else []
        return [
            *own_program(_PROGRAM),
            f"--output={self.place}",
            f"--through={settings.through}",
            *size,
            f"--samples={settings.samples}",
            f"--cpus={','.join(map(str, self._cpus))}",
            f"--wait={settings.wait}",
        ]

    def start(self) -> None:
        """Announce the sample sets, so that the run is readable at any moment, and measure."""
        for kind in _KINDS:
            announced = {"name": self._set_name(kind), **self._metadata(kind)}
            self.task.writer.begin(self.task.metadata.model_copy(update=announced))
        super().start()

    def maximum_ns(self) -> int | None:
        """Return the largest latency so far, as the probe's account of the last second has it."""
        path = self.folder / ACCOUNT_FILE
        return IntercoreAccount.read(path).max_ns if path.exists() else None

    def collect(self) -> list[SampleSet]:
        """Turn the recording into sample sets, with the probe's own account of them."""
        account = IntercoreAccount.read(self.result_file(ACCOUNT_FILE))
        found = []
        for kind in _KINDS:
            sample_set = self.task.writer.finish(
                self._set_name(kind),
                tool_version=account.program_version,
                notes=(*account.notes(kind), *self.notes),
            )
            if sample_set is not None:
                found.append(sample_set)
        return found

    def _set_name(self, kind: str) -> str:
        return f"{self.task.metadata.name}/{kind}"

    def _metadata(self, kind: str) -> dict[str, Any]:
        first, second = self._cpus
        what = "raw" if kind == "raw" else self.settings.through
        size = self.settings.payload_bytes if kind != "raw" else 0
        sent = f"{what}: {size} bytes" if size else f"{what}: a flag"
        events = {
            "one-way": (f"stamp before sending on CPU {first}", f"stamp at CPU {second}"),
            "half-round-trip": (f"CPU {first} begins to send", "half of the time to the reply"),
            "raw": (f"CPU {first} writes a word", "half of the time to the reply"),
        }
        begin, end = events[kind]
        return {"tool": _PROGRAM, "from_event": f"{sent}, {begin}", "to_event": end}


_KINDS = ("half-round-trip", "one-way", "raw")
"""The sample sets of a case, and the folders that the probe writes them into."""


@dataclass(frozen=True)
class IntercoreAccount:
    """What the probe tells of a measurement.

    Attributes:
        program_version: Of the probe.
        status: "complete", "interrupted", or why it ended early.
        clock: What stamped.
        stamp_pair_ns: Part of every duration: the two stamps themselves.
        damaged: Messages that did not come back as they were sent.
        switches: Times that others took a CPU from its measuring process: asking, answering.
        max_ns: Largest latency so far; None before the first.
        extremes_ns: Smallest and largest value of each sample set that has any.
        worst_index: Place of the largest value in each of them.
        placements: Addresses that take turns from round to round.
        rounds: Medians in nanoseconds of the raw block and of the case's block of each round.
    """

    program_version: str
    status: str
    clock: str
    stamp_pair_ns: int
    damaged: int
    switches: tuple[int, int]
    max_ns: int | None
    extremes_ns: dict[str, tuple[int, int]]
    worst_index: dict[str, int]
    placements: int
    rounds: tuple[tuple[float, float], ...]

    @classmethod
    def read(cls, path: Path) -> "IntercoreAccount":
        """Read the account that the probe keeps beside its recordings.

        Raises:
            BadInput: It is damaged.
        """
        try:
            told = json.loads(path.read_bytes())
            sets = {kind: each for kind, each in told["sets"].items() if each["n"]}
            ticks_ns = _NS / told["ticks_per_second"] / 2  # rounds are whole round trips
            return cls(
                told["program_version"],
                told["status"],
                told["clock"],
                told["stamp_pair_ns"],
                told["damaged"],
                tuple(told["involuntary_switches"]),
                told["max_ns"],
                {kind: (each["min_ns"], each["max_ns"]) for kind, each in sets.items()},
                {kind: each["worst_index"] for kind, each in sets.items()},
                told["placements"],
                tuple((raw * ticks_ns, case * ticks_ns) for raw, case in told["rounds"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError):
            raise BadInput("is not an account of latenz-intercore", str(path)) from None

    @property
    def ratio(self) -> float | None:
        """Median over the rounds of case to raw limit, each measured right after the other."""
        return statistics.median(case / raw for raw, case in self.rounds) if self.rounds else None

    def raw_moved(self) -> float:
        """Return by which factor the raw limit changed meanwhile, 1 if it did not.

        Each address has a raw limit of its own, so rounds are compared with those at the same
        address: their 90th with their 10th percentile.
        """
        found = []
        for first in range(self.placements):
            limits = [raw for raw, _ in self.rounds[first :: self.placements]]
            found += [each / statistics.median(limits) for each in limits]
        found.sort()
        last = len(found) - 1
        return found[round(0.9 * last)] / found[round(0.1 * last)] if found else 1.0

    def notes(self, kind: str) -> tuple[str, ...]:
        """Return what a reader of a sample set must know.

        Args:
            kind: "half-round-trip", "one-way" or "raw".
        """
        notes = []
        if kind == "half-round-trip" and self.ratio is not None:
            notes.append(f"{self.ratio:.2f} times the raw limit, measured in turns with it")
        if kind == "one-way":
            notes.append(f"stamps are of the {self.clock}, which both CPUs share")
        if kind == "raw":
            notes.append(f"of each round trip, {self.stamp_pair_ns} ns are its two stamps")
        if kind != "one-way" and (moved := self.raw_moved()) > _MOVED:
            notes.append(
                f"the raw limit moved by {100 * (moved - 1):.0f} % meanwhile: compare ratios to it,"
                " not nanoseconds"
            )
        smallest_ns, largest_ns = self.extremes_ns.get(kind, (1, 0))
        if kind == "one-way" and smallest_ns <= 0:
            notes.append("arrivals before their sending: the CPUs' clocks differ; take round trips")
        if largest_ns >= _SLICE_NS:
            notes.append(
                f"the maximum of {largest_ns / 1e6:.1f} ms (sample {self.worst_index[kind]}) looks"
                " like a time slice of other work, not like the channel: others took the CPUs"
                f" {sum(self.switches)} times"
            )
        if self.damaged:
            notes.append(f"{self.damaged} messages came back damaged")
        if self.status not in ("complete", "interrupted"):
            notes.append(f"the probe ended early: {self.status}")
        return tuple(notes)
