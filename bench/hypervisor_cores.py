"""Slots on several cores: each core against the bounds with the costs that were measured on it.

`python bench/hypervisor_cores.py` prints a table. Two partitions share each core, by cycles that
differ. The emulator runs all cores on one thread, in turns, and all of their instructions count in
one time: so all guests count whenever they do nothing else, and their handlers take a quarter of
their time, which leaves room for the turns of other cores.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from latenz.hypervisor.arrivals import arrivals
from latenz.hypervisor.build import Built, build_system
from latenz.hypervisor.comparison import compared
from latenz.hypervisor.run import Boot, boot, ensure_built
from latenz.system import Distances, Monitor, Partition, Periodic, Platform, Slot, Source, System
from latenz.system.processors import parts

US = 1000
CYCLES_US = ((400, 600), (500, 300), (700, 500), (350, 450))
COUNTS = str(Path(sys.prefix) / "firmware" / "hypervisor" / "guests" / "quarter.bin")
IRQS = 100


def system(*cores: int, guest: str = COUNTS) -> System:
    """Two partitions share each core, the first with a monitored source.

    The other's waits for its slots.
    """
    slots: list[Slot] = []
    sources: list[Source] = []
    hosted: list[Partition] = []
    for core in cores:
        for name, length_us in zip("AB", CYCLES_US[core], strict=True):
            slots.append(Slot(f"{name}{core}", length_us * US))
            hosted.append(Partition(f"{name}{core}", guest, 2 << 20, core))
        often = Periodic(500 * US + core, 50 * US, 200 * US)
        monitor = Monitor((200 * US,))
        sources.append(Source(f"quick{core}", f"A{core}", 3 * US, 20 * US, often, monitor))
        seldom = Distances((1700 * US + core,))
        sources.append(Source(f"calm{core}", f"B{core}", 3 * US, 30 * US, seldom))
    platform = Platform(2 * US, 200, 200, 1 * US)
    return System(platform, tuple(slots), tuple(sources), "carry", hosted=tuple(hosted))


def beside_a_static_core() -> System:
    """Slots on the first and the third core, and one that is a single guest's between them."""
    whole = system(0, 2)
    return replace(whole, hosted=(*whole.hosted, Partition("alone", COUNTS, 2 << 20, 1)))


SYSTEMS = {
    "two": lambda: system(0, 1),
    "not the first": lambda: system(1, 2),
    "two, a static one between": beside_a_static_core,
    "four": lambda: system(0, 1, 2, 3),
}


def booted(whole: System, bench: str = "virt", irqs: int = IRQS) -> tuple[Built, Boot]:
    """Boot a system with so many interrupts on each core."""
    built = build_system(whole, whole.mode, arrivals(whole, whole.mode, None, irqs, 0))
    return built, boot(built, bench)


@dataclass(frozen=True)
class Latest:
    """The latest interrupt of a source, and what it is judged by."""

    source: str
    irqs: int
    latest_ns: int
    bound_ns: int


def judged(whole: System, built: Built, found: Boot) -> Iterator[Latest]:
    """Yield each source's latest interrupt."""
    bounds_ns = compared(whole, built, found.measured).bounds_ns
    for number, source in enumerate(whole.sources):
        irqs = found.measured.irqs
        latency_ns = (irqs.end_ns - irqs.arrival_ns)[irqs.source == number]
        bound_ns = bounds_ns[source.name]
        assert bound_ns is not None
        yield Latest(source.name, len(latency_ns), int(latency_ns.max()), bound_ns)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    ensure_built()
    print(
        "| cores with slots | board | interrupts | as simulated | above the bound | nearest to it |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for name, made in SYSTEMS.items():
        for bench in ("virt", "virt-gicv3", "zcu102"):
            whole = made()
            built, found = booted(whole, bench)
            told = compared(whole, built, found.measured)
            nearest = max(judged(whole, built, found), key=lambda x: x.latest_ns / x.bound_ns)
            closest = f"{nearest.latest_ns / US:.1f} of {nearest.bound_ns / US:.1f} us"
            assert len(parts(whole)) == len(found.measured.processors)
            counts = f"{told.irqs} | {told.alike} | {told.exceeding}"
            print(f"| {name} | `{bench}` | {counts} | {closest}, {nearest.source} |")


if __name__ == "__main__":
    main()
