"""What the user is told when something is wrong: what, where, and what would be right."""

from collections.abc import Iterable

EXIT_GATE_VIOLATED = 1
EXIT_BAD_INPUT = 2
EXIT_NOT_SHOWN = 3
EXIT_INTERRUPTED = 130
_MOST_NAMES = 50


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
        line = f"{self.where}: {self.what}" if self.where else self.what
        line = f"{line}; {self.remedy}" if self.remedy else line
        return " ".join(line.split())


def shown(value: object, most: int = 60) -> str:
    """Return a value from a file for an error message: on one line, printable, and not too long."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = "a number of thousands of digits"
    return text if len(text) <= most else text[:most] + "..."


def closest(name: str, known: Iterable[str]) -> str:
    """Return advice on a name that is not known: the nearest one, or all there are."""
    import difflib

    names = list(known)
    if near := difflib.get_close_matches(name, names, n=1):
        return f"did you mean {near[0]!r}?"
    return "there is: " + ", ".join(
        [*names[:_MOST_NAMES], *(["..."] if names[_MOST_NAMES:] else [])]
    )
