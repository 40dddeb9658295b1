"""The data of each figure, as plain values for the drawing code in the page.

A panel never holds two time bases: their values share neither an axis nor a scale.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from latenz.model import Deadline
from latenz.report import words
from latenz.report.collect import View
from latenz.report.distribution import exceedance, histogram_bins, violin
from latenz.report.pools import Line, choices, lines_of
from latenz.statistics import views_in_words
from latenz.statistics.extrapolation import TailFit
from latenz.statistics.mixture import MixedTail

BAND_CONFIDENCE = 0.95
_CURVE_POINTS = 24_000
_TAIL_POINTS = 40
_FAR = 10
"""A deadline beyond so many times the largest latency is an arrow at the edge."""
_TOLD_IN_WORDS = 12


@dataclass(frozen=True)
class Panel:
    """One plot.

    Attributes:
        key: A name for the plot, safe as an HTML id.
        kind: Which drawing function the page uses.
        time_base: The time base of all its values.
        title: What distinguishes it from its neighbours; may be empty.
        description: What it shows in words, for those who cannot see it.
        data: What the drawing function takes.
        notes: What a reader of the plot must know.
        rows: How many lines are drawn at first, which is what the plot's height follows.
    """

    key: str
    kind: str
    time_base: str
    title: str
    description: str
    data: dict[str, Any]
    notes: tuple[str, ...] = ()
    rows: int = 0


@dataclass(frozen=True)
class Figure:
    """Panels of one kind, under one heading."""

    key: str
    title: str
    caption: str
    panels: list[Panel]


def figures(views: list[View]) -> list[Figure]:
    """Return all figures that have anything to show, the one that carries the verdict first."""
    lines = lines_of(views)
    drawn = {choice.name for choice in choices(lines) if choice.drawn} | {""}
    points = max(48, min(200, _CURVE_POINTS // max(1, len(lines))))

    def exceedance_data(view: View) -> dict[str, Any]:
        return _exceedance_data(view, points)

    made = [
        _figure("exceedance", "Exceedance", _EXCEEDANCE, lines, drawn, exceedance_data),
        _figure("averages", "Averages and maxima", _AVERAGES, lines, drawn, _averages_data),
        _figure("violins", "Distributions side by side", _VIOLINS, lines, drawn, _violin_data),
        _figure("histograms", "Histogram", _HISTOGRAMS, lines, drawn, _histogram_data),
        _figure("series", "Latency over time", _SERIES, lines, drawn, _series_data),
    ]
    return [figure for figure in made if figure.panels]


_AVERAGES = (
    "Average and maximum of each sample set, as in Figs. 8 and 9 of Alonso et al., Electronics"
    " 2024, 13, 1626. The hatching tells the time base."
)
_VIOLINS = (
    "Each outline is as wide as latencies of that size are frequent (kernel density over the"
    " logarithm, every activation counted). Marks: median, 99 % and 99.9 % quantile, maximum."
)
_HISTOGRAMS = (
    "Number of activations in bars of a twentieth of a decade or less, or of the tool's resolution"
    " where that is coarser. Both axes are logarithmic, so that single late ones stay visible. A"
    " cross-hatched bar holds samples known only to lie beyond the tool's range."
)
_EXCEEDANCE = (
    "Share of activations at or above each latency. The band is the pointwise"
    f" {words.percent(BAND_CONFIDENCE)} Clopper-Pearson confidence interval: it assumes no"
    " distribution, but independent activations. Where the source counts skipped activations, they"
    " are in this curve by how long they waited. A thin line is the latest of several CPUs or"
    " repetitions; bands and tails are drawn for up to three lines. A dotted line leaving a curve"
    " is its fitted tail; one between triangles spans samples beyond a histogram's range."
)
_SERIES = (
    "Smallest and largest latency in each of up to 1,500 stretches of equally many samples: however"
    " long the recording, no peak is left out. Triangles mark skipped activations."
)


def by_group(views: list[View]) -> list[tuple[str, list[View]]]:
    """Return the views of each group, in the order of their first ones."""
    ordered: dict[str, list[View]] = {}
    for view in views:
        ordered.setdefault(view.group, []).append(view)
    return list(ordered.items())


def _figure(
    key: str,
    title: str,
    caption: str,
    lines: list[Line],
    drawn: set[str],
    data: Callable[[View], dict[str, Any]],
) -> Figure:
    """Return a figure with one panel for each time base: the lines share its axes."""
    panels: list[Panel] = []
    for time_base in words.TIME_BASES:
        of_base = [line for line in lines if line.view.time_base.value == time_base]
        shown = [line for line in of_base if _has(line.view, key)]
        if not shown:
            continue
        members = [view for line in shown if line.role != "set" for view in line.members]
        panels.append(
            Panel(
                key=f"{key}-{len(panels)}",
                kind=key,
                time_base=time_base,
                title="",
                description=f"{title}. {_in_words(shown)}.",
                data={
                    "series": [{**_told(line), **data(line.view)} for line in shown],
                    "timeBase": time_base,
                    **_extent(of_base),
                },
                notes=_notes(members) if key not in ("averages", "series") else (),
                rows=sum(_is_drawn(line, key) for line in shown if line.choice in drawn),
            )
        )
    return Figure(key, title, caption, panels)


def _is_drawn(line: Line, key: str) -> bool:
    """Tell whether a line of a chosen condition is drawn at first, all CPUs together."""
    if line.role == "set":
        return line.latest and key not in ("averages", "violins")
    return True


def _told(line: Line) -> dict[str, Any]:
    """Return by what the page tells a line from others, and whether it is to be drawn."""
    return {
        "label": line.view.label,
        "choice": line.choice,
        "run": line.view.run,
        "cpu": line.view.metadata.cpu if line.role != "pooled" else None,
        "role": line.role,
        "latest": line.latest,
        "colour": line.colour,
        "dash": line.dash,
    }


def _in_words(lines: list[Line]) -> str:
    """Say the main figures of pools and single sets, the latest first."""
    told = [line for line in lines if line.role != "set"] or lines
    told = sorted(told, key=lambda line: -(line.view.summary.max_ns or 0))
    parts = [words.set_in_words(line.view) for line in told[:_TOLD_IN_WORDS]]
    if left := len(told) - len(parts):
        parts.append(f"{left} more stand in the summary")
    return "; ".join(parts)


def _extent(lines: list[Line]) -> dict[str, Any]:
    """Return what all logarithmic axes of a time base share: their range, and the deadlines.

    A deadline far beyond all latencies does not stretch the axis: it is drawn as an arrow.
    """
    views = [line.view for line in lines if line.role != "pooled"]
    ends = [end for view in views for end in _ends(view) if end > 0]
    limits = _limits(views)
    if not ends:
        return {"limits": limits, "range": None}
    far = _FAR * max(ends)
    near = [limit["ns"] for limit in limits if limit["ns"] <= far]
    return {
        "limits": [{**limit, "far": limit["ns"] > far} for limit in limits],
        "range": [min([*ends, *near]), max([*ends, *near])],
    }


def _ends(view: View) -> tuple[float, float]:
    """Return the smallest latency that a logarithmic axis can show, and the largest."""
    cells = view.distribution
    largest = max(view.summary.max_ns or 0, cells.beyond_from_ns or 0)
    drawable = cells.lowest[cells.lowest > 0]
    smallest = int(drawable[0]) if len(drawable) else (view.summary.min_ns or largest)
    if len(cells.upper) and cells.upper[-1] > largest and cells.lowest[-1] >= largest:
        largest = int(cells.upper[-1])
    return float(smallest), float(largest)


def by_time_base(views: Iterable[View]) -> list[tuple[str, list[View]]]:
    """Return the views of each time base, silicon first and publications last."""
    order = list(words.TIME_BASES)
    ranked = sorted(views, key=lambda view: order.index(view.time_base.value))
    return [
        (base, list(group))
        for base, group in groupby(ranked, key=lambda view: view.time_base.value)
    ]


def _has(view: View, key: str) -> bool:
    if key == "averages":
        return view.summary.mean_ns is not None or view.summary.max_ns is not None
    if key == "series":
        return bool(view.series)
    return len(view.distribution.count) > 0


def _limits(views: list[View]) -> list[dict[str, Any]]:
    limits: dict[Deadline | tuple[str, int], None] = {}
    for view in views:
        for verdict in view.summary.deadlines:
            limits[(verdict.name, verdict.limit_ns)] = None
    return [{"name": name, "ns": ns} for name, ns in limits]


def _notes(views: list[View]) -> tuple[str, ...]:
    """Say which sets lack skipped activations, and what a logarithmic axis leaves out."""
    only = views_in_words([(view.label, view.summary.view) for view in views])
    unknown = (
        f"{view.label}: nobody knows how late {view.summary.skipped_unknown:,} skipped activations"
        " were; the exceedance curve has them above all others."
        for view in views
        if view.summary.skipped_unknown
    )
    not_drawable = (
        f"{view.label}: {view.distribution.not_drawable:,} activations at or below zero cannot be"
        " drawn on a logarithmic axis."
        for view in views
        if view.distribution.not_drawable
    )
    return (*([f"Figures {only}."] if only else []), *unknown, *not_drawable)


def _averages_data(view: View) -> dict[str, Any]:
    return {"mean": view.summary.mean_ns, "max": view.summary.max_ns}


def _violin_data(view: View) -> dict[str, Any]:
    outline = violin(view.distribution)
    return {
        "latency": _significant(outline.latency_ns, 5),
        "width": [round(float(width), 3) for width in outline.width],
        "marks": [
            {"name": name, "ns": ns}
            for name, ns in (
                ("median", view.summary.median_ns),
                ("99 %", view.summary.quantiles_ns.get("0.99")),
                ("99.9 %", view.summary.quantiles_ns.get("0.999")),
                ("max", view.summary.max_ns),
            )
            if ns is not None
        ],
    }


def _histogram_data(view: View) -> dict[str, Any]:
    bins = histogram_bins(view.distribution)
    return {
        "left": [round(float(ns), 1) for ns in bins.left],
        "right": [round(float(ns), 1) for ns in bins.right],
        "count": bins.count.tolist(),
        **_beyond(view),
    }


def _beyond(view: View) -> dict[str, Any]:
    if not view.distribution.beyond:
        return {}
    return {
        "beyond": view.distribution.beyond,
        "beyondFrom": view.distribution.beyond_from_ns or int(view.distribution.upper[-1]),
        "max": view.summary.max_ns,
    }


def _exceedance_data(view: View, points: int) -> dict[str, Any]:
    curve = exceedance(view.distribution, points, BAND_CONFIDENCE)
    return {
        "latency": curve.latency_ns.tolist(),
        "atOrAbove": curve.at_or_above.tolist(),
        "n": curve.n,
        "lower": _significant(curve.lower, 4),
        "upper": _significant(curve.upper, 4),
        **_beyond(view),
        **_tail_data(view),
    }


def _tail_data(view: View) -> dict[str, Any]:
    """Return the fitted tail, drawn to what happens once in ten times as many activations."""
    if not isinstance(view.tail, TailFit | MixedTail):
        return {}
    last = view.tail.return_level(10 * view.tail.n).value
    latencies = view.tail.threshold_ns + np.geomspace(
        1, last - view.tail.threshold_ns, _TAIL_POINTS
    )
    return {
        "tail": {
            "latency": _significant(latencies, 6),
            "share": _significant(view.tail.exceedance_curve(latencies), 4),
        }
    }


def _series_data(view: View) -> dict[str, Any]:
    return {
        "at": [
            round(bucket.at / 1e9, 6) if view.times_known else bucket.at for bucket in view.series
        ],
        "min": [bucket.min_ns for bucket in view.series],
        "max": [bucket.max_ns for bucket in view.series],
        "missed": [[i, b.missed] for i, b in enumerate(view.series) if b.missed],
        "timesKnown": view.times_known,
        "peaksOnly": view.peaks_only,
    }


def _significant(values: Iterable[float], digits: int) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values]
