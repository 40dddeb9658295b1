"""Latency over time, thinned so that every peak stays: per bucket the smallest and the largest."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
_MOST_BLOCKS = 500


@dataclass(frozen=True)
class Bucket:
    """A run of consecutive samples.

    Attributes:
        at: When the largest was due (ns since the first sample), or its number if times are
            not known.
        min_ns: Smallest latency.
        max_ns: Largest latency.
        missed: Activations skipped in it.
    """

    at: int
    min_ns: int
    max_ns: int
    missed: int


@dataclass(frozen=True)
class Late:
    """One of the latest samples."""

    at: int
    latency_ns: int
    missed: int


@dataclass
class SeriesBuilder:
    """Collects buckets and the latest samples from batches in recorded order.

    Args:
        n: Number of samples that will come.
        buckets: How many buckets to make of them.
        keep_worst: How many of the latest samples to keep.
    """

    n: int
    buckets: int
    keep_worst: int = 10
    _seen: int = 0
    _origin_ns: int | None = None
    _found: dict[int, Bucket] = field(default_factory=dict)
    _worst: list[Late] = field(default_factory=list)

    def add(self, latency_ns: Integers, t_ns: Integers | None, missed: Integers | None) -> None:
        """Add one batch; columns the set does not have are None."""
        if not len(latency_ns):
            return
        if t_ns is not None and self._origin_ns is None:
            self._origin_ns = int(t_ns[0])
        self._keep_worst(latency_ns, t_ns, missed)
        start = 0
        while start < len(latency_ns):
            number = (self._seen + start) * self.buckets // self.n
            bucket_end = -(-(number + 1) * self.n // self.buckets)
            end = min(bucket_end - self._seen, len(latency_ns))
            part = latency_ns[start:end]
            largest = start + int(part.argmax())
            bucket = Bucket(
                at=self._when(largest, t_ns),
                min_ns=int(part.min()),
                max_ns=int(latency_ns[largest]),
                missed=int(missed[start:end].sum()) if missed is not None else 0,
            )
            known = self._found.get(number)
            self._found[number] = _joined(known, bucket) if known else bucket
            start = end
        self._seen += len(latency_ns)

    @property
    def origin_ns(self) -> int | None:
        """When the first sample was due; None where times are not known."""
        return self._origin_ns

    @property
    def series(self) -> list[Bucket]:
        """The buckets in recorded order."""
        return list(self._found.values())

    @property
    def worst(self) -> list[Late]:
        """The latest samples, the latest first."""
        return self._worst

    def _when(self, place: int, t_ns: Integers | None) -> int:
        if t_ns is None or self._origin_ns is None:
            return self._seen + place
        return int(t_ns[place]) - self._origin_ns

    def _keep_worst(
        self, latency_ns: Integers, t_ns: Integers | None, missed: Integers | None
    ) -> None:
        full = len(self._worst) >= self.keep_worst
        floor = self._worst[-1].latency_ns if full else np.iinfo(np.int64).min
        places = np.flatnonzero(latency_ns > floor) if full else np.arange(len(latency_ns))
        if len(places) > self.keep_worst:
            order = np.argpartition(latency_ns[places], -self.keep_worst)
            places = places[order[-self.keep_worst :]]
        found = [
            Late(
                self._when(int(place), t_ns),
                int(latency_ns[place]),
                int(missed[place]) if missed is not None else 0,
            )
            for place in places
        ]
        ranked = sorted([*self._worst, *found], key=lambda late: (-late.latency_ns, late.at))
        self._worst = ranked[: self.keep_worst]


def _joined(first: Bucket, second: Bucket) -> Bucket:
    later = second.max_ns > first.max_ns
    return Bucket(
        at=second.at if later else first.at,
        min_ns=min(first.min_ns, second.min_ns),
        max_ns=max(first.max_ns, second.max_ns),
        missed=first.missed + second.missed,
    )


class BlockSums:
    """Adds up blocks of consecutive samples, from which averages over any stretch follow.

    Args:
        n: Number of samples that will come.

    Attributes:
        blocks: Number and sum of the samples in each block, in recorded order.
    """

    def __init__(self, n: int) -> None:
        self.blocks: list[tuple[int, int]] = []
        self._size = -(-n // _MOST_BLOCKS)

    def add(self, latency_ns: Integers) -> None:
        """Add one batch; its last block may be smaller."""
        for start in range(0, len(latency_ns), self._size):
            part = latency_ns[start : start + self._size]
            self.blocks.append((len(part), int(part.sum())))
