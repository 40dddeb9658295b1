"""A core that is shared by slots beside a core of a hostile guest: nothing gets through.

The emulator runs cores in turns of up to 1 us on one thread, and all of their instructions count in
one time: what is beside a busy core takes twice as long, whatever that core does. So what was
promised are the bounds with the costs of a run beside a guest that only counts. With turns of up to
10 us jobs run out of their budgets there, and these tests fail.
"""

from functools import cache

import numpy as np
import pytest
from test_isolation import TURN_NS, check_witness, hostile, worst_sections

from latenz.analysis import bound
from latenz.hypervisor.build import build
from latenz.hypervisor.costs import with_costs
from latenz.hypervisor.guest import installed
from latenz.hypervisor.run import boot, ensure_built
from latenz.hypervisor.show import SECTIONS
from latenz.hypervisor.trace import Kind

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
[[source]]
name = "watched"
partition = "witness"
top = "5 us"
bottom = "40 us"
arrival = {{ kind = "periodic", period = "400 us" }}
monitor = {{ distances = ["300 us"] }}
[[partition]]
name = "witness"
guest = "{witness}"
memory = "2 MiB"
[[partition]]
name = "victim"
guest = "victim"
memory = "2 MiB"
[[partition]]
name = "beside"
guest = "{beside}"
cpu = 1
memory = "2 MiB"
on_fault = "restart"
restarts = 1000000000
"""


def booted(folder, guest, bench):
    """Boot the system with a guest on a core of its own; return what was built and brought."""
    ensure_built()
    path = folder / "system.toml"
    path.write_text(SYSTEM.format(witness=installed("guests/witness.bin"), beside=guest))
    built = build(path, irqs=IRQS)
    assert built.processors == 2
    return built, boot(built, bench, folder)


def executed_ns(found):
    """Return what the victim executed in each of its slots."""
    records = found.measured.records
    own = records[(records["kind"] == Kind.PROGRESS) & (records["partition"] == 1)]
    turns = own["value"].astype(np.int64) + (own["detail"].astype(np.int64) << 32)
    return np.diff(turns) * TURN_NS


@pytest.fixture(scope="module")
def honest_on(tmp_path_factory):
    """Gives, on a bench, the bounds and what the victim executes beside a guest that counts."""

    def measured(bench):
        built, found = booted(tmp_path_factory.mktemp("honest"), "victim", bench)
        costly, missing = with_costs(built.system, found.measured.costs, found.measured.sections)
        assert not set(missing) - {"limit"}
        return bound(costly, built.mode), executed_ns(found).min()

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
    built, found = booted(folder, hostile(folder, attack), bench)
    assert [line for line in found.console if line.startswith(f"beside| begins: {attack} ")]
    check_witness(built, found, promised)
    clock = found.measured.clock
    late_ns = clock.at_least_ns(found.measured.statistics.latest_slot_ticks)
    assert late_ns <= worst_sections()[SECTIONS["service"]]
    assert executed_ns(found).min() >= least_ns - EMULATED_TURN_NS
