import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from latenz.cli import VERBS
from latenz.errors import BadInput
from latenz.importers.opening import open_sample_sets
from latenz.store.run import RunWriter


def latenz(*arguments, **options):
    return subprocess.run(
        ["./latenz", *map(str, arguments)], capture_output=True, text=True, **options
    )


def test_help_lists_every_verb():
    answer = latenz("--help")
    assert answer.returncode == 0
    listed = re.findall(r"^│ ([a-z][a-z-]*) ", answer.stdout, re.MULTILINE)
    assert tuple(listed) == VERBS
    groups = re.findall(r"^╭─ ([A-Z][a-z ]+) ─", answer.stdout, re.MULTILINE)
    assert groups == ["Options", "Measure", "Judge and show", "Compute", "Look inside", "Change"]


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
    (tmp_path / "no-unit.csv").write_text("latency\n1\n")
    (tmp_path / "wrong-unit.csv").write_text("latency_parsec\n1\n")
    (tmp_path / "no-samples.csv").write_text("latency_us\n")
    (tmp_path / "no-number.csv").write_text("latency_us\n1\nlate\n")
    (tmp_path / "unknown-key.toml").write_text('name = "x"\nduration = "1 s"\nsead = 1\n')
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
        (["show", "{}/no-unit.csv"], "unit"),
        (["show", "{}/wrong-unit.csv"], "parsec"),
        (["show", "{}/no-samples.csv"], "no-samples.csv"),
        (["show", "{}/no-number.csv"], "no-number.csv:3"),
        (["import", "{}/no-number.csv", "-o", "{}/run"], "no-number.csv:3"),
        (["run", "{}/unknown-key.toml"], "unknown-key.toml:3"),
        (["run", "{}/absent.toml"], "absent.toml"),
        (["report", "{}/absent", "-o", "{}/r.html"], "absent"),
        (["report", "{}/text.txt", "-o", "{}/absent/r.html"], "text.txt"),
        (["compare", "{}/absent", "{}/text.txt"], "absent"),
        (["export", "{}/absent", "--to", "csv", "-o", "{}/x.csv"], "absent"),
        (["published", "alonso2021.table9"], "alonso2021.table"),
        (["sample-size", "--confidence", "7"], "7"),
        (["query", "SELECT 1", "{}/absent"], "absent"),
    ],
)
def test_wrong_input_is_one_line_with_place_and_exit_code_2(places, arguments, says):
    answer = latenz(*(argument.replace("{}", str(places)) for argument in arguments))
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_different_time_bases_are_not_compared(places):
    (places / "measured.csv").write_text("latency_us\n1\n2\n")
    imported = latenz("import", places / "measured.csv", "-o", places / "a")
    emulated = latenz(
        "import", places / "measured.csv", "-o", places / "b", "--time-base", "virtual"
    )
    assert (imported.returncode, emulated.returncode) == (0, 0)
    answer = latenz("compare", places / "a", places / "b")
    assert answer.returncode == 2
    assert "virtual" in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_file_without_permission_is_named(places):
    path = places / "text.txt"
    path.chmod(0)
    for folder in (places, *list(places.parents)[:2]):
        folder.chmod(0o755)
    os.seteuid(65534)
    try:
        with pytest.raises(BadInput, match=r"text\.txt: cannot be read \(Permission denied\)"):
            open_sample_sets(path)
    finally:
        os.seteuid(0)


def test_a_reader_that_leaves_is_no_traceback(places):
    command = f"./latenz show --help | true; ./latenz query 'SELECT * FROM range(100000)' {places}"
    answer = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert "Traceback" not in answer.stderr


def test_json_stays_alone_on_standard_output(tmp_path):
    (tmp_path / "a.csv").write_text("latency_us\n1\n2\n")
    answer = latenz("show", tmp_path / "a.csv", "--json")
    assert json.loads(answer.stdout)["sample_sets"][0]["max_ns"] == 2000


@pytest.mark.parametrize(("asked", "code"), [([], 0), (["--deadline", "3ms"], 3)])
def test_a_run_in_which_nothing_was_measured_shows_no_deadline(asked, code, tmp_path):
    RunWriter(tmp_path / "run").close("failed")
    answer = latenz("show", tmp_path / "run", *asked)
    assert answer.returncode == code
    assert "nothing was measured" in answer.stdout
    answer = latenz("show", tmp_path / "run", *asked, "--json")
    assert (answer.returncode, json.loads(answer.stdout)) == (
        code,
        {"sample_sets": [], "provenance": []},
    )


def test_output_that_nobody_reads_is_no_wrong_input(tmp_path):
    """As in `latenz show FILE | head -1`, in a shell with pipefail too."""
    (tmp_path / "samples.csv").write_text("latency_us\n" + "12.3\n" * 100)
    command = ["./latenz", "show", tmp_path / "samples.csv"]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as nowhere:
        answer = subprocess.run(command, stdout=nowhere, stderr=subprocess.PIPE, text=True)
    assert (answer.returncode, answer.stderr) == (141, "")


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    done = subprocess.run(
        [sys.executable, "-m", "latenz", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[:2] == ["latenz", version("latenz")]


def test_a_note_of_several_sets_is_told_once_and_the_verdict_last():
    measured = Path(__file__).parent / "data/importers/cyclictest-v2.4-hist.json"
    done = subprocess.run(
        [sys.executable, "-m", "latenz", "show", measured, "--deadline", "3ms"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    notes = [line for line in lines if "cyclictest leaves out periods" in line]
    assert len(notes) == 1
    assert notes[0].startswith("all sets: ")
    assert lines[-1].startswith("Of 2 verdicts")
