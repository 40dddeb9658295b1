"""The first programs of icc's README: they run as printed, and say why they cannot attach."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = re.compile(r"```cpp\n// ([\w.]+)\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    """The programs by file name; their channel gets a name of this test's own."""
    text = (ROOT / "icc/README.md").read_text(encoding="utf-8")
    own = f"/latenz-readme-{os.getpid()}"
    return {name: body.replace('"/robot"', f'"{own}"') for name, body in PROGRAM.findall(text)}


def compiled(folder: Path, name: str, header: str, programs: dict[str, str]) -> Path:
    folder.mkdir()
    (folder / "robot.hpp").write_text(header)
    (folder / name).write_text(programs[name])
    output = folder / Path(name).stem
    options = ["-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/icc/include"]
    subprocess.run(["g++", *options, folder / name, "-o", output], check=True)
    return output


def test_they_run_as_printed_and_a_type_that_differs_is_named(
    printed: dict[str, str], tmp_path: Path
) -> None:
    header = printed["robot.hpp"]
    planner = compiled(tmp_path / "planner", "planner.cpp", header, printed)
    servo = compiled(tmp_path / "servo", "servo.cpp", header, printed)
    unlike = header.replace("float angle;", "double angle;", 1)
    other = compiled(tmp_path / "other", "servo.cpp", unlike, printed)
    with subprocess.Popen([servo], stdout=subprocess.PIPE, text=True) as serving:
        done = subprocess.run([planner], capture_output=True, text=True, timeout=600, check=False)
        told = serving.communicate(timeout=600)[0]
    assert done.stdout == "planner: cycle 1000, angle 0.500\n"
    assert told == "servo: angle 0.500\n"
    with subprocess.Popen([planner], stdout=subprocess.PIPE, text=True) as waiting:
        refused = subprocess.run([other], capture_output=True, text=True, timeout=600, check=False)
        waiting.kill()
    name = re.search(r"/latenz-readme-\d+", printed["servo.cpp"])
    assert name is not None
    Path(f"/dev/shm{name[0]}").unlink(missing_ok=True)
    assert refused.returncode == 1
    assert refused.stdout == (
        "servo: no planner: payload differs: here float64 'angle' at 0,"
        " in memory float32 'angle' at 0\n"
    )
