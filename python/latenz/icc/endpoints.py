"""Python's ends of channels in shared memory of Linux; the other end may be in C, C++ or Python.

The protocol is the C header's (`icc/include/latenz/icc.h`), and so are the names and answers of the
calls. Messages are numpy records of the described type: `message["angle"]`. An endpoint is for one
thread. Waiting calls let other threads run and end with Control-C; without a `timeout_s` they end
when they are done, or once the other side has left or given no sign of life for 5 s.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from latenz import _core
from latenz.icc.description import DescribedChannel, read_description
from latenz.icc.endpoint import (
    ChannelError,
    Message,
    Place,
    Result,
    Side,
    check,
    is_done,
    ns_of,
    type_of,
)
from latenz.icc.pool_ends import PoolReader, PoolWriter
from latenz.icc.records import dtype_of

__all__ = [
    "ChannelError",
    "ExchangeClient",
    "ExchangeServer",
    "LatestReader",
    "LatestWriter",
    "MailboxReader",
    "MailboxWriter",
    "PoolReader",
    "PoolWriter",
    "Result",
    "RingReader",
    "RingWriter",
    "load_channels",
]

_UPDATED = 2


def load_channels(path: Path | str) -> dict[str, DescribedChannel]:
    """Read a description and return its channels by their names, for the endpoints of Python.

    Raises:
        BadInput: It cannot be read, or describes what no channel can carry.
    """
    return {channel.name: channel for channel in read_description(Path(path)).channels}


class _MailboxSide(Side[_core.MailboxEndpoint]):
    _kind = "mailbox"

    @classmethod
    def _opened(cls, channel: DescribedChannel, place: Place) -> _core.MailboxEndpoint:
        return _core.MailboxEndpoint(
            place.memory, place.offset, place.name, type_of(channel.payload), cls._writes
        )

    def _in_place(self) -> npt.NDArray[np.void]:
        return self._placed(self._endpoint.payload_offset, self.dtype, writes=self._writes)


class MailboxWriter(_MailboxSide):
    """Writes messages of which each is read before the next is written."""

    _writes = True

    def write(self, message: Message, timeout_s: float | None = None) -> None:
        """Write as soon as the message before has been read.

        Raises:
            ChannelError: Nothing was written.
        """
        self._put(message)
        check(self._endpoint.write(ns_of(timeout_s)))

    def try_write(self, message: Message) -> bool:
        """Write if the message before has been read."""
        self._put(message)
        return is_done(self._endpoint.try_write(), Result.FULL)

    def try_loan(self) -> npt.NDArray[np.void] | None:
        """Return where the next message is to be made if the one before has been read.

        Nobody sees it before `publish`.
        """
        return self._in_place() if is_done(self._endpoint.try_loan(), Result.FULL) else None

    def publish(self) -> None:
        """Write what was lent last; once for each loan."""
        self._endpoint.publish()


class MailboxReader(_MailboxSide):
    """Reads them."""

    def read(self, timeout_s: float | None = None) -> np.void:
        """Read as soon as a message is there.

        Raises:
            ChannelError: Nothing was read.
        """
        check(self._endpoint.read(ns_of(timeout_s)))
        return self._got()

    def try_read(self) -> np.void | None:
        """Read if a message is there."""
        return self._got() if is_done(self._endpoint.try_read(), Result.EMPTY) else None

    def try_take(self) -> npt.NDArray[np.void] | None:
        """Return a message that is there where it stands, to be read until `release`."""
        return self._in_place() if is_done(self._endpoint.try_take(), Result.EMPTY) else None

    def release(self) -> None:
        """Give the slot taken last back.

        Raises:
            ChannelError: `EMPTY`: nothing was taken.
        """
        check(self._endpoint.release())


class _ExchangeSide(Side[_core.ExchangeEndpoint]):
    _kind = "exchange"

    def __init__(
        self, channel: DescribedChannel, place: Place, endpoint: _core.ExchangeEndpoint
    ) -> None:
        super().__init__(channel, place, endpoint)
        assert channel.reply is not None  # noqa: S101 - a description's exchange has one
        self.reply_dtype = dtype_of(channel.reply)
        """Of a reply."""
        self._reply: npt.NDArray[np.void] = np.ndarray((), self.reply_dtype, buffer=endpoint.reply)

    @classmethod
    def _opened(cls, channel: DescribedChannel, place: Place) -> _core.ExchangeEndpoint:
        assert channel.reply is not None  # noqa: S101 - a description's exchange has one
        types = type_of(channel.payload), type_of(channel.reply)
        return _core.ExchangeEndpoint(place.memory, place.offset, place.name, *types, cls._writes)

    def _in_place(self, dtype: np.dtype[np.void], *, writes: bool) -> npt.NDArray[np.void]:
        return self._placed(self._endpoint.payload_offset, dtype, writes=writes)


class ExchangeClient(_ExchangeSide):
    """Sends requests, and gets a reply to each."""

    _writes = True

    def call(self, request: Message, timeout_s: float | None = None) -> np.void:
        """Send a request and wait for its reply.

        Raises:
            ChannelError: There is no reply; whether the server has acted is not known.
        """
        self._put(request)
        check(self._endpoint.call(ns_of(timeout_s)))
        return self._replied()

    def try_post(self, request: Message) -> bool:
        """Send a request without waiting; False while another one is not answered."""
        self._put(request)
        return is_done(self._endpoint.try_post(), Result.FULL)

    def try_collect(self) -> np.void | None:
        """Take the reply to the request of `try_post` if it is there."""
        return self._replied() if is_done(self._endpoint.try_collect(), Result.EMPTY) else None

    def try_loan(self) -> npt.NDArray[np.void] | None:
        """Return where the next request is to be made; None while another one is not answered.

        Nobody sees it before `publish`.
        """
        found = is_done(self._endpoint.try_loan(), Result.FULL)
        return self._in_place(self.dtype, writes=True) if found else None

    def publish(self) -> None:
        """Send the request that was lent last; once for each loan."""
        self._endpoint.publish()

    def try_take_reply(self) -> npt.NDArray[np.void] | None:
        """Return a reply that is there where it stands, until `release` or the next request."""
        found = is_done(self._endpoint.try_take_reply(), Result.EMPTY)
        return self._in_place(self.reply_dtype, writes=False) if found else None

    def release(self) -> None:
        """End the use of the reply taken last.

        Raises:
            ChannelError: `EMPTY`: none was taken.
        """
        check(self._endpoint.release())

    def _replied(self) -> np.void:
        return self._reply.copy()[()]  # type: ignore[return-value]


class ExchangeServer(_ExchangeSide):
    """Answers requests: `take`, then `answer`."""

    def take(self, timeout_s: float | None = None) -> np.void:
        """Take the next request, as soon as it is there.

        Raises:
            ChannelError: There is none; `BUSY`: the one before has not been answered.
        """
        check(self._endpoint.take(ns_of(timeout_s)))
        return self._got()

    def try_take(self) -> np.void | None:
        """Take the next request if it is there."""
        return self._got() if is_done(self._endpoint.try_take(), Result.EMPTY) else None

    def answer(self, reply: Message) -> None:
        """Reply to the request taken last.

        Raises:
            ChannelError: `EMPTY`: there is none.
        """
        self._reply[()] = reply
        check(self._endpoint.answer())

    def try_take_request(self) -> npt.NDArray[np.void] | None:
        """Return a request that is there where it stands, until it is answered or `loan_reply`.

        Raises:
            ChannelError: `BUSY`: the one before has not been answered.
        """
        found = is_done(self._endpoint.try_take_request(), Result.EMPTY)
        return self._in_place(self.dtype, writes=False) if found else None

    def loan_reply(self) -> npt.NDArray[np.void] | None:
        """Return where the reply is to be made, in place of the request; None without a request.

        Nobody sees it before `publish_reply`.
        """
        found = self._endpoint.loan_reply()
        return self._in_place(self.reply_dtype, writes=True) if found else None

    def publish_reply(self) -> None:
        """Reply with what was lent last; once for each loan."""
        self._endpoint.publish_reply()


L = TypeVar("L", bound="_core.SlottedEndpoint")


class _SlottedSide(Side[L]):
    """An end that also works where messages are, in shared memory."""

    def __init__(self, channel: DescribedChannel, place: Place, endpoint: L) -> None:
        super().__init__(channel, place, endpoint)
        self._slots: npt.NDArray[np.void] = np.ndarray(
            (endpoint.slots,),
            self.dtype,
            buffer=place.memory.bytes,
            offset=place.offset + endpoint.slots_offset,
            strides=(endpoint.slot_bytes,),
        )
        self._slots.flags.writeable = self._writes

    @property
    def number(self) -> int:
        """Of the newest message, or of the last one seen or taken; from 1, in 32 bits."""
        return self._endpoint.number

    def _lent(self, slot: int) -> npt.NDArray[np.void]:
        return self._slots[slot, ...]

    def _at(self, slot: int) -> np.void:
        return self._slots[slot]  # type: ignore[no-any-return]


class _LatestSide(_SlottedSide[_core.LatestEndpoint]):
    _kind = "latest"

    @classmethod
    def _opened(cls, channel: DescribedChannel, place: Place) -> _core.LatestEndpoint:
        return _core.LatestEndpoint(
            place.memory,
            place.offset,
            place.name,
            type_of(channel.payload),
            channel.readers,
            cls._writes,
            place.reader,
        )


class LatestWriter(_LatestSide):
    """Writes state of which the newest counts; waits for nobody."""

    _writes = True

    def update(self, value: Message) -> None:
        """Make this the newest value."""
        self._put(value)
        self._endpoint.update()

    def loan(self) -> npt.NDArray[np.void]:
        """Return where the next value is to be made, in shared memory; nobody sees it yet."""
        return self._lent(self._endpoint.loan())

    def publish(self) -> None:
        """Make what was lent last the newest value; once for each loan."""
        self._endpoint.publish()


class LatestReader(_LatestSide):
    """Reads the newest value; waits for nobody."""

    def poll(self) -> np.void | None:
        """Return the newest value if this reader has not seen it."""
        return self._got() if self._endpoint.poll() == _UPDATED else None

    def view(self) -> np.void | None:
        """Return the newest value where it stands, to be read until this reader's next call."""
        slot = self._endpoint.view()
        return None if slot < 0 else self._at(slot)

    def check_writer(self) -> Result:
        """Return `OK`, `PEER_RESTARTED` (once), `PEER_GONE` or `LAYOUT_CHANGED`."""
        return Result(self._endpoint.check_writer())


