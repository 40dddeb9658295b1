"""The robot: against a simulation of our own making in virtual time, and real, briefly."""

import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

from latenz.boards.console import Received
from latenz.engines import RobotSettings
from latenz.errors import BadInput
from latenz.experiment.schema import Experiment
from latenz.model import Metadata
from latenz.programs import probe_program
from latenz.report import open_runs, write_report
from latenz.robot_account import ACCOUNT_FILE, Control, controls
from latenz.stacks.base import Job
from latenz.stacks.guest_linux import RESULTS, linux_sets, measuring_command
from latenz.statistics import summarize
from latenz.store.journal import Journal, open_journal
from latenz.store.run import Run

MS = 1_000_000
SECOND = 1000 * MS
KINDS = ("activation", "completion")
ROBOT = Path(__file__).parents[3] / "experiments" / "robot.toml"
LIMIT_S = 120
"""How long something may take on a busy machine."""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="real-time scheduling needs root")

SHORT = """name = "short"
duration = "400 ms"

[probe.real-time]
engine = "robot"
joints = 2

[probe.ordinary]
engine = "robot"
real_time = false
priority = 70
period = "2 ms"

[[condition]]
name = "ordinary"
probe = "ordinary"

[[condition]]
name = "real-time"
probe = "real-time"

[[deadline]]
name = "control"
limit = "10 s"
"""


def command(*options):
    return [str(probe_program("latenz-robot")), *options]


def run_robot(folder, *options):
    arguments = command(f"--output={folder}", "--warm-up=100000000", *options)
    return subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def started(folder, *options, until_ms=300):
    """Start a robot and wait until it has recorded so many milliseconds."""
    process = subprocess.Popen(
        command(f"--output={folder}", "--warm-up=100000000", *options),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: len(due_times(folder, missing=[])) >= until_ms)
    return process


def wait_until(condition):
    give_up = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def due_times(folder, kind="activation", missing=None):
    path = folder / kind / "samples.journal"
    if missing is not None and (not path.exists() or path.stat().st_size <= 32):
        return missing
    frames = list(Journal(path).frames())
    return np.concatenate([frame["t_ns"] for frame in frames]) if frames else np.array([])


