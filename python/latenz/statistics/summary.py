"""The figures of a sample set, exact on 64-bit nanoseconds whatever its form and size.

They are figures of all activations as they were due, skipped ones included (`due`), where the
source counts these; `sampled` are those of the samples alone.

Mean, jitter and standard deviation are those of Alonso et al., Electronics 2024, 13, 1626: the
jitter is the greater of max - mean and mean - min, the standard deviation divides by n - 1.
Figures that a source cannot tell are None, never guessed.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from latenz.errors import BadInput
from latenz.model import Deadline, Handling, Metadata, Reported, SampleSet
from latenz.statistics.cells import Cells, read_cells
from latenz.statistics.due import View, due_cells, view_of
from latenz.statistics.evidence import Evidence, observe
from latenz.statistics.exceedance import check_confidence
from latenz.statistics.figures import Figures, figure_ranks, figures_of, no_quantiles
from latenz.statistics.judge import judge
from latenz.statistics.scan import scan_activations
from latenz.statistics.sentence import elsewhere, in_emulated_time
from latenz.statistics.skipped import skipped_in_cells, skipped_in_samples, skipped_unplaced
from latenz.statistics.verdict import Verdict

_ONLY_PRINTED = "only the figures that the source printed are known, no single latency"


@dataclass(frozen=True)
class Summary:
    """The figures of one sample set; None where the source cannot tell.

    Attributes:
        name: Name of the sample set.
        time_base: What kind of clock the latencies were read from.
        n: Number of samples, those beyond a histogram's range included.
        mean_ns: As in `Figures`, of the activations that `view` says; so are the others.
        median_ns: The same.
        min_ns: The same.
        max_ns: Largest latency: no skipped activation waited longer than the one before it.
        jitter_ns: The same.
        stdev_ns: The same.
        quantiles_ns: The same.
        view: Whether skipped activations are in these figures: `of samples only` if the source
            does not count them.
        n_due: Number of activations, skipped ones included; None where the source cannot tell.
        skipped_unknown: Skipped activations whose latency nobody knows: they count as later than
            all others.
        sampled: The same figures of the samples alone.
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
        condition: The condition of the experiment that it belongs to.
        elsewhere: Samples taken on other CPUs than the one that the set is named after.
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
    quantiles_ns: dict[str, int | None] = field(default_factory=no_quantiles)
    view: View = "of samples only"
    n_due: int | None = None
    skipped_unknown: int = 0
    sampled: Figures = field(default_factory=Figures)
    missed_periods: int | None = None
    beyond_range: int = 0
    overlaps: int | None = None
    orphan_ends: int | None = None
    open_at_end: int | None = None
    handled: dict[Handling, float] | None = None
    deadlines: tuple[Verdict, ...] = ()
    negative: int | None = None
    notes: tuple[str, ...] = ()
    condition: str | None = None
    elsewhere: int = 0

    def to_json(self) -> dict[str, object]:
        """Return the figures as plain values for JSON, in the order of the attributes."""
        plain = asdict(self)
        sampled = {f"sampled_{name}": value for name, value in plain.pop("sampled").items()}
        return {
            **plain,
            **sampled,
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
        confidence: One-sided confidence level of the bounds on lateness.

    Raises:
        BadInput: The set holds no samples or damaged ones, or `confidence` is not between 0
            and 1.
    """
    check_confidence(confidence)
    metadata = sample_set.metadata
    given = (each for each in (*metadata.deadlines, *deadlines) if each.judges(metadata.name))
    judged = tuple(dict.fromkeys(given))
    figures, evidence = _FORMS[sample_set.form](sample_set, [d.limit_ns for d in judged])
    seen = observe(sample_set, judged, evidence)
    verdicts = [judge(d, e, figures.max_ns, confidence) for d, e in zip(judged, seen, strict=True)]
    if moved := elsewhere(metadata):
        verdicts = [replace(each, sentence=f"{each.sentence} {moved}") for each in verdicts]
    if metadata.time_base.emulated:
        verdicts = [in_emulated_time(each, metadata.time_base) for each in verdicts]
    return replace(figures, deadlines=tuple(verdicts), notes=_notes(figures))


def _with_skipped(evidence: Evidence, skipped: Evidence) -> Evidence:
    if not evidence.trials:
        return evidence
    return Evidence(
        evidence.exceeding + skipped.exceeding,
        evidence.undecided + skipped.undecided,
        evidence.trials + skipped.trials,
    )


def _notes(figures: Summary) -> tuple[str, ...]:
    notes = list(figures.notes)
    if figures.negative:
        notes.append(f"{figures.negative} negative latencies: the clock was set back")
    if figures.skipped_unknown:
        notes.append(
            f"{figures.skipped_unknown} activations were skipped, and how late they were is not"
            " known: they count as later than all others"
        )
    return tuple(notes)


def _unknown(sample_set: SampleSet) -> Summary:
    """What the metadata alone tell."""
    metadata = sample_set.metadata
    return Summary(
        name=metadata.name,
        condition=metadata.condition,
        elsewhere=metadata.elsewhere,
        view=view_of(sample_set),
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

    def ranks(known: int, unknown: int) -> list[int]:
        return [rank for rank in figure_ranks(known + beyond + unknown) if rank <= known]

    thresholds = [-1, *(limit - part for limit in limits for part in (0, slack))]
    found = scan_activations(sample_set, ranks, thresholds)
    if found is None:
        raise _refuse_empty(metadata)
    scan, due = found.samples, found.due
    moments = scan.moments
    max_ns = None if beyond else moments.max
    n = moments.n + beyond
    n_due = due.moments.n + beyond + found.unknown
    counted = view_of(sample_set) == "as due"
    figures = replace(
        _unknown(sample_set),
        n=n,
        max_ns=max_ns,
        **vars(figures_of(n_due, due.order.get, due.moments)),
        n_due=n_due if counted else None,
        skipped_unknown=found.unknown,
        sampled=figures_of(n, scan.order.get, moments),
        missed_periods=n_due - n if counted else None,
        negative=moments.n - scan.above[-1],
    )
    above = scan.above
    skipped = _skipped(sample_set, limits, n_due - n, max_ns)
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
    sample_set: SampleSet, limits: Sequence[int], missed: int, max_ns: int | None
) -> dict[int, Evidence]:
    """Return the evidence that skipped activations give on each limit."""
    found = skipped_in_samples(sample_set, limits) if missed else None
    if found is not None and found[0] == missed:
        return found[1]
    return {limit: skipped_unplaced(missed, max_ns, limit) for limit in limits}


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
    due, unknown = due_cells(cells, metadata)
    n_due = due.n + metadata.beyond_range + unknown
    sampled = _cell_figures(cells, n, (smallest, largest), metadata)
    figures = replace(
        _unknown(sample_set),
        n=n,
        max_ns=largest,
        **vars(sampled if n_due == n else _due_figures(cells, due, sampled, n_due, largest)),
        n_due=None if metadata.missed_periods is None else n_due,
        skipped_unknown=unknown,
        sampled=sampled,
        negative=cells.negative,
        notes=(*metadata.notes, *_cell_notes(due, metadata)),
    )
    return figures, {
        limit: _with_skipped(
            _cell_evidence(cells, metadata, limit), _cell_skipped(cells, metadata, largest, limit)
        )
        for limit in limits
    }


def _cell_figures(
    cells: Cells, n: int, ends: tuple[int | None, int | None], metadata: Metadata
) -> Figures:
    """Return the figures of a histogram's samples, by what the source printed beside it."""
    reported = metadata.reported or Reported()
    smallest, largest = ends
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

    return replace(
        figures_of(n, order, cells.moments),
        mean_ns=mean,
        min_ns=smallest,
        jitter_ns=(
            cells.moments.jitter
            if exact and ends == (cells.smallest, cells.largest)
            else _jitter(smallest, mean, largest)
        ),
        stdev_ns=stdev,
    )


def _due_figures(
    cells: Cells, due: Cells, sampled: Figures, n_due: int, largest: int | None
) -> Figures:
    """Return the figures of all activations; what the source printed is of samples only."""
    figures = figures_of(n_due, due.order, due.moments)
    if figures.mean_ns is None or sampled.mean_ns is None:
        return figures
    # the printed mean of the samples is better than that of their cells
    skipped = due.moments.sum - cells.moments.sum
    mean = (sampled.mean_ns * cells.n + skipped) / n_due
    return replace(figures, mean_ns=mean, jitter_ns=_jitter(figures.min_ns, mean, largest))


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
    sampled = Figures(
        mean_ns=reported.mean_ns,
        median_ns=reported.median_ns,
        min_ns=reported.min_ns,
        jitter_ns=jitter,
        stdev_ns=reported.stdev_ns,
    )
    missed = metadata.missed_periods or 0
    counted = metadata.missed_periods is not None and reported.n is not None
    figures = replace(
        _unknown(sample_set),
        n=reported.n,
        max_ns=reported.max_ns,
        **vars(sampled if not missed else Figures()),
        n_due=(reported.n or 0) + missed if counted else None,
        skipped_unknown=missed,
        sampled=sampled,
        notes=metadata.notes if metadata.sums_up else (*metadata.notes, _ONLY_PRINTED),
    )
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
