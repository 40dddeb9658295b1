"""What a comparison gives: effects, pairs, and the whole."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from latenz.compare.estimate import Contrast, fewest_repetitions
from latenz.compare.matching import MatchedBy
from latenz.errors import BadInput
from latenz.statistics.due import View

EXACT_NOTE = "emulated runs repeat bit for bit: these differences are exact"

MAIN_FIGURES = ("mean", "median", "p99")
"""What a comparison without a gate has to tell to have told anything."""

Basis = Literal["repetitions", "paired repetitions", "one run of each side", "exact"]
"""What an interval rests on, and hence what it covers."""


@dataclass(frozen=True)
class Settings:
    """How to compare.

    Attributes:
        confidence: Two-sided confidence level of the intervals.
        seed: Goes into the result as it is: nothing is drawn at random any more.
        paired: Whether the i-th repetition of A belongs to the i-th of B.
        deadline_ns: Limit of `miss_rate`; None: the shortest deadline that both sets have, and
            if there is none, only skipped activations count.
    """

    confidence: float = 0.95
    seed: int = 1
    paired: bool = False
    deadline_ns: int | None = None

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
    def fewest_repetitions(self) -> int:
        """Repetitions of each side that can give an interval at all."""
        return fewest_repetitions(1 - self.confidence, self.paired)


@dataclass(frozen=True)
class Needed:
    """What would give an interval where there is none.

    Attributes:
        repetitions: Of each side, at the least.
        duration_s: How long each has to be, at the least; None where it is not known how long the
            present ones are: as long as these.
    """

    repetitions: int
    duration_s: float | None

    def __str__(self) -> str:
        """Return it as the end of a sentence."""
        long = "as long as these" if self.duration_s is None else f"of {self.duration_s:.4g} s"
        return f"{self.repetitions} repetitions of each side, {long}, can tell"


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
        basis: What the interval rests on; None if there is none.
        why_no_interval: What is missing for an interval; None if there is one.
        needed: What would give one; None if there is one, or nothing would.
        contrast: The estimates of both sides, for other confidence levels.
        alike: Whether both values are of the same view on skipped activations.
        a_sampled: `a` of the samples alone; None where it is not known, or only of activations.
        b_sampled: The same of `b`.
    """

    a: float | None
    b: float | None
    difference: float | None
    low: float | None = None
    high: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    basis: Basis | None = None
    why_no_interval: str | None = None
    needed: Needed | None = None
    contrast: Contrast | None = field(default=None, repr=False, compare=False)
    alike: bool = True
    a_sampled: float | None = None
    b_sampled: float | None = None

    def to_json(self, unit: str) -> dict[str, Any]:
        """Return the effect as plain values; `unit` ends the names of the differences."""
        return {
            "a": self.a,
            "b": self.b,
            "a_sampled": self.a_sampled,
            "b_sampled": self.b_sampled,
            f"difference{unit}": self.difference,
            f"difference_low{unit}": self.low,
            f"difference_high{unit}": self.high,
            "ratio": self.ratio,
            "ratio_low": self.ratio_low,
            "ratio_high": self.ratio_high,
            "basis": self.basis,
            "why_no_interval": self.why_no_interval,
            "needed": self.needed and vars(self.needed),
        }


def plain(
    a: float | None,
    b: float | None,
    why_no_interval: str | None = None,
    needed: Needed | None = None,
) -> Effect:
    """Return an effect without an interval."""
    if a is None or b is None:
        return Effect(a, b, None, why_no_interval="not known on both sides")
    ratio = b / a if a > 0 and b > 0 else None
    return Effect(a, b, b - a, ratio=ratio, why_no_interval=why_no_interval, needed=needed)


def exact(a: float | None, b: float | None) -> Effect:
    """Return an effect without uncertainty: its interval is a point."""
    effect = plain(a, b)
    if effect.difference is None:
        return effect
    ends = effect.difference, effect.ratio
    return replace(
        effect, low=ends[0], high=ends[0], ratio_low=ends[1], ratio_high=ends[1], basis="exact"
    )


