"""Makes the tables of docs/beckert2014.md: runs both experiments, and what else the page compares.

Usage: .venv/bin/python docs/make_beckert2014_tables.py [-o docs/beckert2014.md]

Each table stands between <!-- name --> and <!-- /name -->; only that is replaced. All of it is
simulated from seeds, so the same sources give the same page on every machine.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENTS = ROOT / "experiments"
TESTS = ROOT / "python" / "tests"
sys.path[:0] = [str(EXPERIMENTS / "traces"), str(TESTS / "analysis")]

import dictionaries  # noqa: E402 - from the tests, which read the same counterexamples
import make_ecu_trace  # noqa: E402

from latenz import _core, published  # noqa: E402
from latenz.analysis import Simulator, bound, printed_equations, simulate  # noqa: E402
from latenz.analysis.simulate import ACTIVITIES, HANDLINGS, simulated_irqs  # noqa: E402
from latenz.system import (  # noqa: E402
    Distances,
    Exponential,
    Mode,
    Monitor,
    Periodic,
    Platform,
    RecordedTrace,
    Slot,
    Source,
    System,
    read_system,
)

Times = npt.NDArray[np.int64]
ValueT = TypeVar("ValueT")
LOADS = (1, 5, 10)
IRQS = 5000
SEEDS = range(1, 21)
CONDITIONS: dict[str, tuple[str, Mode]] = {
    "plain": ("", "plain"),
    "monitored": ("", "paper"),
    "monitored-adhering": ("adhering-", "paper"),
    "carried-adhering": ("adhering-", "carry"),
}
SHARES = {"allow-100": 1.0, "allow-25": 0.25, "allow-12.5": 0.125, "allow-6.25": 0.0625}


# --- the systems, and what is simulated of them


def system(kind: str, load: int) -> System:
    """Return a system of section 6.1."""
    return read_system(EXPERIMENTS / "systems" / f"beckert2014-{kind}{load}-percent.toml")


def d_min(source: Source) -> int:
    """Return the minimum distance of a source's monitor."""
    return known(source.monitor).distances_ns[0]


def known(value: ValueT | None) -> ValueT:
    """Return a value that is there."""
    if value is None:
        raise ValueError("nothing was computed")
    return value


@dataclass(frozen=True)
class Irqs:
    """Interrupts in the order of their arrival: when, how long, and how handled."""

    arrival_ns: Times
    latency_ns: Times
    handling: Times

    def of(self, handling: str) -> Times:
        """Return which of them were handled in this way."""
        return self.handling == HANDLINGS.index(handling)


def irqs(described: System, mode: Mode, **options: Any) -> Irqs:
    """Simulate a system of one source."""
    simulator = Simulator(described, mode, watch="irqs", **options)
    parts = list(simulated_irqs(simulator))
    arrival, top, end, handling = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("arrival_ns", "top_start_ns", "end_ns", "handling")
    )
    begin = top if simulator.latency_from == "top" else arrival
    return Irqs(arrival, end - begin, handling)


def segments(described: System, mode: Mode, **options: Any) -> tuple[Times, Times, Times]:
    """Return activities, starts and ends of all that the processor does."""
    simulator = Simulator(described, mode, watch="segments", **options)
    parts, done = [], False
    while not done:
        done = simulator.run()
        simulator.take_irqs()
        parts.append(simulator.take_segments())
    activity, start, end = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("activity", "start_ns", "end_ns")
    )
    return activity, start, end


