"""`latenz bound` and `latenz simulate` as their users run them."""

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from latenz.analysis import bound, simulate
from latenz.system import read_system

MS = 1_000_000
EXAMPLE = "experiments/systems/can-gateway.toml"
SYSTEM = """
[platform]
slot_switch = "10 us"
[policy]
mode = "{mode}"
[[slot]]
partition = "A"
length = "1 ms"
[[slot]]
partition = "B"
length = "1 ms"
[[source]]
name = "a"
partition = "A"
top = "5 us"
bottom = "{bottom}"
arrival = {{ {arrival} }}
"""


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["./latenz", *arguments], capture_output=True, text=True, check=False, **options
    )


def document(*arguments: str, code: int = 0) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def described(
    tmp_path: Path,
    mode: str = "plain",
    bottom: str = "40 us",
    arrival: str = 'kind = "periodic", period = "5 ms"',
) -> str:
    path = tmp_path / "system.toml"
    path.write_text(SYSTEM.format(mode=mode, bottom=bottom, arrival=arrival))
    return str(path)


def test_bound_tells_what_the_contract_promises(tmp_path: Path) -> None:
    told = document("bound", described(tmp_path))
    assert told["mode"] == "plain"
    (source,) = told["sources"]
    assert source["name"] == "a"
    assert source["verdict"] == "bounded"
    assert source["wcrt_ns"] == 5_000 + 40_000 + 1_000_000 + 10_000
    assert source["as_printed_ns"] == {"eq11": 1_045_000, "eq16": 45_000}
    assert source["reason"] is None
    assert [each["name"] for each in told["partitions"]] == ["A", "B"]
    assert all(isinstance(p["interference_ns_per_cycle"], int) for p in told["partitions"])


def test_the_parts_of_a_bound_add_up() -> None:
    for mode in ("plain", "paper", "carry"):
        for source in document("bound", EXAMPLE, "--mode", mode)["sources"]:
            parts = sum(
                share[key]
                for share in source["shares"]
                for key in ("top_ns", "bottom_ns", "interposing_ns")
            )
            whole = parts + source["blocked_ns"] + source["switches_ns"]
            assert whole == source["wcrt_ns"] + source["offset_ns"]


def test_overload_and_unlimited_arrivals_are_told_apart(tmp_path: Path) -> None:
    (overload,) = document("bound", described(tmp_path, bottom="3 ms"))["sources"]
    assert (overload["verdict"], overload["wcrt_ns"]) == ("unbounded", None)
    assert "overload" in overload["reason"]
    arrival = 'kind = "exponential", mean = "5 ms", seed = 1'
    (endless,) = document("bound", described(tmp_path, arrival=arrival))["sources"]
    assert endless["verdict"] == "unbounded"
    assert "a may arrive at any rate" in endless["reason"]


def test_a_verdict_says_if_it_holds_only_while_models_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "system.toml"
    text = """
        [policy]
        mode = "carry"
        [[slot]]
        partition = "A"
        length = "5 s"
        [[slot]]
        partition = "B"
        length = "5 s"
        [[source]]
        name = "a"
        partition = "A"
        top = 0
        bottom = 1
        arrival = { kind = "periodic", period = "90 s" }
        [[source]]
        name = "b"
        partition = "B"
        top = 0
        bottom = 4
        arrival = { kind = "periodic", period = "90 s" }
        monitor = { distances = [MONITOR] }
    """
    path.write_text(text.replace("MONITOR", '"1 s"'))
    asked = ("bound", str(path), "--horizon", "100s", "--deadline")
    (source, _) = document("bound", str(path), "--horizon", "100s")["sources"]
    assert source["wcrt_ns"] < source["enforced_ns"]
    assert source["as_printed_ns"]["eq11"] is not None, "within the horizon that was asked for"
    kept = run(*asked, f"a={source['wcrt_ns']}ns")
    assert kept.returncode == 0
    assert kept.stdout.splitlines()[-1].endswith("if all sources keep their arrival models")
    always = run(*asked, f"a={source['enforced_ns']}ns")
    assert always.stdout.splitlines()[-1].endswith("whatever sources of other partitions do")


def test_a_long_busy_window_is_past_the_horizon(tmp_path: Path) -> None:
    arrival = 'kind = "periodic", period = "5 ms", jitter = "400 s"'
    (source,) = document("bound", described(tmp_path, arrival=arrival))["sources"]
    assert (source["verdict"], source["wcrt_ns"]) == ("past horizon", None)
    assert "horizon" in source["reason"]


