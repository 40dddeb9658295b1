"""Guests and their host explained together: clocks, causes, and every nanosecond."""

import json
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hostile import PAGE, option
from two_sides import (
    CAUSES,
    GUEST_ID,
    VCPU,
    Event,
    World,
    guest_options,
    host_options,
    write_dat,
    write_text,
)

from latenz.errors import BadInput
from latenz.traces.guests import explain_guests, open_guests
from latenz.traces.opening import open_trace
from latenz.traces.reader import RecordedTrace

NESTED = Path(__file__).parents[1] / "data/traces/nested-svm.dat"


def explained(host, *guests, worst=3):
    opened = open_trace(host)
    found = open_guests(opened, guests, worst)
    return explain_guests(opened, found, worst), found


def as_text(world, folder):
    host = write_text(world.host, folder / "host.txt")
    return host, write_text(world.guest, folder / "guest.txt", world.offset_ns)


def as_recorded(world, folder):
    """As trace-cmd records both: with the offset in the guest's file."""
    host = write_dat(
        world.host, folder / "host.dat", options=host_options(("vm", GUEST_ID, {0: VCPU[1]}))
    )
    guest = write_dat(
        world.guest,
        folder / "guest.dat",
        lambda t_ns: t_ns - world.offset_ns,
        guest_options([(0, world.offset_ns, 1, 0)]),
    )
    return host, guest


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("cause", CAUSES)
def test_what_was_planted_is_named_first(tmp_path, cause, seed):
    world = World(seed, random.Random(seed).randrange(10**12)).run(cause)
    why, [guest] = explained(*as_recorded(world, tmp_path))
    assert guest.clock.method == "time-shift"
    assert guest.clock.error_ns <= 1_000
    worst = why.causes[0]
    assert (worst.first.cause, worst.first.side) == (cause, CAUSES[cause])
    assert (worst.t_ns, worst.latency_ns) == (world.truth[0], world.truth[1] - world.truth[0])
    for each in why.causes:
        assert sum(share.share_ns for share in each.shares) == each.latency_ns


def by_the_host(path, clock="host"):
    rows = RecordedTrace(path, clock).times((), 10**6)
    return rows[:, 0].tolist()


