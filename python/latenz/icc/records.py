"""Messages of described types as numpy records."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from latenz.icc.description import LEAVES, Leaf, Member, Struct
from latenz.icc.layout import FieldKind

_LETTERS = {FieldKind.UNSIGNED: "u", FieldKind.SIGNED: "i", FieldKind.FLOAT: "f"}


def dtype_of(struct: Struct) -> np.dtype[np.void]:
    """Return a type's layout. Text (`char`) is of bytes, which end at their first zero."""
    return np.dtype(
        {
            "names": [member.name for member in struct.members],
            "formats": [_format(member) for member in struct.members],
            "offsets": list(struct.offsets),
            "itemsize": struct.size,
        }
    )


def _format(member: Member) -> Any:
    kind, dimensions = member.type, member.dimensions
    if kind is LEAVES["char"]:
        return (f"S{dimensions[-1] if dimensions else 1}", dimensions[:-1])
    if isinstance(kind, Leaf):
        return (f"<{_LETTERS.get(kind.kind, 'u')}{kind.size}", dimensions)
    return (dtype_of(kind), dimensions)


def items(container: np.void) -> npt.NDArray[Any]:
    """Return the elements that are in a `vector`, or the bytes in a `string`, where they stand.

    None are there if the count is beyond the room: then memory or peer is broken.
    """
    room = _room(container)
    count = int(container["count"])
    return room[: count if count <= room.size else 0]


def text(container: np.void) -> str:
    """Return what a `string` holds; what is not UTF-8 in it is replaced."""
    return items(container).tobytes().decode(errors="replace")


def put(container: np.void, values: Iterable[Any] | str | bytes) -> None:
    """Put elements into a `vector`, or text into a `string`.

    Raises:
        ValueError: They do not fit; then nothing has changed.
    """
    room = _room(container)
    if isinstance(values, str):
        values = values.encode()
    if isinstance(values, bytes) and room.dtype == np.uint8:
        new: npt.NDArray[Any] = np.frombuffer(values, np.uint8)
    else:
        new = np.array(list(values), room.dtype)
    if new.ndim != 1 or new.size > room.size:
        raise ValueError(f"{new.size} elements into room for {room.size}")
    room[: new.size] = new
    container["count"] = new.size


def _room(container: np.void) -> npt.NDArray[Any]:
    """All that there is room for; text as bytes."""
    whole = np.asarray(container)["items"]
    if whole.dtype.kind != "S":
        return whole
    return whole.reshape(1).view(np.uint8)
