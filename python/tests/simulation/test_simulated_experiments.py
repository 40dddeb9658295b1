"""Simulated conditions as a user has them: the whole command, real files, real signals."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from latenz.analysis import simulate
from latenz.errors import BadInput
from latenz.experiment.schema import Experiment
from latenz.store.run import Run
from latenz.system import read_system

EXPERIMENTS = Path(__file__).parents[3] / "experiments"

SYSTEM = """\
[platform]
slot_switch = "1 us"
monitor = "1 us"
schedule = "2 us"
context_switch = "3 us"

[policy]
mode = "paper"

[[slot]]
partition = "P1"
length = "1 ms"

[[slot]]
partition = "P2"
length = "1 ms"

[[source]]
name = "can"
partition = "P1"
top = "1 us"
bottom = "10 us"
arrival = { kind = "exponential", mean = "300 us" }
monitor = { distances = ["300 us"] }
"""
DOOR = """
[[source]]
name = "door"
partition = "P2"
top = "1 us"
bottom = "10 us"
arrival = { kind = "periodic", period = "1 ms" }
"""
TRACE = SYSTEM.replace(
    '{ kind = "exponential", mean = "300 us" }', '{ kind = "trace", file = "can.csv", length = 2 }'
)
EXPERIMENT = """\
name = "short"
seed = 11

[probe.gateway]
engine = "simulation"
system = "systems/gateway.toml"
irqs = 2000
seed = 3

[[condition]]
name = "quiet"
bench = "simulation"
probe = "gateway"

[[deadline]]
name = "generous"
limit = "10 s"
allowed = "50%"
burst = "1 us"
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "systems").mkdir()
    (tmp_path / "systems" / "gateway.toml").write_text(SYSTEM)
    return tmp_path


