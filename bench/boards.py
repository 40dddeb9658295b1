"""How long each condition of the board experiments takes, and how fast samples leave the firmware.

Run alone: .venv/bin/python bench/boards.py [EXPERIMENT...]
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXPERIMENTS = ("experiments/alonso2024.toml", "experiments/alonso2021-gpio.toml")
LATENZ = Path(__file__).parents[1] / "latenz"


def measure(experiment: str) -> dict[str, float]:
    """Run an experiment; return wall seconds, of the whole and of each condition."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        started = time.monotonic()
        subprocess.run(
            [LATENZ, "run", experiment, "-o", run, "--json"], check=False, stdout=subprocess.DEVNULL
        )
        figures = {"whole_s": time.monotonic() - started}
        for account in json.loads((run / "run.json").read_text())["conditions"]:
            if "wall_ns" in account:
                figures[f"{account['condition']}_s"] = account["wall_ns"] / 1e9
    return figures


def run(chosen: tuple[str, ...] = ()) -> dict[str, dict[str, float]]:
    """Return the figures of every experiment; images and firmware are there already or not."""
    return {experiment: measure(experiment) for experiment in chosen or EXPERIMENTS}


if __name__ == "__main__":
    print(json.dumps(run(tuple(sys.argv[1:])), indent=1))
