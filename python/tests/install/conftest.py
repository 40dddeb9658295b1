"""A wheel of this clone, installed into an environment from which the clone cannot be seen."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_BUILD = """
import json, sys
from scikit_build_core.build import build_wheel
print(build_wheel(sys.argv[1], json.loads(sys.argv[2])))
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel, built with the objects of the set-up, and with the firmware that it has built."""
    folder = tmp_path_factory.mktemp("wheel")
    prebuilt = tmp_path_factory.mktemp("prebuilt")
    for name in ("firmware", "linux-arm64"):
        shutil.copytree(Path(sys.prefix) / name, prebuilt / name)
    settings = {"cmake.define.LATENZ_PREBUILT": str(prebuilt)}
    with (ROOT / "build/setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [sys.executable, "-P", "-c", _BUILD, folder, json.dumps(settings)],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        fcntl.flock(lock, fcntl.LOCK_UN)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder / done.stdout.splitlines()[-1]


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """A function that runs a program of a new virtual environment, with the clone out of sight."""
    place = tmp_path_factory.mktemp("elsewhere")
    venv = place / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    lock = ROOT / "setup/python-base.lock"
    pip = [venv / "bin/python", "-m", "pip", "install", "-q", "--no-compile"]
    subprocess.run([*pip, "--require-hashes", "-r", lock], check=True)
    subprocess.run([*pip, "--no-deps", wheel], check=True)
    unshare = ["/usr/bin/unshare", "--mount", *(() if os.geteuid() == 0 else ("-r",))]
    script = '/usr/bin/mount -t tmpfs none "$1" && shift && exec "$@"'

    def run(program, *arguments, **environment):
        home = place / "home"
        home.mkdir(exist_ok=True)
        return subprocess.run(
            [*unshare, "/bin/sh", "-c", script, "sh", ROOT, venv / "bin" / program, *arguments],
            cwd=place,
            capture_output=True,
            text=True,
            env={"PATH": str(venv / "bin"), "HOME": str(home), "LC_ALL": "C.UTF-8", **environment},
        )

    return run
