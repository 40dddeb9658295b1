"""Random edges of irq and ack: a million pairs with everything that goes wrong on a board.

A run is a sequence of series. In each, the cycles of rising edges are drawn first, with all kinds
of distances; levels are laid around them; both are kept, the edges for the model, the levels for
the design.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ticks = npt.NDArray[np.int64]

END, BEGIN = 4, 5
LONG_EVERY = 60  # series; one of these has a distance around the largest 16-bit latency
PAIRS_OF_SERIES = 490
MORE_THAN_FITS = 700  # pairs: some are not stored
LIMITS = (0, 1, 3, 12, 60, 65_534, 65_535)


@dataclass(frozen=True)
class Series:
    """One series.

    Attributes:
        irqs: Cycles of the rising edges of irq, from the begin of the series.
        acks: The same of ack.
        alarm_lat: Its alarm threshold.
        words: What the harness reads.
    """

    irqs: Ticks
    acks: Ticks
    alarm_lat: int
    words: npt.NDArray[np.uint32]

    def events(self) -> tuple[Ticks, Ticks]:
        """Cycles with edges, and for each 1 for an irq, 2 for an ack, 3 for both."""
        ticks = np.union1d(self.irqs, self.acks)
        return ticks, np.isin(ticks, self.irqs) + 2 * np.isin(ticks, self.acks)


def _apart(ticks: Ticks) -> Ticks:
    """Edges of one signal, moved later where needed to be two cycles apart."""
    steps = 2 * np.arange(len(ticks))
    return np.maximum.accumulate(np.sort(ticks) - steps) + steps


def _gaps(chance: np.random.Generator, count: int) -> Ticks:
    """Distances between irqs: back to back, in bursts, ordinary ones."""
    kinds = chance.integers(0, 4, count)
    ordinary = chance.integers(2, 24, count)
    return np.where(kinds == 0, 2, np.where(kinds == 1, chance.integers(2, 5, count), ordinary))


def _latencies(chance: np.random.Generator, count: int) -> Ticks:
    """From none to longer than most distances."""
    kinds = chance.integers(0, 5, count)
    small = chance.integers(0, 3, count)
    return np.where(kinds == 0, small, chance.integers(0, 1 + (kinds < 4) * 8 + 16, count))


def _levels(chance: np.random.Generator, rises: Ticks, end: int) -> tuple[Ticks, Ticks]:
    """Changes of one signal: when, and to what. It is low for one cycle or more before a rise."""
    room = np.diff(np.append(rises, end)) - 1
    short = np.minimum(room, chance.integers(1, 4, len(rises)))
    falls = rises + np.where(chance.random(len(rises)) < 0.3, room, short)
    ticks = np.concatenate([rises, falls])
    levels = np.concatenate([np.ones_like(rises), np.zeros_like(falls)])
    order = np.argsort(ticks, kind="stable")
    return ticks[order], levels[order]


def series(chance: np.random.Generator, pairs: int, long: bool) -> Series:
    """One series of about so many pairs; after it both signals are low."""
    irqs = _apart(2 + np.cumsum(_gaps(chance, pairs)))
    if long:
        irqs[pairs // 2 :] += chance.integers(65_500, 66_500)
    acks = irqs + _latencies(chance, pairs)
    if long:
        acks[pairs // 2 - 1] = irqs[pairs // 2 - 1] + chance.integers(65_533, 65_539)
    irqs = irqs[chance.random(pairs) > 0.03]  # lost: orphaned acks
    acks = acks[chance.random(pairs) > 0.03]  # lost: overlaps
    acks = np.append(acks, chance.integers(2, int(irqs[-1]), 1 + pairs // 50))
    acks = _apart(acks)
    return of_edges(irqs, acks, int(chance.choice(LIMITS)), chance)


def of_edges(
    irqs: Ticks, acks: Ticks, alarm_lat: int, chance: np.random.Generator | None = None
) -> Series:
    """The series with just these edges; how long the levels last is drawn."""
    words = _words(chance or np.random.default_rng(0), irqs, acks, alarm_lat)
    return Series(irqs, acks, alarm_lat, words)


def _words(
    chance: np.random.Generator, irqs: Ticks, acks: Ticks, limit: int
) -> npt.NDArray[np.uint32]:
    end = int(max(irqs[-1], acks[-1])) + 4
    irq_ticks, irq_levels = _levels(chance, irqs, end)
    ack_ticks, ack_levels = _levels(chance, acks, end)
    ticks = np.union1d(irq_ticks, ack_ticks)

    def level_at(changes: Ticks, levels: Ticks) -> Ticks:
        at = np.searchsorted(changes, ticks, side="right") - 1
        return np.where(at >= 0, levels[np.maximum(at, 0)], 0)

    actions = level_at(irq_ticks, irq_levels) | level_at(ack_ticks, ack_levels) << 1
    gaps = np.diff(ticks, prepend=0)
    body = (gaps << 3 | actions).astype(np.uint32)
    tail = (end - int(ticks[-1])) << 3 | END
    return np.concatenate([np.array([BEGIN, limit], np.uint32), body, np.array([tail], np.uint32)])


def run(seed: int, pairs: int) -> list[Series]:
    """Series with so many pairs in all, a few with a distance beyond 16 bits or a full memory."""
    chance = np.random.default_rng(seed)
    result: list[Series] = []
    while pairs > 0:
        index = len(result)
        size = MORE_THAN_FITS if index % LONG_EVERY == 2 else PAIRS_OF_SERIES
        result.append(series(chance, size, index % LONG_EVERY == 1))
        pairs -= size
    return result
