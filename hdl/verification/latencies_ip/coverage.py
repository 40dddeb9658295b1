"""Functional coverage: which situations the tests have really been in.

Tests count hits of named bins; each simulation adds its hits to one file; the table of all bins
is in `BINS`, so that one which no test reaches is seen as a row with 0 and fails the suite.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from cocotb.triggers import RisingEdge

from verification.model.configuration import POLICIES, Configuration
from verification.model.latencies import Latencies

FILE = "LATENZ_COVERAGE"  # environment: where a simulation leaves its hits
_EVENTS = ("irq", "ack", "irq and ack")
_ORDERS = ("AW first", "W first", "AW and W at once")
_PLACES = ("read-write", "read-only", "absent")
_STROBES = ("none", "some", "all")
_LATENCIES = ("0", "1", "2", "longer", "largest that can be told", "beyond that")

BINS: dict[str, tuple[str, ...]] = {
    "event, state, policy": (
        *(f"{e}, {s}, {p}" for p in POLICIES for e in _EVENTS for s in ("idle", "open")),
        *(f"{e}, queue full, queue" for e in _EVENTS),
    ),
    "latency in cycles": _LATENCIES,
    "latency and alarm_lat": ("below", "equal", "one more", "far beyond"),
    "write order": _ORDERS,
    "write order, B waits": tuple(f"{order}, B waits" for order in _ORDERS),
    "read": ("R taken at once", "R waits", "together with a write"),
    "access": tuple(f"{a}, {p}" for a in ("read", "write") for p in _PLACES),
    "strobes": _STROBES,
    "memory": ("stops when full", "ring wraps"),
    "we": (
        "set while irq is high",
        "cleared while open",
        "set while set",
        "cleared in an ack's cycle",
    ),
}

_hits: Counter[tuple[str, str]] = Counter()


def hit(group: str, name: str) -> None:
    """Count one hit; an unknown bin is a mistake of the caller."""
    if name not in BINS[group]:
        raise KeyError(f"{group}: {name}")
    _hits[group, name] += 1


def save() -> None:
    """Write this simulation's hits where the environment says."""
    if FILE in os.environ:
        Path(os.environ[FILE]).write_text(json.dumps([[*key, n] for key, n in _hits.items()]))


def edges(ip: Configuration, model: Latencies, irq: bool, ack: bool) -> None:
    """The edges of one cycle, before the model takes them."""
    if not model.we:
        return
    event = "irq and ack" if irq and ack else "irq" if irq else "ack"
    state = "open" if model.open else "idle"
    if ip.overlap_policy == "queue" and model.open == ip.queue_depth:
        state = "queue full"
    hit("event, state, policy", f"{event}, {state}, {ip.overlap_policy}")


def samples(model: Latencies) -> None:
    """The samples of a finished series."""
    largest = model.configuration.latency_max
    special = {0: "0", 1: "1", 2: "2", largest: "largest that can be told"}
    for latency in model.true_latencies:
        hit("latency in cycles", special.get(latency, _LATENCIES[5 if latency > largest else 3]))
        distance = latency - model.alarm_lat
        far = "below" if distance < 0 else "far beyond"
        hit("latency and alarm_lat", {0: "equal", 1: "one more"}.get(distance, far))
    if model.full:
        hit("memory", "ring wraps" if model.wrap else "stops when full")


async def watch_axi(dut: Any, prefix: str) -> None:
    """Follow the handshakes of one AXI port for the bins about their order."""

    def high(name: str) -> bool:
        return bool(getattr(dut, f"{prefix}_{name}").value)

    first = order = ""
    waited = False
    while True:
        await RisingEdge(dut.aclk)
        aw, w = high("awvalid"), high("wvalid")
        if not first and (aw or w):
            first = _ORDERS[2 if aw and w else 0 if aw else 1]
        if aw and high("awready"):
            order, first = first, ""
            hit("write order", order)
        if high("bvalid") and not high("bready") and order:
            hit("write order, B waits", f"{order}, B waits")
            order = ""
        if high("rvalid"):
            if not high("rready"):
                waited = True
            else:
                hit("read", "R waits" if waited else "R taken at once")
                waited = False
        if high("arvalid") and high("arready") and aw and high("awready"):
            hit("read", "together with a write")


def report(files: list[Path]) -> tuple[str, list[str]]:
    """The table of all bins over several simulations, and the bins that none of them reached."""
    total: Counter[tuple[str, str]] = Counter()
    for file in files:
        for group, name, count in json.loads(file.read_text()):
            total[group, name] += count
    lines = ["# Functional coverage of latencies_ip (simulated)", "", "| group | bin | hits |"]
    lines.append("|---|---|---:|")
    bins = [(group, name) for group, names in BINS.items() for name in names]
    lines += [f"| {group} | {name} | {total[group, name]} |" for group, name in bins]
    missed = [f"{group}: {name}" for group, name in bins if not total[group, name]]
    reached = len(bins) - len(missed)
    return "\n".join([*lines, "", f"{reached} of {len(bins)} bins reached.", ""]), missed
