"""The figures of a sample set, exact on 64-bit nanoseconds whatever its form and size.

Mean, jitter and standard deviation are those of Alonso et al., Electronics 2024, 13, 1626: the
jitter is the greater of max - mean and mean - min, the standard deviation divides by n - 1.
Figures that a source cannot tell are None, never guessed.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction

from latenz.errors import BadInput
from latenz.model import Deadline, Handling, Metadata, Reported, SampleSet
from latenz.statistics.cells import Cells, read_cells
from latenz.statistics.exceedance import check_confidence
from latenz.statistics.scan import column, scan_samples
from latenz.statistics.skipped import skipped_in_cells, skipped_in_samples, skipped_unplaced
from latenz.statistics.verdict import Evidence, Verdict, judge

QUANTILES = ("0.5", "0.9", "0.99", "0.999", "0.9999", "0.99999")
"""The quantiles of every summary, as exact decimals."""
_ONLY_PRINTED = "only the figures that the source printed are known, no single latency"


@dataclass(frozen=True)
class Summary:
    """The figures of one sample set; None where the source cannot tell.

    Attributes:
        name: Name of the sample set.
        time_base: What kind of clock the latencies were read from.
        n: Number of samples, those beyond a histogram's range included.
        mean_ns: Arithmetic mean.
        median_ns: The middle value, or the mean of the two middle ones.
        min_ns: Smallest latency.
        max_ns: Largest latency.
        jitter_ns: The greater of max - mean and mean - min.
        stdev_ns: Standard deviation of the sample (n - 1); None for a single sample.
        quantiles_ns: For each p of `QUANTILES` the ceil(p n)-th smallest latency.
        missed_periods: Activations without a sample of their own because the previous one was
            late.
        beyond_range: Samples known only to lie at or beyond the end of a histogram.
        overlaps: Starts while a measurement was open.
        orphan_ends: Ends with nothing open.
        open_at_end: Measurements started and never ended.
        handled: Share of the interrupts by how they were handled: direct, interposed, delayed.
        deadlines: One verdict for each deadline.
        negative: Samples below zero, which only a clock that was set back gives; None unknown.
        notes: What a reader of the figures must know.
    """

    name: str
    time_base: str
    n: int | None = None
    mean_ns: float | None = None
    median_ns: float | None = None
    min_ns: int | None = None
    max_ns: int | None = None
    jitter_ns: float | None = None
    stdev_ns: float | None = None
    quantiles_ns: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(QUANTILES))
    missed_periods: int | None = None
    beyond_range: int = 0
    overlaps: int | None = None
    orphan_ends: int | None = None
    open_at_end: int | None = None
    handled: dict[Handling, float] | None = None
    deadlines: tuple[Verdict, ...] = ()
    negative: int | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the figures as plain values for JSON, in the order of the attributes."""
        return {
            **asdict(self),
            "deadlines": [asdict(verdict) for verdict in self.deadlines],
            "notes": list(self.notes),
        }


def summarize(
    sample_set: SampleSet, deadlines: Sequence[Deadline] = (), confidence: float = 0.95
) -> Summary:
    """Compute the figures of a sample set and judge its deadlines.

    Samples are read in batches, so that memory stays bounded whatever their number.

    Args:
        sample_set: The latencies, in any form.
        deadlines: Deadlines to judge besides those of the set's own metadata.
        confidence: One-sided confidence level of the exceedance bounds.

    Raises:
        BadInput: The set holds no samples or damaged ones, or `confidence` is not between 0
            and 1.
    """
    check_confidence(confidence)
    metadata = sample_set.metadata
    judged = tuple(dict.fromkeys((*metadata.deadlines, *deadlines)))
    figures, evidence = _FORMS[sample_set.form](sample_set, [d.limit_ns for d in judged])
    verdicts = (judge(d, evidence[d.limit_ns], figures.max_ns, confidence) for d in judged)
    return replace(figures, deadlines=tuple(verdicts), notes=_notes(figures))