def states_of(pid):
    """Return the states of a process' threads; nothing if it is no more."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks}
    except OSError:
        return set()


def planner_of(process):
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    return int(children[0])


# ---- in virtual time ----------------------------------------------------------------------------


def waypoint(number, joint):
    """Give the angle of splitmix64, as docs/robot.md has it."""
    mask = (1 << 64) - 1
    bits = (number * 6 + joint + 1) * 0x9E3779B97F4A7C15 & mask
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & mask
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & mask
    bits ^= bits >> 31
    return (bits >> 11) / 2**52 - 1


class Way:
    """Minimum-jerk stretches between waypoints, each as short as its limits and 10 ms allow."""

    def __init__(self, joints, origin_s, until_s):
        self.stretches = []
        at, here, number = origin_s, [0.0] * joints, 0
        while at < until_s:
            number += 1
            there = [waypoint(number, joint) for joint in range(joints)]
            far = max(abs(b - a) for a, b in zip(here, there, strict=True))
            least_s = max(
                far * 15 / 8 / 4, (far * 10 / 3**0.5 / 40) ** 0.5, (far * 60 / 2000) ** (1 / 3)
            )
            lasts_s = float(np.ceil(least_s / 0.01 - 1e-9) * 0.01)
            self.stretches.append((at, lasts_s, here, there))
            at, here = at + lasts_s, there

    def at(self, joint, t_s):
        """Return position, velocity and acceleration."""
        if t_s <= self.stretches[0][0]:
            return 0.0, 0.0, 0.0
        begin, lasts_s, here, there = next(s for s in reversed(self.stretches) if t_s >= s[0])
        way = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])
        part, far = (t_s - begin) / lasts_s, there[joint] - here[joint]
        return (
            here[joint] + far * way(part),
            far * way.deriv()(part) / lasts_s,
            far * way.deriv(2)(part) / lasts_s**2,
        )


class Plant:
    """One joint: J dw/dt = T - b w, lag dT/dt = u - T; stepped by matrix exponentials."""

    def __init__(self):
        self.state = np.array([0.0, 0.0, 0.0, 0.0])  # angle, velocity, torque, command
        inertia, friction, lag_s = 0.1, 0.05, 0.0005
        self.matrix = np.array(
            [
                [0, 1, 0, 0],
                [0, -friction / inertia, 1 / inertia, 0],
                [0, 0, -1 / lag_s, 1 / lag_s],
                [0, 0, 0, 0],
            ]
        )

    def advance(self, seconds):
        self.state = expm(self.matrix * seconds) @ self.state


def simulated(instants, joints, most_missed=20):
    """Return angle, torque and error of each joint in each cycle, by our own model."""
    way = Way(joints, 0.030, instants[-1][1] / 1e9 + 0.1)
    plants = [Plant() for _ in range(joints)]
    integrals = [0.0] * joints
    now = command_at = instants[0][1]
    found = []
    for due, activation, completion in instants:
        for plant in plants:
            off = command_at + (most_missed + 1) * MS
            if activation > off > now:
                plant.advance((off - now) / 1e9)
                plant.state[3] = 0.0
                plant.advance((activation - off) / 1e9)
            else:
                plant.advance((activation - now) / 1e9)
        nominal = due + (activation - due) // MS * MS
        torques = []
        for joint, plant in enumerate(plants):
            angle, velocity = plant.state[:2]
            error = way.at(joint, activation / 1e9)[0] - angle
            wanted, wanted_velocity, _ = way.at(joint, nominal / 1e9)
            _, ahead_velocity, ahead_acceleration = way.at(joint, (nominal + MS) / 1e9)
            slip = wanted_velocity + 60 * (wanted - angle) - velocity
            integral = integrals[joint] + slip * 0.001
            torque = 30 * slip + 600 * integral + 0.1 * ahead_acceleration + 0.05 * ahead_velocity
            if abs(torque) <= 8:
                integrals[joint] = integral
            torques.append(max(-8.0, min(8.0, torque)))
            found.append((angle, torques[-1], error))
        for plant, torque in zip(plants, torques, strict=True):
            plant.advance((completion - activation) / 1e9)
            plant.state[3] = torque
        now = command_at = completion
    return found


def step(tmp_path, instants, *options):
    path = tmp_path / "instants.csv"
    rows = [",".join(map(str, row)) for row in instants]
    path.write_text("\n".join(["due_ns,activation_ns,completion_ns", *rows, ""]))
    done = subprocess.run(
        command(f"--simulate={path}", *options),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    return list(csv.DictReader(io.StringIO(done.stdout)))


def late_cycles(seed, usual_ns, miss_every):
    """Give cycles of 2 s with random lateness, some so late that up to 15 more are missed."""
    chance = random.Random(seed)
    # The first is on time, so that the planner sees it before its first publication.
    instants, due = [(MS, MS, MS + 1000)], 2 * MS
    while due <= 2 * SECOND:
        late_ns = chance.randrange(usual_ns + 1)
        if miss_every and chance.randrange(miss_every) == 0:
            late_ns += chance.randrange(1, 16) * MS
        instants.append((due, due + late_ns, due + late_ns + chance.randrange(1_000, 30_000)))
        due += (late_ns // MS + 1) * MS
    return instants


@pytest.mark.parametrize(
    ("seed", "usual_ns", "miss_every"), [(1, 0, 0), (2, 100_000, 0), (3, 600_000, 40)]
)
def test_lateness_gives_the_error_that_an_independent_model_predicts(
    tmp_path, seed, usual_ns, miss_every
):
    instants = late_cycles(seed, usual_ns, miss_every)
    rows = step(tmp_path, instants, "--joints=2")
    expected = simulated(instants, 2)
    assert len(rows) == len(expected) == 2 * len(instants)
    for row, (angle, torque, error) in zip(rows, expected, strict=True):
        assert float(row["position_rad"]) == pytest.approx(angle, abs=1e-9)
        assert float(row["command_nm"]) == pytest.approx(torque, abs=1e-6)
        assert abs(int(row["error_urad"]) - error * 1e6) <= 0.51
    # Far from the start, and with an effect of the lateness: the comparison can fail.
    assert max(abs(float(row["position_rad"])) for row in rows) > 0.5
    largest = max(abs(int(row["error_urad"])) for row in rows)
    assert largest <= 1 if usual_ns == 0 else largest > 100


@pytest.mark.parametrize(
    "text",
    ["", "due_ns\n1\n", "due_ns,activation_ns,completion_ns\n1000000,5,5\n"],
)
def test_instants_that_cannot_be_are_told_with_their_line(tmp_path, text):
    path = tmp_path / "instants.csv"
    path.write_text(text)
    done = subprocess.run(
        command(f"--simulate={path}"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert f"{path}:{2 if 'completion' in text else 1}: " in done.stderr


# ---- in real time -------------------------------------------------------------------------------


@needs_root
def test_every_cycle_is_kept_and_accounted_for(tmp_path):
    done = run_robot(tmp_path, "--duration=500000000", "--joints=3")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    account = Control.read(tmp_path / ACCOUNT_FILE)
    assert (account.status, account.policy, account.lost) == ("complete", "fifo", 0)
    assert account.memory_locked
    assert account.page_faults == 0
    assert len(account.joints) == 3
    assert max(each.error_max_urad for each in account.joints) == account.error_max_urad
    latencies = {}
    for kind in KINDS:
        path = tmp_path / kind / "samples.journal"
        assert len(due_times(tmp_path, kind)) == account.cycles
        latencies[kind] = np.concatenate([f["latency_ns"] for f in Journal(path).frames()])
        assert summarize(open_journal(path)).missed_periods == account.missed
    assert (latencies["completion"] > latencies["activation"]).all()
    assert latencies["completion"].max() == account.max_ns
    jitter = np.diff(latencies["activation"])
    assert account.jitter_max_ns == abs(jitter).max()
    assert account.jitter_rms_ns == round(float(np.sqrt(np.mean(jitter.astype(float) ** 2))))
    # No stretch and no missed cycle is left out of what is told over time.
    assert sum(account.over_time.missed) == account.missed
    assert max(account.over_time.max_urad) == account.error_max_urad


@needs_root
def test_a_stopped_servo_counts_every_cycle_it_missed_and_the_robot_stops_safely(tmp_path):
    process = started(tmp_path, "--joints=2")
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: states_of(process.pid) == {"T"})
    time.sleep(0.3)
    before = len(due_times(tmp_path))
    process.send_signal(signal.SIGCONT)
    # It follows a way again, from where it stood; some cycles before were not written yet.
    wait_until(lambda: Control.read(tmp_path / ACCOUNT_FILE).tracked > before + 500)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, told) == (130, "")
    account = Control.read(tmp_path / ACCOUNT_FILE)
    found = due_times(tmp_path)
    due = set(found.tolist())
    missed = sum(each not in due for each in range(min(due), max(due), MS))
    assert account.missed == missed > 21
    assert sum(account.over_time.missed) == missed
    assert account.safe_stops >= 1
    assert account.safe_stops == account.stops_missed + account.stops_stale


@needs_root
def test_a_killed_planner_stops_the_robot_safely_and_is_told(tmp_path):
    process = started(tmp_path, "--joints=2", "--most-missed=1000")
    os.kill(planner_of(process), signal.SIGKILL)
    _, told = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 3
    assert len(told.splitlines()) == 1
    assert "the planner's process was ended by signal 9; the robot stopped safely" in told
    account = Control.read(tmp_path / ACCOUNT_FILE)
    # For its set-points' age, unless more than a second of cycles was missed just then.
    assert account.stops_stale >= 1 or account.stops_missed >= 1
    assert "was ended by signal 9" in account.status
    assert any("stopped safely" in note for note in account.notes())
    assert len(due_times(tmp_path)) == account.cycles >= 300


def test_interrupting_keeps_what_was_measured(tmp_path):
    process = started(tmp_path, "--policy=other", "--cpu=any", "--memory=pageable")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=LIMIT_S) == 130
    account = Control.read(tmp_path / ACCOUNT_FILE)
    assert (account.status, account.cpu, account.memory_locked) == ("interrupted", None, False)
    for kind in KINDS:
        assert len(due_times(tmp_path, kind)) == account.cycles >= 300


def test_a_killed_robot_leaves_samples_and_nothing_else(tmp_path):
    process = started(tmp_path, "--policy=other")
    planner = planner_of(process)
    process.kill()
    process.wait(timeout=LIMIT_S)
    wait_until(lambda: states_of(planner) <= {"Z", "X"})
    assert not Path(f"/dev/shm/latenz-robot-{process.pid}").exists()
    assert len(due_times(tmp_path)) >= 300
    assert Control.read(tmp_path / ACCOUNT_FILE).status == "running"


@pytest.mark.parametrize(
    "options",
    [
        ["--joints=0"],
        ["--interval=99999"],
        ["--cpu=0,0"],
        ["--cpu=4096"],
        ["--policy=deadline"],
        ["--memory=unlocked"],
        ["--stale=130000000"],
        ["--duration"],
        ["--simulate=x"],
        ["--unknown"],
    ],
)
def test_the_robot_refuses_in_one_line(tmp_path, options):
    done = run_robot(tmp_path / "out", *options)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("latenz-robot: --")
    assert not (tmp_path / "out").exists()


def test_a_recording_is_not_overwritten(tmp_path):
    options = ["--policy=other", "--duration=50000000"]
    assert run_robot(tmp_path, *options).returncode == 0
    before = (tmp_path / ACCOUNT_FILE).read_bytes()
    done = run_robot(tmp_path, *options)
    assert done.returncode == 2
    assert "holds a recording already" in done.stderr
    assert (tmp_path / ACCOUNT_FILE).read_bytes() == before


# ---- as an engine -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    """Run two short conditions."""
    if os.geteuid() != 0:
        pytest.skip("real-time scheduling needs root")
    folder = tmp_path_factory.mktemp("robot")
    arguments = ["run", str(short_experiment(folder)), "-o", str(folder / "run")]
    done = subprocess.run(
        [sys.executable, "-m", "latenz", *arguments], capture_output=True, text=True, check=False
    )
    # 3: 200 cycles do not show a probability of 0.001.
    assert done.returncode == 3, done.stderr
    assert "control of the robot" in done.stdout
    return folder / "run"


def test_an_experiment_leaves_two_sets_and_the_control_of_a_condition(short_run):
    opened = Run.open(short_run)
    sets = {each.metadata.name: each for each in opened.sample_sets}
    assert set(sets) == {f"{c}/{k}" for c in ("real-time", "ordinary") for k in KINDS}
    for name, each in sets.items():
        assert each.metadata.time_base == "silicon"
        assert each.metadata.from_event == "servo cycle due"
        assert each.metadata.period_ns == (2 * MS if name.startswith("ordinary") else MS)
    assert sets["ordinary/activation"].metadata.cpu is None
    assert sets["real-time/activation"].metadata.cpu == max(os.sched_getaffinity(0))
    found = controls(short_run, sets)
    assert [name for name, _ in found] == ["ordinary", "real-time"]  # as the experiment has them
    ordinary, real_time = (control for _, control in found)
    assert (real_time.policy, real_time.memory_locked) == ("fifo", True)
    assert (ordinary.policy, ordinary.memory_locked, ordinary.dma_latency) == (
        "other",
        False,
        "off",
    )
    assert len(ordinary.joints) == 6
    for name, control in found:
        n = sum(batch.num_rows for batch in sets[f"{name}/completion"].batches("latency_ns"))
        assert n == control.cycles


def test_show_tells_the_control_error(short_run):
    names = [f"{name}/activation" for name in ("ordinary", "real-time")]
    shown = [sys.executable, "-m", "latenz", "show", str(short_run)]
    told = subprocess.run([*shown, "--json"], capture_output=True, text=True, check=True)
    document = json.loads(told.stdout)
    assert [each["name"] for each in document["control"]] == ["ordinary", "real-time"]
    for name, control in controls(short_run, names):
        [shown_control] = [each for each in document["control"] if each["name"] == name]
        assert shown_control["error_rms_urad"] == control.error_rms_urad
        assert shown_control["safe_stops"] == control.safe_stops
        assert len(shown_control["joints"]) == len(control.joints)
    table = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    assert "control of the robot" in table


def test_the_report_has_a_section_on_control(short_run, tmp_path):
    write_report(open_runs([short_run]), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert '<section id="control"' in page
    for name, control in controls(short_run, ["real-time/activation", "ordinary/activation"]):
        assert f"Control error over time, {name}: rms {control.error_rms_urad:,} µrad" in page


def test_what_a_guest_sends_becomes_the_same_sets(tmp_path):
    settings = RobotSettings.model_validate(
        {"engine": "robot", "real_time": False, "joints": 2, "warm_up": "100 ms"}
    )
    [read] = Experiment.read(short_experiment(tmp_path)).conditions[:1]
    condition = replace(read, engine=settings, duration_ns=200 * MS)
    metadata = Metadata(name="guest", time_base="virtual", condition="guest")
    job = Job("vm", condition, tmp_path / "run" / "guest", metadata)
    program, *options = measuring_command(job, (0,))
    # What the guest would do, with its folder elsewhere.
    options = [option.replace("/results", str(tmp_path / "results")) for option in options]
    subprocess.run([probe_program(program), *options], check=True, timeout=LIMIT_S)
    with tarfile.open(tmp_path / "sent.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "results", arcname=".")
    sent = Received(files={RESULTS: bytearray((tmp_path / "sent.tar.gz").read_bytes())})
    job.folder.mkdir(parents=True)
    sets = linux_sets(job, sent, (0,), machine="made")
    assert [each.metadata.name for each in sets] == [f"guest/{kind}" for kind in KINDS]
    [(condition_name, control)] = controls(tmp_path / "run", ["guest/activation"])
    assert (condition_name, control.policy, len(control.joints)) == ("guest", "other", 2)
    for each in sets:
        assert each.metadata.time_base == "virtual"
        assert each.metadata.from_event == "servo cycle due"
        assert sum(batch.num_rows for batch in each.batches("latency_ns")) == control.cycles > 0


def short_experiment(folder):
    path = folder / "short.toml"
    path.write_text(SHORT)
    return path


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cpus = [0, 1]", "runs on one CPU"),
        ("cpus = [0]\nreal_time = false", "has no CPU"),
        ("joints = 7", "6"),
        ('period = "10 ms"', "4000000"),
        ('stale = "1 s"', "120000000"),
        ('policy = "deadline"', "fifo"),
    ],
)
def test_settings_that_do_not_fit_are_refused_where_they_stand(tmp_path, text, told):
    path = tmp_path / "wrong.toml"
    path.write_text(
        f'name = "wrong"\nduration = "1 s"\n[probe.arm]\nengine = "robot"\n{text}\n'
        '[[condition]]\nname = "host"\nprobe = "arm"\n'
    )
    with pytest.raises(BadInput, match=told):
        Experiment.read(path)


def test_each_part_of_being_real_time_can_be_chosen():
    def chosen(**known):
        settings = RobotSettings.model_validate({"engine": "robot", **known})
        return settings.is_fifo, settings.is_pinned, settings.is_locked, settings.held_ns

    assert chosen() == (True, True, True, 0)
    assert chosen(real_time=False) == (False, False, False, None)
    assert chosen(real_time=False, policy="fifo") == (True, False, False, None)
    assert chosen(real_time=False, cpus=[0], pinned=True) == (False, True, False, None)
    assert chosen(locked=False, dma_latency="left alone") == (True, True, False, None)
    assert chosen(real_time=False, dma_latency="20 us") == (False, False, False, 20_000)


def test_the_experiment_takes_both_programs_through_all_loads():
    read = Experiment.read(ROBOT)
    names = {each.name for each in read.conditions}
    loads = ("idle", "stress-ng-cpu", "memory")
    assert names == {f"{probe}-{load}" for probe in ("real-time", "ordinary") for load in loads}
    assert [each.limit_ns for each in read.deadlines] == [20_000, 50_000]
    total_ns = sum(each.duration_ns + each.load.settle + 3 * SECOND for each in read.conditions)
    assert total_ns < 120 * SECOND


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"over_time": 1}', "\x00"])
def test_a_damaged_account_is_told(tmp_path, text):
    path = tmp_path / ACCOUNT_FILE
    path.write_text(text)
    with pytest.raises(BadInput, match="is not an account of latenz-robot"):
        Control.read(path)
