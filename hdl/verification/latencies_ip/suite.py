"""Which configurations go through which cocotb modules."""

from dataclasses import replace
from functools import cache

from verification.latencies_ip.runner import Result, simulate
from verification.model.configuration import FULL, HALVES, POLICIES, PUBLISHED, Configuration, full

CONFIGURATIONS: dict[str, Configuration] = {
    "published": PUBLISHED,
    "published_restart": replace(PUBLISHED, overlap_policy="restart"),
    "queue_of_two": replace(
        PUBLISHED,
        counters=True,
        snapshot=True,
        sums=True,
        overlap_policy="queue",
        queue_depth=2,
    ),
    **{f"full_{policy}": full(policy) for policy in POLICIES},
    "halves": HALVES,
    "linear": replace(FULL, histogram_kind="linear", histogram_bins=64, shared_time=True),
    "wide": replace(
        FULL,
        latency_width=48,
        synchroniser_stages=3,
        histogram=False,
        overlap_policy="restart",
    ),
    "deep": replace(PUBLISHED, depth=2048, latency_width=48, stream=True),
    # Of each of several IPs behind one pair of slaves; here for the bugs planted there.
    "channels": replace(PUBLISHED, depth=64, stream=True, time_stamp=True),
    "wide_queue": replace(
        FULL, latency_width=48, histogram=False, overlap_policy="queue", shared_time=True
    ),
}

RUNS = (
    *(
        ("corner_cases", name)
        for name in CONFIGURATIONS
        if name not in ("halves", "linear", "channels", "wide_queue", "deep")
    ),
    *(("axi_cases", name) for name in ("published", "halves", "wide")),
    *(("random_traffic", name) for name in ("published", "halves", "wide", "full_queue")),
    *(("additions", name) for name in ("full_queue", "halves", "linear", "wide")),
    ("wide_values", "wide_queue"),
    ("deep", "deep"),
)


@cache
def run(module: str, name: str) -> Result:
    """One simulation; once in a process, whoever asks."""
    path = f"verification.latencies_ip.{module}"
    return simulate(path, CONFIGURATIONS[name], name=f"{module}-{name}")
