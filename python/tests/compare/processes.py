"""Latencies at 1 kHz whose every statistic is the same on both sides: made by the same process."""

from collections.abc import Callable

import numpy as np
from scipy.signal import lfilter

from latenz.model import Metadata, SampleSet, TimeBase

KHZ = 1000
Process = Callable[[np.random.Generator, int], np.ndarray]


def independent(random: np.random.Generator, n: int) -> np.ndarray:
    return (15_000 + random.gamma(4, 1000, n)).astype(np.int64)


def heavy(random: np.random.Generator, n: int) -> np.ndarray:
    return (5000 * (1 + random.pareto(1.5, n))).astype(np.int64)


def two_state(busy_s: float, quiet_s: float) -> Process:
    """15 us later while the machine is busy, for times that are exponentially distributed."""

    def latencies(random: np.random.Generator, n: int) -> np.ndarray:
        later = np.empty(n, np.int64)
        busy = random.random() < busy_s / (busy_s + quiet_s)
        begin = 0
        while begin < n:
            end = begin + int(random.exponential((busy_s if busy else quiet_s) * KHZ)) + 1
            later[begin:end] = 15_000 if busy else 0
            begin, busy = end, not busy
        return later + independent(random, n)

    return latencies


def autoregressive(memory_s: float, scale: float = 0.3, noise: float = 0) -> Process:
    """Log-normal, the logarithm forgetting with a time constant; noise that forgets at once."""

    def latencies(random: np.random.Generator, n: int) -> np.ndarray:
        keep = np.exp(-1 / (memory_s * KHZ))
        shocks = random.standard_normal(n) * np.sqrt(1 - keep * keep)
        shocks[0] = random.standard_normal()
        slow = lfilter([1], [1, -keep], shocks)
        series = slow + noise * random.standard_normal(n)
        return (15_000 * np.exp(scale * series)).astype(np.int64)

    return latencies


def stalls(each_s: float, long_s: float) -> Process:
    """15 us later during a stall that comes at fixed times."""

    def latencies(random: np.random.Generator, n: int) -> np.ndarray:
        period = int(each_s * KHZ)
        place = (np.arange(n) + random.integers(period)) % period
        return 15_000 * (place < long_s * KHZ) + independent(random, n)

    return latencies


PROCESSES: dict[str, Process] = {
    "independent": independent,
    "independent, heavy tail": heavy,
    "busy 10 ms, quiet 1 s": two_state(0.01, 1),
    "busy 100 ms, quiet 1 s": two_state(0.1, 1),
    "busy 100 ms, quiet 10 s": two_state(0.1, 10),
    "busy 100 ms, quiet 10 min": two_state(0.1, 600),
    "busy 1 s, quiet 4 s": two_state(1, 4),
    "busy 1 s, quiet 60 s": two_state(1, 60),
    "busy 2 s, quiet 8 s": two_state(2, 8),
    "busy 5 s, quiet 20 s": two_state(5, 20),
    "busy 5 s, quiet 1 s": two_state(5, 1),
    "busy 5 s, quiet 10 min": two_state(5, 600),
    "correlated over 50 ms": autoregressive(0.05),
    "correlated over 0.5 s": autoregressive(0.5),
    "correlated over 3 s": autoregressive(3),
    "slightly correlated over 3 s": autoregressive(3, 0.02, 30),
    "a stall of 10 ms each 1 s": stalls(1, 0.01),
    "a stall of 50 ms each 7 s": stalls(7, 0.05),
    "a stall of 1 s each 30 s": stalls(30, 1),
}


def run_of(name: str, latency_ns: np.ndarray) -> SampleSet:
    """Make a run of latencies at 1 kHz."""
    metadata = Metadata(name=name, time_base=TimeBase.SILICON, period_ns=10**9 // KHZ)
    return SampleSet.from_columns(metadata, latency_ns=latency_ns.astype(np.int64))
