"""A core that is shared by slots beside a core of a hostile guest: nothing gets through.

The emulator runs cores in turns of up to 1 us on one thread, and all of their instructions count in
one time: what is beside a busy core takes twice as long, whatever that core does. So what was
promised are the bounds with the costs of a run beside a guest that only counts. With turns of up to
10 us jobs run out of their budgets there, and these tests fail.
"""

from functools import cache

import pytest
import test_isolation
from test_isolation import (
    attacked,
    booted,
    check_witness,
    executed_of_victim_ns,
    worst_sections,
)

from latenz.analysis import bound
from latenz.hypervisor.costs import with_costs
from latenz.hypervisor.show import SECTIONS

pytestmark = pytest.mark.boots

ATTACKS = (
    "console-flood",
    "distributor-flood",
    "exception-storm",
    "gic-pend-storm",
    "gic-software-storm",
    "memory-storm",
    "psci-system-reset",
    "random-calls",
    "timer-storm",
    "tlb-broadcast",
)
OTHER_BOARDS = ("virt-gicv3", "zcu102")
EMULATED_TURN_NS = 1000
IRQS = 150
SLOT = '[[slot]]\npartition = "hostile"\nlength = "500 us"\n'
OWN = test_isolation.SYSTEM[
    test_isolation.SYSTEM.index('[[source]]\nname = "own"') : test_isolation.SYSTEM.index(
        "[[partition]]"
    )
]
SYSTEM = (
    test_isolation.SYSTEM.replace(SLOT, "")
    .replace(OWN, "")
    .replace('name = "hostile"\n', 'name = "hostile"\ncpu = 1\n')
)


@pytest.fixture(scope="module")
def honest_on(tmp_path_factory):
    """Gives, on a bench, the bounds and what the victim executes beside a guest that counts."""

    def measured(bench):
        folder = tmp_path_factory.mktemp("honest")
        built, found = booted(folder, "victim", IRQS, SYSTEM, bench)
        costly, missing = with_costs(built.system, found.measured.costs, found.measured.sections)
        assert not set(missing) - {"limit"}
        return bound(costly, built.mode), executed_of_victim_ns(found).min()

    return cache(measured)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_guest_of_another_core_takes_nothing(tmp_path, honest_on, attack):
    check(tmp_path, honest_on, attack, "virt")


@pytest.mark.parametrize("bench", OTHER_BOARDS)
@pytest.mark.parametrize("attack", ["distributor-flood", "console-flood"])
def test_so_on_other_boards(tmp_path, honest_on, attack, bench):
    check(tmp_path, honest_on, attack, bench)


def check(folder, honest_on, attack, bench):
    promised, least_ns = honest_on(bench)
    built, found = attacked(folder, attack, IRQS, SYSTEM, bench)
    assert built.processors == 2
    assert [line for line in found.console if line.startswith(f"hostile| begins: {attack} ")]
    check_witness(built, found, promised)
    clock = found.measured.clock
    late_ns = clock.at_least_ns(found.measured.statistics.latest_slot_ticks)
    assert late_ns <= worst_sections()[SECTIONS["service"]]
    assert executed_of_victim_ns(found).min() >= least_ns - EMULATED_TURN_NS
