"""Coq accepts the proof of the slots form, and its bounds are those of the C++ core."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROOF = ROOT / "core" / "proof"
EXAMPLE = "experiments/systems/can-gateway.toml"


def checked(proof: Path, build: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [proof / "check", build], capture_output=True, text=True, check=False, timeout=600
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what the check prints."""
    done = checked(PROOF, tmp_path_factory.mktemp("proof"))
    assert done.returncode == 0, done.stderr
    return done.stdout


def evaluated(told: str) -> list[str]:
    """Return the values that the check prints, in its order."""
    return re.findall(r"^ +=\s+(.*?)\n +: ", told, re.MULTILINE | re.DOTALL)


def bounds_of_the_core(mode: str) -> list[int]:
    """Return the bounds of can-gateway's partitions, in the order of its slots."""
    done = subprocess.run(
        ["./latenz", "bound", EXAMPLE, "--mode", mode, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    of = {each["name"]: each for each in json.loads(done.stdout)["sources"]}
    assert {each["form"] for each in of.values()} == {"slots"}
    assert of["can-engine"]["wcrt_ns"] == of["can-comfort"]["wcrt_ns"]
    return [of[source]["wcrt_ns"] for source in ("door", "can-engine", "ethernet")]


def test_the_proof_of_the_slots_form_rests_on_no_axiom(told: str) -> None:
    assert told.count("Closed under the global context") == 3
    assert "Axioms:" not in told


def test_the_proven_bounds_are_those_of_the_core(told: str) -> None:
    plain, paper, _ = (re.findall(r"Some (\d+)", value) for value in evaluated(told))
    assert [int(each) for each in plain] == bounds_of_the_core("plain")
    assert [int(each) for each in paper] == bounds_of_the_core("paper")


def test_a_bound_less_one_and_a_cost_more_by_one_are_refused(told: str) -> None:
    refusals = evaluated(told)[-1]
    assert re.findall(r"true|false", refusals) == ["true"] * 12


@pytest.mark.parametrize(
    ("name", "proven", "wrong"),
    [
        ("Gateway.v", "Z.to_nat 6116500", "Z.to_nat 6116499"),
        ("Served.v", "ended served 3 5", "ended served 3 4"),
    ],
)
def test_a_bound_below_the_proven_one_is_no_theorem(
    tmp_path: Path, name: str, proven: str, wrong: str
) -> None:
    copy = tmp_path / "proof"
    shutil.copytree(PROOF, copy)
    text = (copy / name).read_text()
    assert proven in text
    (copy / name).write_text(text.replace(proven, wrong))
    done = checked(copy, tmp_path / "build")
    assert done.returncode == 1
    assert f"./{name}" in done.stderr
