"""The hypervisor's costs beside a hostile guest: what it makes others pay is in their bounds."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path

from latenz.files import scratch_place
from latenz.hypervisor.configuration import hosted_partitions
from latenz.hypervisor.guest import installed
from latenz.hypervisor.results import Costs, Sections
from latenz.system import System

ATTACKS = ("distributor-flood", "maintenance-in-job")
"""Those of `firmware/guests/src/hostile` that make the hypervisor work longest for a guest."""
_MAGIC = b"LATENZHA"
_NAME_BYTES = 40
_LEAST_MEMORY = 2 << 20


def hostile_guest(attack: str, steps: int = 0, seed: int = 1) -> bytes:
    """Return the hostile guest with its parameters: hostile/parameters.hpp.

    Args:
        attack: Its name.
        steps: Of random attacks.
        seed: Of random numbers.

    Raises:
        BadInput: It was not built.
    """
    content = installed("guests/hostile.bin").read_bytes()
    numbers = steps.to_bytes(8, "little") + seed.to_bytes(8, "little")
    block = _MAGIC + numbers + attack.encode().ljust(_NAME_BYTES, b"\0")
    start = content.index(_MAGIC)
    return content[:start] + block + content[start + len(block) :]


def place_of_hostile(system: System) -> str:
    """Return the partition whose guest is replaced: one with a source, best with a monitor."""
    monitored = [source for source in system.sources if source.monitor]
    return (monitored or list(system.sources))[0].partition


@contextmanager
def attacked(system: System, attack: str) -> Iterator[System]:
    """Give the system with a hostile guest in one partition, while its file exists."""
    with tempfile.TemporaryDirectory(prefix="latenz-hypervisor-", dir=scratch_place()) as folder:
        path = Path(folder) / f"{attack}.bin"
        path.write_bytes(hostile_guest(attack))
        place = place_of_hostile(system)
        hosted = tuple(
            replace(each, guest=str(path), memory=max(each.memory, _LEAST_MEMORY))
            if each.name == place
            else each
            for each in hosted_partitions(system)
        )
        yield replace(system, hosted=hosted)


def worst_costs(one: Costs, other: Costs) -> Costs:
    """Return the larger of each cost."""
    names = [each.name for each in fields(Costs) if each.name != "top"]
    larger = {name: max(getattr(one, name), getattr(other, name)) for name in names}
    top = {name: max(cost, other.top.get(name, 0)) for name, cost in one.top.items()}
    return Costs(**larger, top=top)


def worst_sections(one: Sections, other: Sections) -> Sections:
    """Return the longer of each section."""

    def longer(name: str) -> int | None:
        found = [x for x in (getattr(one, name), getattr(other, name)) if x is not None]
        return max(found, default=None)

    return Sections(**{name: longer(name) for name in Sections.__slots__})  # type: ignore[arg-type]
