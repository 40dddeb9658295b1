"""The figure of messages between processors: latency over size, as Fig. 5 of coppik2025."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from latenz.engines.intercore import DEFAULT_BYTES, WITHOUT_PAYLOAD
from latenz.report import words
from latenz.report.collect import View
from latenz.report.figures import Figure, Panel

_CAPTION = (
    "Median and 99 % quantile of half a round trip over the size of the message, as in Fig. 5 of"
    " Coppik et al., NG-RES 2025; both axes are logarithmic. Solid: median, dotted: 99 % quantile,"
    " dashed: the raw limit measured in turns with it, one cache line that both sides poll."
    " Where that moves, compare distances between lines, not their heights."
)
_SET, _RAW = "half-round-trip", "raw"


@dataclass(frozen=True)
class _Point:
    """One size: the set of its messages, and the one of the raw limit beside it."""

    size: int
    view: View
    raw: View | None


_Line = list[_Point]


def size_figures(
    runs: Sequence[tuple[str, Sequence[dict[str, Any]], Sequence[View]]],
) -> list[Figure]:
    """Return latency over size for everything that was measured at two sizes or more.

    Args:
        runs: Of each run what its lines' names begin with, the accounts of its conditions, and the
            views of its sample sets.
    """
    lines: dict[str, dict[str, _Line]] = {}
    for prefix, accounts, views in runs:
        by_name = {view.metadata.name: view for view in views}
        for name, point in _points(accounts, by_name):
            of_base = lines.setdefault(point.view.time_base, {})
            of_base.setdefault(prefix + name, []).append(point)
    panels = []
    for time_base, found in lines.items():
        by_size = {name: sorted(line, key=attrgetter("size")) for name, line in found.items()}
        shown = {name: line for name, line in by_size.items() if line[0].size < line[-1].size}
        if shown:
            panels.append(_panel(time_base, shown))
    return [Figure("sizes", "Latency over size", _CAPTION, panels)] if panels else []


def _points(
    accounts: Sequence[dict[str, Any]], by_name: dict[str, View]
) -> Iterator[tuple[str, _Point]]:
    """Give each measured size, with a name for all that differs in nothing but the size."""
    for account in accounts:
        engine = account.get("engine", {})
        settings = engine.get("settings", {})
        if engine.get("name") != "intercore" or settings.get("through") in WITHOUT_PAYLOAD:
            continue
        for name in account.get("sample_sets", ()):
            stem, _, kind = name.rpartition("/")
            if kind == _SET and name in by_name:
                size = settings["bytes"] or DEFAULT_BYTES
                point = _Point(size, by_name[name], by_name.get(f"{stem}/{_RAW}"))
                yield _line_name(account, settings), point


def _line_name(account: dict[str, Any], settings: dict[str, Any]) -> str:
    load = account.get("load", {}).get("name", "none")
    memory = settings.get("memory", "shared")
    parts = [
        settings["through"],
        "" if memory == "shared" else f"through {memory}",
        "back" if settings.get("direction") == "back" else "",
        "" if load == "none" else f"under load {load}",
    ]
    return " ".join(part for part in parts if part)


def _panel(time_base: str, lines: dict[str, _Line]) -> Panel:
    series = [
        {
            "label": name,
            "bytes": [point.size for point in line],
            "median": [point.view.summary.median_ns for point in line],
            "p99": [point.view.summary.quantiles_ns["0.99"] for point in line],
            "raw": [point.raw.summary.median_ns if point.raw else None for point in line],
        }
        for name, line in lines.items()
    ]
    told = [
        f"{name}: {line[0].size} B {words.duration(line[0].view.summary.median_ns)}"
        f" to {line[-1].size} B {words.duration(line[-1].view.summary.median_ns)}"
        for name, line in lines.items()
    ]
    return Panel(
        key=f"sizes-{time_base}",
        kind="sizes",
        time_base=time_base,
        title="",
        description=f"Latency over size. {'; '.join(told)}.",
        data={"series": series, "timeBase": time_base, "limits": []},
    )
