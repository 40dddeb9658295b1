"""Exact figures of a set of samples: moments, order statistics, counts above thresholds."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latenz.errors import BadInput
from latenz.model import SampleSet


@dataclass(frozen=True)
class Scan:
    """What passes over the samples found; every figure is exact or correctly rounded."""

    n: int
    min_ns: int
    max_ns: int
    mean_ns: float
    jitter_ns: float
    stdev_ns: float | None
    negative: int
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

    Args:
        sample_set: A set in the form `samples`.
        ranks: Given the number of samples, the ranks wanted (1 is the smallest).
        thresholds: Latencies above which samples are counted.
    """
    parts = list(column(sample_set, "latency_ns"))
    values = np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)
    n = len(values)
    if n == 0:
        return None
    exact = values.tolist()
    total, squares = sum(exact), sum(value * value for value in exact)
    return Scan(
        n=n,
        min_ns=exact[0],
        max_ns=exact[-1],
        mean_ns=total / n,
        jitter_ns=max(n * exact[-1] - total, total - n * exact[0]) / n,
        stdev_ns=((n * squares - total * total) / (n * (n - 1))) ** 0.5 if n > 1 else None,
        negative=int(np.searchsorted(values, 0)),
        order={rank: exact[rank - 1] for rank in ranks(n)},
        above={limit: n - int(np.searchsorted(values, limit, "right")) for limit in thresholds},
    )
