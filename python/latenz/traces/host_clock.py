"""How the clock of a guest's trace becomes that of its host's trace, and with which error.

A guest can write an event only while its virtual CPU is in it. So each event lies between a
`kvm_entry` and the next `kvm_exit` of the thread that runs the virtual CPU: whatever tells how the
clocks belong together is checked by that, and without anything else it is found by that alone.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from latenz.errors import BadInput
from latenz.traces.clock_fit import (
    BIN_NS,
    ROUNDING_NS,
    Found,
    Runs,
    bounds_of,
    closer,
    compared,
    drifting,
    near,
    pieces,
)
from latenz.traces.clock_marks import joined, line_of, marks
from latenz.traces.model import Event, RecordedGuest, Summary
from latenz.traces.reader import RecordedTrace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Times = NDArray[np.int64]

MOST_COMPARED = 1 << 20
"""By so many of a guest's events, and of its host's entries and exits, clocks are joined."""
_RUNS = ("kvm_entry", "kvm_exit")
_MICROSECOND = 1_000
_WHOLE = re.compile(r"-?\d{1,20}")
_CUTTING = {"perf script"}  # the others round whole microseconds to the nearest
_MOST_OUTSIDE = 0.01
_FEWEST = 20  # events of a guest, by fewer no clock is found
_MOST_MOVED_NS = 1 << 62  # between two clocks; more than any time of a trace
_FAR_OUTSIDE_NS = 100_000
_SILENCE_NS = 100_000
_MOST_DISTANCES = 3_000_000
_MOST_GUESTS = 64
_MOST_CANDIDATES = 48
_MOST_SCORED = 500  # events of the beginning, in which no clock drifts far
_MOST_FITTED = 8
_MANY = 0.98
_REMEDY = (
    "record both by trace-cmd record with -A, or the host with -e kvm:kvm_write_tsc_offset too"
)

Method = Literal["time-shift", "tsc-offset", "tsc-marks", "matched"]


@dataclass(frozen=True)
class HostClock:
    """How times of a guest's trace become the host's.

    Attributes:
        method: `time-shift`, as trace-cmd wrote it into the guest's file; `tsc-offset`, from the
            event kvm_write_tsc_offset; `tsc-marks`, from that and marks of both clocks; `matched`,
            by the exits that the guest's events lie between.
        argument: What `latenz-trace --clock` is told.
        error_ns: How far a time may be off, at most.
        checked: How many events of the guest were compared with entries and exits.
        outside: How many of these lie outside of the guest, which cannot be.
        vcpus: The host's thread by the number of the guest's CPU.
        is_cut: One of the traces has more than `MOST_COMPARED` events: the rest was not compared.
    """

    method: Method
    argument: str
    error_ns: int
    checked: int
    outside: int
    vcpus: Mapping[int, int]
    is_cut: bool = False


def host_clock(
    host: RecordedTrace, host_summary: Summary, guest: RecordedTrace, guest_summary: Summary
) -> HostClock:
    """Find how the clock of a guest's trace becomes that of its host's.

    Raises:
        BadInput: It cannot be told, or the host's trace has no entries and exits of the guest.
    """
    names = host_summary.names or {}
    runs = sum(names.get(each, 0) for each in _RUNS)
    is_cut = max(runs, guest_summary.events) > MOST_COMPARED
    try:
        clock = _joined(host, host_summary, guest, guest_summary)
    except BadInput as mistake:
        told = f", by the first {MOST_COMPARED:,} events" if is_cut else ""
        raise BadInput(mistake.what + told, mistake.where, mistake.remedy) from None
    return replace(clock, is_cut=is_cut)


def _joined(
    host: RecordedTrace, host_summary: Summary, guest: RecordedTrace, guest_summary: Summary
) -> HostClock:
    runs = _runs(host)
    if not runs:
        raise BadInput(
            "has no events kvm_entry and kvm_exit", str(host.path), "give the host's trace first"
        )
    names = _names(host_summary, guest_summary)
    told = _told(host, host_summary, guest, guest_summary)
    grain_ns = _grain_ns(_by(1, guest.times((), MOST_COMPARED)), runs) if told else 0
    if not {host_summary.format, guest_summary.format} & _CUTTING:
        grain_ns //= 2
    rounded = {
        pid: Runs(each.entries - grain_ns, each.exits + grain_ns) for pid, each in runs.items()
    }
    for method, argument, told_ns in told:
        moved = _by(1, guest.by_clock(argument).times((), MOST_COMPARED))
        vcpus = _vcpus(moved, rounded, host_summary, names)
        found = _together(moved, rounded, vcpus)
        if _is_believable(found) and (method == "time-shift" or _is_confirmed(found, moved)):
            error_ns = told_ns + ROUNDING_NS + found.furthest_ns + grain_ns
            checked = found.inside + found.outside
            return HostClock(method, argument, error_ns, checked, found.outside, vcpus)
    return _Matching(guest, runs, host_summary, names).clock()


def _grain_ns(times_of: Mapping[int, "Times"], runs: Mapping[int, Runs]) -> int:
    """Return how far times are off if files tell whole microseconds only, as tracefs does."""
    of_host = any((each.entries % _MICROSECOND).any() for each in runs.values())
    of_guest = any((each % _MICROSECOND).any() for each in times_of.values())
    return _MICROSECOND * (int(not of_host) + int(not of_guest))


def _is_believable(found: Found) -> bool:
    few = found.outside <= _MOST_OUTSIDE * (found.inside + found.outside)
    return few and found.furthest_ns <= _FAR_OUTSIDE_NS


def _is_confirmed(found: Found, times_of: Mapping[int, "Times"]) -> bool:
    """Tell whether enough events lie where the guest ran: the offset may be another machine's."""
    return found.inside >= min(_FEWEST, sum(map(len, times_of.values())))


