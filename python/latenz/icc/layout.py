"""Channels in memory: docs/icc-abi.md, for one who trusts no number that he finds there."""

import struct
from dataclasses import dataclass
from enum import IntEnum

from latenz.icc.region import Region

LINE = 64
MAGIC = 0x4343494C
ABI_VERSION = 3
MOST_FIELDS = 256
MOST_READERS = 32
LARGEST_PAYLOAD = 65536
MOST_SLOTS = 1 << 20
MOST_POOL_BLOCKS = 1 << 16
LONGEST_POOL_MESSAGE = 1 << 30
_IDENTITY = struct.Struct("<8I2I2I2Q32s32x")
_FIELD = struct.Struct("<IHBxII16s")
_PAIR = 2 * LINE
_SIDE_BYTES = _PAIR
_CHUNK = 1 << 20


class Kind(IntEnum):
    """What a channel is."""

    MAILBOX = 1
    EXCHANGE = 2
    LATEST = 3
    RING = 4
    POOL = 5


class FieldKind(IntEnum):
    """What a field's bytes mean."""

    UNSIGNED = 1
    SIGNED = 2
    FLOAT = 3
    BYTES = 4


_SIZES = {
    FieldKind.UNSIGNED: (1, 2, 4, 8),
    FieldKind.SIGNED: (1, 2, 4, 8),
    FieldKind.FLOAT: (4, 8),
    FieldKind.BYTES: (1,),
}
_TYPE_NAMES = {
    FieldKind.UNSIGNED: "uint",
    FieldKind.SIGNED: "int",
    FieldKind.FLOAT: "float",
    FieldKind.BYTES: "byte",
}


@dataclass(frozen=True)
class Field:
    """One field of a payload, an array if `count` is above 1; offsets and strides in bytes."""

    name: str
    kind: FieldKind
    size: int
    offset: int
    count: int
    stride: int

    @property
    def type_name(self) -> str:
        """As in "float32" or "uint8[4]"."""
        bits = "" if self.kind == FieldKind.BYTES else str(8 * self.size)
        name = _TYPE_NAMES[self.kind] + bits
        return name if self.count == 1 else f"{name}[{self.count}]"


