"""What reaches the terminal: text from files can neither steer it nor pretend to be ours.

Names, notes and messages may come from a stranger's file. A terminal obeys control characters in
them: they clear the screen, set its title, write "meets" over "violates". Here is the one place
that makes such characters visible. `guarded` puts it between the program and its standard
streams, so that nothing can forget it; styled output comes from `latenz.console`, which makes
its texts printable itself.
"""

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but newline and tab
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0001\U000e0020-\U000e007f"  # invisible, or turn text
    "\ud800-\udfff]"  # halves of characters, which no encoding has
)


def printable(text: str) -> str:
    r"""Return text whose control and invisible characters are written out, as in `\x1b`."""
    return _STEERING.sub(_written_out, text)


def printable_line(text: str) -> str:
    """Return text as `printable` does, and on one line."""
    return printable(" ".join(text.split()))


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


class PrintableStream:
    """A text stream that only lets printable text, newlines and tabs through.

    Args:
        stream: Where the text goes; everything but writing is left to it.

    Attributes:
        rich_proxied_file: The same; rich's consoles, the help's and ours, write there directly.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream
        if isinstance(stream, io.TextIOWrapper):  # a letter that the terminal lacks is not a crash
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Write text, its control characters made visible."""
        self.rich_proxied_file.write(printable(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def guarded() -> Iterator[None]:
    """Guard standard output and standard error as long as the command runs."""
    before = sys.stdout, sys.stderr
    sys.stdout = cast("TextIO", PrintableStream(sys.stdout))
    sys.stderr = cast("TextIO", PrintableStream(sys.stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
