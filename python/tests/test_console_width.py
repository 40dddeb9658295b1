"""Tables on terminals of any width: no figure, unit or name is cut, and what left is named."""

import re
from io import StringIO

import pytest
import rich.console
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, MofNCompleteColumn
from rich.progress import TextColumn as Words  # noqa: TID251 - of a bar of any width
from rich.table import Table
from rich.text import Text

from latenz.console import Console
from latenz.progress_bar import FittingProgress, LeftColumn

NAME = st.text("abcdefgh-3", min_size=1, max_size=24)
LONG_NAME = "a-name-that-takes-more-than-half-of-a-narrow-terminal"
FIGURE = st.from_regex(r"[0-9]{1,9}\.[0-9]{2} (ns|ms)", fullmatch=True)
SENTENCE = st.lists(NAME, max_size=12).map(" ".join)


def shown(table: Table, width: int) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(table)
    return console.file.getvalue()


def squeezed(text: str) -> str:
    """Leave out what folding adds."""
    return re.sub(r"\s", "", text)


@pytest.mark.proofs
@settings(max_examples=200, deadline=None)
@given(
    st.integers(60, 160),
    st.lists(st.tuples(NAME, st.lists(FIGURE, min_size=9, max_size=9), SENTENCE), min_size=1),
    st.integers(1, 9),
)
def test_whatever_a_table_holds_stays_whole_or_is_named(width, rows, figures):
    headings = [f"figure{number}" for number in range(figures)]
    table = Table(title="a table", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("reason", overflow="fold")
    for name, cells, sentence in rows:
        table.add_row(name, *cells[:figures], Text(sentence))
    screen = shown(table, width)
    lines = screen.splitlines()
    assert max(len(line) for line in lines) <= width
    assert "…" not in screen

    heads = next(line for line in lines if line.split()[:1] == ["name"]).split()
    kept = [heading for heading in headings if heading in heads]
    assert kept == headings[: len(kept)]
    left = headings[len(kept) :]
    told = re.search(r"not in \d+ columns: (.*?); a wider", " ".join(screen.split()))
    named = told[1].split(", ") if told else []
    assert [each for each in named if each.startswith("figure")] == left

    found = squeezed(screen)
    for name, cells, sentence in rows:
        assert name in found
        assert all(squeezed(cell) in found for cell in cells[: len(kept)])
        if "reason" in named:
            assert all(len(each[2]) <= 30 for each in rows)  # a short one may leave
        elif "reason" not in heads:
            assert squeezed(sentence) in found


def test_a_name_that_is_wider_than_half_the_terminal_is_folded():
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("name", "n", "avg", "max"):
        table.add_column(heading, no_wrap=True)
    table.add_row(LONG_NAME, "1,000,000", "12.00 µs", "401.00 µs")
    screen = shown(table, 60)
    assert "".join(line.split()[0] for line in screen.splitlines()[3:5]) == LONG_NAME
    assert "1,000,000" in screen
    assert "12.00 µs" in screen


def test_a_table_that_fits_is_printed_as_rich_does():
    table = Table("name", "value", title="small")
    table.add_row("a", "1.00 µs")
    plain = StringIO()
    rich.console.Console(file=plain, width=80).print(table)  # noqa: TID251 - the peer
    assert shown(table, 80) == plain.getvalue()


@given(st.integers(60, 130), st.integers(0, 10**8))
def test_a_bar_leaves_room_for_words_and_figures_beside_it(width, total):
    """It once kept its 40 characters, so that what stood beside it was folded or cut."""
    console = Console(file=StringIO(), width=width)
    columns = (Words("{task.description}"), BarColumn(), MofNCompleteColumn(), LeftColumn())
    bar = FittingProgress(*columns, console=console)
    bar.add_task("simulating", total=total, completed=total // 3)
    with console.capture() as captured:
        console.print(bar.get_renderable())
    (line,) = captured.get().splitlines()
    assert line.startswith("simulating ")
    assert f"{total // 3}/{total} left -:--:--" in line
