"""What a guest is told of its own interrupts is what the run's statistics have."""

import pytest

from latenz.hypervisor.arrivals import Arrivals, arrivals
from latenz.hypervisor.build import build, build_system
from latenz.hypervisor.guest import installed
from latenz.hypervisor.run import boot, ensure_built
from latenz.system import (
    Exponential,
    Learning,
    Monitor,
    Partition,
    Platform,
    Slot,
    Source,
    System,
)

pytestmark = pytest.mark.boots

US, MS = 1_000, 1_000_000
QUIET_CYCLES = 10
"""At the end, for the guests to tell."""


def system() -> System:
    """Two guests, one with two sources, one with a source that learns."""
    return System(
        Platform(2 * US, US, US, 5 * US),
        (Slot("first", 2 * MS), Slot("second", 2 * MS)),
        (
            Source("long", "first", US, 90 * US, Exponential(3 * MS), Monitor((2 * MS,))),
            Source("short", "first", US, 20 * US, Exponential(2 * MS), Monitor((MS,))),
            Source(
                *("learned", "second", US, 30 * US, Exponential(2 * MS), Monitor((MS,))),
                learning=Learning(40, 3),
            ),
        ),
        "carry",
        hosted=tuple(
            Partition(name, str(installed("guests/accountant.bin"))) for name in ("first", "second")
        ),
    )


@pytest.fixture(scope="module")
def brought():
    ensure_built()
    model = system()
    raised: Arrivals = arrivals(model, "carry", None, 500, 5)
    cycles = raised.end_ns // model.cycle_ns + QUIET_CYCLES
    return boot(build_system(model, "carry", raised, least_cycles=cycles), "virt")


@pytest.mark.parametrize(("name", "numbers"), [("first", (0, 1)), ("second", (2,))])
def test_a_guest_reads_what_was_counted(brought, name, numbers):
    own = [line for line in brought.console if line.startswith(f"{name}| ")]
    assert f"{name}| refused" in own
    told = [int(each) for each in own[-1].removeprefix(f"{name}| counted ").split()]
    statistics = brought.measured.statistics
    sources = [statistics.sources[number] for number in numbers]
    wanted = [
        sum(getattr(source, key) for source in sources)
        for key in ("raised", "completed", "interposed", "denied", "overruns")
    ]
    assert told == [*wanted, 0, 0]
    assert min(wanted[:4]) > 10
    assert wanted[4] > 0, "a job may begin with the rest of one bottom handler"


def test_what_was_learned_is_told(brought):
    learned = brought.measured.statistics.sources[2].learned_ticks
    assert len(learned) == 3
    assert learned[0] >= MS
    assert list(learned) == sorted(learned)


def test_every_interrupt_that_a_controller_may_have_can_be_a_sources(tmp_path):
    path = tmp_path / "system.toml"
    path.write_text(
        "".join(f'[[slot]]\npartition = "{name}"\nlength = "1 ms"\n' for name in ("P1", "P2"))
        + "".join(
            f'[[source]]\nname = "s{number}"\npartition = "P1"\ntop = "5 us"\nbottom = "20 us"\n'
            f'interrupt = {number}\narrival = {{ kind = "periodic", period = "5 ms" }}\n'
            for number in (32, 127, 128, 187, 1019)
        )
    )
    run = boot(build(path, irqs=50), "virt").measured
    assert [each.completed for each in run.statistics.sources] == [10] * 5