def sample_sets(experiment: str) -> dict[str, Any]:
    """Run what an experiment simulates; return its sample sets by name."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["run", str(EXPERIMENTS / experiment), "--only", "[!h]*"]
        command += ["-o", f"{folder}/run", "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "latenz", *command], capture_output=True, check=True
        )
    return {each["name"]: each for each in json.loads(done.stdout)["sample_sets"]}


# --- how figures are written


def us(nanoseconds: float) -> str:
    """Return microseconds, whole from 10 on."""
    microseconds = nanoseconds / 1000
    return f"{microseconds:.0f}" if microseconds >= 10 else f"{microseconds:.1f}"


def percent(share: float) -> str:
    """Return per cent."""
    return f"{100 * share:.1f}"


def shares(handled: dict[str, float] | None) -> str:
    """Return direct / interposed / delayed in per cent; a dash where nothing is told."""
    if not handled:
        return "-"
    return " / ".join(percent(handled.get(handling, 0)) for handling in HANDLINGS)


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table in Markdown."""
    lines = [heading, ["---"] * len(heading), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def reported(condition: str) -> tuple[str, str]:
    """Return the published average and shares of a condition."""
    for name in ("beckert2014.figure6", "beckert2014.figure7"):
        for sample_set in published.load(name):
            metadata = sample_set.metadata
            mean_ns = metadata.reported.mean_ns if metadata.reported else None
            if metadata.condition == condition and mean_ns is not None:
                return f"~{us(mean_ns)}", shares(metadata.handled)
    return "-", "-"


def spread(values: Iterable[float]) -> str:
    """Return the least and the greatest of some times."""
    found = list(values)
    return f"{us(min(found))} .. {us(max(found))}"


# --- Figure 6


def figure6() -> list[str]:
    """Averages and shares of the experiment, over other seeds, and as published."""
    found = sample_sets("beckert2014-synthetic.toml")
    rows = []
    for condition, (kind, mode) in CONDITIONS.items():
        loads = [found[f"{condition}/load-{load}"]["mean_ns"] for load in LOADS]
        together = found[f"{condition}/together"]
        mean, handled = reported(condition)
        rows.append(
            [
                condition,
                *map(us, loads),
                f"**{us(together['mean_ns'])}**",
                mean,
                spread(_average(kind, mode, seed) for seed in SEEDS),
                shares(together["handled"]),
                handled,
            ]
        )
    heading = ("condition", *(f"{load} %" for load in LOADS), "together", "published")
    return table([*heading, f"{len(SEEDS)} seeds", "shares", "published shares"], rows)


def _average(
    kind: str, mode: Mode, seed: int, change: Callable[[System], System] = lambda s: s
) -> float:
    systems = [change(system(kind, load)) for load in LOADS]
    means = [simulate(each, mode, irqs=IRQS, seed=seed).sources[0].mean_ns for each in systems]
    return float(np.mean([mean for mean in means if mean is not None]))


def bottom_handlers() -> list[str]:
    """What a longer bottom handler changes; Eq. (17) keeps the loads."""
    rows = []
    for bottom_us in (20, 40, 70):
        change = _with_bottom(bottom_us * 1000)
        averages = [us(_average(kind, mode, 1, change)) for kind, mode in CONDITIONS.values()]
        rows.append([f"{bottom_us} us", f"{bottom_us + 5} us", *averages])
    return table(["C_BH", "direct at least", *CONDITIONS], rows)


def _with_bottom(bottom_ns: int) -> Callable[[System], System]:
    def changed(described: System) -> System:
        [source] = described.sources
        platform = described.platform
        overhead_ns = platform.schedule_ns + 2 * platform.context_switch_ns
        scale = (bottom_ns + overhead_ns) / (source.bottom_ns + overhead_ns)
        mean_ns = round(d_min(source) * scale)
        adhering = getattr(source.arrival, "min_distance_ns", 0) > 0
        arrival = Exponential(mean_ns, mean_ns if adhering else 0, seed=1)
        other = replace(source, bottom_ns=bottom_ns, arrival=arrival, monitor=Monitor((mean_ns,)))
        return replace(described, sources=(other,))

    return changed


def grants() -> list[str]:
    """Shares of interposed interrupts by what the monitor measures the distance from."""
    rows = []
    for load in LOADS:
        described = system("", load)
        least_ns = d_min(described.sources[0])
        paper, carry = (irqs(described, mode, irqs=IRQS, seed=1) for mode in ("paper", "carry"))
        far = np.diff(paper.arrival_ns, prepend=-least_ns) >= least_ns
        rules = (paper.of("interposed"), carry.of("interposed"), far & ~paper.of("direct"))
        rows.append([f"{load} %", *(percent(rule.mean()) for rule in rules)])
    told = (
        "the last that was granted (`paper`)",
        "the last that was accepted, direct ones too (`carry`)",
        "the last of any kind",
    )
    return table(["load", *told], rows)


def worst_cases() -> list[str]:
    """The latest of interrupts that all keep the minimum distance."""
    rows = []
    for condition in ("monitored-adhering", "carried-adhering"):
        kind, mode = CONDITIONS[condition]
        for load in LOADS:
            latency_ns = irqs(system(kind, load), mode, irqs=IRQS, seed=1).latency_ns
            late = f"{(latency_ns > 1_000_000).sum()} of {len(latency_ns)}"
            limit = bound(replace(system(kind, load), latency_from="arrival"), mode)
            wcrt_ns = limit.sources[0].wcrt_ns
            sound = "-" if wcrt_ns is None else us(wcrt_ns)
            eq16 = printed_equations(system(kind, load))[0].eq16_ns
            printed = "-" if eq16 is None else us(eq16)
            rows.append([condition, f"{load} %", late, us(latency_ns.max()), printed, sound])
    return table(
        ["condition", "load", "later than 1 ms", "latest", "Eq. (16)", "bound of Latenz"], rows
    )


def context_switches() -> list[str]:
    """Context switches for interposed jobs beside those of the slots."""
    rows = []
    for condition in ("monitored", "monitored-adhering"):
        kind, mode = CONDITIONS[condition]
        for load in LOADS:
            described = system(kind, load)
            platform = described.platform
            activity, start, end = segments(described, mode, irqs=IRQS, seed=1)
            switches = int((activity == ACTIVITIES.index("slot switch")).sum())
            around = activity == ACTIVITIES.index("interposing")
            job_ns = platform.schedule_ns + 2 * platform.context_switch_ns
            jobs = int((end - start)[around].sum()) // job_ns
            increase = f"{200 * jobs / switches:.0f} %"
            rows.append([condition, f"{load} %", str(switches), str(jobs), increase])
    return table(["condition", "load", "slot switches", "interposed jobs", "increase"], rows)


# --- Figure 7


def ecu(times_ns: Times, monitor: Monitor) -> System:
    """Return the system of appendix A with another trace and a monitor."""
    described = read_system(EXPERIMENTS / "systems" / "beckert2014-ecu.toml")
    [source] = described.sources
    other = replace(source, arrival=RecordedTrace(times_ns, 5), monitor=monitor)
    return replace(described, sources=(other,))


def learned(times_ns: Times, length: int = 5) -> list[int]:
    """Return what Algorithm 1 observes."""
    learner = _core.DistanceLearner()
    learner.observe(times_ns)
    return learner.observed_ns[:length]


def _while_learning(times_ns: Times) -> float:
    """Return the average latency in the learning phase, in nanoseconds."""
    learning = len(times_ns) // 10
    return float(irqs(ecu(times_ns, Monitor((1,))), "plain").latency_ns[:learning].mean())


def _after_learning(times_ns: Times, distances_ns: Iterable[float]) -> float:
    """Return the average latency in the monitored phase, in nanoseconds."""
    learning = len(times_ns) // 10
    monitor = Monitor(tuple(int(np.ceil(distance)) for distance in distances_ns))
    begin_ns = int(times_ns[learning])
    described = ecu(times_ns, monitor)
    found = irqs(described, "paper", monitored_from_ns={"ecu": begin_ns})
    return float(found.latency_ns[found.arrival_ns >= begin_ns].mean())


def figure7() -> list[str]:
    """Averages and shares of the experiment, over other traces, and as published."""
    found = sample_sets("beckert2014-ecu.toml")
    traces = [np.array(make_ecu_trace.trace(seed), dtype=np.int64) for seed in SEEDS]
    own = np.array(make_ecu_trace.trace(), dtype=np.int64)
    learning = found["allow-100/learning"]
    mean, _ = reported("learning")
    others = spread(_while_learning(trace) for trace in traces)
    rows = [["learning", us(learning["mean_ns"]), mean, others, shares(learning["handled"]), "-"]]
    for condition, share in SHARES.items():
        monitored = found[f"{condition}/monitored"]
        mean, _ = reported(condition)
        others = spread(
            _after_learning(trace, [each / share for each in learned(trace[:1100])])
            for trace in traces
        )
        mean_gap_ns = (own[-1] - own[0]) / (len(own) - 1)
        by_rate = _after_learning(own, [mean_gap_ns / share])
        rows.append(
            [
                condition,
                f"**{us(monitored['mean_ns'])}**",
                mean,
                others,
                shares(monitored["handled"]),
                us(by_rate),
            ]
        )
    heading = ("condition", "average", "published", f"{len(SEEDS)} traces", "shares")
    return table([*heading, "share of the mean rate instead"], rows)


def learning() -> list[str]:
    """What the learning phase observes, and what it would if its buffer began as zeros."""
    own = np.array(make_ecu_trace.trace(), dtype=np.int64)
    rows = [
        ("first tenth of the trace", learned(own[:1100])),
        ("whole trace", learned(own)),
        ("first tenth, trace buffer of zeros", from_zeros(own[:1100].tolist(), 5)),
    ]
    return table(
        ["learned from", *(f"δ({q})" for q in range(2, 7))],
        ([name, *map(us, vector)] for name, vector in rows),
    )


def from_zeros(times_ns: list[int], length: int) -> list[int]:
    """Return what Algorithm 1 as printed gives where the trace buffer begins as zeros."""
    buffer, observed = [0] * length, [2**63 - 1] * length
    for time in times_ns:
        observed = [min(seen, time - before) for seen, before in zip(observed, buffer, strict=True)]
        buffer = [time, *buffer[:-1]]
    return observed


# --- the equations

SMALL = Platform(0, 1_000, 4_000, 25_000)
"""No cost of slot switches; C_Mon, C_sched and C_ctx as in most counterexamples."""

FINDINGS: tuple[tuple[int, str, str, Mode], ...] = (
    (1, "slot-end-cut", "eq16", "paper"),
    (2, "shared-queue", "eq11", "plain"),
    (3, "other-interposed", "eq16", "paper"),
    (4, "direct-hit-by-interposed", "eq11", "paper"),
    (5, "other-monitor-cost", "eq16", "paper"),
    (6, "own-slot-switch", "eq11", "plain"),
    (7, "switch-inside-interposed", "eq16", "paper"),
    (8, "one-violation-shifts-queue", "eq16", "paper"),
)
"""Finding, counterexample, the equation that is exceeded, and the mode it is about. Always source
a, the first one."""


@dataclass(frozen=True)
class Exceeded:
    """A printed bound, what is reached, and what Latenz bounds it by."""

    printed_ns: int
    simulated_ns: int
    sound_ns: int


def exceeded(name: str, equation: str, mode: Mode) -> Exceeded:
    """Compute a counterexample of python/tests/data/beckert2014/counterexamples.json."""
    cases = json.loads((TESTS / "data/beckert2014/counterexamples.json").read_bytes())["cases"]
    [case] = [case for case in cases if case["name"] == name]
    described = dictionaries.system_of(case["system"])
    arrivals = dictionaries.arrivals_of(described, case["arrivals"])
    printed = getattr(printed_equations(described)[0], f"{equation}_ns")
    reached = simulate(described, mode, arrivals=arrivals).of("a").max_ns
    sound = bound(described, mode).of("a").wcrt_ns
    return Exceeded(printed, known(reached), known(sound))


def findings() -> list[str]:
    """The counterexamples: printed, reached, bounded."""
    rows = []
    for number, name, equation, mode in FINDINGS:
        found = exceeded(name, equation, mode)
        figures = map(us, (found.printed_ns, found.simulated_ns, found.sound_ns))
        rows.append([str(number), name, f"Eq. ({equation[2:]})", f"`{mode}`", *figures])
    return table(
        [
            "finding",
            "counterexample",
            "equation",
            "mode",
            "printed",
            "simulated",
            "bound of Latenz",
        ],
        rows,
    )


def interference() -> tuple[int, int]:
    """Return Eq. (14) for one minimum distance, and the interposed time reached in such a window.

    Three top handlers of 30 us at the first interrupt hold its job back, but not the next one's.
    """
    distance_ns, first_ns = 600_000, 2_000_000
    own = Source("a", "P1", 5_000, 40_000, Distances((distance_ns,)), Monitor((distance_ns,)))
    slow = [Source(f"slow{number}", "P2", 30_000, 1_000, Periodic(10**9)) for number in range(3)]
    described = System(SMALL, (Slot("P1", 1_000_000), Slot("P2", 9_000_000)), (own, *slow))
    listed = [[first_ns, first_ns + distance_ns], *([first_ns] for _ in slow)]
    arrivals = [np.array(times, dtype=np.int64) for times in listed]
    activity, start, end = segments(described, "paper", arrivals=arrivals)
    names = ("interposing", "interposed bottom handler")
    jobs = np.isin(activity, [ACTIVITIES.index(name) for name in names])
    start, end = start[jobs], end[jobs]
    taken = [
        np.maximum(np.minimum(end, at + distance_ns) - np.maximum(start, at), 0).sum()
        for at in start
    ]
    whole_job_ns = own.bottom_ns + SMALL.schedule_ns + 2 * SMALL.context_switch_ns
    return whole_job_ns, int(max(taken))


def stamps() -> tuple[int, int]:
    """Return latencies of an interrupt that keeps d_min: by its arrival, and by top handlers.

    Three top handlers of 30 us held back the one before it. A monitor that takes the start of the
    top handler for the time of the interrupt sees the two closer than d_min.
    """
    distance_ns, first_ns = 600_000, 2_000_000
    late_ns = first_ns + 3 * 30_000
    second_ns = first_ns + distance_ns
    by_arrival = _second_latency(distance_ns, _accepted(distance_ns, first_ns, second_ns))
    by_start = _second_latency(distance_ns, _accepted(distance_ns, late_ns, second_ns))
    return by_arrival, by_start


def _accepted(distance_ns: int, first_ns: int, second_ns: int) -> bool:
    monitor = _core.DistanceMonitor((distance_ns,))
    return monitor.accept(first_ns) and monitor.accept(second_ns)


def _second_latency(distance_ns: int, accepted: bool) -> int:
    """Return the latency of the second of two interrupts, with a monitor that denies it or not."""
    monitor = Monitor((distance_ns if accepted else distance_ns + 1,))
    source = Source("a", "P1", 5_000, 40_000, Distances((distance_ns,)), monitor)
    described = System(SMALL, (Slot("P1", 1_000_000), Slot("P2", 3_000_000)), (source,))
    times = np.array([2_000_000, 2_000_000 + distance_ns], dtype=np.int64)
    return int(irqs(described, "paper", arrivals=[times]).latency_ns[-1])


def others() -> list[str]:
    """Findings 9, 10 and 12, which are about no single equation's counterexample."""
    (eq14, taken), (by_arrival, by_start) = interference(), stamps()
    rows = [
        [
            "9",
            "interposed time in a window of d_min = 600 us, three top handlers of 30 us",
            f"Eq. (14): {us(eq14)}",
            us(taken),
        ],
        [
            "10",
            "latency of an interrupt that keeps d_min, stamped when its top handler starts",
            f"stamped at its arrival: {us(by_arrival)}",
            us(by_start),
        ],
        [
            "12",
            "δ(3) learned from the first tenth of ecu.csv, trace buffer of zeros",
            f"observed: {us(learned(_tenth())[1])}",
            us(from_zeros(_tenth().tolist(), 5)[1]),
        ],
    ]
    return table(["finding", "what", "as printed, or as it should be", "reached"], rows)


def _tenth() -> Times:
    return np.array(make_ecu_trace.trace()[:1100], dtype=np.int64)


# --- the page


TABLES: dict[str, Callable[[], list[str]]] = {
    "figure6": figure6,
    "bottom-handlers": bottom_handlers,
    "grants": grants,
    "worst-cases": worst_cases,
    "context-switches": context_switches,
    "figure7": figure7,
    "learning": learning,
    "findings": findings,
    "other-findings": others,
}


def filled(page: str) -> str:
    """Return the page with every table made anew."""
    for name, make in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        pattern = re.escape(begin) + ".*?" + re.escape(end)
        if len(re.findall(pattern, page, re.DOTALL)) != 1:
            raise SystemExit(f"the page must have {begin.strip()} ... {end} once")
        text = begin + "\n".join(make()) + "\n" + end
        page = re.sub(pattern, lambda _, text=text: text, page, flags=re.DOTALL)
    return page


def main() -> None:
    """Replace the tables of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "-o", "--output", type=Path, default=Path(__file__).parent / "beckert2014.md"
    )
    given = parser.parse_args()
    given.output.write_text(filled(given.output.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
