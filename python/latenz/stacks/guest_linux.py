"""What stacks with Linux on the board share: its programs, the load in it, what it sends back."""

import io
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenz.boards import images
from latenz.durations import whole_seconds
from latenz.engines.cyclictest import (
    Cyclictest,
    CyclictestSettings,
    cyclictest_command,
    cyclictest_results,
)
from latenz.engines.robot import (
    KINDS,
    RobotSettings,
    robot_metadata,
    robot_notes,
    robot_options,
)
from latenz.engines.wakeup import WakeupSettings, wakeup_options, wakeup_threads
from latenz.errors import BadInput
from latenz.loads.base import PER_CPU
from latenz.loads.stress_ng import (
    DISTURBING,
    StressNgAllSettings,
    StressNgCpuSettings,
    StressNgOneSettings,
)
from latenz.measuring.settings import StressorSettings
from latenz.measuring.wakeup_account import WakeupAccount
from latenz.model import SampleSet
from latenz.programs import board_program
from latenz.robot_account import ACCOUNT_FILE, Control
from latenz.settings import format_cpu_list
from latenz.stacks.base import Job
from latenz.store.run import open_recording
from latenz.unpacking import Damaged, members

if TYPE_CHECKING:
    from latenz.boards.console import Received
    from latenz.measuring.condition import Condition

RESULTS = "results.tar.gz"
"""Name of the file that the first program sends at the end."""
PACKAGES = ("busybox-static", "rt-tests", "stress-ng")
PROGRAMS = ("/bin/busybox", "/usr/bin/cyclictest", "/usr/bin/stress-ng")
_GUEST_FOLDER = Path("/results")
_MEMBER = re.compile(r"\./((?:[a-z0-9]+/)?[a-z0-9]+(?:\.[a-z0-9]+)?)")
MOST_UNPACKED = 1 << 32
"""Bytes that what a board or guest sends may unpack to."""


def initrd(
    name: str,
    flavour: images.Flavour,
    *further: str,
    files: Mapping[str, Path | bytes] | None = None,
) -> images.Image:
    """Return the small Linux system that measures, or stands beside what is measured.

    Args:
        name: Of the script in `stacks/init` that is started first, without its suffix.
        flavour: Of the kernel.
        further: Native programs of ours besides `latenz-send`.
        files: More files by their path on the board.

    Raises:
        BadInput: Something is not installed, or cannot be fetched.
    """
    programs = ("latenz-send", *further)
    return images.initrd(
        name,
        script("common") + script(name),
        packages=PACKAGES,
        programs=PROGRAMS,
        files={
            "/bin/spin": script("spin").encode(),
            **{f"/bin/{each}": board_program(each) for each in programs},
            **(files or {}),
        },
        kernel=flavour,
    )


def script(name: str) -> str:
    """Return a script of `stacks/init`."""
    return resources.files("latenz.stacks").joinpath("init", f"{name}.sh").read_text()


def load_command(
    load: StressorSettings, cpus: tuple[int, ...] | None = None, *, beside_probe: bool = False
) -> list[str]:
    """Return the program that is the load on a board, with its arguments; empty for none.

    Of the wanted classes nothing is left out here, and all run at once, as in the publication: the
    machine they could harm is thrown away.

    Args:
        load: The load's settings.
        cpus: What it is pinned to; None: not pinned.
        beside_probe: Whether a measuring thread runs under the same Linux. What would run at
            real-time priorities beside it is then left out.

    Raises:
        BadInput: The load does not run on boards.
    """
    cpus = load.cpus or cpus
    pinned = ["taskset", "-c", format_cpu_list(cpus)] if cpus else []
    if load.kind == "none":
        return []
    if load.kind == "spin":
        return [*pinned, "spin"]
    if isinstance(load, StressNgCpuSettings):
        # To stress-ng 0 means as many as there are CPUs.
        count = load.instances if load.instances != PER_CPU else len(cpus or ())
        chosen = ["--cpu", str(count), "--cpu-method", load.method]
    elif isinstance(load, StressNgAllSettings):
        left_out = [*load.exclude, *(DISTURBING if beside_probe else ())]
        chosen = ["--all", str(load.instances)]
        chosen += [] if load.everything else ["--class", ",".join(load.classes)]
        chosen += ["--exclude", ",".join(left_out)] if left_out else []
    elif isinstance(load, StressNgOneSettings):
        chosen = [f"--{load.stressor}", str(load.instances)]
    else:
        raise BadInput("does not run on boards", load.kind, "take stress-ng-cpu or stress-ng-all")
    return [*pinned, "stress-ng", *chosen, "--timeout", "0", "--metrics-brief"]


