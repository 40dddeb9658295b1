"""Latencies that resemble their neighbours, as wake-up latencies do."""

import numpy as np
from scipy.signal import lfilter

from latenz.model import Metadata, SampleSet, TimeBase


def latencies(seed: int, n: int, phi: float, scale: float = 5000) -> np.ndarray:
    """Log-normal latencies whose logarithm is an AR(1) process of unit variance times 0.3."""
    random = np.random.default_rng(seed)
    noise = random.standard_normal(n) * np.sqrt(1 - phi**2)
    noise[0] = random.standard_normal()
    return (scale * np.exp(0.3 * lfilter([1], [1, -phi], noise))).astype(np.int64)


def sample_set(name: str, latency_ns, time_base: str = "silicon", **known) -> SampleSet:
    columns = {"latency_ns": latency_ns}
    if "missed" in known:
        columns["missed"] = known.pop("missed")
    metadata = Metadata(name=name, time_base=TimeBase(time_base), **known)
    return SampleSet.from_columns(metadata, **columns)
