"""A verdict in one plain sentence: what was seen, for how long, what it shows, what it assumes."""

import math
from dataclasses import replace

from latenz.allowance import Allowance
from latenz.durations import format_duration
from latenz.model import Metadata, TimeBase
from latenz.statistics.verdict import Verdict

_IF_INDEPENDENT = "if the load stays as it was and episodes are independent of each other"
_UNITS = (("year", 31_557_600.0), ("day", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0))


def sentence(verdict: Verdict, allowance: Allowance) -> str:
    """Return the sentence that stands beside a verdict; it ends with a full stop."""
    return f"{_seen(verdict)}{_shown(verdict, allowance)}."


def elsewhere(metadata: Metadata) -> str | None:
    """Say how many samples are not of the CPU that a set is named after; None if all are."""
    if not metadata.elsewhere:
        return None
    samples = sum((metadata.ran_on or {}).values())
    return (
        f"{metadata.elsewhere:,} of {samples:,} samples were taken on other processors than"
        f" CPU {metadata.cpu}, where others had moved the thread, so this is not about that CPU"
        " alone."
    )


def length(seconds: float, up: bool = True) -> str:
    """Return a time in the unit people would choose, such as 10 min, rounded up or down."""
    if seconds < 1:
        return format_duration(seconds * 1e9)
    unit, size = next(each for each in _UNITS if seconds >= each[1])
    number = _rounded(seconds / size, up)
    return f"{number} {unit}{'s' if unit in ('day', 'year') and number != '1' else ''}"


def _rounded(value: float, up: bool) -> str:
    """Write a number above zero with three digits, rounded to the safe side."""
    size = 10.0 ** (math.floor(math.log10(value)) - 2)
    whole = value / size
    exact = math.isclose(whole, round(whole), rel_tol=1e-9)
    rounded = (round(whole) if exact else math.ceil(whole) if up else math.floor(whole)) * size
    return f"{rounded:,.0f}" if rounded >= 1000 else f"{rounded:.3g}"


def _seen(verdict: Verdict) -> str:
    trials = f"{verdict.trials:,} activations" if verdict.trials else "an unknown number"
    late = f"{verdict.exceeding:,} of {trials} late" if verdict.exceeding else f"0 of {trials} late"
    if verdict.episodes is not None and verdict.exceeding:
        late += f", in {_counted(verdict.episodes, 'episode')}"
    if verdict.undecided:
        late += f", {verdict.undecided:,} undecided"
    return late if verdict.observed_s is None else f"{late}, in {length(verdict.observed_s)}"


def _shown(verdict: Verdict, allowance: Allowance) -> str:
    if allowance.kind == "hard":
        return _hard(verdict)
    if verdict.observed_s is None:
        return ": how long that took is unknown, so nothing is shown; measure with times"
    bound = _bound(verdict, allowance)
    if verdict.verdict == "violates":
        return (
            f": {bound}"
            if allowance.kind == "rate"
            else f": {bound}; {_allowed(allowance)} is allowed"
        )
    shown = f": {bound}, {_assumed(verdict, allowance)}; {_allowed(allowance)} is allowed"
    if verdict.verdict == "meets":
        return shown
    return f"{shown}{_needed(verdict)}"


def _needed(verdict: Verdict) -> str:
    if verdict.needed_s is None:
        if verdict.undecided:
            return ", which the undecided ones leave open"
        return ", which is too close to tell"
    needed = length(verdict.needed_s)
    if verdict.needed_for == "violates":
        return f"; going on like this, more than that is shown after {needed}"
    if not (verdict.exceeding or verdict.undecided):
        return f", which takes {needed} without a late one to show"
    return f", which takes {needed} to show if lateness goes on as it did"


def _hard(verdict: Verdict) -> str:
    if verdict.verdict == "violates":
        return "; none is allowed"
    if verdict.observed_s is None or verdict.rate_upper_per_h is None:
        return "; that none ever is takes an analysis, not a measurement"
    return (
        f": late episodes are rarer than one in {_rarer(verdict)} ({_sure(verdict)}),"
        f" {_IF_INDEPENDENT}; that none ever comes takes an analysis, not a measurement"
    )


def _rarer(verdict: Verdict) -> str:
    return length(3600 / (verdict.rate_upper_per_h or math.inf), up=False)


def _bound(verdict: Verdict, allowance: Allowance) -> str:
    sure = _sure(verdict)
    if allowance.kind == "share":
        if verdict.verdict == "violates":
            return f"more than {_share(verdict.exceedance_lower, up=False)} are late ({sure})"
        return f"at most {_share(verdict.exceedance_upper)} are late ({sure})"
    if verdict.verdict == "violates":
        return f"late episodes come more often than the {allowance.text} that is allowed ({sure})"
    return f"late episodes are rarer than one in {_rarer(verdict)} ({sure})"


def _sure(verdict: Verdict) -> str:
    return f"{100 * verdict.confidence:.4g} % confidence"


def _assumed(verdict: Verdict, allowance: Allowance) -> str:
    if allowance.kind == "rate":
        return _IF_INDEPENDENT
    return (
        "if the load stays as it was and bursts of lateness are independent of each other and no"
        f" longer than {length(verdict.block_ns / 1e9)}"
    )


def _allowed(allowance: Allowance) -> str:
    return _share(allowance.value) if allowance.kind == "share" else allowance.text


def _share(value: float, up: bool = True) -> str:
    return f"{_rounded(100 * value, up)} %"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def in_emulated_time(verdict: Verdict, time_base: TimeBase) -> Verdict:
    """Return a verdict on latencies of an emulator or a simulator, which says so if it is met."""
    if verdict.verdict != "meets":
        return replace(verdict, emulated=True)
    base = "emulated" if time_base is TimeBase.VIRTUAL else "simulated"
    told = f"{verdict.sentence} This is {base} time, which shows nothing of silicon."
    return replace(verdict, emulated=True, sentence=told)