def _names(host: Summary, guest: Summary) -> RecordedGuest | None:
    """Return what trace-cmd wrote into the host's file about this guest."""
    if guest.session.id == "0x0":
        return None
    return next((each for each in host.session.guests if each.id == guest.session.id), None)


def _told(
    host: RecordedTrace, summary: Summary, guest: RecordedTrace, guest_summary: Summary
) -> list[tuple[Method, str, int]]:
    """Return what the files tell of the clocks, and its error in ns, the surest first."""
    told: list[tuple[Method, str, int]] = []
    if guest_summary.session.has_shifts and guest_summary.session.peer == summary.session.id:
        told.append(("time-shift", "host", 0))
    offsets = _tsc_offsets(host, summary)
    scales = {
        (each.session.tsc_multiplier, each.session.tsc_shift) for each in (summary, guest_summary)
    }
    if len(scales) == 1 and summary.session.tsc_multiplier:
        ((multiplier, shift),) = scales
        for cycles in offsets:
            moved_ns = cycles * multiplier >> shift
            if abs(moved_ns) < _MOST_MOVED_NS:
                told.append(("tsc-offset", f"1:0:{-moved_ns}", 0))
    if offsets:
        lines = [
            line_of(marks(trace), its.start_ns, its.end_ns)
            for trace, its in ((host, summary), (guest, guest_summary))
        ]
        if lines[0] and lines[1]:
            told += [("tsc-marks", *joined(lines[0], lines[1], each)) for each in offsets]
    return told


def _tsc_offsets(host: RecordedTrace, summary: Summary) -> list[int]:
    """Return how many cycles guests' counters are ahead of the host's, the last told first."""
    if "kvm_write_tsc_offset" not in (summary.names or {}):
        return []
    rows = host.times(("kvm_write_tsc_offset",), MOST_COMPARED)
    windows = [(int(t_ns), int(t_ns)) for t_ns in np.unique(rows[-64:, 0])]
    events = [each for each in host.events(windows, 64) if each.name == "kvm_write_tsc_offset"]
    found = [_offset(each) for each in reversed(events)]
    return list(dict.fromkeys(each for each in found if each is not None))


