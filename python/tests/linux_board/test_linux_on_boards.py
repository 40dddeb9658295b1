"""Debian's kernels on emulated boards, measured by real cyclictest and our probe."""

import json
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from latenz.store.run import Run

pytestmark = pytest.mark.boots

LATENZ = Path(__file__).parents[3] / "latenz"
EXPERIMENT = """
name = "linux"
seed = 1
duration = "200 ms"
[probe.cyclictest]
engine = "cyclictest"
priority = 95
[stressor.cpu]
kind = "stress-ng-cpu"
instances = 4
settle = "300 ms"
[[condition]]
name = "stock"
bench = "virt"
stack = "linux"
stressor = "cpu"
probe = "cyclictest"
[[condition]]
name = "rt"
bench = "zcu102"
stack = "linux-rt"
probe = "wakeup"
"""


def run(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    experiment = folder.with_suffix(".toml")
    experiment.write_text(text)
    command = [LATENZ, "run", experiment, "-o", folder, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    """Both conditions, and the loaded one once more."""
    folder = tmp_path_factory.mktemp("linux")
    found = [folder / "first", folder / "second"]
    for path, options in zip(found, ([], ["--only", "stock"]), strict=True):
        done = run(path, EXPERIMENT, *options)
        assert done.returncode == 0, done.stderr
    return found


def account(path: Path, condition: str) -> dict:
    accounts = json.loads((path / "run.json").read_text())["conditions"]
    return next(each for each in accounts if each["condition"] == condition)


def test_loaded_cyclictest_is_the_same_in_every_run(runs):
    first, second = (account(path, "stock") for path in runs)
    assert first["identity"] == second["identity"]
    assert first["samples_sha256"] == second["samples_sha256"]


def test_every_loop_of_cyclictest_is_a_sample(runs):
    [found] = [each for each in Run.open(runs[0]).sample_sets if each.metadata.tool == "cyclictest"]
    latencies = [v for batch in found.batches("latency_ns") for v in batch.column(0).to_pylist()]
    assert found.metadata.time_base == "virtual"
    assert found.metadata.cpu == 0
    summary = json.loads((runs[0] / "stock/received/cyclictest.json").read_text())
    thread = summary["thread"]["0"]
    assert thread["cycles"] == 200
    assert (min(latencies), max(latencies)) == (thread["min"], thread["max"])


def test_the_probe_loses_nothing_under_preempt_rt(runs):
    [found] = [
        each for each in Run.open(runs[0]).sample_sets if each.metadata.tool == "latenz-wakeup"
    ]
    rows = [row for batch in found.batches("t_ns", "missed") for row in batch.to_pylist()]
    times = [row["t_ns"] for row in rows]
    assert len(rows) + sum(row["missed"] for row in rows) == 200
    assert {b - a for a, b in pairwise(times)} == {1_000_000}
    assert found.metadata.kernel.endswith("PREEMPT_RT")


def test_the_console_has_the_banners_of_kernel_and_stress_ng(runs):
    stock = (runs[0] / "stock/console.log").read_text(errors="replace")
    packages = {
        package["name"]: package["version"]
        for image in account(runs[0], "stock")["software"].values()
        if isinstance(image, dict)
        for package in image["packages"]
    }
    kernel = next(version for name, version in packages.items() if name.startswith("linux-image"))
    assert re.search(rf"^Linux version .*Debian {re.escape(kernel)} ", stock, re.MULTILINE)
    assert re.search(r"stress-ng: info: .* dispatching hogs: 4 cpu", stock)
    assert re.search(r"stress-ng: metrc: .*\bcpu +\d+", stock)
    assert {"rt-tests", "stress-ng", "busybox-static"} <= set(packages)
    rt = (runs[0] / "rt/console.log").read_text(errors="replace")
    assert " SMP PREEMPT_RT Debian" in rt


def test_what_runs_is_on_the_recorded_command_line(runs):
    command_line = account(runs[0], "stock")["software"]["command_line"]
    assert "--loops=200" in command_line
    assert "stress-ng --cpu 4 --cpu-method all" in command_line


def test_a_load_without_a_core_is_refused_in_one_line(tmp_path):
    text = EXPERIMENT.replace('stack = "linux"', 'stack = "apart"')
    text += '[stack.apart]\nkind = "linux"\nload_on = "others"\n'
    done = run(tmp_path / "run", text, "--only", "stock")
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if "apart" in line or "others" in line]
    assert any("cpus = 2 or more" in line for line in told), done.stderr


ISOLATED = """
name = "isolated"
seed = 1
duration = "200 ms"
[stack.isolated]
kind = "linux"
cpus = 2
isolated = "1"
[[condition]]
name = "isolated"
bench = "virt"
stack = "isolated"
probe = "wakeup"
"""


def test_an_isolated_cpu_is_measured_as_any_other(tmp_path):
    done = run(tmp_path / "run", ISOLATED)
    assert done.returncode == 0, done.stderr
    sets = {each.metadata.name: each for each in Run.open(tmp_path / "run").sample_sets}
    assert set(sets) == {"isolated/cpu0", "isolated/cpu1"}
    told = json.loads((tmp_path / "run/isolated/received/probe.json").read_text())
    assert [each["ran_on"] for each in told["threads"]] == [{"0": 200}, {"1": 200}]
    assert sets["isolated/cpu0"].metadata.isolation is None
    assert sets["isolated/cpu1"].metadata.isolation == "isolcpus, nohz_full"
    # The kernel itself says so: what it tells came with the results.
    tree = tmp_path / "run/isolated/received/guest.tar"
    check = [LATENZ, "tune", "check", "--root", tree, "--cpus", "1", "--json"]
    checked = subprocess.run(check, capture_output=True, text=True, timeout=600, check=False)
    states = {each["id"]: each["state"] for each in json.loads(checked.stdout)["checks"]}
    for entry in ("cmdline-isolcpus", "cmdline-nohz-full", "cmdline-irqaffinity"):
        assert states[entry] == "ok", entry


@pytest.mark.parametrize("isolated", ["0-1", "2"])
def test_cores_that_cannot_be_isolated_are_told(tmp_path, isolated):
    done = run(tmp_path / "run", ISOLATED.replace('isolated = "1"', f'isolated = "{isolated}"'))
    assert "leave one for everything else" in done.stdout + done.stderr
