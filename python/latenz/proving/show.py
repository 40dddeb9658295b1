"""What a proof found, for people and for programs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from latenz.console import Console
from latenz.durations import format_duration
from latenz.experiment.progress import Progress
from latenz.proving.proof import CONFIDENCE, Gain, Record, Trial, Wanted
from latenz.statistics.sentence import length
from latenz.terminal import printable
from latenz.tune.catalogue import load
from latenz.tune.model import Entry
from latenz.tune.plan import Plan
from latenz.tune.transaction import Phase

_STYLES = {"helps": "green", "harms": "red", "mixed": "yellow"}
_AS_MANY = 4


class Telling(Progress):
    """Shows how far a proof is: a bar on a terminal, else a line for each trial.

    Args:
        wanted: False shows nothing.
    """

    def __init__(self, wanted: bool) -> None:
        super().__init__(wanted)
        self._wanted = wanted

    def planned(self, total_ns: int) -> None:
        """Take how long it is going to take from here on."""
        self._done_s = 0.0
        super().planned(total_ns)

    def tried(self, trial: Trial) -> None:
        """Tell what became of a trial."""
        if self._wanted:
            console = self._bar.console
            console.print(Text(printable(line_of(trial))), soft_wrap=not console.is_terminal)


def proof_document(
    noted: Record, folder: str | None, applied: Phase | None = None
) -> dict[str, Any]:
    """Return a proof as a document.

    Args:
        noted: How far it is.
        folder: Where its runs are; None: nothing was tried.
        applied: How far what helps was applied, to stay; None: it was not.
    """
    entries = {entry.id: entry for entry in load()}
    return {
        "proof": folder,
        "state": noted.state,
        "figure": noted.wanted.figure,
        "isolated": noted.isolated,
        "profile": noted.profile,
        "confidence": CONFIDENCE,
        "confidence_of_each": noted.confidence_of_each,
        "repetitions": noted.repetitions,
        "trials": [_trial_document(each, entries) for each in noted.trials],
        "together": noted.together and _trial_document(noted.together, entries),
        "left": [list(group) for group in noted.left],
        "after_restart": list(noted.later),
        "helping": list(noted.helping),
        "kept": applied == "applied",
        "applied": applied,
        "not_restored": list(noted.not_restored),
    }


def nothing_document(
    wanted: Wanted,
    plan: Plan,
    groups: Sequence[tuple[str, ...]],
    later: tuple[str, ...],
    state: str,
) -> dict[str, Any]:
    """Return the document of a proof that did not begin, with the keys of one that did."""
    noted = Record(
        wanted=wanted,
        began="",
        isolated=plan.isolated,
        profile=plan.profile,
        groups=tuple(groups),
        later=later,
        statements=1,
        repetitions=2,
        seed=0,
    )
    unknown = {"confidence_of_each": None, "repetitions": None}
    return proof_document(noted, None) | {"state": state} | unknown


def _trial_document(trial: Trial, entries: dict[str, Entry]) -> dict[str, Any]:
    return {
        "entries": list(trial.entries),
        "outcome": trial.outcome,
        "reason": trial.reason or None,
        "sets": [
            {
                "name": gain.name,
                "without_ns": gain.without_ns,
                "with_ns": gain.with_ns,
                "difference_ns": _difference(gain),
                "difference_low_ns": gain.low_ns,
                "difference_high_ns": gain.high_ns,
                "why_no_interval": gain.why_no_interval or None,
            }
            for gain in trial.gains
        ],
        "costs": [
            {"id": id_, "gives_up": entries[id_].consent or None, "risk": entries[id_].risk}
            for id_ in trial.entries
            if id_ in entries
        ],
        "folder": trial.folder or None,
    }


def _difference(gain: Gain) -> float | None:
    if gain.without_ns is None or gain.with_ns is None:
        return None
    return gain.with_ns - gain.without_ns


def print_intention(
    found: Plan, groups: Sequence[tuple[str, ...]], later: Sequence[str], *, restart: bool
) -> None:
    """Print what is going to be tried, and what is not."""
    console = Console(highlight=False)
    entries = {entry.id: entry for entry in load()}
    console.print(f"To be tried, one after the other, each with and without: {len(groups)}")
    for group in groups:
        line = Text(f"  {' + '.join(group)}", "bold")
        line.append(f": effect {entries[group[0]].effect}; {_cost(group, entries)}", "not bold")
        console.say(line)
    if later:
        text = "Need a restart" + (
            ", tried last, together: " if restart else " (--restart tries them last, together): "
        )
        console.say(Text(text + ", ".join(later)))
    by_hand = dict.fromkeys(entry for each in found.by_hand for entry in each.entries)
    for label, ids in (
        ("Left to you (latenz tune plan)", list(by_hand)),
        ("Offers, not tried unless you --include them", [each.id for each in found.offers]),
    ):
        if ids:
            console.say(Text(f"{label}: {', '.join(ids)}"))


def print_proof(noted: Record, folder: str) -> None:
    """Print the table setting, gain, cost, and what it comes to."""
    console = Console(highlight=False)
    entries = {entry.id: entry for entry in load()}
    if noted.trials:
        console.print(_table(noted, entries))
    for trial in (*noted.trials, *filter(None, (noted.together,))):
        if trial.reason:
            console.say(Text(f"{' + '.join(trial.entries)}: {printable(trial.reason)}"))
    console.say(
        f"{noted.wanted.figure} of {noted.repetitions} repetitions with and without each, in turns;"
        f" all intervals hold together at {CONFIDENCE:.0%}"
        f" (each at {noted.confidence_of_each:.5g})"
    )
    console.say(Text(conclusion(noted)))
    console.say(Text(f"runs and record: {printable(folder)}"))


def conclusion(noted: Record) -> str:
    """Return what a proof comes to, as a sentence."""
    if noted.helping:
        found = f"Helps: {', '.join(noted.helping)}."
        if noted.together:
            found += f" All of that together: {noted.together.outcome}."
        return found
    unknown = sum(each.outcome == "not shown" for each in noted.trials)
    if unknown:
        longer = "more repetitions or a longer duration can tell smaller gains"
        return f"Nothing was shown to help; {unknown} cannot be told: {longer}."
    if all(each.outcome == "harms" for each in noted.trials):
        return "Nothing helps." if noted.trials else "Nothing was tried to its end."
    if all(each.outcome == "refused" for each in noted.trials):
        return "Nothing could be tried: the kernel refused all of it."
    counts = Counter(each.outcome for each in noted.trials)
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    return f"Nothing was shown to help everywhere: {told}."


def line_of(trial: Trial) -> str:
    """Return what became of a trial on one line."""
    gains = "; ".join(f"{each.name} {', '.join(_gain(each))}" for each in trial.gains[:_AS_MANY])
    told = gains or trial.reason
    return f"{' + '.join(trial.entries)}: {trial.outcome}{': ' if told else ''}{told}"


def how_long(noted: Record, tests: int, once_ns: int) -> str:
    """Return how often is measured, and how long that takes, as a sentence."""
    needed = length(max(2 * noted.repetitions * tests * once_ns / 1e9, 1))
    return f"{noted.repetitions} repetitions with and without each: about {needed}."


def _table(noted: Record, entries: dict[str, Entry]) -> Table:
    from rich.box import SIMPLE_HEAD

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("setting", overflow="fold", min_width=min(28, _longest(noted)))
    table.add_column("outcome", no_wrap=True)
    table.add_column(f"gain ({noted.wanted.figure})", overflow="fold")
    table.add_column("cost", overflow="fold")
    for trial in noted.trials:
        _add(table, "\n".join(trial.entries), trial, _cost(trial.entries, entries))
    if noted.together:
        _add(table, "all that help", noted.together, "")
    return table


def _longest(noted: Record) -> int:
    return max(len(entry) for trial in noted.trials for entry in trial.entries)


def _add(table: Table, name: str, trial: Trial, cost: str) -> None:
    cells = []
    for gain in trial.gains:
        cells += [f"{gain.name}:"] if len(trial.gains) > 1 else []
        cells += [f"{_time(gain.without_ns)} -> {_time(gain.with_ns)}", *_gain(gain)]
    outcome = Text(trial.outcome, _STYLES.get(trial.outcome, ""))
    table.add_row(name, outcome, Text(printable("\n".join(cells))), cost)


def _gain(gain: Gain) -> list[str]:
    """Return the difference, and its interval."""
    difference = _difference(gain)
    if difference is None:
        return [gain.why_no_interval or "not known"]
    share = f" ({difference / gain.without_ns:+.1%})" if gain.without_ns else ""
    if gain.low_ns is None or gain.high_ns is None:
        return [f"{_signed(difference)}{share}", f"no interval: {gain.why_no_interval}"]
    return [
        f"{_signed(difference)}{share}",
        f"{_signed(gain.low_ns)} to {_signed(gain.high_ns)}",
    ]


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + format_duration(value)


def _time(value: float | None) -> str:
    return "not known" if value is None else format_duration(value)


def _cost(ids: Iterable[str], entries: dict[str, Entry]) -> str:
    """Return what entries give up, and their risks."""
    known = [entries[id_] for id_ in ids if id_ in entries]
    texts = [
        f"gives up {each.consent}: {each.risk}" if each.consent else each.risk for each in known
    ]
    return " ".join(dict.fromkeys(text for text in texts if text)) or "no cost is known"