def measuring_command(job: Job, cpus: tuple[int, ...]) -> list[str]:
    """Return the engine's program, with its arguments, for Linux on a board.

    cyclictest is told how many loops to do, which is exact where `--duration` takes seconds.
    """
    settings = job.condition.engine
    duration_ns = job.condition.duration_ns
    if isinstance(settings, CyclictestSettings):
        loops = max(1, duration_ns // settings.period)
        return cyclictest_command(settings, cpus, f"--loops={loops}", _GUEST_FOLDER)
    if isinstance(settings, WakeupSettings):
        options = wakeup_options(settings, cpus, duration_ns, _GUEST_FOLDER)
        return ["latenz-wakeup", *options]
    if isinstance(settings, RobotSettings):
        cpu = cpus[-1] if settings.is_pinned else None
        return ["latenz-robot", *robot_options(settings, cpu, duration_ns, _GUEST_FOLDER)]
    raise BadInput(f"the engine {settings.engine!r} is not a program of Linux", job.condition.name)


def kernel_options(**values: object) -> str:
    """Return options for the first program, as it finds them on the kernel's command line."""
    return " ".join(f'latenz.{name}="{value}"' for name, value in values.items() if value != "")


def linux_sets(
    job: Job, received: "Received", cpus: tuple[int, ...], **known: Any
) -> list[SampleSet]:
    """Return a sample set for each measured CPU (of a robot, for each kind) of what was sent.

    Args:
        job: What was measured.
        received: What the board sent.
        cpus: As the measuring program was told.
        known: Further metadata.

    Raises:
        BadInput: The results did not arrive, or are damaged.
    """
    folder = job.folder / "received"
    _unpack(received, folder, job.folder)
    notes = tuple(received.notes)
    settings = job.condition.engine
    if isinstance(settings, CyclictestSettings):
        measured = cyclictest_results(settings, cpus, folder)
        known["period_ns"] = settings.period
        return [_described(job, each, cpu, notes, known) for cpu, each in measured]
    if isinstance(settings, RobotSettings):
        return _robot_sets(job, settings, folder, notes, known)
    assert isinstance(settings, WakeupSettings)  # noqa: S101 - as in measuring_command
    account = WakeupAccount.of(folder)
    found = []
    for name, _ in wakeup_threads(settings, cpus):
        about = job.metadata.model_copy(update=account.alone(name))
        recorded = open_recording(folder / name, about)
        if recorded is not None:
            found.append(_described(job, recorded, about.cpu, notes, known, name))
    return found


def _robot_sets(
    job: Job,
    settings: RobotSettings,
    folder: Path,
    notes: tuple[str, ...],
    known: Mapping[str, Any],
) -> list[SampleSet]:
    control = Control.read(folder / ACCOUNT_FILE)
    notes = (*robot_notes(settings, control), *notes)
    found = []
    for kind in KINDS:
        about = {
            **robot_metadata(settings, control.cpu, kind),
            "tool_version": control.program_version,
        }
        recorded = open_recording(folder / kind, job.metadata.model_copy(update=about))
        if recorded is not None:
            found.append(_described(job, recorded, control.cpu, notes, known, kind))
    return found


def _described(
    job: Job,
    sample_set: SampleSet,
    cpu: int | None,
    notes: tuple[str, ...],
    known: Mapping[str, Any],
    kind: str | None = None,
) -> SampleSet:
    """Return a set with what is known of the condition, under its name and its kind or the CPU."""
    about = job.metadata.model_dump(include=_FROM_JOB)
    name = f"{job.metadata.name}/{kind or ('all' if cpu is None else f'cpu{cpu}')}"
    kept = (*sample_set.metadata.notes, *notes)
    return sample_set.with_metadata(**{**about, "name": name, "cpu": cpu, "notes": kept, **known})


_FROM_JOB = {"time_base", "bench", "stack", "stressor", "condition", "deadlines"}


def _unpack(received: "Received", folder: Path, run: Path) -> None:
    """Write the files that the first program sent into a folder.

    Only plain files with plain names are taken: what comes from a board may be anything.
    """
    archive = received.files.get(RESULTS)
    console = str(run / "console.log")
    if archive is None:
        told = f" ({received.notes[-1]})" if received.notes else ""
        raise BadInput(f"the board sent no results{told}", console)
    try:
        for member in members(io.BytesIO(archive), MOST_UNPACKED):
            named = _MEMBER.fullmatch(member.name)
            if named and member.kind == "file":
                path = folder / named[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                member.write(path)
    except (Damaged, OSError) as error:
        raise BadInput(f"{RESULTS} did not arrive whole ({error})", console) from None
    if not any(folder.glob("*.json")):
        told = "; ".join(received.notes) or received.last_words
        raise BadInput(f"the measuring program left no results: {told}", console)


def settle_us(load: StressorSettings) -> int:
    """Return how long the load runs before measuring starts, as `usleep` takes it."""
    return load.settle // 1000


def output_file(job: Job) -> str:
    """Return the name of the file that takes what the measuring program prints."""
    engine = job.condition.engine.engine
    return Cyclictest.output_file if engine == "cyclictest" else f"{engine}.out"


def virtual_seconds(condition: "Condition") -> int:
    """Return about how many seconds of the board's time a measurement takes, boot included."""
    loaded = condition.load.kind != "none"
    return 3 + whole_seconds(condition.duration_ns + loaded * condition.load.settle)
