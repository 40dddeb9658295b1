"""The hypervisor's costs beside a hostile guest: what it makes others pay is in their bounds."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from latenz.files import scratch_place
from latenz.hypervisor.configuration import hosted_partitions
from latenz.hypervisor.guest import installed
from latenz.system import System
from latenz.system.processors import parts

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


def places_of_hostile(system: System) -> tuple[str, ...]:
    """Return the partitions whose guests are replaced, on each processor that has sources one.

    It has a source, best with a monitor.
    """
    found = []
    for part in parts(system):
        sources = [system.sources[number] for number in part.sources]
        monitored = [source for source in sources if source.monitor]
        found += [each.partition for each in (monitored or sources)[:1]]
    return tuple(found)


@contextmanager
def attacked(system: System, attack: str) -> Iterator[System]:
    """Give the system with hostile guests in the place of some, while their file exists."""
    with tempfile.TemporaryDirectory(prefix="latenz-hypervisor-", dir=scratch_place()) as folder:
        path = Path(folder) / f"{attack}.bin"
        path.write_bytes(hostile_guest(attack))
        places = places_of_hostile(system)
        hosted = tuple(
            replace(each, guest=str(path), memory=max(each.memory, _LEAST_MEMORY))
            if each.name in places
            else each
            for each in hosted_partitions(system)
        )
        yield replace(system, hosted=hosted)
