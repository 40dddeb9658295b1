"""A user at a terminal: commands one after the other, each with its exit code and its answer."""

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLACES = {
    "DATA": ROOT / "python/tests/data",
    "SYSTEM": ROOT / "experiments/systems/can-gateway.toml",
    "DOCS": ROOT / "docs",
}
Latenz = Callable[..., str]


@pytest.fixture
def latenz(tmp_path: Path) -> Latenz:
    """Give a command line without its first word, the exit code, and what must be answered."""

    def call(line: str, code: int, *says: str) -> str:
        for name, place in PLACES.items():
            line = line.replace(name, str(place))
        done = subprocess.run(
            [sys.executable, "-m", "latenz", *shlex.split(line)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=250,
        )
        answer = done.stdout + done.stderr
        assert done.returncode == code, f"$ latenz {line}\n{answer[-3000:]}"
        assert "Traceback" not in answer
        if code == 2:
            assert done.stderr.count("\n") == 1, answer
        squeezed = " ".join(answer.split())
        for each in says:
            assert each in squeezed, f"{each!r} is not said by: latenz {line}\n{answer[-3000:]}"
        return answer

    return call
