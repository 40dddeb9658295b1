"""A program on a target measured as it is, held against its own stamps; whatever ends first."""

import json
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from remote_targets import FAKE_SSH, eventually, latenz, left_folders

from latenz.engines.attach import missing_rights
from latenz.remote.url import SSH_COMMAND
from latenz.store.run import Run

pytestmark = pytest.mark.skipif(missing_rights() is not None, reason="watching needs root")
SOURCE = Path(__file__).parent.parent / "attach" / "rhythm.c"
MS = 1_000_000


class Rhythm:
    """A loop of 1 kHz that runs, of a name of its own."""

    def __init__(self, program: Path, stamps: Path) -> None:
        self.name = program.name
        self._stamps = stamps
        command = [str(program), "absolute", str(MS), "200000", str(stamps), "20000"]
        self.process = subprocess.Popen(command)
        comm = Path(f"/proc/{self.process.pid}/comm")
        # as it has taken its real-time priority it waits for the first due time
        eventually(lambda: comm.read_text() == f"{self.name}\n", "the program runs")
        time.sleep(0.2)

    def end(self) -> np.ndarray:
        """End it; a row for each cycle: due, first and last reading of the clock."""
        self.process.send_signal(signal.SIGUSR1)
        assert self.process.wait(120) == 0
        return np.fromfile(self._stamps, dtype="<i8").reshape(-1, 3)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rhythm") / f"rhythm{os.getpid()}"
    subprocess.run(["cc", "-O2", "-o", str(path), str(SOURCE), "-lpthread"], check=True)
    return path


@pytest.fixture
def rhythm(program: Path, tmp_path: Path) -> Iterator[Rhythm]:
    running = Rhythm(program, tmp_path / "stamps")
    yield running
    running.process.kill()
    running.process.wait()


