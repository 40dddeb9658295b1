"""Interrupts of a device that a guest has for itself: QEMU's real-time clock (PL031).

The guest's bottom handler sets the next alarm, one second ahead in virtual time. Nothing of this
comes out of a list: when an alarm comes is the emulated device's doing.
"""

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from latenz.analysis import bound
from latenz.errors import BadInput
from latenz.hypervisor.build import build
from latenz.hypervisor.comparison import compared
from latenz.hypervisor.costs import with_costs
from latenz.hypervisor.guest import installed
from latenz.hypervisor.run import boot, ensure_built
from latenz.hypervisor.stamps import stamps_of
from latenz.hypervisor.trace import Kind
from latenz.model import HANDLINGS
from latenz.system import write_system

pytestmark = pytest.mark.boots

SECOND_NS = 1_000_000_000
OWN_NS, FOREIGN_NS = 6_900_000, 11_500_000
CYCLE_NS = OWN_NS + FOREIGN_NS
LONGEST_WORK_NS = 61_000
"""A slot switch, top handlers of alarm and neighbour, the end of a job, start and end of one that
finds nothing and the start of another: as the file has them."""
SOON_NS = 3000
"""An interrupt that nothing holds up has been answered by then, and a slot begun."""
SYSTEM = """
[platform]
slot_switch = "20 us"
monitor = "1 us"
schedule = "2 us"
context_switch = "5 us"
[[slot]]
partition = "clock"
length = "6900 us"
[[slot]]
partition = "other"
length = "11500 us"
[[source]]
name = "alarm"
partition = "clock"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "{period}" }}
monitor = {{ distances = ["{distance}"] }}
interrupt = 34
{more}
[[partition]]
name = "clock"
guest = "{guest}"
on_fault = "{on_fault}"
devices = [{{ physical = 0x09010000, size = "4 KiB", interrupts = [34] }}]
"""
NEIGHBOUR = """
[[source]]
name = "neighbour"
partition = "other"
top = "5 us"
bottom = "40 us"
arrival = { kind = "periodic", period = "47 ms", jitter = "20 ms", min_distance = "1 ms" }
monitor = { distances = ["20 ms"] }
"""


CROWD = """
[[source]]
name = "crowd {number}"
partition = "other"
top = "5 us"
bottom = "10 us"
arrival = {{ kind = "distances", distances = ["100 ms"] }}
"""


def booted(folder, mode, irqs=None, guest="alarm", text=SYSTEM, listed=None, **changes):
    ensure_built()
    path = folder / "system.toml"
    values = {"distance": "900 ms", "period": "1 s", "more": "", "on_fault": "stop"} | changes
    path.write_text(text.format(guest=installed(f"guests/{guest}.bin"), **values))
    built = build(path, mode, irqs=irqs, listed=listed)
    return built, boot(built, "virt", folder).measured


def alarms(run):
    """Return arrivals, ends and handlings of all alarms."""
    own = run.irqs.source == 0
    names = [HANDLINGS[number] for number in run.irqs.handling[own]]
    return run.irqs.arrival_ns[own], run.irqs.end_ns[own], names


def partition(run, name):
    return next(each for each in run.statistics.partitions if each.name == name)


def check_each_once(run):
    """What the device raised was queued, ended, and seen by the guest, all as often."""
    alarm = run.statistics.sources[0]
    assert alarm.raised == alarm.completed == partition(run, "clock").progress
    assert alarm.overruns == alarm.dropped == alarm.overflowed == alarm.masked == 0
    arrived_ns, ended_ns, _ = alarms(run)
    gaps_ns = arrived_ns[1:] - ended_ns[:-1]
    assert (np.abs(gaps_ns - SECOND_NS) < SOON_NS).all(), "each a second after the one before"


