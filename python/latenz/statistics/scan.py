"""Exact figures of a set of samples: moments, order statistics, counts above thresholds."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from latenz._core import MOST_SKIPPED, Moments, SampleScan
from latenz.columns import as_numpy
from latenz.errors import BadInput
from latenz.model import Metadata, SampleSet

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Ranked:
    """Exact figures of some activations."""

    moments: Moments
    order: dict[int, int]
    """The rank-th smallest latency for each wanted rank, counted from 1."""


@dataclass(frozen=True)
class Scan(Ranked):
    """What passes over the samples found; every figure is exact."""

    above: dict[int, int]
    """Samples above each threshold."""


@dataclass(frozen=True)
class DueScan:
    """Samples, and all activations as they were due.

    Attributes:
        samples: The samples alone.
        due: The samples, and the skipped activations whose latency is known.
        skipped: How many skipped activations these are.
        unknown: Skipped activations whose latency nobody knows.
    """

    samples: Scan
    due: Ranked
    skipped: int
    unknown: int


def column(sample_set: SampleSet, name: str) -> Iterator[npt.NDArray[np.int64]]:
    """Give one int64 column of a sample set batch by batch, without copying.

    Raises:
        BadInput: The column has empty fields or is not int64.
    """
    return (values[name] for values in columns(sample_set, name))


def columns(sample_set: SampleSet, *names: str) -> Iterator[dict[str, npt.NDArray[np.int64]]]:
    """Give those of some int64 columns that a sample set has, by name, likewise.

    Raises:
        BadInput: A column has empty fields or is not int64.
    """
    for batch in sample_set.batches(*names):
        yield {
            name: _whole(batch.column(place), name, sample_set)
            for place, name in enumerate(batch.schema.names)
        }


def _whole(values: "pa.Array", name: str, sample_set: SampleSet) -> npt.NDArray[np.int64]:
    if values.null_count or str(values.type) != "int64":
        raise BadInput(
            f"column {name} holds {values.type} with {values.null_count} empty fields",
            sample_set.metadata.source or sample_set.metadata.name,
            "it must be int64 nanoseconds without empty fields",
        )
    return np.asarray(as_numpy(values))


def known_period(metadata: Metadata) -> int:
    """Return the distance of a set's activations in nanoseconds, 0 if it is not known."""
    return metadata.period_ns or 0


def cannot_count(metadata: Metadata) -> BadInput:
    """Return the refusal of a set whose number of skipped activations cannot be right."""
    return BadInput(
        f"column missed is below zero, or tells of more than {MOST_SKIPPED} skipped activations",
        metadata.source or metadata.name,
        "it must hold how many activations were skipped after each sample",
    )


def scan_samples(
    sample_set: SampleSet, ranks: Callable[[int], Iterable[int]], thresholds: Iterable[int]
) -> Scan | None:
    """Go over the samples as often as needed for exact figures; None if there are none.

    One pass does, unless more than a million samples lie more than some milliseconds away from
    the median; memory stays below 200 MB in any case.

    Args:
        sample_set: A set in the form `samples`.
        ranks: Given the number of samples, the ranks wanted (1 is the smallest).
        thresholds: Latencies above which samples are counted.
    """
    found = _scan(sample_set, ("latency_ns",), lambda n, _: ranks(n), thresholds)
    return found.samples if found else None


def scan_activations(
    sample_set: SampleSet,
    ranks: Callable[[int, int], Iterable[int]],
    thresholds: Iterable[int],
) -> DueScan | None:
    """Do as `scan_samples`, and find the same of all activations as they were due.

    Memory stays below 400 MB, and each skipped activation takes some nanoseconds.

    Args:
        sample_set: A set in the form `samples`.
        ranks: Given the number of latencies and how many more are not known, the ranks wanted
            among the known ones (1 is the smallest). Asked for the samples, of which all are
            known, and for all activations.
        thresholds: Latencies above which samples are counted.

    Raises:
        BadInput: More activations were skipped than can be counted, or fewer than none.
    """
    names = ("latency_ns", "missed") if "missed" in sample_set.columns else ("latency_ns",)
    return _scan(sample_set, names, ranks, thresholds)


def _scan(
    sample_set: SampleSet,
    names: tuple[str, ...],
    ranks: Callable[[int, int], Iterable[int]],
    thresholds: Iterable[int],
) -> DueScan | None:
    metadata = sample_set.metadata
    limits = list(dict.fromkeys(thresholds))
    scan = SampleScan(limits, known_period(metadata))
    try:
        for values in columns(sample_set, *names):
            scan.add(values["latency_ns"], values.get("missed"))
    except ValueError:
        raise cannot_count(metadata) from None
    moments = scan.moments
    if moments.n == 0:
        return None
    counted = scan.skipped + scan.unknown
    unknown = scan.unknown + max(0, (metadata.missed_periods or 0) - counted)
    due_moments = scan.due_moments if scan.skipped else moments
    wanted, due_wanted = list(ranks(moments.n, 0)), list(ranks(due_moments.n, unknown))
    unsettled = scan.want(wanted, due_wanted) if scan.skipped else scan.want(wanted + due_wanted)
    while unsettled:
        for values in columns(sample_set, *names):
            scan.refine(values["latency_ns"], values.get("missed"))
        unsettled = scan.settle()
    samples = Scan(moments, scan.order, dict(zip(limits, scan.above, strict=True)))
    due = Ranked(due_moments, scan.due_order) if scan.skipped else samples
    return DueScan(samples, due, scan.skipped, unknown)
