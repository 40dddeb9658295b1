"""Types and channels described once, in TOML, for every language: where each member lies."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from latenz.errors import BadInput, closest
from latenz.icc.layout import (
    LARGEST_PAYLOAD,
    LONGEST_POOL_MESSAGE,
    MOST_FIELDS,
    MOST_POOL_BLOCKS,
    MOST_READERS,
    MOST_SLOTS,
    Channel,
    FieldKind,
    Kind,
)
from latenz.icc.layout import Field as WireField
from latenz.toml_file import TomlFile, read_toml

MOST_MEMBERS = 32
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_NAME = r"([A-Za-z_][A-Za-z0-9_]*)"
_SPELLING = re.compile(
    rf"{_NAME}(?:<(?:{_NAME}, *)?([1-9][0-9]{{0,5}})>)?((?:\[[1-9][0-9]{{0,5}}\])*)"
)
_KEYWORDS = frozenset(
    """
    alignas alignof and asm auto bitand bitor bool break case catch char class compl concept
    const consteval constexpr constinit continue decltype default delete do double else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new
    noexcept not nullptr operator or private protected public register reinterpret_cast requires
    restrict return short signed sizeof static struct switch template this throw true try
    typedef typeid typename typeof union unsigned using virtual void volatile while xor latenz
    std
    """.split()  # noqa: SIM905 - a list of 80 strings is no easier to read
)
_FNV_START, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


@dataclass(frozen=True)
class Leaf:
    """A type that has no members, and what each language calls it."""

    kind: FieldKind
    size: int
    c: str
    cpp: str


LEAVES = {
    **{
        f"{sign}int{8 * size}": Leaf(
            kind, size, f"{sign}int{8 * size}_t", f"std::{sign}int{8 * size}_t"
        )
        for sign, kind in (("u", FieldKind.UNSIGNED), ("", FieldKind.SIGNED))
        for size in (1, 2, 4, 8)
    },
    "float32": Leaf(FieldKind.FLOAT, 4, "float", "float"),
    "float64": Leaf(FieldKind.FLOAT, 8, "double", "double"),
    "char": Leaf(FieldKind.BYTES, 1, "char", "char"),
    "byte": Leaf(FieldKind.BYTES, 1, "unsigned char", "std::byte"),
}


@dataclass(frozen=True)
class Member:
    """A member of a struct: an array of one dimension or more, or none."""

    name: str
    type: "Leaf | Struct | Fixed"
    dimensions: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes of the whole member."""
        size = self.type.size
        for count in self.dimensions:
            size *= count
        return size


@dataclass(frozen=True)
class Struct:
    """A struct, laid out as every compiler does: a leaf of n bytes at a multiple of n."""

    name: str
    members: tuple[Member, ...]

    @property
    def alignment(self) -> int:
        """That of its widest leaf."""
        return max(alignment_of(member.type) for member in self.members)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Of each member."""
        offsets, end = [], 0
        for member in self.members:
            end = _round_up(end, alignment_of(member.type))
            offsets.append(end)
            end += member.size
        return tuple(offsets)

    @property
    def size(self) -> int:
        """Bytes, with the padding at its end."""
        return _round_up(self.offsets[-1] + self.members[-1].size, self.alignment)


@dataclass(frozen=True)
class Fixed(Struct):
    """A list of varying length: a count and room for items; of `char` it is text."""

    @property
    def element(self) -> "Leaf | Struct | Fixed":
        """What it is a list of."""
        return self.members[1].type

    @property
    def capacity(self) -> int:
        """Items that there is room for."""
        return self.members[1].dimensions[0]


def _fixed(element: "Leaf | Struct | Fixed", capacity: int) -> Fixed:
    count, items = Member("count", LEAVES["uint32"], ()), Member("items", element, (capacity,))
    return Fixed("", (count, items))


def alignment_of(kind: Leaf | Struct) -> int:
    """Return what a type's offset is a multiple of."""
    return kind.size if isinstance(kind, Leaf) else kind.alignment


def _round_up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def fields_of(struct: Struct) -> tuple[WireField, ...]:
    """Return the fields of a payload as docs/icc-abi.md has them; names are whole."""
    return tuple(_leaves(struct, (), "", 0, 1, 0))


def _leaves(
    of: Leaf | Struct, dimensions: tuple[int, ...], name: str, offset: int, count: int, stride: int
) -> Iterator[WireField]:
    if dimensions:
        number, rest = dimensions[0], dimensions[1:]
        step = of.size
        for each in rest:
            step *= each
        if count == 1 or stride == number * step:
            yield from _leaves(of, rest, name, offset, count * number, step)
        else:  # two strides: one field for each element of the inner array
            for index in range(number):
                yield from _leaves(
                    of, rest, f"{name}[{index}]", offset + index * step, count, stride
                )
    elif isinstance(of, Struct):
        for member, at in zip(of.members, of.offsets, strict=True):
            inner = f"{name}.{member.name}" if name else member.name
            yield from _leaves(member.type, member.dimensions, inner, offset + at, count, stride)
    else:
        yield WireField(name, of.kind, of.size, offset, count, of.size if count == 1 else stride)