@dataclass(frozen=True)
class Channel:
    """A channel whose numbers all fit together and into its region."""

    offset: int
    """Of its first byte in the region."""
    size: int
    name: str
    kind: Kind
    generation: int
    """Differs after each formatting."""
    readers: int
    slots: int
    payload_bytes: tuple[int, ...]
    """Of the payload, or of request and reply."""
    fingerprints: tuple[int, ...]
    fields: tuple[tuple[Field, ...], ...]
    longest: int = 0
    """Bytes of the longest message of a Pool."""

    @property
    def roles(self) -> tuple[str, ...]:
        """What its sides are called, in their order."""
        if self.kind == Kind.EXCHANGE:
            return ("client", "server")
        if self.kind in (Kind.MAILBOX, Kind.POOL):
            return ("writer", "reader")
        return ("writer", *(f"reader {index}" for index in range(self.readers)))

    @property
    def sides_offset(self) -> int:
        """Of the sides' part in the channel."""
        return _sides_offset(sum(len(fields) for fields in self.fields))

    @property
    def data_offset(self) -> int:
        """Of what is behind the sides in the channel."""
        return self.sides_offset + len(self.roles) * _SIDE_BYTES

    @property
    def latest_slots_offset(self) -> int:
        """Of a Latest's slots in its data."""
        return whole_lines(8 + 4 * (self.readers + 1)) + LINE * self.readers

    @property
    def ring_taken_offset(self) -> int:
        """Of what a Ring's lossless readers have taken, in its data."""
        return LINE + whole_lines(4 * self.readers)

    @property
    def ring_begun_offset(self) -> int:
        """Of the number of the newest message that a Ring's writer has begun to write."""
        return _whole_pairs(self.ring_taken_offset + LINE * self.readers)

    @property
    def ring_slots_offset(self) -> int:
        """Of a Ring's slots in its data."""
        return self.ring_begun_offset + _PAIR

    @property
    def slot_bytes(self) -> int:
        """From one slot to the next, or the one slot's."""
        largest = max(self.payload_bytes)
        if self.kind == Kind.MAILBOX:
            return whole_lines(largest + 8)
        if self.kind == Kind.EXCHANGE:
            return whole_lines(largest + 4)
        words = (largest + 3) // 4
        return whole_lines(4 * words + 4) if self.kind == Kind.LATEST else 4 * words

    @property
    def pool_classes(self) -> tuple[tuple[int, int], ...]:
        """Bytes and number of a Pool's blocks of each size, the smallest first."""
        sizes = [whole_lines(self.longest)]
        while sizes[0] > LINE:
            sizes.insert(0, whole_lines(sizes[0] // 4))
        counts = [self.slots]
        while len(counts) < len(sizes):
            counts.append(max(counts[-1] // 4, 2))
        return tuple(zip(sizes, counts, strict=True))

    @property
    def pool_entries(self) -> int:
        """Messages of a Pool that may be on their way: a power of two, more than its blocks."""
        return 1 << sum(count for _, count in self.pool_classes).bit_length()

    @property
    def pool_table_offset(self) -> int:
        """Of a Pool's messages on their way, in its data."""
        return LINE + whole_lines(4 * sum(count for _, count in self.pool_classes))

    @property
    def pool_taken_offset(self) -> int:
        """Of the number of the last message that a Pool's reader has taken, in its data."""
        entries = self.data_offset + self.pool_table_offset + whole_lines(16 * self.pool_entries)
        return _whole_pairs(entries) - self.data_offset

    @property
    def pool_blocks_offset(self) -> int:
        """Of a Pool's first block in its data."""
        states = self.data_offset + self.pool_taken_offset + self.pool_table_offset
        return _whole_pairs(states) - self.data_offset

    def expected_size(self) -> int:
        """Return the bytes that such a channel takes."""
        if self.kind == Kind.LATEST:
            data = self.latest_slots_offset + self.slots * self.slot_bytes
        elif self.kind == Kind.RING:
            data = self.ring_slots_offset + whole_lines(self.slots * self.slot_bytes)
        elif self.kind == Kind.POOL:
            blocks = sum(size * count for size, count in self.pool_classes)
            data = self.pool_blocks_offset + blocks
        else:
            data = self.slot_bytes
        return self.data_offset + data


@dataclass(frozen=True)
class Unreadable:
    """What has a channel's first word and is none that we can read."""

    offset: int
    reason: str


@dataclass(frozen=True)
class Found:
    """What there is in a region."""

    channels: tuple[Channel, ...]
    unreadable: tuple[Unreadable, ...]


def whole_lines(size: int) -> int:
    """Return a size rounded up to whole lines."""
    return (size + LINE - 1) // LINE * LINE


def find_channels(region: Region) -> Found:
    """Look for channels at each line of a region."""
    channels: list[Channel] = []
    unreadable: list[Unreadable] = []
    end = 0
    for offset in _marked_lines(region):
        if offset < end:  # inside the last channel: a payload may hold anything
            continue
        try:
            channel = read_channel(region, offset)
        except ValueError as reason:
            unreadable.append(Unreadable(offset, str(reason)))
        else:
            channels.append(channel)
            end = offset + channel.size
    return Found(tuple(channels), tuple(unreadable))


def _marked_lines(region: Region) -> list[int]:
    mark = MAGIC.to_bytes(4, "little")
    marked = []
    for begin in range(0, region.size, _CHUNK):
        chunk = region.read(begin, min(_CHUNK, region.size - begin))
        at = chunk.find(mark)
        while at >= 0:
            if at % LINE == 0:
                marked.append(begin + at)
            at = chunk.find(mark, at + 1)
    return marked


def read_channel(region: Region, offset: int) -> Channel:
    """Return the channel whose identity is at an offset.

    Raises:
        ValueError: Its numbers do not fit together, or not into the region.
    """
    room = region.size - offset
    _require(room >= _IDENTITY.size, "its header does not fit into the region")
    content = _IDENTITY.unpack(region.read(offset, _IDENTITY.size))
    magic, abi, kind_number, generation, size, line, readers, slots = content[:8]
    payloads, counts, fingerprints, name = (
        content[8:10],
        content[10:12],
        content[12:14],
        content[14],
    )
    _require(magic == MAGIC, "it is being formatted")
    _require(abi == ABI_VERSION, f"its ABI version is {abi}; this Latenz reads {ABI_VERSION}")
    _require(line == LINE, f"its lines have {line} bytes instead of {LINE}")
    _require(kind_number in tuple(Kind), f"there is no kind of channel {kind_number}")
    kind = Kind(kind_number)
    _check_shape(kind, readers, slots)
    used = 2 if kind == Kind.EXCHANGE else 1
    _require(all(0 < each <= LARGEST_PAYLOAD for each in payloads[:used]), "a payload's size")
    _require(all(0 < each <= MOST_FIELDS for each in counts[:used]), "a number of fields")
    longest = payloads[1] if kind == Kind.POOL else 0
    if kind == Kind.POOL:
        right = 0 < longest <= LONGEST_POOL_MESSAGE and longest % payloads[0] == 0
        _require(right, "the length of its messages")
    else:
        _require(not any(payloads[used:]), "it has one payload too many")
    _require(not any(counts[used:]), "it has one payload too many")
    _require(_sides_offset(sum(counts)) <= room, "its fields do not fit into the region")
    table = region.read(offset + _IDENTITY.size, sum(counts) * _FIELD.size)
    rows = [_field(row) for row in _FIELD.iter_unpack(table)]
    channel = Channel(
        offset=offset,
        size=size,
        name=printable(name),
        kind=kind,
        generation=generation,
        readers=readers,
        slots=slots,
        payload_bytes=payloads[:used],
        fingerprints=fingerprints[:used],
        fields=(tuple(rows[: counts[0]]), tuple(rows[counts[0] :]))[:used],
        longest=longest,
    )
    _require(size == channel.expected_size(), f"it says {size} bytes and needs others")
    _require(size <= room, f"of its {size} bytes the region has {room}")
    for fields, payload in zip(channel.fields, channel.payload_bytes, strict=True):
        for field in fields:
            end = field.offset + (field.count - 1) * field.stride + field.size
            _require(end <= payload, f"field '{field.name}' ends behind its payload")
    return channel


def pack_field(field: Field) -> bytes:
    """Return a field as it is stored in a channel's header, where names are cut off."""
    name = field.name.encode()[:15]
    return _FIELD.pack(field.offset, field.size, field.kind, field.count, field.stride, name)


def _sides_offset(fields: int) -> int:
    return _whole_pairs(_IDENTITY.size + fields * _FIELD.size)


def _whole_pairs(size: int) -> int:
    return -(-size // _PAIR) * _PAIR


def _check_shape(kind: Kind, readers: int, slots: int) -> None:
    if kind in (Kind.MAILBOX, Kind.EXCHANGE):
        right = readers == 1 and slots == 1
    elif kind == Kind.LATEST:
        right = 1 <= readers <= MOST_READERS and slots == 2 * (readers + 1)
    elif kind == Kind.POOL:
        right = readers == 1 and 2 <= slots <= MOST_POOL_BLOCKS
    else:
        right = readers <= MOST_READERS and 2 <= slots <= MOST_SLOTS and slots & (slots - 1) == 0
    _require(right, f"a {kind.name.lower()} has not {readers} readers and {slots} slots")


def _field(row: tuple[int, int, int, int, int, bytes]) -> Field:
    offset, size, kind, count, stride, name = row
    _require(kind in tuple(FieldKind), f"there is no kind of field {kind}")
    right = size in _SIZES[FieldKind(kind)] and 1 <= count <= LARGEST_PAYLOAD and stride >= size
    _require(right, f"field '{printable(name)}' has {count} elements of {size} bytes")
    return Field(printable(name), FieldKind(kind), size, offset, count, stride)


def printable(text: bytes) -> str:
    """Return text that ends at a zero byte, harmless to a terminal."""
    whole = text.split(b"\0", 1)[0].decode("utf-8", errors="replace")
    return "".join(each if each.isprintable() else "?" for each in whole)


def _require(right: bool, otherwise: str) -> None:
    if not right:
        raise ValueError(otherwise)
