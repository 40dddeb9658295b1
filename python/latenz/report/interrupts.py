"""Figures about interrupts of partitions: how they were handled, and what a learned monitor does.

They follow Figs. 6 and 7 of Beckert et al., DAC 2014.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from latenz.model import HANDLINGS
from latenz.report import words
from latenz.report.collect import View
from latenz.report.distribution import Distribution
from latenz.report.figures import Figure, Panel, by_group, by_time_base

Floats = npt.NDArray[np.float64]

_BARS = 70
_WINDOWS = 20
"""A moving average is over one part in so many of all samples."""
_HANDLING = (
    "Interrupts by latency and by how they were handled: direct in their own partition's slot,"
    " interposed in a foreign one, or delayed to their own; all sets of a condition together but a"
    " learning phase, as in Fig. 6 of Beckert et al., DAC 2014. The count axis is logarithmic; the"
    " line is the average."
)
_LEARNING = (
    "Average latency of the last interrupts, over the number of the interrupt, as in Fig. 7 of"
    " Beckert et al., DAC 2014. In the shaded learning phase minimum distances are learned, and"
    " handling is direct or delayed only; then the monitor lets interrupts be interposed."
)


def interrupt_figures(views: list[View]) -> list[Figure]:
    """Return the figures that sets with handlings or learning phases give; often none."""
    handling, learning = [], []
    for time_base, members in by_time_base(views):
        groups = by_group(members)
        handled = [(name, list(filter(_shows_handling, group))) for name, group in groups]
        handling += [
            _handling_panel(f"handling-{time_base}-{number}", time_base, name, group, views)
            for number, (name, group) in enumerate(handled)
            if group
        ]
        if phases := _phases(members):
            learning.append(_learning_panel(f"learning-{time_base}", time_base, phases, views))
    found = [
        Figure("handling", "Latency by handling", _HANDLING, handling),
        Figure("learning", "Average while learning and after", _LEARNING, learning),
    ]
    return [figure for figure in found if figure.panels]


def _shows_handling(view: View) -> bool:
    return bool(view.by_handling) and view.metadata.phase != "learning"


def _phases(views: list[View]) -> dict[str, list[View]]:
    """Put the phases of one source together, in their order."""
    found: dict[str, list[View]] = {}
    for view in views:
        if view.blocks:
            found.setdefault(view.label.rpartition("/")[0], []).append(view)
    return found


def _handling_panel(
    key: str, time_base: str, name: str, group: list[View], views: list[View]
) -> Panel:
    longest = max(int(part.upper[-1]) for view in group for part in view.by_handling.values())
    edges = np.linspace(0, longest, _BARS + 1)
    series, told = [], []
    total = sum(view.summary.n or 0 for view in group)
    for number, handling in enumerate(HANDLINGS):
        parts = [view.by_handling[handling] for view in group if handling in view.by_handling]
        if parts:
            counts = np.sum([_counted(part, edges) for part in parts], axis=0)
            series.append({"label": handling, "colour": number, "dash": 0, **_bars(counts, edges)})
            told.append(f"{handling} {_percent(counts.sum() / total)}")
    mean = sum((view.summary.mean_ns or 0) * (view.summary.n or 0) for view in group) / total
    ours = f"{total:,} interrupts, average {words.duration(mean)}: {', '.join(told)}."
    return Panel(
        key=key,
        kind="handling",
        time_base=time_base,
        title=name,
        description=f"{name}: {ours}",
        data={"series": series, "timeBase": time_base, "limits": [], "mean": mean},
        notes=(ours, *_published(group[0].metadata.condition, views)),
    )


def _counted(distribution: Distribution, edges: Floats) -> npt.NDArray[np.int64]:
    """Count samples in bars of equal width, each cell where its lowest value lies."""
    bars = np.clip(np.searchsorted(edges, distribution.lowest, side="right") - 1, 0, _BARS - 1)
    counts = np.zeros(_BARS, dtype=np.int64)
    np.add.at(counts, bars, distribution.count)
    return counts


def _bars(counts: npt.NDArray[np.int64], edges: Floats) -> dict[str, list[Any]]:
    """Return the bars that hold something."""
    kept = np.flatnonzero(counts)
    return {
        "left": [round(float(edge)) for edge in edges[kept]],
        "right": [round(float(edge)) for edge in edges[kept + 1]],
        "count": counts[kept].tolist(),
    }


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _published(condition: str | None, views: list[View]) -> tuple[str, ...]:
    """Say what publications report for the same condition."""
    notes = []
    for view in views:
        same = condition is not None and view.metadata.condition == condition
        if view.published and same and view.summary.mean_ns is not None:
            handled = (view.summary.handled or {}).items()
            shares = ", ".join(f"{handling} {_percent(share)}" for handling, share in handled)
            average = words.duration(view.summary.mean_ns)
            notes.append(
                f"Published ({view.metadata.name}): average {average}"
                f"{': ' if shares else ''}{shares}."
            )
    return tuple(notes)


def _learning_panel(
    key: str, time_base: str, sources: dict[str, list[View]], views: list[View]
) -> Panel:
    series, told = [], []
    for name, group in sources.items():
        moving = _moving_average(group)
        series.append({"label": name, "at": moving.at, "mean": moving.mean_ns})
        phases = [f"{view.metadata.phase} {words.duration(view.summary.mean_ns)}" for view in group]
        told.append(f"{name}: {', '.join(phases)} on average.")
    first = next(iter(sources.values()))[0]
    reference = [
        note
        for group in sources.values()
        for note in _published(group[0].metadata.condition, views)
    ]
    if reference:
        reference = [*_published("learning", views), *reference]
    return Panel(
        key=key,
        kind="learning",
        time_base=time_base,
        title="",
        description=" ".join(told),
        data={"series": series, "learned": first.summary.n},
        notes=(*told, *reference),
    )


@dataclass(frozen=True)
class _Moving:
    at: list[int]
    mean_ns: list[float]


def _moving_average(group: list[View]) -> _Moving:
    """Return the average of the last samples after each block of the sets, in their order."""
    n = np.cumsum([0, *(count for view in group for count, _ in view.blocks)])
    total = np.cumsum([0, *(sum_ns for view in group for _, sum_ns in view.blocks)])
    window = max(1, int(n[-1]) // _WINDOWS)
    begin = np.maximum(n[1:] - window, 0)
    mean = (total[1:] - np.interp(begin, n, total)) / (n[1:] - begin)
    shown = n[1:] >= window // 5  # an average of fewer would only be noise
    return _Moving(n[1:][shown].tolist(), [round(float(ns)) for ns in mean[shown]])
