"""Styled output on the terminal, by rich; everything that prints tables or colours prints here."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import IO, Any

import rich.console
from rich.console import ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from latenz.terminal import printable

_SENTENCE = 30
_NARROWEST_SENTENCE = 24  # in less, it would be a word a line


class Console(rich.console.Console):
    """A console for text of unknown origin.

    Square brackets and colons in texts are what they are, no markup and no emoji; control
    characters are made visible. Colours come from `rich.text.Text` and from styles. Of a table
    that is too wide, columns leave from the right and are named below it; nothing is cut.

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

    def say(self, sentence: str | Text, style: str | None = None) -> None:
        """Print a sentence: folded between words on a terminal, one line in a pipe."""
        self.print(sentence, style=style, soft_wrap=not self.is_terminal)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does, with printable text only, and tables that fit."""
        options = options or self.options
        if isinstance(renderable, Table) and renderable.show_header:  # else a layout
            renderable = self._fitted(renderable, options)
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)

    def _fitted(self, table: Table, options: ConsoleOptions) -> RenderableType:
        """Return a table of the width that there is, and the names of the columns that left it."""
        endless = options.update(width=1 << 20)
        room = options.max_width
        if table.expand or self.measure(table, options=endless).maximum <= room:
            return table
        widths = [_width(self, endless, column) for column in table.columns]
        for count in range(len(widths), 0, -1):
            fitted = _with_columns(table, table.columns[:count], [each[1] for each in widths])
            frame = self.measure(fitted, options=endless).maximum - sum(
                longest for _, longest in widths[:count]
            )
            least = [shortest for shortest, _ in widths[:count]]
            least[0] = min(least[0], max(room // 2, room - frame - sum(least[1:])))
            if frame + sum(least) <= room or count == 1:
                break
        shared = _shared(room - frame, least, [longest for _, longest in widths[:count]])
        fitted = _with_columns(table, table.columns[:count], shared)
        left = list(zip(table.columns[count:], widths[count:], strict=True))
        sentences = [column for column, (least, most) in left if least < most > _SENTENCE]
        names = [str(each.header) for each, _ in left if each not in sentences and each.header]
        return Group(fitted, *_below(fitted.columns, sentences), *_told(names, room))


def _below(columns: Sequence[Column], sentences: Sequence[Column]) -> Iterable[Text]:
    """Give the sentences that have no room in a table, each once, with the rows that it is for."""
    names = _row_names(columns)
    for column in sentences:
        rows: dict[str, list[str]] = {}
        cells = [each if isinstance(each, Text) else Text(str(each)) for each in column.cells]
        for name, cell in zip(names, cells, strict=True):
            rows.setdefault(cell.plain, []).append(name)
        told = {cell.plain: cell for cell in reversed(cells)}
        for text, of in rows.items():
            if text not in ("", "-"):
                yield Text.assemble(f"{'; '.join(of)}, {column.header}: ", told[text])


def _row_names(columns: Sequence[Column]) -> list[str]:
    """Return what tells the rows apart: as many of the first columns as that takes."""
    names: list[str] = []
    for column in columns:
        cells = [str(each) for each in column.cells]
        names = [
            " ".join(each).strip() for each in zip(names or [""] * len(cells), cells, strict=True)
        ]
        if len(set(names)) == len(names):
            break
    return names


def _told(left: Sequence[str], room: int) -> Iterable[Text]:
    if left:
        told = f"not in {room} columns: {', '.join(left)}; a wider terminal or a pipe has all"
        yield Text(told, style="dim")


def _width(console: Console, options: ConsoleOptions, column: Column) -> tuple[int, int]:
    """Return the least width at which a column can be read, and that of its longest line."""
    cells = [column.header, *column.cells]
    measured = [Measurement.get(console, options, each) for each in cells]
    longest = max(each.maximum for each in measured)
    if column.no_wrap or column.justify == "right":
        return longest, longest
    narrowest = column.min_width or (_NARROWEST_SENTENCE if longest > _SENTENCE else longest)
    return min(narrowest, longest), longest


def _shared(room: int, least: Sequence[int], longest: Sequence[int]) -> list[int]:
    """Return widths that fill the room, from the least on: those that lack little get it all."""
    widths = list(least)
    lacking = sorted(range(len(widths)), key=lambda number: longest[number] - least[number])
    for at, number in enumerate(lacking):
        share = max(0, room - sum(widths)) // (len(lacking) - at)
        widths[number] += max(0, min(longest[number] - least[number], share))
    return widths


def _with_columns(table: Table, columns: Sequence[Column], widths: Sequence[int]) -> Table:
    fitted = copy(table)
    fitted.columns = [
        replace(
            column,
            width=max(width, 1),
            min_width=None,
            no_wrap=False,  # what is narrower than its lines is folded, not cut
            overflow="fold",
            _index=number,
        )
        for number, (column, width) in enumerate(zip(columns, widths, strict=False))
    ]
    return fitted


def say(sentence: str, *, error: bool = False) -> None:
    """Print a sentence on standard output or standard error, as `Console.say` does."""
    Console(stderr=error, highlight=False).say(sentence)
