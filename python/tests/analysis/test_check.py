"""`latenz check` and `latenz.analysis.check`: what is found is reachable, legal and replays."""

import json
import os
import pty
import re
import signal
import subprocess
from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path
from random import Random
from typing import Any, get_args

import numpy as np
import oracle_bounds
import oracle_simulator
import pytest
from dictionaries import system_of
from random_systems import microsecond_system, tiny_system, with_curves

from latenz.analysis import bound, check, printed_equations, simulate
from latenz.analysis.check import Check, worst_arrivals, write_arrivals
from latenz.errors import BadInput
from latenz.system import (
    Learning,
    Mode,
    Monitor,
    Periodic,
    Platform,
    Slot,
    Source,
    System,
    read_arrivals,
    read_system,
)

EXAMPLE = Path("experiments/systems/can-gateway.toml")
MODES: tuple[Mode, ...] = get_args(Mode)
DATA = Path(__file__).parents[1] / "data" / "beckert2014" / "counterexamples.json"
CASES = json.loads(DATA.read_text())["cases"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["./latenz", *arguments], capture_output=True, text=True, check=False)


def streams(described: dict[str, Any], found: tuple[tuple[int, ...], ...]) -> dict[str, list[int]]:
    names = (source["name"] for source in described["sources"])
    return {name: list(times) for name, times in zip(names, found, strict=True)}


def assert_legal(described: dict[str, Any], arrivals: dict[str, list[int]]) -> None:
    """Any events span at least what the slow oracle says of their number."""
    for source in described["sources"]:
        times = arrivals[source["name"]]
        for first, last in combinations_with_replacement(range(len(times)), 2):
            least_ns = oracle_bounds.distance(source["model"], last - first + 1)
            assert times[last] - times[first] >= least_ns, (source, times)


def legal(described: dict[str, Any], arrivals: dict[str, list[int]]) -> bool:
    try:
        assert_legal(described, arrivals)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("kind", [tiny_system, microsecond_system], ids=["tiny", "microseconds"])
def test_what_is_found_is_legal_and_the_oracle_simulates_the_same(kind: Any) -> None:
    rng = Random(kind.__name__)
    searched = 0
    for _ in range(30):
        described = kind(rng)
        system = system_of(described)
        for mode in MODES:
            found = check(system, mode, effort=150, seed=rng.randrange(2**64))
            assert found.holds
            assert found.complete
            for source in found.sources:
                if source.arrivals_ns is None:
                    assert source.wcrt_ns is None
                    continue
                arrivals = streams(described, source.arrivals_ns)
                assert_legal(described, arrivals)
                served = oracle_simulator.simulate(described, arrivals, mode)[source.name]
                assert max(irq.end_ns - irq.arrival_ns for irq in served) == source.highest_ns
                searched += 1
    assert searched > 100


def test_one_stream_of_all_worst_arrivals_is_legal_and_replays() -> None:
    rng = Random(4)
    for _ in range(40):
        described = rng.choice((tiny_system, microsecond_system))(rng)
        system = system_of(described)
        mode = rng.choice(MODES)
        found = check(system, mode, effort=100)
        worst = worst_arrivals(system, found)
        assert_legal(described, streams(described, worst))
        outcome = simulate(system, mode, arrivals=worst, latency_from="arrival")
        for source in found.sources:
            if source.highest_ns is not None:
                assert outcome.of(source.name).max_ns == source.highest_ns


def test_what_is_found_with_cost_curves_is_reachable_but_no_stream_of_all() -> None:
    """A curve counts executions, however long ago: one pattern leaves less to the next."""
    rng = Random(5)
    searched = 0
    for _ in range(30):
        described = with_curves(rng, rng.choice((tiny_system, microsecond_system))(rng))
        system = system_of(described)
        mode = rng.choice(MODES)
        found = check(system, mode, effort=60)
        assert found.holds
        for source in found.sources:
            if source.arrivals_ns is not None:
                outcome = simulate(
                    system, mode, arrivals=source.arrivals_ns, latency_from="arrival"
                )
                assert outcome.of(source.name).max_ns == source.highest_ns
                searched += 1
        if any(each.top_sums_ns for each in system.sources):
            with pytest.raises(BadInput, match="has top_sums, which remember the patterns before"):
                worst_arrivals(system, found)
    assert searched > 20


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_is_known_to_be_reachable_is_reached(case: dict[str, Any]) -> None:
    for mode in MODES:
        found = check(system_of(case["system"]), mode, effort=2000)
        for name, reachable_ns in case["expected"]["simulated_max"][mode].items():
            highest_ns = found.of(name).highest_ns
            assert highest_ns is not None
            assert reachable_ns <= highest_ns <= case["expected"]["sound"][mode][name]


