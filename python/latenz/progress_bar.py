"""A progress bar of which nothing is cut: where there is no room, columns leave."""

from collections.abc import Iterable

from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,  # noqa: TID251 - this is what latenz.progress uses
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

_SHORTEST_BAR, _LONGEST_BAR = 8, 40


class LeftColumn(TimeRemainingColumn):
    """The time that is left, said so."""

    def render(self, task: Task) -> Text:
        """Return it in words."""
        return Text.assemble("left ", super().render(task))


_LEAVING = (BarColumn, TimeElapsedColumn, MofNCompleteColumn, LeftColumn, TaskProgressColumn)
"""What leaves, in this order; texts stay, and are folded if they must."""


class FittingProgress(Progress):
    """A progress bar that shows less on a narrow terminal, and that whole."""

    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        """Return a row a task, of the columns for which there is room."""
        shown = [task for task in tasks if task.visible]
        if not shown:  # nor is there a console, in the constructor
            return Table.grid()
        columns = [each for each in self.columns if isinstance(each, ProgressColumn)]
        for kind in _LEAVING:
            if self._width(columns, shown) <= self.console.width:
                break
            columns = [each for each in columns if type(each) is not kind]
        room = self.console.width - self._width(columns, shown) + _SHORTEST_BAR
        table = Table.grid(padding=(0, 1))
        for column in columns:
            if isinstance(column, BarColumn):
                column.bar_width = min(room, _LONGEST_BAR)
            text = not isinstance(column, _LEAVING)
            table.add_column(no_wrap=not text, overflow="fold" if text else "crop")
        for task in shown:
            table.add_row(*(column(task) for column in columns))
        return table

    def _width(self, columns: list[ProgressColumn], tasks: list[Task]) -> int:
        """Return how many characters these columns need."""
        return sum(
            1 + max((self._needed(column, task) for task in tasks), default=0) for column in columns
        )

    def _needed(self, column: ProgressColumn, task: Task) -> int:
        if isinstance(column, BarColumn):
            return _SHORTEST_BAR
        options = self.console.options
        return Measurement.get(self.console, options, column(task)).maximum
