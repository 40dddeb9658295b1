"""What the hypervisor reads is what the system says: by its own headers and its own checks."""

import re
import shlex
import subprocess
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from made_systems import DRIVER, systems

from latenz.analysis import bound
from latenz.analysis.simulate import simulated_irqs
from latenz.analysis.simulators import simulator_of
from latenz.hypervisor import configuration
from latenz.hypervisor.build import build
from latenz.hypervisor.configuration import Kept
from latenz.hypervisor.stamps import stamps_of
from latenz.hypervisor.work import in_the_long_run
from latenz.system import Distances, Exponential, Periodic, write_system
from latenz.system.processors import processor_of, slots_of

CORE = Path("hypervisor/src/core")
READER = Path(__file__).parent / "read_block.cpp"
READY, CONSOLE = 2, 4
REACTIONS = ["stop", "restart", "report"]


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Path:
    program = tmp_path_factory.mktemp("reader") / "read_block"
    folders = [f"-I{CORE}", "-Ihypervisor/src", "-Ihypervisor/src/gicv2", "-Icore/include"]
    files = [READER, CORE / "configuration_check.cpp"]
    subprocess.run(["g++", "-std=c++20", "-O1", *folders, *files, "-o", program], check=True)
    return program


def told(reader: Path, image: Path) -> list[list]:
    """Lines of a name and numbers; quoted words stay words."""
    done = subprocess.run([reader, image], capture_output=True, text=True, check=True)
    return [
        [word if re.search(r"[^\d-]|^$", word) else int(word) for word in shlex.split(line)]
        for line in done.stdout.splitlines()
    ]


def lines(found: list[list], name: str) -> list[list]:
    return [line[1:] for line in found if line[0] == name]


def cut(name: str) -> str:
    while len(name.encode()) > 31:
        name = name[:-1]
    return name


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(system=systems())
def test_the_hypervisor_reads_what_the_system_says(tmp_path, reader, system):
    path = tmp_path / "system.toml"
    write_system(system, path)
    built = build(path, irqs=60, seed=3)
    built.write(tmp_path / "image.elf")
    found = told(reader, tmp_path / "image.elf")
    assert lines(found, "problem") == [[""]]
    assert not lines(found, "overlap")
    modes = ["plain", "paper", "carry"]
    ((mode, flags, end, trace),) = lines(found, "head")
    assert (mode, flags, end) == (modes.index(system.mode), 1, 2**31)
    devices = [at for at in range(len(system.sources)) if system.is_device(at)]
    edges = {
        interrupt
        for each in system.hosted
        for device in each.devices
        if device.edge
        for interrupt in device.interrupts
    }
    arrived, end_ns = simulated_arrivals(system)
    assert lines(found, "cpu") == [
        [kept.records, kept.least_cycles]
        for kept in (built.kept.get(cpu, Kept(0, 0)) for cpu in range(8))
    ]
    assert set(built.kept) == {processor_of(system, name) for name in system.partitions}
    for cpu, kept in built.kept.items():
        cycle_ns = sum(slot.length_ns for slot in slots_of(system, cpu))
        waits = devices or len(built.kept) > 1
        assert kept.least_cycles == (ceil(Fraction(end_ns, cycle_ns)) if waits else 1)
        own = {x.name for x in system.sources if processor_of(system, x.partition) == cpu}
        irqs = sum(system.sources[source].name in own for _, source in arrived)
        assert kept.records > 5 * irqs
    alone = [each.name for each in system.hosted if each.name not in system.partitions]
    names = [*system.partitions, *alone]
    hosted = {each.name: each for each in system.hosted}
    partitions = lines(found, "partition")
    assert [line[0] for line in partitions] == [cut(name) for name in names]
    for name, (_, cpu, flags, memory, guest, size, entry, argument) in zip(
        names, partitions, strict=True
    ):
        own = hosted.get(name)
        assert size == (own.memory if own else 8 << 20)
        assert (cpu, guest, entry, argument) == (own.cpu if own else 0, 2**30, 2**30, 0)
        awaited = own is None or own.guest != DRIVER
        awaited = awaited or any(source.partition == name for source in system.sources)
        assert flags == READY * awaited + CONSOLE
        assert memory % 2**21 == 0
    assert lines(found, "health") == [health(hosted.get(name)) for name in names]
    assert lines(found, "slot") == [
        [names.index(slot.partition), slot.length_ns] for slot in system.slots
    ]
    for number, (source, line) in enumerate(
        zip(system.sources, lines(found, "source"), strict=True)
    ):
        learning = source.learning
        assert line == [
            source.name,
            names.index(source.partition),
            (1 if source.monitor else 0)
            + (2 if number in devices else 0)
            + (4 if number in devices and source.interrupt in edges else 0),
            source.interrupt or 64 + number,
            learning.length if learning else 0,
            learning.events if learning else 0,
            source.bottom_ns,
        ]
    for number, (source, distances) in enumerate(
        zip(system.sources, lines(found, "distances"), strict=True)
    ):
        given = source.monitor.distances_ns if source.monitor else ()
        if number in devices:
            given = tuple(each - stamps_of(system, system.mode).work_ns for each in given)
        assert len(distances) == len(given)
        assert all(after >= before for before, after in zip(given, distances, strict=True))
        for a in range(len(distances)):  # closed: of a + b gaps none is shorter than its parts
            for b in range(len(distances) - a - 1):
                assert distances[a + b + 1] >= distances[a] + distances[b]
    for number, (source, limit) in enumerate(
        zip(system.sources, lines(found, "limit"), strict=True)
    ):
        assert limit == expected_limit(
            source.arrival, stamp_late_ns(built, number) if number in devices else 0
        )
    registers = [
        [names.index(each.name), 3, device.physical, device.physical, device.size]
        for each in system.hosted
        for device in each.devices
    ]
    mappings = lines(found, "mapping")
    assert [line for line in mappings if line[1] == 3] == registers
    views = [
        [names.index(name), 1, memory.address, memory.size]
        for memory in system.shared
        for name in memory.partitions
    ]
    assert [line[:3] + line[4:] for line in mappings if line[1] == 1] == views
    assert sorted(lines(found, "interrupt")) == sorted(
        [names.index(each.name), interrupt, 1 if device.edge else 0]
        for each in system.hosted
        for device in each.devices
        for interrupt in device.interrupts
        if interrupt not in {system.sources[at].interrupt for at in devices}
    )
    listed = sorted((row for row in arrived if row[1] not in devices), key=lambda row: row[1])
    assert lines(found, "arrival") == listed, "each source's own, in the order of their times"
    assert trace > 0


