"""What the report needs to know of each sample set, gathered in bounded memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from latenz.columns import as_numpy
from latenz.model import HANDLINGS, Deadline, Handling, Metadata, SampleSet, TimeBase
from latenz.report.distribution import CellCounter, Distribution, Integers, histogram_distribution
from latenz.report.series import BlockSums, Bucket, Late, SeriesBuilder
from latenz.statistics import Summary, latencies_as_due, summarize
from latenz.statistics.extrapolation import TailFit
from latenz.statistics.mixture import MixedTail
from latenz.statistics.scan import known_period
from latenz.statistics.tail import TailRefusal, fit_tail

Progress = Callable[[str], None]
"""Called with the label of a set when the work on it starts."""

_SERIES_POINTS = 30_000
_MOST_BUCKETS = 1_500
_FEWEST_BUCKETS = 60


@dataclass(frozen=True)
class Source:
    """A sample set with the names that the report gives it.

    Attributes:
        label: A name that no other set of the report has.
        group: What it was measured under: sets of one group share a colour.
        sample_set: The values.
        causes: Why samples were late, by when they were due, where a trace told.
        run: Its run's name where several are reported together, else empty.
    """

    label: str
    group: str
    sample_set: SampleSet
    causes: Mapping[int, str] = field(default_factory=dict)
    run: str = ""


@dataclass(frozen=True)
class View:
    """One sample set as the report shows it.

    Attributes:
        label: Its name, unlike that of every other set in the report.
        group: What it was measured under.
        metadata: What the set is.
        summary: Its figures and verdicts.
        distribution: Cells of its activations as due; none if only printed figures are known.
        series: Smallest and largest latency over time, in buckets.
        origin_ns: When the first sample was due; None where times are not known, so that buckets
            lie at sample numbers and not at times since the first sample.
        peaks_only: The buckets come from the largest latency of each second.
        late: The latest samples found in the values.
        by_handling: Cells by how the interrupts were handled; empty where that is not known.
        blocks: Number and sum of consecutive samples, of a set that is one phase of two.
        tail: The extrapolated tail, or why it must not be extrapolated; None for printed figures.
        run: Its run's name where several are reported together, else empty.
    """

    label: str
    group: str
    metadata: Metadata
    summary: Summary
    distribution: Distribution = field(default_factory=Distribution.empty)
    series: list[Bucket] = field(default_factory=list)
    origin_ns: int | None = None
    peaks_only: bool = False
    late: list[Late] = field(default_factory=list)
    by_handling: dict[Handling, Distribution] = field(default_factory=dict)
    blocks: list[tuple[int, int]] = field(default_factory=list)
    tail: TailFit | MixedTail | TailRefusal | None = None
    run: str = ""

    @property
    def time_base(self) -> TimeBase:
        """What kind of clock the values were read from."""
        return self.metadata.time_base

    @property
    def published(self) -> bool:
        """Printed in a publication, not measured."""
        return self.time_base == TimeBase.PUBLISHED

    @property
    def times_known(self) -> bool:
        """The buckets lie at times, not at sample numbers."""
        return self.origin_ns is not None


def collect(
    sources: Sequence[Source],
    deadlines: Sequence[Deadline] = (),
    confidence: float = 0.95,
    progress: Progress = lambda _label: None,
) -> list[View]:
    """Look at each set for its figures, for its pictures, and for its tail.

    Args:
        sources: The sets and their names.
        deadlines: Deadlines to judge besides those of the sets themselves.
        confidence: One-sided confidence level of the exceedance bounds.
        progress: Told when the work on a set starts.
    """
    buckets = _SERIES_POINTS // max(1, len(sources))
    buckets = min(_MOST_BUCKETS, max(_FEWEST_BUCKETS, buckets))
    views = []
    for source in sources:
        progress(source.label)
        metadata = source.sample_set.metadata
        given = () if metadata.time_base == TimeBase.PUBLISHED else deadlines
        summary = summarize(source.sample_set, given, confidence)
        view = View(source.label, source.group, metadata, summary, run=source.run)
        views.append(_SEEN[source.sample_set.form](view, source, buckets))
    return views


def _see_samples(view: View, source: Source, buckets: int) -> View:
    sample_set = source.sample_set
    counter = CellCounter()
    handled = _ByHandling()
    builder = SeriesBuilder(view.summary.n or 1, min(buckets, view.summary.n or 1))
    blocks = BlockSums(view.summary.n or 1) if view.metadata.phase else None
    for batch in sample_set.batches("latency_ns", "t_ns", "missed", "handling"):
        latency_ns = _column(batch, "latency_ns")
        if latency_ns is not None:
            missed = _column(batch, "missed")
            for each in latencies_as_due(latency_ns, missed, known_period(view.metadata)):
                counter.add(each)
            handled.add(latency_ns, _column(batch, "handling"))
            builder.add(latency_ns, _column(batch, "t_ns"), missed)
            if blocks:
                blocks.add(latency_ns)
    metadata = sample_set.metadata
    return replace(
        view,
        distribution=replace(
            counter.distribution(metadata.resolution_ns),
            beyond=metadata.beyond_range,
            beyond_from_ns=metadata.beyond_range_from_ns,
            max_ns=view.summary.max_ns,
            unknown=view.summary.skipped_unknown,
        ),
        series=builder.series,
        origin_ns=builder.origin_ns,
        late=builder.worst,
        by_handling=handled.distributions(metadata.resolution_ns),
        blocks=blocks.blocks if blocks else [],
        tail=fit_tail(sample_set, source.causes),
    )


class _ByHandling:
    """Counts batches of latencies into cells for each handling that occurs."""

    def __init__(self) -> None:
        self._counters: dict[Handling, CellCounter] = {}

    def add(self, latency_ns: Integers, handling: Integers | None) -> None:
        for number, name in enumerate(HANDLINGS if handling is not None else ()):
            chosen = latency_ns[handling == number]
            if len(chosen):
                self._counters.setdefault(name, CellCounter()).add(chosen)

    def distributions(self, resolution_ns: int) -> dict[Handling, Distribution]:
        return {name: each.distribution(resolution_ns) for name, each in self._counters.items()}


def _see_histogram(view: View, source: Source, buckets: int) -> View:
    sample_set = source.sample_set
    view = replace(view, distribution=histogram_distribution(sample_set), tail=fit_tail(sample_set))
    peaks = sample_set.peaks
    if peaks is None:
        return view
    n = sum(len(batch) for batch in peaks.batches("latency_ns"))
    builder = SeriesBuilder(n, min(buckets, n))
    for batch in peaks.batches("latency_ns", "t_ns"):
        latency_ns = _column(batch, "latency_ns")
        if latency_ns is not None:
            builder.add(latency_ns, _column(batch, "t_ns"), None)
    return replace(
        view,
        series=builder.series,
        origin_ns=builder.origin_ns,
        peaks_only=True,
        late=builder.worst,
    )


def _column(batch: pa.RecordBatch, name: str) -> Integers | None:
    if name not in batch.schema.names:
        return None
    return np.asarray(as_numpy(batch.column(name)), dtype=np.int64)


_SEEN: dict[str, Callable[[View, Source, int], View]] = {
    "samples": _see_samples,
    "histogram": _see_histogram,
    "summary": lambda view, _source, _buckets: view,
}
