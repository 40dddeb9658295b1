"""Experiment files: what they ask for, and that each mistake is told with its line."""

import json
from pathlib import Path

import pytest

from latenz.benches import BENCHES
from latenz.errors import BadInput
from latenz.experiment.schema import Experiment, json_schema

SOUND = """\
name = "sound"
duration = "10 s"
seed = 1

[probe.fast]
engine = "cyclictest"
period = "200 us"

[stressor.heavy]
kind = "stress-ng-cpu"
instances = 8

[matrix]
stressor = ["none", "heavy"]
probe = ["fast", "oslat"]

[[deadline]]
name = "loop"
limit = "50 us"

[[condition]]
name = "long"
probe = "fast"
duration = "1 min"
"""


def read(tmp_path, text, **options):
    path = tmp_path / "experiment.toml"
    path.write_text(text)
    return Experiment.read(path, **options)


def test_matrix_and_further_conditions(tmp_path):
    experiment = read(tmp_path, SOUND)
    assert [each.name for each in experiment.conditions] == [
        "idle-fast",
        "idle-oslat",
        "heavy-fast",
        "heavy-oslat",
        "long",
    ]
    heavy = experiment.conditions[2]
    assert heavy.load.instances == 8
    assert heavy.engine.period == 200_000
    assert heavy.duration_ns == 10_000_000_000
    assert experiment.conditions[4].duration_ns == 60_000_000_000
    assert [each.limit_ns for each in experiment.deadlines] == [50_000]


def test_names_of_the_matrix_can_be_set(tmp_path):
    text = SOUND.replace("[matrix]", '[matrix]\nname = "{probe}+{stressor}"')
    names = [each.name for each in read(tmp_path, text).conditions]
    assert names[:2] == ["fast+idle", "oslat+idle"]


MISTAKES = [
    # (old, new, line, place, what must be said)
    ("period =", "periode =", 7, "probe.fast.periode", "did you mean 'period'?"),
    ("200 us", "200 parsec", 7, "probe.fast.period", "'parsec' in '200 parsec' is not a unit"),
    ("200 us", "1.5 us", 7, "probe.fast.period", "write for example 200 us"),
    ("200 us", "0.1 ns", 7, "probe.fast.period", "not a whole number of nanoseconds"),
    ("200 us", "-1 us", 7, "probe.fast.period", "greater than 0"),
    ('"cyclictest"', '"cyclictst"', 6, "probe.fast.engine", "did you mean 'cyclictest'?"),
    ('engine = "cyclictest"', "", 5, "probe.fast", "the key 'engine' is missing"),
    (
        "instances = 8",
        "instances = 0",
        11,
        "stressor.heavy.instances",
        "greater than or equal to 1",
    ),
    (
        "instances = 8",
        'method = "; reboot"',
        11,
        "stressor.heavy.method",
        "not a name of a stress",
    ),
    ('"none", "heavy"', '"none", "heavi"', 14, "matrix.stressor", "did you mean 'heavy'?"),
    ('"fast", "oslat"', '"quick", "oslat"', 15, "matrix.probe", "is not a known probe"),
    ("[matrix]", '[matrix]\nbench = ["moon"]', 14, "matrix.bench", "choose one of: host"),
    ("[matrix]", '[matrix]\nstack = ["xen"]', 14, "matrix.stack", "choose one of: linux"),
    ("[matrix]", '[matrix]\nname = "{prob}"', 14, "matrix.name", "{stressor}, {probe}"),
    ("[matrix]", '[matrix]\nname = "{probe:>99}"', 14, "matrix.name", "{probe:>99} stands for"),
    ("[matrix]", '[matrix]\nname = "{probe}/x"', 14, "matrix.name", "cannot name a condition"),
    ('"none", "heavy"', '"none",' * 9999, 13, "matrix", "more than 10000 conditions"),
    ("[matrix]", '[matrix]\nname = "same"', 14, "matrix.name", "a second condition is named"),
    ('limit = "50 us"', "", 17, "deadline[1].limit", "the key 'limit' is missing"),
    ('limit = "50 us"', 'limits = "50 us"', 19, "deadline[1].limits", "mean 'limit'?"),
    ('name = "long"', 'name = "../../etc"', 22, "condition[1].name", "cannot name a condition"),
    ('name = "long"', 'name = "idle-fast"', 22, "condition[1].name", "a second condition"),
    ('duration = "1 min"', 'duration = "soon"', 24, "condition[1].duration", "not a duration"),
    ('name = "sound"', 'name = "a/b"', 1, "name", "cannot name a condition"),
    ("seed = 1", "seed = -1", 3, "seed", "greater than or equal to 0"),
    ("seed = 1", "repetitions = 0", 3, "repetitions", "greater than or equal to 1"),
    ("seed = 1", 'published = ["alonso2021.table9"]', 3, "published", "alonso2021.table1"),
    ("seed = 1", "seed = 1" + "0" * 5000, 3, "", "thousands of digits"),
    ("seed = 1", "seed = 0x1" + "0" * 5000, 3, "seed", "a number of thousands of digits"),
    ("[probe.fast]", '[probe."a/b"]', 5, "probe.'a/b'", "cannot name a condition"),
    ("[[deadline]]", "[deadline]", 17, "deadline", "write [[deadline]] for tables"),
    (
        "[probe.fast]",
        "[probe]\nfast = 5\n[probe.x]",
        6,
        "probe.fast",
        "5 is not a table; write a ta",
    ),
    ("instances = 8", '"in\\u001b[2J" = 8', 9, "stressor.heavy.'in\\x1b[2J'", "unknown key"),
    ("seed = 1", "seed = ", 3, "", "is not TOML"),
    ("seed = 1", "seed = 1\nseed = 2", 4, "", "is not TOML"),
]


