import json
import subprocess

import pytest

from latenz.cli import VERBS


def latenz(*arguments, **options):
    return subprocess.run(
        ["./latenz", *map(str, arguments)], capture_output=True, text=True, **options
    )


def test_help_lists_every_verb():
    answer = latenz("--help")
    assert answer.returncode == 0
    for verb in VERBS:
        assert verb in answer.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb):
    answer = latenz(verb, "--help", env={"COLUMNS": "160", "PATH": "/usr/bin:/bin"})
    assert answer.returncode == 0
    assert f"latenz {verb}" in answer.stdout
    assert "Example" in answer.stdout


@pytest.fixture
def places(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "text.txt").write_text("hello\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sho"], "sho"),
        (["show"], "path"),
        (["show", "--frobnicate", "x"], "--frobnicate"),
        (["show", "{}/absent"], "absent"),
        (["show", "{}/empty"], "run.json"),
        (["show", "{}/empty.txt"], "empty.txt"),
        (["show", "{}/text.txt"], "text.txt"),
        (["show", "{}", "--deadline", "3 parsec"], "parsec"),
        (["show", "{}", "--deadline", "-3ms"], "above zero"),
        (["query", "SELECT 1", "{}/absent"], "absent"),
    ],
)
def test_wrong_input_is_one_line_with_place_and_exit_code_2(places, arguments, says):
    answer = latenz(*(argument.replace("{}", str(places)) for argument in arguments))
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_reader_that_leaves_is_no_traceback(places):
    command = f"./latenz show --help | true; ./latenz query 'SELECT * FROM range(100000)' {places}"
    answer = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert "Traceback" not in answer.stderr


def test_json_stays_alone_on_standard_output(tmp_path):
    (tmp_path / "a.csv").write_text("latency_us\n1\n2\n")
    answer = latenz("show", tmp_path / "a.csv", "--json")
    assert json.loads(answer.stdout)["sample_sets"][0]["max_ns"] == 2000
