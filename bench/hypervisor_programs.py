"""Searches for a guest that takes more from others than `bound` promises.

`python bench/hypervisor_programs.py --programs 100000` makes programs of traps, accesses to the
interrupt controller, timers, software-generated interrupts, faults, restarts, the console and
sleep, lets each run for a cycle beside a witness and a victim, and makes new ones of those that
harmed most. One boot runs a thousand. The promises have the costs of a run in which all guests are
honest.
"""

import argparse
import json
import random
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from latenz.analysis import bound
from latenz.hypervisor.build import build
from latenz.hypervisor.costs import with_costs
from latenz.hypervisor.guest import installed
from latenz.hypervisor.results import Measured
from latenz.hypervisor.run import BOARDS, Boot, boot, ensure_built
from latenz.hypervisor.trace import Kind, Records

US = 1_000
TURN_NS = 3
"""Of the victim's loop: an instruction is a nanosecond."""
WITNESS_NS, VICTIM_NS, HOSTILE_NS = 300 * US, 200 * US, 500 * US
WITNESS, VICTIM, HOSTILE = range(3)
"""Partitions by number."""
CYCLE_NS = WITNESS_NS + VICTIM_NS + HOSTILE_NS
MOST_PROGRAMS = 1024
"""Of a boot."""
SYSTEM = """
[platform]
slot_switch = "20 us"
monitor = "1 us"
schedule = "2 us"
context_switch = "5 us"
[policy]
mode = "carry"
[[slot]]
partition = "witness"
length = "300 us"
[[slot]]
partition = "victim"
length = "200 us"
[[slot]]
partition = "hostile"
length = "500 us"
[[source]]
name = "watched"
partition = "witness"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "413 us" }}
monitor = {{ distances = ["300 us"] }}
[[source]]
name = "own"
partition = "hostile"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "937 us" }}
monitor = {{ distances = ["900 us"] }}
[[partition]]
name = "witness"
guest = "{witness}"
memory = "2 MiB"
[[partition]]
name = "victim"
guest = "victim"
memory = "2 MiB"
[[partition]]
name = "hostile"
guest = "{hostile}"
memory = "2 MiB"
on_fault = "restart"
restarts = 1000000000
"""
IRQS_OF_CYCLE = CYCLE_NS / (413 * US) + CYCLE_NS / (937 * US)

Times = npt.NDArray[np.int64]

# --- programs

