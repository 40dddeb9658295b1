"""front.html: the Pareto front as a picture and a table, in one file that needs no network."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenz.analysis.explore import words
from latenz.analysis.explore.evaluate import COLUMNS, OBJECTIVES, Objective
from latenz.analysis.explore.result import CANDIDATES, Candidate, Exploration
from latenz.analysis.native import assumptions
from latenz.page.plots import Plot, PlotTable, plain, write_plots

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MOST_POINTS = 4_000
_TITLES: dict[Objective, str] = {
    "interference": "share of its slots that a partition may lose [%]",
    "switches": "slot switches per second",
    "latency": "largest bound as part of its deadline [%]",
}
_SCALES: dict[Objective, int] = {"interference": 100, "switches": 1, "latency": 100}


def write_page(found: Exploration, path: Path) -> None:
    """Write the page.

    Args:
        found: What to show.
        path: The file; `candidates.parquet` lies beside it.

    Raises:
        BadInput: It cannot be written.
    """
    title = "All deadlines can hold" if found.front else "No candidate meets all deadlines"
    notes = [f"Assumed: {each}." for each in assumptions(found.plan.system)]
    if not found.front:
        notes.append(f"{words.blocked(found)}.")
    write_plots(path, title, notes, [_plot(found, path)], _tables(found))


def _tables(found: Exploration) -> list[PlotTable]:
    headings, rows = words.table(found)
    best = f"The best in {found.plan.objectives[0]} first; system n is written as system-n.toml."
    figures = [row[:-1] for row in rows]
    changed = [(row[0], row[-1]) for row in rows[1:]]
    return [
        PlotTable("Systems", best, headings[:-1], figures, len(headings) - 2),
        PlotTable("What changes", "Against the given system.", ("system", "changed"), changed, 0),
        _reasons(found),
    ]


def _reasons(found: Exploration) -> PlotTable:
    rows = [(reason, f"{count:,}") for reason, count in found.reasons.items()]
    caption = "A bound above a deadline does not show that the deadline can be missed."
    return PlotTable("Why others are not shown to fit", caption, ("reason", "candidates"), rows, 1)


def _plot(found: Exploration, path: Path) -> Plot:
    across, up = _axes(found)
    front = [(f"system {rank}", each) for rank, each in enumerate(found.front, 1)]
    traces = [
        _others(path.parent / CANDIDATES, across, up),
        {
            **_points(found, front, across, up),
            "name": "Pareto front",
            "mode": "lines+markers",
            "line": {"shape": "hv"},
            "marker": {"size": 9},
        },
        {
            **_points(found, [("as given", found.given)], across, up),
            "name": f"as given{' (misses a deadline)' * (found.given.reason is not None)}",
            "mode": "markers",
            "marker": {"size": 12, "symbol": "x"},
        },
    ]
    caption = (
        f"{words.asked(found.plan)}; {words.tried(found)}. Across: {_TITLES[across]}; upwards: "
        f"{_TITLES[up]}. What is on the front can be bettered in one objective only at the cost "
        "of another; pointing at it tells its bounds and what changed."
    )
    return Plot("Pareto front", caption, traces, _axis(across), _axis(up))


def _axes(found: Exploration) -> tuple[Objective, Objective]:
    """Return the first two objectives; beside one alone the first of the others."""
    rest = [name for name in OBJECTIVES if name not in found.plan.objectives]
    axes = [*found.plan.objectives, *rest]
    return axes[0], axes[1]


def _axis(objective: Objective) -> dict[str, Any]:
    return {"title": {"text": _TITLES[objective]}, "rangemode": "tozero"}


def _others(candidates: Path, across: Objective, up: Objective) -> dict[str, Any]:
    """Return all that meet the deadlines, or evenly chosen ones if these are too many to draw."""
    x, y = _values(candidates, across), _values(candidates, up)
    step = max(1, -(-len(x) // _MOST_POINTS))
    which = "" if step == 1 else f" (one of {step})"
    return {
        "name": f"meets all deadlines{which}",
        "mode": "markers",
        "x": x[::step].tolist(),
        "y": y[::step].tolist(),
        "hoverinfo": "skip",
        "marker": {"size": 4, "opacity": 0.25},
    }


def _values(candidates: Path, objective: Objective) -> "npt.NDArray[np.float64]":
    """Return an objective of all feasible candidates, in the unit of its axis."""
    from pyarrow import parquet

    column = COLUMNS[objective]
    feasible = [("feasible", "=", True)]
    table = parquet.read_table(candidates, columns=[column], filters=feasible, partitioning=None)
    values: npt.NDArray[np.float64] = table[column].to_numpy() * _SCALES[objective]
    return values


def _points(
    found: Exploration, named: list[tuple[str, Candidate]], across: Objective, up: Objective
) -> dict[str, Any]:
    drawn = [
        (name, each)
        for name, each in named
        if each.value(across) is not None and each.value(up) is not None
    ]
    given = found.given.system
    return {
        "x": [(each.value(across) or 0) * _SCALES[across] for _, each in drawn],
        "y": [(each.value(up) or 0) * _SCALES[up] for _, each in drawn],
        "text": [
            "<br>".join(
                map(
                    plain,
                    [name, words.summary(found.plan, each), *words.changes(given, each.system)],
                )
            )
            for name, each in drawn
        ],
        "hoverinfo": "text",
    }
