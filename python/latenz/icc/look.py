"""One look at a channel: its sides, its counts, and the newest payload."""

import struct
import time
from dataclasses import dataclass

from latenz.icc.layout import LINE, Channel, Field, FieldKind, Kind, printable
from latenz.icc.region import Region

_COUNT_24 = (1 << 24) - 1
_TRIES = 8
_FORMATS = {
    (FieldKind.UNSIGNED, 1): "B",
    (FieldKind.UNSIGNED, 2): "H",
    (FieldKind.UNSIGNED, 4): "I",
    (FieldKind.UNSIGNED, 8): "Q",
    (FieldKind.SIGNED, 1): "b",
    (FieldKind.SIGNED, 2): "h",
    (FieldKind.SIGNED, 4): "i",
    (FieldKind.SIGNED, 8): "q",
    (FieldKind.FLOAT, 4): "f",
    (FieldKind.FLOAT, 8): "d",
}


@dataclass(frozen=True)
class SideLook:
    """What one side shows of itself; `signs` is all that changes while it does something."""

    epoch: int
    open: bool
    dropped: int
    beats: int
    signs: tuple[int, ...]


@dataclass(frozen=True)
class Look:
    """A channel at one moment."""

    time_ns: int
    messages: int
    """Messages, calls or updates so far, modulo `wrap`."""
    wrap: int
    sides: tuple[SideLook, ...]


@dataclass(frozen=True)
class Value:
    """A payload that was in memory."""

    payload: int
    """0: the payload or request, 1: the reply."""
    number: int
    """Of the message, call or update."""
    fields: dict[str, "Content"]
    is_whole: bool
    """Whether two looks agreed; if not, it may be of two messages."""


Content = int | float | str | list[int] | list[float]


