"""Activations as they were due: every sample, and every activation that was skipped.

An activation that is skipped because the one before was late has waited, too: the k-th one after
a latency L for L - k periods. Figures of samples alone leave these out, and the later a system is,
the better they look. A figure *as due* counts every activation once, where the source tells how
many were skipped; otherwise it is a figure *of samples only*.

Skipped activations that no lateness explains (the source states no period, or counts more than
were due while it waited) have a latency that nobody knows. They count as later than all others,
so that no figure looks better than it was.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from latenz._core import MOST_SKIPPED
from latenz.errors import BadInput
from latenz.model import Metadata, SampleSet
from latenz.statistics.cells import Cells, cells_of, read_cells
from latenz.statistics.scan import cannot_count, column, columns, known_period

View = Literal["as due", "of samples only"]
"""Which activations a figure is about."""
Rows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Lowest values (ns), widths (ns) and counts."""
_Integers = npt.NDArray[np.int64]
_PIECE = 1 << 20
_MOST_CELLS = 1 << 22
_MOST_MISSED = 2.0**61
_LARGEST = np.iinfo(np.int64).max


def view_of(sample_set: SampleSet) -> View:
    """Return which activations the figures of a set are about."""
    counted = sample_set.metadata.missed_periods is not None or "missed" in sample_set.columns
    return "as due" if counted else "of samples only"


def views_in_words(views: Sequence[tuple[str, View]]) -> str | None:
    """Say which sets have figures of samples only; None if none of them has.

    Args:
        views: Name and view of each set that is shown together with the others.
    """
    only = [name for name, view in views if view == "of samples only"]
    if not only:
        return None
    which = "all" if len(only) == len(views) else ", ".join(only)
    return f"of samples only, as the source does not count missed activations: {which}"


class Activations:
    """The latencies of a set's activations as due, in batches of cells; a value is a cell, too.

    A value's width is the resolution of the set. What is known only to lie beyond a histogram's
    range is not among them.

    Args:
        sample_set: Samples or a histogram.

    Attributes:
        unknown: Skipped activations, among those read so far, whose latency nobody knows.

    Raises:
        BadInput: More activations were skipped than can be counted.
    """

    def __init__(self, sample_set: SampleSet) -> None:
        self._sample_set = sample_set
        self.unknown = 0

    def __iter__(self) -> Iterator[Rows]:
        self.unknown = 0
        if self._sample_set.form == "histogram":
            cells, self.unknown = due_cells(read_cells(self._sample_set), self._sample_set.metadata)
            yield cells.lowest, cells.width, np.diff(cells.until, prepend=0)
            return
        step = self._sample_set.metadata.resolution_ns
        for values in self.latencies():
            yield values, np.full(len(values), step), np.ones(len(values), np.int64)

    def latencies(self) -> Iterator[_Integers]:
        """Give the latencies of a set in the form `samples`, in the order they were due."""
        self.unknown = 0
        if "missed" in self._sample_set.columns:
            yield from self._as_due()
        else:
            yield from column(self._sample_set, "latency_ns")
            self.unknown = self._sample_set.metadata.missed_periods or 0

    def _as_due(self) -> Iterator[_Integers]:
        metadata = self._sample_set.metadata
        period_ns = known_period(metadata)
        skipped = counted = 0
        for values in columns(self._sample_set, "latency_ns", "missed"):
            latency_ns, missed = values["latency_ns"], values["missed"]
            if missed.min(initial=0) < 0 or counted + missed.sum(dtype=np.float64) > _MOST_MISSED:
                raise cannot_count(metadata)
            counted += int(missed.sum())
            skipped += int(skipped_while_waiting(latency_ns, missed, period_ns).sum())
            if skipped > MOST_SKIPPED:
                raise cannot_count(metadata)
            yield from latencies_as_due(latency_ns, missed, period_ns)
        self.unknown = max(counted, metadata.missed_periods or 0) - skipped


