"""Measuring over a link: as locally, whatever becomes of the link and either of its ends."""

import json
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

from remote_targets import eventually, latenz, left_folders

from latenz.store.run import Run


def accounts(run: Path) -> dict[str, dict]:
    return {
        each["condition"]: each for each in json.loads((run / "run.json").read_text())["conditions"]
    }


def check_complete(run: Path, condition: str = "idle") -> int:
    """Hold what arrived against the probe's own account; return the number of samples."""
    told = json.loads((run / condition / "probe.json").read_text())
    told_n = {f"{condition}/{each['folder']}": each["n"] for each in told["threads"]}
    missed = {f"{condition}/{each['folder']}": each["missed"] for each in told["threads"]}
    found = {each.metadata.name: each for each in Run.open(run).sample_sets}
    assert set(told_n) <= set(found)
    for name, n in told_n.items():
        columns = [batch.to_pydict() for batch in found[name].batches("t_ns", "missed")]
        due = [t for each in columns for t in each["t_ns"]]
        skipped = sum(m for each in columns for m in each["missed"])
        assert len(due) == n
        assert due[-1] - due[0] == (n + skipped - 1) * told["interval_ns"]
        assert skipped <= missed[name]
    return sum(told_n.values())


def test_a_run_over_a_link_is_an_ordinary_run(fake_ssh, experiment, tmp_path, marked):
    before = left_folders()
    run = tmp_path / "run"
    asked = latenz(
        *("run", experiment("1500 ms"), "--on", "ssh://root@board:2222"),
        *("-o", run, "--json"),
        marked=marked,
    )
    printed, errors = asked.communicate(timeout=300)
    assert asked.returncode == 3, errors  # one condition is an emulated board's
    told = json.loads(printed)
    assert {each["condition"]: each["state"] for each in told["conditions"]} == {
        "idle": "measured",
        "spin": "measured",
        "board": "not measured",
    }
    assert fake_ssh.read_text().split() == ["root@board"]
    info = json.loads((run / "run.json").read_text())
    here = info["environment"]["host"]
    assert here["kernel"]["release"] == os.uname().release
    assert here["target"]["url"] == "ssh://root@board:2222"
    assert "python" not in here["software"]
    assert check_complete(run) + check_complete(run, "spin") > 0
    spun = accounts(run)["spin"]["load"]
    assert spun["exit_status"] == 0
    assert sum(each["cpu_time_ns"] for each in spun["threads"]) > 0
    assert left_folders() == before


def test_a_cut_link_loses_nothing(fake_ssh, experiment, tmp_path, marked):
    run = tmp_path / "run"
    asked = latenz(
        *("run", experiment("12 s"), "--on", "ssh://board", "--only", "idle", "-o", run),
        marked=marked,
    )
    journal = run / "idle/cpu0/samples.journal"
    cut = fake_ssh.with_name("hosts.cut")
    for _ in range(2):
        arrived = journal.stat().st_size if journal.exists() else 0
        eventually(
            lambda more=arrived: journal.exists() and journal.stat().st_size > more, "samples"
        )
        cut.touch()
        for link in marked.links():
            os.kill(link, signal.SIGKILL)
        time.sleep(2)
        cut.unlink()
    _, errors = asked.communicate(timeout=300)
    assert asked.returncode == 0, errors
    assert check_complete(run) > 0
    account = accounts(run)["idle"]
    assert account["link"]["cuts"] == 2
    assert account["link"]["longest_cut_s"] > 1.5
    assert any("the link was cut 2 times" in note for note in account["notes"])


def test_ctrl_c_keeps_what_was_measured(fake_ssh, experiment, tmp_path, marked):
    run = tmp_path / "run"
    asked = latenz(
        *("run", experiment("300 s"), "--on", "ssh://board", "--only", "spin", "-o", run),
        marked=marked,
    )
    journal = run / "spin/cpu0/samples.journal"
    eventually(lambda: journal.exists() and journal.stat().st_size > 2000, "samples")
    asked.send_signal(signal.SIGINT)
    _, errors = asked.communicate(timeout=120)
    assert asked.returncode == 130, errors
    assert accounts(run)["spin"]["state"] == "interrupted"
    assert check_complete(run, "spin") > 100


def test_nothing_is_left_when_latenz_is_killed(fake_ssh, experiment, tmp_path, marked):
    before = left_folders()
    run = tmp_path / "run"
    asked = latenz(
        *("run", experiment("300 s"), "--on", "ssh://board", "--only", "spin", "-o", run),
        marked=marked,
    )
    journal = run / "spin/cpu0/samples.journal"
    eventually(lambda: journal.exists() and journal.stat().st_size > 2000, "samples")
    asked.kill()
    asked.communicate()
    # long before the lease is over
    eventually(lambda: not marked.alive(), "no process is left", marked.alive, s=40)
    assert left_folders() == before
    assert Run.open(run).sample_sets  # what had arrived can be read


def test_a_killed_agent_takes_all_with_it(experiment, tmp_path, marked):
    run = tmp_path / "run"
    asked = latenz(
        *("run", experiment("300 s"), "--on", "local:", "--only", "spin", "-o", run),
        marked=marked,
    )
    journal = run / "spin/cpu0/samples.journal"
    eventually(lambda: journal.exists() and journal.stat().st_size > 2000, "samples")
    for process in marked.agents():
        with suppress(ProcessLookupError):  # some go with others
            os.kill(process, signal.SIGKILL)
    _, errors = asked.communicate(timeout=120)
    assert asked.returncode == 3, errors
    account = accounts(run)["spin"]
    assert account["state"] == "failed"
    assert "the agent on the target was ended" in account["reason"]
    assert len(Run.open(run).sample_sets) == len(os.sched_getaffinity(0))


def test_an_unreachable_target_is_told_in_one_line(fake_ssh, experiment, tmp_path):
    fake_ssh.with_name("hosts.cut").touch()
    run = tmp_path / "run"
    asked = latenz("run", experiment("1 s"), "--on", "ssh://root@board:22", "-o", run)
    printed, errors = asked.communicate(timeout=120)
    assert asked.returncode == 2
    assert printed == ""
    (line,) = errors.splitlines()
    assert "ssh://root@board:22" in line
    assert "No route to host" in line
    assert "ssh -p 22 root@board true" in line
    assert not run.exists()


def test_what_only_this_machine_can_is_refused_for_a_target(experiment, tmp_path):
    for more, told in (
        (("--only", "board"), "on a target runs what has the bench host"),
        (("--bench", "virt"), "is on this machine"),
        (("--only", "idle", "--trace"), "is not traced over a link"),
    ):
        run = tmp_path / "run"
        asked = latenz("run", experiment("1 s"), "--on", "local:", *more, "-o", run)
        _, errors = asked.communicate(timeout=120)
        assert asked.returncode == 2, errors
        assert told in errors.splitlines()[-1]
        shutil.rmtree(run, ignore_errors=True)
