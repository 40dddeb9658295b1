"""The cells of an imported or recorded histogram, and what they tell."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latenz._core import Moments
from latenz.columns import as_numpy
from latenz.errors import BadInput
from latenz.model import SampleSet

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Cells in ascending order, none of them empty, each standing for its lowest value.

    Attributes:
        lowest: Lowest value of each cell, ns.
        width: Width of each cell, ns.
        until: Samples in this cell and all before it.
        moments: Exact moments of the cells' values.
    """

    lowest: _Integers
    width: _Integers
    until: _Integers
    moments: Moments

    @property
    def n(self) -> int:
        """Number of samples in all cells."""
        return self.moments.n

    @property
    def smallest(self) -> int | None:
        """Value of the first cell; None without cells."""
        return int(self.lowest[0]) if self.n else None

    @property
    def largest(self) -> int | None:
        """Value of the last cell; None without cells."""
        return int(self.lowest[-1]) if self.n else None

    @property
    def widest(self) -> int:
        """Width of the widest cell, ns; 0 without cells."""
        return int(self.width.max()) if self.n else 0

    @property
    def negative(self) -> int:
        """Samples in cells below zero."""
        below_zero = int(np.searchsorted(self.lowest, 0))
        return int(self.until[below_zero - 1]) if below_zero else 0

    def order(self, rank: int) -> int | None:
        """Return the value of the rank-th smallest sample; None beyond the last cell."""
        if rank > self.n:
            return None
        return int(self.lowest[np.searchsorted(self.until, rank)])

    def above(self, limit: int, resolution: int) -> tuple[int, int]:
        """Return the samples above a limit, and those that may or may not be above it."""
        counts = np.diff(self.until, prepend=0)
        span = np.maximum(self.width, resolution) - 1  # limit - span cannot overflow: both >= 0
        over = self.lowest > limit
        return int(counts[over].sum()), int(counts[~over & (self.lowest > limit - span)].sum())


def read_cells(sample_set: SampleSet) -> Cells:
    """Read all cells of a histogram and put them in order.

    Raises:
        BadInput: A cell has a negative count, no width, or the counts do not fit in 64 bits.
    """
    batches = list(sample_set.batches("latency_ns", "width_ns", "count"))
    columns = [
        np.concatenate([as_numpy(batch.column(i)) for batch in batches] or [np.empty(0, np.int64)])
        for i in range(3)
    ]
    lowest, width, count = columns
    where = sample_set.metadata.source or sample_set.metadata.name
    if any(values.dtype != np.int64 for values in columns):
        raise BadInput("a histogram column is not int64", where, "write whole nanoseconds")
    if len(count) and (count.min() < 0 or width.min() < 1):
        raise BadInput("a cell has a negative count or no width", where, "repair the file")
    if count.sum(dtype=np.float64) >= 2.0**62:
        raise BadInput("the counts do not fit in 64 bits", where, "repair the file")
    return cells_of(lowest, width, count)


def cells_of(lowest: _Integers, width: _Integers, count: _Integers) -> Cells:
    """Put cells in order and leave out the empty ones; counts are checked already."""
    wanted = np.flatnonzero(count)
    wanted = wanted[np.argsort(lowest[wanted], kind="stable")]
    lowest, width, count = lowest[wanted], width[wanted], count[wanted]
    moments = Moments()
    moments.add_counts(lowest, count)
    return Cells(lowest=lowest, width=width, until=np.cumsum(count), moments=moments)
