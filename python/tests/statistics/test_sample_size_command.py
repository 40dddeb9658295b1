"""The command `latenz sample-size`, run as a user runs it."""

import json
import subprocess
import sys


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latenz", "sample-size", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_json_holds_both_sizes() -> None:
    found = run("--quantile", "0.95", "--exceeding", "1", "--json")
    assert found.returncode == 0
    document = json.loads(found.stdout)
    assert (document["n_for_quantile"], document["n_for_proportion"]) == (93, 385)


def test_the_text_says_what_equation_3_is_not_for() -> None:
    text = run().stdout
    assert "2995 independent samples" in text
    assert "nothing about a maximum or a quantile" in text


def test_an_impossible_wish_is_one_line_and_exit_code_2() -> None:
    found = run("--confidence", "95")
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert "0.95" in found.stderr
