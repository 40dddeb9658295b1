"""`latenz learn` as people run it."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import made_traces
import numpy as np
import pytest

from latenz.system import read_system

DATA = Path(__file__).parent.parent / "data" / "learn"
SYSTEM = """\
[[slot]]
partition = "P"
length = "5 ms"

[[slot]]
partition = "Q"
length = "5 ms"

[[source]]
name = "can"
partition = "P"
top = 0
bottom = "10 us"
arrival = {{ kind = "trace", file = "trace.csv", length = 5 }}
{monitor}
"""


def latenz(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latenz", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    random = np.random.default_rng(3)
    times = {
        "can": 5_000 + np.cumsum(random.integers(100_000, 4_000_000, 1999)),
        "lin": np.cumsum(random.integers(0, 9_000_000, 501)),
    }
    made_traces.write_csv(tmp_path / "trace.csv", times)
    return tmp_path / "trace.csv"


def times_in(trace: Path) -> dict[str, np.ndarray]:
    found: dict[str, list[int]] = {}
    with trace.open() as file:
        for row in csv.DictReader(file):
            found.setdefault(row["source"], []).append(int(row["time_ns"]))
    return {name: np.array(times) for name, times in found.items()}


def test_json_as_the_contract_has_it(trace: Path) -> None:
    done = latenz("learn", trace, "--length", 5, "--json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    known = times_in(trace)
    assert [source["name"] for source in document["sources"]] == list(known)
    for source in document["sources"]:
        times = known[source["name"]]
        expected = made_traces.least_spans(times[: len(times) // 10], 5)
        assert source["observed_ns"] == source["distances_ns"] == list(expected)
        assert [step["percent"] for step in source["convergence"]] == [1, 2, 5, 10, 20, 50, 100]
        assert source["hold_out"]["activations"] == len(times) - len(times) // 10
    assert "never a bound" in document["warnings"][0]
    assert done.stderr.splitlines() == [f"latenz: warning: {w}" for w in document["warnings"]]

    allowed = latenz("learn", trace, "--length=5", "--fraction=0.5", "--allow=0.3", "--json")
    for source in json.loads(allowed.stdout)["sources"]:
        times = known[source["name"]]
        assert source["observed_ns"] == list(made_traces.least_spans(times[: len(times) // 2], 5))
        assert source["distances_ns"] == [-(-10 * each // 3) for each in source["observed_ns"]]

    raised = latenz("learn", trace, "--length=2", "--at-least=150us, 5 ms", "--json")
    for source in json.loads(raised.stdout)["sources"]:
        expected = [max(p) for p in zip(source["observed_ns"], (150_000, 5_000_000), strict=True)]
        assert source["distances_ns"] == expected


def test_every_format_ends_in_the_same_document(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    times = {f"irq{n} (irq {n})": np.cumsum(random.integers(10, 9_000_000, 300)) for n in (1, 2)}
    writers = (made_traces.write_csv, made_traces.write_btf, made_traces.write_ftrace)
    documents = []
    for number, write in enumerate(writers):
        write(tmp_path / f"{number}", times)
        done = latenz("learn", tmp_path / f"{number}", "--length", 8, "--json")
        document = json.loads(done.stdout)
        document.pop("format")
        documents.append(sorted(document["sources"], key=lambda source: source["name"]))
    assert documents[0] == documents[1] == documents[2]


def test_monitors_can_be_pasted_into_a_system(trace: Path, tmp_path: Path) -> None:
    done = latenz("learn", trace, "--length=3", "--source=can", "--allow=0.25", "--system")
    comment, monitor = done.stdout.splitlines()
    assert comment.startswith("# can: observed in 199 activations")
    (tmp_path / "system.toml").write_text(SYSTEM.format(monitor=monitor))
    system = read_system(tmp_path / "system.toml")
    observed = made_traces.least_spans(times_in(trace)["can"][:199], 3)
    assert system.sources[0].monitor.distances_ns == tuple(4 * each for each in observed)


def test_arrivals_of_any_format_can_be_simulated(trace: Path, tmp_path: Path) -> None:
    known = {"can": times_in(trace)["can"]}
    made_traces.write_btf(tmp_path / "trace.btf", known)
    arrivals = tmp_path / "arrivals.csv"
    done = latenz("learn", tmp_path / "trace.btf", "--length=2", "--arrivals-out", arrivals)
    assert done.returncode == 0
    np.testing.assert_array_equal(times_in(arrivals)["can"], known["can"] - known["can"][0])
    (tmp_path / "system.toml").write_text(SYSTEM.format(monitor=""))
    simulated = latenz("simulate", tmp_path / "system.toml", "--arrivals", arrivals, "--json")
    assert json.loads(simulated.stdout)["sources"][0]["n"] == len(known["can"])


def test_tables(trace: Path) -> None:
    done = latenz("learn", trace, "--length", 5, "--source", "can")
    assert done.returncode == 0
    for text in (
        "learned from 199 of 1,999",
        "after bounding",
        "50 %",
        "come closer than observed",
    ):
        assert text in done.stdout
    whole = latenz("learn", trace, "--length", 5, "--source", "can", "--fraction", "1")
    assert "nothing is left of the trace" in whole.stdout


def test_recorded_interrupts(tmp_path: Path) -> None:
    done = latenz("learn", DATA / "ftrace-v6.18.txt", "--length=3", "--fraction=1", "--json")
    document = json.loads(done.stdout)
    assert document["format"] == "ftrace"
    assert document["sources"][0]["name"] == "virtio1-req.0 (irq 36)"
    assert len(document["sources"][0]["observed_ns"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--length=0"], "--length: 0 is not a length"),
        (["--length=2", "--fraction=ten"], "--fraction: 'ten' is not a share"),
        (["--length=2", "--fraction=0.0001"], "no source has two activations"),
        (["--length=2", "--allow=2"], "--allow: '2' is not a share"),
        (["--length=2", "--allow=200%"], "--allow: '200%' is not a share; give a share above 0"),
        (["--length=2", "--at-least=1 parsec"], "--at-least: 'parsec' in '1 parsec' is not a unit"),
        (["--length=2", "--at-least="], "--at-least: '' is not a duration"),
        (["--length=2", "--allow=1", "--at-least=1"], "exclude each other"),
        (["--length=2", "--source=cam"], "--source: 'cam' is not in"),
        (["--length=2", "--event=start"], "--event: 'start' cannot be chosen"),
        (["--length=2", "--format=btf"], "(btf): "),
        (["--length=2", "--arrivals-out=/"], "/: is a folder"),
        (["--length=2", "-o", "/"], "/: is a folder"),
        ([], "--length"),
    ],
)
def test_mistakes_are_one_line(trace: Path, arguments: list[str], message: str) -> None:
    done = latenz("learn", trace, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    complaints = [each for each in done.stderr.splitlines() if "latenz: warning:" not in each]
    assert len(complaints) == 1
    assert message in complaints[0]