def quantile_rank(probability: str, n: int) -> int:
    """Return which smallest of n samples is the quantile: ceil(p n), computed exactly.

    Args:
        probability: A decimal between 0 and 1, as text ("0.999") so that it is exact.
        n: Number of samples, at least 1.
    """
    exact = Fraction(probability) * n
    return max(1, -(-exact.numerator // exact.denominator))


def _middle_ranks(n: int) -> tuple[int, int]:
    return (n + 1) // 2, n // 2 + 1


def _middle(lower: int | None, upper: int | None) -> float | None:
    if lower is None or upper is None:
        return None
    total = lower + upper
    return total / 2 if total % 2 else total // 2


def _with_skipped(evidence: Evidence, skipped: Evidence) -> Evidence:
    if not evidence.trials:
        return evidence
    return Evidence(
        evidence.exceeding + skipped.exceeding,
        evidence.undecided + skipped.undecided,
        evidence.trials + skipped.trials,
    )


def _notes(figures: Summary) -> tuple[str, ...]:
    if not figures.negative:
        return figures.notes
    return (*figures.notes, f"{figures.negative} negative latencies: the clock was set back")


def _unknown(metadata: Metadata) -> Summary:
    """What the metadata alone tell."""
    return Summary(
        name=metadata.name,
        time_base=metadata.time_base.value,
        missed_periods=metadata.missed_periods,
        beyond_range=metadata.beyond_range,
        overlaps=metadata.overlaps,
        orphan_ends=metadata.orphan_ends,
        open_at_end=metadata.open_at_end,
        handled=metadata.handled,
        notes=metadata.notes,
    )


_Found = tuple[Summary, dict[int, Evidence]]
"""The figures, and the evidence for each limit."""


def _refuse_empty(metadata: Metadata) -> BadInput:
    return BadInput(
        "the sample set holds no samples",
        metadata.source or metadata.name,
        "give one with at least one sample",
    )


def _from_samples(sample_set: SampleSet, limits: Sequence[int]) -> _Found:
    metadata = sample_set.metadata
    slack = metadata.resolution_ns - 1
    beyond = metadata.beyond_range  # longer than every sample in the column

    def ranks(n: int) -> list[int]:
        wanted = [*_middle_ranks(n + beyond), *(quantile_rank(p, n + beyond) for p in QUANTILES)]
        return [rank for rank in wanted if rank <= n]

    thresholds = [-1, *(limit - part for limit in limits for part in (0, slack))]
    scan = scan_samples(sample_set, ranks, thresholds)
    if scan is None:
        raise _refuse_empty(metadata)
    moments = scan.moments
    max_ns = None if beyond else moments.max
    missed, skipped = _skipped(sample_set, limits, max_ns)
    n = moments.n + beyond
    lower, upper = _middle_ranks(n)
    figures = replace(
        _unknown(metadata),
        n=n,
        mean_ns=None if beyond else moments.mean,
        median_ns=_middle(scan.order.get(lower), scan.order.get(upper)),
        min_ns=moments.min,
        max_ns=max_ns,
        jitter_ns=None if beyond else moments.jitter,
        stdev_ns=None if beyond else moments.stdev,
        quantiles_ns={p: scan.order.get(quantile_rank(p, n)) for p in QUANTILES},
        missed_periods=missed,
        negative=moments.n - scan.above[-1],
    )
    above = scan.above
    return figures, {
        limit: _with_skipped(
            _with_beyond(
                Evidence(above[limit], above[limit - slack] - above[limit], n), metadata, limit
            ),
            skipped[limit],
        )
        for limit in limits
    }


def _with_beyond(evidence: Evidence, metadata: Metadata, limit: int) -> Evidence:
    """Add what samples beyond the range tell, which are among the trials already."""
    beyond, beyond_from = metadata.beyond_range, metadata.beyond_range_from_ns
    if beyond and beyond_from is not None and beyond_from > limit:
        return replace(evidence, exceeding=evidence.exceeding + beyond)
    return replace(evidence, undecided=evidence.undecided + beyond)


def _skipped(
    sample_set: SampleSet, limits: Sequence[int], max_ns: int | None
) -> tuple[int | None, dict[int, Evidence]]:
    """Return how many activations were skipped, None if unknown, and their evidence."""
    counted = sample_set.metadata.missed_periods
    found = skipped_in_samples(sample_set, limits)
    if found is not None and counted in (None, found[0]):
        return found
    if counted is None and "missed" in sample_set.columns:
        counted = sum(int(part.sum()) for part in column(sample_set, "missed"))
    return counted, {limit: skipped_unplaced(counted or 0, max_ns, limit) for limit in limits}


def _from_histogram(sample_set: SampleSet, limits: Sequence[int]) -> _Found:
    metadata = sample_set.metadata
    reported = metadata.reported or Reported()
    cells = read_cells(sample_set)
    n = cells.n + metadata.beyond_range
    if n == 0:
        raise _refuse_empty(metadata)
    smallest = reported.min_ns if reported.min_ns is not None else cells.smallest
    largest = reported.max_ns
    if largest is None and not metadata.beyond_range:
        largest = cells.largest
    exact = not metadata.beyond_range and cells.widest <= metadata.resolution_ns
    mean, stdev = reported.mean_ns, reported.stdev_ns
    if exact or (mean is None and not metadata.beyond_range):
        mean = cells.moments.mean
    if exact or (stdev is None and not metadata.beyond_range):
        stdev = cells.moments.stdev

    def order(rank: int) -> int | None:
        if rank in (1, n):
            return smallest if rank == 1 else largest
        value = cells.order(rank)
        return value if value is None or smallest is None else max(value, smallest)

    figures = replace(
        _unknown(metadata),
        n=n,
        mean_ns=mean,
        median_ns=_middle(*map(order, _middle_ranks(n))),
        min_ns=smallest,
        max_ns=largest,
        jitter_ns=(
            cells.moments.jitter
            if exact and (smallest, largest) == (cells.smallest, cells.largest)
            else _jitter(smallest, mean, largest)
        ),
        stdev_ns=stdev,
        quantiles_ns={p: order(quantile_rank(p, n)) for p in QUANTILES},
        negative=cells.negative,
        notes=(*metadata.notes, *_cell_notes(cells, metadata)),
    )
    return figures, {
        limit: _with_skipped(
            _cell_evidence(cells, metadata, limit), _cell_skipped(cells, metadata, largest, limit)
        )
        for limit in limits
    }


def _cell_skipped(cells: Cells, metadata: Metadata, largest: int | None, limit: int) -> Evidence:
    missed = metadata.missed_periods or 0
    if metadata.period_ns and not metadata.beyond_range:
        return skipped_in_cells(cells, missed, metadata.period_ns, limit)
    return skipped_unplaced(missed, largest, limit)


def _cell_notes(cells: Cells, metadata: Metadata) -> tuple[str, ...]:
    if cells.widest <= metadata.resolution_ns:
        return ()
    return (
        f"median and quantiles are the lowest values of histogram cells up to {cells.widest} ns"
        " wide",
    )


def _cell_evidence(cells: Cells, metadata: Metadata, limit: int) -> Evidence:
    n = cells.n + metadata.beyond_range
    largest = metadata.reported.max_ns if metadata.reported else None
    if largest is not None and largest + metadata.resolution_ns - 1 <= limit:
        return Evidence(0, 0, n)
    found = _with_beyond(Evidence(*cells.above(limit, metadata.resolution_ns), n), metadata, limit)
    if largest is not None and largest > limit and not found.exceeding:
        return replace(found, exceeding=1, undecided=max(found.undecided - 1, 0))
    return found


def _jitter(smallest: int | None, mean: float | None, largest: int | None) -> float | None:
    if smallest is None or mean is None or largest is None:
        return None
    return max(largest - mean, mean - smallest)


def _from_reported(sample_set: SampleSet, limits: Sequence[int]) -> _Found:
    metadata = sample_set.metadata
    reported = metadata.reported
    if reported is None or reported.n == 0 or reported == Reported():
        raise _refuse_empty(metadata)
    jitter = reported.jitter_ns
    if jitter is None:
        jitter = _jitter(reported.min_ns, reported.mean_ns, reported.max_ns)
    figures = replace(
        _unknown(metadata),
        n=reported.n,
        mean_ns=reported.mean_ns,
        median_ns=reported.median_ns,
        min_ns=reported.min_ns,
        max_ns=reported.max_ns,
        jitter_ns=jitter,
        stdev_ns=reported.stdev_ns,
        notes=metadata.notes if metadata.sums_up else (*metadata.notes, _ONLY_PRINTED),
    )
    missed = metadata.missed_periods or 0
    return figures, {
        limit: _with_skipped(
            _reported_evidence(reported, metadata, limit),
            skipped_unplaced(missed, reported.max_ns, limit),
        )
        for limit in limits
    }


def _reported_evidence(reported: Reported, metadata: Metadata, limit: int) -> Evidence:
    slack = metadata.resolution_ns - 1
    n = reported.n or 0
    if reported.max_ns is not None and reported.max_ns + slack <= limit:
        return Evidence(0, 0, n)
    if reported.min_ns is not None and reported.min_ns > limit:
        return Evidence(max(n, 1), 0, n)
    exceeded = int(reported.max_ns is not None and reported.max_ns > limit)
    return Evidence(exceeded, max(n - exceeded, 0), n)


_FORMS = {
    "samples": _from_samples,
    "histogram": _from_histogram,
    "summary": _from_reported,
}
