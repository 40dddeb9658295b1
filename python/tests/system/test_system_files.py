"""System files: what they describe, and that each mistake is told with its line."""

import json
from pathlib import Path

import pytest

from latenz.errors import BadInput
from latenz.system import (
    Distances,
    Exponential,
    Monitor,
    Periodic,
    Platform,
    Slot,
    Source,
    System,
    read_system,
)
from latenz.system.schema import json_schema

SOUND = """\
[platform]
slot_switch = "50 us"
monitor = "128 instr @ 200 MHz"
schedule = "4385 ns"
context_switch = 50000

[policy]
mode = "carry"
latency_from = "top"

[[slot]]
partition = "P1"
length = "6 ms"

[[slot]]
partition = "P2"
length = "8 ms"

[[source]]
name = "can"
partition = "P1"
top = "5 us"
bottom = "40 us"
arrival = { kind = "periodic", period = "5 ms", jitter = "1 ms", min_distance = "100 us" }
monitor = { distances = ["100 us", "5 ms"] }

[[source]]
name = "lin"
partition = "P2"
top = 0
bottom = 1

[source.arrival]
kind = "distances"
distances = [
  0,
  "1 ms",
]

[[source]]
name = "noise"
partition = "P2"
top = 0
bottom = "1 us"
arrival = { kind = "exponential", mean = "2 ms", min_distance = 7, seed = 3 }

[[source]]
name = "recorded"
partition = "P1"
top = 0
bottom = "1 us"
arrival = { kind = "trace", file = "data/trace.csv", length = 2 }
"""
TRACE = "source,time_ns\nrecorded,10\nelsewhere,11\nrecorded,40\nrecorded,90\n"


def read(tmp_path, text, trace=TRACE):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "trace.csv").write_text(trace)
    path = tmp_path / "system.toml"
    path.write_text(text)
    return read_system(path)


def test_everything_that_a_file_may_say(tmp_path):
    system = read(tmp_path, SOUND)
    recorded = system.sources[3]
    assert system == System(
        platform=Platform(50_000, 640, 4_385, 50_000),
        slots=(Slot("P1", 6_000_000), Slot("P2", 8_000_000)),
        sources=(
            Source(
                "can",
                "P1",
                5_000,
                40_000,
                Periodic(5_000_000, 1_000_000, 100_000),
                Monitor((100_000, 5_000_000)),
            ),
            Source("lin", "P2", 0, 1, Distances((0, 1_000_000))),
            Source("noise", "P2", 0, 1_000, Exponential(2_000_000, 7, 3)),
            recorded,
        ),
        mode="carry",
        latency_from="top",
    )
    assert (recorded.name, recorded.partition, recorded.bottom_ns) == ("recorded", "P1", 1_000)
    assert recorded.arrival.times_ns.tolist() == [10, 40, 90]
    assert recorded.arrival.length == 2


def test_what_a_file_may_leave_out(tmp_path):
    text = """
        slot = [{ partition = "P", length = 9 }]
        source = [{ name = "s", partition = "P", top = 0, bottom = 1, arrival.kind = "periodic",
                    arrival.period = 5 }]
    """.replace("\n                    ", " ")
    assert read(tmp_path, text) == System(
        Platform(), (Slot("P", 9),), (Source("s", "P", 0, 1, Periodic(5)),)
    )


