"""What was learned, drawn: how distances converge, and what became of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from latenz.analysis.learn import Learned, LearnedSource
from latenz.durations import format_duration
from latenz.page.plots import Plot, plain, write_plots

_UNITS = (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1))


def write_page(output: Path, trace: str, learned: Learned, warnings: Sequence[str]) -> None:
    """Write a self-contained HTML page with two plots for each source.

    Args:
        output: The file.
        trace: What was learned from, for the title.
        learned: What was learned.
        warnings: What a reader must know.

    Raises:
        BadInput: The file cannot be written.
    """
    plots = [
        plot
        for source in learned.sources
        if source.observed_ns
        for plot in (_convergence(source), _vectors(source))
    ]
    write_plots(output, f"Minimum distances learned from {trace}", warnings, plots)


def _convergence(source: LearnedSource) -> Plot:
    unit, size = _unit(source)
    traces = []
    for index in range(len(source.observed_ns)):
        steps = [step for step in source.convergence if len(step.observed_ns) > index]
        distances = [step.observed_ns[index] for step in steps]
        seen = [step.activations for step in steps]
        traces.append(_trace(f"q = {index + 2}", seen, distances, size))
    part = f"{source.learned_from:,} of {source.activations:,}"
    return Plot(
        f"{source.name}: more of the trace shows shorter distances",
        "Least time from the first to the last of q activations, in the first 1, 2, 5, 10, 20, 50 "
        f"and 100 % of the trace. Learned from {part} activations. A curve that still falls at "
        "its end may fall further in a longer trace.",
        traces,
        {"title": {"text": "activations seen"}, "type": "log", "dtick": 1},
        _distance_axis(source, unit),
    )


def _vectors(source: LearnedSource) -> Plot:
    unit, size = _unit(source)
    whole = source.convergence[-1].observed_ns[: len(source.observed_ns)]
    q = list(range(2, len(source.observed_ns) + 2))
    rest = source.hold_out
    return Plot(
        f"{source.name}: learned, bounded, and in the whole trace",
        f"Of the {rest.activations:,} activations after the learning part "
        f"{rest.closer_than_observed:,} come closer than observed; a monitor with the bounded "
        f"distances denies {rest.denied:,}.",
        [
            _trace("observed", q, source.observed_ns, size),
            _trace("after bounding", q, source.distances_ns, size),
            _trace("whole trace", q, whole, size),
        ],
        {"title": {"text": "activations q"}, "dtick": 1 if len(q) < 20 else None},
        _distance_axis(source, unit),
    )


def _trace(name: str, x: Sequence[int], nanoseconds: Sequence[int], size: int) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": plain(name),
        "x": list(x),
        "y": [each / size for each in nanoseconds],
        "text": [format_duration(each) for each in nanoseconds],
        "hovertemplate": "%{text} (%{x:,})",
    }


def _distance_axis(source: LearnedSource, unit: str) -> dict[str, Any]:
    """Return a logarithmic axis, or a linear one where a distance is 0."""
    least = source.convergence[-1].observed_ns[0]
    return {"title": {"text": unit}, "type": "log" if least else "linear", "rangemode": "tozero"}


def _unit(source: LearnedSource) -> tuple[str, int]:
    """Return the unit in which the longest distance keeps a leading digit."""
    longest = max(source.convergence[-1].observed_ns[-1], *source.distances_ns)
    return next(unit for unit in _UNITS if longest >= unit[1] or unit[1] == 1)
