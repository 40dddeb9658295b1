"""Clock cycles and nanoseconds: exact integers, fractions of either rounded down."""

import numpy as np
import numpy.typing as npt

from latenz.errors import BadInput

Integers = npt.NDArray[np.int64]
_SECOND = 1_000_000_000
_INT64_MAX = 2**63 - 1
FASTEST_HZ = 4_000_000_000
"""Above this, products of remainders would no longer fit in 64 bits."""


class Clock:
    """The clock that an IP counts.

    Args:
        hertz: Its frequency.
        where: Who said so, for the error message.

    Raises:
        BadInput: No clock of an FPGA has that frequency.
    """

    def __init__(self, hertz: int, where: str = "clock") -> None:
        if not 1 <= hertz <= FASTEST_HZ:
            raise BadInput(
                f"{hertz} Hz is not a clock frequency",
                where,
                f"it is between 1 and {FASTEST_HZ} Hz",
            )
        self.hertz = hertz

    @property
    def is_whole(self) -> bool:
        """Whether a cycle is a whole number of nanoseconds, so that nothing is rounded."""
        return _SECOND % self.hertz == 0

    @property
    def resolution_ns(self) -> int:
        """One cycle; so much more where it is rounded that v stands for [v, v + resolution).

        Signals of another clock can be a cycle less, too: docs/ip.md, What each figure includes.
        """
        return _SECOND // self.hertz + (0 if self.is_whole else 2)

    def to_ns(self, cycles: int) -> int:
        """Return how long some cycles take, rounded down to a nanosecond.

        Raises:
            BadInput: It does not fit in 64 bits.
        """
        time_ns = cycles * _SECOND // self.hertz
        if time_ns > _INT64_MAX:
            raise BadInput(f"{cycles} cycles do not fit in 64 bits of nanoseconds")
        return time_ns

    def all_to_ns(self, cycles: npt.NDArray[np.uint64]) -> Integers:
        """Return how long each of some numbers of cycles takes, rounded down to a nanosecond.

        Raises:
            BadInput: One does not fit in 64 bits.
        """
        if len(cycles):
            self.to_ns(int(cycles.max()))
        seconds, rest = np.divmod(cycles, np.uint64(self.hertz))
        within = rest * np.uint64(_SECOND) // np.uint64(self.hertz)
        return (seconds * np.uint64(_SECOND) + within).astype(np.int64)

    def to_cycles(self, time_ns: int) -> int:
        """Return the most cycles that do not take longer than a time.

        A latency exceeds the time if and only if it is of more cycles than these.
        """
        return time_ns * self.hertz // _SECOND
