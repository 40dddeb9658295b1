"""Recording for a bound of the wake-up latency: the kernel's own events beside a measurement.

One ring on the CPUs that are measured goes on overwriting its oldest events, so that memory is
bounded, nothing is read or written meanwhile, and what is kept is without a gap. In the end all of
it is written, for `latenz bound --linux`.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from latenz.durations import format_duration
from latenz.errors import BadInput
from latenz.traces import ring as rings
from latenz.traces.offers import WINDOW_EVENTS, open_terms
from latenz.traces.ring import Ring

WINDOWS_TRACE = "windows.dat"
"""The trace in the folder of a measurement."""
_LARGEST_KIB = 256 << 10


class WindowRecording:
    """Records from `start` to `stop`; a context that leaves the tracer as it was.

    Args:
        cpus: That are measured; none: all.

    Raises:
        BadInput: The kernel does not let itself be traced.
    """

    def __init__(self, cpus: frozenset[int]) -> None:
        self._notes: list[str] = [f"removed {name}" for name in rings.remove_leftovers()]
        self._began_ns = self._ended_ns = 0
        kib = rings.ring_kib(1, len(cpus), _LARGEST_KIB)
        try:
            self._ring = Ring("w", kib, WINDOW_EVENTS, stacks=False, cpus=cpus)
        except OSError as error:
            raise BadInput(
                f"the kernel's tracer refuses ({error.strerror or error})",
                "--trace windows",
                "leave it out, or see latenz doctor",
            ) from None

    def __enter__(self) -> "WindowRecording":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Record from now on."""
        self._began_ns = self._ended_ns = time.monotonic_ns()  # the trace's clock, too
        self._ring.go_on()

    def notice(self, largest_ns: int | None) -> None:
        """Do nothing: what is kept does not depend on the largest latency so far."""

    def stop(self) -> None:
        """Record no more."""
        self._ring.stop()
        self._ended_ns = time.monotonic_ns()

    def store(self, folder: Path) -> dict[str, Any]:
        """Write what was recorded; return the part of an account that tells of it.

        Args:
            folder: Takes the trace; the run's folder is the one above.
        """
        path = folder / WINDOWS_TRACE
        folders = self._ring.folders()
        overwritten = [rings.counted(each, "overrun") for each in folders]
        lost = sum(rings.lost_in(each) for each in folders)
        cpus = rings.write_whole(self._ring, path)
        notes = [*self._notes, *_kept(cpus, overwritten, (self._began_ns, self._ended_ns))]
        if lost:
            notes.append(f"the kernel lost {lost:,} events: no bound from this trace holds")
        if terms := open_terms(self._ring.path):
            notes.append(f"this kernel leaves open: {'; '.join(terms)}")
        return {"windows_trace": f"{folder.name}/{WINDOWS_TRACE}", "windows_notes": notes}

    def close(self) -> None:
        """Remove the ring from the kernel, whatever happened; a second time does nothing."""
        with suppress(OSError):
            self._ring.stop()
        with suppress(OSError):
            self._ring.remove()


def _kept(
    cpus: Sequence[tuple[int, int]], overwritten: Sequence[int], recorded: tuple[int, int]
) -> list[str]:
    """Say of each CPU whose ring was too small which part of the measurement is there."""
    began_ns, ended_ns = recorded
    whole = format_duration(ended_ns - began_ns)
    return [
        f"CPU {cpu}: the last {format_duration(ended_ns - first_ns)} of {whole} are kept; the"
        f" {gone:,} events before were overwritten"
        for cpu, ((_, first_ns), gone) in enumerate(zip(cpus, overwritten, strict=True))
        if gone
    ]
