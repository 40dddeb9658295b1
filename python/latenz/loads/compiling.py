"""Compiles a kernel over and over where it is started, until it is ended.

Started by `kernel_compile` as a program of its own, so only the standard library is imported.
Prints a line of JSON after each time.
"""

import json
import subprocess
import sys
from pathlib import Path


def compile_for_ever(source: str, jobs: str) -> int:
    """Compile until something goes wrong; return make's exit status then.

    Args:
        source: Folder of the sources.
        jobs: How many compilers run at once.
    """
    build = Path.cwd() / "build"
    build.mkdir()
    make = ["make", "-s", "-C", source, f"O={build}"]
    steps = (["defconfig"], [f"-j{jobs}", "vmlinux"], ["clean"])
    compiled = 0
    while True:
        for step in steps:
            done = subprocess.run([*make, *step], stdout=sys.stderr, check=False)
            if done.returncode:
                return done.returncode
        compiled += 1
        sys.stdout.write(json.dumps({"compiled": compiled}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(compile_for_ever(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(0)