@pytest.fixture
def ssh_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let what takes the place of ssh run the command in other circumstances."""

    def use(circumstances: str) -> None:
        path = tmp_path / "other-ssh"
        path.write_text(FAKE_SSH.replace('exec sh -c "$*"', f'exec {circumstances} sh -c "$*"'))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv(SSH_COMMAND, str(path))
        monkeypatch.setenv("FAKE_SSH_LOG", str(tmp_path / "hosts"))

    return use


def cycles(run: Path) -> dict[str, np.ndarray]:
    (found,) = Run.open(run).sample_sets
    batches = list(found.batches())
    return {
        column: np.concatenate([batch.column(column).to_numpy() for batch in batches])
        for column in found.columns
    }


def check_complete(thread: dict, found: dict[str, np.ndarray]) -> None:
    """Each due time from the first to the last is a cycle, missed, or partial."""
    grid = (int(found["t_ns"].max()) - int(found["t_ns"].min())) // MS + 1
    assert thread["n"] == len(found["t_ns"])
    assert abs(thread["n"] + thread["missed"] + thread["partial"] - grid) <= 1 + thread["partial"]


def test_cycles_on_a_target_are_those_that_the_program_stamped(rhythm, tmp_path, marked):
    before = left_folders()
    run = tmp_path / "run"
    asked = latenz(
        *("attach", rhythm.name, "--on", "local:", "--duration", "1500 ms", "-o", run, "--json"),
        marked=marked,
    )
    printed, errors = asked.communicate(timeout=300)
    assert asked.returncode in (0, 1, 3), errors
    stamps = rhythm.end()
    told = json.loads(printed)
    (thread,) = told["threads"]
    assert thread["tid"] == rhythm.process.pid
    assert thread["period_ns"] == MS
    assert "hrtimer_wakeup" in thread["due_from"]
    assert "asleep in clock_nanosleep" in thread["due_from"]
    found = cycles(run)
    shares = ("timer_late_ns", "ready_ns", "execution_ns", "blocked_ns")
    assert (found["response_ns"] == sum(found[name] for name in shares)).all()
    check_complete(thread, found)
    nearest = np.abs(found["t_ns"][:, None] - stamps[None, :, 0]).argmin(axis=1)
    assert (stamps[nearest, 0] == found["t_ns"]).mean() > 0.95
    _, woke, done = stamps[nearest].T
    assert (found["t_ns"] + found["latency_ns"] <= woke).all()
    alone = found["missed"] == 0
    assert (done <= found["t_ns"] + found["response_ns"])[alone].all()

    states = {each["id"]: each["state"] for each in told["findings"]}
    assert states["app-real-time-policy"] == "ok"
    assert states["app-memory-locked"] == "wrong"
    assert states["app-absolute-sleep"] == "ok"
    assert "unknown" not in states.values()
    info = json.loads((run / "run.json").read_text())
    assert info["environment"]["host"]["target"]["url"] == "local:"
    (account,) = info["conditions"]
    assert account["engine"]["command"][0] == "@attach"
    assert account["link"]["cuts"] == 0
    assert left_folders() == before


def test_a_cut_link_and_the_end_of_the_program_lose_no_cycle(fake_ssh, rhythm, tmp_path, marked):
    run = tmp_path / "run"
    asked = latenz(
        *("attach", rhythm.process.pid, "--on", "ssh://root@board", "--duration", "1h"),
        *("-o", run, "--json"),
        marked=marked,
    )
    journal = run / rhythm.name / rhythm.name / "samples.journal"
    eventually(lambda: journal.exists() and journal.stat().st_size > 2000, "cycles")
    cut = fake_ssh.with_name("hosts.cut")
    cut.touch()
    for link in marked.links():
        os.kill(link, signal.SIGKILL)
    time.sleep(1)
    cut.unlink()
    arrived = journal.stat().st_size
    eventually(lambda: journal.stat().st_size > arrived, "more cycles")
    stamps = rhythm.end()
    printed, errors = asked.communicate(timeout=300)
    assert asked.returncode in (0, 1, 3), errors
    told = json.loads(printed)
    (thread,) = told["threads"]
    found = cycles(run)
    check_complete(thread, found)
    assert stamps[-1, 0] - found["t_ns"][-1] <= 20 * MS
    assert "the program ended before the measurement" in told["sample_sets"][0]["notes"]
    assert any("the link was cut once" in note for note in told["notes"])


def test_nothing_is_left_when_latenz_is_killed(fake_ssh, rhythm, tmp_path, marked):
    before = left_folders()
    run = tmp_path / "run"
    asked = latenz(
        *("attach", rhythm.name, "--on", "ssh://board", "--duration", "1h", "-o", run),
        marked=marked,
    )
    journal = run / rhythm.name / rhythm.name / "samples.journal"
    eventually(lambda: journal.exists() and journal.stat().st_size > 2000, "cycles")
    eventually(lambda: Run.open(run).sample_sets, "the thread is announced")
    asked.kill()
    asked.communicate()
    # the programs in the kernel are held by descriptors of the process, and go with it
    eventually(lambda: not marked.alive(), "no process is left", marked.alive, s=40)
    assert left_folders() == before
    assert len(cycles(run)["t_ns"]) > 10


NOT_ROOT = "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all"
CONTAINER = "unshare --pid --fork --mount-proc"
NO_TRACEFS = (
    "unshare --mount sh -c 'umount /sys/kernel/tracing /sys/kernel/debug; exec \"$@\"' sh"
    " setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin"
)


@pytest.mark.parametrize(
    ("circumstances", "wanted", "words"),
    [
        ("", "no-such-loop", "no process or thread is called 'no-such-loop'"),
        (NOT_ROOT, "1", "CAP_BPF and CAP_PERFMON are missing on the target; reach it as root"),
        (CONTAINER, "1", "attach from the container's host"),
        (NO_TRACEFS, "{pid}", "the kernel's tracing file system is not mounted"),
    ],
)
def test_what_a_target_does_not_allow_is_told_in_one_line(
    circumstances, wanted, words, ssh_through, rhythm, tmp_path
):
    before = left_folders()
    ssh_through(circumstances)
    asked = latenz(
        *("attach", wanted.format(pid=rhythm.process.pid), "--on", "ssh://board"),
        *("-o", tmp_path / "run"),
    )
    printed, errors = asked.communicate(timeout=120)
    assert asked.returncode == 2, errors
    assert printed == ""
    (line,) = errors.splitlines()
    assert words in line
    assert not (tmp_path / "run").exists()
    eventually(lambda: left_folders() == before, "no folder is left", left_folders)


def test_what_only_this_machine_has_is_refused(tmp_path):
    asked = latenz("attach", "--from", tmp_path / "trace.dat", "--on", "local:")
    _, errors = asked.communicate(timeout=120)
    assert asked.returncode == 2
    (line,) = errors.splitlines()
    assert "is a file of this machine" in line

    experiment = tmp_path / "mine.toml"
    experiment.write_text(
        'name = "mine"\nduration = "1 s"\n[probe.loop]\nengine = "attach"\n'
        'command = ["/bin/true"]\n[matrix]\nprobe = ["loop"]\n'
    )
    run = tmp_path / "run"
    asked = latenz("run", experiment, "--on", "local:", "--start-programs", "-o", run)
    _, errors = asked.communicate(timeout=120)
    assert asked.returncode == 2
    assert "start the program there, and name it by process or unit" in errors.splitlines()[-1]
    with suppress(OSError):
        run.rmdir()
    assert not run.exists()
