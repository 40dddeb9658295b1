"""Bounds beside measurements: what was seen of each interrupt source, and what can be.

The bound and the worst latency that a search found are of a system file. What was seen belongs to a
source by its name. Time bases are kept apart: costs in the file are those of one machine, and only
what was seen there can be held against its bound.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from latenz.analysis import Check, CheckedSource, check
from latenz.analysis.check import EFFORT
from latenz.errors import BadInput, shown
from latenz.hypervisor.stamps import as_stamped
from latenz.model import Metadata, TimeBase
from latenz.report import words
from latenz.report.collect import View
from latenz.report.figures import Figure, Panel
from latenz.system import Mode, System
from latenz.system.schema import read_system_file

_MODE = re.compile(rf"mode ({'|'.join(get_args(Mode))})$")
_PARTS = re.compile(r"/|: ")
_TOLD = 5
_CAPTION = (
    "For each source the largest latency seen, the worst that a search found among arrivals that"
    " the system file allows, the bound that no arrivals of the file exceed, and the shortest"
    " deadline; the thin line spans what was seen. Search and bound are of the costs in the file:"
    " hold them against what was seen where these costs were measured."
)


@dataclass(frozen=True)
class Model:
    """A system file, and what bound and search say of it.

    Attributes:
        name: What the file is called.
        system: As the file describes it.
        found: Bounds and the worst latencies found, in each mode of the sample sets.
    """

    name: str
    system: System
    found: Mapping[Mode, Check]


@dataclass(frozen=True)
class Beside:
    """A source's bound beside what was seen of it.

    Attributes:
        label: Its name, with the mode where there are several.
        time_base: Of what was seen; None if no sample set is of this source.
        views: The sample sets that are of it.
        found: Its bound, and the worst latency that was found.
    """

    label: str
    time_base: str | None
    views: tuple[View, ...]
    found: CheckedSource

    @property
    def seen_ns(self) -> int | None:
        """The largest latency seen."""
        known = [view.summary.max_ns for view in self.views if view.summary.max_ns is not None]
        return max(known, default=None)

    @property
    def least_ns(self) -> int | None:
        """The smallest latency seen."""
        known = [view.summary.min_ns for view in self.views if view.summary.min_ns is not None]
        return min(known, default=None)

    @property
    def deadline_ns(self) -> int | None:
        """The shortest limit of its sample sets."""
        limits = [each.limit_ns for view in self.views for each in view.summary.deadlines]
        return min(limits, default=None)

    @property
    def broken(self) -> bool:
        """Whether something was later than the bound allows."""
        bound_ns, seen_ns = self.found.wcrt_ns, self.seen_ns
        return bound_ns is not None and seen_ns is not None and seen_ns > bound_ns

    @property
    def sentence(self) -> str:
        """What follows."""
        bound_ns, deadline_ns = self.found.wcrt_ns, self.deadline_ns
        if self.broken:
            return (
                "Seen later than the bound: costs or arrivals are not those of the system file, or"
                " the file is of another machine."
            )
        if bound_ns is None:
            return f"No bound: {self.found.reason or self.found.verdict}."
        if self.found.exceeded:
            return "The search found more than the bound: please report it with the system file."
        if self.seen_ns is None:
            return "No sample set has this source's name."
        share = f"What was seen reaches {100 * self.seen_ns / bound_ns:.3g} % of the bound."
        return f"{share} {self._of_deadline(bound_ns, deadline_ns)}".strip()

    def _of_deadline(self, bound_ns: int, deadline_ns: int | None) -> str:
        if deadline_ns is None:
            return ""
        if bound_ns <= deadline_ns:
            return "Never later than the deadline while the file holds."
        if self.seen_ns is not None and self.seen_ns > deadline_ns:
            return "The deadline was exceeded."
        if self.found.highest_ns is not None and self.found.highest_ns > deadline_ns:
            return "Not exceeded yet, but arrivals that the file allows exceed the deadline."
        return "The bound is above the deadline, but nothing was found that exceeds it."


def mode_of(metadata: Metadata, system: System) -> Mode:
    """Return how interrupts in foreign slots were handled: as the set tells, else as the file."""
    told = _MODE.search(metadata.stack or "")
    return next((mode for mode in get_args(Mode) if told and mode == told[1]), system.mode)


def source_of(metadata: Metadata, system: System) -> str | None:
    """Return the source that a sample set is of: by a part of its name, or as it tells."""
    names = {source.name for source in system.sources}
    parts = [part for part in reversed(_PARTS.split(metadata.name)) if part in names]
    told = (metadata.source or "").rpartition("source ")[2]
    return next(iter(parts), told if told in names else None)


def model_of(
    file: Path, sets: Sequence[Metadata], progress: Callable[[int, int], None] = lambda *_: None
) -> Model:
    """Bound the sources of a system and search for their worst, in each mode of some sample sets.

    Args:
        file: The system file.
        sets: What is reported.
        progress: Told how many simulations are done, and of how many.

    Raises:
        BadInput: The file has a mistake, or no sample set is of any of its sources.
    """
    system, text = read_system_file(file)
    measured = [each for each in sets if each.time_base is not TimeBase.PUBLISHED]
    modes = list(
        dict.fromkeys(mode_of(each, system) for each in measured if source_of(each, system))
    )
    if not modes:
        raise BadInput(
            f"no sample set has the name of a source ({_some([x.name for x in system.sources])})",
            "--system",
            f"sets are {_some([each.name for each in measured])}: call sources and sets alike",
        )
    found = {}
    of = 2 * EFFORT * len(system.sources)
    for number, mode in enumerate(modes):
        seen = as_stamped(system, mode, text.where)
        told = partial(_told, progress, number * of, len(modes) * of)
        found[mode] = check(seen, mode, EFFORT, progress=told)
        if not found[mode].complete:
            raise KeyboardInterrupt  # a page without its end is none
    return Model(file.name, system, found)


def _told(progress: Callable[[int, int], None], before: int, of: int, done: int) -> None:
    progress(before + done, of)


def _some(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > _TOLD else ""
    return ", ".join(map(shown, names[:_TOLD])) + more


def beside(model: Model, views: Sequence[View]) -> list[Beside]:
    """Return every source's bound beside what was seen of it, time bases apart."""
    system, found = model.system, model.found
    groups: dict[tuple[str, Mode, str], list[View]] = {}
    for view in views:
        name = source_of(view.metadata, system)
        if name is not None and not view.published:
            key = (view.time_base.value, mode_of(view.metadata, system), name)
            groups.setdefault(key, []).append(view)
    rows = [
        Beside(_label(source.name, mode, found), base, tuple(group), source)
        for base in words.TIME_BASES
        for mode, of_mode in found.items()
        for source in of_mode.sources
        if (group := groups.get((base, mode, source.name)))
    ]
    seen = {(mode, name) for _, mode, name in groups}
    return rows + [
        Beside(_label(source.name, mode, found), None, (), source)
        for mode, of_mode in found.items()
        for source in of_mode.sources
        if (mode, source.name) not in seen
    ]


