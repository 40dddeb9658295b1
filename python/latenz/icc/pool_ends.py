"""Python's ends of a pool: messages of varying length, as numpy arrays of records."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from latenz import _core
from latenz.icc.description import DescribedChannel
from latenz.icc.endpoint import Message, Place, Result, Side, check, is_done, ns_of, type_of

Items = npt.NDArray[np.void]
"""Records of the channel's type, in a row."""


class _PoolSide(Side[_core.PoolEndpoint]):
    _kind = "pool"

    @classmethod
    def _opened(cls, channel: DescribedChannel, place: Place) -> _core.PoolEndpoint:
        shape = type_of(channel.payload), channel.longest, channel.slots
        return _core.PoolEndpoint(place.memory, place.offset, place.name, *shape, cls._writes)

    def _lent(self, offset: int, items: int) -> Items:
        return self._placed(offset, self.dtype, items, writes=self._writes)


class PoolWriter(_PoolSide):
    """Writes messages of no item up to the longest, in blocks of several sizes."""

    _writes = True

    def write(
        self, items: Iterable[Message] | npt.ArrayLike, timeout_s: float | None = None
    ) -> None:
        """Write a message as soon as a block of its size is free.

        Raises:
            ChannelError: Nothing was written; `FULL`: no message is so long.
        """
        message = self._array(items)
        self.loan(len(message), timeout_s)[...] = message
        self.publish()

    def try_write(self, items: Iterable[Message] | npt.ArrayLike) -> bool:
        """Write a message if a block of its size is free."""
        message = self._array(items)
        lent = self.try_loan(len(message))
        if lent is None:
            return False
        lent[...] = message
        self.publish()
        return True

    def loan(self, items: int, timeout_s: float | None = None) -> Items:
        """Return where so many items are to be filled in, in shared memory, as soon as it is free.

        Nobody sees them before `publish`. A loan that is not published is the next one's.

        Raises:
            ChannelError: No block is free; `FULL`: no message is so long.
        """
        self._check(items)
        result, offset = self._endpoint.loan(items, ns_of(timeout_s))
        check(result)
        return self._lent(offset, items)

    def try_loan(self, items: int) -> Items | None:
        """The same if a block is free."""
        self._check(items)
        result, offset = self._endpoint.try_loan(items)
        return self._lent(offset, items) if is_done(result, Result.FULL) else None

    def publish(self, items: int | None = None) -> None:
        """Send what was lent last, or the first items of it; once for each loan."""
        self._endpoint.publish(self.channel.longest if items is None else items)

    def _array(self, items: Iterable[Message] | npt.ArrayLike) -> Items:
        return np.atleast_1d(np.asarray(items, self.dtype))

    def _check(self, items: int) -> None:
        if not 0 <= items < 1 << 32:
            raise ValueError(f"{items} items")


class PoolReader(_PoolSide):
    """Reads them in order; may hold several, and give them back in any order."""

    def read(self, timeout_s: float | None = None) -> Items:
        """Read the next message as soon as it is there.

        Raises:
            ChannelError: Nothing was read; `BUSY`: what is there is not a message, and is passed
                over.
        """
        return self._copied(self.take(timeout_s))

    def try_read(self) -> Items | None:
        """Read the next message if it is there."""
        taken = self.try_take()
        return None if taken is None else self._copied(taken)

    def take(self, timeout_s: float | None = None) -> Items:
        """Return the next message where it stands, to be read until its `release`.

        Raises:
            ChannelError: As of `read`.
        """
        result, offset, items = self._endpoint.take(ns_of(timeout_s))
        check(result)
        return self._lent(offset, items)

    def try_take(self) -> Items | None:
        """The same if it is there."""
        result, offset, items = self._endpoint.try_take()
        return self._lent(offset, items) if is_done(result, Result.EMPTY) else None

    def release(self, message: Items) -> None:
        """Give back what was taken.

        Raises:
            ChannelError: `EMPTY`: it is not held, or not what `take` returned.
        """
        begin = self._place.memory.bytes.ctypes.data + self._place.offset
        offset = message.ctypes.data - begin
        check(self._endpoint.release(offset) if offset >= 0 else Result.EMPTY)

    def _copied(self, taken: Items) -> Items:
        copy = taken.copy()
        self.release(taken)
        return copy
