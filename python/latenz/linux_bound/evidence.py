"""What `latenz bound --linux` is given: runs and files of windows, and what all of them say."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Literal

from latenz.allowance import parse_allowance
from latenz.durations import format_duration
from latenz.errors import BadInput
from latenz.linux_bound.conditions import Condition, conditions
from latenz.linux_bound.layout import Preemption
from latenz.linux_bound.model import Bound, Interrupts, Source, Steps, Terms, bound, interference
from latenz.linux_bound.saturation import Saturation, saturation
from latenz.linux_bound.traced import windows_of_trace
from latenz.linux_bound.windows import WINDOWS_FILE, SiteTold, Windows, read_windows
from latenz.model import Deadline
from latenz.store.run import info_of
from latenz.traces.window_recording import WINDOWS_TRACE

Outcome = Literal["meets", "violates", "not shown"]


@dataclass(frozen=True, slots=True)
class Observation:
    """The windows of one condition of one run.

    Attributes:
        name: As tables call it.
        path: The file.
        windows: What it holds.
        saturation: How much to trust its maxima.
        sampled_ns: The longest latency that the run's own probe measured beside the trace, until
            its thread had read the clock in user mode; None: there is none.
    """

    name: str
    path: Path
    windows: Windows
    saturation: Saturation
    sampled_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the bound says of a deadline.

    Attributes:
        deadline: The limit.
        verdict: `meets`: the bound is within it and no condition is open; `violates`: a wake-up
            that was seen is above it, and no lateness is allowed; else `not shown`.
        sentence: The same for a reader.
    """

    deadline: Deadline
    verdict: Outcome
    sentence: str


@dataclass(frozen=True, slots=True)
class LinuxBound:
    """A bound under the observed maxima, and all that it rests on.

    Attributes:
        observations: What was observed.
        interrupts: Which model of interrupts it takes.
        to_user: Whether it holds until the thread has read the clock in user mode.
        terms: The longest windows of all observations.
        bound: The bound.
        sites: Of each term where its longest window is; with the observation.
        longest_ns: The longest wake-up that was seen, until the thread ran.
        conditions: Of the theorem.
        matrix: Of each observation its own bound and longest wake-up, and how many of the others'
            longest wake-ups exceed it.
    """

    observations: tuple[Observation, ...]
    interrupts: Interrupts
    to_user: bool
    terms: Terms
    bound: Bound
    sites: dict[str, tuple[SiteTold, str]]
    longest_ns: int
    conditions: tuple[Condition, ...]
    matrix: tuple[tuple[int | None, int, int], ...]

    @property
    def unseen(self) -> dict[str, str]:
        """What the traces do not show, each with what to record; with any there is no bound."""
        found: dict[str, str] = {}
        for each in self.observations:
            if each.windows.trace is not None:
                found |= each.windows.trace.unseen
        return found

    @property
    def is_open(self) -> bool:
        """Whether more must be known before the bound can be relied on."""
        return self.bound.bound_ns is None or any(each.open for each in self.conditions)

    def judged(self, deadline: Deadline) -> Verdict:
        """Return what the bound says of a deadline."""
        limit = format_duration(deadline.limit_ns)
        found = self.bound.bound_ns
        if self.longest_ns > deadline.limit_ns and parse_allowance(deadline.allowed).kind == "hard":
            seen = format_duration(self.longest_ns)
            return Verdict(deadline, "violates", f"a wake-up took {seen}, more than {limit}")
        if found is None or found > deadline.limit_ns:
            what = (
                "there is no bound" if found is None else f"the bound is {format_duration(found)}"
            )
            return Verdict(
                deadline, "not shown", f"{what}, which does not show that {limit} can be exceeded"
            )
        if self.is_open:
            names = ", ".join(each.name for each in self.conditions if each.open)
            return Verdict(deadline, "not shown", f"within {limit} only if {names} can be settled")
        return Verdict(deadline, "meets", f"within {limit} under the observed maxima")


def observations_of(
    paths: Sequence[Path], claimed: Preemption | None = None
) -> tuple[Observation, ...]:
    """Return the windows in runs, files and traces.

    Args:
        paths: Of them.
        claimed: How the kernel of a trace preempts, as the user says.

    Raises:
        BadInput: One of them has none.
    """
    found: list[Observation] = []
    several = len(paths) > 1
    for path in paths:
        files = _files(path)
        for file in files:
            told = windows_of_trace(file, claimed) if _is_trace(file) else (read_windows(file),)
            for windows in told:
                name = windows.condition or file.parent.name
                if file.name == WINDOWS_TRACE:
                    name = f"{file.parent.name} {name}" if len(told) > 1 else file.parent.name
                if several:
                    name = f"{path}: {name}" if len(files) + len(told) > 2 else str(path)
                sampled = _sampled_ns(file, windows)
                found.append(Observation(name, file, windows, saturation(windows), sampled))
    return tuple(found)


