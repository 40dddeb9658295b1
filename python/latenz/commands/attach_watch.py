"""`latenz attach --watch`: the threads of a program while they are measured."""

import json
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich import box
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from latenz.attach.account import ACCOUNT_FILE, Account, Story, Thread
from latenz.attach.causes import Surroundings, explained
from latenz.attach.surroundings import Gathered
from latenz.console import Console
from latenz.durations import format_duration
from latenz.errors import BadInput
from latenz.terminal import printable


class AttachWatch:
    """An observer of a run that shows each step of it on standard output.

    On a terminal one table changes; a pipe gets a line a step, or a JSON document if asked for.

    Args:
        folder: The run's, in which the condition's own appears.
        condition: Name of that.
        is_trace: A recorded trace is read: of its programs nothing more can be looked up.
        json: Print a JSON document a step.
    """

    visible = True

    def __init__(self, folder: Path, condition: str, *, is_trace: bool, json: bool) -> None:
        self._folder = folder / condition
        self._gathered = None if is_trace else Gathered()
        self._json = json
        self._seen: tuple[int, int] | None = None
        self._began_s = time.monotonic()
        self._live: Live | None = None
        if not json and sys.stdout.isatty():
            first = Text("looking for periodic threads", style="dim")
            self._live = Live(first, console=Console(), auto_refresh=False)

    def __enter__(self) -> Self:
        """Start to show."""
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the last table standing."""
        if self._live:
            self._live.stop()

    def planned(self, total_ns: int) -> None:
        """Take how long the run is going to take."""

    def measuring(self, label: str, planned_ns: int) -> None:  # noqa: ARG002 - as observers have it
        """Count the time from here."""
        self._began_s = time.monotonic()

    def measured(self, account: dict[str, Any]) -> None:  # noqa: ARG002 - as observers have it
        """Show the last step."""
        self._step()

    def update(self, phase: str, maximum_ns: int | None) -> None:  # noqa: ARG002 - see above
        """Show a step if there is a new one."""
        self._step()

    def _step(self) -> None:
        with suppress(OSError, BadInput):
            found = (self._folder / ACCOUNT_FILE).stat()
            if (found.st_mtime_ns, found.st_ino) == self._seen:
                return
            threads = Account.of(self._folder).recorded
            self._seen = (found.st_mtime_ns, found.st_ino)
            if threads:
                self._show(threads)

    def _show(self, threads: Sequence[Thread]) -> None:
        if self._gathered:
            self._gathered.look(threads)
        known = self._gathered.told(threads) if self._gathered else Surroundings()
        passed_s = int(time.monotonic() - self._began_s)
        if self._live:
            self._live.update(_table(passed_s, threads, known), refresh=True)
        elif self._json:
            told = [_document(each, known) for each in threads]
            self._print(json.dumps({"passed_s": passed_s, "threads": told}))
        else:
            self._print(printable(f"{passed_s} s: {'; '.join(_lines(threads, known))}"))

    def _print(self, line: str) -> None:
        print(line, flush=True)  # noqa: T201


def last_late(thread: Thread) -> Story | None:
    """Return the newest of a thread's worst cycles; None if there is none yet.

    At first, every cycle is among the worst: those beside which others are ten times later are not.
    """
    worst_ns = max((each.response_ns for each in thread.worst), default=0)
    late = [each for each in thread.worst if each.response_ns * 10 >= worst_ns]
    return max(late, key=lambda each: each.due_ns, default=None)


def _sentence(thread: Thread, known: Surroundings) -> str:
    story = last_late(thread)
    return explained(thread, story, known)["sentence"] if story else ""


def _period(thread: Thread) -> str:
    return format_duration(thread.grid.period_ns) if thread.grid else "?"


def _or_dash(duration_ns: int | None) -> str:
    return "-" if duration_ns is None else format_duration(duration_ns)


def _table(passed_s: int, threads: Sequence[Thread], known: Surroundings) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("thread", overflow="fold")
    for heading in ("period", "cycles", "worst", "recent", "missed", "partial"):
        table.add_column(heading, justify="right")
    for each in threads:
        lateness = (_or_dash(each.largest_ns), _or_dash(each.recent_ns))
        counts = (f"{each.missed:,}", f"{each.partial:,}")
        row = (_period(each), f"{each.n:,}", *lateness, *counts)
        table.add_row(Text(f"{each.comm} ({each.tid})"), *row)
    head = Text(f"{passed_s} s; recent: in the last second", style="dim")
    late = [Text(told) for each in threads if (told := _sentence(each, known))]
    return Group(head, table, *late, Text("Ctrl-C ends it; what was measured is kept", style="dim"))


def _lines(threads: Sequence[Thread], known: Surroundings) -> Iterable[str]:
    for each in threads:
        lateness = f"worst {_or_dash(each.largest_ns)}, recent {_or_dash(each.recent_ns)}"
        counts = f"{each.n} cycles, {each.missed} missed, {each.partial} partial"
        told = _sentence(each, known)
        period = _period(each)
        yield f"{each.comm} ({each.tid}), period {period}, {counts}, {lateness}" + (
            f", last late: {told}" if told else ""
        )


def _document(thread: Thread, known: Surroundings) -> dict[str, Any]:
    names = ("comm", "tid", "n", "missed", "partial", "largest_ns", "recent_ns")
    return {
        **{name: getattr(thread, name) for name in names},
        "period_ns": thread.grid.period_ns if thread.grid else None,
        "last_late": _sentence(thread, known) or None,
    }
