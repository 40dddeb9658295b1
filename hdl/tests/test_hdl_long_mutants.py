"""Each planted bug is found by the tests that are named for its corner case."""

from dataclasses import replace

import pytest

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
    assert run(mutant).failed, f"survives: {mutant.bug}"


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
