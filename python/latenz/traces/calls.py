"""Which function was at work for most of a time, by the calls that the function tracer wrote.

The tracer tells when a function is entered, and who called it, but not when it returns. Whoever
calls is still there: so a function was at work from its entry to the last call that it made before
it was entered again. Each call has the flags of its CPU, too: where they say that interrupts or
preemption were disabled, only the calls from the first such one to the last are looked at.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

LOOK_BACK_NS = 10_000_000
"""How long before a time a function may have been entered that was at work then."""
_MOST = 0.6  # of a time, that a function is named for
_MOST_CALLS = 200_000  # that are gone through for one time


class Call(NamedTuple):
    """A function was entered by a thread.

    Attributes:
        function: Which one.
        caller: Who called it.
        is_held: Interrupts or preemption were disabled then.
    """

    t_ns: int
    pid: int
    function: str
    caller: str
    is_held: bool


class _Spell(NamedTuple):
    """A function at work: from its entry, or from long before, to the last call that it made."""

    entered_ns: int
    last_ns: int


def at_work(
    calls: Sequence[Call], pid: int, span: tuple[int, int], says: Callable[[str], bool]
) -> str:
    """Return the innermost function that was at work for most of a time; empty if none was.

    Args:
        calls: Of a CPU, in order, but those of interrupts.
        pid: The thread.
        span: The time.
        says: Whether a function's name says what was done.
    """
    start_ns, end_ns = span
    first = bisect_left(calls, start_ns - LOOK_BACK_NS, key=lambda call: call.t_ns)
    last = bisect_right(calls, end_ns, key=lambda call: call.t_ns)
    own = [call for call in calls[max(first, last - _MOST_CALLS) : last] if call.pid == pid]
    start_ns, end_ns = _bracket(own, start_ns, end_ns)
    wanted_ns = _MOST * (end_ns - start_ns)
    found = [
        (spell.entered_ns, name)
        for name, spell in _spells(own, start_ns, end_ns).items()
        if says(name) and spell.last_ns - max(spell.entered_ns, start_ns) >= wanted_ns
    ]
    return max(found, default=(0, ""))[1]


def _bracket(own: Sequence[Call], start_ns: int, end_ns: int) -> tuple[int, int]:
    """Return the part of a time in which flags say what kept the CPU, if that is most of it."""
    held = [call.t_ns for call in own if call.is_held and start_ns <= call.t_ns <= end_ns]
    if held and held[-1] - held[0] >= _MOST * (end_ns - start_ns):
        return held[0], held[-1]
    return start_ns, end_ns


def _spells(own: Sequence[Call], start_ns: int, end_ns: int) -> dict[str, _Spell]:
    """Return of each function the longest spell at work in a time."""
    entered: dict[str, int] = {}
    found: dict[str, _Spell] = {}
    for place, call in enumerate(own):
        if call.t_ns > end_ns:
            break
        if call.t_ns >= start_ns:
            since_ns = entered.setdefault(call.caller, start_ns - LOOK_BACK_NS)
            _lengthen(found, call.caller, _Spell(since_ns, call.t_ns), start_ns)
        entered[call.function] = call.t_ns
        after_ns = own[place + 1].t_ns if place + 1 < len(own) else end_ns
        if after_ns > start_ns:  # whoever was called last is there until the next call, or returned
            leaf = _Spell(call.t_ns, min(after_ns, end_ns))
            _lengthen(found, call.function, leaf, start_ns)
    return found


def _lengthen(found: dict[str, _Spell], name: str, spell: _Spell, start_ns: int) -> None:
    before = found.get(name)
    length_ns = spell.last_ns - max(spell.entered_ns, start_ns)
    if before is None or length_ns >= before.last_ns - max(before.entered_ns, start_ns):
        found[name] = spell
