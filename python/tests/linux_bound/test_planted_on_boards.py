"""What breaks the theorem's conditions, planted into real boots of Debian's kernel: each is named.

A wrong mode of preemption is in test_windows_on_boards.py.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.boots, pytest.mark.long, pytest.mark.timeout(3600)]

EXPERIMENT = """
name = "planted"
seed = 1
duration = "{duration}"
[probe.cyclictest]
engine = "cyclictest"
priority = {priority}
period = "257 us"
windows = true
[matrix]
bench = ["virt"]
stack = ["linux-rt"]
stressor = ["{load}"]
probe = ["cyclictest"]
"""
WITHOUT_INTERRUPTS = """
import sys
from latenz.linux_bound import recording
known = recording.layout_of
def planted(*arguments):
    layout = known(*arguments)
    lines = [line for line in layout.text.splitlines() if not line.startswith("vectors=")]
    text = "".join(f"{line}\\n" for line in [*lines, "vectors=0x80"])
    return recording.Layout(layout.symbols, layout.preemption, text)
recording.layout_of = planted
from latenz.cli import main
main()
"""
PLAIN = "from latenz.cli import main; main()"


def latenz(program: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)


def conditions(folder: Path, program: str = PLAIN, **settings: object) -> dict[str, dict]:
    """Return the conditions of the bound of a run, by their names."""
    usual = {"duration": "260 ms", "priority": 95, "load": "none"}
    experiment = folder / "planted.toml"
    experiment.write_text(EXPERIMENT.format(**{**usual, **settings}))
    measured = latenz(program, "run", experiment, "-o", folder / "run")
    assert measured.returncode == 0, measured.stderr
    found = latenz(PLAIN, "bound", "--linux", folder / "run", "--json")
    assert found.returncode == 3, found.stderr
    return {each["name"]: each for each in json.loads(found.stdout)["conditions"]}


def test_events_that_the_recorder_misses_are_named(tmp_path):
    told = conditions(tmp_path, WITHOUT_INTERRUPTS)["C3"]
    assert told["state"] == "violated"