class _RingSide(_SlottedSide[_core.RingEndpoint]):
    _kind = "ring"

    @classmethod
    def _opened(cls, channel: DescribedChannel, place: Place) -> _core.RingEndpoint:
        shape = (type_of(channel.payload), channel.slots, channel.readers)
        return _core.RingEndpoint(
            place.memory, place.offset, place.name, *shape, cls._writes, place.reader
        )


class RingWriter(_RingSide):
    """Writes a stream, of which lossless readers get every message."""

    _writes = True

    def write(self, message: Message, timeout_s: float | None = None) -> None:
        """Write as soon as every lossless reader has a slot free.

        Raises:
            ChannelError: Nothing was written; `late_reader` tells for whom it waited.
        """
        self._put(message)
        check(self._endpoint.write(ns_of(timeout_s)))

    def try_write(self, message: Message) -> bool:
        """Write if every lossless reader has a slot free."""
        self._put(message)
        return is_done(self._endpoint.try_write(), Result.FULL)

    def try_write_some(self, messages: Iterable[Message] | npt.NDArray[np.void]) -> int:
        """Write as many of these as there are slots free, all at once; return how many."""
        array = np.ascontiguousarray(messages, self.dtype)
        if array.size == 0:
            return 0
        result, count = self._endpoint.try_write_some(array.reshape(-1).view(np.uint8))
        return count if is_done(result, Result.FULL) else 0

    def loan(self, timeout_s: float | None = None) -> npt.NDArray[np.void]:
        """Return where the next message is to be made, in shared memory; nobody sees it yet.

        Raises:
            ChannelError: No slot is free.
        """
        result, slot = self._endpoint.loan(ns_of(timeout_s))
        check(result)
        return self._lent(slot)

    def try_loan(self) -> npt.NDArray[np.void] | None:
        """The same if a slot is free."""
        slot = self._endpoint.try_loan()
        return None if slot < 0 else self._lent(slot)

    def publish(self) -> None:
        """Make what was lent last the newest message; once for each loan."""
        self._endpoint.publish()

    def late_reader(self) -> int | None:
        """Return which lossless reader has no slot free."""
        reader = self._endpoint.late_reader()
        return None if reader >= self.channel.readers else reader

    def leave_behind(self, reader: int) -> None:
        """Wait for this reader no more, until it attaches anew."""
        self._endpoint.leave_behind(reader)


