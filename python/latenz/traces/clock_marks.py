"""How the clock of a trace goes with the machine's counter: by marks that were written into both.

`latenz-wakeup --mark-clock` writes into the kernel's trace what the time-stamp counter was right
before and right after it read CLOCK_MONOTONIC, which is the trace's clock `mono`. A guest's
counter is ahead of its host's by what KVM tells in the event `kvm_write_tsc_offset`. So marks on
both sides tell how one clock becomes the other, by as little error as the readings took.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from latenz.traces.reader import RecordedTrace

_NAMES = ("print", "tracing_mark_write")
_MARK = re.compile(r"latenz-clock: monotonic (\d{1,19}) counter (\d{1,20}) to (\d{1,20})\b")
_MOST_MARKS = 64
_SHIFT = 40


class Mark(NamedTuple):
    """A reading of CLOCK_MONOTONIC, and of the counter before and after it."""

    t_ns: int
    before: int
    after: int


class Line(NamedTuple):
    """A clock by its machine's counter: a straight line, and how far from it marks may lie.

    Attributes:
        counter: Where it begins, twice the count, as it may be half of one.
        t_ns: What the clock told then.
        ns_a_count: How fast it goes.
        error_ns: How far a time of the trace may be off.
    """

    counter: int
    t_ns: int
    ns_a_count: Fraction
    error_ns: Fraction


def marks(trace: "RecordedTrace") -> list[Mark]:
    """Return the marks of a trace, in order."""
    rows = trace.times(_NAMES, _MOST_MARKS)
    windows = [(int(t_ns), int(t_ns)) for t_ns in np.unique(rows[:, 0])] if len(rows) else []
    found = []
    for event in trace.events(windows, _MOST_MARKS):
        told = [str(value) for value in event.fields.values()] if event.name in _NAMES else []
        if match := _MARK.search(" ".join(told)):
            found.append(Mark(*(int(each) for each in match.groups())))
    return sorted(each for each in found if each.before <= each.after)


def line_of(found: Sequence[Mark], start_ns: int, end_ns: int) -> Line | None:
    """Return the clock that marks tell of; None if they lie too close to each other for a trace.

    Args:
        found: In order.
        start_ns: Of the trace.
        end_ns: Of it.
    """
    if len(found) < 2:
        return None
    first, last = found[0], found[-1]
    span_ns, counts = last.t_ns - first.t_ns, _twice(last) - _twice(first)
    outside_ns = max(0, first.t_ns - start_ns, end_ns - last.t_ns)
    if counts <= 0 or span_ns <= outside_ns:
        return None
    rate = Fraction(2 * span_ns, counts)
    wrong = max(
        abs(first.t_ns + Fraction(_twice(each) - _twice(first), 2) * rate - each.t_ns)
        + Fraction(each.after - each.before, 2) * rate
        for each in found
    )
    wrong *= 1 + Fraction(2 * outside_ns, span_ns)  # there the line only goes on
    return Line(_twice(first), first.t_ns, rate, wrong + 1)


def _twice(mark: Mark) -> int:
    """Return twice the count in the middle of a mark."""
    return mark.before + mark.after


def joined(host: Line, guest: Line, ahead: int) -> tuple[str, int]:
    """Return how times of a guest become its host's, as `latenz-trace --clock` takes it.

    Args:
        host: The host's clock.
        guest: The guest's.
        ahead: By how much the guest's counter is ahead of the host's.

    Returns:
        The argument, and by how much a time may be off, both clocks' errors in sum (ns).
    """
    rate = host.ns_a_count / guest.ns_a_count
    multiplier = round(rate * (1 << _SHIFT))
    counts = Fraction(guest.counter - 2 * ahead - host.counter, 2)
    at_host = host.t_ns + counts * host.ns_a_count
    offset = round(at_host - (guest.t_ns * multiplier >> _SHIFT))
    error = host.error_ns + guest.error_ns * rate
    return f"{multiplier}:{_SHIFT}:{offset}", -(-error.numerator // error.denominator)
