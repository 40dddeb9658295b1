"""Code coverage: how gcov's counts are read, the record and its bar, and all of it anew."""

import json
from pathlib import Path

import pytest

from simulation.vhdl_sources import ALL, listed
from verification.code_coverage import measure, record
from verification.code_coverage.record import Reached
from verification.mutants.killers import KILLERS

SOURCES = [source for source in listed(*ALL) if source.stem in KILLERS]


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
    row = Reached("", 100, 200, ("7: a <= b;",), ("8: if c then",) * 3)
    assert not row.suffices("input_edge")
    assert row.cells("input_edge") == "100 | 99.0 % | 0 | 200 | 98.5 % | 0"
    assert Reached("", 100, 200, ("7: a <= b;",), ("8: if c then",) * 2).suffices("input_edge")


def test_what_is_argued_counts_as_reached_and_nothing_else_does() -> None:
    [argument] = [each for each in record.arguments() if each["file"] == "latency_counter"]
    lost = f"141: {argument['text']}"
    assert Reached("", 10, 20, (), (lost,)).suffices("latency_counter")
    assert not Reached("", 10, 20, (), (lost, "9: if c then")).suffices("latency_counter")
    assert not Reached("", 10, 20, (lost,), ()).suffices("latency_counter")
    assert not Reached("", 10, 20, (), (lost,)).suffices("start_queue")


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_enough_of_each_file_as_it_is_was_reached(source: Path) -> None:
    """Else test what is missing, or measure it anew: `make -C hdl coverage ENTITIES=...`."""
    row = record.recorded()[source.stem]
    assert row.source == record.digest(source)
    assert row.lines >= 10
    assert row.suffices(source.stem)


def test_the_page_is_that_of_the_record() -> None:
    assert record.PAGE.read_text() == record.page(record.recorded())


def test_a_reason_is_of_something_that_is_not_reached() -> None:
    missed = {
        (name, kind, each.partition(": ")[2])
        for name, row in record.recorded().items()
        for kind, every in (("line", row.missed_lines), ("branch", row.missed_branches))
        for each in every
    }
    told = {(each["file"], each["kind"], each["text"]) for each in record.arguments()}
    assert told <= missed


@pytest.mark.long
@pytest.mark.proofs
def test_all_is_still_reached() -> None:
    """By the tests as they are, from the compiler on."""
    rows = measure.measured(list(KILLERS))
    assert set(rows) == set(KILLERS)
    for name, row in rows.items():
        before = record.recorded()[name]
        assert row.suffices(name), row.unargued(name)
        assert (row.lines, row.branches) == (before.lines, before.branches)
