"""A progress bar on standard error for work that is counted."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counting(label: str, total: int | None, *, wanted: bool) -> Iterator[Callable[[int], None]]:
    """Show how much of something is done; give a function that takes how much.

    Args:
        label: What is being done.
        total: How much there is; None if that is unknown.
        wanted: False shows nothing, as when standard error is no terminal.
    """
    if not (wanted and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(label, total=total)
    with bar:
        yield lambda done: bar.update(task, completed=done)