def test_a_longer_horizon_finds_what_a_shorter_one_gave_up(tmp_path: Path) -> None:
    system = described(tmp_path, bottom="1 ms")
    (short,) = document("bound", system, "--horizon", "2ms")["sources"]
    assert (short["verdict"], short["wcrt_ns"]) == ("past horizon", None)
    assert "the form slots finds no end" in short["reason"]
    assert "2 ms" in short["reason"]
    (long,) = document("bound", system, "--horizon", "100s")["sources"]
    assert long["verdict"] == "bounded"


def test_two_bounds_are_told_and_two_promises() -> None:
    told = document("bound", EXAMPLE)
    above = [each["enforced_ns"] - each["wcrt_ns"] for each in told["sources"]]
    assert min(above) >= 0
    assert max(above) > 0
    for each in told["partitions"]:
        assert each["interference_ns_per_cycle"] > each["conforming_interference_ns_per_cycle"]
        for enforced, conforming in zip(
            each["interference_ns_by_slot"],
            each["conforming_interference_ns_by_slot"],
            strict=True,
        ):
            assert enforced >= conforming
    shown = run("bound", EXAMPLE).stdout
    assert "enforced: whatever sources of other partitions do" in shown


def test_what_is_enforced_costs_the_shipped_systems_little() -> None:
    ratios = []
    for path in sorted(Path("experiments/systems").glob("*.toml")):
        for mode in ("plain", "paper", "carry"):
            for each in bound(read_system(path), mode).sources:
                if each.wcrt_ns is not None:
                    assert each.enforced_ns is not None
                    ratios.append(each.enforced_ns / each.wcrt_ns)
    assert len(ratios) > 20
    assert 1 <= median(ratios) <= 1.5
    assert 1 < max(ratios) <= 1.5


LEARNING = """\
[policy]
mode = "carry"
[[slot]]
partition = "Q"
length = 10
[[slot]]
partition = "V"
length = 10
[[slot]]
partition = "W"
length = 20
[[source]]
name = "j"
partition = "Q"
top = 0
bottom = 2
arrival = { kind = "periodic", period = 5 }
monitor = { distances = [5] }
learn = { events = 8, length = 1 }
[[source]]
name = "v"
partition = "V"
top = 0
bottom = 1
arrival = { kind = "periodic", period = 1000 }
monitor = { distances = [1000] }
"""


def test_bounds_hold_while_a_monitor_learns(tmp_path: Path) -> None:
    path = tmp_path / "learn.toml"
    path.write_text(LEARNING)
    system = read_system(path)
    arrivals = [np.arange(0, 80, 5), np.array([50])]
    outcome = simulate(system, arrivals=arrivals, monitored_from_ns={"j": 40})
    bounds = bound(system)
    assert outcome.of("v").max_ns == 9
    for name in ("j", "v"):
        wcrt_ns, most_ns = bounds.of(name).wcrt_ns, outcome.of(name).max_ns
        assert wcrt_ns is None or (most_ns or 0) <= wcrt_ns
    assert bounds.of("v").enforced_ns is not None
    v = next(each for each in bounds.partitions if each.name == "V")
    assert v.conforming_interference_ns_by_slot[0] >= 8
    # by the form slots alone j is served too seldom, which is no proof that it grows for ever
    assert bounds.of("j").verdict == "past horizon"


@pytest.mark.parametrize(
    ("limit", "verdict", "code"),
    [
        ("a=2ms", "meets", 0),
        ("2ms", "meets", 0),
        ("a=2ms@0", "meets", 0),
        ("2ms@1e-3", "meets", 0),
        ("a=1ms", "not shown", 3),
        ("1ms", "not shown", 3),
        ("1ms@0", "not shown", 3),  # nothing shows that the bound is reached
        ("1us@2/day", "not shown", 3),
    ],
)
def test_deadlines_of_bounds_are_met_or_not_shown(
    limit: str, verdict: str, code: int, tmp_path: Path
) -> None:
    path = described(tmp_path)
    (source,) = document("bound", path, "--deadline", limit, code=code)["sources"]
    (found,) = source["deadlines"]
    assert (found["verdict"], found["enforced"]) == (verdict, verdict == "meets")
    assert found["exceedance_upper"] == (0 if verdict == "meets" else 1)
    shown = run("bound", path, "--deadline", limit)
    assert shown.returncode == code
    assert f"a: {'meets' if code == 0 else 'not shown to meet'} " in shown.stdout.splitlines()[-1]
    assert document("bound", path)["sources"][0]["deadlines"] == []


