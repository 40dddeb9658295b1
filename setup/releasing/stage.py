"""One build of everything, in a fresh clone of the last commit, with no path or time in it."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PRESETS = ("firmware-a53", "firmware-r5", "firmware-r52", "linux-arm64")
_BACKEND = """
import json, sys
from scikit_build_core.build import build_sdist, build_wheel
kind, folder, settings = sys.argv[1:]
print(build_sdist(folder) if kind == "sdist" else build_wheel(folder, json.loads(settings)))
"""
_LIBRARIES = ("libzstd-dev", "zlib1g-dev", "libpython3.11-dev")


class Failed(Exception):  # noqa: N818 - as BadInput is
    """A release cannot be built; the message says why on one line."""


@dataclass(frozen=True)
class Processor:
    """A kind of machine that wheels are for.

    Attributes:
        debian: Debian's name of it.
        platform: The oldest platform that a wheel must run on, as auditwheel names it. RHEL 9 and
            Ubuntu 22.04 are it.
        toolchain: CMake's file for it; None: this machine's own.
    """

    debian: str
    platform: str
    toolchain: str | None


PROCESSORS = {
    "x86_64": Processor("amd64", "manylinux_2_34_x86_64", None),
    "aarch64": Processor("arm64", "manylinux_2_34_aarch64", "cmake/toolchain-wheel-arm64.cmake"),
}


def say(text: str) -> None:
    """Tell a step on standard error."""
    sys.stderr.write(f"setup/release: {text}\n")


class Stage:
    """A build.

    Args:
        root: The checkout; its `.venv` has the tools.
        place: An empty folder for the build.
        results: Takes the files of the release.
    """

    def __init__(self, root: Path, place: Path, results: Path) -> None:
        self.root = root
        self.results = results
        self.checkout = place / "latenz"
        self._place = place
        self.run("git", "clone", "-q", "--no-hardlinks", root, self.checkout)
        revision = self.output("git", "-C", root, "rev-parse", "HEAD")
        self.run("git", "-C", self.checkout, "checkout", "-q", "--detach", revision)
        (self.checkout / ".venv").symlink_to(root / ".venv")

    @cached_property
    def epoch(self) -> str:
        """The time of the commit, in seconds: that of everything in the release."""
        return self.output("git", "-C", self.root, "log", "-1", "--format=%ct")

    @cached_property
    def version(self) -> str:
        """The version of what is built."""
        return self.output(sys.executable, self.checkout / "setup/own_version.py")

    @cached_property
    def prebuilt(self) -> Path:
        """The folder of programs for boards and other machines, built."""
        folder = self._place / "prebuilt"
        say("firmware, hypervisor, programs for boards")
        for preset in PRESETS:
            self.run("cmake", "--preset", preset, folder=self.checkout)
            self.run("cmake", "--build", "--preset", preset, folder=self.checkout)
            self.run(
                *("cmake", "--install", f"build/{preset}", "--prefix", folder, "--strip"),
                folder=self.checkout,
            )
        if (self.checkout / "agent/build").exists():
            say("agents")
            self.run(self.checkout / "agent/build", folder / "agents", folder=self.checkout)
        return folder

    def source_archive(self) -> Path:
        """Build the source archive."""
        say("source archive")
        return self._built_by_backend("sdist", self.checkout, {}, {})

    def wheel(self, archive: Path, processor: str) -> Path:
        """Build a wheel from the source archive, and let auditwheel say what it runs on.

        Raises:
            Failed: It needs more than the platform has.
        """
        say(f"wheel for {processor}")
        kind = PROCESSORS[processor]
        source = self._place / f"source-{processor}"
        source.mkdir()
        self.run("tar", "-C", source, "-xf", archive)
        [folder] = source.iterdir()
        settings = {
            "cmake.define.LATENZ_PREBUILT": str(self.prebuilt),
            "cmake.define.LATENZ_WHEEL": "ON",
        }
        environment = {}
        if kind.toolchain:
            settings["cmake.define.CMAKE_TOOLCHAIN_FILE"] = str(folder / kind.toolchain)
            settings["cmake.define.LATENZ_SYSROOT"] = str(self._libraries(kind))
            environment["_PYTHON_HOST_PLATFORM"] = f"linux-{processor}"
        made = self._built_by_backend("wheel", folder, settings, environment)
        return self._for_platform(made, kind.platform)

    def _for_platform(self, wheel: Path, platform: str) -> Path:
        """Name a wheel by the oldest platform that it is said to run on, if that is true.

        auditwheel judges what runs on that platform; what runs on boards is none of it.
        """
        tool = (sys.executable, "-P", "-m", "wheel")
        place = fresh(self._place / "judged")
        self.run(*tool, "unpack", "-d", place, wheel)
        [unpacked] = place.iterdir()
        for name in ("firmware", "linux-arm64", "agents"):
            shutil.rmtree(unpacked / "latenz" / name, ignore_errors=True)
        self.run(*tool, "pack", "-d", fresh(place / "packed"), unpacked)
        [judged] = place.glob("packed/*.whl")
        auditwheel = (sys.executable, "-P", "-m", "auditwheel", "repair", "--plat", platform)
        self.run(*auditwheel, "--only-plat", "-w", place / "named", judged)
        [named] = place.glob("named/*.whl")
        with zipfile.ZipFile(named) as packed:
            if any(name.startswith("latenz.libs/") for name in packed.namelist()):
                raise Failed(f"{wheel.name}: needs libraries that {platform} does not have")
        self.run(*tool, "tags", "--platform-tag", platform, "--remove", wheel)
        return self.results / named.name

    def _libraries(self, kind: Processor) -> Path:
        """Return a folder with the headers and libraries of another kind of machine."""
        from latenz.boards.packages import fetch

        folder = self._place / f"sysroot-{kind.debian}"
        for package in fetch(_LIBRARIES, architecture=kind.debian):  # type: ignore[arg-type]
            self.run("dpkg-deb", "-x", package.path, folder)
        return folder

    def _built_by_backend(
        self, what: str, folder: Path, settings: Mapping[str, str], environment: Mapping[str, str]
    ) -> Path:
        told = self.output(
            *(sys.executable, "-P", "-c", _BACKEND, what, self.results, json.dumps(settings)),
            folder=folder,
            environment=environment,
        )
        return self.results / told.splitlines()[-1]

    def _environment(self) -> dict[str, str]:
        """Return the environment of a build: no path of this machine gets into what is built."""
        flags = f"-ffile-prefix-map={self._place}=/latenz"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("CMAKE_")}
        return {
            **kept,
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "PYTHONPATH": str(self.root / "setup"),
            "SOURCE_DATE_EPOCH": self.epoch,
            "CCACHE_DISABLE": "1",
            "CFLAGS": flags,
            "CXXFLAGS": flags,
            "CMAKE_BUILD_PARALLEL_LEVEL": str(min(os.cpu_count() or 1, 8)),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
        }

    def run(self, *command: object, folder: Path | None = None) -> None:
        """Run a command.

        Raises:
            Failed: It failed; the end of its output is told.
        """
        self._run(command, folder, {})

    def output(
        self,
        *command: object,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command and return what it prints, without the last line's end.

        Raises:
            Failed: As `run`.
        """
        return self._run(command, folder, environment or {}).strip()

    def _run(
        self,
        command: tuple[object, ...],
        folder: Path | None,
        environment: Mapping[str, str],
    ) -> str:
        words = [os.fspath(word) if isinstance(word, Path) else str(word) for word in command]
        around = dict(os.environ) if words[0] == "git" else self._environment()
        done = subprocess.run(
            words,
            cwd=folder,
            env={**around, **environment},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            sys.stderr.write("".join(f"  {line}\n" for line in _end_of(done)))
            raise Failed(f"{Path(words[0]).name} {words[1] if words[1:] else ''} failed, see above")
        return done.stdout


def _end_of(done: "subprocess.CompletedProcess[str]") -> list[str]:
    return [*done.stdout.splitlines()[-30:], *done.stderr.splitlines()[-30:]]


def fresh(folder: Path) -> Path:
    """Return a folder, emptied."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
