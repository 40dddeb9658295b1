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


def test_every_recorded_mutant_is_of_the_vhdl_as_it_is() -> None:
    """Else its verdict is of another line: each run of the score forgets it and judges others."""
    there = {change.name for file in files() for change in changes(file)}
    gone = [f"{row['file']}: {row['before']}" for name, row in ROWS.items() if name not in there]
    assert not gone, f"changed since they were judged, run make -C hdl mutants: {gone}"


@pytest.mark.proofs
@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutant_is_found(name: str) -> None:
    """As the record says."""
    [change] = [change for change in changes(ROWS[name]["file"]) if change.name == name]
    assert score.judge(change)["verdict"] == score.KILLED