def estimated(effect: Effect, contrast: Contrast, basis: Basis, settings: Settings) -> Effect:
    """Add the intervals of a contrast to an effect, or what would give them."""
    ends = contrast.difference(settings.confidence)
    if effect.difference is None or ends is None:
        return effect
    ratio = contrast.ratio(settings.confidence) if effect.ratio is not None else None
    ratio_low, ratio_high = ratio or (None, None)
    return replace(
        effect,
        low=ends[0],
        high=ends[1],
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        basis=basis,
        why_no_interval=None,
        needed=None,
        contrast=contrast,
    )


@dataclass(frozen=True)
class BlockMaxima:
    """Largest latencies of blocks of equally many activations.

    Attributes:
        activations: Length of a block.
        n_a: Blocks of the first side.
        n_b: Blocks of the second.
        p_value: Probability of medians at least as different if both sides were alike.
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
        sets_a: Names of the sets of the first side.
        sets_b: Those of the second, in the same order.
        matched_by: What says that they belong together.
        time_base: What kind of clock the latencies were read from.
        view: Whether the figures are of all activations `as due`, or `of samples only`, skipped
            ones left out; `unlike` if only one side counts those: figures are of samples then,
            and no gate takes them.
        identical: Whether both sides hold the same: samples in the same order, or as far as a
            histogram or printed figures tell.
        n_a: Samples of the first side; None where the source does not tell.
        n_b: Samples of the second side.
        skipped_a: Activations of the first side that got no sample; None where it does not tell.
        skipped_b: The same of the second side.
        statistics: An effect for each statistic.
        miss_limit_ns: Limit of `miss_rate`; None: only skipped activations count.
        repetitions: Repetitions of A and B; None if there is one run of each.
        block_maxima: What `block_max` rests on; None if that has no interval or is of repetitions.
        superiority: How much later B is; None where the values are not known.
        block_length_a: Activations in one of the stretches that intervals of a single run rest on;
            None of repetitions, and of what is certain.
        block_length_b: The same of the second side.
        notes: What a reader of the figures must know.
    """

    name: str
    sets_a: tuple[str, ...]
    sets_b: tuple[str, ...]
    matched_by: MatchedBy
    time_base: str
    view: View | Literal["unlike"]
    identical: bool
    n_a: int | None
    n_b: int | None
    skipped_a: int | None
    skipped_b: int | None
    statistics: dict[str, Effect]
    miss_limit_ns: int | None
    repetitions: tuple[int, int] | None = None
    block_maxima: BlockMaxima | None = None
    superiority: Superiority | None = None
    block_length_a: float | None = None
    block_length_b: float | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the pair as plain values for JSON."""
        maxima = self.block_maxima
        return {
            "name": self.name,
            "sets_a": list(self.sets_a),
            "sets_b": list(self.sets_b),
            "matched_by": self.matched_by,
            "time_base": self.time_base,
            "view": self.view,
            "identical": self.identical,
            "n_a": self.n_a,
            "n_b": self.n_b,
            "skipped_a": self.skipped_a,
            "skipped_b": self.skipped_b,
            "repetitions": self.repetitions and min(self.repetitions),
            "repetitions_a": self.repetitions and self.repetitions[0],
            "repetitions_b": self.repetitions and self.repetitions[1],
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

    @property
    def told(self) -> bool:
        """Whether sets match, and each of the `MAIN_FIGURES` of both sides has an interval."""
        effects = [pair.statistics.get(name) for pair in self.pairs for name in MAIN_FIGURES]
        return bool(self.pairs) and all(
            effect is None or effect.difference is None or effect.low is not None
            for effect in effects
        )

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain values for JSON."""
        return {
            "confidence": self.settings.confidence,
            "seed": self.settings.seed,
            "pairs": [pair.to_json() for pair in self.pairs],
            "unmatched_a": list(self.unmatched_a),
            "unmatched_b": list(self.unmatched_b),
        }
