"""The example of a control loop: it runs, and what it measures can be judged by Latenz."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "icc/examples"
BARE_METAL = {
    "arm-none-eabi-g++": ["-mcpu=cortex-r5", "-DLATENZ_CONTROL_PLATFORM=latenz::icc::ZynqMp"],
    "aarch64-linux-gnu-g++": ["-DLATENZ_CONTROL_PLATFORM=latenz::icc::ZynqMp"],
}


def compiled(compiler, source, output, *options):
    command = [compiler, "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", *options]
    subprocess.run([*command, f"-I{ROOT}/icc/include", source, "-o", output], check=True)
    return output


@pytest.fixture(scope="module")
def control_loop(tmp_path_factory):
    output = tmp_path_factory.mktemp("example") / "control_loop"
    return compiled("g++", EXAMPLES / "control_loop.cpp", output)


def test_a_run_is_reported_and_judged(control_loop, tmp_path):
    csv = tmp_path / "response.csv"
    command = [control_loop, "--cycles", "3000", "--csv", csv]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert answer.returncode == 0, answer.stderr
    first = answer.stdout.splitlines()[0]
    replies = len(csv.read_text().splitlines()) - 1
    assert replies > 0
    assert first.startswith(f"sensor request to actuator reply: n {replies}, without reply")
    assert replies + int(first.rsplit(" ", 1)[1]) == 3000
    command = [sys.executable, "-m", "latenz", "show", csv, "--deadline", "30us", "--json"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert shown.returncode in (0, 1, 3), shown.stderr
    (summary,) = json.loads(shown.stdout)["sample_sets"]
    assert summary["n"] == replies


@pytest.mark.parametrize("arguments", [("--cycles",), ("--cycles", "0"), ("--what",), ("x", "y")])
def test_a_mistake_is_one_line(control_loop, arguments):
    answer = subprocess.run([control_loop, *arguments], capture_output=True, text=True, timeout=600)
    assert answer.returncode == 2
    assert answer.stderr.startswith("usage: control_loop ")
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("compiler", BARE_METAL)
def test_the_drive_needs_no_operating_system(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    options = ["-ffreestanding", "-fno-exceptions", "-fno-rtti", "-c", *BARE_METAL[compiler]]
    compiled(compiler, EXAMPLES / "drive_bare_metal.cpp", tmp_path / "drive.o", *options)
