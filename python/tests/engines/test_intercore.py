"""Messages between two CPUs, by the real probe: every sample is kept, every mistake is told."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from latenz.engines import ENGINES, IntercoreSettings
from latenz.engines.intercore import ACCOUNT_FILE, IntercoreAccount, board_obstacle
from latenz.errors import BadInput
from latenz.experiment.schema import Experiment
from latenz.programs import probe_program
from latenz.store.journal import Journal
from latenz.store.run import Run

KINDS = ("half-round-trip", "one-way", "raw")
TWO_CPUS = len(os.sched_getaffinity(0)) >= 2
pytestmark = pytest.mark.skipif(not TWO_CPUS, reason="messages between processors need two CPUs")

MIXED = """name = "mixed"
published = ["coppik2025.figure3"]

[probe.sent]
engine = "intercore"
through = "exchange"
bytes = 64
samples = 300

[[condition]]
name = "host"
probe = "sent"
"""


def run_probe(folder, *options):
    command = [str(probe_program("latenz-intercore")), f"--output={folder}", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def latencies(folder, kind):
    frames = list(Journal(folder / kind / "samples.journal").frames())
    return np.concatenate([frame["latency_ns"] for frame in frames]) if frames else np.array([])


def settings(**known):
    return IntercoreSettings.model_validate({"engine": "intercore", **known})


@pytest.mark.parametrize(
    ("through", "bytes_"),
    [
        ("raw", None),
        ("mailbox", 1),
        ("exchange", 64),
        ("latest", 256),
        ("ring", 4096),
        ("boost-spsc", 64),
        ("eventfd", 8),
        ("pipe", 4096),
        ("futex", 2),
        ("posix-mq", 1024),
    ],
)
def test_every_way_leaves_all_samples_of_each_set(tmp_path, through, bytes_):
    size = [f"--bytes={bytes_}"] if bytes_ else []
    done = run_probe(tmp_path, f"--through={through}", "--samples=123", "--block=10", *size)
    if "when this program was built" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    account = IntercoreAccount.read(tmp_path / ACCOUNT_FILE)
    assert account.status == "complete"
    assert account.damaged == 0
    assert len(account.rounds) == 13
    for kind in KINDS:
        found = latencies(tmp_path, kind)
        assert len(found) == 123
        assert account.extremes_ns[kind] == (found.min(), found.max())
        assert found[account.worst_index[kind]] == found.max()
    assert (latencies(tmp_path, "half-round-trip") > 0).all()


def long_measurement(folder):
    """Return a command that goes on for long: as many messages as there may be, by a slow way."""
    program = str(probe_program("latenz-intercore"))
    return [program, f"--output={folder}", "--samples=1000000", "--through=eventfd"]


def wait_for_latencies(folder):
    limit = time.monotonic() + 60
    while not list(latencies_so_far(folder)):
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_interrupting_keeps_what_was_measured(tmp_path):
    probe = subprocess.Popen(long_measurement(tmp_path))
    wait_for_latencies(tmp_path)
    probe.send_signal(signal.SIGINT)
    assert probe.wait(timeout=600) == 130
    account = IntercoreAccount.read(tmp_path / ACCOUNT_FILE)
    assert account.status == "interrupted"
    kept = {kind: len(latencies(tmp_path, kind)) for kind in KINDS}
    assert kept["half-round-trip"] > 0
    told = json.loads((tmp_path / ACCOUNT_FILE).read_bytes())["sets"]
    assert {kind: told[kind]["n"] for kind in KINDS} == kept


def latencies_so_far(folder):
    journal = folder / "half-round-trip" / "samples.journal"
    return Journal(journal).frames() if journal.exists() and journal.stat().st_size > 32 else ()


@pytest.mark.parametrize("side", [0, 1])
def test_a_killed_side_is_told_and_ends_the_measurement(tmp_path, side):
    probe = subprocess.Popen(long_measurement(tmp_path), stderr=subprocess.PIPE, text=True)
    children = Path(f"/proc/{probe.pid}/task/{probe.pid}/children")
    wait_for_latencies(tmp_path)
    victim = int(children.read_text().split()[side])
    os.kill(victim, signal.SIGKILL)
    _, told = probe.communicate(timeout=600)
    assert probe.returncode == 3
    assert "was ended by signal 9; the samples before it are kept" in told
    assert len(told.splitlines()) == 1
    assert len(latencies(tmp_path, "raw")) > 0


@pytest.mark.parametrize(
    "options",
    [
        ["--bytes=3"],
        ["--through=raw", "--bytes=1"],
        ["--cpus=0"],
        ["--cpus=0,0"],
        ["--samples=0"],
        ["--through=telepathy"],
        ["--wait=sleep"],
        ["--unknown"],
    ],
)
def test_the_probe_refuses_in_one_line(tmp_path, options):
    done = run_probe(tmp_path / "out", *options)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("latenz-intercore: --")
    assert not (tmp_path / "out").exists()


def test_one_cpu_is_told(tmp_path, small_cpuset):
    cpu = min(os.sched_getaffinity(0))
    command = [str(probe_program("latenz-intercore")), f"--output={tmp_path / 'out'}"]
    inside = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(small_cpuset), *command]
    done = subprocess.run(inside, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"latenz-intercore: only CPU {cpu} can be entered; messages between processors need two\n"
    )


def test_a_recording_is_not_overwritten(tmp_path):
    assert run_probe(tmp_path, "--samples=5").returncode == 0
    before = (tmp_path / ACCOUNT_FILE).read_bytes()
    done = run_probe(tmp_path, "--samples=5")
    assert done.returncode == 2
    assert "holds a recording already" in done.stderr
    assert (tmp_path / ACCOUNT_FILE).read_bytes() == before


def test_an_experiment_leaves_three_sets_a_condition(tmp_path):
    (tmp_path / "mixed.toml").write_text(MIXED)
    run = tmp_path / "run"
    command = [sys.executable, "-m", "latenz", "run", str(tmp_path / "mixed.toml"), "-o", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    opened = Run.open(run)
    assert {each.metadata.name for each in opened.sample_sets} == {f"host/{k}" for k in KINDS}
    for each in opened.sample_sets:
        assert each.metadata.time_base == "silicon"
        assert each.metadata.condition == "host"
        assert sum(batch.num_rows for batch in each.batches("latency_ns")) == 300
    main = next(e for e in opened.sample_sets if e.metadata.name == "host/half-round-trip")
    assert main.metadata.from_event.startswith("exchange: 64 bytes")
    assert any("times the raw limit" in note for note in main.metadata.notes)


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ({"through": "raw", "bytes": 8}, "raw carries no message"),
        ({"bytes": 12}, "powers of two"),
        ({"bytes": 8192}, "4096"),
        ({"through": "pipe", "memory": "ocm"}, "no choice of memory"),
        ({"through": "rpmsg", "bytes": 512}, "a buffer of rpmsg carries 496 bytes"),
        (
            {"through": "latest", "wait": "doorbell"},
            "choose one of: mailbox, exchange, ring, rpmsg",
        ),
        ({"bytes": 16, "wait": "doorbell"}, "bytes = 8, 64 or 256"),
        ({"cpus": [0]}, "cpus must be two"),
        ({"samples": 0}, "1"),
    ],
)
def test_settings_that_do_not_fit_are_refused_where_they_stand(tmp_path, known, told):
    lines = [f"{key} = {json.dumps(value)}" for key, value in known.items()]
    probe = "\n".join(["[probe.sent]", 'engine = "intercore"', *lines])
    path = tmp_path / "wrong.toml"
    path.write_text(f'name = "wrong"\n{probe}\n[[condition]]\nname = "host"\nprobe = "sent"\n')
    with pytest.raises(BadInput, match=told):
        Experiment.read(path)


def test_what_each_place_does_not_have_is_told():
    host = ENGINES["intercore"].obstacle
    assert "boards measure them" in str(host(settings(through="interrupt")))
    assert "boards measure them" in str(host(settings(wait="doorbell")))
    assert "processors of a board" in str(host(settings(through="rpmsg")))
    assert 'no memory "ocm"' in str(host(settings(memory="ocm")))
    assert host(settings()) is None
    for memory in ("ddr-cci", "tcm"):
        wanted = settings(memory=memory)
        assert "exists on silicon only" in str(board_obstacle(wanted, emulated=True))
        assert board_obstacle(wanted, emulated=False) is None
    assert board_obstacle(settings(memory="ocm"), emulated=True) is None
    assert board_obstacle(settings(through="interrupt"), emulated=True) is None
    assert "bench host" in str(board_obstacle(settings(through="futex"), emulated=True))
    assert "bench host" in str(board_obstacle(settings(), emulated=True))


def account(tmp_path, **changes):
    told = {
        "program_version": "1",
        "status": "complete",
        "clock": "time-stamp counter",
        "stamp_pair_ns": 20,
        "damaged": 0,
        "involuntary_switches": [0, 0],
        "max_ns": 500,
        "ticks_per_second": 1_000_000_000,
        "placements": 2,
        "sets": {k: {"n": 4, "min_ns": 90, "max_ns": 500, "worst_index": 3} for k in KINDS},
        # Two addresses with raw limits of 100 and 200 ns; ratios 1.0, 1.5, 2.0, 3.0.
        "rounds": [[200, 200], [400, 600], [200, 400], [400, 1200]],
        **changes,
    }
    path = tmp_path / ACCOUNT_FILE
    path.write_text(json.dumps(told))
    return IntercoreAccount.read(path)


def test_the_ratio_is_the_median_of_adjacent_rounds(tmp_path):
    assert account(tmp_path).ratio == 1.75
    assert account(tmp_path, rounds=[]).ratio is None


def test_the_raw_limit_moves_only_if_it_does_at_the_same_address(tmp_path):
    assert account(tmp_path).raw_moved() == 1.0
    moved = account(tmp_path, rounds=[[100, 100], [400, 400], [300, 300], [400, 400]])
    assert moved.raw_moved() == pytest.approx(3.0)
    assert any("moved by 200 %" in note for note in moved.notes("raw"))


def test_doubts_are_told(tmp_path):
    def notes(kind, **changes):
        return " ".join(account(tmp_path, **changes).notes(kind))

    late = {"half-round-trip": {"n": 4, "min_ns": 90, "max_ns": 4_000_000, "worst_index": 2}}
    assert "maximum of 4.0 ms (sample 2)" in notes("half-round-trip", sets=late)
    early = {"one-way": {"n": 4, "min_ns": -3, "max_ns": 500, "worst_index": 2}}
    assert "clocks differ" in notes("one-way", sets=early)
    assert "3 messages came back damaged" in notes("raw", damaged=3)
    assert "ended early: disk full" in notes("raw", status="disk full")
    assert "doubt" not in notes("raw")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"sets": 1}', "\x00"])
def test_a_damaged_account_is_told(tmp_path, text):
    path = tmp_path / ACCOUNT_FILE
    path.write_text(text)
    with pytest.raises(BadInput, match="is not an account of latenz-intercore"):
        IntercoreAccount.read(path)
