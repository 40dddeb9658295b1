"""Options that the verbs of the analysis share."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar, get_args

from latenz.analysis.bound import HORIZON_NS
from latenz.analysis.simulate import Times
from latenz.deadlines import parse_deadline
from latenz.durations import parse_duration
from latenz.errors import BadInput, closest, shown
from latenz.model import Deadline
from latenz.system import LatencyFrom, Mode, RecordedTrace, System, read_arrivals
from latenz.system.fields import LONGEST_NS

ChoiceT = TypeVar("ChoiceT", bound=str)

_DEFAULT_IRQS = 10_000
_MOST_IRQS = 2**62


def mode_of(text: str | None) -> Mode | None:
    """Return what --mode asks for."""
    return _choice(text, get_args(Mode), "--mode", "mode")


def latency_from_of(text: str | None) -> LatencyFrom | None:
    """Return what --latency-from asks for."""
    return _choice(text, get_args(LatencyFrom), "--latency-from", "place where latencies begin")


def deadlines_of(texts: Sequence[str], system: System) -> dict[str, list[Deadline]]:
    """Return deadlines by source, from texts such as can=300us: without a name it is every one's.

    Raises:
        BadInput: A text is not a deadline, or names no source of the system.
    """
    names = [source.name for source in system.sources]
    found: dict[str, list[Deadline]] = {name: [] for name in names}
    for text in texts:
        deadline = parse_deadline(text)
        name, equals, _ = text.rpartition("=")
        if equals and name.strip() not in found:
            raise BadInput(
                f"{shown(name.strip())} is not a source", "--deadline", closest(name.strip(), names)
            )
        for each in [name.strip()] if equals else names:
            found[each].append(deadline)
    return found


def limits_of(texts: Sequence[str], system: System) -> dict[str, int]:
    """Return the shortest limit in nanoseconds of each source that has one, in the texts' order.

    Raises:
        BadInput: As `deadlines_of`.
    """
    found = {name: each for name, each in deadlines_of(texts, system).items() if each}
    asked = [text.rpartition("=")[0].strip() for text in texts]
    order = [name for name in dict.fromkeys([*asked, *found]) if name in found]
    return {name: min(each.limit_ns for each in found[name]) for name in order}


def horizon_of(text: str | None) -> int:
    """Return in nanoseconds what --horizon asks for.

    Raises:
        BadInput: It is not a length of time.
    """
    if text is None:
        return HORIZON_NS
    horizon_ns = parse_duration(text, "--horizon")
    if not 0 < horizon_ns < LONGEST_NS:
        raise BadInput(f"{text!r} is not a horizon", "--horizon", "write for example 100s")
    return horizon_ns


def arrivals_of(
    system: System, file: Path | None, irqs: int | None
) -> tuple[list[Times] | None, int | None]:
    """Return listed arrivals for each source, or None, and how many interrupts there are at most.

    Raises:
        BadInput: Both are asked for, the file has a mistake, or the number is not positive.
    """
    if file is not None:
        if irqs is not None:
            raise BadInput(
                "--arrivals and --irqs exclude each other", "--irqs", "a file says how many it has"
            )
        times = read_arrivals(file, system)
        return times, sum(len(each) for each in times)
    if irqs is not None and not 0 < irqs <= _MOST_IRQS:
        raise BadInput(f"{irqs} is not a number of interrupts", "--irqs", "give at least 1")
    if irqs is None and all(isinstance(each.arrival, RecordedTrace) for each in system.sources):
        return None, None
    return None, irqs or _DEFAULT_IRQS


def window_of(text: str | None, system: System) -> tuple[int, int]:
    """Return the start and end in nanoseconds that --window asks for; else the first two cycles.

    Raises:
        BadInput: It is not a part of time.
    """
    if text is None:
        return 0, 2 * system.cycle_ns
    start, dots, end = text.partition("..")
    if not dots:
        raise BadInput(f"{text!r} is not a window", "--window", "write for example 10ms..30ms")
    start_ns, end_ns = parse_duration(start, "--window"), parse_duration(end, "--window")
    if not 0 <= start_ns < end_ns:
        raise BadInput(f"{text!r} is not a window", "--window", "end it after its start")
    return start_ns, end_ns


def _choice(text: str | None, known: tuple[ChoiceT, ...], option: str, noun: str) -> ChoiceT | None:
    if text is None:
        return None
    for each in known:
        if each == text:
            return each
    raise BadInput(f"{text!r} is not a known {noun}", option, closest(text, known))