def printed_by_trace_cmd(path):
    command = ["trace-cmd", "report", "-t", "-i", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    stamps = [
        line.split("]", 1)[1].split()[0].rstrip(":") for line in text.splitlines() if "]" in line
    ]
    return [int(each.replace(".", "")) for each in stamps]


SCALE = (1 << 40) + 123_456_789
SHIFTS = {
    "one offset": [(0, 77_000_000_000, 1, 0)],
    "negative": [(0, -3_000_000_000, 1, 0)],
    "steps": [(5_300_000_000, 5, 1, 0), (5_320_000_000, -900, 1, 0)],
    "a drift": [(5_290_000_000 + 10**7 * each, 1000 * each**2, 1, 0) for each in range(6)],
    "out of order": [(5_330_000_000, 50, 1, 0), (5_300_000_000, 5, 1, 0)],
    "a scale": [(5_300_000_000, 5, 1 << 20, 20), (5_330_000_000, 9, (1 << 20) + 77, 20)],
}


@pytest.fixture(scope="module")
def version_6(tmp_path_factory):
    path = tmp_path_factory.mktemp("v6") / "once.dat"
    command = ["trace-cmd", "convert", "-i", NESTED, "-o", path, "--file-version", "6"]
    subprocess.run(command, check=True, capture_output=True)
    return path.read_bytes()


def with_options(content, options):
    """A recorded file of version 6 with more options, of which only the first pages are kept."""
    start = content.rindex(b"options  \0") + 10
    options += option(2, b" " * (PAGE - len(options) - 6))  # pages stay aligned
    table = content.rindex(b"flyrecord\0") + 10
    offset, _ = struct.unpack_from("<QQ", content, table)
    place = struct.pack("<QQ", offset + PAGE, 64 * PAGE)
    return content[:start] + options + content[start:table] + place + content[table + 16 :]


@pytest.mark.parametrize("name", SHIFTS)
def test_times_by_the_hosts_clock_are_those_of_trace_cmd(tmp_path, version_6, name):
    path = tmp_path / "guest.dat"
    path.write_bytes(with_options(version_6, guest_options(SHIFTS[name])))
    printed = printed_by_trace_cmd(path)
    assert len(printed) > 5_000
    assert by_the_host(path) == printed
    assert by_the_host(path, "") != printed


def test_a_scale_that_needs_128_bits_is_exact(tmp_path):
    world = World(1, 0).run("", 5)
    options = guest_options([(0, -3, SCALE, 40)])
    path = write_dat(world.guest, tmp_path / "guest.dat", options=options)
    times = sorted(each.t_ns for each in world.guest.events)
    assert by_the_host(path) == [(t_ns * SCALE >> 40) - 3 for t_ns in times]


MULTIPLIER, SHIFT = 715_827_883, 31  # of 3 GHz


def as_cycles(world, folder, offset_cycles):
    """Both by the TSC, of which the guest's is ahead; the host tells when it sets that."""
    told = {"vcpu_id": 0, "previous_tsc_offset": 0, "next_tsc_offset": offset_cycles}
    world.host.events.append(
        Event(world.host.events[0].t_ns - 5_000, 1, VCPU, "kvm_write_tsc_offset", told)
    )
    scale = option(4, b"[x86-tsc]\0") + option(14, struct.pack("<IIQ", MULTIPLIER, SHIFT, 0))

    def cycles(t_ns):
        return -(-(t_ns << SHIFT) // MULTIPLIER)

    return write_dat(world.host, folder / "host.dat", cycles, scale), write_dat(
        world.guest, folder / "guest.dat", lambda t_ns: cycles(t_ns) + offset_cycles, scale
    )


@pytest.mark.parametrize("offset", [0, -5_000_000_000_000, 7_000_000_000_001])
def test_clocks_are_joined_by_the_offset_that_kvm_wrote(tmp_path, offset):
    world = World(3, 0).run("vcpu-preempted")
    host, guest = as_cycles(world, tmp_path, offset)
    # the timers' own clock is not the tracer's, so the wait's end is compared, and its cause
    why, [found] = explained(host, guest)
    assert (found.clock.method, found.clock.error_ns) == ("tsc-offset", 2)
    worst = why.causes[0]
    assert abs(worst.t_ns + worst.latency_ns - world.truth[1]) <= found.clock.error_ns
    assert (worst.first.cause, worst.first.side) == ("vcpu-preempted", "host")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cause", CAUSES)
def test_clocks_are_joined_by_exits_alone(tmp_path, cause, seed):
    offset_ns = random.Random(seed).randrange(10**12)
    world = World(seed, offset_ns).run(cause)
    why, [guest] = explained(*as_text(world, tmp_path))
    assert guest.clock.method == "matched"
    multiplier, shift, offset = map(int, guest.clock.argument.split(":"))
    assert (multiplier, shift) == (1, 0)
    assert abs(offset - offset_ns) <= guest.clock.error_ns <= 1_000
    worst = why.causes[0]
    assert (worst.first.cause, worst.first.side) == (cause, CAUSES[cause])


def test_whole_microseconds_count_as_an_error(tmp_path):
    """As tracefs prints them: cut off, so that each event looks earlier than it was."""
    world = World(3, 10**9).run("vcpu-preempted")
    host = write_text(world.host, tmp_path / "host.txt")
    truth = sorted(each.t_ns for each in world.guest.events)
    for each in world.guest.events:
        each.t_ns -= each.t_ns % 1_000
    guest = write_text(world.guest, tmp_path / "guest.txt", world.offset_ns)
    why, [found] = explained(host, guest)
    moved = by_the_host(guest, found.clock.argument)
    wrong_ns = max(abs(one - other) for one, other in zip(moved, truth, strict=True))
    assert wrong_ns <= found.clock.error_ns <= 2_500
    assert why.causes[0].first.cause == "vcpu-preempted"


def test_a_guest_that_leaves_again_before_its_first_event(tmp_path):
    """As one on an emulated processor did, whose first event came 16 us after the first entry."""
    world = World(3, 10**9)
    world.exits_on_waking = 3
    world.run("vcpu-preempted")
    _, [guest] = explained(*as_text(world, tmp_path))
    assert abs(int(guest.clock.argument.split(":")[2]) - world.offset_ns) <= guest.clock.error_ns
    assert guest.clock.error_ns <= 1_000


@pytest.mark.parametrize("drift", [-40e-6, 25e-6, 150e-6])
def test_clocks_that_drift_are_joined_to_the_error_that_is_told(tmp_path, drift):
    world = World(5, 10**9).run("qemu-lock", 400)
    start_ns = world.guest.events[0].t_ns

    def on_guest(t_ns):
        return t_ns - 10**9 + int((t_ns - start_ns) * drift)

    for each in world.guest.events:
        each.values = {
            name: on_guest(value + 10**9) if name in ("now", "expires") else value
            for name, value in each.values.items()
        }
    truth = {each.t_ns: on_guest(each.t_ns) for each in world.guest.events}
    for each in world.guest.events:
        each.t_ns = truth[each.t_ns]
    host = write_text(world.host, tmp_path / "host.txt")
    why, [guest] = explained(host, write_text(world.guest, tmp_path / "guest.txt"))
    moved = by_the_host(tmp_path / "guest.txt", guest.clock.argument)
    wrong_ns = max(abs(one - other) for one, other in zip(moved, sorted(truth), strict=True))
    assert wrong_ns <= guest.clock.error_ns <= 3_000
    assert why.causes[0].first.cause == "qemu-lock"


def test_two_guests_of_one_host(tmp_path):
    first = World(1, 5 * 10**9)
    second = World(2, 9 * 10**9, ("CPU 0/KVM", 2101, 0), first.host, cpu=2)
    second.run("", 20, busy=False)
    first.preempted_by = second.vcpu
    first.run("vcpu-preempted")
    host = write_text(first.host, tmp_path / "host.txt")
    one = write_text(first.guest, tmp_path / "one.txt", first.offset_ns)
    other = write_text(second.guest, tmp_path / "other.txt", second.offset_ns)
    why, guests = explained(host, one, other, worst=100)
    assert [dict(each.clock.vcpus) for each in guests] == [{0: 2001}, {0: 2101}]
    worst = why.causes[0]
    assert (worst.guest, worst.first.cause, worst.first.side) == ("one", "vcpu-preempted", "host")
    assert worst.first.by[0].name.startswith("vCPU 0 of other")
    assert {each.guest for each in why.causes} == {"one", "other"}


def test_what_trace_cmd_tells_of_threads_is_believed(tmp_path):
    world = World(4, 10**6).run("interrupt-storm")
    _, [guest] = explained(*as_recorded(world, tmp_path))
    assert guest.name == "vm"
    assert guest.clock.vcpus == {0: VCPU[1]}


def test_an_offset_that_exits_refute_is_not_believed(tmp_path):
    world = World(6, 10**9).run("nested-exit")
    host, _ = as_recorded(world, tmp_path)
    wrong = guest_options([(0, world.offset_ns + 400_000, 1, 0)])
    guest = write_dat(
        world.guest, tmp_path / "wrong.dat", lambda t_ns: t_ns - world.offset_ns, wrong
    )
    _, [found] = explained(host, guest)
    assert found.clock.method == "matched"
    moved = by_the_host(guest, found.clock.argument)
    times = sorted(each.t_ns for each in world.guest.events)
    off = max(abs(one - other) for one, other in zip(moved, times, strict=True))
    assert off <= found.clock.error_ns


def test_what_was_not_recorded_together_is_refused(tmp_path):
    host, _ = as_text(World(1, 0).run(""), tmp_path)
    other = write_text(World(2, 0).run("").guest, tmp_path / "other.txt")
    with pytest.raises(BadInput, match=r"suits"):
        explained(host, other)


def test_a_guest_that_repeats_itself_exactly_is_refused(tmp_path):
    """Every cycle is the same, so that the guest's trace suits at each of them."""
    world = World(1, 0)
    for each in range(40):
        for shift in (0,):
            at = 2 * 10**12 + each * 10**6 + shift
            world.host.add(at, 1, "kvm_entry", vcpu_id=0)
            world.host.add(at + 50_000, 1, "kvm_exit", exit_reason="HLT", isa=1, vcpu_id=0)
            if 10 <= each < 30:
                world.guest.add(at + 10_000, 0, "local_timer_entry", vector=236)
                world.guest.add(at + 20_000, 0, "local_timer_exit", vector=236)
    host = write_text(world.host, tmp_path / "host.txt")
    guest = write_text(world.guest, tmp_path / "guest.txt", 10**9)
    with pytest.raises(BadInput, match=r"at several places"):
        explained(host, guest)


def test_the_hosts_trace_comes_first(tmp_path):
    host, guest = as_text(World(1, 0).run(""), tmp_path)
    with pytest.raises(BadInput, match=r"kvm_entry"):
        explained(guest, host)


def shifts(cpus, count, *words):
    return option(12, struct.pack(f"<QIII{len(words)}Q", 9, 0, cpus, count, *words))


DAMAGED = {
    "cut": option(12, b"\1\2\3"),
    "too many CPUs": shifts(1 << 31, 0),
    "too many times": shifts(1, 1 << 31),
    "times beyond the option": shifts(1, 1000, 1, 2, 3),
    "no scale": shifts(1, 1, 0, 5, 0, 0),
    "a scale without end": shifts(1, 1, 0, 5, 1, 64),
    "too many vCPUs": option(13, b"vm\0" + struct.pack("<QI", 1, 1 << 31)),
    "a name without end": option(13, b"v" * 5000),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_to_what_is_told_of_clocks_costs_no_event(tmp_path, name):
    world = World(1, 0).run("", 3)
    path = write_dat(world.guest, tmp_path / "guest.dat", options=DAMAGED[name])
    summary = open_trace(path).summary()
    assert summary.events == len(world.guest.events)
    assert summary.damages == 1
    assert not summary.session.has_shifts
    assert by_the_host(path) == sorted(each.t_ns for each in world.guest.events)


def test_guests_without_end_are_not_kept(tmp_path):
    one = option(13, b"vm\0" + struct.pack("<QI", 1, 4000) + bytes(8 * 4000))
    world = World(1, 0).run("", 3)
    path = write_dat(world.host, tmp_path / "host.dat", options=one * 300)
    session = open_trace(path).summary().session
    assert len(session.guests) == 1


def test_samples_of_clocks_at_the_ends_of_64_bits(tmp_path):
    ends = [(-(2**63), 2**63 - 1, 2**63 - 1, 63), (2**63 - 1, -(2**63), 1, 0)]
    world = World(1, 0).run("", 3)
    path = write_dat(world.guest, tmp_path / "guest.dat", options=guest_options(ends))
    assert len(by_the_host(path)) == len(world.guest.events)


def latenz(*arguments):
    command = [sys.executable, "-m", "latenz", "explain", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_tells_clocks_sides_and_guests(tmp_path):
    paths = as_recorded(World(7, 10**9).run("qemu-lock"), tmp_path)
    told = json.loads(latenz(*paths, "--json").stdout)
    [guest] = told["guests"]
    assert (guest["name"], guest["clock"], guest["events_outside"]) == ("vm", "time-shift", 0)
    assert guest["checked_events"] > 300
    assert (told["causes"][0]["side"], told["causes"][0]["guest"]) == ("host", "vm")
    assert "host: qemu-lock" in latenz(*paths).stdout
    refused = latenz(*paths, "--samples", paths[0])
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
