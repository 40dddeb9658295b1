"""The engine `cyclictest` of the rt-tests, as it is installed."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from latenz.columns import as_numpy
from latenz.durations import whole_seconds
from latenz.engines.base import Engine, Task
from latenz.measuring.settings import WakingEngineSettings
from latenz.model import SampleSet
from latenz.obstacle import Obstacle, forbidden_cpus, forbidden_priority, missing_program
from latenz.settings import Priority, WholeMicroseconds, format_cpu_list

INSTALL = "apt-get install rt-tests"
SUMMARY_FILE = "cyclictest.json"
_CELLS = 1_000_000  # the most that cyclictest takes
_REAL_TIME = ("fifo", "rr")
_MOST_TO_READ = 1 << 20
_PRINTED = re.compile(rb"^ *\d+: *\d+: *(\d+)$", re.MULTILINE)


class CyclictestSettings(WakingEngineSettings):
    """How cyclictest measures."""

    engine: Literal["cyclictest"]
    period: WholeMicroseconds = 1_000_000
    """Distance of the activations."""
    policy: Literal["fifo", "rr", "other", "batch", "idle"] = "fifo"
    """Of the measuring threads."""
    priority: Priority = 80
    """Real-time priority, for policies fifo and rr."""
    record: Literal["samples", "histogram"] = "samples"
    """`samples`: every latency in nanoseconds, 28 bytes of text each; `histogram`: bounded."""
    cell: Literal["1 us", "1 ns"] = "1 us"
    """Width of a histogram cell; there are a million, so the range is 1 s or 1 ms."""


class Cyclictest(Engine[CyclictestSettings]):
    """Runs cyclictest with one thread for each CPU.

    All threads get the same period: cyclictest's own `-S` without a histogram would add 0.5 ms
    for every further CPU. Every latency is kept by `-v` in nanoseconds, which loses only what
    cyclictest does not print in its last 10 ms; the JSON summary beside it tells how many they
    are and the true maximum. The histogram keeps all of them, in cells.

    What cyclictest cannot tell: after a late wake-up it silently skips the periods it missed, so
    `missed_periods` stays unknown.
    """

    name = "cyclictest"
    settings_type = CyclictestSettings
    measures = "wake-up latency of user threads"
    output_file = "cyclictest.txt"

    @classmethod
    def obstacle(cls, settings: CyclictestSettings) -> Obstacle | None:
        """Return why cyclictest cannot measure here, or None if it can."""
        obstacle = missing_program("cyclictest", INSTALL) or forbidden_cpus(
            settings.measured_cpus()
        )
        if obstacle or settings.policy not in _REAL_TIME:
            return obstacle
        return forbidden_priority(os.SCHED_FIFO, settings.priority)

    def __init__(self, settings: CyclictestSettings, task: Task) -> None:
        super().__init__(settings, task)
        self._read_to = 0
        self._maximum_ns: int | None = None

    def maximum_ns(self) -> int | None:
        """Return the largest latency printed so far; None while recording a histogram."""
        if self.settings.record == "samples":
            with (self.folder / self.output_file).open("rb") as file:
                file.seek(self._read_to)
                printed = file.read(_MOST_TO_READ)
            whole = printed[: printed.rfind(b"\n") + 1]
            self._read_to += len(whole)
            latencies = [int(value) for value in _PRINTED.findall(whole)]
            self._maximum_ns = max([*latencies, self._maximum_ns or 0]) or None
        return self._maximum_ns

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        cpus = self.settings.measured_cpus()
        ending = f"--duration={whole_seconds(self.task.duration_ns)}"
        return cyclictest_command(self.settings, cpus, ending, self.place)

    def collect(self) -> list[SampleSet]:
        """Store one sample set for each CPU."""
        self.result_file(SUMMARY_FILE)
        cpus = self.settings.measured_cpus()
        found = cyclictest_results(self.settings, cpus, self.folder)
        return [self._store(each, cpu, period_ns=self.settings.period) for cpu, each in found]


def cyclictest_command(
    settings: CyclictestSettings, cpus: tuple[int, ...], ending: str, folder: Path
) -> list[str]:
    """Return cyclictest with its arguments.

    Args:
        settings: How to measure.
        cpus: The CPUs to measure on.
        ending: The option that says when it ends.
        folder: Takes its summary, where cyclictest runs.
    """
    common = [
        "cyclictest",
        f"--threads={len(cpus)}",
        f"--affinity={format_cpu_list(cpus)}",
        f"--policy={settings.policy}",
        # To a priority that its policy does not have, cyclictest answers with another policy.
        *([f"--priority={settings.priority}"] if settings.policy in _REAL_TIME else []),
        # Left to itself, it holds 0.
        "--default-system" if settings.held_ns is None else f"--latency={settings.held_ns // 1000}",
        "--mlockall",
        f"--interval={settings.period // 1000}",
        "--distance=0",
        ending,
        f"--json={folder / SUMMARY_FILE}",
    ]
    if settings.record == "samples":
        return [*common, "--nsecs", "--verbose"]
    in_nanoseconds = ["--nsecs"] if settings.cell == "1 ns" else []
    return [
        *common,
        *in_nanoseconds,
        "--quiet",
        f"--histogram={_CELLS}",
        "--histfile=/dev/null",
    ]


def cyclictest_results(
    settings: CyclictestSettings, cpus: tuple[int, ...], folder: Path
) -> list[tuple[int | None, SampleSet]]:
    """Return what cyclictest measured on each CPU.

    Args:
        settings: As it was started with.
        cpus: As it was started with.
        folder: Has its summary, and what it printed.

    Raises:
        BadInput: A file cannot be read.
    """
    from latenz import importers

    summarized = {found.metadata.cpu: found for found in importers.read(folder / SUMMARY_FILE)}
    if settings.record == "histogram":
        return list(summarized.items())
    found: list[tuple[int | None, SampleSet]] = []
    for listed in importers.read(folder / Cyclictest.output_file, unit_ns=1):
        cpu = cpus[int(listed.metadata.name.removeprefix("thread"))]
        whole = summarized.get(cpu)
        found.append((cpu, _completed(listed, whole) if whole else listed))
    return found


def _completed(listed: SampleSet, summary: SampleSet) -> SampleSet:
    """Add to the printed samples what only cyclictest's own summary of the thread tells.

    The samples of the last 10 ms are not printed. If the maximum is among them, it is added as
    the last sample, for its value is known and a verdict without it would be wrong.
    """
    import pyarrow as pa

    whole = summary.metadata.reported
    if whole is None or whole.n is None or whole.max_ns is None:
        return listed
    n, largest = 0, 0
    for batch in listed.batches("latency_ns"):
        values = as_numpy(batch.column(0))
        n, largest = n + len(values), max(largest, int(values.max(initial=0)))
    notes = listed.metadata.notes
    if n < whole.n:
        notes = (*notes, f"cyclictest printed {n} of its {whole.n} samples")

    def batches(wanted: list[str]) -> "Iterator[pa.RecordBatch]":
        yield from listed.batches(*wanted)
        if "latency_ns" in wanted:
            yield pa.RecordBatch.from_pydict({"latency_ns": pa.array([whole.max_ns], pa.int64())})

    described = listed.with_metadata(
        tool=summary.metadata.tool, tool_version=summary.metadata.tool_version, notes=notes
    )
    if whole.max_ns <= largest:
        return described
    notes = (*notes, "its maximum, not among the printed ones, was added as the last sample")
    metadata = described.metadata.model_copy(update={"notes": notes})
    return SampleSet(metadata, "samples", batches, ("latency_ns",))
