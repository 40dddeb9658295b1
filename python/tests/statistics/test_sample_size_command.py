"""The command `latenz sample-size`, run as a user runs it."""

import json
import subprocess
import sys

import pytest


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latenz", "sample-size", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_json_holds_the_duration_and_equation_3() -> None:
    found = run("--allowed", "1/h", "--json")
    assert found.returncode == 0
    document = json.loads(found.stdout)
    assert document["needed_s"] == pytest.approx(3600 * 2.9957, rel=1e-4)
    assert document["n_for_proportion"] == 385


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "3 h (10,784.6 s) with nothing late to show 1/h at 95 % confidence."),
        (["--allowed", "0.1%"], "50 min (2,994.23 s) with nothing late"),
        (["--allowed", "0.1%", "--burst", "10 ms"], "no burst of lateness is longer than 10 ms"),
        (["--allowed", "1/min", "--late", "3"], "7.76 min (465.219 s) with at most 3 late"),
        (["--allowed", "0"], "No measurement shows"),
        ([], "nothing about a maximum or a quantile"),
    ],
)
def test_the_text_speaks_of_durations(arguments: list[str], says: str) -> None:
    assert says in run(*arguments).stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--confidence", "95"], "0.95"),
        (["--allowed", "often"], "1/h"),
        (["--burst", "0 s"], "above zero"),
        (["--late", "-1"], "cannot be late"),
    ],
)
def test_an_impossible_wish_is_one_line_and_exit_code_2(arguments: list[str], says: str) -> None:
    found = run(*arguments)
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert says in found.stderr