def _offset(event: Event) -> int | None:
    """Return the offset that KVM wrote; text has it as `next`, without its sign."""
    told = str(event.fields.get("next_tsc_offset", event.fields.get("next", "")))
    return _signed(int(told)) if _WHOLE.fullmatch(told) else None


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _by(column: int, rows: "Times") -> dict[int, "Times"]:
    """Return the times of events by their CPU (column 1) or thread (2), in order."""
    return {key: own[:, 0] for key, own in _grouped(column, rows).items()}


def _grouped(column: int, rows: "Times") -> dict[int, "Times"]:
    if not len(rows):
        return {}
    ordered = rows[np.argsort(rows[:, column], kind="stable")]
    keys, firsts = np.unique(ordered[:, column], return_index=True)
    return dict(zip(keys.tolist(), np.split(ordered, firsts[1:]), strict=True))


def _runs(host: RecordedTrace) -> dict[int, Runs]:
    found = {}
    for pid, own in _grouped(2, host.times(_RUNS, MOST_COMPARED)).items():
        enters = (own[:-1, 3] == 0) & (own[1:, 3] == 1)
        if enters.any():
            found[pid] = Runs(own[:-1, 0][enters], own[1:, 0][enters])
    return found


def _vcpus(
    times_of: Mapping[int, "Times"],
    runs: Mapping[int, Runs],
    host: Summary,
    names: RecordedGuest | None,
) -> dict[int, int]:
    """Return which thread runs which of a guest's CPUs: as it is told, else whom its times suit."""
    threads = _threads(host, names)
    found = {}
    for cpu, times in times_of.items():
        known = [pid for pid in threads.get(cpu, ()) if pid in runs]
        scored = [(compared(times, runs[pid]).score, pid) for pid in known]
        if scored:
            found[cpu] = max(scored)[1]
    return found


def _threads(host: Summary, names: RecordedGuest | None) -> dict[int, list[int]]:
    """Return which threads may run which CPU of a guest."""
    if names is not None:
        return {cpu: [pid] for cpu, pid in names.vcpus.items()}
    found: dict[int, list[int]] = defaultdict(list)
    for each in host.vcpus:
        number_of_it = each.vcpu.partition("@")[0]
        if number_of_it.isdecimal() and len(number_of_it) < 6:
            own = found[int(number_of_it)]
            own += [each.pid] if len(own) < _MOST_GUESTS else []
    return found


def _together(
    times_of: Mapping[int, "Times"], runs: Mapping[int, Runs], vcpus: Mapping[int, int]
) -> Found:
    each = [compared(times_of[cpu], runs[pid]) for cpu, pid in vcpus.items()]
    return Found(
        sum(found.inside for found in each),
        sum(found.outside for found in each),
        max((found.furthest_ns for found in each), default=0),
    )


