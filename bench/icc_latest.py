"""`Latest` and the publication's double buffer under one writer process flat out and three readers.

`python bench/icc_latest.py --reads 1000000000` prints its figures as JSON. Every read is checked:
one that is torn, goes backward or fails in `Latest` fails this. What a read costs is measured in
the same run, block by block in turns with the double buffer's. How often the double buffer tears
depends on where the machine's CPUs run, on other load, and on the readers' pauses; hence several.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from latenz.progress import counting

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "build/host/icc/latenz-icc-torture"
DEFAULT_READS = 20_000_000
PAUSES_NS = (0, 700, 2_000)
ROUNDS = 3


class InterruptedRunError(Exception):
    """Carries the figures of the run that was interrupted."""

    def __init__(self, figures: dict[str, object]) -> None:
        super().__init__("interrupted")
        self.figures = figures


def built() -> Path:
    for command in (
        ["cmake", "--preset", "host"],
        ["cmake", "--build", "--preset", "host", "--target", PROGRAM.name],
    ):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return PROGRAM


def tortured(payload_bytes: int, reads: int, channel: str, pause_ns: int = 0) -> dict[str, object]:
    """Run the harness; what it counted."""
    command = [PROGRAM, "--bytes", payload_bytes, "--reads", reads, "--channel", channel]
    if pause_ns:
        command += ["--pause-ns", pause_ns]
    label = f"{channel}, {payload_bytes} B"
    figures: dict[str, object] = {}
    with (
        counting(label, reads, wanted=True) as show,
        subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as run,
    ):
        assert run.stdout is not None
        while True:
            try:
                for line in run.stdout:
                    if line.startswith("progress "):
                        show(int(line.split()[1]))
                    else:
                        figures = json.loads(line)
                break
            except KeyboardInterrupt:  # the harness was interrupted, too, and sums up
                continue
    if run.returncode == 130:
        raise InterruptedRunError(figures)
    if run.returncode != 0:
        raise SystemExit(f"a read of Latest was wrong: {json.dumps(figures)}")
    return figures


def run(reads: int = DEFAULT_READS) -> dict[str, object]:
    """So many checked reads of `Latest` at 64 B, a tenth of them at 1 KiB; then both in turns."""
    built()
    alone = [tortured(64, reads, "latest"), tortured(1024, max(reads // 10, 1), "latest")]
    in_turns = [
        tortured(payload_bytes, max(reads // 1000, 100_000), "both", pause_ns)
        for payload_bytes in (64, 1024)
        for pause_ns in PAUSES_NS
        for _ in range(ROUNDS)
    ]
    return {"latest": alone, "beside_the_double_buffer": in_turns}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", type=int, default=DEFAULT_READS)
    arguments = parser.parse_args()
    if arguments.reads < 1:
        parser.error("--reads takes a whole number from 1")
    try:
        print(json.dumps(run(arguments.reads), indent=1))
    except InterruptedRunError as interrupted:
        print(json.dumps(interrupted.figures, indent=1))
        sys.exit(130)
