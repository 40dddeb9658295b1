"""`latenz compare` as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from autocorrelated import latencies, sample_set
from processes import independent, two_state

from latenz.store.parquet import write_parquet


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "latenz", "compare", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sets")
    for name, values, time_base in (
        ("before", latencies(1, 4000, 0.6), "silicon"),
        ("after", latencies(2, 4000, 0.6, scale=6500), "silicon"),
        ("emulated", np.arange(50) % 7, "virtual"),
        ("slower", np.arange(50) % 7 + 1, "virtual"),
    ):
        write_parquet(sample_set(name, values, time_base), root / f"{name}.parquet")
    return root


def test_json_has_the_stable_keys(folder: Path) -> None:
    found = run(folder / "before.parquet", folder / "after.parquet", "--json", "--seed", 3)
    assert found.returncode == 0
    assert found.stderr == ""
    document = json.loads(found.stdout)
    assert list(document)[:2] == ["a", "b"]
    assert (document["seed"], document["confidence"], document["gate"]) == (3, 0.95, None)
    [pair] = document["pairs"]
    assert (pair["n_a"], pair["n_b"], pair["identical"]) == (4000, 4000, False)
    assert set(pair["statistics"]["median_ns"]) >= {
        "a",
        "b",
        "difference_ns",
        "difference_low_ns",
        "difference_high_ns",
        "ratio",
        "ratio_low",
        "ratio_high",
    }
    assert set(pair["statistics"]) >= {"p99_ns", "p99.9_ns", "max_ns", "mean_ns", "miss_rate"}
    assert document["unmatched_a"] == document["unmatched_b"] == []
    again = run(folder / "before.parquet", folder / "after.parquet", "--json", "--seed", 3)
    assert again.stdout == found.stdout


@pytest.mark.parametrize(
    ("expression", "code", "violated"),
    [
        ("median significantly > +10%", 1, True),
        ("median ratio > 1.1 and p90 > +1us", 1, True),
        ("median > +100% or max > 3ms", 0, False),
        ("p99.99 significantly > +0.1%", 3, False),
    ],
)
def test_gate_decides_the_exit_code(
    folder: Path, expression: str, code: int, violated: bool
) -> None:
    sides = folder / "before.parquet", folder / "after.parquet"
    found = run(*sides, "--fail-if", expression, "--json")
    assert found.returncode == code
    gate = json.loads(found.stdout)["gate"]
    assert gate["expression"] == expression
    assert gate["violated"] is violated
    assert bool(gate["reasons"]) is (code != 0)


def test_terminal_output_shows_effects_and_gate(folder: Path) -> None:
    sides = folder / "before.parquet", folder / "after.parquet"
    found = run(*sides, "--fail-if", "median significantly > +10%")
    assert found.returncode == 1
    for text in ("median", "block_max", "violated", "no interval for", "one run of each side"):
        assert text in found.stdout


def test_one_instruction_on_an_emulated_path_shows(folder: Path) -> None:
    same = run(folder / "emulated.parquet", folder / "emulated.parquet", "--json")
    assert json.loads(same.stdout)["pairs"][0]["identical"] is True
    sides = folder / "emulated.parquet", folder / "slower.parquet"
    found = run(*sides, "--fail-if", "mean significantly > +0ns", "--json")
    assert found.returncode == 1
    assert json.loads(found.stdout)["pairs"][0]["statistics"]["mean_ns"]["difference_ns"] == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["before.parquet", "missing.parquet"], "missing.parquet"),
        (["before.parquet", "emulated.parquet"], "virtual time"),
        (["before.parquet", "after.parquet", "--fail-if", "p99 > 10%"], "at character 7"),
        (["before.parquet", "after.parquet", "--confidence", "1.5"], "--confidence"),
        (["before.parquet", "after.parquet", "--seed", "-1"], "--seed"),
        (["before.parquet", "after.parquet", "--deadline", "3 apples"], "--deadline"),
        (["before.parquet", "after.parquet", "--deadline", "-3us"], "--deadline"),
        (["before.parquet", "after.parquet", "--paired"], "repetitions"),
    ],
)
def test_wrong_input_gets_one_line(folder: Path, arguments: list[str], told: str) -> None:
    paths = [folder / name for name in arguments[:2]]
    found = run(*paths, *arguments[2:])
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert told in found.stderr


def test_what_cannot_be_told_says_what_would_do(tmp_path: Path) -> None:
    from processes import PROCESSES, run_of

    random = np.random.default_rng(3)
    for side in ("a", "b"):
        made = run_of("x", PROCESSES["busy 5 s, quiet 20 s"](random, 60_000))
        write_parquet(made, tmp_path / f"{side}.parquet")
    expression = "median significantly > +0ns or median significantly < -0ns"
    sides = tmp_path / "a.parquet", tmp_path / "b.parquet"
    found = run(*sides, "--fail-if", expression, "--json")
    assert found.returncode == 3
    document = json.loads(found.stdout)
    effect = document["pairs"][0]["statistics"]["median_ns"]
    assert effect["basis"] is None
    assert effect["difference_low_ns"] is None
    assert effect["needed"] == {"repetitions": 3, "duration_s": 60.0}
    assert document["gate"]["violated"] is False
    assert document["gate"]["shown"] is False
    shown = run(*sides, "--fail-if", expression)
    assert "cannot be told" in shown.stdout
    assert "3 repetitions of each side, of 60 s, can tell" in shown.stdout


@pytest.mark.parametrize(("process", "code"), [(independent, 0), (two_state(5, 20), 3)])
def test_without_a_gate_the_exit_code_says_whether_it_can_be_told(tmp_path, process, code):
    """A minute in phases of seconds: one run of each side cannot tell, and a script must see it."""
    random = np.random.default_rng(7)
    for name in ("a", "b"):
        values = process(random, 60_000)
        write_parquet(sample_set(name, values, "silicon"), tmp_path / f"{name}.parquet")
    found = run(tmp_path / "a.parquet", tmp_path / "b.parquet", "--json")
    assert (found.returncode, found.stderr) == (code, "")
    [pair] = json.loads(found.stdout)["pairs"]
    untold = [pair["statistics"][f"{name}_ns"]["needed"] for name in ("mean", "median", "p99")]
    assert all(each is None for each in untold) == (code == 0)
