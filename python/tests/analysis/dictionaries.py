"""Systems as the oracles take them, turned into Latenz's own."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from latenz.analysis.simulate import Times
from latenz.system import (
    Arrival,
    Distances,
    Monitor,
    Periodic,
    Platform,
    Slot,
    Source,
    System,
)


def system_of(described: Mapping[str, Any]) -> System:
    """Return the system that a dictionary of counterexamples.json describes."""
    return System(
        Platform(
            described["c_switch"],
            described["c_mon"],
            described["c_sched"],
            described["c_ctx"],
            described.get("c_lim", 0),
        ),
        tuple(Slot(slot["partition"], slot["length"]) for slot in described["slots"]),
        tuple(
            Source(
                source["name"],
                source["partition"],
                source["c_th"],
                source["c_bh"],
                _arrival(source["model"]),
                Monitor(tuple(source["monitor"])) if source["monitor"] else None,
                top_sums_ns=source.get("sums"),
            )
            for source in described["sources"]
        ),
    )


def arrivals_of(system: System, listed: Mapping[str, list[int]]) -> list[Times]:
    """Return the arrival times of each source."""
    return [np.array(listed.get(source.name, ()), dtype=np.int64) for source in system.sources]


def _arrival(model: Mapping[str, Any]) -> Arrival:
    if model["type"] == "delta":
        return Distances(tuple(model["vector"]))
    return Periodic(model["period"], model["jitter"], model["dmin"])