class _Matching:
    """Finds the clocks' distance by which a guest's events lie between entries and exits."""

    def __init__(
        self,
        guest: RecordedTrace,
        runs: Mapping[int, Runs],
        host: Summary,
        names: RecordedGuest | None,
    ) -> None:
        self._guest = guest
        self._rows = guest.times((), MOST_COMPARED)
        self._runs = runs
        self._host = host
        self._names = names

    def clock(self) -> HostClock:
        """Return how the clocks belong together.

        Raises:
            BadInput: No distance suits, or several do.
        """
        if not len(self._rows):
            raise self._refusal("has no events")
        times_of = _by(1, self._rows)
        cpu, times = max(times_of.items(), key=lambda each: len(each[1]))
        threads = _threads(self._host, self._names)
        pids = [pid for pid in threads.get(cpu, ()) if pid in self._runs]
        scored = sorted(
            (
                (near(times[:_MOST_SCORED], self._runs[pid], offset), pid, offset)
                for pid in pids
                for offset in self._candidates(times, pid)
            ),
            reverse=True,
        )
        fitted = [
            (found.score, pid, argument, error_ns, move)
            for score, pid, offset in scored[:_MOST_FITTED]
            if score >= _MANY * scored[0][0] > 0
            for argument, error_ns, move in self._lines(times, self._runs[pid], offset)
            for found in [compared(_moved(times, argument), self._runs[pid])]
            if _is_believable(found) and found.inside >= min(_FEWEST, len(times))
        ]
        if not fitted:
            raise self._refusal("suits no virtual CPU of the host's trace")
        fitted.sort(reverse=True)
        best, pid, argument, error_ns, move = fitted[0]
        for score, other, _, its_error_ns, its_move in fitted[1:]:
            is_same = other == pid and abs(its_move - move) <= error_ns + its_error_ns
            if not is_same and score >= _MANY * best:
                raise self._refusal("suits the host's trace at several places")
        return self._checked(argument, error_ns, {cpu: pid})

    def _checked(self, argument: str, error_ns: int, known: dict[int, int]) -> HostClock:
        """Return a clock after a comparison of all events of the guest."""
        rows = self._rows.copy()
        rows[:, 0] = _moved(rows[:, 0], argument)
        moved = _by(1, rows)
        vcpus = _vcpus(moved, self._runs, self._host, self._names) | known
        found = _together(moved, self._runs, vcpus)
        if not _is_believable(found):
            raise self._refusal("suits no virtual CPU of the host's trace")
        checked = found.inside + found.outside
        error_ns += found.furthest_ns + _grain_ns(_by(1, self._rows), self._runs)
        return HostClock("matched", argument, error_ns, checked, found.outside, vcpus)

    def _refusal(self, what: str) -> BadInput:
        return BadInput(what, str(self._guest.path), _REMEDY)

    def _candidates(self, times: "Times", pid: int) -> list[int]:
        """Return distances at which the guest often goes on right after an entry after a pause.

        A guest that slept writes its first event a little after the entry that ended the pause.
        """
        entries, exits = self._runs[pid]
        pauses = entries[1:] - exits[:-1]
        woken = entries[1:][pauses >= _SILENCE_NS]
        first = times[1:][np.diff(times) >= _SILENCE_NS]
        woken = (woken if len(woken) else entries)[: _MOST_DISTANCES // _FEWEST]
        first = first if len(first) else times
        first = first[: max(_FEWEST, _MOST_DISTANCES // len(woken))]
        distances = (woken[None, :] - first[:, None]).ravel()
        bins, counts = np.unique(distances // BIN_NS, return_counts=True)
        often = np.argsort(counts, kind="stable")[-_MOST_CANDIDATES:]
        return [int(bins[each]) * BIN_NS + BIN_NS // 2 for each in often]

    def _lines(self, times: "Times", runs: Runs, offset: int) -> list[tuple[str, int, int]]:
        """Return the clock that suits near an offset: its argument, error, and move at first."""
        offset = closer(times[:_MOST_SCORED], runs, offset)
        whole = bounds_of(times, runs, offset)
        if whole is not None:
            move = (whole.least_ns + whole.most_ns) // 2
            return [(f"1:0:{move}", whole.most_ns - move + ROUNDING_NS, move)]
        bounds = pieces(times, runs, offset)
        return [drifting(bounds)] if len(bounds) > 1 else []


def _moved(times: "Times", argument: str) -> "Times":
    """Return times as `latenz-trace --clock` moves them."""
    multiplier, shift, offset = (int(each) for each in argument.split(":"))
    if (multiplier, shift) == (1, 0):
        return times + offset
    moved = [(each * multiplier >> shift) + offset for each in times.tolist()]
    return np.array(moved, dtype=np.int64)
