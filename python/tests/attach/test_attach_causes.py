"""What waits behind interrupts is not throttled, and what is throttled is told so."""

import pytest

from latenz.attach.account import Segment, Story, Thread
from latenz.attach.causes import Surroundings, explained

MS = 1_000_000
OWN, ORDINARY = 59, 120  # the kernel's numbers of priorities


def _zeros(kind: type[Thread] | type[Story]) -> dict[str, object]:
    return {name: 0 for name, each in kind.model_fields.items() if each.is_required()}


def thread() -> Thread:
    zeros = _zeros(Thread)
    known = {"tid": 1, "pid": 1, "comm": "loop", "folder": "loop", "gone": False, "grid": None}
    unknown = {"largest_ns": None, "largest_response_ns": None}
    empty: dict[str, object] = {"ran_on": {}, "sleeps": (), "calls": {}, "worst": ()}
    return Thread.model_validate({**zeros, **known, **unknown, **empty})


def waiting(*waits: tuple[int, int]) -> Story:
    """A cycle that is ready for so long, so much of it while interrupts are handled."""
    segments = []
    t_ns = 0
    for length_ns, stolen_ns in waits:
        told = {"what": "ready", "t_ns": t_ns, "length_ns": length_ns, "stolen_ns": stolen_ns}
        who = {"cpu": 0, "tid": 7, "comm": "flooder", "priority": ORDINARY}
        segments.append(Segment.model_validate({**told, **who}))
        t_ns += length_ns
    zeros = _zeros(Story)
    whole = {"latency_ns": t_ns, "response_ns": t_ns, "own_priority": OWN, "is_cut": False}
    return Story.model_validate({**zeros, **whole, "segments": segments})


@pytest.mark.parametrize(
    ("waits", "cause"),
    [
        (((4 * MS, 4 * MS), (1000, 0)), "interrupt"),
        (((40 * MS, 39 * MS), (MS, 0)), "interrupt"),
        (((25 * MS, 0), (25 * MS, 0)), "throttled"),
        (((25 * MS, 2 * MS), (25 * MS, 2 * MS)), "throttled"),
        (((4 * MS, 0),), "preemption-off"),
    ],
)
def test_a_wait_behind_less_urgent_threads(waits: tuple[tuple[int, int], ...], cause: str) -> None:
    assert explained(thread(), waiting(*waits), Surroundings())["cause"] == cause
