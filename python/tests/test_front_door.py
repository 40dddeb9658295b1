"""No entry point takes modules from the current folder, which may be a stranger's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv/bin/python"
SYSTEM = ROOT / "experiments/systems/can-gateway.toml"
ENTRIES = {
    "launcher": ([ROOT / "latenz"], {}),
    "launcher, with the folder in PYTHONPATH": ([ROOT / "latenz"], {"PYTHONPATH": ":/opt/ros"}),
    "installed script": ([ROOT / ".venv/bin/latenz"], {}),
    "module": ([PYTHON, "-m", "latenz"], {}),
    "module, with the folder in PYTHONPATH": ([PYTHON, "-m", "latenz"], {"PYTHONPATH": "/opt::."}),
}
COMMANDS = {
    "show": (["show", "samples.csv"], 0),
    "explore": (
        ["explore", SYSTEM, "--deadline", "door=5ms", "--candidates", "300", "-o", "explored"],
        0,
    ),
    "report": (["report", "samples.csv", "-o", "report.html"], 0),
    "query": (["query", "SELECT count(*) FROM samples", "samples.csv"], 0),
}
IMPORTED = (
    *("typer", "rich", "duckdb", "numpy", "pyarrow", "pydantic", "plotly", "scipy", "jinja2"),
    *("latenz", "click", "json", "multiprocessing", "concurrent", "subprocess", "pickle", "shutil"),
    *("sitecustomize_of_nobody", "distributed", "labgrid", "ctypes", "select", "tempfile"),
)


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A folder with a module of each name that tells, in a file, that it was run."""
    told = tmp_path / "told"
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in IMPORTED:
        (folder / f"{name}.py").write_text(f"open({str(told)!r}, 'a').write({name!r} + ' ')\n")
    (folder / "samples.csv").write_text("latency_us\n1\n2\n")
    monkeypatch.chdir(folder)
    return told


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_module_comes_from_the_current_folder(hostile, entry, command):
    program, settings = ENTRIES[entry]
    arguments, code = COMMANDS[command]
    answer = subprocess.run(
        [*map(str, program), *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **settings},
    )
    assert answer.returncode == code, answer.stderr
    assert not hostile.exists(), hostile.read_text()


def test_the_hostile_folder_would_be_used_by_an_ordinary_start(hostile):
    """The test above can fail: Python itself takes the module."""
    subprocess.run([sys.executable, "-c", "import typer"], check=False)
    assert "typer" in hostile.read_text()


def test_options_of_python_survive(tmp_path):
    answer = subprocess.run(
        [PYTHON, "-X", "importtime", "-m", "latenz", "--help"], capture_output=True, text=True
    )
    assert answer.returncode == 0
    assert "import time:" in answer.stderr


@pytest.mark.parametrize("given", [":/nonexistent", "/nonexistent:", ".", "/proc/self/cwd"])
@pytest.mark.parametrize("entry", ["latenz", ".venv/bin/latenz"])
def test_not_even_python_itself_takes_one_by_pythonpath(entry, given, hostile):
    for name in ("sitecustomize", "usercustomize", "re", "encodings_of_nobody"):
        Path(f"{name}.py").write_text(f"open({str(hostile)!r}, 'a').write({name!r} + ' ')\n")
    answer = subprocess.run(
        [ROOT / entry, "--help"], capture_output=True, env={**os.environ, "PYTHONPATH": given}
    )
    assert answer.returncode == 0
    assert not hostile.exists(), hostile.read_text()
