"""How long an emulated guest takes to its first sample: `python bench/run.py -o FILE vm_boot`.

Wall time from QEMU's start until the measuring program starts, and until all is done for a tenth
of a second of measuring, of the default machine and the tuned one. `load_average` tells what else
the machine had to do.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def run() -> dict[str, Any]:
    return {
        "load_average": os.getloadavg()[0],
        "cpus": os.cpu_count(),
        **{kind: _booted(kind) for kind in ("default", "tuned")},
    }


def _booted(kind: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="latenz-bench-") as folder:
        run = Path(folder, "run")
        command = [sys.executable, "-m", "latenz", "vm", "run", f"--{kind}", "--json", "-o", run]
        command += ["--accelerator", "tcg", "--duration", "100ms"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        [account] = json.loads((run / "run.json").read_text())["conditions"]
    document = json.loads(done.stdout)
    return {
        "boot_wall_s": document["boot_wall_ns"] / 1e9,
        "all_wall_s": account["wall_ns"] / 1e9,
        "n": document["sample_sets"][0]["n"],
    }
