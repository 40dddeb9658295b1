"""Runs the explorer of the channels and prints what it visited and caught, as tables for the docs.

.venv/bin/python docs/make_icc_proof_tables.py [OUTPUT]

OUTPUT is what an earlier run of the tests printed; without it they are run, with the far bounds,
which takes minutes.
"""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path("build/host/icc/tests/explorer/icc_explorer_tests")


def output() -> str:
    """What the tests print."""
    if len(sys.argv) > 1:
        return Path(sys.argv[1]).read_text()
    environment = os.environ | {"LATENZ_EXPLORE": "far"}
    done = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def rows(text: str, kind: str, cells: int) -> list[list[str]]:
    """The first cells of the lines of this kind, each row once."""
    split = (line.split(" | ") for line in text.splitlines())
    wanted = (tuple(words[1 : 1 + cells]) for words in split if words[0] == kind)
    return [list(row) for row in dict.fromkeys(wanted)]


def table(heads: list[str], cells: list[list[str]]) -> None:
    """Write a table."""
    for row in (heads, ["---"] * len(heads), *cells):
        sys.stdout.write(f"| {' | '.join(row)} |\n")
    sys.stdout.write("\n")


def main() -> None:
    """Print both tables."""
    text = output()
    explored = [
        [what, model, f"{int(states):,}", f"{int(steps):,}"]
        for what, model, states, steps in rows(text, "explored", 4)
    ]
    table(["scenario", "memory", "states", "steps between them"], explored)
    table(["seeded defect", "caught as"], rows(text, "caught", 2))


if __name__ == "__main__":
    main()
