"""Experiments and systems by name, from any folder."""

import json
import subprocess
from pathlib import Path

import pytest

from latenz.installation import shipped

ROOT = Path(__file__).parents[3]


def latenz(folder, *arguments):
    return subprocess.run([ROOT / "latenz", *arguments], cwd=folder, capture_output=True, text=True)


def test_an_experiment_is_found_by_its_name(tmp_path):
    answer = latenz(tmp_path, "run", "quick", "--list")
    assert answer.returncode == 0
    assert "idle-wakeup" in answer.stdout
    by_path = latenz(tmp_path, "run", str(ROOT / "experiments/quick.toml"), "--list")
    assert answer.stdout == by_path.stdout


@pytest.mark.parametrize("name", shipped("experiment"))
def test_all_that_come_with_latenz_can_be_read_by_name(tmp_path, name):
    answer = latenz(tmp_path, "run", name, "--list", "--json")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert json.loads(answer.stdout)["conditions"]


def test_a_file_of_the_users_goes_before(tmp_path):
    text = (ROOT / "experiments/quick.toml").read_text()
    (tmp_path / "quick").write_text(text.replace('name = "standalone"', 'name = "mine"'))
    assert "mine" in latenz(tmp_path, "run", "quick", "--list").stdout
    assert "mine" not in latenz(tmp_path.parent, "run", "quick", "--list").stdout


def test_a_system_is_found_by_its_name(tmp_path):
    answer = latenz(tmp_path, "bound", "can-gateway", "--json")
    assert answer.returncode == 0
    assert json.loads(answer.stdout)["sources"]
    answer = latenz(tmp_path, "simulate", "beckert2014", "--irqs", "10", "--seed", "1", "--json")
    assert answer.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "quik"], "there is no experiment of this name; did you mean quick?"),
        (["run", "nothing"], "one that comes with Latenz: alonso2021-gpio, "),
        (["run", "experiments/quick.toml"], "there is no such file; name your own file, or quick"),
        (["run", "../quick"], "there is no such file"),
        (["run", ""], "cannot be read"),
        (["bound", "can-gatway"], "did you mean can-gateway?"),
        (["bound", "quick"], "there is no system of this name"),
        (["tune", "prove", "quik"], "did you mean quick?"),
        (["hypervisor", "run", "can-gatway"], "did you mean can-gateway?"),
    ],
)
def test_a_wrong_name_is_one_line(tmp_path, arguments, told):
    answer = latenz(tmp_path, *arguments)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert told in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_folder_of_that_name_is_told(tmp_path):
    (tmp_path / "quick").mkdir()
    answer = latenz(tmp_path, "run", "quick", "--list")
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1
