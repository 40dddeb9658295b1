"""docs/learn.md shows what is printed, and its Python runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "learn.md").read_text()


def test_the_shown_output_is_what_is_printed() -> None:
    (shown,) = re.findall(r"```console\n\$ ./latenz (.*?)\n(.*?)```", TEXT, re.DOTALL)
    command = [sys.executable, "-m", "latenz", *shlex.split(shown[0])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == shown[1]


def test_the_python_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
