"""Each planted bug is found by the tests that are named for its corner case."""

from dataclasses import replace

import pytest

from verification.latencies_ip.runner import HDL
from verification.latencies_ip.suite import RUNS
from verification.mutants.additions import OTHERS, SURVIVORS
from verification.mutants.mutants import MUTANTS, Mutant, planted, run

pytestmark = [pytest.mark.proofs, pytest.mark.long]

IDS = [f"{index:02}-case_{mutant.case:02}" for index, mutant in enumerate(MUTANTS)]
OWN = "verification.latencies_ip."


@pytest.mark.parametrize("mutant", MUTANTS, ids=IDS)
def test_a_planted_bug_is_found(mutant: Mutant) -> None:
    assert run(mutant).failed, f"survives: {mutant.bug}"


@pytest.mark.parametrize(
    "mutant", SURVIVORS + OTHERS, ids=lambda mutant: mutant.bug.replace(" ", "_")
)
def test_a_bug_planted_around_the_core_is_found(mutant: Mutant) -> None:
    """By what the design does: a simulated test of its part fails, no record of a netlist."""
    assert mutant.tests == ""
    failed = run(mutant).failed
    assert failed, f"survives: {mutant.bug}"
    judges = (HDL / f"{mutant.module.replace('.', '/')}.py").read_text()
    assert all(f"async def {name.partition('/')[0]}(" in judges for name in failed)


def test_all_thirty_of_the_review_are_judged() -> None:
    """One more, a counter that wraps, is in test_hdl_long_formal.py; one changes no behaviour."""
    assert len({mutant.bug for mutant in SURVIVORS + OTHERS}) == 30 - 2


@pytest.mark.parametrize("mutant", MUTANTS, ids=IDS)
def test_its_tests_are_run_on_the_sound_design_as_well(mutant: Mutant) -> None:
    if mutant.module.startswith(OWN):
        assert (mutant.module.removeprefix(OWN), mutant.ip) in RUNS
    else:
        assert mutant.ip == "published"


def test_there_is_a_planted_bug_for_each_corner_case() -> None:
    assert {mutant.case for mutant in MUTANTS} == set(range(1, 21))


def test_a_bug_whose_place_is_gone_is_noticed() -> None:
    with pytest.raises(ValueError, match="0 times"):
        planted(replace(MUTANTS[0], old="not in it"))
