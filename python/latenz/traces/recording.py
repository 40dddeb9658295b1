"""Recording what the kernel does while something is measured, so that late samples have a cause.

Three rings take turns: whenever the largest latency so far is seen to have grown, the one that
records is stopped and kept, and the next one goes on. Measuring programs tell their largest latency
once a second, so that the moment may lie before the turn that came last; therefore the last two
are kept. So the trace around the largest latency survives however long the measurement lasts,
nothing is read or written meanwhile, and memory is bounded. In the end only what lies around the
worst samples is written.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.traces import ring as rings
from latenz.traces.join import Late, latest
from latenz.traces.ring import Page, Ring

_FILE_NAMES = ("trace.dat", "trace-2.dat", "trace-3.dat")
_MARGIN_NS = 100_000_000
_WITHOUT_TIMES_NS = 2_000_000_000
_WORST = 10


@dataclass(frozen=True)
class Recorded:
    """What a recording left.

    Attributes:
        paths: The traces, one for each ring that has something to tell.
        late: The worst samples, the latest first.
        notes: What must be known about the recording.
        guests: What guests recorded of themselves meanwhile.
    """

    paths: tuple[Path, ...]
    late: tuple[Late, ...]
    notes: tuple[str, ...]
    guests: tuple[Path, ...] = ()


class Recording:
    """Records from `start` to `stop`; a context that leaves the tracer as it was.

    A process that is killed leaves its instances of the tracer, which the next recording removes.

    Raises:
        BadInput: The kernel does not let itself be traced.
    """

    def __init__(self) -> None:
        self._notes: list[str] = [f"removed {name}" for name in rings.remove_leftovers()]
        self._largest_ns = -1
        self._rings: list[Ring] = []
        self._active = 0
        try:
            for label in ("a", "b", "c"):
                self._rings.append(Ring(label, rings.ring_kib(len(_FILE_NAMES))))
        except OSError as error:
            self.close()
            raise BadInput(
                f"the kernel's tracer refuses ({error.strerror or error})",
                "--trace",
                "leave it out, or see latenz doctor",
            ) from None

    def __enter__(self) -> "Recording":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Record from now on."""
        self._rings[self._active].go_on()

    def notice(self, largest_ns: int | None) -> None:
        """Keep what was recorded so far if the largest latency has grown.

        Args:
            largest_ns: Of the measurement until now; None: not known.
        """
        if largest_ns is None or largest_ns <= self._largest_ns:
            return
        self._largest_ns = largest_ns
        kept, self._active = self._active, (self._active + 1) % len(self._rings)
        self._rings[self._active].clear()
        self._rings[self._active].go_on()  # before the other one stops: nothing is missed
        self._rings[kept].stop()

    def stop(self) -> None:
        """Record no more."""
        self._rings[self._active].stop()

    def store(self, folder: Path, sample_sets: Sequence[SampleSet]) -> Recorded:
        """Write what was recorded around the worst samples.

        Args:
            folder: Takes the trace.
            sample_sets: What was measured meanwhile.
        """
        late = latest(sample_sets, _WORST)
        recorded = [each.pages() for each in self._rings]
        kept = [_around(pages, late) for pages in recorded]
        if not any(page for pages in kept for page in pages):
            kept = [[_newest(of_cpu) for of_cpu in recorded[self._active]]]
            self._notes.append(_without_samples(late))
        paths: list[Path] = []
        for pages in kept:
            if any(pages):
                paths.append(folder / _FILE_NAMES[len(paths)])
                rings.write_trace(self._rings[0], pages, paths[-1])
        return Recorded(tuple(paths), tuple(late), tuple(self._notes))

    def close(self) -> None:
        """Remove the rings from the kernel, whatever happened; a second time does nothing."""
        for each in self._rings:
            with suppress(OSError):
                each.stop()
            with suppress(OSError):
                each.remove()


def _around(pages: Sequence[Sequence[Page]], late: Sequence[Late]) -> list[list[Page]]:
    """Return the pages, by CPU, around those samples that a ring reaches back to on their CPU."""
    windows = [
        (each.t_ns, each.end_ns)
        for each in late
        if each.cpu is not None and each.cpu < len(pages)
        if any(page.t_ns <= each.t_ns for page in pages[each.cpu])
    ]
    return [rings.around(of_cpu, windows, _MARGIN_NS) for of_cpu in pages]


def _without_samples(late: Sequence[Late]) -> str:
    if not late:
        why = "the samples' times are not known"
    elif all(each.cpu is None for each in late):
        why = "the samples' CPUs are not known"
    else:
        why = "no ring reaches back to a worst sample"
    return f"{why}: the trace covers the end of the measurement"


def _newest(pages: Sequence[Page]) -> list[Page]:
    since_ns = pages[-1].t_ns - _WITHOUT_TIMES_NS if pages else 0
    return [page for page in pages if page.t_ns >= since_ns]


def explained(recorded: Recorded, folder: Path) -> dict[str, Any]:
    """Return the part of a condition's account that tells why its worst samples were late.

    Args:
        recorded: What the recording left.
        folder: The run's; traces are named relative to it.
    """
    from latenz.traces.explaining import explain_in
    from latenz.traces.guests import with_guests

    traces = [path.relative_to(folder).as_posix() for path in recorded.paths]
    guests = [path.relative_to(folder).as_posix() for path in recorded.guests]
    try:
        found = explain_in(recorded.paths, recorded.late)
        if recorded.guests:
            found = with_guests(recorded.paths[0], recorded.guests, found)
    except BadInput as mistake:
        notes = [*recorded.notes, f"the trace could not be explained: {mistake.what}"]
        return {"traces": traces, "causes": [], "trace_notes": notes}
    told = {
        "traces": traces,
        "causes": [each.to_json() for each in found.causes],
        "trace_notes": [*recorded.notes, *found.notes],
    }
    return told | ({"guest_traces": guests} if guests else {})
