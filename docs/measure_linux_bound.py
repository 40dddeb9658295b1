"""Measures the table of docs/linux-bound.md, condition by condition, unattended.

Usage: .venv/bin/python docs/measure_linux_bound.py FOLDER [WAKE_UPS] [NAME...]

FOLDER takes one run for each condition of experiments/linux-bound.toml, or for those whose names
match, such as 'linux-rt-*'. A condition that is there with so many wake-ups (50,000 unless told) is
left as it is, so a call that was ended goes on where it was: at most the condition under way is
measured again. One that fails is told, and the others go on; the exit code is 1 then.
`docs/make_linux_bound_table.py FOLDER/*` prints the table.
"""

import json
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXPERIMENT = ROOT / "experiments/linux-bound.toml"
LATENZ = (sys.executable, "-P", "-m", "latenz")
WAKE_UPS = 50_000


def names() -> list[str]:
    """Return the conditions' names, kernels in turn: a call that is ended has some of both."""
    command = [*LATENZ, "run", str(EXPERIMENT), "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    of_rt = [name for name in listed if name.startswith("linux-rt-")]
    of_stock = [name for name in listed if name not in of_rt]
    return [name for pair in zip(of_rt, of_stock, strict=True) for name in pair]


def recorded(run: Path) -> int:
    """Return how many wake-ups a condition's run holds; 0 if it did not come to its end."""
    found = [*run.glob("*/windows.json")]
    return json.loads(found[0].read_text())["wake_ups"] if found else 0


def measure(name: str, folder: Path, wake_ups: int, period_us: int) -> bool:
    """Measure one condition; return whether it was recorded. Only what is whole gets its name."""
    part = folder / f".{name}"
    shutil.rmtree(part, ignore_errors=True)
    duration = f"{wake_ups * period_us} us"
    command = [*LATENZ, "run", str(EXPERIMENT), "--only", name]
    command += ["--duration", duration, "-o", str(part)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 130:
        raise KeyboardInterrupt
    if recorded(part) < wake_ups:
        sys.stdout.write(f"{name}: no windows\n{done.stdout}{done.stderr}\n")
        return False
    shutil.rmtree(folder / name, ignore_errors=True)
    part.rename(folder / name)
    return True


def main(folder: Path, *words: str) -> int:
    """Measure what is missing; return the exit code."""
    numbers = [word for word in words if word.isdigit()]
    patterns = [word for word in words if word not in numbers] or ["*"]
    wake_ups = int(numbers[0]) if numbers else WAKE_UPS
    period = tomllib.loads(EXPERIMENT.read_text())["probe"]["cyclictest"]["period"]
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names():
        wanted = any(fnmatch(name, pattern) for pattern in patterns)
        if not wanted or recorded(folder / name) >= wake_ups:
            continue
        measured = measure(name, folder, wake_ups, int(period.removesuffix(" us")))
        failed += not measured
        sys.stdout.write(f"{name}: {'measured' if measured else 'failed'}\n")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