def health(own):
    if own is None:
        return [10, 0, 0, 0, 0]
    reactions = (own.on_fault, own.on_watchdog or own.on_fault)
    times = (own.restart_window_ns, own.watchdog_ns)
    return [own.restarts, *map(REACTIONS.index, reactions), *times]


def expected_limit(arrival, late_ns):
    """Period, jitter and distances of the arrivals in `made_systems`, as they are stamped."""
    if isinstance(arrival, Exponential):
        return [0, 0]
    if isinstance(arrival, Periodic):
        distance_ns = arrival.min_distance_ns - late_ns
        distances_ns = [distance_ns] if distance_ns > 0 else []
        return [arrival.period_ns, arrival.jitter_ns + late_ns, *distances_ns]
    shorter = [max(each - late_ns, 0) for each in arrival.distances_ns]
    return [0, 0, *(shorter if any(shorter) else [])]


def stamp_late_ns(built, number):
    """How late an interrupt of a device can be stamped: it may have to wait for the one before."""
    system, seen = built.system, built.stamped
    judged = replace(seen, sources=tuple(map(in_the_long_run, seen.sources)))
    work_ns = stamps_of(system, system.mode).work_ns
    after_ns = work_ns + bound(judged).sources[number].wcrt_ns
    shortest_ns = {Periodic: 17_000_000, Distances: 5_000_000, Exponential: 0}
    waits = after_ns > shortest_ns[type(system.sources[number].arrival)]
    return after_ns if waits else work_ns


def simulated_arrivals(system):
    simulator = simulator_of(system, irqs=60, seed=3, watch="irqs")
    irqs = list(simulated_irqs(simulator))
    rows = zip(
        np.concatenate([each.arrival_ns for each in irqs]).tolist(),
        np.concatenate([each.source for each in irqs]).tolist(),
        strict=True,
    )
    return [list(row) for row in sorted(rows)], simulator.now_ns


def test_a_flipped_bit_anywhere_is_noticed(tmp_path, reader):
    path = Path("experiments/systems/can-gateway.toml")
    build(path, irqs=10).write(tmp_path / "image.elf")
    whole = bytearray((tmp_path / "image.elf").read_bytes())
    start = whole.index(configuration.MAGIC.to_bytes(8, "little"))
    for offset in range(0, configuration.SIZE, 281):
        whole[start + offset] ^= 0x10
        (tmp_path / "damaged.elf").write_bytes(whole)
        whole[start + offset] ^= 0x10
        assert lines(told(reader, tmp_path / "damaged.elf"), "problem") != [[""]]


@pytest.mark.parametrize("path", sorted(Path("experiments/systems").glob("*.toml")), ids=str)
@pytest.mark.parametrize("mode", ["plain", "paper", "carry"])
def test_all_examples_are_taken(tmp_path, reader, path, mode):
    build(path, mode, irqs=None if "ecu" in path.name else 100).write(tmp_path / "image.elf")
    assert lines(told(reader, tmp_path / "image.elf"), "problem") == [[""]]
