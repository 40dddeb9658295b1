"""The page of a comparison: its outcome, and below it the report of both sides."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from latenz.compare import Comparison, Gate
from latenz.compare.gate import parse
from latenz.compare.result import Effect, Pair
from latenz.compare.show import amount, findings
from latenz.files import replacing
from latenz.report import words
from latenz.report.collect import Progress, collect
from latenz.report.figures import Figure, Panel
from latenz.report.page import content, render
from latenz.report.runs import ReportedRun, sources_of
from latenz.report.settings import differing_settings

_LOOKS: dict[bool | None, tuple[str, str]] = {
    True: ("violates", "✕"),
    False: ("meets", "✓"),
    None: ("not-shown", "?"),
}
"""Of an outcome of a gate: the page's class, and the sign beside the sentence."""


_FOREST = (
    "B divided by A of the 99 % quantile (of the median where n cannot carry that), with its"
    " interval; right of the line B is later. A hollow mark has no interval."
)
_MOST_ROWS = 24
_FIGURES = {
    "as due": "Figures are as due: skipped activations are in them by how long they waited; as"
    " sampled they are left out",
    "of samples only": "Figures are of samples only: the sources do not tell what was skipped",
    "unlike": "Only one side counts skipped activations: figures are of samples only",
}


def write_comparison(
    sides: Sequence[ReportedRun],
    places: tuple[Path, Path],
    comparison: Comparison,
    gate: Gate | None,
    output: Path,
    progress: Progress = lambda _label: None,
) -> None:
    """Write one self-contained HTML file about a comparison.

    Args:
        sides: What was compared, named "A" and "B".
        places: Where they are.
        comparison: What was found.
        gate: What a gate said of it; None without one.
        output: The file to write; it appears only when it is whole.
        progress: Told when the work on a sample set starts.

    Raises:
        BadInput: A set is damaged, or the file cannot be written.
    """
    with replacing(output) as page:
        shown = content(sides, collect(sources_of(sides), progress=progress))
        about = {
            "kind": "comparison",
            "title": f"{places[1].resolve().name} against {places[0].resolve().name}",
            "facts": [("A", str(places[0])), ("B", str(places[1])), *shown["facts"]],
            "outcome": _outcome(gate),
            "gate": gate,
            "differing": _differing(comparison),
            "forest": _forest(comparison, gate),
            "settings": differing_settings(sides[0].info, sides[1].info),
            "confidence": comparison.settings.confidence,
            "pairs": [_pair(each) for each in comparison.pairs],
            "unfolded": _unfolded(comparison, gate),
            "unmatched": [("A", comparison.unmatched_a), ("B", comparison.unmatched_b)],
        }
        page.write_text(render({**shown, **about}, "comparison.html.j2"), encoding="utf-8")


def _unfolded(comparison: Comparison, gate: Gate | None) -> tuple[int, ...]:
    """Return the places of the pairs to show at once: a single one, or what fails the gate."""
    if len(comparison.pairs) == 1:
        return (0,)
    return gate.violating if gate else ()


def _forest(comparison: Comparison, gate: Gate | None) -> Figure | None:
    """Return the ratios of all pairs with their intervals, a row each, the largest first."""
    panels = []
    for time_base in dict.fromkeys(pair.time_base for pair in comparison.pairs):
        of_base = [pair for pair in comparison.pairs if pair.time_base == time_base]
        rows = [row for pair in of_base if (row := _ratio(pair)) is not None]
        rows.sort(key=lambda row: -row["ratio"])
        if rows:
            panels.append(_forest_panel(time_base, rows, gate))
    return Figure("forest", "Ratios of B to A", _FOREST, panels) if panels else None


def _ratio(pair: Pair) -> dict[str, Any] | None:
    """Return the ratio of a pair's p99, or of its median where that has none."""
    for statistic in ("p99", "median", "mean"):
        effect = pair.statistics.get(statistic)
        if effect is not None and effect.ratio is not None:
            return {
                "label": f"{pair.name}, {statistic}",
                "statistic": statistic,
                "ratio": effect.ratio,
                "low": effect.ratio_low,
                "high": effect.ratio_high,
            }
    return None


def _allowed(gate: Gate | None, statistics: set[str]) -> list[dict[str, Any]]:
    """Return where a gate's limits on the drawn statistics lie, as ratios of B to A.

    A percentage is one of A's size. Limits in units of time have no one place among ratios.
    """
    found: list[dict[str, Any]] = []
    for clause in parse(gate.expression).clauses() if gate else ():
        if clause.statistic in statistics and clause.kind in ("percent", "ratio"):
            change = clause.kind == "percent"
            ratio = float(1 + clause.threshold / 100 if change else clause.threshold)
            told = f"{float(clause.threshold):+.4g} %" if change else f"{ratio:.4g}"
            if ratio > 0:
                found.append({"ratio": ratio, "name": f"gate: {clause.statistic} {told}"})
    return found


