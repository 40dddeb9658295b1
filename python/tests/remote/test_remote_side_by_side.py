"""Several targets of one experiment, measured at the same time."""

import json
import signal
from pathlib import Path

import pytest
from remote_targets import eventually, latenz, left_folders

from latenz.benches.target import TargetBench
from latenz.errors import BadInput, OutOfReach
from latenz.experiment.progress import Progress
from latenz.experiment.runner import run_experiment
from latenz.experiment.schema import Experiment
from latenz.store.run import Run

PROBE = """name = "rack"
duration = "{duration}"
[probe.gentle]
engine = "wakeup"
period = "2 ms"
policy = "other"
cpus = "0"
"""
TWO = (
    PROBE
    + """
[target.one]
url = "local:"
[target.two]
url = "ssh://two"
[matrix]
target = ["one", "two"]
probe = ["gentle"]
"""
)
MINE = """
[[condition]]
name = "mine"
probe = "gentle"
"""
GONE = """
[target.gone]
url = "ssh://gone:0022"
[[condition]]
name = "nowhere"
target = "gone"
probe = "gentle"
"""


def written(folder: Path, text: str, duration: str = "1 s") -> Path:
    path = folder / "rack.toml"
    path.write_text(text.replace("{duration}", duration))
    return path


def span(run: Path, name: str) -> tuple[int, int]:
    """Return when the first and the last activation were due."""
    found = next(each for each in Run.open(run).sample_sets if each.metadata.name == name)
    times = [t for batch in found.batches("t_ns") for t in batch.column("t_ns").to_pylist()]
    return times[0], times[-1]


def accounts(run: Path) -> dict[str, dict]:
    told = json.loads((run / "run.json").read_text())
    return {each["condition"]: each for each in told["conditions"]}


def test_targets_are_measured_at_once_and_this_machine_alone(fake_ssh, tmp_path, marked):
    folders, run = left_folders(), tmp_path / "run"
    asked = latenz(
        "run", "--start-programs", written(tmp_path, TWO + MINE), "-o", run, "--json", marked=marked
    )
    printed, errors = asked.communicate(timeout=300)
    assert asked.returncode in (0, 3), errors
    told = json.loads(printed)
    assert told["targets"] == {"one": "local:", "two": "ssh://two"}
    assert {each["state"] for each in told["conditions"]} == {"measured"}
    one, two, mine = (span(run, f"{name}/cpu0") for name in ("one", "two", "mine"))
    assert max(one[0], two[0]) < min(one[1], two[1])  # on one machine here, thus by one clock
    assert mine[1] < min(one[0], two[0])
    info = json.loads((run / "run.json").read_text())
    assert set(info["environment"]) == {"one", "two", "host"}
    assert info["environment"]["two"]["target"]["url"] == "ssh://two"
    benches = {each["metadata"]["name"]: each["metadata"]["bench"] for each in info["sample_sets"]}
    assert benches == {"one/cpu0": "one", "two/cpu0": "two", "mine/cpu0": "host"}
    assert left_folders() == folders


def test_one_that_is_out_of_reach_keeps_no_other_waiting(fake_ssh, tmp_path, monkeypatch):
    ssh = fake_ssh.with_name("fake-ssh")
    deaf = ssh.read_text().replace('echo "$1"', '[ "$1" != gone ] || exit 255; echo "$1"')
    ssh.write_text(deaf)
    run = tmp_path / "run"
    asked = latenz("run", "--start-programs", written(tmp_path, TWO + GONE), "-o", run)
    printed, errors = asked.communicate(timeout=300)
    assert asked.returncode == 3, errors
    assert {name: each["state"] for name, each in accounts(run).items()} == {
        "one": "measured",
        "two": "measured",
        "nowhere": "not measured",
    }
    assert "ssh://gone:0022: cannot be reached" in printed
    rows = [line.split() for line in printed.splitlines()]
    assert ["gone", "ssh://gone:0022", "-", "-", "-"] in rows


