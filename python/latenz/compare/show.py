"""A comparison in the terminal."""

from rich import box
from rich.table import Table
from rich.text import Text

from latenz.compare.judge import Gate
from latenz.compare.result import Comparison, Effect, Pair
from latenz.console import Console
from latenz.durations import format_duration

_PIPE_WIDTH = 160  # where no terminal says how wide it is, nothing need be cut


def print_comparison(
    comparison: Comparison, gate: Gate | None, console: Console | None = None
) -> None:
    """Print one table a pair, what has no counterpart, and the gate's outcome."""
    console = console or Console()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    for pair in comparison.pairs:
        console.print(_table(pair, comparison.settings.confidence))
        for note in _notes(pair):
            console.print(note, style="dim")
    for side, names in (("A", comparison.unmatched_a), ("B", comparison.unmatched_b)):
        for name in names:
            console.print(f"only in {side}: {name}", style="yellow")
    if gate is not None:
        _print_gate(gate, console)


def _table(pair: Pair, confidence: float) -> Table:
    title = f"{pair.name} ({pair.time_base} time), B - A with {confidence:.4g} intervals"
    table = Table(title=title, title_justify="left", title_style="italic")
    table.box = box.SIMPLE_HEAD
    table.add_column("statistic")
    for heading in ("A", "B", "difference", "from", "to", "ratio", "from", "to"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, effect in pair.statistics.items():
        if effect.a is None and effect.b is None:
            continue
        style = None if effect.low is None or effect.high is None else _style(effect)
        table.add_row(name, *_cells(name, effect), style=style)
    return table


def _style(effect: Effect) -> str | None:
    """Mark what is surely later or earlier."""
    if effect.low is not None and effect.low > 0:
        return "red"
    if effect.high is not None and effect.high < 0:
        return "green"
    return None


def _cells(name: str, effect: Effect) -> list[str]:
    times = [amount(name, effect.a), amount(name, effect.b)]
    times += [amount(name, each, "+") for each in (effect.difference, effect.low, effect.high)]
    ratios = (effect.ratio, effect.ratio_low, effect.ratio_high)
    return times + ["-" if ratio is None else f"{ratio:.4g}" for ratio in ratios]


def amount(statistic: str, value: float | None, sign: str = "") -> str:
    """Return a value of a statistic as people read it, with a plus where a sign is wanted."""
    if value is None:
        return "-"
    plus = "+" if sign and value > 0 else ""
    return plus + (f"{value:.4g}" if statistic == "miss_rate" else format_duration(value))


def findings(pair: Pair) -> list[str]:
    """Say what the table of a pair does not: who is later, and what its figures are of."""
    notes = []
    if later := pair.superiority:
        ends = "" if later.low is None else f" ({later.low:.3g} to {later.high:.3g})"
        notes.append(
            f"a latency of B is the greater of two with probability {later.probability:.3g}{ends}"
        )
    if maxima := pair.block_maxima:
        notes.append(
            f"block_max: median of the maxima of each {maxima.activations:,} activations,"
            f" {maxima.n_a} and {maxima.n_b} of them;"
            f" p = {maxima.p_value:.2g} if A and B were alike"
        )
    if pair.view == "as due" and (pair.skipped_a or pair.skipped_b):
        notes.append(
            f"as due: {pair.skipped_a:,} and {pair.skipped_b:,} skipped activations are among them"
        )
    if pair.view == "of samples only":
        notes.append("of samples only: the sources do not tell which activations were skipped")
    return notes


def _notes(pair: Pair) -> list[str]:
    in_order = pair.matched_by == "order"
    notes = ["matched by their order in the files: no name is on both sides"] * in_order
    notes += findings(pair)
    reasons: dict[str, list[str]] = {}
    for name, effect in pair.statistics.items():
        if effect.why_no_interval and effect.difference is not None:
            needed = f"; {effect.needed}" if effect.needed else ""
            reasons.setdefault(effect.why_no_interval + needed, []).append(name)
    if not any(note.startswith("no intervals") for note in pair.notes):
        notes += [f"no interval for {', '.join(names)}: {why}" for why, names in reasons.items()]
    return [*notes, *pair.notes]


def _print_gate(gate: Gate, console: Console) -> None:
    style = {True: "bold red", False: "green", None: "yellow"}[gate.violated]
    console.print(Text(gate.outcome, style) + f": fail if {gate.expression}")
    for reason in gate.reasons:
        console.print(f"  {reason}")
    if gate.together:
        console.print(f"  {gate.together}", style="dim")
