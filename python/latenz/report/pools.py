"""What is drawn of many sample sets: those that differ by CPU or repetition only are one line.

Thirty-two curves of one condition are a smear, and the one that matters is hidden in it. Figures
therefore draw all CPUs of a condition together and its latest CPU beside it; the page can draw
each instead.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from latenz.model import TimeBase
from latenz.report.collect import View
from latenz.report.distribution import Distribution, pooled
from latenz.statistics import QUANTILES
from latenz.statistics.figures import carries_quantile, quantile_rank

_NUMBERED = re.compile(r"\b(cpu|thread)[ _-]?[0-9]+\b", re.IGNORECASE)
_MOST_DRAWN = 8

Role = Literal["pooled", "single", "set"]


@dataclass(frozen=True)
class Line:
    """One line of a figure, or one row.

    Attributes:
        view: What it shows; of a pool its label, figures and distribution are those of all.
        members: The sample sets that it is made of.
        choice: The condition by which a reader chooses it; empty: it is always drawn.
        role: A pool, one of its sets, or a set that belongs to no pool.
        latest: Whether it is the set of its pool with the largest latency.
        colour: Number of its colour; lines of one condition share it.
        dash: Number of its dash: one for each run.
    """

    view: View
    members: tuple[View, ...]
    choice: str
    role: Role
    latest: bool = False
    colour: int = 0
    dash: int = 0


@dataclass(frozen=True)
class Choice:
    """A condition, run or CPU that a reader can choose, and whether it is drawn at first."""

    name: str
    drawn: bool = True


def condition_of(view: View) -> str:
    """Return what a set was measured under, without the run's name."""
    return view.group.removeprefix(f"{view.run}: ")


def _kind(view: View) -> str:
    """Return the last part of a set's name, without the number of a CPU."""
    return _NUMBERED.sub(r"\1", view.metadata.name.rpartition("/")[2])


def _key(view: View) -> tuple[str, ...]:
    metadata = view.metadata
    own = view.label if view.time_base is TimeBase.PUBLISHED else ""
    what = (metadata.from_event, metadata.to_event, metadata.tool, metadata.resolution_ns)
    view_of = (view.time_base.value, view.summary.view)
    return (own, view.run, view.group, _kind(view), *view_of, *map(str, what))


def lines_of(views: Sequence[View]) -> list[Line]:
    """Return all lines of some views: each pool followed by its sets, and single sets."""
    of_key: dict[tuple[str, ...], list[View]] = {}
    for view in views:
        of_key.setdefault(_key(view), []).append(view)
    by_kind = _chosen_by_kind(views)
    runs = list(dict.fromkeys(view.run for view in views))
    colours: dict[str, int] = {}
    lines: list[Line] = []
    for members in of_key.values():
        first = members[0]
        name = _name(members)
        look = (colours.setdefault(name, len(colours)), runs.index(first.run))
        choice = _kind(first) if by_kind else condition_of(first)
        lines += _lines(members, choice if first.time_base is not TimeBase.PUBLISHED else "", look)
    return lines


def _chosen_by_kind(views: Sequence[View]) -> bool:
    """Tell whether all sets have one condition, so that only what they measured differs."""
    return len({condition_of(view) for view in views if not view.published}) <= 1


def _name(members: Sequence[View]) -> str:
    """Return what a pool is called in its run: its condition, and what it measured."""
    first = members[0]
    condition = "" if condition_of(first) == first.run else condition_of(first)
    kind = _kind(first)
    told = "" if kind.lower() in ("cpu", "thread") and condition else kind
    return ": ".join(part for part in (condition, told) if part)


def _lines(members: Sequence[View], choice: str, look: tuple[int, int]) -> list[Line]:
    colour, dash = look
    distribution = pooled([view.distribution for view in members]) if len(members) > 1 else None
    if distribution is None:
        return [Line(view, (view,), choice, "single", colour=colour, dash=dash) for view in members]
    latest = max(members, key=lambda view: view.summary.max_ns or 0)
    places = {view.metadata.cpu for view in members} - {None}
    of_all = f"{len(places)} CPUs" if len(places) == len(members) else f"{len(members)} sets"
    prefix = f"{members[0].run}: " if members[0].run else ""
    label = f"{prefix}{_name(members)}, {of_all} together"
    pool = Line(_together(members, label, distribution), tuple(members), choice, "pooled")
    sets = [Line(view, (view,), choice, "set", latest=view is latest) for view in members]
    return [replace(each, colour=colour, dash=dash) for each in (pool, *sets)]


def _together(members: Sequence[View], label: str, distribution: Distribution) -> View:
    """Return the view of a pool; its quantiles are the lowest values of cells, 0.1 % wide."""
    counts = [view.summary.n_due or view.summary.n or 0 for view in members]
    means = [view.summary.mean_ns for view in members]
    mean_ns = (
        None
        if None in means or not sum(counts)
        else sum(m * n for m, n in zip(means, counts, strict=True) if m is not None) / sum(counts)
    )
    quantiles_ns = {p: _quantile(distribution, p) for p in QUANTILES}
    verdicts = tuple(verdict for view in members for verdict in view.summary.deadlines)
    summary = replace(
        members[0].summary,
        n=distribution.n,
        n_due=None,
        mean_ns=mean_ns,
        median_ns=quantiles_ns["0.5"],
        max_ns=max((view.summary.max_ns or 0 for view in members), default=None),
        quantiles_ns=quantiles_ns,
        deadlines=verdicts,
        skipped_unknown=sum(view.summary.skipped_unknown for view in members),
    )
    return View(label, members[0].group, members[0].metadata, summary, distribution)


def _quantile(distribution: Distribution, probability: str) -> int | None:
    """Return the ceil(p n)-th smallest as far as cells tell it; None where n cannot carry it."""
    if not distribution.n or not carries_quantile(probability, distribution.n):
        return None
    until = np.cumsum(distribution.count)
    place = int(np.searchsorted(until, quantile_rank(probability, distribution.n)))
    return int(distribution.lowest[place]) if place < len(until) else None


def choices(lines: Sequence[Line]) -> list[Choice]:
    """Return the conditions to choose from; drawn at first are those with the latest lines."""
    of_name: dict[str, list[Line]] = {}
    for line in lines:
        if line.choice and line.role != "set":
            of_name.setdefault(line.choice, []).append(line)
    drawn: set[str] = set()
    left = _MOST_DRAWN
    for name in sorted(of_name, key=lambda name: -max(map(_largest, of_name[name]))):
        if drawn and len(of_name[name]) > left:
            break
        drawn.add(name)
        left -= len(of_name[name])
    return [Choice(name, name in drawn) for name in of_name]


def _largest(line: Line) -> int:
    return line.view.summary.max_ns or 0


def cpus(lines: Sequence[Line]) -> list[int]:
    """Return the CPUs to choose from: those of pools."""
    found = {line.view.metadata.cpu for line in lines if line.role == "set"}
    return sorted(cpu for cpu in found if cpu is not None)