def check_slots(run):
    assert run.statistics.latest_slot_ticks < SOON_NS
    switches = run.records[run.records["kind"] == Kind.SLOT_SWITCH]
    begins_ns = run.clock.times_ns(switches["start"] - switches["value"])
    wanted = np.cumsum([0, *[OWN_NS, FOREIGN_NS] * len(begins_ns)])[: len(begins_ns)]
    assert (begins_ns == wanted).all()


@pytest.mark.parametrize("mode", ["plain", "paper", "carry"])
def test_alarms_are_handled_once_and_as_the_mode_says(tmp_path, mode):
    built, run = booted(tmp_path, mode, 450, more=NEIGHBOUR)
    assert (built.arrivals.source == 1).all(), "the list has none of the device"
    check_each_once(run)
    check_slots(run)
    arrived_ns, ended_ns, handlings = alarms(run)
    foreign = arrived_ns % CYCLE_NS >= OWN_NS
    assert len(foreign) >= 18
    assert 5 <= foreign.sum() <= len(foreign) - 5
    away = "delayed" if mode == "plain" else "interposed"
    assert handlings == [away if each else "direct" for each in foreign]
    latency_ns = ended_ns - arrived_ns
    assert latency_ns[~foreign].max() < SOON_NS
    if mode == "plain":
        waited_ns = ended_ns[foreign] % CYCLE_NS
        assert waited_ns.max() < SOON_NS, "at the start of the next own slot"
    else:
        assert latency_ns[foreign].max() < SOON_NS
    told = compared(built.system, built, run)
    assert told.exceeding == 0
    assert told.irqs == len(run.irqs.source) > 400
    assert told.alike == told.irqs
    neighbour = run.statistics.sources[1]
    assert neighbour.raised == neighbour.completed == len(built.arrivals)


def test_a_devices_distances_are_shorter_by_how_late_its_stamps_can_be(tmp_path):
    """So that nobody else's doing lets its monitor deny what keeps its distance."""
    ensure_built()
    path = tmp_path / "system.toml"
    values = {"guest": installed("guests/alarm.bin"), "more": NEIGHBOUR, "on_fault": "stop"}
    path.write_text(SYSTEM.format(distance="900 ms", period="1 s", **values))
    stamped = build(path, "carry", irqs=3).stamped
    device, other = (each.monitor.distances_ns for each in stamped.sources)
    assert device == (900_000_000 - LONGEST_WORK_NS,)
    assert other == (20_000_000,), "arrivals of the list have exact stamps"
    path.write_text(SYSTEM.format(distance=f"{LONGEST_WORK_NS} ns", period="1 s", **values))
    # Two of its jobs can be ready at once there.
    with pytest.raises(BadInput, match="61000 ns are no more than the 85000 ns") as found:
        build(path, "carry", irqs=3)
    assert "monitor" in found.value.where


def test_a_stamp_is_late_by_all_that_one_visit_serves(tmp_path):
    """Twelve of the list come just before an alarm, which comes a second after one has ended."""
    more = "".join(CROWD.format(number=number) for number in range(12))
    quiet = [(number, 4_500_000_000) for number in range(12)]
    _, run = booted(tmp_path, "plain", more=more, listed=written(tmp_path, quiet))
    _, ended_ns, _ = alarms(run)
    due_ns = ended_ns + SECOND_NS
    in_slot = (due_ns % CYCLE_NS > 200_000) & (due_ns % CYCLE_NS < OWN_NS - 200_000)
    before = int(np.flatnonzero(in_slot & (due_ns < 4_000_000_000))[-1])
    crowd = [(number, int(due_ns[before]) - 200) for number in range(12)]
    built, run = booted(tmp_path, "plain", more=more, listed=written(tmp_path, crowd + quiet))
    arrived_ns, again_ns, _ = alarms(run)
    assert again_ns[before] == ended_ns[before], "the same until then"
    late_ns = int(arrived_ns[before + 1] - due_ns[before])
    measured, _ = with_costs(built.system, run.costs, run.sections)
    longest_ns = max(measured.platform.slot_switch_ns, *(x.top_ns for x in measured.sources))
    assert 2 * longest_ns < late_ns <= stamps_of(measured, "plain").work_ns


