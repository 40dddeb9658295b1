"""Exact figures of a set of samples: moments, order statistics, counts above thresholds."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latenz._core import Moments, SampleScan
from latenz.errors import BadInput
from latenz.model import SampleSet


@dataclass(frozen=True)
class Scan:
    """What passes over the samples found; every figure is exact."""

    moments: Moments
    order: dict[int, int]
    """The rank-th smallest latency for each wanted rank, counted from 1."""
    above: dict[int, int]
    """Samples above each threshold."""


def column(sample_set: SampleSet, name: str) -> Iterator[npt.NDArray[np.int64]]:
    """Give one int64 column of a sample set batch by batch, without copying.

    Raises:
        BadInput: The column has empty fields or is not int64.
    """
    for batch in sample_set.batches(name):
        values = batch.column(0)
        if values.null_count or str(values.type) != "int64":
            raise BadInput(
                f"column {name} holds {values.type} with {values.null_count} empty fields",
                sample_set.metadata.source or sample_set.metadata.name,
                "it must be int64 nanoseconds without empty fields",
            )
        yield values.to_numpy(zero_copy_only=True)


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
    limits = list(dict.fromkeys(thresholds))
    scan = SampleScan(limits)
    for values in column(sample_set, "latency_ns"):
        scan.add(values)
    moments = scan.moments
    if moments.n == 0:
        return None
    unsettled = scan.want(list(ranks(moments.n)))
    while unsettled:
        for values in column(sample_set, "latency_ns"):
            scan.refine(values)
        unsettled = scan.settle()
    return Scan(moments, scan.order, dict(zip(limits, scan.above, strict=True)))
