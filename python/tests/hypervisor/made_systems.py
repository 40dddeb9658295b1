"""Systems that the hypervisor can carry out."""

from dataclasses import replace

from hypothesis import strategies as st

from latenz.hypervisor.guest import installed
from latenz.system import (
    Device,
    Distances,
    Exponential,
    Learning,
    Monitor,
    Partition,
    Periodic,
    Platform,
    SharedMemory,
    Slot,
    Source,
    System,
)

MS = 1_000_000
DRIVER = str(installed("guests/alarm.bin"))
NAMES = ["P1", "control", "gateway (2)", "ümläute äöü ÄÖÜ éèê and it is long", "E"]


@st.composite
def sources(draw, owners):
    """A few sources that do not load the processor much."""
    found = []
    for number in range(draw(st.integers(1, 5))):
        bottom = draw(st.integers(1_000, 50_000))
        arrival = draw(
            st.sampled_from(
                [
                    Periodic(20 * MS, 3 * MS, 2 * MS),
                    Distances((5 * MS, 30 * MS)),
                    Exponential(25 * MS, seed=number),
                ]
            )
        )
        distances = tuple(sorted(draw(st.lists(st.integers(MS, 9 * MS), min_size=1, max_size=6))))
        monitor = draw(st.none() | st.just(Monitor(distances)))
        learning = monitor and draw(st.none() | st.just(Learning(100 + number, 6 + number)))
        interrupt = draw(st.none() | st.just(100 + number))
        owner = draw(st.sampled_from(owners))
        found.append(
            Source(f"s{number}", owner, 1_000, bottom, arrival, monitor, interrupt, learning)
        )
    return tuple(found)


@st.composite
def watchdogs(draw):
    """None, or what the health table says of one."""
    if draw(st.booleans()):
        return {}
    return {
        "restart_window_ns": draw(st.sampled_from([0, 50 * MS])),
        "watchdog_ns": draw(st.integers(100 * MS, 200 * MS)),
        "on_watchdog": "restart",
    }


@st.composite
def systems(draw):
    """Systems with everything that system files can say."""
    owners = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    slots = tuple(Slot(owner, draw(st.integers(2 * MS, 6 * MS))) for owner in owners)
    second = draw(st.just([]) | st.lists(st.sampled_from(owners), unique=True))
    hosted = []
    for at, name in enumerate(dict.fromkeys([*second, *draw(st.sets(st.sampled_from(owners)))])):
        interrupts = (40 + 2 * at, 41 + 2 * at)
        edge = draw(st.booleans())
        device = Device(0x1000_0000 + 0x10_0000 * at, 0x2000, interrupts, edge)
        hosted.append(
            Partition(
                name,
                draw(st.sampled_from(["worker", "victim", DRIVER])),
                draw(st.integers(1, 20)) << 21,
                1 if name in second else 0,
                draw(st.sampled_from(["stop", "restart", "report"])),
                draw(st.sampled_from([(), (device,)])),
                draw(st.integers(0, 16)),
                **draw(watchdogs()),
            )
        )
    alone = range(2 if second else 1, draw(st.integers(0, 3)) + 1)
    hosted += [Partition(f"alone {cpu}", cpu=cpu) for cpu in alone]
    found = draw(sources(owners))
    own = [
        (number, each.devices[0].interrupts[0])
        for number, source in enumerate(found)
        for each in hosted
        if each.name == source.partition and each.devices and each.guest == DRIVER
    ]
    if own and draw(st.booleans()):
        number, interrupt = own[0]
        raised = replace(found[number], interrupt=interrupt)
        found = (*found[:number], raised, *found[number + 1 :])
    every = list(dict.fromkeys([*owners, *(each.name for each in hosted)]))
    shared = [
        SharedMemory(f"mailbox {at}", draw(st.integers(1, 600)) << 12, tuple(every[:2]), address)
        for at, address in enumerate([0x6000_0000, 0x7000_0000])
        if len(every) > 1
    ]
    return System(
        Platform(1_000, 100, 200, 1_000),
        slots,
        found,
        draw(st.sampled_from(["plain", "paper", "carry"])),
        hosted=tuple(hosted),
        shared=tuple(shared),
    )