def test_bounds_have_the_fields_of_measured_verdicts(tmp_path: Path) -> None:
    (tmp_path / "latency.csv").write_text("latency_ns\n" + "5\n" * 50)
    limit = ("--deadline", "a=2ms@0.1%")
    (measured,) = document("show", str(tmp_path / "latency.csv"), *limit, code=3)["sample_sets"]
    (bounded,) = document("bound", described(tmp_path), *limit)["sources"]
    contract = {"name", "limit_ns", "verdict", "exceeding", "exceedance_lower", "exceedance_upper"}
    contract |= {"confidence", "allowed", "episodes", "observed_s", "rate_upper_per_h", "needed_s"}
    contract |= {"sentence"}
    for source in (measured, bounded):
        (found,) = source["deadlines"]
        assert contract <= found.keys()
        assert (found["name"], found["limit_ns"], found["allowed"]) == ("a", 2 * MS, "0.1%")


def test_a_deadline_without_a_name_is_every_sources() -> None:
    bounds_ns = [each["wcrt_ns"] for each in document("bound", EXAMPLE)["sources"]]
    between_ns = sorted(bounds_ns)[len(bounds_ns) // 2]
    asked = ("bound", EXAMPLE, "--deadline", f"{between_ns}ns", "--deadline", "100s@0")
    told = document(*asked, code=3)["sources"]
    for source, bound_ns in zip(told, bounds_ns, strict=True):
        verdicts = [each["verdict"] for each in source["deadlines"]]
        assert verdicts == ["meets" if bound_ns <= between_ns else "not shown", "meets"]
    assert len({bound_ns <= between_ns for bound_ns in bounds_ns}) == 2
    document("bound", EXAMPLE, "--deadline", f"{max(bounds_ns)}ns@0")
    document("bound", EXAMPLE, "--deadline", "1us", code=3)


@pytest.mark.parametrize(
    ("allowed", "verdict", "code"),
    [
        ("@0", "violates", 1),
        ("", "not shown", 3),
        ("@1%", "not shown", 3),
        ("@1/h", "not shown", 3),
    ],
)
def test_what_is_proven_to_grow_without_end_violates_what_allows_no_lateness(
    allowed: str, verdict: str, code: int, tmp_path: Path
) -> None:
    path = described(tmp_path, bottom="1 ms", arrival='kind = "periodic", period = "1 ms"')
    told = document("bound", path, "--deadline", f"100s{allowed}", code=code)
    (source,) = told["sources"]
    assert source["verdict"] == "unbounded"
    assert [each["verdict"] for each in source["deadlines"]] == [verdict]
    last = run("bound", path, "--deadline", f"100s{allowed}").stdout.splitlines()[-1]
    assert last.startswith("a: violates" if code == 1 else "a: not shown to meet")
    assert "without end" in last
    # the denser the arrivals that come, the later they get
    latest_ns = [
        simulate(read_system(Path(path)), irqs=irqs).of("a").max_ns for irqs in (100, 1000, 10_000)
    ]
    assert latest_ns[2] > 9 * latest_ns[1] > 81 * latest_ns[0] > 0


def test_check_looks_as_far_as_it_is_told(tmp_path: Path) -> None:
    path = described(tmp_path, bottom="1 ms")
    (short,) = document("check", path, "--horizon", "2ms", "--effort", "50")["sources"]
    assert (short["verdict"], short["highest_ns"]) == ("past horizon", None)
    (long,) = document("check", path, "--horizon", "100s", "--effort", "50")["sources"]
    assert long["verdict"] == "bounded"
    assert 0 < long["highest_ns"] <= long["wcrt_ns"]
    refused = run("check", path, "--horizon", "0")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--mode", "papre"), "did you mean 'paper'?"),
        (("--deadline", "x=1ms"), "'x' is not a source"),
        (("--deadline", "a"), "not a duration"),
        (("--deadline", "a=0"), "has no unit"),
        (("--deadline", "a=0us"), "above zero"),
        (("--deadline", "1ms@often"), "is not an allowance"),
        (("--deadline", "1ms", "--deadline", "b=1ms"), "'b' is not a source"),
        (("--horizon", "0"), "'0' is not a horizon"),
        (("--horizon", "soon"), "--horizon"),
    ],
)
def test_wrong_options_are_told_in_one_line(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    done = run("bound", described(tmp_path), *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_simulate_tells_what_the_contract_promises() -> None:
    told = document("simulate", EXAMPLE, "--irqs", "3000", "--seed", "7")
    assert told["mode"] == "carry"
    assert sum(source["n"] for source in told["sources"]) == 3000
    for source in told["sources"]:
        handled = source["direct"] + source["interposed"] + source["delayed"]
        assert handled == source["n"]
        assert source["min_ns"] <= source["mean_ns"] <= source["max_ns"]
    assert told == document("simulate", EXAMPLE, "--irqs", "3000", "--seed", "7")
    assert told != document("simulate", EXAMPLE, "--irqs", "3000", "--seed", "8")


def test_listed_arrivals_are_simulated_to_the_nanosecond(tmp_path: Path) -> None:
    """By hand: at 1 ms the foreign slot begins, A's at 2 ms, after its switch of 10 us."""
    listed = tmp_path / "arrivals.csv"
    listed.write_text("source,time_ns\na,1000000\na,6000001\n")
    system = described(tmp_path)
    (source,) = document("simulate", system, "--arrivals", str(listed))["sources"]
    assert source == {
        "name": "a", "n": 2, "min_ns": 54_999, "mean_ns": (54_999 + 1_050_000) / 2,
        "max_ns": 1_050_000, "direct": 1, "interposed": 0, "delayed": 1,
    }  # fmt: skip
    from_top = document("simulate", system, "--arrivals", str(listed), "--latency-from", "top")
    assert from_top["sources"][0]["max_ns"] == 1_040_000


@pytest.mark.parametrize(
    ("time_ns", "words"),
    [
        (2**63 - 1, "leaves no time to serve"),
        (2**63 - 2, "goes beyond 292 years"),
    ],
)
def test_a_simulation_beyond_the_end_of_time_is_refused(
    time_ns: int, words: str, tmp_path: Path
) -> None:
    arrivals = tmp_path / "late.csv"
    arrivals.write_text(f"source,time_ns\na,{time_ns}\n")
    done = run("simulate", described(tmp_path), "--arrivals", str(arrivals), "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_drawn_arrivals_that_run_out_of_time_are_refused(tmp_path: Path) -> None:
    rare = described(tmp_path, arrival=f'kind = "periodic", period = {2**62}')
    done = run("simulate", rare, "--irqs", "5")
    assert done.returncode == 2
    assert "goes beyond 292 years" in done.stderr


def test_interrupts_that_are_masked_beyond_the_end_of_time_are_not_lost_silently(
    tmp_path: Path,
) -> None:
    rare = described(tmp_path, arrival=f'kind = "periodic", period = {2**62}')
    arrivals = tmp_path / "storm.csv"
    arrivals.write_text("source,time_ns\na,0\na,5\na,10\n")
    done = run("simulate", rare, "--arrivals", str(arrivals), "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "goes beyond 292 years" in done.stderr


def test_records_hold_every_irq(tmp_path: Path) -> None:
    records = tmp_path / "irqs.parquet"
    told = document("simulate", EXAMPLE, "--irqs", "200000", "--records", str(records))
    table = pq.read_table(records)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    assert len(table) == 200_000
    assert (columns["latency_ns"] == columns["end_ns"] - columns["arrival_ns"]).all()
    assert (columns["top_start_ns"] >= columns["arrival_ns"]).all()
    for source in told["sources"]:
        mine = columns["source"] == source["name"]
        latencies_ns = columns["latency_ns"][mine]
        assert len(latencies_ns) == source["n"]
        assert int(latencies_ns.max()) == source["max_ns"]
        assert np.isclose(latencies_ns.mean(), source["mean_ns"])
        for handling in ("direct", "interposed", "delayed"):
            assert (columns["handling"][mine] == handling).sum() == source[handling]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--irqs", "0"), "is not a number of interrupts"),
        (("--irqs", "5", "--arrivals", "x.csv"), "exclude each other"),
        (("--arrivals", "nowhere.csv"), "there is no such file"),
        (("--latency-from", "bottom"), "is not a known place where latencies begin"),
        (("--records", "/nowhere/x.parquet"), "cannot be written"),
    ],
)
def test_wrong_simulations_are_told_in_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = run("simulate", EXAMPLE, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_interrupting_keeps_what_was_simulated(tmp_path: Path) -> None:
    records = tmp_path / "irqs.parquet"
    program = subprocess.Popen(
        ["./latenz", "simulate", EXAMPLE, "--irqs", "1000000000000", "--records", str(records),
         "--json"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 120
    while not any(path.stat().st_size > 100_000 for path in tmp_path.iterdir()):
        assert time.monotonic() < until
        time.sleep(0.1)
    program.send_signal(signal.SIGINT)
    told = json.loads(program.communicate(timeout=600)[0])
    assert program.returncode == 130
    assert told["complete"] is False
    assert sum(source["n"] for source in told["sources"]) == pq.read_metadata(records).num_rows > 0


def test_a_terminal_sees_how_far_it_is() -> None:
    leader, follower = pty.openpty()
    program = subprocess.Popen(
        ["./latenz", "simulate", EXAMPLE, "--irqs", "20000000"],
        stdout=subprocess.DEVNULL, stderr=follower, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    seen = b""
    try:
        while chunk := os.read(leader, 4096):
            seen += chunk
    except OSError:
        pass
    assert program.wait() == 0
    assert b"simulating" in seen