def fingerprint_of(struct: Struct) -> int:
    """Return the hash of a payload's fields as docs/icc-abi.md has it."""
    data = b""
    for field in fields_of(struct):
        data += int(field.kind).to_bytes(1) + field.size.to_bytes(2, "little")
        for number in (field.offset, field.count, field.stride):
            data += number.to_bytes(4, "little")
        data += field.name.encode() + b"\0"
    data += struct.size.to_bytes(4, "little") + struct.alignment.to_bytes(4, "little")
    value = _FNV_START
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME % 2**64
    return value


class _Channel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["mailbox", "exchange", "latest", "ring", "pool"]
    payload: str | None = None
    request: str | None = None
    reply: str | None = None
    readers: int = Field(default=1, ge=0, le=MOST_READERS)
    slots: int | None = Field(default=None, ge=2, le=MOST_SLOTS)
    longest: int | None = Field(default=None, ge=1, le=LONGEST_POOL_MESSAGE)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    types: dict[str, dict[str, str]]
    channels: dict[str, _Channel]


@dataclass(frozen=True)
class DescribedChannel:
    """A channel; `reply` is an exchange's, `slots` a ring's or pool's, `longest` a pool's."""

    name: str
    kind: str
    payload: Struct
    reply: Struct | None
    readers: int
    slots: int
    longest: int = 0
    """Payloads of the longest message."""

    @property
    def size(self) -> int:
        """Bytes of shared memory that it takes (docs/icc-abi.md)."""
        payloads = [self.payload, *([self.reply] if self.reply is not None else [])]
        return Channel(
            offset=0,
            size=0,
            name=self.name,
            kind=Kind[self.kind.upper()],
            generation=0,
            readers=self.readers,
            slots=2 * (self.readers + 1) if self.kind == "latest" else self.slots,
            payload_bytes=tuple(each.size for each in payloads),
            fingerprints=(),
            fields=tuple(fields_of(each) for each in payloads),
            longest=self.longest * self.payload.size,
        ).expected_size()


@dataclass(frozen=True)
class Description:
    """What a file describes, in its order."""

    name: str
    structs: tuple[Struct, ...]
    channels: tuple[DescribedChannel, ...]


def read_description(path: Path) -> Description:
    """Read a description of types and channels.

    Raises:
        BadInput: It cannot be read, or describes what no channel can carry.
    """
    file = read_toml(path, _File, "a description of channels")
    if not _IDENTIFIER.fullmatch(path.stem) or path.stem in _KEYWORDS:
        raise BadInput(
            f"'{path.stem}' is not a name of a namespace",
            str(path),
            "name the file by a letter, letters, digits and _, as in robot.toml",
        )
    structs: dict[str, Struct] = {}
    for name, members in file.content.types.items():
        structs[name] = _struct(file, name, members, structs)
    channels = tuple(
        _channel(file, name, channel, structs) for name, channel in file.content.channels.items()
    )
    if not channels:
        raise BadInput("there is no channel", file.where(("channels",)), "add [channels.NAME]")
    return Description(path.stem, tuple(structs.values()), channels)


def _check_name(file: TomlFile[_File], place: tuple[str, ...], taken: set[str]) -> None:
    name = place[-1]
    if not _IDENTIFIER.fullmatch(name) or "__" in name or name in _KEYWORDS:
        what, remedy = (
            f"'{name}' is not a name in C and C++",
            "a letter, then letters, digits and _",
        )
    elif name in LEAVES or (place[0] == "types" and place[1:] in (("string",), ("vector",))):
        what, remedy = f"'{name}' is a type already", "choose another name"
    elif name in taken:
        what, remedy = f"'{name}' is a type and a channel", "choose another name for one of them"
    else:
        return
    raise BadInput(what, file.where(place), remedy)


def _struct(
    file: TomlFile[_File], name: str, members: dict[str, str], known: dict[str, Struct]
) -> Struct:
    place = ("types", name)
    _check_name(file, place, set())
    if not 1 <= len(members) <= MOST_MEMBERS:
        raise BadInput(
            f"'{name}' has {len(members)} members",
            file.where(place),
            f"1 to {MOST_MEMBERS}; put some of them into a type of their own",
        )
    struct = Struct(
        name,
        tuple(_member(file, (*place, member), text, known) for member, text in members.items()),
    )
    if struct.size > LARGEST_PAYLOAD:
        raise BadInput(
            f"'{name}' has {struct.size} bytes", file.where(place), f"at most {LARGEST_PAYLOAD}"
        )
    if len(fields := fields_of(struct)) > MOST_FIELDS:
        raise BadInput(
            f"'{name}' has {len(fields)} fields",
            file.where(place),
            f"at most {MOST_FIELDS}; an array in an array of types counts once for each element",
        )
    return struct


