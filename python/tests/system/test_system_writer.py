"""Written system files: read again, they give the same system."""

from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latenz.errors import BadInput
from latenz.system import (
    Device,
    Distances,
    Exponential,
    Learning,
    Monitor,
    Partition,
    Periodic,
    Platform,
    RecordedTrace,
    SharedMemory,
    Slot,
    Source,
    System,
    read_arrivals,
    read_system,
    write_system,
)

DAY = 86_400_000_000_000
times = st.integers(0, DAY) | st.sampled_from([0, 1, 999, 1_000, 1_000_000, 1_000_000_000])
lengths = st.integers(1, DAY) | st.sampled_from([1_500_000, 2_000_000_000])
letters = st.characters(categories=["Lu", "Ll", "Nd"])
names = st.text(st.sampled_from(" ._+-:#()") | letters, min_size=1, max_size=12).filter(
    lambda name: name == name.strip() and any(letter.isalnum() for letter in name)
)


@st.composite
def arrivals(draw):
    kind = draw(st.sampled_from(["periodic", "distances", "exponential", "trace"]))
    if kind == "periodic":
        period = draw(lengths)
        return Periodic(period, draw(times), draw(st.integers(0, period)))
    if kind == "distances":
        return Distances((*sorted(draw(st.lists(times, max_size=5))), DAY + 1))
    if kind == "exponential":
        return Exponential(draw(lengths), draw(times), draw(st.integers(0, 2**63 - 1)))
    found = sorted(draw(st.lists(times, min_size=3, max_size=9, unique=True)))
    return RecordedTrace(np.array(found), draw(st.integers(1, len(found) - 1)))


@st.composite
def hosting(draw, owners, sources):
    """What goes into partitions: no address, interrupt or processor is anybody else's."""
    owners = list(dict.fromkeys(owners))
    alone = draw(st.lists(names.filter(lambda name: name not in owners), max_size=2, unique=True))
    guests = st.sampled_from(["worker", "victim", "/guest.elf", '/a folder/"quoted"\\\'.bin'])
    hosted = []
    for at, name in enumerate([*draw(st.sets(st.sampled_from(owners))), *alone]):
        devices = [
            Device(0x1000_0000 + 0x10000 * at, 0x1000, tuple(range(40 + 3 * at, 43 + 3 * at)))
        ]
        hosted.append(
            Partition(
                name,
                draw(guests),
                draw(st.integers(1, 512)) << 21,
                1 + alone.index(name) if name in alone else 0,
                draw(st.sampled_from(["stop", "restart"])),
                tuple(devices[: draw(st.integers(0, 1))]),
            )
        )
    every = [*owners, *alone]
    if len(every) < 2:
        return tuple(hosted), ()
    size = draw(st.integers(1, 9)) << 12
    return tuple(hosted), (SharedMemory(draw(names), size, tuple(every[:2]), 0x2000_0000),)


def sums(top_ns):
    """Cost curves that begin with a top handler alone."""
    steps = st.lists(times, max_size=4)
    return steps.map(lambda given: tuple(accumulate([top_ns, *given])))


@st.composite
def systems(draw):
    platform = Platform(*(draw(st.integers(0, 50_000)) for _ in range(4)))
    owners = draw(st.lists(names, min_size=1, max_size=4))
    slots = tuple(Slot(owner, platform.slot_switch_ns + draw(lengths)) for owner in owners)
    monitors = st.none() | st.lists(lengths, min_size=1, max_size=4).map(
        lambda distances: Monitor(tuple(sorted(distances)))
    )
    sources = tuple(
        Source(
            name,
            draw(st.sampled_from(owners)),
            draw(times),
            draw(lengths),
            draw(arrivals()),
            draw(monitors),
        )
        for name in draw(st.lists(names, min_size=1, max_size=4, unique=True))
    )
    sources = tuple(
        replace(
            source,
            interrupt=draw(st.none() | st.just(100 + at)),
            learning=source.monitor and draw(st.none() | st.just(Learning(50 + at, 9))),
            top_sums_ns=draw(st.none() | sums(source.top_ns)),
        )
        for at, source in enumerate(sources)
    )
    mode = draw(st.sampled_from(["plain", "paper", "carry"]))
    begin = draw(st.sampled_from(["arrival", "top"]))
    return System(platform, slots, sources, mode, begin, *draw(hosting(owners, sources)))


@settings(deadline=None)
@given(systems(), st.text(letters, max_size=40))
def test_a_written_system_reads_back_equal(tmp_path_factory, system, comment):
    path = tmp_path_factory.mktemp("written") / "system.toml"
    write_system(system, path, comment)
    assert read_system(path) == system


def test_an_example_reads_as_a_person_would_write_it(tmp_path):
    system = System(
        Platform(slot_switch_ns=12_000),
        (Slot("body", 4_000_000), Slot("gateway", 1_333_333)),
        (Source("can", "gateway", 2_000, 35_000, Distances((222_000, 444_000)), Monitor((1,))),),
        "carry",
    )
    write_system(system, tmp_path / "system.toml", "Two lines\n\nof comment")
    text = (tmp_path / "system.toml").read_text()
    assert text.startswith("# Two lines\n#\n# of comment\n\n[platform]\nslot_switch = ")
    assert 'slot_switch = "12 us"\nmonitor = 0\n' in text
    assert 'partition = "gateway"\nlength = "1333333 ns"\n' in text
    assert 'arrival = { kind = "distances", distances = ["222 us", "444 us"] }' in text
    assert 'monitor = { distances = ["1 ns"] }' in text


def test_arrivals_at_equal_times_keep_the_order_of_the_sources(tmp_path):
    sources = tuple(
        Source(name, "P", 0, 1, RecordedTrace(np.array([5, 7, 7, 9]), 2)) for name in ("b", "a")
    )
    system = System(Platform(), (Slot("P", 10),), sources)
    write_system(system, tmp_path / "system.toml")
    trace = tmp_path / "system.arrivals.csv"
    rows = [line.replace('"', "") for line in trace.read_text().splitlines()]
    assert rows == ["source,time_ns", "b,5", "a,5", "b,7", "b,7", "a,7", "a,7", "b,9", "a,9"]
    assert [list(each) for each in read_arrivals(trace, system)] == [[5, 7, 7, 9]] * 2


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path):
    system = System(Platform(), (Slot("P", 10),), (Source("s", "P", 0, 1, Periodic(5)),))
    with pytest.raises(BadInput, match="cannot be written"):
        write_system(system, tmp_path / "none" / "system.toml")
