"""Clusters of late samples: found where they are known, and skipped activations among them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.statistics.clusters import Exceedances, decluster, extremal_index


def exceedances(
    position: list[int],
    latency_ns: list[int] | None = None,
    missed: list[int] | None = None,
    threshold_ns: int = 1000,
    period_ns: int = 0,
    n: int = 10**6,
) -> Exceedances:
    count = len(position)
    return Exceedances(
        threshold_ns,
        np.array(latency_ns or [threshold_ns + 1] * count),
        np.array(position),
        np.array(missed or [0] * count),
        n,
        period_ns,
    )


def intervals_estimator(position: list[int]) -> float:
    """Ferro and Segers' estimator from the times of all exceedances, as printed in (5) and (8)."""
    gaps = [after - before for before, after in pairwise(position)]
    if max(gaps) <= 2:
        top, bottom = 2 * sum(gaps) ** 2, len(gaps) * sum(gap**2 for gap in gaps)
    else:
        top = 2 * sum(gap - 1 for gap in gaps) ** 2
        bottom = len(gaps) * sum((gap - 1) * (gap - 2) for gap in gaps)
    return min(1.0, top / bottom)


def test_extremal_index_is_the_inverse_cluster_size() -> None:
    rng = np.random.default_rng(6)
    alone = np.flatnonzero(rng.random(100_000) < 0.01)
    assert extremal_index(exceedances(alone.tolist())) > 0.9
    triples = np.unique(alone[:, np.newaxis] * 10 + np.arange(3))
    assert extremal_index(exceedances(triples.tolist())) == pytest.approx(1 / 3, abs=0.05)


def test_clusters_are_parted_where_they_were_put_together() -> None:
    rng = np.random.default_rng(7)
    starts = np.cumsum(rng.geometric(1 / 1000, 200) + 20)
    position = (starts[:, np.newaxis] + np.array([0, 2, 5])).ravel()
    latency = rng.integers(1001, 10**6, position.size)
    found = decluster(exceedances(position.tolist(), latency.tolist(), n=int(position[-1]) + 1))
    assert found.count == pytest.approx(200, abs=8)
    alike = np.isin(starts, position[found.starts])
    assert alike.mean() > 0.95
    peaks = latency.reshape(200, 3).max(axis=1)
    assert np.isin(found.exceedances.latency_ns[found.peaks], peaks).mean() > 0.95


@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=40),
    st.lists(st.integers(0, 12), min_size=41, max_size=41),
    st.integers(0, 11_000),
)
def test_skipped_activations_are_members_of_their_cluster_and_never_its_peak(
    distances: list[int], missed: list[int], over_ns: int
) -> None:
    """Against the series in which each skipped activation stands by itself."""
    period_ns, threshold_ns = 1000, 1000
    position, at = [], 0
    for distance, skipped in zip(distances, missed, strict=False):
        position.append(at)
        at += skipped + distance
    missed = missed[: len(position)]
    latency = [threshold_ns + 1 + over_ns + 100 * (place % 7) for place in range(len(position))]
    brief = exceedances(position, latency, missed, threshold_ns, period_ns)
    whole = sorted(
        (at + k, late - k * period_ns)
        for at, late, skipped in zip(position, latency, missed, strict=True)
        for k in range(skipped + 1)
        if late - k * period_ns > threshold_ns
    )
    assert int(brief.lengths.sum()) == len(whole)
    assert extremal_index(brief) == pytest.approx(intervals_estimator([at for at, _ in whole]))
    clusters = decluster(brief)
    of_peaks = set(
        zip(clusters.position.tolist(), brief.latency_ns[clusters.peaks].tolist(), strict=True)
    )
    assert of_peaks <= set(zip(position, latency, strict=True))
    assert brief.latency_ns.max() in brief.latency_ns[clusters.peaks]