def test_a_bound_that_is_too_low_is_exceeded() -> None:
    """Eq. (11) as printed in place of the bound: the search shows it to be wrong."""
    case = next(case for case in CASES if case["name"] == "shared-queue")
    system = system_of(case["system"])
    found = check(system, "plain", effort=500)
    assert found.holds
    wrong = tuple(
        replace(source, wcrt_ns=printed.eq11_ns)
        for source, printed in zip(found.sources, printed_equations(system), strict=True)
    )
    assert not replace(found, sources=wrong).holds


def test_the_example_comes_close_in_every_mode() -> None:
    system = read_system(EXAMPLE)
    for mode, least in (("plain", 0.95), ("paper", 0.8), ("carry", 0.85)):
        found = check(system, mode, effort=2000)
        assert found.mode == mode
        assert all(source.ratio is not None and source.ratio >= least for source in found.sources)


def test_sources_of_other_partitions_break_their_models_in_the_second_search() -> None:
    rng, broken = Random("hostile"), 0
    for _ in range(15):
        described = tiny_system(rng)
        system = system_of(described)
        for mode in MODES:
            for number, source in enumerate(check(system, mode, effort=60).sources):
                if source.enforced_arrivals_ns is None:
                    assert source.enforced_ns is None
                    continue
                assert source.enforced_highest_ns is not None
                assert source.enforced_highest_ns <= (source.enforced_ns or 0)
                own = system.sources[number].partition
                arrivals = streams(described, source.enforced_arrivals_ns)
                kept = [each for each in described["sources"] if each["partition"] == own]
                assert_legal(described | {"sources": kept}, arrivals)
                served = oracle_simulator.simulate(
                    described, arrivals, mode, oracle_bounds.distance
                )[source.name]
                found_ns = max(irq.end_ns - irq.arrival_ns for irq in served)
                assert found_ns == source.enforced_highest_ns
                broken += not legal(described, arrivals)
    assert broken > 0  # limits leave a break little to gain


def test_monitors_that_learn_have_learned_when_that_is_worst_for_others() -> None:
    """What was learned from waits for its own slots, and what is accepted behind it as well."""
    often = Source("often", "A", 0, 2, Periodic(5), Monitor((5,)), learning=Learning(8, 1))
    seldom = Source("seldom", "B", 0, 1, Periodic(1000), Monitor((1000,)))
    slots = (Slot("A", 10), Slot("B", 10), Slot("C", 20))
    system = System(Platform(), slots, (often, seldom), "carry")
    found = check(system, effort=3000).of("seldom")
    assert found.enforced_arrivals_ns is not None
    assert found.enforced_monitored_from_ns is not None
    names = [each.name for each in system.sources]
    again = simulate(
        system,
        arrivals=[np.array(each, np.int64) for each in found.enforced_arrivals_ns],
        monitored_from_ns=dict(zip(names, found.enforced_monitored_from_ns, strict=True)),
    )
    assert again.of("seldom").max_ns == found.enforced_highest_ns
    learned = replace(system, sources=(replace(often, learning=None), seldom))
    assert found.enforced_highest_ns is not None
    assert found.enforced_highest_ns > (bound(learned).of("seldom").wcrt_ns or 0)
    assert found.enforced_highest_ns <= (found.enforced_ns or 0)


def test_an_enforced_bound_that_is_too_low_is_told() -> None:
    found = check(read_system(EXAMPLE), effort=100)
    first = found.sources[0]
    wrong = (replace(first, enforced_ns=(first.enforced_highest_ns or 0) - 1), *found.sources[1:])
    assert not replace(found, sources=wrong).holds


