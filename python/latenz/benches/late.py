"""What is done while a measurement goes on, once a latency passes a limit."""

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from latenz.durations import format_duration

OUTPUT = "on-late.log"
"""Name of the file, beside the samples, that takes what the command prints."""
_LONGEST_S = 60.0


@dataclass(frozen=True)
class OnLate:
    """What to do, and when.

    Attributes:
        limit_ns: A latency above this is late.
        command: Program and arguments, run once for each measurement; empty: none. No shell is
            involved.
        stops: Whether the measurement ends then.
    """

    limit_ns: int
    command: tuple[str, ...] = ()
    stops: bool = False


class LateWatch:
    """Watches one measurement, and acts once.

    Args:
        wish: What to do, and when.
        label: Of the measurement, which the command is told.
        folder: Of the measurement; takes what the command prints.
    """

    def __init__(self, wish: OnLate, label: str, folder: Path) -> None:
        self._wish = wish
        self._label = label
        self._folder = folder
        self._has_seen = False
        self._latency_ns: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._trouble: str | None = None

    @property
    def ends(self) -> bool:
        """Whether the measurement is to end."""
        return self._latency_ns is not None and self._wish.stops

    def see(self, largest_ns: int | None) -> None:
        """Take the largest latency so far; the first time that it is too large, act."""
        self._has_seen = self._has_seen or largest_ns is not None
        is_late = largest_ns is not None and largest_ns > self._wish.limit_ns
        if not is_late or self._latency_ns is not None:
            return
        self._latency_ns = largest_ns
        if self._wish.command:
            self._start()

    def _start(self) -> None:
        told = {
            "LATENZ_LATENCY_NS": str(self._latency_ns),
            "LATENZ_LIMIT_NS": str(self._wish.limit_ns),
            "LATENZ_CONDITION": self._label,
            "LATENZ_FOLDER": str(self._folder),
        }
        try:
            with (self._folder / OUTPUT).open("wb") as output:
                self._process = subprocess.Popen(
                    self._wish.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=os.environ | told,
                    start_new_session=True,  # Ctrl-C is for the measurement; this may finish
                )
        except OSError as error:
            self._trouble = f"could not be started: {error.strerror}"

    def finish(self) -> dict[str, Any]:
        """Wait for the command, at most a minute; return what happened, for the account."""
        if self._latency_ns is None:
            return {"late": None}
        status = self._ended()
        return {
            "late": {
                "latency_ns": self._latency_ns,
                "limit_ns": self._wish.limit_ns,
                "command": list(self._wish.command),
                "exit_status": status,
                "stopped": self._wish.stops,
            }
        }

    def _ended(self) -> int | None:
        if self._process is None:
            return None
        try:
            return self._process.wait(_LONGEST_S)
        except subprocess.TimeoutExpired:
            self._trouble = f"was ended after {_LONGEST_S:.0f} s"
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            return self._process.wait()

    def notes(self) -> list[str]:
        """Return what a reader of the figures must know, after `finish`."""
        if not self._has_seen:
            return ["no latency was told while it measured, so --late had nothing to look at"]
        if self._latency_ns is None:
            return []
        late = format_duration(self._latency_ns)
        limit = format_duration(self._wish.limit_ns)
        told = f"a latency of {late} passed the limit of --late, {limit}"
        notes = [f"{told}: the measurement was ended there" if self._wish.stops else told]
        if self._wish.command:
            status = self._process.returncode if self._process else None
            trouble = self._trouble or (f"ended with {status}" if status else None)
            notes += [f"the command of --on-late {trouble}; see {OUTPUT}"] if trouble else []
        return notes