def written(folder, crowd):
    path = folder / "arrivals.csv"
    rows = sorted(crowd, key=lambda row: row[1])
    lines = [f"crowd {number},{at_ns}" for number, at_ns in rows]
    path.write_text("\n".join(["source,time_ns", *lines, ""]))
    return path


def test_what_was_built_can_be_built_again(tmp_path):
    """Distances once became shorter each time, in the file that `costs -o` writes, too."""
    ensure_built()
    path = tmp_path / "system.toml"
    values = {"guest": installed("guests/alarm.bin"), "more": NEIGHBOUR, "on_fault": "stop"}
    path.write_text(SYSTEM.format(distance="900 ms", period="1 s", **values))
    once = build(path, irqs=3)
    write_system(once.system, path)
    again = build(path, irqs=3)
    assert again.system == once.system
    assert again.stamped == once.stamped != once.system


def test_bound_of_a_file_is_that_of_what_the_hypervisor_sees(tmp_path):
    """Its stamps can lie closer than its interrupts, so that two jobs hold up the neighbour."""
    ensure_built()
    path = tmp_path / "system.toml"
    values = {"guest": installed("guests/alarm.bin"), "more": NEIGHBOUR, "on_fault": "stop"}
    path.write_text(SYSTEM.format(distance="250 us", period="250 us", **values))
    done = subprocess.run(
        [sys.executable, "-m", "latenz", "bound", path, "--mode", "carry", "--json"],
        check=True,
        capture_output=True,
    )
    told = json.loads(done.stdout)
    built = build(path, "carry", irqs=3)
    wanted = bound(built.stamped, "carry")
    assert [each["wcrt_ns"] for each in told["sources"]] == [x.wcrt_ns for x in wanted.sources]
    assert [x.wcrt_ns for x in bound(built.system, "carry").sources] != [
        x.wcrt_ns for x in wanted.sources
    ]
    assert "alarm is a device's" in told["assumptions"][0]


