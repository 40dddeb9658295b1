"""Rings that take turns: the largest latency's moment is kept however late it is told."""

import random

import pytest

from latenz.traces import recording as recordings
from latenz.traces.recording import Recording

TOLD_EVERY, SEEN_EVERY = 10, 10


class Clock:
    now = 0


class Ring:
    """Remembers from when to when it recorded."""

    def __init__(self, label: str, kib: int) -> None:
        self.since: int | None = None
        self.until: int | None = None

    def clear(self) -> None:
        self.since = None

    def go_on(self) -> None:
        self.since, self.until = Clock.now, None

    def stop(self) -> None:
        self.until = Clock.now

    def remove(self) -> None:
        pass

    def holds(self, t: int) -> bool:
        return self.since is not None and self.since <= t <= (self.until or Clock.now)


@pytest.mark.parametrize("seed", range(30))
def test_the_largest_is_kept_however_late_it_is_told(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program writes its account now and then, and we look at it now and then, not together."""
    source = random.Random(seed)
    made: list[Ring] = []

    def make(label: str, kib: int) -> Ring:
        made.append(Ring(label, kib))
        return made[-1]

    monkeypatch.setattr(recordings, "Ring", make)
    monkeypatch.setattr(recordings.rings, "remove_leftovers", list)
    Clock.now = 0
    largest, at, told = 0, 0, None
    phase = source.randrange(TOLD_EVERY)
    with Recording() as recording:
        recording.start()
        for Clock.now in range(source.randrange(100, 400)):
            latency = int(1000 * source.paretovariate(1))
            if latency > largest:
                largest, at = latency, Clock.now
            if Clock.now % TOLD_EVERY == phase:
                told = largest
            if Clock.now % SEEN_EVERY == 0:
                recording.notice(told)
                assert sum(ring.until is None and ring.since is not None for ring in made) == 1
        recording.stop()
        assert any(ring.holds(at) for ring in made)
