"""Holding a machine against the catalogue."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from latenz.terminal import printable
from latenz.tune import probes_vm  # noqa: F401 - its readers are found by their probes
from latenz.tune.catalogue import load_all
from latenz.tune.context import Context, NotKnown
from latenz.tune.cpus import parse_list, parse_mask
from latenz.tune.model import Condition, Entry, ManualProbe, State, Wanted
from latenz.tune.probes import Reading, Value, read
from latenz.tune.wanted import described

_EFFECTS = ("large", "medium", "small", "none")
_MOST_SHOWN = 3
_LONGEST = 100


@dataclass(frozen=True)
class Outcome:
    """What became of a condition.

    Attributes:
        state: Whether it holds.
        found: What was found; None if nothing was.
        wanted: What should have been; None if it cannot be told.
        where: The files.
        reason: Why it is so; empty if found and wanted say it.
    """

    state: State
    found: str | None
    wanted: str | None
    where: str
    reason: str = ""


@dataclass(frozen=True)
class Check:
    """What became of an entry; the fields are those of its `Outcome`.

    Attributes:
        entry: What was checked.
    """

    id: str
    layer: str
    state: State
    found: str | None
    wanted: str | None
    where: str
    reason: str
    entry: Entry

    @property
    def is_choice(self) -> bool:
        """Whether it is wrong for latency alone: to make it right would give up security."""
        return self.state == "wrong" and self.entry.consent == "security"

    @property
    def counts_as_wrong(self) -> bool:
        """Whether it makes the machine fail: what is wrong, but for choices about security."""
        return self.state == "wrong" and not self.is_choice

    def to_json(self) -> dict[str, Any]:
        """Return the check as plain values."""
        keys = ("id", "layer", "state", "found", "wanted", "where", "reason")
        return {key: getattr(self, key) for key in keys} | {
            "effect": self.entry.effect,
            "consent": self.entry.consent,
            "title": self.entry.title,
        }


def check(context: Context, entries: Iterable[Entry]) -> list[Check]:
    """Return a check of each entry, greatest expected effect first."""
    return by_effect([_checked(entry, context) for entry in entries])


def by_effect(checks: list[Check]) -> list[Check]:
    """Return checks with the greatest expected effect first, otherwise in their order."""
    return sorted(checks, key=lambda each: _EFFECTS.index(each.entry.effect))


def _checked(entry: Entry, context: Context) -> Check:
    outcome = _inapplicable(entry, context) or evaluate(entry, context)
    if entry.outcome is not None and outcome.state not in ("unknown", "not applicable"):
        outcome = _with_effect(outcome, evaluate(entry.outcome, context))
    reason = outcome.reason
    if isinstance(entry.probe, ManualProbe):
        reason = _also(reason, entry.advice)
    return Check(
        entry.id,
        entry.layer,
        outcome.state,
        outcome.found and printable(outcome.found),
        outcome.wanted,
        printable(outcome.where),
        printable(reason),
        entry,
    )


def _inapplicable(entry: Entry, context: Context) -> Outcome | None:
    """Return why an entry does not apply, or why that is not known; None if it applies."""
    where = ""
    if context.profile not in entry.profiles:
        reason = (
            f"is for {' or '.join(entry.profiles)}; this machine is checked as {context.profile}"
        )
        return Outcome("not applicable", None, None, where, reason)
    for name in entry.when:
        condition = load_all().conditions[name]
        outcome = evaluate(condition, context)
        if outcome.state in ("wrong", "not applicable"):
            return Outcome(
                "not applicable", outcome.found, None, outcome.where, condition.otherwise
            )
        if outcome.state == "unknown":
            reason = f"it is not known whether it applies: {outcome.reason}"
            return Outcome("unknown", None, None, outcome.where, reason)
    return None


def _with_effect(given: Outcome, effect: Outcome) -> Outcome:
    """Return what follows from a parameter and from the file in which its effect shows."""
    found = "; ".join(dict.fromkeys(filter(None, (given.found, effect.found)))) or None
    wanted = "; ".join(dict.fromkeys(filter(None, (given.wanted, effect.wanted)))) or None
    where = ", ".join(dict.fromkeys([given.where, effect.where]))
    if given.state == "wrong" and effect.state == "ok":
        reason = "in effect now, but not from the next boot on"
        return Outcome("wrong", found, wanted, where, _also(given.reason, reason))
    if given.state == "ok" and effect.state == "wrong" and given.found is None:
        reason = _also("is neither given nor the default", effect.reason)
        return Outcome("wrong", found, wanted, where, reason)
    if given.state == "ok" and effect.state == "wrong":
        reason = "is given, but has no effect: refused, misspelt, or overridden"
        return Outcome("wrong", found, wanted, where, _also(reason, effect.reason))
    if given.state == "ok" and effect.state == "unknown":
        reason = f"is given; whether it took effect is not known: {effect.reason}"
        return Outcome("unknown", found, wanted, where, reason)
    return Outcome(given.state, found, wanted, where, given.reason)


def _also(first: str, second: str) -> str:
    return "; ".join(each for each in (first, second) if each)


def evaluate(condition: Condition, context: Context) -> Outcome:
    """Return whether a condition holds."""
    if condition.all:
        return _all([evaluate(each, context) for each in condition.all])
    if condition.any:
        return _any([evaluate(each, context) for each in condition.any])
    assert condition.probe is not None  # noqa: S101 - the model says so
    wanted = condition.wanted
    try:
        text = described(wanted, context) if wanted else None
        reading = read(condition.probe, context)
        outcome = _judged(reading, wanted, text, context)
        words = {*wanted.flags, *wanted.lacks} if wanted else None
        if words and reading.values:
            found = _summary([_only(words, each) for each in reading.values])
            return replace(outcome, found=found)
        return outcome
    except NotKnown as reason:
        paths = getattr(condition.probe, "path", ())
        where = ", ".join(paths) if isinstance(paths, tuple) else ""
        return Outcome("unknown", None, None, where, str(reason))


def _all(outcomes: list[Outcome]) -> Outcome:
    for state in ("wrong", "unknown"):
        if deciding := [each for each in outcomes if each.state == state]:
            return _combined(state, deciding, "; ")
    applicable = [each for each in outcomes if each.state == "ok"]
    return _combined("ok", applicable, "; ") if applicable else outcomes[0]


def _any(outcomes: list[Outcome]) -> Outcome:
    for outcome in outcomes:
        if outcome.state == "ok":
            return outcome
    for state in ("unknown", "wrong"):
        if deciding := [each for each in outcomes if each.state == state]:
            return _combined(state, deciding, " or ")
    return outcomes[0]


def _combined(state: State, outcomes: list[Outcome], between: str) -> Outcome:
    def text(parts: Iterable[str | None], between: str) -> str:
        return between.join(dict.fromkeys(part for part in parts if part))

    return Outcome(
        state,
        text((each.found for each in outcomes), "; ") or None,
        text((each.wanted for each in outcomes), between) or None,
        text((each.where for each in outcomes), ", "),
        text((each.reason for each in outcomes), "; "),
    )


def _judged(reading: Reading, wanted: Wanted | None, text: str | None, context: Context) -> Outcome:
    """Return what a reading is worth against what is wanted."""
    if wanted is None:
        return Outcome("unknown", None, None, reading.where, reading.reason)
    if not reading.values:
        return _nothing(reading, wanted, text)
    if wanted.absent:
        return _outcome("wrong", reading.values, text, reading)
    try:
        fits = [_fits(value, wanted, context) for value in reading.values]
    except ValueError as mistake:
        found = _summary(reading.values)
        return Outcome("unknown", found, text, reading.where, f"is not understood: {mistake}")
    bad = [value for value, fit in zip(reading.values, fits, strict=True) if not fit]
    if wanted.any and any(fits):
        good = [value for value, fit in zip(reading.values, fits, strict=True) if fit]
        return _outcome("ok", good, text, reading)
    if bad:
        return _outcome("wrong", bad, text, reading)
    if reading.troubles:
        return Outcome(
            "unknown", _summary(reading.values), text, reading.where, _few(reading.troubles, "; ")
        )
    return _outcome("ok", reading.values, text, reading)


def _only(words: set[str], value: Value) -> Value:
    """Return a value of many words with only those that matter."""
    matter = [word for word in value.text.split() if word in words]
    return replace(value, text=" ".join(matter) or f"no {' '.join(sorted(words))}")


def _nothing(reading: Reading, wanted: Wanted, text: str | None) -> Outcome:
    if reading.troubles:
        return Outcome("unknown", None, text, reading.where, _few(reading.troubles, "; "))
    state, reason = reading.empty, reading.reason
    if wanted.absent and state == "wrong":
        state, reason = "ok", ""
    elif wanted.present and state == "ok":
        state = "wrong"
    return Outcome(state, None, text, reading.where, reason)


def _outcome(state: State, values: Sequence[Value], text: str | None, reading: Reading) -> Outcome:
    places = list(dict.fromkeys(value.where for value in values))
    where = reading.where if len(places) > _MOST_SHOWN else ", ".join(places)
    return Outcome(state, _summary(values, len(reading.values)), text, where)


def _summary(values: Sequence[Value], all_of_them: int = 0) -> str:
    """Return values for people: equal ones once, a few of many."""
    labels = list(
        dict.fromkeys(
            f"{value.label}: {value.text}" if value.label else value.shown or value.text or '""'
            for value in values
        )
    )
    more = f" ({len(values)} of {all_of_them})" if len(values) < all_of_them else ""
    return _few(labels, ", ") + more


def _few(texts: Sequence[str], between: str) -> str:
    shown = [textwrap.shorten(text, _LONGEST, placeholder=" ...") for text in texts]
    more = len(shown) - _MOST_SHOWN
    return between.join(shown[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _fits(value: Value, wanted: Wanted, context: Context) -> bool:
    """Return whether a value is as wanted.

    Raises:
        ValueError: It is not a number or set of CPUs, as it should be.
        NotKnown: It depends on CPUs that are not known.
    """
    text, words = value.text, set(value.text.split())
    return all(
        (
            wanted.equals is None or text == context.expand(wanted.equals),
            not wanted.one_of
            or any(fnmatchcase(text, context.expand(each)) for each in wanted.one_of),
            wanted.at_least is None or _number(text) >= _limit(wanted.at_least, context),
            wanted.at_most is None or _number(text) <= _limit(wanted.at_most, context),
            wanted.contains is None or context.expand(wanted.contains) in text,
            words.isdisjoint(wanted.lacks),
            words.issuperset(wanted.flags),
            _fits_cpus(value, wanted, context),
        )
    )


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        raise ValueError(f"{printable(text[:40])!r} is not an integer")
    return int(text)


def _limit(limit: int | str, context: Context) -> int:
    return limit if isinstance(limit, int) else int(context.expand(limit))


def _fits_cpus(value: Value, wanted: Wanted, context: Context) -> bool:
    if not (wanted.same_cpus or wanted.covers or wanted.within):
        return True
    last = max(context.online, default=0)
    found = parse_mask(value.text) if value.mask else parse_list(value.text, last)
    if context.online:
        found &= context.online
    if wanted.same_cpus == "no iso":
        return found.isdisjoint(context.cpus("iso"))
    return (
        (wanted.same_cpus is None or found == context.cpus(wanted.same_cpus))
        and (wanted.covers is None or found >= context.cpus(wanted.covers))
        and (wanted.within is None or found <= context.cpus(wanted.within))
    )
