"""System files of one CPU of Linux: its real-time threads, and what its kernel adds."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from latenz.durations import format_duration
from latenz.errors import BadInput, shown
from latenz.linux_bound.evidence import LinuxBound, linux_bound, observations_of
from latenz.linux_bound.threads import Interrupt, Kernel, Thread
from latenz.settings import Settings, Time
from latenz.toml_file import Place, TomlFile, read_toml, small_text

_WANTED = "a system file"
Name = Annotated[str, Field(min_length=1, max_length=100)]


class ThreadSettings(Settings):
    """A real-time thread."""

    name: Name
    priority: Annotated[int, Field(strict=True, ge=1, le=99)]
    """Of SCHED_FIFO."""
    execution: Time
    """At most, in one activation, with its system calls."""
    period: Time | None = None
    """The shortest time between two activations; None: as of what activates it."""
    jitter: Time = 0
    """How much later than that one can come."""
    blocking: Time = 0
    """The longest that threads of lower priority hold what it waits for."""
    after: Name | None = None
    """The interrupt or thread whose end activates it; None: a timer."""


class InterruptSettings(Settings):
    """An interrupt that begins a chain, or takes time that the wake-up bound does not count."""

    name: Name
    period: Time
    """The shortest time between two."""
    jitter: Time = 0
    execution: Time = 0
    """At most; 0: the windows that `wake_up` comes from hold it."""


class LinuxSettings(Settings):
    """One CPU of Linux."""

    wake_up: Time | None = None
    """A bound of the wake-up latency."""
    windows: Name | None = None
    """A run, file of windows or trace to take it from, relative to the file."""
    switch: Time | None = None
    """What a switch of threads takes; from `windows` if that is given, else 0."""
    thread: tuple[ThreadSettings, ...] = ()
    interrupt: tuple[InterruptSettings, ...] = ()


class ThreadFile(Settings):
    """The whole file."""

    linux: LinuxSettings


@dataclass(frozen=True, slots=True)
class LinuxSystem:
    """What such a file describes.

    Attributes:
        threads: All real-time threads of the CPU.
        interrupts: Those that begin chains, or take time besides.
        kernel: What the kernel adds.
        evidence: Where that comes from; None: from a number in the file.
        assumptions: What the response times rest on, a sentence each.
    """

    threads: tuple[Thread, ...]
    interrupts: tuple[Interrupt, ...]
    kernel: Kernel
    evidence: LinuxBound | None
    assumptions: tuple[str, ...]


def has_threads(path: Path) -> bool:
    """Return whether a file is one of these; whoever reads another one says what is wrong."""
    try:
        return "linux" in tomllib.loads(small_text(path, _WANTED))
    except (BadInput, tomllib.TOMLDecodeError):
        return False


def read_linux_system(path: Path) -> LinuxSystem:
    """Read such a file.

    Raises:
        BadInput: It cannot be read, or is wrong; with the line.
    """
    text = read_toml(path, ThreadFile, _WANTED)
    file = text.content.linux
    if not file.thread:
        raise BadInput("has no threads", text.where(("linux",)), "add [[linux.thread]]")
    if (file.wake_up is None) == (file.windows is None):
        both = "is told twice" if file.windows else "is not told"
        remedy = 'write wake_up = "50 us", or windows = "results/mine"'
        raise BadInput(f"the wake-up bound {both}", text.where(("linux",)), remedy)
    _require_sense(text)
    evidence = None
    if file.windows is not None:
        evidence = _evidence(text, path.parent / file.windows)
    kernel = _kernel(file, evidence)
    interrupts = tuple(
        Interrupt(each.name, each.execution, each.period, each.jitter) for each in file.interrupt
    )
    periods = {each.name: each.period for each in file.interrupt}
    threads = tuple(_thread(each, file.thread, periods) for each in file.thread)
    return LinuxSystem(threads, interrupts, kernel, evidence, _assumptions(file, evidence))


def _thread(
    told: ThreadSettings, others: Sequence[ThreadSettings], periods: dict[str, int]
) -> Thread:
    period, first = told.period, told
    named = {each.name: each for each in others}
    while period is None:
        before = first.after or ""
        period = periods.get(before)
        if period is None:
            first = named[before]
            period = first.period
    return Thread(
        *(told.name, told.priority, told.execution, period),
        *(told.jitter, told.blocking, told.after or ""),
    )


def _require_sense(text: TomlFile[ThreadFile]) -> None:
    """Refuse what no schema can: names and times that do not go with each other."""
    file = text.content.linux
    seen: set[str] = set()
    tables: tuple[tuple[str, Sequence[ThreadSettings | InterruptSettings]], ...] = (
        ("thread", file.thread),
        ("interrupt", file.interrupt),
    )
    for table, each in tables:
        for at, one in enumerate(each):
            place: Place = ("linux", table, at)
            if one.name in seen:
                raise BadInput(
                    f"{shown(one.name)} is there twice",
                    text.where((*place, "name")),
                    "give each its own name",
                )
            seen.add(one.name)
            if one.period is not None and one.period < 1:
                raise BadInput("is not positive", text.where((*place, "period")), "write a time")
    for at, thread in enumerate(file.thread):
        _require_origin(text, at, thread, seen)


def _require_origin(
    text: TomlFile[ThreadFile], at: int, thread: ThreadSettings, names: set[str]
) -> None:
    place: Place = ("linux", "thread", at)
    if thread.execution < 1:
        raise BadInput("is not positive", text.where((*place, "execution")), "write a time")
    if thread.after is None:
        if thread.period is None:
            raise BadInput(
                f"nothing tells how often {shown(thread.name)} is activated",
                text.where(place),
                "add period, or after",
            )
        return
    after = (*place, "after")
    if thread.after not in names:
        raise BadInput(
            f"there is no thread or interrupt {shown(thread.after)}",
            text.where(after),
            f"name one of {', '.join(sorted(names - {thread.name})) or 'them'}",
        )
    for key, value in (("period", thread.period), ("jitter", thread.jitter)):
        if value:
            raise BadInput(
                f"is that of {shown(thread.after)}, which activates it",
                text.where((*place, key)),
                "leave it out",
            )
    named = {each.name: each for each in text.content.linux.thread}
    passed = {thread.name}
    before: str | None = thread.after
    while before in named:
        if before in passed:
            raise BadInput("leads back to itself", text.where(after), "begin with a timer")
        passed.add(before)
        before = named[before].after


def _evidence(text: TomlFile[ThreadFile], path: Path) -> LinuxBound:
    found = linux_bound(observations_of([path]))
    if found.unseen or found.bound.bound_ns is None:
        why = "; ".join(found.unseen) or "interrupts may take all of the time"
        raise BadInput(
            f"gives no wake-up bound ({why})",
            text.where(("linux", "windows")),
            "see latenz bound --linux, or give a number as wake_up",
        )
    return found


def _kernel(file: LinuxSettings, evidence: LinuxBound | None) -> Kernel:
    if evidence is None:
        return Kernel(file.wake_up or 0, file.switch or 0)
    from functools import reduce

    from latenz.linux_bound.model import Steps

    terms = evidence.terms
    joint = reduce(Steps.joined, (each.windows.joint() for each in evidence.observations))
    switch = terms.scheduler if file.switch is None else file.switch
    return Kernel(terms.work(), switch, joint)


def _assumptions(file: LinuxSettings, evidence: LinuxBound | None) -> tuple[str, ...]:
    told = [
        "one CPU, SCHED_FIFO, no other thread at or above these priorities, and no throttling"
        " (sched_rt_runtime_us = -1, or less used)",
        "a thread does not sleep within an activation",
    ]
    if evidence is not None:
        left = ", ".join(each.name for each in evidence.conditions if each.open)
        more = f", of which {left} are open" if left else ""
        told.append(f"the conditions of the wake-up bound under the observed maxima{more}")
        return tuple(told)
    told.append(
        f"{format_duration(file.wake_up or 0)} bounds the wake-up latency of the thread that has"
        " the highest priority, with interrupts until then; others are those of the file"
    )
    if not file.switch:
        told.append("a switch of threads takes no time: execution times hold it")
    return tuple(told)
