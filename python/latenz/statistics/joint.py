"""What many verdicts show together: several CPUs, conditions and deadlines, and several runs.

Each verdict `meets` may be wrong with a probability of 1 - confidence; of many that come out so,
some may well be. Two things can be said of them together. *All* of them hold with the stated
confidence if all came out so: for a wrong one among them to slip through, it would itself have to
come out wrongly (Berger, "Multiparameter hypothesis testing and acceptance sampling",
Technometrics 24 (1982): intersection-union tests). Where only some came out so, those hold
together that pass Holm's correction ("A simple sequentially rejective multiple test procedure",
Scandinavian Journal of Statistics 6 (1979)).

Several runs of one condition tell how much differs from run to run, as nothing within one run can.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from latenz.statistics.exceedance import exceedance_upper
from latenz.statistics.summary import Summary
from latenz.statistics.verdict import Outcome, Verdict


@dataclass(frozen=True)
class Joint:
    """What all verdicts show together.

    Attributes:
        verdict: `violates` if any does, `meets` if all do (on silicon, unless emulated ones are
            accepted), else `not shown`.
        confidence: At which the statement holds.
        verdicts: How many there are.
        meets: How many are `meets`.
        emulated: How many of those are so in emulated or simulated time only.
        jointly: How many of those hold together at that confidence.
        sentence: The same in words.
    """

    verdict: Outcome
    confidence: float
    verdicts: int
    meets: int
    emulated: int
    jointly: int
    sentence: str


@dataclass(frozen=True)
class OverRuns:
    """What repeated runs of one condition show of a deadline.

    Attributes:
        name: The sample set, without the number of the run.
        deadline: Name of the deadline.
        runs: How many runs there are.
        meets: In how many of them the deadline was shown to be met.
        violates: In how many it was shown not to be.
        share_lower: Lower confidence bound on the share of such runs that meet it.
        confidence: Of that bound, one-sided.
        sentence: The same in words.
    """

    name: str
    deadline: str
    runs: int
    meets: int
    violates: int
    share_lower: float
    confidence: float
    sentence: str


def jointly(verdicts: Sequence[Verdict], accept_emulated: bool = False) -> Joint | None:
    """Return what verdicts show together; None if there are none.

    Args:
        verdicts: One for each deadline of each sample set.
        accept_emulated: Whether a deadline that is met in emulated or simulated time counts as
            met.
    """
    if not verdicts:
        return None
    outcomes = [each.verdict for each in verdicts]
    meeting, confidence = outcomes.count("meets"), verdicts[0].confidence
    held = meeting if meeting == len(verdicts) else _holm(verdicts, confidence)
    emulated = sum(each.emulated and each.verdict == "meets" for each in verdicts)
    shown = meeting if accept_emulated else meeting - emulated
    worst: Outcome = "meets" if shown == len(verdicts) else "not shown"
    if "violates" in outcomes:
        worst = "violates"
    told = _sentence(outcomes, held, confidence) + _in_emulation(emulated, meeting)
    return Joint(worst, confidence, len(verdicts), meeting, emulated, held, told)


def over_runs(sets: Iterable[tuple[str, str | None, Sequence[Verdict]]]) -> list[OverRuns]:
    """Return what repetitions show: of each deadline, in how many runs it is met.

    Args:
        sets: Name, condition and verdicts of each sample set. Repetitions of a condition are
            numbered in the name, as in `stress-r2/cpu1`; of a set without such a number nothing
            is claimed beyond its one run.
    """
    grouped: dict[tuple[str, str, int, str], list[Verdict]] = {}
    for name, condition, verdicts in sets:
        found = re.search(rf"(^|: ){re.escape(condition or '')}-r\d+(?=/|$)", name)
        if condition and found:
            common = f"{name[: found.start()]}{found[1]}{condition}{name[found.end() :]}"
            for each in verdicts:
                key = (common, each.name, each.limit_ns, each.allowed)
                grouped.setdefault(key, []).append(each)
    return [_over(key[0], key[1], runs) for key, runs in grouped.items() if len(runs) > 1]


def joint_json(summaries: Sequence[Summary], accept_emulated: bool = False) -> dict[str, object]:
    """Return what verdicts show together as plain values: `joint`, and `over_runs` if repeated."""
    verdicts = [verdict for summary in summaries for verdict in summary.deadlines]
    joint = jointly(verdicts, accept_emulated)
    repeated = over_runs((each.name, each.condition, each.deadlines) for each in summaries)
    return {
        **({"joint": asdict(joint)} if joint else {}),
        **({"over_runs": [asdict(each) for each in repeated]} if repeated else {}),
    }


def _over(name: str, deadline: str, verdicts: Sequence[Verdict]) -> OverRuns:
    runs, confidence = len(verdicts), verdicts[0].confidence
    meets = sum(each.verdict == "meets" for each in verdicts)
    violates = sum(each.verdict == "violates" for each in verdicts)
    least = 1 - exceedance_upper(runs - meets, runs, confidence)
    told = f"meets on {meets} of {runs} runs"
    if violates:
        told += f", violates on {violates}"
    if meets:
        told += (
            f": more than {100 * least:.3g} % of such runs do"
            f" ({100 * confidence:.4g} % confidence), if these are a fair choice of them"
        )
    return OverRuns(name, deadline, runs, meets, violates, least, confidence, f"{told}.")


def _in_emulation(emulated: int, meeting: int) -> str:
    """Return what to add where some are met in no time of silicon."""
    if not emulated:
        return ""
    which = f"{emulated} of these" if emulated < meeting else "That is"
    return f" {which} in emulated time only, which shows nothing of silicon."


def _holm(verdicts: Sequence[Verdict], confidence: float) -> int:
    errors = sorted(each.error for each in verdicts)
    held = 0
    for i, error in enumerate(errors):
        if error > (1 - confidence) / (len(errors) - i):
            break
        held += 1
    return held


def _sentence(outcomes: Sequence[Outcome], held: int, confidence: float) -> str:
    sure = f"{100 * confidence:.4g} % confidence"
    total, meeting = len(outcomes), outcomes.count("meets")
    if total == 1:
        return {
            "meets": f"The deadline is met ({sure}).",
            "violates": "The deadline is violated.",
            "not shown": "The deadline is not shown to be met.",
        }[outcomes[0]]
    if meeting == total:
        return f"Every deadline is met ({total} verdicts), jointly at {sure}."
    parts = [
        f"{outcomes.count(outcome)} {words}"
        for outcome, words in (("violates", "violated"), ("not shown", "not shown"))
        if outcomes.count(outcome)
    ]
    told = f"Of {total} verdicts {' and '.join(parts)}"
    if not meeting:
        return f"{told}; none is shown to be met."
    together = "all" if held == meeting else "none" if not held else str(held)
    jointly = f", {together} of them jointly at {sure}" if meeting > 1 else ""
    return f"{told}; {meeting} met{jointly}."
