"""One side of a pair: its figures, and the activations that they are of."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from latenz.compare.series import digest, latencies, split
from latenz.model import Deadline, SampleSet
from latenz.statistics import Figures as Known
from latenz.statistics import Summary, summarize
from latenz.statistics.cells import read_cells
from latenz.statistics.due import Activations, due_cells, view_of
from latenz.statistics.intervals import measured_s, order_statistics
from latenz.statistics.scan import scan_activations
from latenz.statistics.stretches import Integers

QUANTILES = {"median": "0.5", "p90": "0.9", "p99": "0.99", "p99.9": "0.999", "p99.99": "0.9999"}

Figures = dict[str, float | None]
"""Statistics by name; None where they are not known."""
View = Literal["as due", "of samples only", "unlike"]
Weighted = tuple[Integers, Integers]
"""Values, ascending, and how often each occurs."""


def common_view(sets: Sequence[SampleSet]) -> View:
    """Tell which activations the figures of several sets are about; `unlike` if they differ."""
    views = {view_of(each) for each in sets}
    return views.pop() if len(views) == 1 else "unlike"


@dataclass(frozen=True)
class Side:
    """A sample set with its figures.

    Attributes:
        sample_set: The set.
        limit_ns: Limit of `miss_rate`; None: only skipped activations count.
        view: Which activations are compared. If the sides are `unlike`, those of samples only: so
            they are at least figures of the same kind.
        summary: The set's summary, judged by that limit.
    """

    sample_set: SampleSet
    limit_ns: int | None
    view: View
    summary: Summary

    @classmethod
    def of(cls, sample_set: SampleSet, limit_ns: int | None, view: View) -> "Side":
        """Summarize a set.

        Raises:
            BadInput: The set holds no samples.
        """
        limits = () if limit_ns is None else (Deadline(name="limit", limit_ns=limit_ns),)
        judged = sample_set.with_metadata(deadlines=())
        return cls(sample_set, limit_ns, view, summarize(judged, limits))

    @property
    def n(self) -> int:
        """Activations that are compared; 0 where the source does not tell."""
        due = self.summary.n_due if self.view == "as due" else None
        return due or self.summary.n or 0

    @property
    def unknown(self) -> int:
        """Compared activations of which nobody knows how late they were: they count as latest."""
        return self.summary.skipped_unknown if self.view == "as due" else 0

    @cached_property
    def duration_s(self) -> float | None:
        """How long was measured; None where nothing tells."""
        return measured_s(self.sample_set, self.summary.n_due or self.summary.n)

    @cached_property
    def figures(self) -> Figures:
        """The statistics by name; None where the set cannot tell."""
        known = self.summary.sampled if self.view == "unlike" else self.summary
        largest = None if self.summary.skipped_unknown else self.summary.max_ns
        return {**_by_name(known, largest), "miss_rate": self._miss_rate()}

    @property
    def sampled(self) -> Figures:
        """The same of the samples alone, but for `miss_rate`, which is of activations."""
        return _by_name(self.summary.sampled, self.summary.max_ns)

    @property
    def exact_quantiles(self) -> dict[str, int]:
        """Quantiles as one of the latencies each, also where the median lies between two."""
        known = self.summary.sampled if self.view == "unlike" else self.summary
        found = {name: known.quantiles_ns[p] for name, p in QUANTILES.items()}
        return {name: value for name, value in found.items() if value is not None}

    def latencies(self) -> Iterator[Integers]:
        """Give the latencies of samples in the order they were due, piece by piece."""
        if self.view == "as due":
            return split(Activations(self.sample_set).latencies())
        return latencies(self.sample_set)

    def order(self, ranks: Callable[[int], Iterable[int]]) -> dict[int, int | None]:
        """Return the rank-th smallest latency for each rank wanted of so many known ones."""
        if self.view != "as due" or self.sample_set.form != "samples":
            return order_statistics(self.sample_set, ranks)

        def known_ones(known: int, _unknown: int) -> list[int]:
            return [rank for rank in ranks(known) if rank <= known]  # of samples alone, too

        found = scan_activations(self.sample_set, known_ones, ())
        return dict(found.due.order) if found else {}

    def weighted(self) -> Weighted:
        """Return all latencies; of a histogram the lowest ones of its cells."""
        if self.sample_set.form == "samples":
            each = np.sort(np.concatenate(list(self.latencies())))
            return each, np.ones_like(each)
        cells = read_cells(self.sample_set)
        if self.view == "as due":
            cells, _ = due_cells(cells, self.sample_set.metadata)
        return cells.lowest, np.diff(cells.until, prepend=0)

    def same_as(self, other: "Side") -> bool:
        """Tell whether both hold the same; latencies are read only if the figures agree."""
        first, second = self.sample_set, other.sample_set
        if first.form != second.form or self.figures != other.figures:
            return False
        mine, its = self.summary, other.summary
        if (mine.n, mine.n_due, mine.beyond_range) != (its.n, its.n_due, its.beyond_range):
            return False
        if first.form == "summary":
            return first.metadata.reported == second.metadata.reported
        return digest(first) == digest(second)

    def _miss_rate(self) -> float | None:
        summary = self.summary
        if self.limit_ns is None:
            if summary.missed_periods is None or not summary.n_due:
                return None
            return summary.missed_periods / summary.n_due
        verdict = next(each for each in summary.deadlines if each.limit_ns == self.limit_ns)
        if verdict.undecided or not verdict.trials:
            return None
        return verdict.exceeding / verdict.trials


def _by_name(known: Summary | Known, max_ns: int | None) -> Figures:
    return {
        "mean": known.mean_ns,
        **{name: known.quantiles_ns[p] for name, p in QUANTILES.items()},
        "median": known.median_ns,
        "min": known.min_ns,
        "max": max_ns,
        "stdev": known.stdev_ns,
    }
