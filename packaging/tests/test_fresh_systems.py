"""A release on systems that were never used: fresh root file systems of Debian, with no compiler.

Needs root, debootstrap and the network; takes minutes, so `make test-install` alone runs it. How
long each step takes is printed.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "build/release/fresh"
SUITES = {"bookworm": "deb12", "trixie": "deb13"}
_INSIDE = """
set -eu
root=$1
shift
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
exec chroot "$root" "$@"
"""


def own_version():
    command = [sys.executable, ROOT / "setup/own_version.py"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="session")
def release():
    """The folder of the last commit's release, built once for all tests."""
    folder = PLACE / own_version()
    if not folder.exists():
        partial = folder.with_name("partial")
        shutil.rmtree(partial, ignore_errors=True)
        command = [ROOT / "setup/release", "--once", "--processor", "x86_64", "-o", partial]
        subprocess.run(command, check=True)
        partial.rename(folder)
    return folder


class System:
    """A fresh system.

    Args:
        suite: Debian's name of the release.
        place: Where it is unpacked.
    """

    def __init__(self, suite, place):
        self.root = place / suite
        packed = PLACE / f"{suite}.tar"
        if not packed.exists():
            PLACE.mkdir(parents=True, exist_ok=True)
            base = place / "base"
            self._timed(
                *("debootstrap", "--variant=minbase", "--include=python3-venv,ca-certificates"),
                *(suite, base),
            )
            subprocess.run(["tar", "-C", base, "-cf", f"{packed}.partial", "."], check=True)
            Path(f"{packed}.partial").rename(packed)
            shutil.rmtree(base)
        self.root.mkdir()
        subprocess.run(["tar", "-C", self.root, "-xf", packed], check=True)
        for shared in ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt"):
            shutil.copyfile(Path("/", shared), self.root / shared)
        (self.root / "release").mkdir()

    def give(self, file):
        """Put a file of the release there, and return its path inside."""
        shutil.copy(file, self.root / "release")
        return f"/release/{file.name}"

    def run(self, *command, codes=(0,)):
        """Run a command inside; tell how long it took."""
        around = ["unshare", "--mount", "sh", "-c", _INSIDE, "sh", self.root]
        kept = {key: os.environ[key] for key in ("PIP_CERT", "SSL_CERT_FILE") if key in os.environ}
        path = "/opt/latenz/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = {"PATH": path, "HOME": "/root", "LC_ALL": "C.UTF-8", **kept}
        return self._timed(*around, *command, codes=codes, environment=environment, named=command)

    def _timed(self, *command, codes=(0,), environment=None, named=()):
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        took = time.monotonic() - began
        sys.stdout.write(f"{took:7.1f} s  {' '.join(map(str, named or command))[:100]}\n")
        assert done.returncode in codes, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout


@pytest.fixture
def system(request, tmp_path):
    made = System(request.param, tmp_path)
    yield made
    shutil.rmtree(made.root, ignore_errors=True)


def measure_and_report(system):
    """What a user does first; no compiler is there."""
    for compiler in ("gcc", "g++", "cc", "c++", "clang"):
        assert not (system.root / "usr/bin" / compiler).exists()
    found = json.loads(system.run("latenz", "self-check", "--json"))
    assert (found["kind"], found["whole"]) == ("installed", True)
    system.run(
        *("latenz", "run", "quick", "--only", "idle-wakeup", "-o", "/root/run"), codes=(0, 1, 3)
    )
    system.run("latenz", "report", "/root/run", "-o", "/root/run.html")
    assert (system.root / "root/run.html").stat().st_size > 1_000_000
    shown = json.loads(system.run("latenz", "show", "/root/run", "--json"))
    assert shown["sample_sets"][0]["n"] > 5_000


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("system", SUITES, indirect=True)
def test_the_wheel(system, release):
    [wheel] = release.glob("*_x86_64.whl")
    system.run("python3", "-m", "venv", "/opt/latenz")
    system.run("/opt/latenz/bin/pip", "install", "-q", system.give(wheel))
    measure_and_report(system)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("system", SUITES, indirect=True)
def test_the_debian_package(system, release):
    suite = system.root.name
    [package] = release.glob(f"*+{SUITES[suite]}_amd64.deb")
    inside = system.give(package)
    system.run("apt-get", "-q", "update")
    system.run("apt-get", "-q", "install", "-y", "--no-install-recommends", inside)
    measure_and_report(system)
    system.run("apt-get", "-q", "purge", "-y", "latenz")
    assert not (system.root / "usr/lib/latenz").exists()
    assert not (system.root / "usr/bin/latenz").exists()


@pytest.mark.timeout(3600)
def test_the_debian_packages_satisfy_lintian(release):
    packages = sorted(release.glob("*.deb"))
    assert len(packages) == 3
    for package in packages:
        command = ["lintian", "--fail-on", "error,warning", "--allow-root", package]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