def start(place, text, *options):
    (place / "short.toml").write_text(text)
    return subprocess.Popen(
        [sys.executable, "-m", "latenz", "run", "short.toml", "-o", "run", *options],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(place, text, *options):
    process = start(place, text, "--accept-emulated", *options)
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def latenz(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "latenz", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_condition_is_what_the_simulator_gives(place):
    code, out, err = run(place, EXPERIMENT, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["status"] == "complete"
    [found] = document["sample_sets"]
    expected = simulate(read_system(place / "systems" / "gateway.toml"), irqs=2000, seed=3).of(
        "can"
    )
    assert found["name"] == "quiet/can"
    assert found["time_base"] == "simulated"
    assert [found["n"], found["min_ns"], found["mean_ns"], found["max_ns"]] == [
        expected.n,
        expected.min_ns,
        expected.mean_ns,
        expected.max_ns,
    ]
    for handling, share in found["handled"].items():
        assert share == getattr(expected, handling) / expected.n
    assert found["deadlines"][0]["verdict"] == "meets"


def test_the_run_says_all_about_itself(place):
    assert run(place, EXPERIMENT)[0] == 0
    opened = Run.open(place / "run")
    [account] = opened.info.conditions
    [system] = account["systems"]
    assert system["text"] == SYSTEM
    assert (system["mode"], system["seed"], system["irqs"]) == ("paper", 3, 2000)
    assert opened.info.environment["simulation"]["latenz"]["version"]
    [sample_set] = opened.sample_sets
    metadata = sample_set.metadata
    assert metadata.tool_version
    assert metadata.stack == "tdma, mode paper"
    assert metadata.from_event == "arrival of the interrupt"
    [batch] = sample_set.batches()
    assert batch.schema.names == ["latency_ns", "t_ns", "handling"]
    t_ns = batch.column("t_ns").to_pylist()
    assert t_ns == sorted(t_ns)


def test_every_command_reads_it(place):
    assert run(place, EXPERIMENT)[0] == 0
    folder = place / "run"
    assert "interposed" in latenz("show", folder).stdout
    sql = "SELECT handling, count(*) AS n FROM samples GROUP BY 1 ORDER BY 1"
    rows = json.loads(latenz("query", sql, folder, "--json").stdout)["rows"]
    assert [row[0] for row in rows] == ["delayed", "direct", "interposed"]
    assert sum(row[1] for row in rows) == 2000
    latenz("compare", folder, folder, "--json")
    latenz("export", folder, "--to", "csv", "-o", place / "run.csv")
    assert (place / "run.csv").stat().st_size > 10_000
    latenz("report", folder, "-o", place / "run.html")
    assert (place / "run.html").stat().st_size > 100_000


def test_sources_and_systems_get_sets_of_their_own(place):
    (place / "systems" / "two.toml").write_text(SYSTEM + DOOR)
    text = EXPERIMENT.replace(
        '"systems/gateway.toml"', '{ one = "systems/gateway.toml", two = "systems/two.toml" }'
    )
    code, out, _ = run(place, text, "--json")
    assert code == 0
    found = {each["name"]: each for each in json.loads(out)["sample_sets"]}
    alone = ["quiet/one", "quiet/two/can", "quiet/two/door"]
    assert list(found) == [*alone, "quiet/together"]
    together = found["quiet/together"]
    parts = [found[name] for name in alone]
    assert together["n"] == sum(part["n"] for part in parts) == 4000
    mean_ns = sum(part["n"] * part["mean_ns"] for part in parts) / 4000
    assert together["mean_ns"] == pytest.approx(mean_ns, rel=1e-12)
    assert together["max_ns"] == max(part["max_ns"] for part in parts)
    direct = sum(part["n"] * part["handled"]["direct"] for part in parts) / 4000
    assert together["handled"]["direct"] == pytest.approx(direct, rel=1e-12)
    assert "notes" not in together or together["notes"] == []
    assert found["quiet/two/door"]["handled"]["interposed"] == 0
    rows = json.loads(
        latenz("query", "SELECT count(*) FROM samples", place / "run", "--json").stdout
    )["rows"]
    assert rows == [[4000]]


def test_repetitions_draw_other_arrivals(place):
    code, out, _ = run(place, "repetitions = 3\n" + EXPERIMENT, "--json")
    assert code == 0
    found = {each["name"]: each["mean_ns"] for each in json.loads(out)["sample_sets"]}
    described = read_system(place / "systems" / "gateway.toml")
    for repetition in (1, 2, 3):
        expected = simulate(described, irqs=2000, seed=2 + repetition).of("can").mean_ns
        assert found[f"quiet-r{repetition}/can"] == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_keeps_what_was_simulated(place, number):
    text = EXPERIMENT.replace("irqs = 2000", "irqs = 500_000_000")
    process = start(place, text, "--json")
    folder = place / "run" / "quiet"
    deadline = time.monotonic() + 120
    while not any(path.stat().st_size > 1000 for path in folder.glob("*irqs*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (130, "")
    [found] = json.loads(out)["sample_sets"]
    assert 0 < found["n"] < 500_000_000
    opened = Run.open(place / "run")
    assert opened.info.status == "interrupted"
    assert opened.info.conditions[0]["state"] == "interrupted"
    assert "interrupted" in opened.sample_sets[0].metadata.notes[0]
    assert not list(folder.glob("*irqs*"))


def test_learning_ends_where_it_should(place):
    times_ns = range(0, 300_000_000, 300_000)
    rows = "".join(f"can,{time_ns}\n" for time_ns in times_ns)
    (place / "systems" / "can.csv").write_text(f"source,time_ns\n{rows}")
    (place / "systems" / "gateway.toml").write_text(TRACE)
    text = EXPERIMENT.replace("irqs = 2000", "learn = { fraction = 0.25, length = 2, allow = 0.5 }")
    code, out, _ = run(place, text, "--json")
    assert code == 0
    learning, monitored = json.loads(out)["sample_sets"]
    assert (learning["name"], learning["n"]) == ("quiet/learning", 250)
    assert (monitored["name"], monitored["n"]) == ("quiet/monitored", 750)
    assert learning["handled"]["interposed"] == 0
    assert monitored["handled"]["interposed"] > 0
    [system] = Run.open(place / "run").info.conditions[0]["systems"]
    assert system["learned"]["can"] == {
        "events": 250,
        "from_ns": 75_000_000,
        "observed_ns": [300_000, 600_000],
        "distances_ns": [600_000, 1_200_000],
    }


# --- mistakes, each told in one line with its place

MISTAKES = [
    ("systems/gateway.toml", "systems/gatewy.toml", 6, "probe.gateway.system", "there is no file"),
    ("systems/gateway.toml", ".", 6, "probe.gateway.system", "there is no file"),
    ('"systems/gateway.toml"', '""', 6, "probe.gateway.system", "'' names no system file"),
    ('"systems/gateway.toml"', "{}", 6, "probe.gateway.system", "{} names no system file"),
    ('"systems/gateway.toml"', "7", 6, "probe.gateway.system", "7 names no system file"),
    ("seed = 3", 'mode = "papr"', 8, "probe.gateway.mode", "'papr'"),
    ("irqs = 2000", "", 4, "probe.gateway.irqs", "'can' have no end"),
    ("irqs = 2000", "irqs = 0", 7, "probe.gateway.irqs", "0 is wrong"),
    ("irqs = 2000", "irqs = 2000\ncpus = [0]", 8, "probe.gateway.cpus", "unknown key"),
    ("seed = 3", "learn = {}", 8, "probe.gateway.learn", "are drawn, not recorded"),
    ("seed = 3", "learn = { allow = 0 }", 8, "probe.gateway.learn", "greater than 0"),
    ('bench = "simulation"\n', "", 12, "condition[1].probe", "does not run on bench 'host'"),
    ('"gateway"\n\n', '"cyclictest"\n\n', 13, "condition[1].probe", "does not run on bench"),
    (
        '"gateway"\n\n',
        '"simulation"\n\n',
        13,
        "condition[1].probe",
        "'simulation' is not a known probe",
    ),
    ('bench = "simulation"', 'bench = "simulator"', 12, "condition[1].bench", "did you mean"),
    (
        'probe = "gateway"\n',
        'probe = "gateway"\nstack = "linux"\n',
        14,
        "condition[1].stack",
        "'linux' is not a known stack of bench simulation",
    ),
    (
        'probe = "gateway"\n',
        'probe = "gateway"\nstressor = "memory"\n',
        14,
        "condition[1].stressor",
        "'memory' does not run on bench 'simulation'",
    ),
    (
        'probe = "gateway"\n',
        'probe = "gateway"\nduration = "1 s"\n',
        14,
        "condition[1].duration",
        "until its last interrupt",
    ),
]


@pytest.mark.parametrize(("old", "new", "line", "key", "said"), MISTAKES)
def test_a_mistake_is_told_with_its_place(place, old, new, line, key, said):
    assert old in EXPERIMENT
    path = place / "short.toml"
    path.write_text(EXPERIMENT.replace(old, new, 1))
    with pytest.raises(BadInput) as caught:
        Experiment.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: {key}"), message
    assert said in message
    assert "\n" not in message


def test_a_mistake_in_a_system_is_told_with_its_place_there(place):
    system = place / "systems" / "gateway.toml"
    system.write_text(SYSTEM.replace('bottom = "10 us"', 'bottom = "10 parsec"'))
    code, out, err = run(place, EXPERIMENT)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "systems/gateway.toml:22: source[1].bottom" in err
    assert "parsec" in err


@pytest.mark.parametrize(
    ("learn", "said"),
    [
        ("learn = { length = 9 }\n", "do not show 9 distances"),
        ('learn = {}\nmode = "plain"\n', "no monitor that could learn"),
    ],
)
def test_learning_that_cannot_be(place, learn, said):
    rows = "".join(f"can,{time_ns}\n" for time_ns in range(0, 9000, 100))
    (place / "systems" / "can.csv").write_text(f"source,time_ns\n{rows}")
    (place / "systems" / "gateway.toml").write_text(TRACE)
    code, _, err = run(place, EXPERIMENT.replace("irqs = 2000\n", learn))
    assert code == 2
    assert err.count("\n") == 1
    assert "short.toml:7: probe.gateway.learn" in err
    assert said in err


def test_measured_conditions_still_need_a_duration(tmp_path):
    path = tmp_path / "short.toml"
    path.write_text('name = "short"\n[[condition]]\nname = "idle"\nprobe = "cyclictest"\n')
    with pytest.raises(BadInput, match="the key 'duration' is missing"):
        Experiment.read(path)


def test_a_duration_cannot_be_asked_of_simulations(place):
    code, _, err = run(place, EXPERIMENT, "--duration", "1s")
    assert code == 2
    assert "--duration" in err


# --- the experiments that come with Latenz


def test_the_systems_of_the_evaluation_differ_only_in_their_load():
    """Eq. (17): lambda = C'_BH / U_IRQ, with C'_BH = C_BH + C_sched + 2 C_ctx."""
    whole = read_system(EXPERIMENTS / "systems" / "beckert2014.toml")
    [timer] = whole.sources
    platform = whole.platform
    interposed_ns = timer.bottom_ns + platform.schedule_ns + 2 * platform.context_switch_ns
    for percent in (1, 5, 10):
        distance_ns = interposed_ns * 100 // percent
        for kind, least_ns in (("", 0), ("adhering-", distance_ns)):
            name = f"beckert2014-{kind}{percent}-percent.toml"
            system = read_system(EXPERIMENTS / "systems" / name)
            [source] = system.sources
            assert (system.platform, system.slots) == (whole.platform, whole.slots)
            assert (system.mode, system.latency_from) == ("paper", "top")
            assert (source.top_ns, source.bottom_ns) == (timer.top_ns, timer.bottom_ns)
            assert source.monitor.distances_ns == (distance_ns,)
            assert source.arrival.mean_ns == distance_ns
            assert source.arrival.min_distance_ns == least_ns
    ecu = read_system(EXPERIMENTS / "systems" / "beckert2014-ecu.toml")
    assert (ecu.platform, ecu.slots) == (whole.platform, whole.slots)


SIMULATED = "[!h]*"  # those that the hypervisor executes are called hypervisor-*


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synthetic") / "run"
    path = EXPERIMENTS / "beckert2014-synthetic.toml"
    done = latenz("run", path, "--only", SIMULATED, "-o", folder, "--json")
    return {each["name"]: each for each in json.loads(done.stdout)["sample_sets"]}


# condition, published average in us, least and greatest ratio of ours to it, published shares
FIGURE_6 = [
    ("plain", 2500, 0.90, 1.05, {"direct": 0.4, "interposed": 0, "delayed": 0.6}),
    ("monitored", 1200, 0.80, 1.05, {"direct": 0.4, "interposed": 0.4, "delayed": 0.2}),
    ("monitored-adhering", 150, 0.5, 1.0, {"direct": 0.4, "interposed": 0.6, "delayed": 0}),
    ("carried-adhering", 150, 0.4, 0.6, {"direct": 0.4, "interposed": 0.6, "delayed": 0}),
]


@pytest.mark.parametrize(("condition", "published_us", "least", "most", "shares"), FIGURE_6)
def test_figure_6_within_stated_factors(synthetic, condition, published_us, least, most, shares):
    loads = [synthetic[f"{condition}/load-{percent}"] for percent in (1, 5, 10)]
    together = synthetic[f"{condition}/together"]
    assert [load["n"] for load in loads] == [5000] * 3
    assert together["n"] == 15_000
    assert least <= together["mean_ns"] / 1000 / published_us <= most
    for handling, share in shares.items():
        assert together["handled"][handling] == pytest.approx(share, abs=0.09)


def test_the_same_interrupts_without_and_with_monitor(synthetic):
    for percent in (1, 5, 10):
        plain, monitored = (synthetic[f"{c}/load-{percent}"] for c in ("plain", "monitored"))
        assert plain["handled"]["direct"] == monitored["handled"]["direct"]
        assert monitored["mean_ns"] < 0.5 * plain["mean_ns"]


def test_only_the_repaired_mechanism_forgets_the_cycle(synthetic):
    """Figure 6c claims that no latency depends on the cycle; as printed, some wait a whole one."""
    assert synthetic["monitored-adhering/together"]["max_ns"] > 5_000_000
    assert synthetic["carried-adhering/together"]["max_ns"] < 160_000


# condition, published average in us, least and greatest ratio of ours to it
FIGURE_7 = [
    ("allow-100", 120, 0.6, 0.8),
    ("allow-25", 300, 0.7, 1.0),
    ("allow-12.5", 900, 1.0, 1.4),
    ("allow-6.25", 1600, 0.8, 1.0),
]


def test_figure_7_within_stated_factors(tmp_path):
    path = EXPERIMENTS / "beckert2014-ecu.toml"
    done = latenz("run", path, "--only", SIMULATED, "-o", tmp_path / "run", "--json")
    found = {each["name"]: each for each in json.loads(done.stdout)["sample_sets"]}
    for condition, published_us, least, most in FIGURE_7:
        learning, monitored = (found[f"{condition}/{phase}"] for phase in ("learning", "monitored"))
        assert (learning["n"], monitored["n"]) == (1100, 9900)
        assert 1.0 <= learning["mean_ns"] / 1000 / 2200 <= 1.15
        assert learning["handled"]["interposed"] == 0
        assert least <= monitored["mean_ns"] / 1000 / published_us <= most
    means = [found[f"{condition}/monitored"]["mean_ns"] for condition, *_ in FIGURE_7]
    assert means == sorted(means)
    assert 0 < found["allow-100/monitored"]["handled"]["delayed"] < 0.002


def test_conditions_can_be_listed_and_chosen(tmp_path):
    path = EXPERIMENTS / "beckert2014-synthetic.toml"
    simulated = [row[0] for row in FIGURE_6]
    executed = [f"hypervisor-{name}" for name in simulated]
    assert latenz("run", path, "--list").stdout.split() == simulated + executed
    chosen = latenz(
        "run", path, "--only", "[!h]*-adhering", "-o", tmp_path / "run", "--json"
    ).stdout
    found = {each["name"].split("/")[0] for each in json.loads(chosen)["sample_sets"]}
    assert found == {"monitored-adhering", "carried-adhering"}


def test_a_measuring_experiment_cannot_run_on_the_simulation_bench():
    with pytest.raises(BadInput, match="does not run on bench 'simulation'"):
        Experiment.read(EXPERIMENTS / "quick.toml", bench="simulation")