MAIN, HANDLER = 8, 4
OPERATION = struct.Struct("<2BHI")
TABLE = struct.Struct("<8s3Q")
_MAGIC = b"LATENZHP"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: firmware/guests/src/programs/operations.cpp tells what is what."""

    kind: int
    times: int = 0
    place: int = 0
    value: int = 0


Program = tuple[Operation, ...]
"""`MAIN` operations, and `HANDLER` for interrupts."""

NOTHING = Operation(0)
GOOD: Program = (NOTHING,) * (MAIN + HANDLER)
AFRESH = Operation(1)

_DISTRIBUTOR = (0x000, 0x004, 0x080, 0x100, 0x180, 0x200, 0x280, 0x300, 0x380, 0x400, 0x418, 0x440)
_DISTRIBUTOR += (0x108, 0x188, 0x208, 0x288, 0x800, 0xC00, 0xF00, 0xF10, 0xF20, 0xFE8, 0x41B)
_INTERFACE = (0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18, 0x1C, 0x20, 0x24, 0xD0, 0xE0, 0xFC, 0x1000)
_VALUES = (0, 1, 0xFF, 0xFFFF, 0xFFFF_FFFF, 0x80, 0x0800_0000, 3, 0x201, 0x1B, 0x40, 0x41)
_CALLS = (0x8400_0000, 0x8400_0001, 0xC400_0003, 0x8400_0004, 0x8400_0006, 0x8400_0009)
_CALLS += (0x8400_000A, 0xC600_0000, 0xC600_0001, 0xC600_0002, 0xC600_0003, 0)
_ADDRESSES = (0, 0x4020_0000, 0x4040_0000, 0x0800_1000, 0x0801_2000, 0x0B00_0000, 0x0B00_2000)
_ADDRESSES += (0x0B00_3000, 0x0900_1000, 0x8_0000_0000, 0xFF_FFFF_F000, 0x0800_0000, 0x0900_0000)


def seeds() -> list[Program]:
    """Return what attacks of firmware/guests/src/hostile do, to begin with."""
    masked, end = Operation(17, 0, 1), VICTIM_NS + WITNESS_NS
    urgent_ones_only = Operation(5, 0, 0x04, 0x80)
    urgent_timer = Operation(3, 0, 0x418, 0x00FF_FFFF)
    urgent_signals = tuple(Operation(3, 0, 0x400 + at, 0) for at in range(0, 12, 4))
    take, again, all_ = Operation(7, 255), Operation(20, 255), Operation(21)
    fault = Operation(13, 0, 0, 0x4040_0000)
    flood = Operation(3, 255, 0x000, 1)
    last_ns = [Operation(19, 0, 0, end + at) for at in (100, 700, 1500)]
    mains = (
        (masked, urgent_timer, urgent_ones_only, again, again, again, again),
        (masked, urgent_ones_only, *urgent_signals, all_, take),
        (masked, Operation(5, 0, 0x04, 0), Operation(3, 0, 0x100, 0xFFFF_FFFF), all_, flood, flood),
        *((each, fault) for each in last_ns),
        *((each, Operation(11, 0, 0, 0x8400_0009)) for each in last_ns),
        *((masked, all_, each, flood) for each in last_ns),
    )
    filled = [(AFRESH, *x, *(NOTHING,) * (MAIN - 1 - len(x))) for x in mains]
    return [(*x, *(NOTHING,) * HANDLER) for x in filled]


def _place_and_value(kind: int, dice: random.Random) -> tuple[int, int]:
    """Return arguments that mean something to an operation of this kind."""
    value = dice.choice(_VALUES) if dice.random() < 0.6 else dice.getrandbits(32)
    any_place = dice.getrandbits(16)
    address = dice.choice(_ADDRESSES)
    before_end = VICTIM_NS + WITNESS_NS + int(HOSTILE_NS * dice.random() ** 3)
    chosen = {
        2: (0, dice.getrandbits(10)),
        3: (dice.choice(_DISTRIBUTOR) + dice.choice((0, 0, 0, 1, 2)), value),
        4: (dice.choice(_DISTRIBUTOR), 0),
        5: (dice.choice(_INTERFACE), value),
        6: (dice.choice(_INTERFACE), 0),
        8: (0, dice.choice((0x0200_0000, 0x0001_0000, 0x0100_0000)) | dice.getrandbits(4)),
        9: (dice.choice((0, 1, 1, 1, 3)), dice.getrandbits(dice.randrange(6, 20))),
        10: (dice.choice((0, 1, 5, any_place)), dice.choice(_CALLS)),
        11: (dice.choice((0, 1, 5, any_place)), dice.choice(_CALLS)),
        13: (address >> 32, address & 0xFFFF_FFFF),
        14: (0, dice.choice((ord("x"), ord("x"), ord("\n")))),
        19: (0, before_end),
    }
    return chosen.get(kind, (any_place, value))


_KINDS = (
    2,
    *(3,) * 5,
    4,
    *(5,) * 3,
    6,
    7,
    7,
    8,
    8,
    9,
    9,
    9,
    10,
    11,
    12,
    13,
    14,
    14,
    15,
    16,
    17,
    18,
)
_KINDS += (19, 19, 19, 20, 20, 21, 21)


def operation(dice: random.Random) -> Operation:
    kind = dice.choice(_KINDS)
    times = dice.choice((0, 0, 0, 1, 3, 15, 63, 255))
    return Operation(kind, times, *_place_and_value(kind, dice))


def program(dice: random.Random) -> Program:
    """Most begin as a good guest does; others find what the one before has left."""
    made = [operation(dice) if dice.random() < 0.8 else NOTHING for _ in GOOD]
    if dice.random() < 0.7:
        made[0] = AFRESH
    return tuple(made)


def varied(one: Program, other: Program, dice: random.Random) -> Program:
    """Return a program of two, with some operations or arguments changed."""
    cut = dice.randrange(len(one) + 1)
    made = [*one[:cut], *other[cut:]] if dice.random() < 0.4 else [*one]
    for _ in range(dice.choice((1, 1, 2, 4))):
        at = dice.randrange(len(made))
        old = made[at]
        made[at] = dice.choice(
            (
                operation(dice),
                NOTHING,
                replace(old, times=dice.choice((0, 1, 3, 15, 63, 255))),
                Operation(old.kind, old.times, *_place_and_value(old.kind, dice)),
                replace(old, value=max(0, old.value + dice.randrange(-3000, 3000)) & 0xFFFF_FFFF),
                made[dice.randrange(len(made))],
            )
        )
    return tuple(made)


def guest(programs: Sequence[Program], first_tick: int) -> bytes:
    """Return the guest with these programs: firmware/guests/src/programs/program.hpp."""
    content = installed("guests/programs.bin").read_bytes()
    block = TABLE.pack(_MAGIC, first_tick, CYCLE_NS, len(programs))
    block += b"".join(OPERATION.pack(*_fields(x)) for each in programs for x in each)
    start = content.index(_MAGIC)
    return content[:start] + block + content[start + len(block) :]


def _fields(each: Operation) -> tuple[int, int, int, int]:
    return each.kind, each.times, each.place, each.value


# --- what they did


@dataclass(frozen=True)
class Promises:
    """What no program may exceed, by the costs of an honest run.

    Attributes:
        victim_ns: What the victim may lose of a slot.
        witness_ns: The latency of the witness's interrupts.
        late_ns: How late a slot may be switched to: a visit that a guest caused.
    """

    victim_ns: int
    witness_ns: int
    late_ns: int


@dataclass(frozen=True)
class Harm:
    """What was done while each program ran, and in the slots of others behind its own.

    Attributes:
        victim_ns: What the victim lost of its slot.
        witness_ns: The longest latency of the witness; 0 if it had no interrupt.
        late_ns: The latest slot switch.
        sections_ns: The longest sections of the hypervisor's work, in the whole run.
        executed: How many programs ran.
        first_tick: When the first one was to begin.
    """

    victim_ns: Times
    witness_ns: Times
    late_ns: Times
    sections_ns: dict[str, int]
    executed: int
    first_tick: int


def booted(folder: Path, hostile: str | Path, cycles: int, bench: str) -> Boot:
    path = folder / "system.toml"
    path.write_text(SYSTEM.format(witness=installed("guests/witness.bin"), hostile=hostile))
    return boot(build(path, irqs=int((cycles + 3) * IRQS_OF_CYCLE)), bench, folder)


def promises(folder: Path, late_ns: int, bench: str) -> Promises:
    """Return what is promised by the costs of a run whose guests are all honest."""
    found = booted(folder, "worker", 200, bench).measured
    system = build(folder / "system.toml", irqs=1).system
    assert found.costs is not None
    assert found.sections is not None
    costly, missing = with_costs(system, found.costs, found.sections)
    assert not missing, "all costs were measured"
    outcome = bound(costly, "carry")
    [victim_ns] = next(x for x in outcome.partitions if x.name == "victim").interference_ns_by_slot
    witness_ns = next(x for x in outcome.sources if x.name == "watched").enforced_ns
    assert victim_ns is not None
    assert witness_ns is not None
    return Promises(victim_ns, witness_ns, late_ns)


NEVER = 1 << 62
DAMAGED = (1 << 64) - 1
"""Progress of a witness that has found its memory changed."""
LATEST_SLOT_NS = 700
"""How late a slot may be by what a guest caused just then."""
USUALLY_LATE_NS = 300
"""What is less is not looked at more closely."""


def harm(
    folder: Path, programs: Sequence[Program], first_tick: int = NEVER, bench: str = "virt"
) -> Harm:
    """Run programs, one in each cycle; none before a tick."""
    path = folder / "programs.bin"
    path.write_bytes(guest(programs, first_tick))
    found = booted(folder, path, len(programs), bench).measured
    first = found.statistics.epoch_tick + WITNESS_NS + VICTIM_NS
    assert first_tick in (NEVER, first), "as planned"
    check_untouched(found)
    assert found.sections is not None
    count = len(programs)
    records = found.records
    numbers = _progress(records, HOSTILE)
    return Harm(
        VICTIM_NS - np.diff(_progress(records, VICTIM))[:count] * TURN_NS,
        _longest_latencies(found, count),
        np.max(_of_each_cycle(lateness(records))[1 : count + 1], axis=1),
        {name: took or 0 for name, took in asdict(found.sections).items()},
        len(np.unique(numbers[(numbers > 0) & (numbers <= count)])),
        first,
    )


def check_untouched(found: Measured) -> None:
    """Raise if memory, state or an interrupt of others was touched."""
    for partition in found.statistics.partitions[:HOSTILE]:
        assert (partition.state, partition.faults, partition.restarts) == ("running", 0, 0)
    assert found.statistics.partitions[WITNESS].progress < DAMAGED
    watched = found.statistics.sources[0]
    assert watched.raised == watched.completed
    assert (watched.overruns, watched.dropped) == (0, 0)


def _of_each_cycle(of_slots: Times) -> Times:
    return of_slots[: len(of_slots) // 3 * 3].reshape(-1, 3)


def lateness(records: Records, usual: int = USUALLY_LATE_NS) -> Times:
    """Return how late each slot was switched to, in ticks; up to `usual` whatever was the reason.

    What was served first of interrupts, and of jobs that ended, is not the guest's doing: those
    sections are paid by their own terms.
    """
    begin = records["start"].astype(np.int64)
    end = begin + records["duration"]
    at_slots = np.flatnonzero(records["kind"] == Kind.SLOT_SWITCH)
    late = records["value"][at_slots].astype(np.int64)
    for number in np.flatnonzero(late > usual):
        at = int(at_slots[number])
        edge = begin[at] - late[number]
        before = slice(max(0, at - 8), at)
        late[number] -= np.maximum(0, end[before] - np.maximum(begin[before], edge)).sum()
    return late


def _longest_latencies(found: Measured, count: int) -> Times:
    """Return the witness's longest latency of each program's time."""
    irqs = found.irqs
    window = (irqs.arrival_ns - WITNESS_NS - VICTIM_NS) // CYCLE_NS
    meant = (irqs.source == 0) & (window >= 0) & (window < count)
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, window[meant], (irqs.end_ns - irqs.arrival_ns)[meant])
    return longest


def _progress(records: Records, partition: int) -> Times:
    """Return a partition's progress at the end of each of its slots."""
    own = records[(records["kind"] == Kind.PROGRESS) & (records["partition"] == partition)]
    return own["value"].astype(np.int64) + (own["detail"].astype(np.int64) << 32)


