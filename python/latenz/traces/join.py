"""The worst samples of a run, and how they are found in a trace by time."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from latenz.columns import as_numpy
from latenz.model import SampleSet
from latenz.traces.wakeups import Window

_OWN_CLOCK = (None, "host")
"""Benches whose samples have the time of the machine that they are explained on."""


@dataclass(frozen=True, order=True)
class Late:
    """One of the latest samples, with what is needed to find it in a trace.

    Attributes:
        latency_ns: How late it was.
        t_ns: When it was due, by CLOCK_MONOTONIC.
        cpu: Where; None: not known.
        sample_set: Name of its set.
        stolen: The host took time from this virtual machine's CPU around it, as the kernel was
            told (in ticks, so that little may look like 10 ms).
    """

    latency_ns: int
    t_ns: int
    cpu: int | None
    sample_set: str
    stolen: bool = False

    @property
    def end_ns(self) -> int:
        """When the thread ran."""
        return self.t_ns + self.latency_ns

    def window(self) -> Window:
        """Return what is to be explained."""
        return Window("sample", self.t_ns, self.end_ns, self.cpu or 0, stolen=self.stolen)


def latest(sample_sets: Iterable[SampleSet], most: int) -> list[Late]:
    """Return the latest samples of all sets whose times are known, the latest first.

    Of those that were due at once on a CPU, as a cycle's activation and completion, only the later.
    Virtual machines and boards have clocks of their own, so their samples are in no trace.
    """
    found: dict[tuple[int, int | None], Late] = {}
    for each in sample_sets:
        if each.metadata.bench not in _OWN_CLOCK:
            continue
        for late in _of_set(each, most):
            moment = late.t_ns, late.cpu
            if late.latency_ns > 0 and (moment not in found or found[moment] < late):
                found[moment] = late
    return heapq.nlargest(most, found.values())


def _of_set(sample_set: SampleSet, most: int) -> list[Late]:
    metadata = sample_set.metadata
    cpu, name = metadata.cpu, metadata.name
    if metadata.worst:
        return [
            Late(
                each.latency_ns,
                each.t_ns,
                _place(each.context, cpu),
                name,
                _is_stolen(each.context),
            )
            for each in metadata.worst
        ]
    if "t_ns" not in sample_set.columns:
        return []
    return [Late(latency, t_ns, cpu, name) for latency, t_ns in _scanned(sample_set, most)]


def _place(context: Mapping[str, int | float | str], cpu: int | None) -> int | None:
    """Return where a sample was taken: not all threads stay on a CPU, and others may move them."""
    taken_on = context.get("cpu", cpu)
    return taken_on if isinstance(taken_on, int) else cpu


def _is_stolen(context: Mapping[str, int | float | str]) -> bool:
    stolen_ns = context.get("window_steal_ns", 0)
    return isinstance(stolen_ns, int) and stolen_ns > 0


def _scanned(sample_set: SampleSet, most: int) -> list[tuple[int, int]]:
    import numpy as np

    found: list[tuple[int, int]] = []
    for batch in sample_set.batches("latency_ns", "t_ns"):
        latency = as_numpy(batch.column("latency_ns"))
        times = as_numpy(batch.column("t_ns"))
        largest = np.argsort(latency)[-most:]
        pairs = [(int(latency[each]), int(times[each])) for each in largest]
        found = heapq.nlargest(most, [*found, *pairs])
    return found


def samples_of(path: Path, most: int) -> list[Late]:
    """Return the latest samples of a run or an importable file.

    Raises:
        BadInput: It cannot be read.
    """
    from latenz.importers.opening import open_sample_sets

    return latest(open_sample_sets(path), most)


def within(late: Sequence[Late], first_ns: int, last_ns: int) -> list[Late]:
    """Return the samples that lie in a trace."""
    return [each for each in late if first_ns <= each.t_ns and each.end_ns <= last_ns]
