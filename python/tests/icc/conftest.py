import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def run_latenz():
    """Runs the command."""

    def run(*arguments):
        command = [sys.executable, "-m", "latenz", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)

    return run


@pytest.fixture(scope="session")
def channels(tmp_path_factory):
    """A program that makes channels by the headers."""
    program = tmp_path_factory.mktemp("icc") / "channels"
    source = Path(__file__).parent / "channels.cpp"
    command = ["g++", "-std=c++20", "-O1", f"-I{ROOT}/icc/include", source, "-o", program]
    subprocess.run(command, check=True)
    return program


@pytest.fixture
def filled(channels, tmp_path):
    """A file of 64 KiB with one channel of each kind and more."""
    path = tmp_path / "region"
    path.write_bytes(bytes(65536))
    subprocess.run([channels, "fill", path], check=True)
    return path
