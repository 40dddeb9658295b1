"""What a comparison gives: effects, pairs, and the whole."""

import math
from dataclasses import dataclass, replace
from typing import Any

from latenz.compare.gate import Figure
from latenz.errors import BadInput

EXACT_NOTE = "emulated runs repeat bit for bit: these differences are exact"


@dataclass(frozen=True)
class Settings:
    """How to compare.

    Attributes:
        confidence: Two-sided confidence level of the intervals.
        seed: Seed of the resampling: the same seed gives the same intervals.
        paired: Whether to resample repetitions; None: where there are enough of them.
        deadline_ns: Limit of `miss_rate`; None: the shortest deadline that both sets have, and
            if there is none, only skipped activations count.
        replicates: How many series to resample; None: 2000, more for a high confidence.
    """

    confidence: float = 0.95
    seed: int = 1
    paired: bool | None = None
    deadline_ns: int | None = None
    replicates: int | None = None

    def __post_init__(self) -> None:
        if not 0.5 <= self.confidence <= 0.999:
            raise BadInput(
                f"{self.confidence:g} is not a confidence level we offer",
                "--confidence",
                "give one from 0.5 to 0.999",
            )
        if self.seed < 0:
            raise BadInput(f"{self.seed} is not a seed", "--seed", "give zero or more")

    @property
    def draws(self) -> int:
        """Number of replicates."""
        return self.replicates or max(2000, math.ceil(20 / (1 - self.confidence)))

    @property
    def fewest_repetitions(self) -> int:
        """Repetitions that can give an interval at all, whatever their distribution.

        All n differences lie on the same side of their median with probability 2^(1-n).
        """
        return max(2, math.ceil(1 - math.log2(1 - self.confidence) - 1e-9))


@dataclass(frozen=True)
class Effect:
    """One statistic of both sides.

    Attributes:
        a: Value of the first side; None where it is not known.
        b: Value of the second.
        difference: b - a.
        low: Lower end of the interval of the difference; None where there is none.
        high: Its upper end.
        ratio: b / a; None unless both are above zero.
        ratio_low: Lower end of the interval of the ratio.
        ratio_high: Its upper end.
        why_no_interval: What is missing for an interval; None if there is one.
    """

    a: float | None
    b: float | None
    difference: float | None
    low: float | None = None
    high: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    why_no_interval: str | None = None

    def to_json(self, unit: str) -> dict[str, Any]:
        """Return the effect as plain values; `unit` ends the names of the differences."""
        return {
            "a": self.a,
            "b": self.b,
            f"difference{unit}": self.difference,
            f"difference_low{unit}": self.low,
            f"difference_high{unit}": self.high,
            "ratio": self.ratio,
            "ratio_low": self.ratio_low,
            "ratio_high": self.ratio_high,
            "why_no_interval": self.why_no_interval,
        }


def plain(a: float | None, b: float | None, why_no_interval: str | None = None) -> Effect:
    """Return an effect without an interval."""
    if a is None or b is None:
        return Effect(a, b, None, why_no_interval="not known on both sides")
    ratio = b / a if a > 0 and b > 0 else None
    return Effect(a, b, b - a, ratio=ratio, why_no_interval=why_no_interval)


def exact(a: float | None, b: float | None) -> Effect:
    """Return an effect without uncertainty: its interval is a point."""
    effect = plain(a, b)
    ends = effect.difference, effect.ratio
    return replace(effect, low=ends[0], high=ends[0], ratio_low=ends[1], ratio_high=ends[1])


@dataclass(frozen=True)
class BlockMaxima:
    """Largest latencies of blocks of equally many activations.

    Attributes:
        activations: Length of a block.
        n_a: Blocks of the first side.
        n_b: Blocks of the second.
        p_value: Probability of ranks at least as different if both sides were alike
            (Mann and Whitney, two-sided).
    """

    activations: int
    n_a: int
    n_b: int
    p_value: float


@dataclass(frozen=True)
class Superiority:
    """Probability that a latency of B is the greater of two, ties counted half.

    Attributes:
        probability: One half: neither side is later.
        low: Lower end of its interval; None where there is none.
        high: Its upper end.
    """

    probability: float
    low: float | None = None
    high: float | None = None

    def to_json(self) -> dict[str, float | None]:
        """Return it as plain values, Cliff's delta (-1: B always earlier, 1: later) included."""
        deltas = [None if end is None else 2 * end - 1 for end in (self.low, self.high)]
        return {
            "probability_b_later": self.probability,
            "probability_low": self.low,
            "probability_high": self.high,
            "cliffs_delta": 2 * self.probability - 1,
            "cliffs_delta_low": deltas[0],
            "cliffs_delta_high": deltas[1],
        }


@dataclass(frozen=True)
class Pair:
    """What became of one sample set, or of one condition with its repetitions.

    Attributes:
        name: Name of the pair.
        time_base: What kind of clock the latencies were read from.
        identical: Whether both sides hold the same: samples in the same order, or as far as a
            histogram or printed figures tell.
        n_a: Samples of the first side; None where the source does not tell.
        n_b: Samples of the second side.
        statistics: An effect for each statistic.
        miss_limit_ns: Limit of `miss_rate`; None: only skipped activations count.
        repetitions: Repetitions that were resampled; None if it was blocks of samples.
        block_maxima: What `block_max` rests on; None without blocks of samples.
        superiority: How much later B is; None where the values are not known.
        block_length_a: Samples that were resampled together; None if none were.
        block_length_b: The same of the second side.
        notes: What a reader of the figures must know.
    """

    name: str
    time_base: str
    identical: bool
    n_a: int | None
    n_b: int | None
    statistics: dict[str, Effect]
    miss_limit_ns: int | None
    repetitions: int | None = None
    block_maxima: BlockMaxima | None = None
    superiority: Superiority | None = None
    block_length_a: float | None = None
    block_length_b: float | None = None
    notes: tuple[str, ...] = ()

    def figures(self) -> dict[str, Figure]:
        """Return what a gate sees: the largest latency has the interval of the block maxima."""
        seen = {
            name: Figure(effect.a, effect.b, effect.low, effect.high)
            for name, effect in self.statistics.items()
        }
        largest, typical = self.statistics["max"], self.statistics["block_max"]
        if largest.low is None:
            seen["max"] = Figure(largest.a, largest.b, typical.low, typical.high)
        return seen

    def to_json(self) -> dict[str, Any]:
        """Return the pair as plain values for JSON."""
        maxima = self.block_maxima
        return {
            "name": self.name,
            "time_base": self.time_base,
            "identical": self.identical,
            "n_a": self.n_a,
            "n_b": self.n_b,
            "repetitions": self.repetitions,
            "statistics": {
                name if name == "miss_rate" else f"{name}_ns": effect.to_json(
                    "" if name == "miss_rate" else "_ns"
                )
                for name, effect in self.statistics.items()
            },
            "superiority": self.superiority and self.superiority.to_json(),
            "block_maxima": maxima and vars(maxima),
            "block_length_a": self.block_length_a,
            "block_length_b": self.block_length_b,
            "miss_limit_ns": self.miss_limit_ns,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Comparison:
    """The whole result."""

    settings: Settings
    pairs: tuple[Pair, ...]
    unmatched_a: tuple[str, ...]
    unmatched_b: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain values for JSON."""
        return {
            "confidence": self.settings.confidence,
            "seed": self.settings.seed,
            "replicates": self.settings.draws,
            "pairs": [pair.to_json() for pair in self.pairs],
            "unmatched_a": list(self.unmatched_a),
            "unmatched_b": list(self.unmatched_b),
        }
