"""Hundreds of programs that a search makes up harm nobody beyond what an honest run promises.

`bench/hypervisor_programs.py --programs 100000` is the same for longer.
"""

import pytest
from bench_scripts import bench_script
from test_isolation import SECTIONS, worst_sections

from latenz.hypervisor.run import ensure_built

pytestmark = pytest.mark.proofs

programs = bench_script("hypervisor_programs")
BATCH, BATCHES = 200, 2
"""By what the guest before has caused."""


@pytest.fixture(scope="module", autouse=True)
def _built():
    ensure_built()


@pytest.mark.parametrize("bench", ["virt", "virt-gicv3"])
def test_no_program_takes_more_than_promised(tmp_path, bench):
    found = programs.Search(seed=1, folder=tmp_path, late_ns=programs.LATEST_SLOT_NS, bench=bench)
    for _ in range(BATCHES):
        found.step(BATCH)
    worst, promised = found.worst, found.promised
    assert worst.programs > 0.9 * BATCH * BATCHES, "they ran"
    assert 0 < worst.victim <= 1, (worst, promised)
    assert 0 < worst.witness <= 1, (worst, promised)
    assert worst.late_ns <= programs.LATEST_SLOT_NS
    table = worst_sections()
    assert {
        key: took for key, took in worst.sections_ns.items() if took > table[SECTIONS[key]]
    } == {}
    assert max(each for each, _ in found.kept[0]) > 10_000, "of the victim's time, by a program"


def test_the_same_programs_do_the_same(tmp_path):
    usual = programs.harm(tmp_path, [programs.GOOD] * 20)
    dice = programs.random.Random(1)
    batch = [programs.program(dice) for _ in range(20)]
    one, other = (programs.harm(tmp_path, batch, usual.first_tick) for _ in range(2))
    assert one.victim_ns.tolist() == other.victim_ns.tolist()
    assert one.witness_ns.tolist() == other.witness_ns.tolist()
    assert one.sections_ns == other.sections_ns != usual.sections_ns
