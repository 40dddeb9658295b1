"""What goes wrong on a board is told in one line, kept from the others, and loses no sample."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from latenz.boards.places import ENVIRONMENTS
from latenz.experiment.progress import Progress
from latenz.experiment.runner import run_experiment
from latenz.experiment.schema import Experiment
from latenz.stacks import Standalone
from latenz.store.run import Run

pytestmark = pytest.mark.boots

HERE = Path(__file__).parent
LATENZ = Path(__file__).parents[3] / "latenz"
LONG = 15000

EXPERIMENT = """
name = "faults"
[probe.long]
engine = "interrupt"
samples = {samples}
period = "{period}"
[[condition]]
name = "spoiled"
bench = "virt"
stack = "standalone"
probe = "long"
[[condition]]
name = "next"
bench = "mps3-an536"
stack = "standalone"
probe = "interrupt"
"""


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    """An experiment of two conditions, the first on an emulator that is spoiled."""

    def make(how: str | None, environment=lambda text: text, **changes) -> Experiment:
        words = {"samples": LONG, "period": "100 us"} | changes
        path = tmp_path / "faults.toml"
        path.write_text(EXPERIMENT.format(**words))
        own = tmp_path / "config" / "latenz" / "virt.yaml"
        own.parent.mkdir(parents=True)
        text = (ENVIRONMENTS / "virt.yaml").read_text()
        if how is not None:
            tool = tmp_path / "qemu"
            tool.write_text(
                f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(HERE)!r})\n"
                f"import sabotage\nsys.exit(sabotage.main({how!r}))\n"
            )
            tool.chmod(0o755)
            text = text.replace("qemu: qemu-system-aarch64", f"qemu: {tool}")
        own.write_text(environment(text))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        return Experiment.read(path)

    return make


def run(experiment: Experiment, folder: Path) -> dict[str, dict]:
    run_experiment(experiment, folder, experiment.conditions, Progress(wanted=False))
    return {account["condition"]: account for account in Run.open(folder).info.conditions}


def check_next(told: dict[str, dict], folder: Path) -> None:
    """The condition after the spoiled one was measured, and the run can be read."""
    assert told["next"]["state"] == "measured"
    names = [each.metadata.name for each in Run.open(folder).sample_sets]
    assert "next/interrupt" in names


LINUX = """
name = "faults"
[[condition]]
name = "spoiled"
bench = "virt"
stack = "linux"
stressor = "stress-ng-cpu"
probe = "cyclictest"
duration = "50 ms"
[[condition]]
name = "next"
bench = "mps3-an536"
stack = "standalone"
probe = "interrupt"
"""


def test_linux_that_panics(experiment, tmp_path):
    path = experiment("no first program").path
    path.write_text(LINUX)
    told = run(Experiment.read(path), tmp_path / "run")
    assert told["spoiled"]["state"] == "failed"
    assert told["spoiled"]["reason"].startswith("Kernel panic - not syncing")
    check_next(told, tmp_path / "run")


def test_load_that_dies_is_named_with_the_samples(experiment, tmp_path):
    path = experiment("no stress-ng").path
    path.write_text(LINUX)
    told = run(Experiment.read(path), tmp_path / "run")
    [kept] = [e for e in Run.open(tmp_path / "run").sample_sets if "spoiled" in e.metadata.name]
    assert any("the load ended before measuring" in note for note in kept.metadata.notes)
    check_next(told, tmp_path / "run")


def test_damaged_device_tree(experiment, tmp_path):
    path = experiment("damaged tree").path
    path.write_text(LINUX.replace("linux", "xen").replace("cyclictest", "interrupt"))
    path.write_text(path.read_text().replace('duration = "50 ms"\n', ""))
    told = run(Experiment.read(path), tmp_path / "run")
    assert "the emulator did not start" in told["spoiled"]["reason"]
    check_next(told, tmp_path / "run")


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("truncated kernel", "the emulator did not start: "),
        ("damaged parameters", "parameter"),
        ("killed", "the emulator was killed by signal 9"),
    ],
)
def test_spoiled_start(experiment, tmp_path, how, reason):
    told = run(experiment(how, period="1 ms"), tmp_path / "run")
    spoiled = told["spoiled"]
    assert spoiled["state"] == "failed"
    assert reason in spoiled["reason"]
    assert "\n" not in spoiled["reason"]
    check_next(told, tmp_path / "run")


def test_dropped_serial_bytes_lose_frames_but_not_the_others(experiment, tmp_path):
    told = run(experiment("dropping"), tmp_path / "run")
    spoiled = told["spoiled"]
    assert spoiled["state"] == "failed"
    assert "not all samples arrived" in spoiled["reason"]
    assert spoiled["frames"]["damaged"] + spoiled["frames"]["missing"] > 0
    kept = next(e for e in Run.open(tmp_path / "run").sample_sets if "spoiled" in e.metadata.name)
    latencies = [x for batch in kept.batches("latency_ns") for x in batch.column(0).to_pylist()]
    assert LONG // 2 < len(latencies) < LONG
    assert len(set(latencies)) <= 3, "a damaged value was taken for a sample"
    assert any("did not arrive" in note for note in kept.metadata.notes)


def test_noise_between_frames_is_harmless(experiment, tmp_path):
    told = run(experiment("noisy"), tmp_path / "run")
    assert told["spoiled"]["state"] == "measured"
    assert told["spoiled"]["frames"]["missing"] == 0


def test_board_that_says_nothing(experiment, tmp_path, monkeypatch):
    patient = Standalone.payload

    def payload(stack):
        made = patient(stack)
        return replace(made, boot_limit_s=3) if stack.job.bench == "virt" else made

    monkeypatch.setattr(Standalone, "payload", payload)
    told = run(experiment("silent", period="1 s"), tmp_path / "run")
    assert "nothing measured was received in 3 s" in told["spoiled"]["reason"]
    check_next(told, tmp_path / "run")


def test_emulator_that_is_not_there(experiment, tmp_path):
    text = ("qemu: qemu-system-aarch64", "qemu: qemu-of-another-world")
    told = run(experiment(None, lambda t: t.replace(*text)), tmp_path / "run")
    assert "qemu-of-another-world is not installed" in told["spoiled"]["reason"]
    check_next(told, tmp_path / "run")


def test_machine_that_the_emulator_does_not_know(experiment, tmp_path):
    told = run(
        experiment(None, lambda t: t.replace("machine: virt", "machine: vurt")), tmp_path / "run"
    )
    assert "the emulator did not start" in told["spoiled"]["reason"]
    assert "vurt" in told["spoiled"]["reason"]
    check_next(told, tmp_path / "run")


def test_environment_that_is_no_yaml(experiment, tmp_path):
    told = run(experiment(None, lambda _t: "targets: ["), tmp_path / "run")
    assert "labgrid does not accept it" in told["spoiled"]["reason"]
    check_next(told, tmp_path / "run")


def test_interrupted_while_booting_or_measuring(experiment, tmp_path):
    path = experiment(None, period="1 ms", samples=LONG).path
    program = subprocess.Popen(
        [LATENZ, "run", path, "-o", tmp_path / "run", "--only", "spoiled"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    log = tmp_path / "run" / "spoiled" / "emulator.log"
    while not log.exists() and program.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)
    program.send_signal(signal.SIGINT)
    _out, errors = program.communicate(timeout=600)
    assert program.returncode == 130, errors
    assert b"Traceback" not in errors
    assert Run.open(tmp_path / "run").info.status == "interrupted"
    assert not _emulators_of(tmp_path)


def test_nothing_outlives_latenz_when_it_is_killed(experiment, tmp_path):
    path = experiment(None, period="1 s", samples=LONG).path
    program = subprocess.Popen(
        [LATENZ, "run", path, "-o", tmp_path / "run", "--only", "spoiled"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not _emulators_of(tmp_path) and program.poll() is None:
        time.sleep(0.05)
    program.kill()
    program.wait()
    until = time.monotonic() + 60
    while _emulators_of(tmp_path) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _emulators_of(tmp_path)


def _emulators_of(folder: Path) -> list[int]:
    """Return the QEMU processes that write into a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"qemu-system" in words[0] and any(os.fsencode(folder) in word for word in words):
            found.append(int(process.name))
    return found


def test_no_room_for_the_run(experiment, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if os.geteuid() != 0 or subprocess.call(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "latenz-test", small]
    ):
        pytest.skip("needs the right to mount")
    try:
        done = subprocess.run(
            [LATENZ, "run", experiment(None).path, "-o", small / "run"],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 2, done.stderr
        assert "No space left" in done.stderr
        assert "Traceback" not in done.stderr
        Run.open(small / "run")
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_two_benches_side_by_side(experiment, tmp_path):
    read = experiment(None, samples=400)
    told: dict[str, dict] = {}

    def one(name: str) -> None:
        done = subprocess.run(
            [LATENZ, "run", read.path, "-o", tmp_path / name, "--json"],
            capture_output=True,
            check=False,
            timeout=600,
        )
        told[name] = {"returncode": done.returncode, "errors": done.stderr}

    both = [threading.Thread(target=one, args=(name,)) for name in ("a", "b")]
    for each in both:
        each.start()
    for each in both:
        each.join()
    hashes = [
        {c["condition"]: c.get("samples_sha256") for c in Run.open(tmp_path / name).info.conditions}
        for name in ("a", "b")
    ]
    assert hashes[0] == hashes[1], told
    assert all(hashes[0].values())
