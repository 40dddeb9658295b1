"""The generator of mutants, the record of the score, and a few mutants that must be found now."""

import random

import pytest

from verification.mutants import score
from verification.mutants.generated import changes, drawn, files
from verification.mutants.killers import KILLERS

ROWS = score.recorded()
KILLED = sorted(name for name, row in ROWS.items() if row["verdict"] == score.KILLED)
SAMPLE = random.Random(1).sample(KILLED, 4)


@pytest.mark.parametrize("file", files())
def test_each_mutant_is_one_changed_line(file: str) -> None:
    found = changes(file)
    assert len({change.name for change in found}) == len(found) >= 10
    before = (score.HDL / file).read_text().split("\n")
    for change in found:
        after = change.text.split("\n")
        assert len(after) == len(before)
        different = [
            i for i, pair in enumerate(zip(before, after, strict=True)) if len({*pair}) > 1
        ]
        assert different == [change.line - 1]
    assert {change.name for change in drawn(file)} == {change.name for change in found}


def test_every_file_has_tests_that_judge_it() -> None:
    assert {score.entity(file) for file in files()} == set(KILLERS)
    assert all(KILLERS.values())


def test_the_page_is_that_of_the_record() -> None:
    assert score.PAGE.read_text() == score.page(ROWS)


def test_a_reason_is_of_a_mutant_that_survives() -> None:
    survivors = [row for row in ROWS.values() if row["verdict"] == score.SURVIVED]
    told = {(score.entity(row["file"]), row["before"], row["after"]) for row in survivors}
    assert {(each["file"], each["before"], each["after"]) for each in score.arguments()} <= told


@pytest.mark.proofs
@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutant_is_found(name: str) -> None:
    """As the record says; one whose line is gone is the long run's business."""
    row = ROWS[name]
    found = [change for change in changes(row["file"]) if change.name == name]
    if not found:
        pytest.skip("the line has changed since")
    assert score.judge(found[0])["verdict"] == score.KILLED
