"""What happens in a region's channels: rates, ages, and who is alive."""

import time
from dataclasses import dataclass
from typing import Literal

from latenz.errors import BadInput
from latenz.icc.layout import Channel, Unreadable, find_channels
from latenz.icc.look import Look, Value, look, newest
from latenz.icc.region import Region

LOOK_EVERY_NS = 100_000_000
"""Often enough that no count wraps unseen: a Mailbox's has 24 bits."""
_SILENT_AFTER_NS = 500_000_000
_SECOND = 1_000_000_000

State = Literal["alive", "silent", "closed", "never there"]


@dataclass(frozen=True)
class SideState:
    """One side of a channel."""

    role: str
    epoch: int
    state: State
    silent_ns: int
    """From its last sign of life, or our first look if we have seen none, to our last look."""
    beats: int
    dropped: int


@dataclass(frozen=True)
class Watched:
    """A channel, and what has happened in it."""

    channel: Channel
    messages: int
    """So far, modulo what its counter holds."""
    messages_per_s: float | None
    """Since the last report; None in the first."""
    last_change_ns: int | None
    """How long ago a message came; None if none has come since we look."""
    sides: tuple[SideState, ...]
    newest: Value | None


@dataclass(frozen=True)
class Report:
    """All channels of a region over one window."""

    region: str
    size: int
    is_removed: bool
    window_ns: int
    watched: tuple[Watched, ...]
    unreadable: tuple[Unreadable, ...]


class _Track:
    """What was seen of one channel."""

    def __init__(self, first: Look) -> None:
        self.last = first
        self.window_began_ns = first.time_ns
        self.window_messages = 0
        self.changed_ns: int | None = None
        self.signs_ns = [first.time_ns for _ in first.sides]
        self.has_signs = [False for _ in first.sides]

    def add(self, now: Look) -> None:
        """Compare with the look before."""
        came = (now.messages - self.last.messages) % now.wrap
        if came:
            self.window_messages += came
            self.changed_ns = now.time_ns
        for side, (before, after) in enumerate(zip(self.last.sides, now.sides, strict=True)):
            if before.signs != after.signs:
                self.signs_ns[side] = now.time_ns
                self.has_signs[side] = True
        self.last = now

    def rate(self) -> float | None:
        """Return messages a second in the window, and begin the next one."""
        took_ns = self.last.time_ns - self.window_began_ns
        rate = self.window_messages * _SECOND / took_ns if took_ns else None
        self.window_began_ns, self.window_messages = self.last.time_ns, 0
        return rate


class Watcher:
    """Looks at a region again and again."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._tracks: dict[Channel, _Track] = {}
        self._unreadable: tuple[Unreadable, ...] = ()
        self._began_ns = time.monotonic_ns()
        self._find()

    def _find(self) -> None:
        """Learn which channels there are now; one that was formatted anew is another one."""
        found = find_channels(self._region)
        if not found.channels and not found.unreadable:
            raise BadInput(
                f"no channel is in its {self._region.size} bytes",
                self._region.name,
                "has its creator started?",
            )
        self._unreadable = found.unreadable
        self._tracks = {
            channel: self._tracks.get(channel) or _Track(look(self._region, channel))
            for channel in found.channels
        }

    def look(self) -> None:
        """Look once at each channel."""
        for channel, track in self._tracks.items():
            track.add(look(self._region, channel))

    def watch(self, window_ns: int) -> Report:
        """Look for a while, and report."""
        end_ns = time.monotonic_ns() + window_ns
        while (left_ns := end_ns - time.monotonic_ns()) > 0:
            time.sleep(min(left_ns, LOOK_EVERY_NS) / _SECOND)
            self.look()
        return self.report()

    def report(self) -> Report:
        """Return what has happened since the last report."""
        self._find()
        now_ns = time.monotonic_ns()
        report = Report(
            region=self._region.name,
            size=self._region.size,
            is_removed=self._region.is_removed(),
            window_ns=now_ns - self._began_ns,
            watched=tuple(self._watched(*item, now_ns) for item in self._tracks.items()),
            unreadable=self._unreadable,
        )
        self._began_ns = now_ns
        return report

    def _watched(self, channel: Channel, track: _Track, now_ns: int) -> Watched:
        return Watched(
            channel=channel,
            messages=track.last.messages,
            messages_per_s=track.rate(),
            last_change_ns=None if track.changed_ns is None else now_ns - track.changed_ns,
            sides=tuple(_side(channel, track, side) for side in range(len(channel.roles))),
            newest=newest(self._region, channel),
        )


def _side(channel: Channel, track: _Track, side: int) -> SideState:
    shown = track.last.sides[side]
    # If we are held up after our last look, that is not the side's silence.
    silent_ns = track.last.time_ns - track.signs_ns[side]
    state: State
    if shown.epoch == 0:
        state = "never there"
    elif not shown.open:
        state = "closed"
    elif track.has_signs[side] and silent_ns < _SILENT_AFTER_NS:
        state = "alive"
    else:
        state = "silent"
    return SideState(channel.roles[side], shown.epoch, state, silent_ns, shown.beats, shown.dropped)
