"""Runs every benchmark of this folder and writes one JSON file: `python bench/run.py -o FILE`.

A benchmark is a module here with a function `run()` that returns figures as a dictionary, with
their units in the keys. Timing is measured here and nowhere asserted.
"""

import argparse
import importlib
import json
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent


def names() -> list[str]:
    found = (path for path in HERE.glob("*.py") if "\ndef run(" in path.read_text())
    return sorted(path.stem for path in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("benchmarks", nargs="*", choices=[[], *names()])
    arguments = parser.parse_args()
    sys.path.insert(0, str(HERE))
    document: dict[str, object] = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "machine": platform.machine(),
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    for name in arguments.benchmarks or names():
        print(f"bench: {name}", file=sys.stderr)
        document[name] = importlib.import_module(name).run()
        arguments.output.write_text(json.dumps(document, indent=1) + "\n")
    print(f"bench: wrote {arguments.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
