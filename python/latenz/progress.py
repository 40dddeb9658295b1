"""Progress on standard error, for work that lasts."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


def progress_bar(*columns: "str | ProgressColumn", wanted: bool = True) -> "Progress":
    """Return a bar on standard error that is gone when the work is done.

    Args:
        columns: Texts in which `{task.description}` and the like are replaced, and rich's columns.
        wanted: False shows nothing, as when standard error is not a terminal.
    """
    from rich.progress import TextColumn

    from latenz.console import Console
    from latenz.progress_bar import FittingProgress

    return FittingProgress(
        *(TextColumn(each, markup=False) if isinstance(each, str) else each for each in columns),
        console=Console(stderr=True),
        refresh_per_second=2,  # more would disturb what is measured
        disable=not (wanted and sys.stderr.isatty()),
        transient=True,
    )


@contextmanager
def counting(
    label: str, total: int | None, *, wanted: bool = True, counts: bool = True
) -> Iterator[Callable[..., None]]:
    """Show how much of something is done; give a function that takes how much, and of how much.

    Args:
        label: What is being done.
        total: How much there is; None if that is unknown.
        wanted: False shows nothing, as when standard error is not a terminal.
        counts: Show numbers; False where they tell nobody anything, such as bytes.
    """
    if not (wanted and sys.stderr.isatty()):  # nor does rich take the time to load
        yield lambda *_, **__: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn

    from latenz.progress_bar import LeftColumn

    numbers = (MofNCompleteColumn(),) if counts else ()
    bar = progress_bar("{task.description}", BarColumn(), *numbers, LeftColumn())
    task = bar.add_task(label, total=total)
    with bar:
        yield lambda done, of=total, label=label: bar.update(
            task, completed=done, total=of, description=label
        )


@contextmanager
def reading(sets: int, *, wanted: bool = True) -> Iterator[Callable[[str], None]]:
    """Show which of so many sample sets is read; give a function that takes its name."""
    done = count()
    with counting("reading", sets, wanted=wanted) as progress:
        yield lambda label: progress(next(done), label=f"reading {label}")