def _label(name: str, mode: Mode, found: Mapping[Mode, Check]) -> str:
    return f"{name}, mode {mode}" if len(found) > 1 else name


def unmatched(views: Sequence[View], system: System) -> list[str]:
    """Return the measured sample sets that are of no source."""
    return [
        view.label
        for view in views
        if not view.published and source_of(view.metadata, system) is None
    ]


def bounds_section(model: Model, views: Sequence[View]) -> dict[str, Any]:
    """Return what the page shows of bounds beside measurements."""
    rows = beside(model, views)
    return {
        "name": model.name,
        "rows": rows,
        "figure": _figure(rows),
        "unmatched": unmatched(views, model.system),
    }


def _figure(rows: Sequence[Beside]) -> Figure | None:
    """Return the picture: a row for each source, a panel for each time base."""
    panels = []
    for base in words.TIME_BASES:
        drawn = [row for row in rows if row.time_base == base and row.seen_ns is not None]
        if drawn:
            panels.append(_panel(base, drawn))
    return (
        Figure("bounds-figure", "Bound, search and measurement", _CAPTION, panels)
        if panels
        else None
    )


def _panel(base: str, rows: Sequence[Beside]) -> Panel:
    return Panel(
        key=f"bounds-{base}",
        kind="bounds",
        time_base=base,
        title="",
        description="; ".join(map(_in_words, rows)) + ".",
        data={"series": [_drawn(row) for row in rows], "timeBase": base, "limits": []},
        rows=len(rows),
    )


def _in_words(row: Beside) -> str:
    told = (
        ("largest seen", row.seen_ns),
        ("worst found", row.found.highest_ns),
        ("bound", row.found.wcrt_ns),
        ("deadline", row.deadline_ns),
    )
    known = [f"{name} {words.duration(ns)}" for name, ns in told if ns is not None]
    return f"{row.label}: {', '.join(known)}"


def _drawn(row: Beside) -> dict[str, Any]:
    return {
        "label": row.label,
        "least": row.least_ns,
        "seen": row.seen_ns,
        "found": row.found.highest_ns,
        "bound": row.found.wcrt_ns,
        "deadline": row.deadline_ns,
    }
