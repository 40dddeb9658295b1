"""What Python's ends of channels of all kinds have in common."""

import time
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from latenz import _core
from latenz.errors import BadInput
from latenz.icc.description import DescribedChannel, Struct, fields_of, fingerprint_of
from latenz.icc.layout import pack_field
from latenz.icc.records import dtype_of
from latenz.icc.region import Closing

Message = npt.ArrayLike | tuple[Any, ...] | np.void
"""What can be sent: a record of the channel's type, or a tuple of its members."""

_ATTACH_AGAIN_S = 0.001
_OTHER_MEMORY = ("uio:", "mem:")


class Result(IntEnum):
    """How a call ended."""

    OK = 0
    TIMEOUT = 1
    PEER_GONE = 2
    PEER_RESTARTED = 3
    EMPTY = 4
    FULL = 5
    BUSY = 6
    LAYOUT_CHANGED = 7


class ChannelError(Exception):
    """A call has delivered nothing.

    Attributes:
        result: Why: `TIMEOUT`; `PEER_GONE`, `PEER_RESTARTED`: call again; `BUSY`: the writer has
            left this reader behind, attach again; `LAYOUT_CHANGED`: attach again.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        super().__init__(_core.channel_result_name(int(result)))


def check(result: int) -> None:
    """Raise what a call has answered, unless it is done."""
    if result:
        raise ChannelError(Result(result))


def is_done(result: int, not_yet: Result) -> bool:
    """Return whether a call that does not wait is done; raise what it answers else."""
    if result == not_yet:
        return False
    check(result)
    return True


def ns_of(timeout_s: float | None) -> int:
    """Return a timeout as the binding takes it: below 0 without end."""
    if timeout_s is None:
        return -1
    if not 0 <= timeout_s <= 1e9:
        raise ValueError(f"a timeout of {timeout_s} s")
    return round(timeout_s * 1e9)


def type_of(struct: Struct) -> _core.ChannelType:
    """Return a payload as the C header knows it."""
    fields = b"".join(pack_field(field) for field in fields_of(struct))
    return _core.ChannelType(struct.size, fingerprint_of(struct), fields)


def _memory(text: str, size: int) -> _core.ChannelMemory:
    """Map the memory that a text names; named memory is made if it is not there.

    Raises:
        BadInput: There is no such memory, or too little of it.
    """
    if text.startswith(_OTHER_MEMORY):
        what = "memory of a device takes whole words only, which Python cannot promise"
        raise BadInput(what, text, "write that end in C or C++; docs/icc-linux.md")
    try:
        if text.startswith("shm:"):
            return _core.ChannelMemory.of_name(text.removeprefix("shm:"), size)
        return _core.ChannelMemory.of_file(text)
    except _core.ChannelProblem as problem:
        raise BadInput(str(problem), text, "shm:/NAME or a file") from None


@dataclass(frozen=True)
class Place:
    """Where an end is: memory, offset in it, which reader; and the name that a creator gives."""

    memory: _core.ChannelMemory
    offset: int
    reader: int
    name: str | None


E = TypeVar("E", bound="_core.ChannelEndpoint")


class Side(Closing, Generic[E]):
    """What all ends have: `create` formats memory, `attach` finds what the other has created."""

    _kind = ""
    _writes = False

    def __init__(self, channel: DescribedChannel, place: Place, endpoint: E) -> None:
        self.channel = channel
        self.dtype = dtype_of(channel.payload)
        """Of a message, or a request."""
        self._endpoint: E = endpoint
        self._place = place
        self._message: npt.NDArray[np.void] = np.ndarray((), self.dtype, buffer=endpoint.message)

    @classmethod
    def create(
        cls, channel: DescribedChannel, memory: str, *, offset: int = 0, reader: int = 0
    ) -> Self:
        """Create the channel, or go on with it if this side has restarted.

        Args:
            channel: One of `load_channels`.
            memory: `shm:/NAME`, which is made if it is not there, or the path of a file.
            offset: Where it begins there, in bytes: a multiple of 64.
            reader: Which reader, of a latest or a ring.

        Raises:
            BadInput: There is no such memory, or too little of it.
        """
        return cls._open(channel, memory, offset, reader, channel.name)

    @classmethod
    def attach(
        cls,
        channel: DescribedChannel,
        memory: str,
        *,
        timeout_s: float = 0,
        offset: int = 0,
        reader: int = 0,
    ) -> Self:
        """Attach to a channel that another side creates, for which it waits so long.

        Raises:
            BadInput: None is there, or it is another one; the message names the field.
        """
        end = time.monotonic() + timeout_s
        while True:
            try:
                return cls._open(channel, memory, offset, reader, None)
            except _core.ChannelNotReady as problem:
                if time.monotonic() >= end:
                    raise BadInput(str(problem), memory) from None
                time.sleep(_ATTACH_AGAIN_S)

    @classmethod
    def _open(
        cls, channel: DescribedChannel, name: str, offset: int, reader: int, created: str | None
    ) -> Self:
        if channel.kind != cls._kind:
            what = f"{cls.__name__} is of a {cls._kind}, and '{channel.name}' a {channel.kind}"
            raise BadInput(what)
        if offset < 0 or reader < 0:
            raise BadInput(f"offset {offset}, reader {reader}", name, "from 0 on")
        place = Place(_memory(name, offset + channel.size), offset, reader, created)
        try:
            endpoint = cls._opened(channel, place)
        except _core.ChannelNotReady:
            raise
        except _core.ChannelProblem as problem:
            raise BadInput(str(problem), name) from None
        return cls(channel, place, endpoint)

    @classmethod
    def _opened(cls, channel: DescribedChannel, place: Place) -> E:
        raise NotImplementedError

    def close(self) -> None:
        """Leave: the other side's calls answer `PEER_GONE` from now on."""
        self._endpoint.close()

    def beat(self) -> None:
        """Tell the other side that this one is alive; waiting calls do so by themselves."""
        self._endpoint.beat()

    @property
    def epoch(self) -> int:
        """Which incarnation of this side this is, from 1."""
        return self._endpoint.epoch

    @property
    def dropped(self) -> int:
        """Stale messages that this side has thrown away, over all its incarnations."""
        return self._endpoint.dropped

    def _put(self, message: Message) -> None:
        self._message[()] = message

    def _got(self) -> np.void:
        return self._message.copy()[()]  # type: ignore[return-value]

    def _placed(
        self, offset: int, dtype: np.dtype[np.void], *shape: int, writes: bool
    ) -> npt.NDArray[np.void]:
        """Return what stands at an offset in the channel, in shared memory."""
        place = self._place
        found: npt.NDArray[np.void] = np.ndarray(
            shape, dtype, buffer=place.memory.bytes, offset=place.offset + offset
        )
        found.flags.writeable = writes
        return found
