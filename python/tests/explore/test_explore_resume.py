"""Explorations that are killed, interrupted or run elsewhere: nothing is lost, nothing differs."""

import fcntl
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from distributed import LocalCluster
from gateway import ARGUMENTS, all_candidates, eventually, gateway_plan, started, when_chunks
from pyarrow import parquet

from latenz.analysis.explore import explore, workers
from latenz.errors import BadInput

CANDIDATES = 3_000
PLAN = gateway_plan(CANDIDATES)
ASKED = [*ARGUMENTS, f"--candidates={CANDIDATES}"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> pa.Table:
    """All candidates of an exploration that nothing disturbed."""
    folder = tmp_path_factory.mktemp("reference") / "out"
    explore(PLAN, folder, processes=2)
    return all_candidates(folder)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as running:
        yield running


def group_is_gone(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return True
    return False


def chunk_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("chunks/chunk-*.parquet"))


def test_what_a_killed_command_had_finished_is_kept(reference, tmp_path):
    killed = started(*ASKED, "-o", str(tmp_path), slow=True)
    when_chunks(killed, tmp_path, 3)
    killed.kill()
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    eventually(lambda: group_is_gone(killed.pid))  # its workers end with it
    kept = chunk_files(tmp_path)
    assert len(kept) >= 3
    assert not (tmp_path / "candidates.parquet").exists()

    marked = parquet.read_table(kept[1])  # to see that it is not computed again
    column = marked.column_names.index("reason")
    marks = pa.array([reason and f"kept: {reason}" for reason in marked["reason"].to_pylist()])
    parquet.write_table(marked.set_column(column, "reason", marks), kept[1])
    kept[2].write_bytes(kept[2].read_bytes()[:-100])  # as after a power failure

    explore(PLAN, tmp_path, processes=2)
    resumed = all_candidates(tmp_path)
    assert resumed.drop(["reason"]).equals(reference.drop(["reason"]))
    numbers = marked["candidate"].to_pylist()
    reasons = reference["reason"].to_pylist()
    for number in numbers:
        reasons[number] = reasons[number] and f"kept: {reasons[number]}"
    assert resumed["reason"].to_pylist() == reasons


def test_control_c_keeps_what_is_finished(reference, tmp_path):
    interrupted = started(*ASKED, "-o", str(tmp_path), slow=True)
    when_chunks(interrupted, tmp_path, 2)
    os.killpg(interrupted.pid, signal.SIGINT)  # as a terminal does
    output, errors = interrupted.communicate(timeout=600)
    assert interrupted.returncode == 130
    assert output == ""
    assert errors == (f"explore: interrupted; go on with latenz explore --resume {tmp_path}\n")
    eventually(lambda: group_is_gone(interrupted.pid))
    assert len(chunk_files(tmp_path)) >= 2
    resumed = started(f"--resume={tmp_path}")
    _, errors = resumed.communicate(timeout=600)
    assert (resumed.returncode, errors) == (0, "")
    assert all_candidates(tmp_path).equals(reference)


def test_a_killed_process_is_replaced(reference, tmp_path):
    victims: list[int] = []

    def kill_one(done: int) -> None:
        if done > 500 and not victims:
            victim = multiprocessing.active_children()[0].pid
            assert victim is not None
            victims.append(victim)
            os.kill(victim, signal.SIGKILL)

    explore(PLAN, tmp_path / "out", processes=2, progress=kill_one)
    assert victims
    assert all_candidates(tmp_path / "out").equals(reference)


def test_two_do_not_work_in_one_folder(tmp_path):
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BadInput, match="another exploration works there"):
            explore(PLAN, tmp_path)


# ---- on a Dask cluster ---------------------------------------------------------------------------


def test_dask_gives_identical_results_though_a_worker_is_killed(reference, cluster, tmp_path):
    explore(PLAN, tmp_path / "calm", scheduler=cluster.scheduler_address)
    assert all_candidates(tmp_path / "calm").equals(reference)
    victims: list[int] = []

    def kill_one(done: int) -> None:
        if done > 500 and not victims:
            victims.append(cluster.workers[0].process.process.pid)
            os.kill(victims[0], signal.SIGKILL)

    explore(PLAN, tmp_path / "killed", scheduler=cluster.scheduler_address, progress=kill_one)
    assert victims
    eventually(lambda: cluster.workers[0].pid not in (None, victims[0]))
    assert all_candidates(tmp_path / "killed").equals(reference)


def test_a_killed_client_of_dask_goes_on(reference, cluster, tmp_path):
    scheduler = f"--scheduler={cluster.scheduler_address}"
    killed = started(*ASKED, "-o", str(tmp_path), scheduler, slow=True)
    when_chunks(killed, tmp_path, 2)
    killed.kill()
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    before = {path: path.stat().st_mtime_ns for path in chunk_files(tmp_path)}
    assert len(before) >= 2
    resumed = started(f"--resume={tmp_path}", scheduler)
    output, errors = resumed.communicate(timeout=600)
    assert (resumed.returncode, errors) == (0, "")
    assert "Pareto front" in output
    assert all_candidates(tmp_path).equals(reference)


def test_what_a_lost_cluster_had_finished_is_kept(reference, tmp_path):
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as lost:
        scheduler = f"--scheduler={lost.scheduler_address}"
        left = started(*ASKED, "-o", str(tmp_path), scheduler, slow=True)
        when_chunks(left, tmp_path, 2)
    output, errors = left.communicate(timeout=600)
    assert (left.returncode, output) == (2, "")
    assert errors.count("\n") == 1
    assert "the Dask scheduler or its workers went away; what is finished is kept" in errors
    explore(PLAN, tmp_path, processes=2)  # it goes on without Dask
    assert all_candidates(tmp_path).equals(reference)


def test_mistakes_with_a_scheduler_get_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "_PATIENCE_S", 1)
    with pytest.raises(BadInput, match=r"^tcp://127.0.0.1:9: no Dask scheduler answers") as told:
        explore(PLAN, tmp_path / "a", scheduler="tcp://127.0.0.1:9")
    assert "\n" not in str(told.value)
    monkeypatch.setattr(workers, "_PATIENCE_S", 10)
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as idle,
        pytest.raises(BadInput, match="the Dask cluster has no worker"),
    ):
        explore(PLAN, tmp_path / "b", scheduler=idle.scheduler_address)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BadInput, match="not installed; run setup/ensure cluster"):
        explore(PLAN, tmp_path / "c", scheduler="tcp://127.0.0.1:9")
