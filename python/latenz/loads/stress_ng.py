"""The publications' loads, by real stress-ng."""

import os
import re
import shutil
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from latenz.durations import whole_seconds
from latenz.files import scratch_place
from latenz.loads.base import PER_CPU, Instances, PerCpu, SettingsT, Stressor
from latenz.machine import measured_machine
from latenz.measuring.settings import StressorSettings
from latenz.obstacle import Obstacle, missing_program
from latenz.programs import program_version
from latenz.settings import Size

INSTALL = "apt-get install stress-ng"

EXCLUDED = {
    "bigheap": "grows its heap until the kernel's out-of-memory killer ends a process",
    "brk": "grows its data segment until the out-of-memory killer ends a process",
    "stack": "grows its stack until the out-of-memory killer ends a process",
    "env": "grows its environment until the out-of-memory killer ends a process",
    "oom-pipe": "fills pipes until the out-of-memory killer ends a process",
    "resources": "takes pipes, mappings, files and memory until the machine has none left",
    "mmapfork": "32 children of each instance take what free memory there is",
    "mmaphuge": "takes huge pages as long as there are any",
    "mlockmany": "locks as much memory as it may, which can hang the machine",
    "forkheavy": "forks processes with many resources until the machine refuses more",
    "vforkmany": "forks processes until the machine refuses more",
    "dev-shm": "fills /dev/shm, which other programs need",
    "tmpfs": "fills any temporary file system of the machine, such as /run",
    "swap": "adds swap areas to the machine, which stay if it is killed",
    "watchdog": "opens the hardware watchdog, which reboots the machine if not closed in order",
    "cpu-online": "takes CPUs offline, among them those that are measured",
    "smi": "raises System Management Interrupts, which not every firmware survives",
    "clock": "calls clock_settime(2); a clock that is set spoils the measurement",
    "schedpolicy": "gives itself random real-time priorities, so that it preempts the probe:"
    " its own run time would be measured, not the system's latency",
    "softlockup": "occupies the CPUs at the highest real-time priority and can hardly be stopped",
    "hrtimers": "runs at real-time priority beside the probe",
    "cyclic": "runs at real-time priority beside the probe: it is a latency probe itself",
}
"""Stressors that `stress-ng-all` leaves out of the classes it offers, each with the reason."""

DISTURBING = {
    "schedpolicy": "gives itself random real-time priorities",
    "softlockup": "occupies the CPUs at the highest real-time priority",
    "hrtimers": "runs at real-time priority",
    "cyclic": "runs at real-time priority: it is a latency probe itself",
    "clock": "sets the clock",
}
"""Stressors whose own run time would be measured beside a probe, not the system's latency."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


def _stressor_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name of a stress-ng stressor, such as cpu or sigsegv")
    return name


Name = Annotated[str, AfterValidator(_stressor_name)]


class StressNgCpuSettings(StressorSettings):
    """`stress-ng --cpu N --cpu-method all`, the load of `alonso2021` with N = 4."""

    kind: Literal["stress-ng-cpu"]
    instances: Instances | PerCpu = PER_CPU
    """Processes; `per-cpu`: one for each CPU that the load runs on."""
    method: Name = "all"


class StressNgOneSettings(StressorSettings):
    """`stress-ng --NAME N`: one of its stressors; on boards, which nothing can harm."""

    kind: Literal["stress-ng"]
    stressor: Name
    """Such as fork or mmap."""
    instances: Instances = 2

    @model_validator(mode="after")
    def _leaves_the_probe_alone(self) -> "StressNgOneSettings":
        if self.stressor in DISTURBING:
            raise ValueError(f"{self.stressor} {DISTURBING[self.stressor]}; take another")
        return self


class NetworkSettings(StressorSettings):
    """TCP and UDP between processes of this machine, over its loopback device."""

    kind: Literal["network"]
    instances: Instances | PerCpu = PER_CPU
    """Pairs of processes for each of the two protocols; `per-cpu`: one for each CPU."""


class DiskSettings(StressorSettings):
    """Files that are written, synchronised and read, in a temporary folder (`TMPDIR`)."""

    kind: Literal["disk"]
    instances: Instances = 1
    """Processes, each with a file of its own."""
    file_size: Annotated[Size, Field(ge=1 << 20, le=1 << 40)] = 64 << 20


class StressNgAllSettings(StressorSettings):
    """`stress-ng --all N` of `alonso2024`; on this machine by class, without what would harm it."""

    kind: Literal["stress-ng-all"]
    instances: Instances = 4
    classes: tuple[
        Literal["all", "cpu", "cpu-cache", "interrupt", "memory", "pipe", "scheduler", "vm"], ...
    ] = Field(default=("interrupt", "vm"), min_length=1)
    """Classes of stress-ng; `all`, which only boards can run, is `--all` itself as published.
    `alonso2024` reports the same results for these two alone as for
    `--all`. The classes left out (device, filesystem, gpu, io, network, os, security) act on
    the devices, disks, network and accounts of the machine's owner."""
    exclude: tuple[Name, ...] = ()
    """Stressors to leave out besides those of `EXCLUDED`."""
    parallel: bool = False
    """True: all at once, as the publication. False: one kind after the other, a second or more
    each."""

    @model_validator(mode="after")
    def _all_or_some(self) -> "StressNgAllSettings":
        if self.everything and (len(self.classes) > 1 or self.exclude):
            raise ValueError("the class all has no company and no exceptions; leave them out")
        return self

    @property
    def everything(self) -> bool:
        """Whether it is `--all` itself."""
        return "all" in self.classes


_METRICS = "stress-ng.yaml"


