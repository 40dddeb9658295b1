"""Tables on terminals of any width: no figure, unit or name is cut, and what left is named."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from io import StringIO
from pathlib import Path

import pytest
import rich.console
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from latenz.console import Console

DATA = Path(__file__).parent / "data"
EXPERIMENTS = Path(__file__).parents[2] / "experiments"
SYSTEM = EXPERIMENTS / "systems/can-gateway.toml"
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


def screen_of(columns: int, words: list[object], here: Path) -> str:
    """Return what a command prints on a terminal of that width."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    with subprocess.Popen(
        [sys.executable, "-m", "latenz", *map(str, words)],
        stdin=its,
        stdout=its,
        stderr=subprocess.DEVNULL,
        cwd=here,
        env={**environment, "TERM": "xterm"},
    ):
        os.close(its)
        printed = b""
        try:
            while piece := os.read(ours, 1 << 16):
                printed += piece
        except OSError:  # its other end is closed
            pass
        os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed.decode()).replace("\r", "")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory) -> Path:
    here = tmp_path_factory.mktemp("width")
    words = ["import", DATA / "importers/cyclictest-v2.4-hist-smp.txt", "-o", here / "run"]
    subprocess.run([sys.executable, "-m", "latenz", *map(str, words)], check=True, cwd=here)
    return here / "run"


COMMANDS = [
    ["show", "RUN", "--deadline", "3ms", "--deadline", "30us@0"],
    ["compare", "RUN", "RUN"],
    ["bound", SYSTEM],
    ["simulate", SYSTEM, "--irqs=200"],
    ["check", SYSTEM, "--effort=20"],
    ["published"],
    ["published", "pamuk2024.table2"],
    ["explain", DATA / "traces/planted/throttled.dat"],
    ["tune", "check"],
    ["tune", "topology"],
    ["tune", "irqs", "--all"],
    ["tune", "tasks", "--all"],
    ["query", "select * from sample_sets", "RUN"],
]


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(map(str, words[:2])))
def test_no_command_cuts_what_it_prints(columns, command, run_folder):
    words = [run_folder if each == "RUN" else each for each in command]
    whole = screen_of(400, words, run_folder)
    screen = screen_of(columns, words, run_folder)
    assert screen
    assert "…" not in screen
    firsts = [line.split()[0] for line in whole.splitlines() if line[:1] == " " and line.strip()]
    missing = [each for each in firsts if each.isalnum() and each not in screen]
    assert not missing
