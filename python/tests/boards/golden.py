"""Results of emulated boards that are known: equal identities must give equal samples.

The identity of a measurement is in its run: emulator, machine, and the hash of every file that the
board started from, hence of every package and of what our compilers made. `golden.json` maps the
hash of an identity to that of the samples. Where the tools are others, there is nothing to compare.

Rewrite what is known of a condition: LATENZ_GOLDEN=write pytest python/tests/boards/test_golden.py
"""

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("golden.json")
TOOLS = (
    ("qemu-system-aarch64", "--version"),
    ("aarch64-linux-gnu-g++", "-dumpfullversion"),
    ("arm-none-eabi-g++", "-dumpfullversion"),
)


def tools() -> list[str]:
    """Return the versions of what makes and runs firmware."""
    return [
        subprocess.run(each, capture_output=True, text=True, check=True).stdout.splitlines()[0]
        for each in TOOLS
    ]


def compare(account: dict[str, Any]) -> bool | None:
    """Compare a measured condition with what is known of it; None if that is nothing."""
    known = json.loads(FILE.read_text()) if FILE.exists() else {"tools": [], "samples": {}}
    identity = json.dumps(account["identity"], sort_keys=True)
    key = f"{account['condition']} {hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    samples = account["samples_sha256"]
    if os.environ.get("LATENZ_GOLDEN") == "write":
        others = {
            each: value
            for each, value in known["samples"].items()
            if each.split()[0] != account["condition"]
        }
        known = {"tools": tools(), "samples": {**others, key: samples}}
        FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    if key in known["samples"]:
        return bool(known["samples"][key] == samples)
    return None