def _sampled_ns(file: Path, windows: Windows) -> int | None:
    """Return the longest sample of the measurement that a trace was recorded beside, on its CPU."""
    if file.name != WINDOWS_TRACE or windows.trace is None:
        return None
    info = info_of(file.parent.parent)
    label = file.parent.name
    found = [
        worst.latency_ns
        for each in (info.sample_sets if info else ())
        if each.metadata.name == label or each.metadata.name.startswith(f"{label}/")
        if each.metadata.cpu in (None, windows.trace.cpu)
        for worst in each.metadata.worst
    ]
    return max(found, default=None)


def _is_trace(file: Path) -> bool:
    if file.suffix == ".json":
        return False
    try:
        with file.open("rb") as content:
            return content.read(1) != b"{"
    except OSError:
        return False  # whoever reads it says why


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        own = path / WINDOWS_FILE
        if own.is_file():
            return [own]
        names = (WINDOWS_FILE, WINDOWS_TRACE)
        if files := sorted(each for name in names for each in path.glob(f"*/{name}")):
            return files
        what = "is a run without windows" if info_of(path) is not None else "has no windows"
        raise BadInput(
            what,
            str(path),
            "record them: latenz run --trace windows, or on boards windows = true in a probe of the"
            " stack linux-rt or linux",
        )
    if not path.exists():
        raise BadInput("does not exist", str(path), "give a run folder, a windows.json or a trace")
    return [path]


def linux_bound(
    observations: Sequence[Observation],
    interrupts: Interrupts = "joint",
    *,
    to_user: bool = False,
    claimed: Preemption | None = None,
) -> LinuxBound:
    """Return the bound that all observations give together.

    Args:
        observations: At least one.
        interrupts: What is taken of interrupts.
        to_user: Bound the latency until the thread has read the clock in user mode.
        claimed: How the kernel preempts as the user says; None: as was recorded.

    Raises:
        BadInput: A trace does not tell what is asked for.
    """
    all_windows = [each.windows for each in observations]
    if to_user and any(each.trace is not None for each in all_windows):
        raise BadInput(
            "a trace does not show when a thread reads the clock", "--to-user", "leave it out"
        )
    terms = reduce(Terms.joined, (each.longest() for each in all_windows))
    joint = reduce(Steps.joined, (each.joint() for each in all_windows))
    sources = _joined_sources(all_windows)
    taken = interference(joint, sources, interrupts)
    alone = [
        bound(each.longest(), interference(each.joint(), each.sources(), interrupts)).bound_ns
        for each in all_windows
    ]
    seen = [each.longest_latency_ns for each in all_windows]
    unseen = any(each.trace is not None and each.trace.unseen for each in all_windows)
    made = bound(terms, taken, to_user=to_user)
    if unseen:  # what is missing may be longer than anything that was seen
        made, alone = replace(made, bound_ns=None, interrupts_ns=0), [None] * len(alone)
    matrix = tuple(
        (own, seen[number], sum(own is None or other > own for other in seen))
        for number, own in enumerate(alone)
    )
    return LinuxBound(
        tuple(observations),
        interrupts,
        to_user,
        terms,
        made,
        _sites(observations),
        max(seen),
        conditions(all_windows, [each.saturation for each in observations], claimed, made.bound_ns),
        matrix,
    )


def _joined_sources(runs: Sequence[Windows]) -> tuple[Source, ...]:
    joined: dict[str, Source] = {}
    for run in runs:
        for source in run.sources():
            known = joined.get(source.name)
            joined[source.name] = source if known is None else _joined_source(known, source)
    return tuple(joined.values())


def _joined_source(one: Source, other: Source) -> Source:
    """Return what bounds both; vectors are as long as the shorter one that is not all there is."""
    return Source(
        one.name,
        max(one.n, other.n),
        max(one.longest, other.longest),
        one.steps.joined(other.steps),
        tuple(
            min(pair)
            for pair in zip(*_padded(one.distances, other.distances, 1 << 62), strict=True)
        ),
        tuple(max(pair) for pair in zip(*_padded(one.sums, other.sums, 0), strict=True)),
    )


def _padded(
    one: tuple[int, ...], other: tuple[int, ...], by: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return both as long as the longer: what was seen of fewer executions limits nothing more."""
    length = max(len(one), len(other))
    return (
        one + (by,) * (length - len(one)),
        other + (by,) * (length - len(other)),
    )


def _sites(observations: Sequence[Observation]) -> dict[str, tuple[SiteTold, str]]:
    sites: dict[str, tuple[SiteTold, str]] = {}
    for each in observations:
        for name, term in each.windows.terms.items():
            if term.longest_sites:
                site = term.longest_sites[0]
                if name not in sites or site.longest_ns > sites[name][0].longest_ns:
                    sites[name] = (site, each.name)
    return sites
