"""Styled output on the terminal, by rich; everything that prints tables or colours prints here."""

from collections.abc import Iterable
from typing import IO, Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from latenz.terminal import printable


class Console(rich.console.Console):
    """A console for text of unknown origin.

    Square brackets and colons in texts are what they are, no markup and no emoji; control
    characters are made visible. Colours come from `rich.text.Text` and from styles.

    Args:
        options: What `rich.console.Console` takes besides.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    @property
    def file(self) -> IO[str]:
        """Where it writes, directly: a bar puts streams of its own before the guarded ones."""
        file = super().file
        while (direct := getattr(file, "rich_proxied_file", file)) is not file:
            file = direct
        return file

    @file.setter
    def file(self, file: IO[str]) -> None:
        self._file = file

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does, with printable text only."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)