class _StressNg(Stressor[SettingsT]):
    """What these loads share."""

    @classmethod
    def missing(cls) -> Obstacle | None:
        """Return that stress-ng is not here, or None if it is."""
        return missing_program("stress-ng", INSTALL)

    def _common(self) -> list[str]:
        # Longer than needed: the load must not end before the measurement, whatever delays it.
        limit = 2 * whole_seconds(self.planned_ns) + 60
        return ["stress-ng", f"--timeout={limit}", "--metrics", f"--yaml={self.place / _METRICS}"]

    def account(self) -> dict[str, Any]:
        """Return the version and what each stressor did (bogo operations, CPU seconds)."""
        path = self.folder / _METRICS
        text = path.read_text() if path.exists() else ""
        metrics = read_metrics(text)
        return {
            "version": program_version("stress-ng", "--version"),
            "stressors": {
                name: {key: figures[key] for key in _EVIDENCE if key in figures}
                for name, figures in metrics.items()
                if figures.get("wall-clock-time", 0) > 0
            },
            "without_a_turn": [
                name for name, figures in metrics.items() if not figures.get("wall-clock-time")
            ],
        }


class StressNgCpu(_StressNg[StressNgCpuSettings]):
    """Computes with all of stress-ng's CPU methods, one after the other."""

    name = "stress-ng-cpu"
    settings_type = StressNgCpuSettings

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        count = self._count(self.settings.instances)
        return [*self._common(), f"--cpu={count}", f"--cpu-method={self.settings.method}"]


class Network(_StressNg[NetworkSettings]):
    """Sends over TCP and UDP to itself."""

    name = "network"
    settings_type = NetworkSettings

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        count = self._count(self.settings.instances)
        return [*self._common(), f"--sock={count}", f"--udp={count}"]


class Disk(_StressNg[DiskSettings]):
    """Writes and reads files in its scratch folder."""

    name = "disk"
    settings_type = DiskSettings

    @classmethod
    def obstacle(cls, settings: DiskSettings) -> Obstacle | None:
        """Return why this load cannot run here, or None if it can."""
        if not measured_machine().is_here:
            return Obstacle("the folder of a target's programs is in memory, not on a disk")
        place = scratch_place()
        wanted = 2 * settings.instances * settings.file_size
        if shutil.disk_usage(place).free < wanted:
            reason = f"{place} has less than {wanted >> 20} MiB free"
            return Obstacle(reason, "make room, name another place by TMPDIR, or write less")
        return super().obstacle(settings)

    def arguments(self) -> list[str]:
        """Return the program with its arguments; its files go where it is started."""
        settings = self.settings
        return [
            *self._common(),
            f"--hdd={settings.instances}",
            f"--hdd-bytes={settings.file_size}",
            "--hdd-opts=fsync",
        ]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the sample sets must say about the load."""
        place = scratch_place()
        if file_system_of(place) not in ("tmpfs", "ramfs"):
            return ()
        return (f"the files of the load lay in memory, not on a disk: {place}; see TMPDIR",)


def file_system_of(path: Path) -> str | None:
    """Return the type of the file system that a path is on; None if that cannot be told."""
    device = path.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        before, _, after = line.partition(" - ")
        if before.split()[2] == wanted:
            return after.split()[0]
    return None


class StressNgAll(_StressNg[StressNgAllSettings]):
    """Runs the stressors of whole classes, four of each kind.

    By default one kind after the other, each for its share of the planned time but at least a
    second; those that got no turn in a short measurement are named in the account. Real
    `--all 4` starts more than a thousand processes at once: `parallel` does the same for the
    chosen classes.
    """

    name = "stress-ng-all"
    settings_type = StressNgAllSettings

    @classmethod
    def obstacle(cls, settings: StressNgAllSettings) -> Obstacle | None:
        """Return why this load cannot run here, or None if it can."""
        if settings.everything:
            reason = "all of stress-ng would act on the disks, devices and network of this machine"
            return Obstacle(reason, 'name classes, such as ["interrupt", "vm"]')
        return super().obstacle(settings)

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        chosen = self.members()
        count = self.settings.instances
        common = self._common()
        if self.settings.parallel:
            return [*common, *(f"--{name}={count}" for name in chosen)]
        # A quarter more, since some end at once where the machine lacks what they need.
        turn = max(1, whole_seconds(self.planned_ns * 5 // 4 // len(chosen)))
        excluded = ",".join(name for name in self._class_members() if name not in chosen)
        classes = ",".join(self.settings.classes)
        common[1] = f"--timeout={turn}"
        return [
            *common,
            f"--sequential={count}",
            f"--class={classes}",
            *([f"--exclude={excluded}"] if excluded else []),
        ]

    def members(self) -> list[str]:
        """Return the stressors that run."""
        left_out = {*EXCLUDED, *self.settings.exclude}
        return [name for name in self._class_members() if name not in left_out]

    def _class_members(self) -> list[str]:
        members: dict[str, None] = {}
        for group in self.settings.classes:
            told = measured_machine().output_of(["stress-ng", "--class", f"{group}?"], 60) or ""
            members |= dict.fromkeys(told.partition("stressors:")[2].split())
        return list(members)


_EVIDENCE = ("bogo-ops", "wall-clock-time", "user-time", "system-time")


def read_metrics(text: str) -> dict[str, dict[str, float]]:
    """Read the metrics of stress-ng's YAML file: for each stressor its figures."""
    found: dict[str, dict[str, float]] = {}
    current: dict[str, float] = {}
    for line in text.splitlines():
        if match := re.fullmatch(r"\s*- stressor: (\S+)", line):
            current = found.setdefault(match[1], {})
        elif match := re.fullmatch(r"\s+([\w-]+): (\d+(?:\.\d+)?)", line):
            current[match[1]] = float(match[2])
    return found