def skipped_while_waiting(latency_ns: _Integers, missed: _Integers, period_ns: int) -> _Integers:
    """Return how many of the activations skipped after each latency were due while it lasted.

    Args:
        latency_ns: Latencies, shape (n,).
        missed: Activations skipped after each, not negative, shape (n,).
        period_ns: Distance of the activations; 0: not known, so that nothing is explained.
    """
    if not period_ns:
        return np.zeros_like(missed)
    waited: _Integers = np.minimum(missed, np.maximum(latency_ns, 0) // period_ns)
    return waited


def latencies_as_due(
    latency_ns: _Integers, missed: _Integers | None, period_ns: int
) -> Iterator[_Integers]:
    """Give each latency and those of the activations skipped after it, in pieces.

    Args:
        latency_ns: Latencies, shape (n,).
        missed: Activations skipped after each, not negative, shape (n,); None: not known.
        period_ns: As in `skipped_while_waiting`.
    """
    if missed is None or not missed.any():
        yield latency_ns
        return
    waited = skipped_while_waiting(latency_ns, missed, period_ns)
    until = np.cumsum(waited + 1)
    for start in range(0, int(until[-1]), _PIECE):
        place = np.arange(start, min(start + _PIECE, int(until[-1])))
        sample = np.searchsorted(until, place, side="right")
        behind = place - (until[sample] - waited[sample] - 1)
        yield latency_ns[sample] - behind * period_ns


def due_cells(cells: Cells, metadata: Metadata) -> tuple[Cells, int]:
    """Return the cells of all activations as due, and how many are skipped and in none of them.

    A histogram tells how often each latency came, and so how many were due while it lasted. Where
    these are more than were counted, the later ones are taken.

    Args:
        cells: The cells of the samples.
        metadata: What the set is; it counts the skipped ones and states the period.

    Raises:
        BadInput: The counts do not fit in 64 bits.
    """
    left, period_ns = metadata.missed_periods or 0, known_period(metadata)
    if cells.n + left >= 1 << 62:
        raise BadInput(
            "the counts do not fit in 64 bits", metadata.source or metadata.name, "repair the file"
        )
    if not left or not period_ns:
        return cells, left
    counts = np.diff(cells.until, prepend=0)
    series, left = _series(cells.lowest, cells.width, counts, left, period_ns)
    highest = cells.lowest + np.minimum(cells.width - 1, _LARGEST - np.maximum(cells.lowest, 0))
    first = np.maximum(cells.lowest, 0) // period_ns + 1
    more = np.maximum(highest, 0) // period_ns - (first - 1)
    near = min(left, int((counts * more.astype(np.float64)).sum()))
    rows = [(cells.lowest, cells.width, counts), *_shifted(series, period_ns)]
    if near:  # these waited for less than the width of a cell
        width = int((highest - first * period_ns)[(more > 0) & (counts > 0)].max()) + 1
        rows.append((_one(0), _one(width), _one(near)))
    lowest, width_ns, count = (np.concatenate(part) for part in zip(*rows, strict=True))
    return cells_of(lowest, width_ns, count), left - near


def _one(value: int) -> _Integers:
    return np.array([value], np.int64)


def _series(
    lowest: _Integers, width: _Integers, counts: _Integers, left: int, period_ns: int
) -> tuple[list[tuple[int, int, int, int]], int]:
    """Return how many of each cell skip how many, as lowest, width, samples and steps."""
    found = []
    for cell in np.flatnonzero(lowest >= period_ns)[::-1].tolist():
        if left == 0:
            break
        value, wide, count = int(lowest[cell]), int(width[cell]), int(counts[cell])
        steps = value // period_ns
        whole = min(count, left // steps)
        rest = min(steps - 1, left - whole * steps) if whole < count else 0
        found += [(value, wide, whole, steps)] if whole else []
        found += [(value, wide, 1, rest)] if rest else []
        left -= whole * steps + rest
    return found, left


def _shifted(series: list[tuple[int, int, int, int]], period_ns: int) -> Iterator[Rows]:
    """Give the cells of skipped activations; so many that memory would not do share wider ones."""
    if not series:
        return
    value, width, samples, steps = (np.array(part, np.int64) for part in zip(*series, strict=True))
    together = -(-steps // max(1, _MOST_CELLS // len(series)))
    groups = -(-steps // together)
    which = np.repeat(np.arange(len(series)), groups)
    group = np.arange(len(which)) - np.repeat(np.cumsum(groups) - groups, groups)
    last = np.minimum((group + 1) * together[which], steps[which])
    size = last - group * together[which]
    spread = (size - 1) * period_ns
    yield (
        value[which] - last * period_ns,
        width[which] + np.minimum(spread, _LARGEST - width[which]),
        samples[which] * size,
    )
