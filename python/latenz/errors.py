"""What the user is told when something is wrong: what, where, and what would be right."""

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from latenz.terminal import printable_line

if TYPE_CHECKING:
    from pydantic import ValidationError

EXIT_GATE_VIOLATED = 1
EXIT_BAD_INPUT = 2
EXIT_NOT_SHOWN = 3
EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141  # as of a program that SIGPIPE ends
_MOST_NAMES = 50
_MOST_CHARACTERS = 400  # of each part of a message: names in files may be of any length
_called: dict[str, str] = {}


class BadInput(Exception):  # noqa: N818 - a mistake in what the user gave us, not in the program
    """Input or usage that Latenz cannot work with; the command line exits with code 2.

    Args:
        what: What is wrong, in a few words.
        where: The file, field or option that holds it, with a line number where known.
        remedy: What would be right.
    """

    def __init__(self, what: str, where: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        what, remedy = _line(self.what), _line(self.remedy)
        where = printable_line(as_called(self.where))
        line = f"{where}: {what}" if where else what
        return f"{line}; {remedy}" if remedy else line


class OutOfReach(BadInput):
    """A target does not answer any longer: what was asked of it last may be done or not."""


def _line(text: str) -> str:
    """Return a part of a message on one line, its middle left out where that would be too long."""
    line = printable_line(as_called(text))
    if len(line) <= _MOST_CHARACTERS:
        return line
    half = _MOST_CHARACTERS // 2
    return f"{line[:half]} ... {line[-half:]}"


def call(path: str, name: str) -> None:
    """Let messages show a path that we write by as what the user calls it."""
    _called[path] = name


def as_called(text: str, spelled: Callable[[str], str] = str) -> str:
    """Return a text with the paths that the user calls something else shown so.

    Args:
        text: A message, or something else with paths in it.
        spelled: How a path is written there.
    """
    for path, name in _called.items():
        text = spelled(name).join(re.split(rf"{re.escape(path)}(?!\d)", text))
    return text


def shown(value: object, most: int = 60) -> str:
    """Return a value from a file for an error message: on one line, printable, and not too long."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = "a number of thousands of digits"
    return text if len(text) <= most else text[:most] + "..."


def first_mistake(error: "ValidationError") -> str:
    """Return where foreign data first breaks the data model, and how, for a message."""
    first = error.errors()[0]
    place = ".".join(str(part)[:40] for part in first["loc"][:4]) or "the file"
    return f"is wrong at {place}: {first['msg']}"


def closest(name: str, known: Iterable[str]) -> str:
    """Return advice on a name that is not known: the nearest one, or all there are."""
    names = list(known)
    if near := closest_name(name, names):
        return f"did you mean {near!r}?"
    return "choose one of: " + ", ".join(
        [*names[:_MOST_NAMES], *(["..."] if names[_MOST_NAMES:] else [])]
    )


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that another one is most like; None if none is like it."""
    import difflib

    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)
