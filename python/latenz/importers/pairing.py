"""From edges of two signals to latencies: which end belongs to which start.

With nothing open, a start opens a latency; an end closes the one that is open. A start while one
is open is an overlap, and the policy says what becomes of it: `drop` leaves it out (as the
Latencies IP does by default), `restart` lets it replace the open one, `queue` keeps both, first
in, first out. An end with nothing open is an orphan. When both come at the same time, the end
belongs to the open latency and the start opens a new one; with nothing open it is a latency of 0.
"""

from collections import deque
from collections.abc import Iterator

from latenz.errors import BadInput

POLICIES = ("drop", "restart", "queue")


def check_policy(overlap: str) -> None:
    """Refuse what is none of `POLICIES`.

    Raises:
        BadInput: It is none.
    """
    if overlap not in POLICIES:
        raise BadInput(f"{overlap!r} is not an overlap policy", "--overlap", ", ".join(POLICIES))


class Pairing:
    """Pairs the edges of one start and one end signal.

    Args:
        overlap: One of `POLICIES`.

    Attributes:
        overlaps: Starts that came while a latency was open.
        orphan_ends: Ends that came while none was.
        abandoned: Latencies that were open when the recording had a gap.
    """

    def __init__(self, overlap: str) -> None:
        check_policy(overlap)
        self.overlap = overlap
        self.overlaps = 0
        self.orphan_ends = 0
        self.abandoned = 0
        self._open: deque[int] = deque()

    @property
    def open_at_end(self) -> int:
        """How many latencies have begun and not ended."""
        return len(self._open)

    def abandon(self) -> None:
        """Give up what is open: the recording has a gap in which it may have ended."""
        self.abandoned += len(self._open)
        self._open.clear()

    def edges(self, time: int, starts: int, ends: int) -> Iterator[tuple[int, int]]:
        """Take the edges of one instant; give each finished latency as start and end time.

        Args:
            time: The instant; must not be before that of the last call.
            starts: Number of start edges, usually 0 or 1.
            ends: Number of end edges.
        """
        while starts or ends:
            if ends and (self._open or not starts):
                ends -= 1
                if self._open:
                    yield self._open.popleft(), time
                else:
                    self.orphan_ends += 1
            else:
                starts -= 1
                self._start(time)

    def _start(self, time: int) -> None:
        if self._open:
            self.overlaps += 1
            if self.overlap == "drop":
                return
            if self.overlap == "restart":
                self._open.clear()
        self._open.append(time)
