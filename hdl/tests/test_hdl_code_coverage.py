"""Code coverage: how gcov's counts are read, and one small entity from the compiler on."""

import json

import pytest

from verification.code_coverage import measure


def test_a_marked_source_has_the_same_lines_and_notes_each_concurrent_condition() -> None:
    text = "a <= b when c = '1' else\n     d when e else f;\n-- when c = '1' else\nif c then"
    assert measure.marked(text, 2).split("\n") == [
        "a <= b when work.observed.seen(2001, c = '1') else",
        "     d when work.observed.seen(2002, e) else f;",
        "-- when c = '1' else",
        "if c then",
    ]


def test_a_condition_went_both_ways_if_any_branch_of_its_line_did() -> None:
    """Checks that the compiler adds go one way; a line in two functions ran if either did."""

    def line(number: int, count: int, *taken: int) -> dict[str, object]:
        branches = [{"count": each} for each in taken]
        return {"line_number": number, "count": count, "branches": branches}

    lines = [line(1, 9, 9, 0, 4, 5), line(2, 9, 9, 0), line(3, 0, 0, 0), line(3, 2), line(4, 0)]
    told = {"files": [{"file": "/a/x.vhd", "lines": lines}, {"file": "/a/y.vhd", "lines": []}]}
    counts, ways = measure.counted(json.dumps(told), "x.vhd")
    assert counts == {1: 9, 2: 9, 3: 2, 4: 0}
    assert ways == {1: 2, 2: 1, 3: 1, 4: 0}


def test_a_share_below_the_bar_is_told() -> None:
    row = measure.Reached(100, 200, ("7: a <= b;",), ("8: if c then",) * 3)
    assert not row.suffices
    assert row.cells() == "100 | 99.0 % | 200 | 98.5 %"
    assert measure.Reached(100, 200, ("7: a <= b;",), ("8: if c then",) * 2).suffices


@pytest.mark.long
@pytest.mark.proofs
def test_all_of_the_feedback_register_is_reached() -> None:
    row = measure.measured(["linear_feedback_register"])["linear_feedback_register"]
    assert (row.missed_lines, row.missed_branches) == ((), ())
    assert row.lines > 10
    assert row.branches > 2
