"""Reading sample sets for a comparison, in bounded memory."""

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np

from latenz.columns import as_numpy
from latenz.model import SampleSet
from latenz.statistics.scan import column
from latenz.statistics.stretches import Integers

_PIECE = 1 << 20


def split(arrays: Iterable[Integers]) -> Iterator[Integers]:
    """Give the same values in pieces of bounded size."""
    for each in arrays:
        yield from (each[begin : begin + _PIECE] for begin in range(0, len(each), _PIECE))


def latencies(sample_set: SampleSet) -> Iterator[Integers]:
    """Give the latencies of samples in recorded order, piece by piece.

    Raises:
        BadInput: There are empty fields, or they are not int64.
    """
    return split(column(sample_set, "latency_ns"))


def block_maxima(pieces: Iterable[Integers], length: int) -> Integers:
    """Return the largest of each `length` consecutive latencies; the rest is left out."""
    maxima: list[Integers] = []
    rest = np.empty(0, np.int64)
    for piece in pieces:
        values = np.concatenate([rest, piece])
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
            hashes[name].update(as_numpy(batch.column(name)).data)
    return b"".join(name.encode() + hashes[name].digest() for name in names)
