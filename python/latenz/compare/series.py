"""Reading sample sets for a comparison, in bounded memory."""

import hashlib
from dataclasses import dataclass

import numpy as np

from latenz.compare.blocks import Integers
from latenz.model import SampleSet

MOST_VALUES = 1_000_000
"""Most values that are kept of a set for its intervals."""
_PIECES = 64
"""Contiguous pieces that are kept of a longer set, evenly spread over it."""


@dataclass(frozen=True)
class Series:
    """Values of a set in recorded order.

    Attributes:
        latency_ns: The latencies.
        missed: Activations skipped after each; None where the set does not tell.
        whole: Whether these are all values of the set.
    """

    latency_ns: Integers
    missed: Integers | None
    whole: bool


def read_series(sample_set: SampleSet, n: int) -> Series:
    """Read the n values of a set, or `MOST_VALUES` of them in contiguous pieces."""
    if n <= MOST_VALUES:
        pieces = [(0, n)]
    else:
        length = MOST_VALUES // _PIECES
        pieces = [(k * (n - length) // (_PIECES - 1), length) for k in range(_PIECES)]
    names = [name for name in ("latency_ns", "missed") if name in sample_set.columns]
    kept: list[list[Integers]] = [[] for _ in names]
    begin = 0
    for batch in sample_set.batches(*names):
        end = begin + len(batch)
        for start, length in pieces:
            first, last = max(start, begin), min(start + length, end)
            if first < last:
                for column, name in zip(kept, names, strict=True):
                    part = batch.column(name).to_numpy()[first - begin : last - begin]
                    column.append(part.copy())
        begin = end
    columns = [np.concatenate(column) for column in kept]
    return Series(columns[0], columns[1] if len(columns) > 1 else None, n <= MOST_VALUES)


def block_maxima(sample_set: SampleSet, length: int) -> Integers:
    """Return the largest latency of each `length` consecutive samples; the rest is left out."""
    maxima: list[Integers] = []
    rest = np.empty(0, np.int64)
    for batch in sample_set.batches("latency_ns"):
        values = np.concatenate([rest, batch.column("latency_ns").to_numpy()])
        whole = len(values) // length * length
        maxima.append(values[:whole].reshape(-1, length).max(axis=1))
        rest = values[whole:]
    return np.concatenate(maxima) if maxima else rest


def digest(sample_set: SampleSet) -> bytes:
    """Return a hash of the latencies in recorded order, with what belongs to each."""
    names = [name for name in sample_set.columns if name != "t_ns"]
    hashes = {name: hashlib.blake2b() for name in names}
    for batch in sample_set.batches(*names):
        for name in names:
            hashes[name].update(batch.column(name).to_numpy().data)
    return b"".join(name.encode() + hashes[name].digest() for name in names)
