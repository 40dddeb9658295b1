"""One stall as our probe, a CSV file and cyclictest see it: each tells what it can know, no more.

Programs are stopped by SIGSTOP for longer than they run, so that more than half of all activations
are missed. Their samples alone look as good as those of a program that nothing stopped.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from latenz import exporters, importers
from latenz.importers.opening import open_sample_sets
from latenz.model import SampleSet
from latenz.programs import probe_program
from latenz.sql import query
from latenz.statistics import quantile_rank, summarize
from latenz.store.journal import Journal

MS = 1_000_000
CPU = min(os.sched_getaffinity(0))
STOPPED_S = 1.5
STOPPED_NS = int(STOPPED_S * 1000) * MS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="real-time scheduling needs root")


def ended(command: list[str], begun: Callable[[], bool], stopped: bool) -> None:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    limit = time.monotonic() + 60
    while not begun():
        assert time.monotonic() < limit
        time.sleep(0.02)
    if stopped:
        process.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=600) == 0


def by_the_probe(folder: Path, keep: str, *, stopped: bool = True) -> Path:
    command = [
        str(probe_program("latenz-wakeup")),
        f"--output={folder}",
        f"--cpus={CPU}",
        f"--warm-up={10 * MS}",
        f"--duration={2500 * MS}",
        f"--keep={keep}",
    ]
    kept = folder / f"cpu{CPU}" / ("samples.journal" if keep == "samples" else "histogram.json")
    ended(command, lambda: kept.exists() and kept.stat().st_size > 1000, stopped)
    return kept


def by_cyclictest(path: Path) -> Path:
    command = ["cyclictest", f"-a{CPU}", "-t1", "-p80", "-i1000", "-D3", "-q", "-h10000"]
    started = time.monotonic()
    ended([*command, f"--json={path}"], lambda: time.monotonic() > started + 0.5, stopped=True)
    return path


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files of a run that was stopped, by who saw it, and one that was not."""
    root = tmp_path_factory.mktemp("stall")
    journal = by_the_probe(root / "samples", "samples")
    (samples,) = open_sample_sets(journal)
    batch = next(iter(samples.batches()))
    rows = zip(*(batch.column(name).to_pylist() for name in batch.schema.names), strict=True)
    lines = [",".join(batch.schema.names), *(",".join(map(str, row)) for row in rows)]
    (root / "csv").write_text("\n".join(lines) + "\n")
    return {
        "probe": journal,
        "csv": root / "csv",
        "histogram": by_the_probe(root / "histogram", "histogram"),
        "cyclictest": by_cyclictest(root / "cyclictest.json"),
        "quiet": by_the_probe(root / "quiet", "samples", stopped=False),
    }


def only(path: Path) -> SampleSet:
    (found,) = open_sample_sets(path)
    return found


def every_latency(journal: Path) -> np.ndarray:
    """All activations by brute force: from each due time to when the program next ran."""
    records = np.concatenate(list(Journal(journal).frames()))
    t_ns, latency_ns = records["t_ns"], records["latency_ns"]
    due_ns = np.arange(t_ns[0], t_ns[-1] + MS, MS)
    ran_ns = (t_ns + latency_ns)[np.searchsorted(t_ns, due_ns, side="right") - 1]
    return np.sort(ran_ns - due_ns)


def test_the_probe_and_a_csv_file_tell_the_latency_of_every_activation(seen) -> None:
    every = every_latency(seen["probe"])
    for name in ("probe", "csv"):
        summary = summarize(only(seen[name]))
        assert (summary.view, summary.n_due) == ("as due", len(every)), name
        assert summary.skipped_unknown == 0
        assert summary.n < 0.6 * summary.n_due
        for p in ("0.5", "0.9", "0.99"):
            assert summary.quantiles_ns[p] == every[quantile_rank(p, len(every)) - 1], name
        assert summary.mean_ns == pytest.approx(every.mean(), rel=1e-12)
        assert summary.quantiles_ns["0.9"] > 0.7 * STOPPED_NS > summary.sampled.quantiles_ns["0.9"]


def test_a_histogram_tells_them_up_to_the_width_of_its_cells(seen) -> None:
    summary = summarize(only(seen["histogram"]))
    assert (summary.view, summary.skipped_unknown) == ("as due", 0)
    assert summary.n < 0.6 * summary.n_due
    # of a stall of S the latencies of activations due in it lie evenly between 0 and S
    stall = summary.max_ns
    late = stall // MS / summary.n_due
    expected = stall * (1 - 0.1 / late)
    assert summary.quantiles_ns["0.9"] == pytest.approx(expected, rel=0.03)
    assert summary.mean_ns == pytest.approx(stall / 2 * late, rel=0.03)


def test_cyclictest_tells_of_its_samples_only(seen) -> None:
    summary = summarize(only(seen["cyclictest"]))
    assert (summary.view, summary.n_due) == ("of samples only", None)
    assert summary.missed_periods is None
    assert summary.max_ns >= STOPPED_NS - 2 * MS  # one sample, where 1500 deadlines were missed
    assert summary.n < 2000
    assert summary.quantiles_ns["0.9"] < 0.1 * STOPPED_NS
    shown = latenz("show", seen["cyclictest"])
    assert "of samples only, as the source does not count missed activations" in shown.stdout


def latenz(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "latenz", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("figure", ["p90", "p99", "mean", "median"])
@pytest.mark.parametrize("name", ["probe", "csv", "histogram"])
def test_no_gate_passes_when_half_was_missed(seen, name, figure) -> None:
    gate = latenz("compare", seen["quiet"], seen[name], "--fail-if", f"{figure} > +10%")
    assert gate.returncode == 1, gate.stdout + gate.stderr


def test_samples_are_not_held_against_activations(seen) -> None:
    gate = latenz("compare", seen["quiet"], seen["cyclictest"], "--fail-if", "p90 > +10%")
    assert gate.returncode == 3, gate.stdout + gate.stderr


def test_no_other_command_leaves_out_what_was_missed(seen, tmp_path) -> None:
    every = every_latency(seen["probe"])
    p90 = int(every[quantile_rank("0.9", len(every)) - 1])
    document = json.loads(latenz("show", seen["probe"], "--json").stdout)
    assert document["sample_sets"][0]["quantiles_ns"]["0.9"] == p90
    _, rows = query("SELECT quantile_disc(latency_ns, 0.9) FROM activations", [seen["probe"]])
    assert rows[0][0] == pytest.approx(p90, rel=2e-3)
    for to in ("csv", "parquet", "cyclictest-json"):
        path = tmp_path / to
        exporters.write([only(seen["probe"])], to, path)
        (again,) = importers.read(path)
        assert summarize(again).quantiles_ns["0.9"] == p90, to
