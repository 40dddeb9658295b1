"""A core that is shared by slots beside a core with a hostile guest: nothing gets through.

The guest has the other core for itself, or shares it by slots with another one.

The emulator runs cores in turns of up to 1 us on one thread, and all of their instructions count in
one time: what is beside a busy core takes twice as long, whatever that core does. So what was
promised are the bounds with the costs of a run beside a guest that only counts. With turns of up to
10 us jobs run out of their budgets there, and these tests fail.
"""

import sys
from functools import cache
from pathlib import Path

import pytest
import test_isolation
from test_isolation import (
    attacked,
    booted,
    check_witness,
    executed_of_victim_ns,
    latest_by_guests_ns,
)

from latenz.analysis import bound
from latenz.hypervisor.costs import with_costs
from latenz.system.processors import parts

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
ON_OTHER = test_isolation.SYSTEM.replace('name = "hostile"\n', 'name = "hostile"\ncpu = 1\n')
ALONE = ON_OTHER.replace(SLOT, "").replace(OWN, "")
QUARTER = Path(sys.prefix) / "firmware" / "hypervisor" / "guests" / "quarter.bin"
"""It counts, and its handlers leave room for another core's turns, few or many."""
BY_SLOTS = (
    ON_OTHER.replace("{witness}", str(QUARTER))
    + """
[[slot]]
partition = "beside"
length = "400 us"
[[partition]]
name = "beside"
guest = "victim"
memory = "2 MiB"
cpu = 1
"""
)
"""The hostile guest has slots and a source, whose handler it may never end."""


@pytest.fixture(scope="module")
def honest_on(tmp_path_factory):
    """Gives, on a bench, the bounds and what the victim executes beside a guest that counts."""

    def measured(bench, system):
        folder = tmp_path_factory.mktemp("honest")
        built, found = booted(folder, "victim", IRQS, system, bench)
        own = found.measured.processors[0]
        costly, missing = with_costs(parts(built.system)[0].system, own.costs, own.sections)
        assert not set(missing) - {"limit"}
        return bound(costly, built.mode), executed_of_victim_ns(found).min()

    return cache(measured)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_guest_of_another_core_takes_nothing(tmp_path, honest_on, attack):
    check(tmp_path, honest_on, attack, "virt", ALONE)


@pytest.mark.parametrize(
    "attack", ["console-flood", "distributor-flood", "maintenance-in-job", "timer-storm"]
)
def test_nor_does_one_that_has_slots_there(tmp_path, honest_on, attack):
    check(tmp_path, honest_on, attack, "virt", BY_SLOTS)


@pytest.mark.long
@pytest.mark.parametrize("bench", OTHER_BOARDS)
@pytest.mark.parametrize("attack", ["distributor-flood", "console-flood"])
def test_so_on_other_boards(tmp_path, honest_on, attack, bench):
    check(tmp_path, honest_on, attack, bench, ALONE)


@pytest.mark.long
@pytest.mark.parametrize("bench", OTHER_BOARDS)
def test_so_by_slots_on_other_boards(tmp_path, honest_on, bench):
    check(tmp_path, honest_on, "distributor-flood", bench, BY_SLOTS)


def check(folder, honest_on, attack, bench, system):
    promised, least_ns = honest_on(bench, system)
    built, found = attacked(folder, attack, IRQS, system, bench)
    assert built.processors == 2
    assert [line for line in found.console if line.startswith(f"hostile| begins: {attack} ")]
    check_witness(built, found, promised)
    own = found.measured.processors[0]
    assert latest_by_guests_ns(own.clock, own.records) <= EMULATED_TURN_NS, "all are honest there"
    assert executed_of_victim_ns(found).min() >= least_ns - EMULATED_TURN_NS
