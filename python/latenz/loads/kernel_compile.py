"""The compilation of a Linux kernel, over and over, as rteval loads a machine.

An experiment file cannot name the sources: what their Makefile says is executed.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, Literal

from latenz.files import is_private_place
from latenz.loads import compiling
from latenz.loads.base import PER_CPU, Instances, PerCpu, Stressor
from latenz.machine import measured_machine
from latenz.measuring.settings import StressorSettings
from latenz.obstacle import Obstacle, missing_program

SOURCE = "LATENZ_KERNEL_SOURCE"
"""Environment variable: folder with the sources of a kernel."""


class KernelCompileSettings(StressorSettings):
    """`make defconfig`, then `make vmlinux` again and again.

    The sources are those that the environment variable LATENZ_KERNEL_SOURCE names.
    """

    kind: Literal["kernel-compile"]
    jobs: Instances | PerCpu = PER_CPU
    """Compilers at once; `per-cpu`: one for each CPU that the load runs on."""


class KernelCompile(Stressor[KernelCompileSettings]):
    """Compiles in its scratch folder; the sources stay as they are."""

    name = "kernel-compile"
    settings_type = KernelCompileSettings

    @classmethod
    def missing(cls) -> Obstacle | None:
        """Return what is missing to compile a kernel, or None if nothing is."""
        if not measured_machine().is_here:
            return Obstacle("the sources of a kernel are not sent to a target")
        return missing_program("make", "apt-get install build-essential bc flex bison") or _wrong(
            os.environ.get(SOURCE, "")
        )

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        source = Path(os.environ[SOURCE]).resolve()
        jobs = self._count(self.settings.jobs)
        return [sys.executable, "-I", "-S", compiling.__file__, str(source), str(jobs)]

    def account(self) -> dict[str, Any]:
        """Return how many times the kernel was compiled to its end."""
        try:
            *_, last = (self.folder / self.output_file).read_text().splitlines()
            return {"compiled": int(json.loads(last)["compiled"])}
        except (ValueError, KeyError, TypeError):  # killed within the first one
            return {"compiled": 0}


def _wrong(source: str) -> Obstacle | None:
    folder = Path(source)
    if not source:
        fix = f"export {SOURCE}=/usr/src/linux-6.1 (or wherever the sources of a kernel are)"
        return Obstacle("no sources of a kernel are given", fix)
    if not (folder.is_absolute() and (folder / "Makefile").is_file()):
        return Obstacle(f"{source} has no Makefile", f"export {SOURCE}=, with its whole path")
    if not is_private_place(folder):
        return Obstacle(
            f"others than root and you can change {source}", "copy it to a folder of yours"
        )
    return None
