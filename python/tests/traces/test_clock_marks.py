"""Clocks of guest and host joined by marks of their counters, of worlds whose clocks are known."""

import random
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from two_sides import VCPU, Event, World, write_text

from latenz.programs import probe_program
from latenz.traces.clock_marks import Mark, joined, line_of
from latenz.traces.explaining import Explained
from latenz.traces.guests import explain_guests, open_guests
from latenz.traces.host_clock import HostClock
from latenz.traces.reader import RecordedTrace

GUEST_BEHIND_NS = 10**9
AHEAD = -3_000_000_000_123  # the guest's counter
COUNTS_A_NS = Fraction(21, 10)
READING_COUNTS = 126


def counter(host_ns: int) -> int:
    return 500_000_000_000 + int(host_ns * COUNTS_A_NS)


def mark(at_ns: int, told_ns: int, ahead: int, name: str = "print") -> Event:
    """What `latenz-wakeup --mark-clock` writes, as tracefs and trace-cmd print it."""
    before = counter(at_ns) + ahead - READING_COUNTS // 3
    words = f"latenz-clock: monotonic {told_ns} counter {before} to {before + READING_COUNTS}"
    return Event(at_ns, 0, ("latenz-wakeup", 99, 120), name, {"text": words})


def planted(world: World, drift: float = 0.0, last: float = 1.0) -> None:
    """Add marks at both ends of both traces, and what KVM tells of the counters."""
    start_ns, end_ns = world.host.events[0].t_ns - 9_000, world.host.events[-1].t_ns + 9_000
    inside = [each.t_ns for each in world.guest.events]
    first, end = inside[0] - 1, inside[0] + int((inside[-1] - inside[0]) * last) + 1
    zero = first

    def on_guest(t_ns: int) -> int:
        return t_ns - GUEST_BEHIND_NS + int((t_ns - zero) * drift)

    marks = [mark(at, on_guest(at), AHEAD, "tracing_mark_write") for at in (first, end)]
    for each in [*marks, *world.guest.events]:
        each.t_ns = on_guest(each.t_ns)
    world.guest.events += marks
    told: dict[str, int | str] = {"vcpu": 0, "prev": 0, "next": AHEAD % 2**64}
    world.host.events += [
        *(mark(at, at, 0) for at in (start_ns, end_ns)),
        Event(start_ns + 5, 1, VCPU, "kvm_write_tsc_offset", told),
    ]


def explained(
    world: World, folder: Path, grain_ns: int = 1
) -> tuple[HostClock, list[int], list[int], Explained]:
    """Explain a world by text, the guest's in units: the clock, its times, and what they became."""
    truth = sorted(each.t_ns for each in world.guest.events)
    for each in world.guest.events:
        each.t_ns = (each.t_ns + grain_ns // 2) // grain_ns * grain_ns
    host = write_text(world.host, folder / "host.txt")
    path = write_text(world.guest, folder / "guest.txt")
    opened = RecordedTrace(host)
    found = open_guests(opened, [path], 3)
    why = explain_guests(opened, found, 3)
    moved = RecordedTrace(path, found[0].clock.argument).times((), 10**6)[:, 0].tolist()
    return found[0].clock, truth, moved, why


@pytest.mark.parametrize("drift", [0.0, -40e-6, 150e-6])
@pytest.mark.parametrize(("grain_ns", "most_ns"), [(1, 150), (1_000, 650)])
def test_marks_join_clocks_to_the_error_that_is_told(
    tmp_path: Path, drift: float, grain_ns: int, most_ns: int
) -> None:
    """Whole microseconds as tracefs prints them, rounded to the nearest, are off by half of one."""
    world = World(7, 0).run("vcpu-preempted", 100)
    planted(world, drift)
    clock, truth, moved, why = explained(world, tmp_path, grain_ns)
    assert clock.method == "tsc-marks"
    wrong_ns = max(
        abs(at - (told + GUEST_BEHIND_NS - int((told + GUEST_BEHIND_NS - zero) * drift)))
        for zero in [min(truth) + GUEST_BEHIND_NS]
        for at, told in zip(moved, truth, strict=True)
    )
    assert wrong_ns <= clock.error_ns <= most_ns
    assert why.causes[0].first.cause == "vcpu-preempted"


def test_marks_that_lie_close_to_each_other_tell_nothing(tmp_path: Path) -> None:
    world = World(7, 0).run("vcpu-preempted", 100)
    planted(world, last=0.3)
    clock, *_ = explained(world, tmp_path)
    assert clock.method == "matched"


def test_an_offset_of_another_machine_is_not_believed(tmp_path: Path) -> None:
    world = World(7, 0).run("vcpu-preempted", 100)
    planted(world)
    other = next(each for each in world.host.events if each.name == "kvm_write_tsc_offset")
    other.values["next"] = 77
    clock, *_ = explained(world, tmp_path)
    assert clock.method == "matched"


def test_of_random_clocks_no_time_is_further_off_than_is_told() -> None:
    chance = random.Random(5)
    for _ in range(300):
        rates = [Fraction(chance.randrange(10**9, 5 * 10**9), 10**9) for _ in range(2)]
        starts = [chance.randrange(10**15) for _ in range(2)]
        ahead, span = chance.randrange(-(10**15), 10**15), chance.randrange(10**8, 10**11)
        read = [
            [_reading(chance, at * span // 3, rate, start) for at in range(4)]
            for rate, start in zip(rates, starts, strict=True)
        ]
        read[1] = [Mark(t_ns, low + ahead, high + ahead) for t_ns, low, high in read[1]]
        lines = [line_of(each, each[0].t_ns, each[-1].t_ns) for each in read]
        assert lines[0]
        assert lines[1]
        argument, error_ns = joined(lines[0], lines[1], ahead)
        multiplier, shift, offset = map(int, argument.split(":"))
        for _ in range(20):
            count = chance.randrange(span)
            host_ns, guest_ns = (
                start + count / rate for start, rate in zip(starts, rates, strict=True)
            )
            told = (int(guest_ns) * multiplier >> shift) + offset
            assert abs(told - host_ns) <= error_ns + 2
        assert error_ns < 2_000


def _reading(chance: random.Random, count: int, rate: Fraction, start_ns: int) -> Mark:
    """A clock that began with the counter, read somewhere between two counts."""
    before, after = chance.randrange(500), chance.randrange(500)
    return Mark(start_ns + int(count / rate), count - before, count + after)


def test_the_probe_reads_both_clocks_or_says_why_not(tmp_path: Path) -> None:
    done = subprocess.run(
        [probe_program("latenz-wakeup"), "--mark-clock", "--output", tmp_path],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 or done.stderr.startswith("latenz-wakeup: --mark-clock: ")