# --- the search


@dataclass
class Worst:
    """What was worst so far.

    Attributes:
        programs: How many have run.
        victim: Of the promise to the victim, the largest part; more than 1 breaks it.
        witness: The same of the witness's bound.
        late_ns: The latest slot switch.
        sections_ns: The longest sections of the hypervisor's work.
    """

    programs: int = 0
    victim: float = 0
    witness: float = 0
    late_ns: int = 0
    sections_ns: dict[str, int] = field(default_factory=dict)

    def exceeds(self, promised: Promises) -> bool:
        """Whether something broke a promise."""
        return max(self.victim, self.witness) > 1 or self.late_ns > promised.late_ns

    def note(self, seen: Harm, promised: Promises) -> None:
        """Take what a boot showed."""
        self.programs += seen.executed
        self.victim = max(self.victim, int(seen.victim_ns.max()) / promised.victim_ns)
        self.witness = max(self.witness, int(seen.witness_ns.max()) / promised.witness_ns)
        self.late_ns = max(self.late_ns, int(seen.late_ns.max()))
        for name, took in seen.sections_ns.items():
            self.sections_ns[name] = max(took, self.sections_ns.get(name, 0))


_PHASES = 8
"""How often each of the first programs runs: interrupts come at other times in each cycle."""
_KEPT = 40
"""Programs that new ones are made of, for each kind of harm."""


