"""Processes whose tails are known exactly: independent, autoregressive, in states, in clusters.

Used by the tests of tails and by `bench/tails.py`, which draws more of them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.signal import lfilter

from latenz.model import Metadata, SampleSet, TimeBase

N = 100_000
PERIOD_NS = 1_000_000
BEYOND = (10 * N, 1000 * N)
"""Activations to which tails are extrapolated: 17 minutes and a day, from 100 s."""
UNIT_NS = 10_000

Floats = np.ndarray
Make = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True)
class Process:
    """A process, and what is true of it.

    Attributes:
        make: Draws so many latencies.
        exceedance: P(latency > x).
        rate: Clusters above x an activation: -ln P(none above x in T activations) / T.
    """

    make: Make
    exceedance: Callable[[float], float]
    rate: Callable[[float], float]

    def largest(self, activations: int) -> float:
        """The latency that one cluster in so many activations exceeds."""
        return _solved(lambda x: self.rate(x) * activations)

    def level(self, activations: int) -> float:
        """The latency that one in so many activations exceeds."""
        return _solved(lambda x: self.exceedance(x) * activations)


def _solved(expected: Callable[[float], float]) -> float:
    high = 1.0
    while expected(high) > 1:
        high *= 2
    return float(brentq(lambda x: math.log(max(expected(x), 1e-300)), 1e-9, high, xtol=1e-9))


def independent(law: Any) -> Process:
    return Process(
        lambda rng, n: law.rvs(n, random_state=rng), law.sf, lambda x: -float(law.logcdf(x))
    )


def mixed(share: float, usual: Any, other: Any) -> Process:
    """Each latency is of the other law with a probability."""

    def make(rng: np.random.Generator, n: int) -> Floats:
        chosen = rng.random(n) < share
        return np.where(chosen, other.rvs(n, random_state=rng), usual.rvs(n, random_state=rng))

    def exceedance(x: float) -> float:
        return float((1 - share) * usual.sf(x) + share * other.sf(x))

    return Process(make, exceedance, lambda x: -math.log1p(-min(exceedance(x), 0.999)))


def two_states(entered: float, left: float, usual: Any, late: Any) -> Process:
    """A hidden Markov chain that enters and leaves a state of late activations."""

    def make(rng: np.random.Generator, n: int) -> Floats:
        count = int(4 * n * entered) + 50
        lengths = np.empty(2 * count, dtype=np.int64)
        lengths[::2] = rng.geometric(entered, count)
        lengths[1::2] = rng.geometric(left, count)
        state = np.repeat(np.arange(2 * count) % 2, lengths)[int(5 / left) :][:n] == 1
        assert len(state) == n
        return np.where(state, late.rvs(n, random_state=rng), usual.rvs(n, random_state=rng))

    in_state = entered / (entered + left)

    def rate(x: float) -> float:
        below = np.array([usual.cdf(x), late.cdf(x)])
        moves = np.array([[1 - entered, entered], [left, 1 - left]])
        return float(-math.log(np.linalg.eigvals(moves * below).real.max()))

    return Process(
        make, lambda x: float((1 - in_state) * usual.sf(x) + in_state * late.sf(x)), rate
    )


def autoregressive(coefficient: float) -> Process:
    """Gaussian, first order, unit variance, around 10."""
    noise = math.sqrt(1 - coefficient**2)

    def make(rng: np.random.Generator, n: int) -> Floats:
        drawn = noise * rng.normal(size=n + 1000)
        return 10 + lfilter([1], [1, -coefficient], drawn)[1000:]

    nodes, weights = np.polynomial.legendre.leggauss(200)

    def rate(x: float) -> float:
        low, high = -7.0, x - 10
        at = low + (high - low) * (nodes + 1) / 2
        kernel = stats.norm.pdf((at[np.newaxis, :] - coefficient * at[:, np.newaxis]) / noise)
        kernel *= weights * (high - low) / 2 / noise
        # from exact row sums, as quadrature alone would lose the tail
        staying = stats.norm.cdf((high - coefficient * at) / noise)
        kernel *= (staying / kernel.sum(axis=1))[:, np.newaxis]
        stationary = stats.norm.pdf(at) * weights
        for _ in range(30):
            stationary = stationary @ kernel
            stationary /= stationary.sum()
        return float(stationary @ stats.norm.sf((high - coefficient * at) / noise))

    return Process(make, lambda x: float(stats.norm.sf(x - 10)), rate)


def fading(law: Any, step: float, length: int) -> Process:
    """Moving maxima: what delays one activation delays the next ones, each by a step less."""
    steps = step * np.arange(length)

    def make(rng: np.random.Generator, n: int) -> Floats:
        drawn = law.rvs(n + length, random_state=rng)
        late = [drawn[length - k : length - k + n] - fall for k, fall in enumerate(steps)]
        return np.maximum.reduce(late)

    return Process(
        make,
        lambda x: -math.expm1(sum(float(law.logcdf(x + fall)) for fall in steps)),
        lambda x: -float(law.logcdf(x)),
    )


PROCESSES: dict[str, Process] = {
    "exponential": independent(stats.expon()),
    "lognormal, s = 0.3": independent(stats.lognorm(0.3)),
    "lognormal, s = 1": independent(stats.lognorm(1)),
    "Gaussian": independent(stats.norm(10)),
    "gamma, shape 2": independent(stats.gamma(2)),
    "gamma, shape 0.5": independent(stats.gamma(0.5)),
    "Pareto, shape 0.2": independent(stats.genpareto(0.2)),
    "Pareto, shape -0.2": independent(stats.genpareto(-0.2)),
    "mixture, 20 % slower": mixed(0.2, stats.norm(10, 0.5), stats.expon(10, 2)),
    "mixture, 1 in 5000 far off": mixed(2e-4, stats.expon(), stats.norm(40, 2)),
    "two states, bursts of 20": two_states(5e-4, 0.05, stats.expon(), stats.expon(3, 3)),
    "two states, bursts of 200": two_states(2e-4, 0.005, stats.norm(5), stats.gamma(2, 5, 2)),
    "two states, far apart, 20": two_states(5e-4, 0.05, stats.expon(), stats.expon(20, 3)),
    "two states, far apart, 200": two_states(1e-3, 0.005, stats.norm(5), stats.gamma(2, 20, 2)),
    "two states, slower, 100": two_states(1e-3, 0.01, stats.expon(), stats.expon(0, 2)),
    "autoregressive, 0.5": autoregressive(0.5),
    "autoregressive, 0.9": autoregressive(0.9),
    "moving maxima of 4, exponential": fading(stats.expon(), 0.0, 4),
    "moving maxima of 10, Pareto 0.2": fading(stats.genpareto(0.2), 0.0, 10),
    "fading stalls, lognormal": fading(stats.lognorm(1), 0.5, 8),
}


def sample_set(values: Floats, **changes: object) -> SampleSet:
    """Latencies in units of 10 us as a user would have them: whole nanoseconds, at 1 kHz."""
    known = {"name": "drawn", "time_base": TimeBase.SIMULATED, "period_ns": PERIOD_NS, **changes}
    latency_ns = (np.asarray(values) * UNIT_NS).astype(np.int64)
    return SampleSet.from_columns(Metadata.model_validate(known), latency_ns=latency_ns)


def drawn(process: Process, seed: int) -> SampleSet:
    """One draw of a process: 100 s."""
    return sample_set(process.make(np.random.default_rng(seed), N))


def truths(process: Process) -> dict[str, tuple[bool, int, float]]:
    """What is asked of a tail: whether in time, for how many activations, and the answer (ns)."""
    return {
        **{f"largest in {m:,}": (True, m, UNIT_NS * process.largest(m)) for m in BEYOND},
        **{f"one in {m:,}": (False, m, UNIT_NS * process.level(m)) for m in BEYOND},
    }