TOP = 'top = "5 us"\n'
MISTAKES = [
    # (old, new, line, place, what must be said)
    ("[platform]", "[platforms]", 1, "platforms", "did you mean 'platform'?"),
    ("monitor = ", "monitors = ", 3, "platform.monitors", "did you mean 'monitor'?"),
    ("50000", "-1", 5, "platform.context_switch", "is -1 ns; give 0 ns or more"),
    ("50000", '"5 parsec"', 5, "platform.context_switch", "'parsec' in '5 parsec' is not a unit"),
    ("50000", "0.5", 5, "platform.context_switch", "0.5 is not a duration"),
    ("50000", "true", 5, "platform.context_switch", "True is not a duration"),
    ("200 MHz", "3 MHz", 3, "platform.monitor", "is not a whole number of nanoseconds"),
    ("200 MHz", "0 MHz", 3, "platform.monitor", "has no positive clock rate"),
    ('"carry"', '"cary"', 8, "policy.mode", "'plain', 'paper' or 'carry'"),
    ('"top"', '"bottom"', 9, "policy.latency_from", "'arrival' or 'top'"),
    ("[policy]", "[policy]\nstamp = 1", 8, "policy.stamp", "choose one of: mode, latency_from"),
    ('"6 ms"', '"0 ms"', 13, "slot[1].length", "is 0 ns; give 1 ns or more"),
    ('"8 ms"', '"50 us"', 17, "slot[2].length", "used up by the slot switch, 50000 ns"),
    ('"8 ms"', "9223372036854775807", 11, "slot", "the TDMA cycle does not fit in 64 bits"),
    ('"8 ms"', "9223372036854775808", 17, "slot[2].length", "does not fit in 64 bits"),
    ('"8 ms"', '"300 years"', 17, "slot[2].length", "'years' in '300 years' is not a unit"),
    ('partition = "P1"', "partition = 1", 12, "slot[1].partition", "1 is wrong; input should be"),
    ('partition = "P1"', 'partition = ""', 12, "slot[1].partition", "'' is not a name"),
    ('name = "lin"', 'name = "can"', 28, "source[2].name", "a second source is named 'can'"),
    ('name = "lin"', 'name = "a,b"', 28, "source[2].name", "'a,b' is not a name; use letters"),
    ('name = "lin"', "", 27, "source[2].name", "the key 'name' is missing"),
    ("bottom = 1", "bottom = 0", 31, "source[2].bottom", "is 0 ns; give 1 ns or more"),
    ("bottom = 1", "bottom = 9223372036854775807", 31, "source[2].bottom", "costs do not fit in"),
    ("top = 0", "top = -1", 30, "source[2].top", "is -1 ns; give 0 ns or more"),
    ("top = 0", "", 27, "source[2].top", "the key 'top' is missing"),
    ("top = 0", "tops = 0", 30, "source[2].tops", "mean 'top'?"),
    ('name = "can"\npartition = "P1"', 'name = "can"\npartition = "P3"', 21,
     "source[1].partition", "has no slot for the bottom handler of 'can'; choose one of: P1, P2"),
    ('"5 ms", jitter', "0, jitter", 24, "source[1].arrival.period", "is 0 ns"),
    ('"5 ms", jitter', '"50 us", jitter', 24, "source[1].arrival.min_distance", "than the period"),
    ('period = "5 ms", ', "", 24, "source[1].arrival.period", "the key 'period' is missing"),
    ("jitter = ", "jiter = ", 24, "source[1].arrival.jiter", "did you mean 'jitter'?"),
    ('kind = "periodic", ', "", 24, "source[1].arrival", "the key 'kind' is missing; add kind"),
    ('"periodic"', '"sporadic"', 24, "source[1].arrival.kind", "did you mean 'periodic'?"),
    (TOP, TOP + "top_sums = []\n", 23, "source[1].top_sums", "has 0 sums; give 1 to 64"),
    (TOP, TOP + "top_sums = [1, 2]\n", 23, "source[1].top_sums[1]", "begins with 1 ns, but one"),
    (TOP, TOP + 'top_sums = ["5 us", 2]\n', 23, "source[1].top_sums[2]", "2 ns comes after 5000"),
    (TOP, TOP + 'top_sums = ["5 us", -2]\n', 23, "source[1].top_sums[2]", "is -2 ns; give 0 ns or"),
    (TOP, TOP + f"top_sums = {[5000] * 65}\n", 23, "source[1].top_sums", "has 65 sums; give 1 to"),
    (TOP, TOP + f"top_sums = [5000, {2**63}]\n", 23, "source[1].top_sums[2]", "does not fit in 64"),
    (TOP, TOP + 'top_sums = "5 us"\n', 23, "source[1].top_sums", "is not an array; write"),
    ('["100 us", "5 ms"]', "[]", 25, "source[1].monitor.distances", "has 0 distances; give 1 to"),
    ('"100 us", "5 ms"', "0", 25, "source[1].monitor.distances", "limits nothing"),
    ('"100 us", "5 ms"', "5, 4", 25, "source[1].monitor.distances[2]", "4 ns comes after 5 ns"),
    ('"100 us", "5 ms"', "5, []", 25, "source[1].monitor.distances[2]", "[] is not a duration"),
    ('["100 us", "5 ms"]', '"1 ms"', 25, "source[1].monitor.distances", "is not an array; write"),
    ('{ distances = ["100 us", "5 ms"] }', '"1 ms"', 25, "source[1].monitor", "keys of: distances"),
    ("  0,", "  -5,", 35, "source[2].arrival.distances[1]", "is -5 ns; give 0 ns or more"),
    ('kind = "distances"', "", 33, "source[2].arrival", "the key 'kind' is missing"),
    ('kind = "distances"', "kind = 5", 34, "source[2].arrival.kind", "is not a known kind"),
    ('  "1 ms",', "  0,", 35, "source[2].arrival.distances", "every distance is 0"),
    ("seed = 3", "seed = -3", 45, "source[3].arrival.seed", "is -3; give 0 or more"),
    ("seed = 3", "seed = 1.5", 45, "source[3].arrival.seed", "1.5 is wrong; input should be"),
    ('mean = "2 ms"', "mean = 0", 45, "source[3].arrival.mean", "is 0 ns"),
    ("length = 2", "length = 0", 52, "source[4].arrival.length", "is 0; give 1 or more"),
    ("length = 2", "length = 3", 52, "source[4].arrival.length", "give at most 2"),
    ("data/trace.csv", "trace.csv", 52, "source[4].arrival.file", "there is no file"),
    ("data/trace.csv", "", 52, "source[4].arrival.file", "there is no file"),
    ("data/trace.csv", "/dev/zero", 52, "source[4].arrival.file", "no file '/dev/zero'; name a tr"),
    ("data/trace.csv", "a\\u0000b", 52, "source[4].arrival.file", "there is no file"),
    ("data/trace.csv", "a" * 5000, 52, "source[4].arrival.file", "there is no file"),
    ('"recorded"', '"other"', 52, "source[4].arrival.file", "has no arrival of 'other'"),
    ("[[slot]]", "[slot]", 15, "", "is not TOML"),
    ('[policy]\nmode = "carry"', "policy = 5", 7, "platform.policy", "unknown key 'policy'"),
    ("top = 0", "top = 0\ntop = 0", 31, "", "is not TOML"),
    ("top = 0", "top = " + "1" * 5000, 30, "", "a number has thousands of digits"),
    ("top = 0", "top = 0x" + "1" * 5000, 30, "source[2].top", "does not fit in 64 bits"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "place", "says"), MISTAKES)