class Search:
    """Programs get worse from boot to boot."""

    def __init__(self, seed: int, folder: Path, late_ns: int, bench: str = "virt") -> None:
        self._dice = random.Random(seed)
        self._folder = folder
        self._bench = bench
        self.promised = promises(folder, late_ns, bench)
        self.worst = Worst()
        self._seeds = seeds() * _PHASES
        self.kept: list[list[tuple[int, Program]]] = [[], [], []]
        self._honest: dict[int, Harm] = {}

    def step(self, count: int) -> Harm:
        """Run a boot of programs and keep those that did most."""
        batch = [self._next() for _ in range(count)]
        if count not in self._honest:
            self._honest[count] = harm(self._folder, [GOOD] * count, bench=self._bench)
        usual = self._honest[count]
        seen = harm(self._folder, batch, usual.first_tick, self._bench)
        self.worst.note(seen, self.promised)
        for kept, found, before in zip(
            self.kept,
            (seen.victim_ns, seen.witness_ns, seen.late_ns),
            (usual.victim_ns, usual.witness_ns, usual.late_ns),
            strict=True,
        ):
            kept += zip((found - before).tolist(), batch, strict=True)
            kept.sort(key=lambda each: -each[0])
            del kept[_KEPT:]
        return seen

    def _next(self) -> Program:
        if self._seeds:
            return self._seeds.pop()
        best = [each for kept in self.kept for _, each in kept]
        if not best or self._dice.random() < 0.2:
            return program(self._dice)
        if self._dice.random() < 0.1:
            return self._dice.choice(best)
        return varied(self._dice.choice(best), self._dice.choice(best), self._dice)


def search(programs: int, seed: int, late_ns: int, folder: Path, bench: str) -> Search:
    """Run so many programs; print the worst so far after each boot."""
    ensure_built()
    found = Search(seed, folder, late_ns, bench)
    for done in range(0, programs, MOST_PROGRAMS):
        found.step(min(programs - done, MOST_PROGRAMS))
        print(json.dumps(asdict(found.worst)), flush=True)
    return found


def main() -> int:
    """Return 1 if a program broke a promise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--late-ns", type=int, default=LATEST_SLOT_NS, help="how late a slot may be"
    )
    parser.add_argument("--bench", choices=list(BOARDS), default="virt")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = search(options.programs, options.seed, options.late_ns, Path(folder), options.bench)
    print(json.dumps({"promised": asdict(found.promised)}))
    for harmed, kept in zip(("victim", "witness", "slots"), found.kept, strict=True):
        more_ns, worst = kept[0]
        operations = [asdict(each) for each in worst if each != NOTHING]
        print(json.dumps({"harmed": harmed, "more_ns": more_ns, "program": operations}))
    return 1 if found.worst.exceeds(found.promised) else 0


if __name__ == "__main__":
    raise SystemExit(main())
