"""No gate passes as improved when half of all activations were missed, nobody knows how late."""

import numpy as np
import pytest
from test_compare_command import run

from latenz.model import Metadata, SampleSet, TimeBase
from latenz.store.parquet import write_parquet

N = 20_000


@pytest.mark.parametrize("period_ns", [None, 1_000_000])
def test_faster_samples_pass_no_gate_if_half_was_missed(tmp_path, period_ns) -> None:
    """By a program that skips every other activation without having been late."""
    random = np.random.default_rng(1)
    for name, mean_ns, missed in (("before", 10_000, 0), ("after", 9_000, 1)):
        known = Metadata(name="set", time_base=TimeBase.SILICON, period_ns=period_ns)
        latency_ns = random.normal(mean_ns, 500, N).astype(np.int64)
        sample_set = SampleSet.from_columns(known, latency_ns=latency_ns, missed=np.full(N, missed))
        write_parquet(sample_set, tmp_path / name)
    files = (tmp_path / "before", tmp_path / "after")
    for figure in ("mean", "median", "p90", "p99", "max", "stdev"):
        assert run(*files, "--fail-if", f"{figure} > +10%").returncode == 3, figure
    assert run(*files, "--fail-if", "miss_rate > +10%").returncode == 1
