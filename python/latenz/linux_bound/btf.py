"""Where the members of a kernel's structures lie, as the kernel's own type information (BTF) tells.

Kernels built with CONFIG_DEBUG_INFO_BTF carry it in their image, where nothing points to it: it is
found by its header. The format is described in the kernel's documentation, bpf/btf.
"""

import struct
from pathlib import Path

from latenz.errors import BadInput

_MAGIC = b"\x9f\xeb\x01\x00\x18\x00\x00\x00"
"""Magic number, version 1, no flags, a header of 24 bytes; little-endian."""
_LARGEST_IMAGE = 256 << 20
_STRUCT, _UNION = 4, 5
# bytes after the common 12 of each kind, by kind: fixed, and for each of `vlen`
_EXTRA = {
    1: (4, 0),  # int
    2: (0, 0),  # pointer
    3: (12, 0),  # array
    4: (0, 12),  # struct
    5: (0, 12),  # union
    6: (0, 8),  # enum
    7: (0, 0),  # forward declaration
    8: (0, 0),  # typedef
    9: (0, 0),  # volatile
    10: (0, 0),  # const
    11: (0, 0),  # restrict
    12: (0, 0),  # function
    13: (0, 8),  # its prototype
    14: (4, 0),  # variable
    15: (0, 12),  # section
    16: (0, 0),  # float
    17: (4, 0),  # declaration tag
    18: (0, 0),  # type tag
    19: (0, 12),  # enum of 64 bits
}


class TypeInformation:
    """The structures of a kernel.

    Args:
        image: A raw, unpacked image of the kernel.

    Raises:
        BadInput: It cannot be read, or carries no type information.
    """

    def __init__(self, image: Path) -> None:
        self._path = image
        try:
            with image.open("rb") as file:
                content = file.read(_LARGEST_IMAGE)
        except OSError as error:
            raise BadInput(f"cannot be read ({error.strerror})", str(image)) from None
        at = content.find(_MAGIC)
        while at >= 0:
            try:
                self._read(content, at)
            except (struct.error, KeyError, IndexError):
                at = content.find(_MAGIC, at + 1)
            else:
                return
        raise BadInput(
            "carries no type information",
            str(image),
            "take a kernel that was built with CONFIG_DEBUG_INFO_BTF",
        )

    def offset(self, structure: str, *members: str) -> int:
        """Return where a member lies in a structure, in bytes; members of members follow.

        Members of nameless structures and unions count as the outer one's own.

        Raises:
            BadInput: There is none.
        """
        number = self._structures.get(structure)
        total = 0
        for member in members:
            found = None if number is None else self._member(number, member)
            if found is None:
                raise BadInput(
                    f"struct {structure} has no {'.'.join(members)}",
                    str(self._path),
                    "this kernel is not known",
                )
            number, bits = found
            total += bits
        if total % 8:
            raise BadInput(f"{structure}.{members[-1]} is not a whole byte", str(self._path))
        return total // 8

    def _member(self, number: int, name: str) -> tuple[int, int] | None:
        """Return a member's type and its place in bits."""
        number = self._plain(number)
        kind, members, _ = self._types.get(number, (0, [], 0))
        if kind not in (_STRUCT, _UNION):
            return None
        for own, of_type, bits in members:
            if own == name:
                return of_type, bits
            if not own and (inner := self._member(of_type, name)):
                return inner[0], bits + inner[1]
        return None

    def _plain(self, number: int) -> int:
        """Return what a typedef, or const, stands for."""
        for _ in range(16):
            kind, _, refers = self._types.get(number, (0, [], 0))
            if kind not in (8, 9, 10, 11, 18):
                break
            number = refers
        return number

    def _read(self, content: bytes, at: int) -> None:
        types_at, types_size, names_at, names_size = struct.unpack_from("<4I", content, at + 8)
        begin = at + 24
        if types_size < 1000 or begin + max(types_at + types_size, names_at + names_size) > len(
            content
        ):
            raise IndexError
        names = content[begin + names_at : begin + names_at + names_size]
        self._types: dict[int, tuple[int, list[tuple[str, int, int]], int]] = {}
        self._structures: dict[str, int] = {}
        place, end, number = begin + types_at, begin + types_at + types_size, 1
        while place < end:
            name_at, info, refers = struct.unpack_from("<3I", content, place)
            kind, count, flagged = (info >> 24) & 0x1F, info & 0xFFFF, info >> 31
            fixed, each = _EXTRA[kind]
            members = []
            if kind in (_STRUCT, _UNION):
                for index in range(count):
                    own, of_type, bits = struct.unpack_from("<3I", content, place + 12 + 12 * index)
                    members.append(
                        (_text(names, own), of_type, bits & 0xFFFFFF if flagged else bits)
                    )
                self._structures.setdefault(_text(names, name_at), number)
            if members or kind in (8, 9, 10, 11, 18):
                self._types[number] = (kind, members, refers)
            place += 12 + fixed + each * count
            number += 1


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(0, at)].decode("ascii", "replace")
