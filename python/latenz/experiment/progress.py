"""A progress bar on standard error for a run that lasts."""

import sys
import time
from types import TracebackType
from typing import Any, Self

import typer
from rich.progress import BarColumn, TaskProgressColumn, TimeElapsedColumn

from latenz.durations import format_duration
from latenz.progress import progress_bar
from latenz.progress_bar import LeftColumn


class Progress:
    """Shows condition, elapsed and remaining time, and the largest latency so far.

    Args:
        wanted: False shows nothing, as when standard error is not a terminal.
        lines: Where it is none, tell of each measurement in a line, for logs.

    Attributes:
        visible: Whether anything is shown.
    """

    def __init__(self, wanted: bool, *, lines: bool = False) -> None:
        self.visible = wanted and sys.stderr.isatty()
        self._lines = lines and wanted and not self.visible
        self._bar = progress_bar(
            "{task.description}",
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            LeftColumn(),
            "{task.fields[maximum]}",
            wanted=wanted,
        )
        self._task = self._bar.add_task("", maximum="", total=None)
        self._label = ""
        self._done_s = 0.0
        self._planned_s = 0.0
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        """Start to show."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Clear the bar."""
        self._bar.stop()

    def planned(self, total_ns: int) -> None:
        """Take how long the run is going to take."""
        self._bar.update(self._task, total=total_ns / 1e9)

    def measuring(self, label: str, planned_ns: int) -> None:
        """Show the condition that is measured next."""
        self._label, self._planned_s, self._began = label, planned_ns / 1e9, time.monotonic()
        if self._lines:
            lasts = format_duration(planned_ns)
            typer.echo(f"latenz: {label} begins, {lasts} planned", err=True)
        self.update("starting", None)

    def update(self, phase: str, maximum_ns: int | None) -> None:
        """Show how far the measurement has come."""
        spent_s = min(time.monotonic() - self._began, self._planned_s)
        maximum = "" if maximum_ns is None else f"max {format_duration(maximum_ns)}"
        self._bar.update(
            self._task,
            description=f"{self._label}: {phase}",
            completed=self._done_s + spent_s,
            maximum=maximum,
        )

    def measured(self, account: dict[str, Any]) -> None:
        """Count a measurement as done."""
        if account["repetition"] is not None:
            self._done_s += self._planned_s
