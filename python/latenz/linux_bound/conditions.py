"""The conditions under which the theorem holds, each with how it was checked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from latenz.linux_bound.layout import Preemption
from latenz.linux_bound.saturation import Saturation
from latenz.linux_bound.windows import Windows

State = Literal["checked", "assumed", "violated"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of the theorem.

    Attributes:
        name: C1 to C6.
        state: `checked`: what was recorded shows it; `assumed`: nothing shows it or its contrary;
            `violated`.
        open: Whether the bound cannot be relied on until more is known.
        what: What must hold.
        how: How it was checked, or what speaks against it.
    """

    name: str
    state: State
    open: bool
    what: str
    how: str


_WHAT = {
    "C1": "the observed windows are the longest that there are",
    "C2": "the thread has the highest priority of all that may run, and is not throttled",
    "C3": "every event was recorded",
    "C4": "nothing but this kernel takes time from the CPU: no SMI, NMI or hypervisor",
    "C5": "the kernel preempts as its configuration says, all the time",
    "C6": "the system does what it did while it was observed",
}


def conditions(
    runs: Sequence[Windows],
    saturations: Sequence[Saturation],
    claimed: Preemption | None = None,
    bound_ns: int | None = None,
) -> tuple[Condition, ...]:
    """Return the state of each condition over all runs.

    Args:
        runs: Whose windows the bound is made of.
        saturations: Of each.
        claimed: How the kernel preempts as the user says; None: as its configuration says.
        bound_ns: The bound that they give together; None if there is none.
    """
    found = (
        _maxima(runs, saturations, bound_ns),
        _priority(runs),
        _events(runs),
        _stolen(runs),
        _mode(runs, claimed),
        _loads(runs),
    )
    return tuple(
        Condition(name, state, is_open, what, how)
        for (name, what), (state, is_open, how) in zip(_WHAT.items(), found, strict=True)
    )


_Judged = tuple[State, bool, str]


def _maxima(
    runs: Sequence[Windows], saturations: Sequence[Saturation], bound_ns: int | None
) -> _Judged:
    reasons = [reason for each in saturations for reason in each.reasons]
    seen_ns = max((run.longest_latency_ns for run in runs), default=0)
    if bound_ns is not None and seen_ns > bound_ns:
        reasons.insert(0, f"a wake-up of {seen_ns:,} ns exceeds the bound of {bound_ns:,} ns")
    if reasons:
        return "violated", True, _joined(reasons)
    return (
        "assumed",
        False,
        "they are maxima of a sample; the bound no longer grew, and each half bounds the other",
    )


def _priority(runs: Iterable[Windows]) -> _Judged:
    wrong: list[str] = []
    for run in runs:
        if run.checks.passed_over:
            wrong.append(
                f"{run.checks.passed_over} times a thread of lower priority ran while the woken one"
                " waited: it was throttled (sched_rt_runtime_us) or blocked"
            )
        wrong += [
            f"{each.name} (thread {each.pid}, priority {_user_priority(each.priority)}) ran"
            f" {each.times} times at or above its priority"
            for each in run.checks.rivals
        ]
        if run.missed:
            wrong.append(f"{run.missed} wake-ups came while an earlier one was still waiting")
    if wrong:
        return "violated", True, _joined(wrong)
    return "checked", False, "no other thread at or above its priority ran, and none was preferred"


def _user_priority(priority: int) -> str:
    return "deadline or stop" if priority < 0 else f"{99 - priority}"


def _events(runs: Sequence[Windows]) -> _Judged:
    wrong: list[str] = []
    schedules = 0
    traced = [run.trace for run in runs if run.trace is not None]
    for run in runs:
        schedules += run.checks.schedules
        wrong += [f"{what} ({times} times)" for what, times in run.checks.lost.items()]
        if run.checks.wrong_counts:
            wrong.append(
                f"the preemption count differed from memory {run.checks.wrong_counts} times"
            )
        told = run.instructions
        if told and told.thread + told.interrupt != told.all:
            wrong.append("instructions are missing in the account")
    wrong += [f"not in the trace: {what}" for each in traced for what in each.unseen]
    if wrong:
        return "violated", True, _joined(wrong)
    if traced:
        entries = sum(each.entries for each in traced)
        way = max(each.entry_ns or 0 for each in traced)
        return (
            "assumed",
            True,
            f"none is missing, but events lie inside of their sections: those are taken from the"
            f" event before to the event after, and the ways in and out of {entries:,} interrupts"
            f" as {way:,} ns each, the longest way in that was seen",
        )
    return (
        "checked",
        False,
        f"the preemption count equals memory at all of {schedules:,} calls of the scheduler, and"
        " every instruction is accounted for",
    )


def _stolen(runs: Sequence[Windows]) -> _Judged:
    if stolen := sum(run.trace.stolen for run in runs if run.trace is not None):
        return "violated", True, f"{stolen:,} events tell of NMI, SMI or stolen time"
    if all(run.time_base == "virtual" for run in runs):
        return "checked", False, "an emulated board has none; time is executed instructions"
    return "assumed", True, "the source does not see them; hwlat of the kernel does"


def _mode(runs: Sequence[Windows], claimed: Preemption | None) -> _Judged:
    modes = {run.preemption for run in runs}
    for run in runs:
        if claimed is not None and claimed != run.preemption:
            return (
                "violated",
                True,
                f"the windows are those of a kernel that preempts as {run.preemption},"
                f" not as {claimed}",
            )
        if not run.preemptible and run.checks.preempted_in_kernel:
            return (
                "violated",
                True,
                f"interrupts preempted the kernel {run.checks.preempted_in_kernel} times, which"
                f" {run.preemption} does not",
            )
        if run.trace is not None and run.trace.ignored_points:
            return (
                "violated",
                True,
                f"{run.trace.ignored_points} times the scheduler was needed at a point of a kernel"
                f" that preempts as {run.preemption}, and was not called",
            )
    if len(modes) > 1:
        return "violated", True, f"the runs are of different kernels: {', '.join(sorted(modes))}"
    if any(run.trace is not None for run in runs):
        return _seen_mode(runs)
    return "checked", False, f"{next(iter(modes))}, and interrupts returned as it says"


def _seen_mode(runs: Sequence[Windows]) -> _Judged:
    preempted = sum(run.checks.preempted_in_kernel for run in runs)
    if preempted and all(run.preemptible for run in runs):
        return "checked", False, f"the kernel's own code was preempted {preempted:,} times"
    if any(run.trace is not None and not run.trace.claimed for run in runs):
        return (
            "assumed",
            True,
            "no preemption of the kernel's own code is in the trace: taken as one that preempts at"
            " points only; say what it is with --preemption",
        )
    return "assumed", True, f"{runs[0].preemption}, as given; nothing in the trace shows it"


def _loads(runs: Iterable[Windows]) -> _Judged:
    loads = sorted({run.load or "what ran" for run in runs})
    return "assumed", False, f"observed under: {', '.join(loads)}; nothing is said of other loads"


def _joined(reasons: Sequence[str]) -> str:
    told = list(dict.fromkeys(reasons))
    more = f"; and {len(told) - 5} more" if len(told) > 5 else ""
    return "; ".join(told[:5]) + more