def _member(
    file: TomlFile[_File], place: tuple[str, ...], text: str, known: dict[str, Struct]
) -> Member:
    _check_name(file, place, set())
    spelled = _SPELLING.fullmatch(text)
    example = "as in uint32, float64[6], vector<float32, 6>, string<16>, or a type above"
    if spelled is None:
        raise BadInput(f"'{text}' is not a type", file.where(place), example)
    base, element, capacity = spelled[1], spelled[2], spelled[3]
    arrays = tuple(int(each) for each in re.findall(r"\d+", spelled[4]))
    kind: Leaf | Struct
    if capacity is None:
        kind = _known(file, place, base, known, example)
    elif base == "vector" and element is not None:
        kind = _fixed(_known(file, place, element, known, example), int(capacity))
    elif base == "string" and element is None:
        kind = _fixed(LEAVES["char"], int(capacity))
    else:
        raise BadInput(f"'{text}' is not a type", file.where(place), example)
    size = kind.size
    for count in arrays:
        size *= count
    if size > LARGEST_PAYLOAD:
        raise BadInput(
            f"'{text}' has {size} bytes", file.where(place), f"at most {LARGEST_PAYLOAD}"
        )
    return Member(place[-1], kind, arrays)


def _known(
    file: TomlFile[_File], place: tuple[str, ...], name: str, known: dict[str, Struct], example: str
) -> Leaf | Struct:
    """Return the type of this name."""
    kind = LEAVES.get(name) or known.get(name)
    if kind is not None:
        return kind
    remedy = (
        {
            "bool": "use uint8: bytes other than 0 and 1 are undefined as bool",
            "float": "say float32",
            "double": "say float64",
            "int": "say int32",
            "long": "say int32 or int64: long differs between processors",
            "string": "say how long it may be: string<16>",
            "vector": "say of what and how many: vector<float32, 6>",
        }.get(name)
        or closest(name, [*LEAVES, *known])
        or example
    )
    raise BadInput(f"there is no type '{name}'", file.where(place), remedy)


def _channel(
    file: TomlFile[_File], name: str, channel: _Channel, structs: dict[str, Struct]
) -> DescribedChannel:
    place = ("channels", name)
    _check_name(file, place, set(structs))
    wanted = ("request", "reply") if channel.kind == "exchange" else ("payload",)
    for key in ("payload", "request", "reply"):
        given = getattr(channel, key)
        if (key in wanted) != (given is not None):
            what = f"has no {key}" if given is None else f"has no use for {key}"
            needs = " and ".join(wanted)
            raise BadInput(f"{channel.kind} '{name}' {what}", file.where(place), f"it has {needs}")
        if given is not None and given not in structs:
            raise BadInput(
                f"there is no type '{given}'",
                file.where((*place, key)),
                closest(given, list(structs)) or f"add [types.{given}]",
            )
    _check_shape(file, place, channel)
    if channel.kind == "pool":
        _check_pool(file, place, channel, structs[channel.payload or ""])
    return DescribedChannel(
        name=name,
        kind=channel.kind,
        payload=structs[channel.request or channel.payload or ""],
        reply=structs[channel.reply] if channel.reply is not None else None,
        readers=channel.readers,
        slots=channel.slots or 1,
        longest=channel.longest or 0,
    )


def _check_shape(file: TomlFile[_File], place: tuple[str, ...], channel: _Channel) -> None:
    is_ring, is_pool = channel.kind == "ring", channel.kind == "pool"
    if (is_ring or is_pool) != (channel.slots is not None):
        needs = is_ring or is_pool
        what = (
            f"a {channel.kind} needs slots" if needs else f"a {channel.kind} has no use for slots"
        )
        remedy = "a ring has a power of two of them, from 2"
        raise BadInput(what, file.where(place), "2 or more" if is_pool else remedy)
    if is_pool != (channel.longest is not None):
        what = "a pool needs longest" if is_pool else f"a {channel.kind} has no use for longest"
        raise BadInput(what, file.where(place), "payloads of a pool's longest message, from 1")
    if is_ring and channel.slots is not None and channel.slots & (channel.slots - 1):
        raise BadInput(
            f"{channel.slots} slots", file.where((*place, "slots")), "a power of two, from 2"
        )
    if channel.kind in ("mailbox", "exchange", "pool") and channel.readers != 1:
        raise BadInput(
            f"a {channel.kind} has one reader", file.where((*place, "readers")), "leave it out"
        )
    if channel.kind == "latest" and channel.readers == 0:
        raise BadInput("a latest has readers", file.where((*place, "readers")), "1 to 32")


def _check_pool(
    file: TomlFile[_File], place: tuple[str, ...], channel: _Channel, payload: Struct
) -> None:
    if (channel.slots or 0) > MOST_POOL_BLOCKS:
        raise BadInput(
            f"{channel.slots} slots", file.where((*place, "slots")), f"at most {MOST_POOL_BLOCKS}"
        )
    size = (channel.longest or 0) * payload.size
    if size > LONGEST_POOL_MESSAGE:
        raise BadInput(
            f"the longest message has {size} bytes",
            file.where((*place, "longest")),
            f"at most {LONGEST_POOL_MESSAGE}",
        )