def test_each_mistake_is_one_line_with_its_place(tmp_path, old, new, line, place, says):
    assert old in SOUND
    with pytest.raises(BadInput) as mistake:
        read(tmp_path, SOUND.replace(old, new, 1))
    told = str(mistake.value)
    assert told.startswith(f"{tmp_path}/system.toml:{line}: {place}"), told
    assert says in told
    assert "\n" not in told
    assert len(told) < 400


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ":1: slot: there is no slot; give at least one"),
        ('[[slot]]\npartition = "P"\nlength = 5', ":1: source: there is no source"),
        ('[slot]\npartition = "P"\nlength = 5', ":1: slot: 'slot' is not an array; write [[slot]]"),
        (
            "slot = [5]",
            ":1: slot[1]: 5 is not a table; write a table with keys of: partition, length",
        ),
    ],
)
def test_files_without_a_system(tmp_path, text, says):
    with pytest.raises(BadInput) as mistake:
        read(tmp_path, text)
    assert f"system.toml{says}" in str(mistake.value)


def test_a_mistake_in_a_trace_is_told_with_the_trace(tmp_path):
    with pytest.raises(BadInput, match=r"data/trace.csv:4: 40 ns comes after 41 ns; sort"):
        read(tmp_path, SOUND, TRACE.replace("elsewhere,11", "elsewhere,41"))


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(BadInput, match=str(path)):
            read_system(path)
    (tmp_path / "latin.toml").write_bytes(b"\xe4 = 1")
    with pytest.raises(BadInput, match="not text in UTF-8; give a system file"):
        read_system(tmp_path / "latin.toml")


def test_committed_schema_is_the_present_one():
    committed = Path("experiments/systems/system.schema.json").read_text()
    assert json.loads(committed) == json_schema(), "run: ./latenz schema system > ..."


@pytest.mark.parametrize("path", sorted(Path("experiments/systems").glob("*.toml")), ids=str)
def test_committed_systems_are_sound(path):
    assert read_system(path).sources
    assert path.read_text().startswith("#:schema ./system.schema.json\n")


def test_the_published_system_is_the_published_one():
    """beckert2014, sections 6.1 and 6.2; Eqs. (13) and (17)."""
    system = read_system(Path("experiments/systems/beckert2014.toml"))
    platform, (source,) = system.platform, system.sources
    assert [slot.length_ns for slot in system.slots] == [6_000_000, 6_000_000, 2_000_000]
    assert platform.monitor_ns == 128 * 5
    assert platform.schedule_ns == 877 * 5
    assert platform.context_switch_ns == (5000 + 5000) * 5
    interposed_ns = source.bottom_ns + platform.schedule_ns + 2 * platform.context_switch_ns
    assert source.arrival.mean_ns * 10 == interposed_ns * 100
    assert source.monitor.distances_ns == (source.arrival.mean_ns,)
    assert source.top_ns + source.bottom_ns <= 50_000
