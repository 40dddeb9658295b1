"""The verdicts of a report: for each deadline all of them, the most severe first."""

from dataclasses import dataclass, field

from latenz.report import words
from latenz.report.collect import View
from latenz.statistics import Verdict
from latenz.statistics.joint import jointly

_SEVERITY = {"violates": 0, "not shown": 1, "meets": 2}
_NAMED = 3


@dataclass(frozen=True)
class Number:
    """One of the three numbers of the first screen.

    Attributes:
        name: What it is.
        value: The number with its unit.
        about: Of what, and what it must be seen against.
    """

    name: str
    value: str
    about: str


@dataclass(frozen=True)
class Judgement:
    """One verdict, with the sample set it is about."""

    view: View
    verdict: Verdict


@dataclass
class JudgedDeadline:
    """A deadline and its verdicts, the most severe first."""

    name: str
    limit_ns: int
    judgements: list[Judgement] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The most severe of its verdicts."""
        return min((j.verdict.verdict for j in self.judgements), key=lambda v: _SEVERITY[v])

    @property
    def emulated(self) -> bool:
        """Met, but not everywhere in a time of silicon."""
        return self.verdict == "meets" and any(j.verdict.emulated for j in self.judgements)

    @property
    def headline(self) -> str:
        """Say how many of the sample sets have the most severe verdict."""
        worst = self.verdict
        found = sum(j.verdict.verdict == worst for j in self.judgements)
        sets = len(self.judgements)
        who = f"{found} of {sets} sample sets" if sets > 1 else "The sample set"
        does = {
            "meets": "meets it" if sets == 1 else "meet it",
            "violates": "violates it" if found == 1 else "violate it",
            "not shown": "does not show that it is met"
            if found == 1
            else "do not show that it is met",
        }
        return f"{who} {does[worst]}."

    @property
    def who(self) -> str:
        """Name the sets with the most severe verdict, the latest first; nothing if met by all."""
        worst = self.verdict
        found = [j.view for j in self.judgements if j.verdict.verdict == worst]
        if worst == "meets" or len(self.judgements) == 1:
            return ""
        found.sort(key=lambda view: -(view.summary.max_ns or 0))
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        return ", ".join(view.label for view in found[:_NAMED]) + more + "."


def judged_deadlines(views: list[View]) -> list[JudgedDeadline]:
    """Return each deadline with all its verdicts, the most severe first."""
    found: dict[tuple[str, int], JudgedDeadline] = {}
    for view in views:
        for verdict in view.summary.deadlines:
            key = (verdict.name, verdict.limit_ns)
            found.setdefault(key, JudgedDeadline(*key)).judgements.append(Judgement(view, verdict))
    for deadline in found.values():
        deadline.judgements.sort(key=lambda j: _SEVERITY[j.verdict.verdict])
    return sorted(found.values(), key=lambda d: (_SEVERITY[d.verdict], d.limit_ns))


def overall(judged: list[JudgedDeadline]) -> tuple[str, str]:
    """Return the most severe verdict of all, and a sentence about all deadlines.

    It is `emulated` where all are met, but not all of them on silicon.
    """
    all_of_them = [each for deadline in judged for each in deadline.judgements]
    together = jointly([each.verdict for each in all_of_them])
    if together is None:
        return "none", "Nothing was judged: give a limit with --deadline, such as 3ms."
    emulated = together.meets == together.verdicts and together.emulated
    return "emulated" if emulated else together.verdict, together.sentence


def first_numbers(judged: list[JudgedDeadline], views: list[View]) -> list[Number]:
    """Return the three numbers that the verdict rests on: seen, allowed, and how often late."""
    if not judged:
        return _unjudged(views)
    deadline = judged[0]
    most = [j for j in deadline.judgements if j.verdict.verdict == deadline.verdict]
    at = max(most, key=lambda j: j.verdict.max_ns or 0)
    verdict, largest_ns = at.verdict, at.verdict.max_ns
    of_limit = (largest_ns or 0) / verdict.limit_ns
    told = f"{of_limit:.3g} times" if of_limit > 1 else f"{100 * of_limit:.2g} % of"
    share = f"{told} the limit; " if largest_ns else ""
    late = f"{words.count(verdict.exceeding)} of {words.count(verdict.trials)}"
    undecided = f"{words.count(verdict.undecided)} more undecided; " if verdict.undecided else ""
    named = "" if verdict.name == words.duration(verdict.limit_ns) else f"{verdict.name}; "
    return [
        Number("Largest seen", words.duration(largest_ns), f"{share}{at.view.label}"),
        Number(
            "Deadline", words.duration(verdict.limit_ns), f"{named}late: {verdict.allowed} allowed"
        ),
        Number("Late", late if verdict.trials else words.UNKNOWN, f"{undecided}{at.view.label}"),
    ]


def _unjudged(views: list[View]) -> list[Number]:
    known = [view for view in views if view.summary.max_ns is not None]
    if not known:
        return []
    at = max(known, key=lambda view: (view.time_base == known[0].time_base, view.summary.max_ns))
    middle = at.summary.median_ns
    n = at.summary.n if at.summary.n_due is None else at.summary.n_due
    return [
        Number("Largest seen", words.duration(at.summary.max_ns), at.label),
        Number("Median", words.duration(middle), at.label),
        Number("Activations", words.count(n), at.label),
    ]