def _forest_panel(time_base: str, rows: list[dict[str, Any]], gate: Gate | None) -> Panel:
    shown = rows[:_MOST_ROWS]
    allowed = _allowed(gate, {row["statistic"] for row in shown})
    more = len(rows) - len(shown)
    note = f"The {_MOST_ROWS} largest ratios of {len(rows)}; the others stand below."
    told = "; ".join(
        f"{row['label']}: {row['ratio']:.3g}"
        + ("" if row["low"] is None else f" ({row['low']:.3g} to {row['high']:.3g})")
        for row in shown
    )
    return Panel(
        key=f"forest-{time_base}",
        kind="forest",
        time_base=time_base,
        title="B / A",
        description=f"Ratios of B to A: {told}."
        + "".join(f" Dashed line, {each['name']}." for each in allowed),
        data={"series": shown, "timeBase": time_base, "limits": [], "allowed": allowed},
        notes=(note,) if more else (),
        rows=len(shown),
    )


def _outcome(gate: Gate | None) -> dict[str, str]:
    if gate is None:
        sentence = "No gate was asked for: what differs, and what cannot be told, stands below."
        return {"kind": "none", "sign": words.UNKNOWN, "sentence": sentence}
    kind, sign = _LOOKS[gate.violated]
    told = {
        True: "The gate is violated",
        False: "The gate is passed",
        None: "Whether the gate is passed cannot be told",
    }[gate.violated]
    return {"kind": kind, "sign": sign, "sentence": f"{told}: fail if {gate.expression}."}


def _effects(pairs: Sequence[Pair]) -> list[Effect]:
    known = (effect for pair in pairs for effect in pair.statistics.values())
    return [each for each in known if each.a is not None or each.b is not None]


def _differing(comparison: Comparison) -> str:
    """Say how many figures differ, and how many cannot be told."""
    if not comparison.pairs:
        return "No sample sets match: nothing was compared."
    told = _counted(_effects(comparison.pairs))
    sure = words.percent(comparison.settings.confidence)
    return f"{told} Each interval is at {sure} alone; for many together, ask a gate."


def _counted(effects: Sequence[Effect]) -> str:
    """Say of which figures B's value is surely another one."""
    ends = [(each.low, each.high) for each in effects]
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    above = sum(low > 0 for low, _ in known)
    below = sum(high < 0 for _, high in known)
    told = [f"Of {len(effects)} figures, B is above A in {above} and below it in {below}"]
    if open_ := len(known) - above - below:
        told.append(f"{open_} may be the same or are")
    if unknown := len(effects) - len(known):
        told.append(f"{unknown} cannot be told")
    return "; ".join(told) + "."


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        **vars(pair),
        "sentence": _counted(_effects([pair])),
        "figures": _FIGURES[pair.view],
        "rows": [
            _row(name, effect)
            for name, effect in pair.statistics.items()
            if effect.a is not None or effect.b is not None
        ],
        "notes": [*findings(pair), *pair.notes],
    }


def _row(name: str, effect: Effect) -> dict[str, Any]:
    def told(value: float | None, sign: str = "") -> str:
        return words.UNKNOWN if value is None else amount(name, value, sign)

    def exact(value: float | None) -> str | None:
        return None if value is None or name == "miss_rate" else words.exact(value)

    ratio_ends = effect.ratio_low, effect.ratio_high
    return {
        "name": name,
        "a": told(effect.a),
        "b": told(effect.b),
        "exact_a": exact(effect.a),
        "exact_b": exact(effect.b),
        "difference": told(effect.difference, "+"),
        "later": effect.low is not None and effect.low > 0,
        "interval": _interval(name, effect),
        "ratio": words.UNKNOWN if effect.ratio is None else f"{effect.ratio:.4g}",
        "ratio_interval": (
            words.UNKNOWN
            if None in ratio_ends
            else f"{effect.ratio_low:.4g} to {effect.ratio_high:.4g}"
        ),
        "a_sampled": told(effect.a_sampled),
        "b_sampled": told(effect.b_sampled),
    }


def _interval(name: str, effect: Effect) -> str:
    """Return the interval of a difference with what it rests on, or what would give one."""
    if effect.low is not None and effect.high is not None:
        ends = (amount(name, effect.low, "+"), amount(name, effect.high, "+"))
        return f"{ends[0]} to {ends[1]} ({effect.basis})"
    why = effect.why_no_interval or "not known"
    return f"cannot be told: {why}" + (f"; {effect.needed}" if effect.needed else "")
