"""Explorations as terminal tables and JSON."""

from pathlib import Path
from typing import Any

from latenz.analysis.explore import words
from latenz.analysis.explore.result import Candidate, Exploration
from latenz.analysis.native import assumptions
from latenz.analysis.show import console_for_tables, plain_table, print_titled

_ROWS = 20


def print_exploration(found: Exploration, folder: Path) -> None:
    """Print the front, best first, with what changed against the given system."""
    console = console_for_tables()
    tried = words.tried(found)
    if found.front:
        title = f"least {', then '.join(found.plan.objectives)}: Pareto front, {tried}"
        headings, rows = words.table(found)
        shown = rows[: _ROWS + 1]
        figures = plain_table(*headings[:-1])
        changes = plain_table(headings[0])
        changes.add_column(headings[-1], overflow="fold")
        for row in shown:
            figures.add_row(*row[:-1])
        for row in shown[1:]:
            changes.add_row(row[0], row[-1])
        print_titled(console, title, figures)
        print_titled(console, "what changes against the given system", changes)
        if len(found.front) > _ROWS:
            console.print(f"{len(found.front) - _ROWS} more in {folder / 'front.html'}")
    else:
        console.print(f"no candidate was found that meets all deadlines, {tried}")
        console.print(words.blocked(found))
        for reason, count in list(found.reasons.items())[:_ROWS]:
            console.print(f"{count:,} candidates: {reason}")
    for assumption in assumptions(found.plan.system):
        console.print(f"assumed: {assumption}")
    console.print(f"results: {folder}", soft_wrap=True, highlight=False)


def document(found: Exploration, folder: Path) -> dict[str, Any]:
    """Return what --json prints."""
    return {
        "folder": str(folder),
        "objectives": list(found.plan.objectives),
        "deadlines_ns": dict(found.plan.deadlines_ns),
        "counts": {
            "possible": found.possible,
            "evaluated": found.evaluated,
            "feasible": found.feasible,
            "reasons": dict(found.reasons),
        },
        "given": _candidate(found, found.given),
        "front": [_candidate(found, each) for each in found.front],
        "assumptions": assumptions(found.plan.system),
        "closest": None if found.closest is None else _candidate(found, found.closest),
    }


def _candidate(found: Exploration, each: Candidate) -> dict[str, Any]:
    system = each.system
    return {
        "candidate": each.number,
        "interference_share": each.interference,
        "switches_per_s": each.switches_per_s,
        "latency_of_deadline": each.latency,
        "reason": each.reason,
        "sources": [
            {
                "name": source.name,
                "wcrt_ns": each.bounds_ns[source.name],
                "monitor_ns": source.monitor and source.monitor.distances_ns,
            }
            for source in system.sources
        ],
        "slots": [
            {"partition": slot.partition, "length_ns": slot.length_ns} for slot in system.slots
        ],
        "changes": words.changes(found.given.system, system),
    }
