"""What a stranger's file says cannot steer the terminal, style text, or break a command."""

import io
import os
import pty
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.console import Console
from latenz.model import Metadata, SampleSet
from latenz.store.run import RunWriter
from latenz.terminal import PrintableStream, guarded, printable, printable_line

ROOT = Path(__file__).parents[2]
EVIL = "\x1b]0;OWNED\x07\x1b[2J\x1b[31mname[red]\x9b2J\r\u202emeets[/oops][link=http://evil]:smile:"
STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def steering(text, allowed="\n\t"):
    return [each for each in text if unicodedata.category(each) in STEERING and each not in allowed]


@given(st.text())
def test_nothing_that_steers_is_printable(text):
    assert not steering(printable(text))
    assert not steering(printable_line(text), allowed="")
    assert printable(printable(text)) == printable(text)


@given(st.text(st.characters(categories=("L", "M", "N", "P", "S"))))
def test_letters_of_every_script_stay(text):
    assert printable(text) == text


@given(st.integers(0, 0x10FFFF))
def test_every_character_that_steers_is_known(number):
    letter = chr(number)
    if unicodedata.category(letter) in STEERING and letter not in "\n\t":
        assert printable(letter) != letter


def test_a_guarded_stream_lets_no_sequence_through():
    told = io.StringIO()
    stream = PrintableStream(told)
    print(EVIL, file=stream)
    stream.writelines([EVIL, "\n"])
    assert not steering(told.getvalue())
    assert "\\x1b[2J" in told.getvalue()


def test_letters_that_a_stream_lacks_are_no_crash():
    raw = io.BytesIO()
    stream = PrintableStream(io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    stream.write("µs ≥ 1 \udc80\n")
    assert raw.getvalue() == b"\\xb5s \\u2265 1 \\udc80\n"


def test_standard_streams_are_given_back():
    before = sys.stdout, sys.stderr
    with guarded():
        assert sys.stdout is not before[0]
    assert (sys.stdout, sys.stderr) == before


def test_a_console_prints_texts_as_they_are_and_only_its_own_colours():
    told = io.StringIO()
    console = Console(file=told, force_terminal=True, width=300, highlight=False)
    console.print(EVIL, style="bold")
    assert "[/oops][link=http://evil]:smile:" in told.getvalue()
    plain = told.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert not steering(plain)


@pytest.fixture
def evil_run(tmp_path):
    """A run as a stranger sends it: the names in run.json are put there afterwards."""
    run = tmp_path / "run"
    writer = RunWriter(run)
    for name in ("harmless", "other"):
        known = Metadata(name=name, time_base="silicon", condition=name, notes=("harmless note",))
        writer.add(SampleSet.from_columns(known, latency_ns=[1000, 2000, 50000]))
    writer.close()
    text = (run / "run.json").read_text()
    escaped = EVIL.encode("unicode_escape").decode().replace("\\x", "\\u00")
    (run / "run.json").write_text(
        text.replace('"name": "harmless"', f'"name": "{escaped}"')
        .replace('"condition": "harmless"', f'"condition": "{escaped}"')
        .replace("harmless note", f"note {escaped}")
    )
    return run


def on_a_terminal(*arguments, command=(ROOT / "latenz",)):
    """Run a command on a pseudo-terminal; return its exit code and all that it wrote."""
    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        [*command, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"},
    )
    os.close(theirs)
    told = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # its last user is gone
            break
        if not more:
            break
        told += more
    os.close(ours)
    return program.wait(), told.decode("utf-8", "replace")


BAR = """\
import time
from latenz.progress import counting
from latenz.terminal import guarded
with guarded(), counting("counting", 10, wanted=True) as progress:
    for done in range(10):
        progress(done)
        time.sleep(0.1)
    print("told \\x1b]0;OWNED\\x07")
"""


def test_a_bar_on_a_guarded_terminal_is_drawn_and_guards_what_is_printed_meanwhile():
    code, told = on_a_terminal(command=[sys.executable, "-c", BAR])
    assert code == 0
    assert "counting" in told
    assert "\x1b[2K" in told  # the terminal's own, which clears the line
    assert "\\x1b[" not in told
    assert "told" in told
    assert "\x1b]" not in told
    assert "\x07" not in told


COMMANDS = {
    "show": ["show", "{run}"],
    "query": ["query", "SELECT name, chr(27) || '[2J' AS \"\x1b[2J\" FROM sample_sets", "{run}"],
    "report": ["report", "{run}", "-o", "{folder}/report.html"],
    "compare": ["compare", "{run}", "{run}"],
    "export": ["export", "{run}", "--to", "csv", "-o", "{folder}/out.csv"],
    "absent": ["show", "{folder}/absent-\x1b]0;OWNED\x07"],
    "unknown key": ["show", "{damaged}"],
    "wrong name": ["import", "{csv}", "-o", "{folder}/imported"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_lets_a_strangers_text_steer_the_terminal(command, evil_run, tmp_path):
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text('{"\\u001b]0;OWNED\\u0007": 1, "created": "x"}')
    csv = tmp_path / "evil\x1b[2J.csv"
    csv.write_text("latency_us\n\x1b[31m1\n")
    places = {"run": evil_run, "folder": tmp_path, "damaged": damaged, "csv": csv}
    code, told = on_a_terminal(*(each.format(**places) for each in COMMANDS[command]))
    assert code == (2 if command in ("absent", "unknown key") else 0), told
    assert "Traceback" not in told
    for sequence in ("\x1b]", "\x1b[2J", "\x9b", "\x07", "\u202e", "\x1b[31mname"):
        assert sequence not in told


def test_names_of_a_run_are_one_printable_line(evil_run):
    from latenz.store.run import Run

    sets = Run.open(evil_run).sample_sets
    assert not [each for each in sets if steering(each.metadata.name, allowed="")]
    assert "\\x1b]0;OWNED" in sets[0].metadata.name