def test_devices_that_nothing_limits_are_told(tmp_path):
    """One by its model, one whose distance is no longer than its stamps may be late."""
    ensure_built()
    path = tmp_path / "system.toml"
    model = 'kind = "periodic", period = "{period}"'
    values = {"guest": installed("guests/alarm.bin"), "more": "", "on_fault": "stop"}
    for arrival, warned in [
        ('kind = "exponential", mean = "1 s"', True),
        ('kind = "distances", distances = ["15 us", "20 us"]', True),
        ('kind = "distances", distances = ["1 s"]', False),
    ]:
        text = SYSTEM.replace(model, arrival)
        text = text.replace('bottom = "20 us"', 'bottom = "1 us"').replace("5 us", "1 us")
        path.write_text(text.format(distance="900 ms", **values))
        command = ["hypervisor", "build", path, "-o", tmp_path / "image.elf", "--force"]
        done = subprocess.run(
            [sys.executable, "-m", "latenz", *command, "--irqs", "3"],
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert ("nothing limits its device" in done.stderr) == warned


def test_a_device_that_interrupts_more_often_than_its_model_is_masked_until_a_slot_begins(tmp_path):
    """Its alarm is due a second after the one before, its model has one in three."""
    built, run = booted(tmp_path, "carry", 12, period="3 s")
    work_ns = stamps_of(built.system, "carry").work_ns
    assert built.stamped.sources[0].arrival.jitter_ns == work_ns, "of its stamps"
    alarm = run.statistics.sources[0]
    assert alarm.raised == alarm.completed == partition(run, "clock").progress >= 10
    assert alarm.raised - 1 <= alarm.masked <= alarm.raised
    arrived_ns, _, _ = alarms(run)
    assert np.diff(arrived_ns).min() >= 3 * SECOND_NS - work_ns
    assert np.diff(arrived_ns).max() < 3 * SECOND_NS + CYCLE_NS
    into_cycle_ns = arrived_ns[1:] % CYCLE_NS
    since_slot_ns = np.where(into_cycle_ns < OWN_NS, into_cycle_ns, into_cycle_ns - OWN_NS)
    assert since_slot_ns.max() < SOON_NS
    check_slots(run)


def test_the_monitor_judges_stamps_and_a_run_of_devices_alone_ends(tmp_path):
    """With twice the distance that the device keeps, by hand."""
    built, run = booted(tmp_path, "carry", 12, distance="1900 ms")
    assert len(built.arrivals) == 0
    assert (run.statistics.cycles - 1) * CYCLE_NS <= built.arrivals.end_ns
    assert run.statistics.cycles * CYCLE_NS >= built.arrivals.end_ns
    check_each_once(run)
    check_slots(run)
    arrived_ns, _, handlings = alarms(run)
    (distance_ns,) = built.stamped.sources[0].monitor.distances_ns
    assert distance_ns == 1_900_000_000 - stamps_of(built.system, "carry").work_ns
    accepted_ns, wanted = -(2**60), []
    for arrival_ns in arrived_ns.tolist():
        grants = arrival_ns - accepted_ns >= distance_ns
        accepted_ns = arrival_ns if grants else accepted_ns
        foreign = arrival_ns % CYCLE_NS >= OWN_NS
        wanted.append(("interposed" if grants else "delayed") if foreign else "direct")
    assert handlings == wanted
    assert {"interposed", "delayed", "direct"} == set(wanted)


def test_a_restarted_guest_gets_the_interrupt_that_it_had_not_ended(tmp_path):
    _, run = booted(tmp_path, "carry", 12, "faulty_alarm", on_fault="restart")
    alarm, clock = run.statistics.sources[0], partition(run, "clock")
    assert clock.faults == clock.restarts == clock.progress // 3 >= 3
    assert alarm.raised == alarm.completed == clock.progress
    assert alarm.dropped == 0
    check_slots(run)


def test_the_device_of_a_stopped_guest_is_silent(tmp_path):
    """Its alarm stays raised for ever; the neighbour's slots and interrupts are as always."""
    built, run = booted(tmp_path, "carry", 150, "faulty_alarm", more=NEIGHBOUR)
    alarm, neighbour = run.statistics.sources
    assert partition(run, "clock").state == "stopped"
    assert (alarm.raised, alarm.completed, alarm.dropped) == (3, 2, 1)
    assert neighbour.raised == neighbour.completed == len(built.arrivals) > 100
    check_slots(run)


def test_when_all_guests_are_gone_the_run_ends(tmp_path):
    alone = SYSTEM.replace('[[slot]]\npartition = "other"\nlength = "11500 us"\n', "")
    _, run = booted(tmp_path, "plain", 30, "faulty_alarm", alone)
    assert run.statistics.sources[0].raised == 3
    assert run.statistics.cycles * OWN_NS < 4 * SECOND_NS


def test_a_device_that_is_no_source_is_served_in_own_slots(tmp_path):
    source = SYSTEM[SYSTEM.index("[[source]]") : SYSTEM.index("{more}")]
    text = SYSTEM.replace(source, "")
    built, run = booted(tmp_path, "carry", 200, text=text, more=NEIGHBOUR)
    assert run.statistics.sources[0].completed == len(built.arrivals)
    counts = run.records[(run.records["kind"] == Kind.PROGRESS) & (run.records["partition"] == 0)]
    (changed,) = np.nonzero(np.diff(counts["value"]))
    assert (np.diff(counts["value"])[changed] == 1).all()
    assert len(changed) >= 6
    for before_ns, after_ns in pairwise(run.clock.times_ns(counts["start"][changed + 1])):
        assert SECOND_NS - CYCLE_NS < after_ns - before_ns < SECOND_NS + 2 * CYCLE_NS
    check_slots(run)
