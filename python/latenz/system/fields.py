"""What the fields of a system are checked with."""

from functools import lru_cache
from operator import index
from typing import Any

from latenz.errors import BadInput, shown

LONGEST_NS = 2**63 - 1
"""The longest time, about 292 years."""
_LONGEST_NAME = 100


class BadField(BadInput):
    """A value that no system can have.

    Attributes:
        place: The attributes and indices that lead to it from the object that was being built.
    """

    def __init__(self, owner: object, place: tuple[str | int, ...], what: str, remedy: str) -> None:
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
        super().__init__(what, type(owner).__name__ + path, remedy)
        self.place = place


@lru_cache(maxsize=4096)
def fits_as_name(name: str) -> bool:
    """Tell whether this may be the name of something in a system."""
    letters = set(name) - set(" ._+-:#()")
    return 0 < len(name) <= _LONGEST_NAME and name == name.strip() and "".join(letters).isalnum()


def check_name(owner: object, attribute: str) -> None:
    """Tell why an attribute is not a name, if it is none."""
    name = getattr(owner, attribute)
    if not (isinstance(name, str) and fits_as_name(name)):
        raise BadField(
            owner,
            (attribute,),
            f"{shown(name)} is not a name",
            f"use letters, digits, blanks and any of ._+-:#() (at most {_LONGEST_NAME})",
        )


def check_whole(
    owner: object, attribute: str, least: int, most: int = LONGEST_NS, unit: str = " ns"
) -> None:
    """Make an attribute a plain integer of the range, or tell why it is none."""
    whole = whole_number(owner, (attribute,), getattr(owner, attribute), least, most, unit)
    object.__setattr__(owner, attribute, whole)


def whole_number(
    owner: object, place: tuple[str | int, ...], value: Any, least: int, most: int, unit: str
) -> int:
    """Return a value as a plain integer of the range, or tell why it is none."""
    try:
        whole = index(value)
    except TypeError:
        raise BadField(
            owner, place, f"{shown(value)} is not an integer", f"give {least}{unit} or more"
        ) from None
    if isinstance(value, bool):
        raise BadField(owner, place, f"{value} is not an integer", f"give {least}{unit} or more")
    if whole < least:
        raise BadField(owner, place, f"is {shown(whole)}{unit}", f"give {least}{unit} or more")
    if whole > most:
        raise BadField(owner, place, f"is {shown(whole)}{unit}", f"give at most {most}{unit}")
    return whole
