"""The examples of docs/explore.md are what the commands print."""

import inspect
import re
import shlex
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

from latenz.analysis.explore.space import SCALES, SPLITS, STRICTER, TRADES
from latenz.commands import explore

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/explore.md").read_text()


def latenz(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    arguments = shlex.split(command.replace("results/gateway", str(folder)))[1:]
    return subprocess.run(
        [sys.executable, "-m", "latenz", *arguments], capture_output=True, text=True, cwd=ROOT
    )


def test_the_worked_example(tmp_path):
    shown, confirmed = re.findall(r"^```console\n\$ (.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    command, _, output = shown.partition("\n")
    done = latenz(command, tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout.replace(str(tmp_path / "out"), "results/gateway").splitlines()
    assert [line.rstrip() for line in told if line.strip()] == output.splitlines()
    assert latenz(confirmed, tmp_path / "out").returncode == 0


def test_the_python_example(tmp_path):
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    script = tmp_path / "example.py"
    script.write_text(snippet)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout.split()[0]) < 0.1


def test_every_option_is_told():
    for name in inspect.signature(explore.command).parameters:
        option = {"system": "SYSTEM", "output": "-o"}.get(name, f"--{name.replace('_', '-')}")
        assert option in TEXT


def test_the_values_are_those_of_the_space():
    numbers = {
        row: [Fraction(each) for each in re.findall(r"\d+(?:[/.]\d+)?", text)]
        for row, text in re.findall(r"^\| (\w[\w ]+) \| (.*) \|$", TEXT, re.MULTILINE)
    }
    assert numbers["splitting"] == list(SPLITS)
    assert [*numbers["length of the cycle"], 1] == list(SCALES)
    assert [*numbers["time in the cycle"][1:], 1] == list(TRADES)
    assert numbers["monitors"] == list(STRICTER)
