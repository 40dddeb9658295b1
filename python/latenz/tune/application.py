"""The layer `application`: what a running program itself does against its being real-time."""

from itertools import groupby

from latenz.attach.findings import Finding, standing_findings
from latenz.terminal import printable
from latenz.tune.check import Check
from latenz.tune.context import Context
from latenz.tune.model import Effect, Entry, ManualProbe, State

LAYER = "application"
_TITLES: dict[str, tuple[str, Effect]] = {
    "app-memory-locked": ("The program locks its memory", "large"),
    "app-real-time-policy": ("Its urgent threads have a real-time policy", "large"),
    "app-cpu-mask": ("Its urgent threads run on isolated CPUs only", "medium"),
    "app-cgroup-limit": ("No control group limits its CPU time", "large"),
    "app-timer-slack": ("No timer slack delays its wake-ups", "medium"),
}
_ORDER: tuple[State, ...] = ("wrong", "unknown", "ok", "not applicable")


def application(context: Context, process: int) -> list[Check]:
    """Return a check for each thing that is looked at on a running program.

    Args:
        context: The machine that it runs on.
        process: Its number.

    Raises:
        BadInput: There is no such process.
    """
    found = sorted(standing_findings(process, context.isolated), key=lambda each: each.id)
    return [_check(list(same)) for _, same in groupby(found, lambda each: each.id)]


def _check(found: list[Finding]) -> Check:
    """Return what became of one thing in all threads: the worst state, and where it is so."""
    state = min((each.state for each in found), key=_ORDER.index)
    these = [each for each in found if each.state == state]
    told = "; ".join(dict.fromkeys(each.found for each in these if each.found))
    first = these[0]
    title, effect = _TITLES[first.id]
    entry = Entry(
        id=first.id,
        title=title,
        profiles=("host", "kvm-host", "guest"),
        effect=effect,
        probe=ManualProbe(kind="manual"),
        why="A machine that is right does not help a program that is not.",
        risk="It is the program that is to be changed.",
        source="docs/attach.md",
        advice=first.remedy,
    )
    where = printable(", ".join(dict.fromkeys(each.where for each in these)))
    reason = first.remedy if state == "wrong" else ""
    return Check(first.id, LAYER, state, told or None, first.wanted, where, reason, entry)