@pytest.mark.parametrize(("old", "new", "line", "place", "says"), MISTAKES)
def test_each_mistake_is_one_line_with_its_place(tmp_path, old, new, line, place, says):
    assert old in SOUND
    with pytest.raises(BadInput) as mistake:
        read(tmp_path, SOUND.replace(old, new, 1))
    told = str(mistake.value)
    assert told.startswith(f"{tmp_path}/experiment.toml:{line}: {place}"), told
    assert says in told
    assert "\n" not in told


def test_arrays_nested_too_deep(tmp_path):
    with pytest.raises(BadInput, match="lie too deep; give an experiment file"):
        read(tmp_path, SOUND.replace("seed = 1", "seed = " + "[" * 5000 + "]" * 5000))


@pytest.mark.parametrize(
    ("cpus", "expected"),
    [('"0-2,5"', (0, 1, 2, 5)), ("[3, 1, 1]", (1, 3)), ('"7"', (7,))],
)
def test_cpu_lists(tmp_path, cpus, expected):
    text = SOUND.replace('period = "200 us"', f"cpus = {cpus}")
    assert read(tmp_path, text).conditions[0].engine.cpus == expected


@pytest.mark.parametrize("cpus", ['""', '"3-1"', '"a"', '"0-99999"', "[]", "[-1]", "[true]", "1"])
def test_wrong_cpu_lists(tmp_path, cpus):
    with pytest.raises(BadInput, match=r":7: probe\.fast\.cpus: .* is not a list of CPUs"):
        read(tmp_path, SOUND.replace('period = "200 us"', f"cpus = {cpus}"))


def test_lines_are_right_after_multi_line_strings(tmp_path):
    text = SOUND.replace("seed = 1", 'description = """\n[probe.fast]\nperiode = 1\n"""')
    with pytest.raises(BadInput, match=r":10: probe\.fast\.periode"):
        read(tmp_path, text.replace("period =", "periode ="))


def test_unreadable_files(tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "folder.toml").mkdir()
    for name, says in (
        ("absent.toml", "no such file"),
        ("binary.toml", "UTF-8"),
        ("folder.toml", "directory"),
    ):
        with pytest.raises(BadInput, match=says):
            Experiment.read(tmp_path / name)
    with pytest.raises(BadInput, match="not a regular file"):
        Experiment.read(Path("/dev/zero"))
    (tmp_path / "large.toml").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(BadInput, match="larger than 1 MiB"):
        Experiment.read(tmp_path / "large.toml")


def test_an_unknown_bench_for_all_conditions(tmp_path):
    with pytest.raises(BadInput, match="--bench: 'moon' is not a bench; choose one of: host"):
        read(tmp_path, SOUND, bench="moon")


ON_BOARDS = """\
name = "boards"
[stack.real-time]
kind = "standalone"
core = "real-time"
[[condition]]
name = "xen"
bench = "virt"
stack = "xen"
probe = "interrupt"
[[condition]]
name = "real-time"
bench = "mps3-an536"
stack = "real-time"
probe = "interrupt"
"""


def obstacles(tmp_path, bench=None):
    experiment = read(tmp_path, ON_BOARDS, bench=bench)
    told = {}
    for each in experiment.conditions:
        obstacle = BENCHES[each.bench]().obstacle(each)
        told[each.name] = obstacle.reason if obstacle else None
    return told


def test_stacks_that_do_not_run_on_another_bench_are_no_mistake_of_the_file(tmp_path):
    assert obstacles(tmp_path, "mps3-an536") == {
        "xen": "the stack xen does not run on mps3-an536, only on virt, zcu102",
        "real-time": None,
    }
    with pytest.raises(BadInput, match=r"xen.* is not a known stack of bench mps3-an536"):
        read(tmp_path, ON_BOARDS.replace('"virt"', '"mps3-an536"'))
    with pytest.raises(BadInput, match="'moon' is not a known stack of bench mps3-an536"):
        read(tmp_path, ON_BOARDS.replace('stack = "xen"', 'stack = "moon"'), bench="mps3-an536")


@pytest.mark.parametrize("bench", ["virt", "zcu102"])
def test_figures_of_another_core_never_stand_under_the_real_time_one(tmp_path, bench):
    told = obstacles(tmp_path, bench)
    assert told["real-time"] == f"the first core of {bench} is not a real-time core"
    assert told["xen"] is None


def test_committed_schema_is_the_present_one():
    committed = Path("experiments/experiment.schema.json").read_text()
    assert json.loads(committed) == json_schema(), "run: ./latenz schema > experiments/..."


@pytest.mark.parametrize("path", sorted(Path("experiments").glob("*.toml")), ids=str)
def test_committed_experiments_are_sound(path):
    experiment = Experiment.read(path)
    assert experiment.conditions
    assert path.read_text().startswith("#:schema ./experiment.schema.json\n")
    assert path.stem == experiment.file.name
