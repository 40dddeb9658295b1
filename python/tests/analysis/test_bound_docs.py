"""Every claim of docs/bound.md names what would show it to be false, and that is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "bound.md").read_text()
GOOGLE_TEST = re.compile(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", re.MULTILINE)
PYTHON_TEST = re.compile(r"^def (test_\w+)", re.MULTILINE)


def claims() -> dict[str, list[str]]:
    """Return the tests that the page names for each claim."""
    table = PAGE.partition("| claim | looked for by |\n| --- | --- |\n")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return {claim: re.findall(r"`(\w+\.\w+|test_\w+)`", tests) for claim, tests in rows}


def known_tests() -> set[str]:
    cpp = {
        f"{suite}.{name}"
        for folder in ("core", "hypervisor")
        for path in (ROOT / folder / "tests").glob("*_test.cpp")
        for suite, name in GOOGLE_TEST.findall(path.read_text())
    }
    return cpp | {
        name
        for path in (ROOT / "python" / "tests").rglob("test_*.py")
        for name in PYTHON_TEST.findall(path.read_text())
    }


def test_every_claim_names_tests_that_are_there() -> None:
    named = claims()
    assert len(named) > 15
    assert [claim for claim, tests in named.items() if not tests] == []
    known = known_tests()
    assert len(known) > 1000
    assert [each for tests in named.values() for each in tests if each not in known] == []


def test_all_random_and_hostile_tests_of_bounds_are_named() -> None:
    """A claim that is tested is on the page: what a suite of bounds has is in the table."""
    named = {each for tests in claims().values() for each in tests}
    suites = ("EnforcedBound.", "LearningBound.")
    assert [each for each in sorted(known_tests()) if each.startswith(suites)] == sorted(
        each for each in named if each.startswith(suites)
    )