class RingReader(_RingSide):
    """A lossless reader of a stream."""

    def read(self, timeout_s: float | None = None) -> np.void:
        """Read the next message as soon as it is there.

        Raises:
            ChannelError: Nothing was read.
        """
        check(self._endpoint.read(ns_of(timeout_s)))
        return self._got()

    def try_read(self) -> np.void | None:
        """Read the next message if it is there."""
        return self._got() if is_done(self._endpoint.try_read(), Result.EMPTY) else None

    def try_read_some(self, most: int) -> npt.NDArray[np.void]:
        """Read as many messages as are there, at most so many."""
        array = np.empty(most, self.dtype)
        if most == 0:
            return array
        result, count = self._endpoint.try_read_some(array.view(np.uint8))
        return array[: count if is_done(result, Result.EMPTY) else 0]

    def take(self, timeout_s: float | None = None) -> np.void:
        """Return the next message where it stands, to be read until `release`.

        Raises:
            ChannelError: There is none.
        """
        result, slot = self._endpoint.take(ns_of(timeout_s))
        check(result)
        return self._at(slot)

    def try_take(self) -> np.void | None:
        """The same if it is there."""
        result, slot = self._endpoint.try_take()
        return self._at(slot) if is_done(result, Result.EMPTY) else None

    def release(self) -> None:
        """Give the slot taken last back.

        Raises:
            ChannelError: `BUSY`: what was read may be torn, since the writer has left this reader
                behind; `EMPTY`: none was taken.
        """
        check(self._endpoint.release())