@pytest.mark.parametrize("asked", ["obstacle", "describe"])
def test_one_that_is_lost_before_it_measures_does_not_end_the_others(
    fake_ssh, tmp_path, monkeypatch, asked
):
    real = getattr(TargetBench, asked)

    def answer(self, *words):
        if self.name == "two":
            raise OutOfReach("cannot be reached any longer: cut", "ssh://two", "wait")
        return real(self, *words)

    monkeypatch.setattr(TargetBench, asked, answer)
    read = Experiment.read(written(tmp_path, TWO, "100 ms"))
    with Progress(wanted=False) as progress:
        run_experiment(read, tmp_path / "run", read.conditions, progress)
    told = accounts(tmp_path / "run")
    assert {name: each["state"] for name, each in told.items()} == {
        "one": "measured",
        "two": "not measured",
    }
    assert "cannot be reached any longer: cut" in told["two"]["reason"]


def test_ctrl_c_ends_all_of_them_and_keeps_what_they_measured(fake_ssh, tmp_path, marked):
    run = tmp_path / "run"
    asked = latenz(
        "run", "--start-programs", written(tmp_path, TWO, "300 s"), "-o", run, marked=marked
    )
    journals = [run / name / "cpu0/samples.journal" for name in ("one", "two")]
    eventually(
        lambda: all(each.exists() and each.stat().st_size > 2000 for each in journals), "samples"
    )
    asked.send_signal(signal.SIGINT)
    _, errors = asked.communicate(timeout=120)
    assert asked.returncode == 130, errors
    assert {each["state"] for each in accounts(run).values()} == {"interrupted"}
    assert all(len(list(each.batches())) for each in Run.open(run).sample_sets)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_twenty_targets_at_once(fake_ssh, tmp_path, marked):
    names = [f"t{number}" for number in range(20)]
    tables = "".join(f'[target.{name}]\nurl = "ssh://{name}"\n' for name in names)
    matrix = f'[matrix]\ntarget = {json.dumps(names)}\nprobe = ["gentle"]\n'
    run = tmp_path / "run"
    asked = latenz(
        "run", "--start-programs", written(tmp_path, PROBE + tables + matrix, "5 s"), "-o", run
    )
    _, errors = asked.communicate(timeout=500)
    assert asked.returncode in (0, 3), errors
    assert {name: each["state"] for name, each in accounts(run).items()} == dict.fromkeys(
        names, "measured"
    )
    spans = [span(run, f"{name}/cpu0") for name in names]
    assert max(begin for begin, _ in spans) < min(end for _, end in spans)


def test_a_file_reaches_no_machine_without_a_word(fake_ssh, tmp_path):
    asked = latenz("run", written(tmp_path, TWO), "-o", tmp_path / "run")
    _, errors = asked.communicate(timeout=100)
    assert (asked.returncode, errors.count("\n")) == (2, 1)
    assert "would measure other machines: local:, ssh://two; add --start-programs" in errors
    assert not fake_ssh.exists()
    assert not (tmp_path / "run").exists()


def test_a_named_target_and_one_of_the_command_line_exclude_each_other(fake_ssh, tmp_path):
    asked = latenz(
        "run", "--start-programs", written(tmp_path, TWO), "--on", "local:", "-o", tmp_path / "run"
    )
    _, errors = asked.communicate(timeout=100)
    assert (asked.returncode, errors.count("\n")) == (2, 1)
    assert "leave out --on" in errors


@pytest.mark.parametrize(
    ("change", "line", "told"),
    [
        (('url = "local:"', 'url = "board"'), 10, "'board' is not a target; write ssh://"),
        (('target = ["one"', 'target = ["on"'), 14, "'on'"),
        (('target = ["one"', 'bench = ["virt"]\ntarget = ["one"'), 14, "on this machine, not on"),
        (("one", "virt"), 14, "'virt' is the name of a bench"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path, change, line, told):
    path = written(tmp_path, TWO.replace(*change))
    with pytest.raises(BadInput) as refused:
        Experiment.read(path)
    assert told in str(refused.value)
    assert str(refused.value).startswith(f"{path}:{line}:")
