"""Which candidates to evaluate: all of them, or a sample and then what is near its best ones."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import TYPE_CHECKING

from latenz.analysis.explore.space import Choice, Space

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

CHUNK = 500
"""The most candidates that are evaluated together."""
NEAR_CHUNK = 100
"""The same around the best ones, where rounds are short and all workers should have a part."""
_LAST = 1000
"""So few that are left are drawn at once."""
_TRIES = 100
"""Draws for each candidate of a sample: most are known where the space is hardly larger."""


class Search:
    """Candidates to evaluate, the same ones for the same arguments and results.

    Candidate 0 is the given system; those of the space have numbers from 1 on.

    Args:
        space: What to choose from.
        most: How many candidates to evaluate at most, the given system not counted.
        seed: Of the sample.
    """

    def __init__(self, space: Space, most: int, seed: int) -> None:
        self.exhaustive = space.count <= most
        self.most = space.count if self.exhaustive else most
        self._space = space
        self._random = Random(seed)  # noqa: S311 - no secret; the same numbers in every version
        self._tried: list[Choice] = []
        self._known: set[Choice] = set()

    def first_round(self) -> Iterator[list[Choice]]:
        """Give the chunks of the whole space, or of a sample."""
        if self.exhaustive:
            yield from chunks(map(self._space.choice, range(self._space.count)), CHUNK)
        else:
            yield from self._sample()

    def next_round(self, best: Sequence[int]) -> Iterator[list[Choice]]:
        """Give the chunks of what is one step from the best candidates and new.

        If nothing is, those of another sample, of half of what is left to evaluate: what is found
        last can be looked around, too. Nothing if all is done.

        Args:
            best: Numbers of candidates, best first.
        """
        left = self.most - len(self._tried)
        if self.exhaustive or left <= 0:
            return
        seeds = [self._tried[number - 1] for number in best if number > 0]
        near = chunks(islice(self._new(self._near(seeds)), left), NEAR_CHUNK)
        first = next(near, None)
        if first is None:
            yield from self._sample()
        else:
            yield first
            yield from near

    def _near(self, seeds: Iterable[Choice]) -> Iterator[Choice]:
        for seed in seeds:
            yield from self._space.near(seed)

    def _sample(self) -> Iterator[list[Choice]]:
        left = self.most - len(self._tried)
        wanted = left if left <= _LAST else left // 2
        drawn = (self._space.sample(self._random) for _ in range(_TRIES * wanted))
        yield from chunks(islice(self._new(drawn), wanted), CHUNK)

    def _new(self, choices: Iterable[Choice]) -> Iterator[Choice]:
        """Give those that were not given before."""
        for choice in choices:
            if choice not in self._known:
                self._known.add(choice)
                self._tried.append(choice)
                yield choice


def chunks(choices: Iterable[Choice], size: int) -> Iterator[list[Choice]]:
    """Cut choices into chunks."""
    source = iter(choices)
    while chunk := list(islice(source, size)):
        yield chunk


def pareto_front(
    values: "npt.NDArray[np.float64]", ties: "npt.NDArray[np.float64]"
) -> "npt.NDArray[np.int64]":
    """Return the rows that no other row dominates, ascending by the first column, then the next.

    A row dominates another if it is at most as large in every column and smaller in one. Of equal
    rows the one is taken that has the smallest ties.

    Args:
        values: What is minimised; one row a candidate.
        ties: As many rows.
    """
    import numpy as np

    kept: list[int] = []
    front = np.empty((0, values.shape[1]))
    for row in np.lexsort(np.hstack([values, ties]).T[::-1]):
        if not np.any(np.all(front <= values[row], axis=1)):
            kept.append(int(row))
            front = np.vstack([front, values[row]])
    return np.array(kept, np.int64)


def best_of_each(
    values: "npt.NDArray[np.float64]",
    ties: "npt.NDArray[np.float64]",
    kinds: "npt.NDArray[np.float64]",
) -> "npt.NDArray[np.int64]":
    """Return the first row of each kind, in the order of the values, then of the ties."""
    import numpy as np

    order = np.lexsort(np.hstack([values, ties]).T[::-1])
    _, first = np.unique(kinds[order], return_index=True)
    found: npt.NDArray[np.int64] = order[np.sort(first)]
    return found