def look(region: Region, channel: Channel) -> Look:
    """Return what a channel shows now.

    Raises:
        BadInput: The memory is not there any more.
    """
    begin = channel.offset + channel.sides_offset
    content = region.read(begin, channel.data_offset - channel.sides_offset)
    words = struct.unpack(f"<{len(content) // 4}I", content)
    progress = _progress(region, channel)
    side_words = 2 * LINE // 4
    sides = []
    for side, signs in enumerate(progress[1]):
        epoch, is_open, dropped = words[side * side_words : side * side_words + 3]
        beats = words[side * side_words + LINE // 4]
        sides.append(
            SideLook(epoch, is_open != 0, dropped, beats, (epoch, is_open, dropped, beats, *signs))
        )
    return Look(time.monotonic_ns(), progress[0], _wrap(channel), tuple(sides))


def _wrap(channel: Channel) -> int:
    return {Kind.MAILBOX: 1 << 24, Kind.EXCHANGE: 1 << 23}.get(channel.kind, 1 << 32)


def _word(region: Region, channel: Channel, offset: int) -> int:
    """A control word in a channel's data."""
    content = region.read(channel.offset + channel.data_offset + offset, 4)
    return int.from_bytes(content, "little")


def _progress(region: Region, channel: Channel) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """Messages so far, and each side's own words among the data."""
    if channel.kind == Kind.MAILBOX:
        written = _word(region, channel, channel.slot_bytes - 4)
        taken = _word(region, channel, channel.slot_bytes - 8)
        return written & _COUNT_24, ((written,), (taken,))
    if channel.kind == Kind.EXCHANGE:
        count = _word(region, channel, channel.slot_bytes - 4) & _COUNT_24
        return count // 2, (((count + 1) // 2,), (count // 2,))
    readers = range(channel.readers)
    if channel.kind == Kind.POOL:
        head, taken = (_word(region, channel, at) for at in (0, channel.pool_taken_offset))
        return head, ((head,), (taken,))
    if channel.kind == Kind.LATEST:
        first = channel.latest_slots_offset - LINE * channel.readers  # announcements
    else:
        first = channel.ring_taken_offset
    own = tuple((_word(region, channel, first + LINE * reader),) for reader in readers)
    newest_number = _word(region, channel, 0)
    return newest_number, ((newest_number,), *own)


def newest(region: Region, channel: Channel) -> Value | None:
    """Return the newest payload that is in memory; None if there has been none.

    An onlooker is not a reader: nobody waits for it. So it looks until two looks agree, a bounded
    number of times, and says whether they did.
    """
    before = _once(region, channel)
    for _ in range(_TRIES):
        now = _once(region, channel)
        if now == before:
            break
        before = now
    if now is None:
        return None
    payload, number, content, is_complete = now
    fields = _decode(channel.fields[payload], content)
    return Value(payload, number, fields, is_whole=now == before and is_complete)


def _once(region: Region, channel: Channel) -> tuple[int, int, bytes, bool] | None:
    """Return which payload, its number, its bytes, and whether its own word calls it complete."""
    if channel.kind == Kind.LATEST:
        return _newest_update(region, channel)
    if channel.kind == Kind.RING:
        return _newest_of_ring(region, channel)
    if channel.kind == Kind.POOL:
        return _newest_of_pool(region, channel)
    count = _word(region, channel, channel.slot_bytes - 4) & _COUNT_24
    if count == 0:
        return None
    payload = 0
    if channel.kind == Kind.EXCHANGE:
        payload, count = (0 if count % 2 else 1), (count + 1) // 2
    size = channel.payload_bytes[payload]
    return payload, count, _payload(region, channel, 0, size), True


def _newest_of_pool(region: Region, channel: Channel) -> tuple[int, int, bytes, bool] | None:
    """The first item of the newest message; none if it has no item, or its entry leads nowhere."""
    head = _word(region, channel, 0)
    entry = channel.pool_table_offset + head % channel.pool_entries * 16
    block, items = (_word(region, channel, entry + at) for at in (0, 4))
    size = channel.payload_bytes[0]
    if items == 0:
        return None
    offset = channel.pool_blocks_offset
    for block_bytes, count in channel.pool_classes:
        if block < count:
            content = _payload(region, channel, offset + block * block_bytes, size)
            return 0, head, content, _word(region, channel, 0) == head
        block -= count
        offset += block_bytes * count
    return None


def _newest_update(region: Region, channel: Channel) -> tuple[int, int, bytes, bool] | None:
    pair = _word(region, channel, 4)
    if not 0 < pair <= channel.readers + 1:
        return None
    which = _word(region, channel, 8 + 4 * (pair - 1)) & 1
    size = channel.payload_bytes[0]
    slot = channel.latest_slots_offset + (2 * (pair - 1) + which) * channel.slot_bytes
    number = _word(region, channel, slot + (size + 3) // 4 * 4)
    return 0, number, _payload(region, channel, slot, size), True


def _newest_of_ring(region: Region, channel: Channel) -> tuple[int, int, bytes, bool] | None:
    head = _word(region, channel, 0)
    if head == 0:
        return None
    size = channel.payload_bytes[0]
    slot = channel.ring_slots_offset + head % channel.slots * channel.slot_bytes
    content = _payload(region, channel, slot, size)
    begun = _word(region, channel, channel.ring_begun_offset)
    return 0, head, content, (begun - head) % (1 << 32) < channel.slots


def _payload(region: Region, channel: Channel, offset: int, size: int) -> bytes:
    begin = channel.offset + channel.data_offset + offset
    return region.read(begin, (size + 3) // 4 * 4)[:size]


def _decode(fields: tuple[Field, ...], content: bytes) -> dict[str, Content]:
    """Names are cut off in memory: those that are alike get their offset."""
    names = [field.name for field in fields]
    return {
        name if names.count(name) == 1 else f"{name}@{field.offset}": _content(field, content)
        for name, field in zip(names, fields, strict=True)
    }


def _content(field: Field, content: bytes) -> Content:
    places = range(field.offset, field.offset + field.count * field.stride, field.stride)
    if field.kind == FieldKind.BYTES:
        return printable(b"".join(content[at : at + 1] for at in places))
    form = "<" + _FORMATS[field.kind, field.size]
    values = [struct.unpack_from(form, content, at)[0] for at in places]
    return values[0] if field.count == 1 else values