def test_the_same_seed_finds_the_same() -> None:
    system = read_system(EXAMPLE)
    once, again = (check(system, effort=300, seed=2**64 - 1) for _ in range(2))
    assert once == again


def test_the_progress_ends_at_the_whole_effort() -> None:
    system = read_system(EXAMPLE)
    seen: list[int] = []
    check(system, effort=1200, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 2 * 1200 * len(system.sources)


def test_an_interrupted_search_keeps_what_it_found() -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    found = check(read_system(EXAMPLE), effort=10**9, progress=interrupt)
    assert not found.complete
    assert found.sources[0].highest_ns is not None


@pytest.mark.parametrize(("effort", "seed"), [(0, 0), (-1, 0), (10**9 + 1, 0), (1, -1), (1, 2**64)])
def test_impossible_efforts_and_seeds(effort: int, seed: int) -> None:
    with pytest.raises(BadInput, match="give "):
        check(read_system(EXAMPLE), effort=effort, seed=seed)


def test_document_and_replay(tmp_path: Path) -> None:
    worst = tmp_path / "worst.csv"
    done = run("check", str(EXAMPLE), "--effort", "500", "--arrivals-out", str(worst), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["mode"], told["holds"], told["complete"]) == ("carry", True, True)
    replayed = json.loads(run("simulate", str(EXAMPLE), "--arrivals", str(worst), "--json").stdout)
    names = [source["name"] for source in told["sources"]]
    for source, simulated in zip(told["sources"], replayed["sources"], strict=True):
        assert source["highest_ns"] == simulated["max_ns"] <= source["wcrt_ns"]
        assert source["ratio"] == pytest.approx(source["highest_ns"] / source["wcrt_ns"])
        assert list(source["arrivals_ns"]) == names
        assert source["verdicts"] == dict.fromkeys(MODES, "bounded")
        assert not source["exceeded"]


CROWDED = """
[platform]
limit = 1
[policy]
mode = "carry"
[[slot]]
partition = "P2"
length = 11
[[slot]]
partition = "P0"
length = 21
[[source]]
name = "s0"
partition = "P2"
top = 2
bottom = 2
arrival = { kind = "periodic", period = 94, jitter = 57, min_distance = 94 }
monitor = { distances = [10, 113] }
[[source]]
name = "s1"
partition = "P2"
top = 2
bottom = 4
arrival = { kind = "periodic", period = 42, jitter = 57, min_distance = 42 }
monitor = { distances = [42, 113] }
[[source]]
name = "s2"
partition = "P2"
top = 0
bottom = 4
arrival = { kind = "periodic", period = 26, jitter = 61, min_distance = 6 }
monitor = { distances = [33, 64] }
"""


@pytest.mark.parametrize("seed", range(4))
def test_no_source_fares_worse_by_what_was_found_for_another(seed: int, tmp_path: Path) -> None:
    """Leaving arrivals out for one source can make it worse for another."""
    path = tmp_path / "crowded.toml"
    path.write_text(CROWDED)
    system = read_system(path)
    found = check(system, effort=60, seed=seed)
    arrivals = [np.array(times, np.int64) for times in worst_arrivals(system, found)]
    replayed = simulate(system, arrivals=arrivals)
    assert [each.max_ns for each in replayed.sources] == [x.highest_ns for x in found.sources]


def test_times_that_64_bits_cannot_hold_are_not_searched(tmp_path: Path) -> None:
    path = tmp_path / "ages.toml"
    path.write_text(
        f"""
        [[slot]]
        partition = "P"
        length = {2**61 + 2**58}
        [[source]]
        name = "a"
        partition = "P"
        top = 0
        bottom = 2
        arrival = {{ kind = "periodic", period = {2**61}, jitter = 2 }}
        """
    )
    done = run("check", str(path), "--effort", "5")
    assert done.returncode == 0, done.stdout
    assert "a: not searched: 64 bits are too few for its times" in done.stdout


def test_why_there_is_no_enforced_search(tmp_path: Path) -> None:
    """The monitor grants more than the processor could serve, if the model did not forbid it."""
    path = tmp_path / "system.toml"
    path.write_text(
        """
        [policy]
        mode = "carry"
        [[slot]]
        partition = "A"
        length = 100
        [[slot]]
        partition = "B"
        length = 100
        [[source]]
        name = "a"
        partition = "A"
        top = 2
        bottom = 4
        arrival = { kind = "periodic", period = 400 }
        [[source]]
        name = "b"
        partition = "B"
        top = 2
        bottom = 4
        arrival = { kind = "periodic", period = 400 }
        monitor = { distances = [3] }
        """
    )
    done = run("check", str(path), "--effort", "5")
    assert done.returncode == 0
    assert "a: no enforced bound, not searched: the form slots counts more work" in done.stdout
    assert check(read_system(path), effort=5).of("a").enforced_reason is not None


def test_table_names_what_was_found() -> None:
    done = run("check", str(EXAMPLE), "--mode", "plain", "--effort", "300")
    assert (done.returncode, done.stderr) == (0, "")
    assert "mode plain" in done.stdout
    for source in read_system(EXAMPLE).sources:
        assert source.name in done.stdout
    assert "worst arrivals for" in done.stdout


def overloaded(tmp_path: Path) -> Path:
    text = EXAMPLE.read_text().replace('"carry"', '"plain"')
    path = tmp_path / "overloaded.toml"
    path.write_text(
        text + '\n[[source]]\nname = "flood"\npartition = "gateway"\ntop = "1 us"\n'
        'bottom = "50 ms"\narrival = { kind = "periodic", period = "1 ms" }\n'
    )
    return path


def test_sources_without_a_bound_are_told_and_not_searched(tmp_path: Path) -> None:
    path, worst = overloaded(tmp_path), tmp_path / "worst.csv"
    done = run("check", str(path), "--effort", "100", "--json", "--arrivals-out", str(worst))
    assert done.returncode == 0, done.stderr
    told = {source["name"]: source for source in json.loads(done.stdout)["sources"]}
    flood = told["flood"]
    assert flood["verdict"] == "unbounded"
    assert "overload" in flood["reason"]
    assert flood["highest_ns"] is flood["ratio"] is flood["arrivals_ns"] is None
    assert told["door"]["highest_ns"] > 0
    assert "not searched: overload" in run("check", str(path), "--effort", "100").stdout
    read_arrivals(worst, read_system(path))


def test_without_any_bound_the_worst_arrivals_are_none(tmp_path: Path) -> None:
    system = read_system(EXAMPLE)
    found = check(system, effort=10, horizon_ns=1)
    assert all(source.highest_ns is None for source in found.sources)
    path = tmp_path / "none.csv"
    write_arrivals(path, system, worst_arrivals(system, found))
    assert path.read_text() == "source,time_ns\n"


def test_arrivals_past_the_clock_are_refused(tmp_path: Path) -> None:
    system = read_system(EXAMPLE)
    late = ((2**63,), *(() for _ in system.sources[1:]))
    with pytest.raises(BadInput, match="longer than"):
        write_arrivals(tmp_path / "late.csv", system, late)
    assert not list(tmp_path.iterdir())


def test_a_latency_above_its_bound_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    from latenz.analysis.check_show import print_check

    system = read_system(EXAMPLE)
    found: Check = check(system, effort=100)
    first = replace(found.sources[0], wcrt_ns=1)
    print_check(system, replace(found, sources=(first, *found.sources[1:])))
    assert f"{first.name}: a simulated latency is above its bound" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--effort", "0"),
        ("--seed", "-1"),
        ("--mode", "fast"),
        ("--arrivals-out", "/nonexistent/worst.csv"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...]) -> None:
    done = run("check", str(EXAMPLE), "--effort", "10", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


def test_ctrl_c_tells_what_was_found() -> None:
    leader, follower = pty.openpty()
    program = subprocess.Popen(
        ["./latenz", "check", str(EXAMPLE), "--effort", "1000000000"],
        stdout=subprocess.PIPE, stderr=follower, text=True, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    seen = b""
    while not re.search(rb"[1-9][0-9]*/8000000000", seen):
        seen += os.read(leader, 1000)
    program.send_signal(signal.SIGINT)
    told = program.communicate(timeout=600)[0]
    os.close(leader)
    assert program.returncode == 130
    assert "interrupted" in told
    assert "can-engine" in told
