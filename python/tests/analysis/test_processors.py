"""Systems with slots on several processors: each is bounded, simulated and searched by itself."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, get_args

import oracle_bounds
import oracle_simulator
import pyarrow.parquet as pq
import pytest
from dictionaries import arrivals_of, system_of
from random_systems import microsecond_system, random_arrivals, tiny_system

from latenz.analysis import bound, check, printed_equations, simulate
from latenz.analysis.check import worst_arrivals
from latenz.analysis.simulate import HANDLINGS, simulated_irqs
from latenz.analysis.simulators import simulator_of
from latenz.errors import BadInput
from latenz.system import Mode, Partition, System, read_system, write_system
from latenz.system.processors import check_one_processor, parts, shared_processors

TEXT = Path("docs/systems.md").read_text()
[EXAMPLE] = [
    content
    for content in re.findall(r"^```toml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    if "processor 1: a cycle" in content
]
MODES: tuple[Mode, ...] = get_args(Mode)
HORIZON_NS = 200_000_000
KINDS = pytest.mark.parametrize(
    "kind", [tiny_system, microsecond_system], ids=["tiny", "microseconds"]
)


def renamed(described: dict[str, Any], processor: int) -> dict[str, Any]:
    """Give partitions and sources of a described system names of its processor."""
    prefix = f"{processor} "
    slots = [each | {"partition": prefix + each["partition"]} for each in described["slots"]]
    sources = [
        each | {"name": prefix + each["name"], "partition": prefix + each["partition"]}
        for each in described["sources"]
    ]
    return described | {"slots": slots, "sources": sources}


def side_by_side(rng: Random, *described: dict[str, Any]) -> System:
    """Put systems with the costs of the first on processors, their slots and sources mixed."""
    systems = [system_of(each) for each in described]
    hosted = [
        Partition(name, cpu=processor)
        for processor, each in enumerate(systems)
        for name in each.partitions
        if processor
    ]
    return replace(
        systems[0],
        slots=tuple(mixed(rng, [list(each.slots) for each in systems])),
        sources=tuple(mixed(rng, [list(each.sources) for each in systems])),
        hosted=tuple(hosted),
    )


def mixed(rng: Random, rows: list[list[Any]]) -> list[Any]:
    """Merge rows in any order that keeps each one's own."""
    found = []
    while any(rows):
        found.append(rng.choice([each for each in rows if each]).pop(0))
    return found


def two(rng: Random, kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw two described systems with the same costs, each slot longer than the switch."""
    first, second = renamed(kind(rng), 0), renamed(kind(rng), 1)
    costs = {key: first[key] for key in ("c_mon", "c_sched", "c_ctx")}
    shortest = min(each["length"] for each in first["slots"] + second["slots"])
    costs["c_switch"] = min(first["c_switch"], shortest - 1)
    return first | costs, second | costs


@KINDS
def test_bounds_of_each_processor_are_the_oracle_s_of_it_alone(kind: Any) -> None:
    rng = Random(f"processors {kind.__name__}")
    bounded = 0
    for _ in range(40):
        described = two(rng, kind)
        system = side_by_side(rng, *described)
        for mode in ("plain", "paper"):
            bounds = bound(system, mode, horizon_ns=HORIZON_NS)
            found = {each.name: each.wcrt_ns for each in bounds.sources}
            assert list(found) == [source.name for source in system.sources]
            for each in described:
                expected = oracle_bounds.sound_bounds(each, mode, HORIZON_NS, tight=True)
                own = {name: found[name] for name in expected}
                assert own == expected, (mode, described)
                bounded += sum(ns is not None for ns in own.values())
    assert bounded > 100


@KINDS
def test_each_processor_is_simulated_as_the_oracle_simulates_it_alone(kind: Any) -> None:
    rng = Random(f"simulated processors {kind.__name__}")
    for _ in range(40):
        described = two(rng, kind)
        system = side_by_side(rng, *described)
        arrivals = [random_arrivals(rng, each, most=10) for each in described]
        for mode in MODES:
            expected = {}
            for each, own in zip(described, arrivals, strict=True):
                for name, records in oracle_simulator.simulate(each, own, mode).items():
                    expected[name] = sorted(
                        (r.arrival_ns, r.top_start_ns, r.end_ns, r.kind) for r in records
                    )
            assert irqs(system, mode, arrivals[0] | arrivals[1]) == expected, (mode, described)


def irqs(system: System, mode: Mode, arrivals: dict[str, list[int]]) -> dict[str, list[Any]]:
    simulator = simulator_of(system, mode, arrivals=arrivals_of(system, arrivals), watch="irqs")
    found: dict[str, list[Any]] = {source.name: [] for source in system.sources}
    for batch in simulated_irqs(simulator):
        times = (batch.arrival_ns, batch.top_start_ns, batch.end_ns)
        for source, handling, *own in zip(batch.source, batch.handling, *times, strict=True):
            found[system.sources[source].name].append((*map(int, own), HANDLINGS[handling]))
    return {name: sorted(each) for name, each in found.items()}


def test_nothing_of_a_processor_depends_on_another_one(tmp_path: Path) -> None:
    system = example(tmp_path)
    crowded = replace(
        system,
        sources=tuple(
            replace(each, bottom_ns=each.bottom_ns * (9 if each.name == "camera" else 1))
            for each in system.sources
        ),
    )
    for mode in MODES:
        before, after = bound(system, mode), bound(crowded, mode)
        assert before.of("can") == after.of("can")
        assert before.of("camera") != after.of("camera")
        assert before.partitions[:2] == after.partitions[:2]
    assert printed_equations(system)[0] == printed_equations(crowded)[0]
    options = {"irqs": 300, "seed": 4}
    assert simulate(system, **options).of("can") == simulate(crowded, **options).of("can")


def test_slots_without_sources_lose_switches_only(tmp_path: Path) -> None:
    """Of 500 us the server has its switch, and that of the next slot if it was late."""
    system = example(tmp_path)
    alone = replace(system, sources=system.sources[:1])
    promises = {each.name: each for each in bound(alone).partitions}
    assert list(promises) == ["control", "logging", "vision", "network"]
    assert promises["network"].interference_ns_by_slot == (2_000,)
    assert 2_000 <= promises["vision"].interference_ns_by_slot[0] <= 4_000
    assert [each.name for each in simulate(alone, irqs=50).sources] == ["can"]
    assert [part.system is None for part in parts(alone)] == [False, True]


def test_a_file_says_what_it_says_and_is_written_as_such(tmp_path: Path) -> None:
    system = example(tmp_path)
    assert shared_processors(system) == (0, 1)
    first, second = parts(system)
    assert [slot.partition for slot in first.slots] == ["control", "logging"]
    assert [slot.partition for slot in second.slots] == ["vision", "network"]
    assert (first.sources, second.sources) == ((0,), (1, 2))
    assert first.system is not None
    assert second.system is not None
    assert (first.system.cycle_ns, second.system.cycle_ns) == (1_000_000, 800_000)
    assert [second.system.interrupt_of(number) for number in (0, 1)] == [65, 66]
    write_system(system, tmp_path / "again.toml")
    assert read_system(tmp_path / "again.toml") == system
    with pytest.raises(BadInput, match="processors 0 and 1 have slots of their own; this takes"):
        assert system.cycle_ns


def test_one_processor_that_is_not_the_first_is_like_the_first(tmp_path: Path) -> None:
    system = example(tmp_path)
    second = parts(system)[1].system
    assert second is not None
    moved = replace(second, hosted=())
    assert bound(second) == bound(moved)
    assert second.cycle_ns == 800_000


def test_a_search_finds_what_simulation_replays(tmp_path: Path) -> None:
    system = example(tmp_path)
    told: list[int] = []
    found = check(system, effort=100, seed=3, progress=told.append)
    assert found.holds
    assert found.complete
    assert told == sorted(told)
    assert told[-1] == 2 * 100 * 3
    assert all(each.highest_ns for each in found.sources)
    streams = worst_arrivals(system, found)
    arrivals = dict(zip((each.name for each in found.sources), map(list, streams), strict=True))
    outcome = simulate(system, arrivals=arrivals_of(system, arrivals))
    for each in found.sources:
        assert outcome.of(each.name).max_ns >= each.highest_ns
        own = each.arrivals_ns
        assert own is not None
        assert not own[0] or not any(own[1:])  # of one processor


def test_the_example_is_told_as_printed(tmp_path: Path) -> None:
    path = written(tmp_path)
    printed = TEXT[TEXT.index("$ ./latenz bound two-processors.toml\n") :].split("```")[0]
    done = run("bound", path)
    shown = [line.rstrip() for line in done.stdout.splitlines()]
    for line in printed.splitlines()[1:]:
        assert line in shown
    assert "assumed: each processor is bounded by itself" in done.stdout


@pytest.mark.parametrize("verb", ["bound", "check"])
def test_the_table_fits_a_terminal_of_80_columns(
    tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of `check` has more columns than fit, whatever the system."""
    monkeypatch.setenv("COLUMNS", "80")
    path = written(tmp_path)
    effort = ["--effort", "20"] if verb == "check" else []
    lines = run(verb, path, *effort).stdout.splitlines()
    [row] = [line for line in lines if line.startswith(" can ") and "control (0)" in line]
    assert verb == "check" or len(row.rstrip()) <= 80
    assert "in brackets: the processor whose slots the partition has" in lines


def test_every_irq_of_all_processors_is_recorded(tmp_path: Path) -> None:
    path, records = written(tmp_path), tmp_path / "irqs.parquet"
    done = run("simulate", path, "--irqs", "200", "--records", str(records), "--json")
    figures = {each["name"]: each["n"] for each in json.loads(done.stdout)["sources"]}
    assert figures["can"] == 200
    assert figures["camera"] + figures["ethernet"] == 200
    named = pq.read_table(records)["source"].to_pylist()
    assert {name: named.count(name) for name in figures} == figures


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "{path}", "--picture", "{folder}/schedule.svg"),
        ("simulate", "{path}", "--trace", "{folder}/schedule.json"),
        ("simulate", "{path}", "--picture", "{folder}/x.svg", "--window", "1ms..2ms"),
        ("explore", "{path}", "--deadline", "can=300us"),
    ],
    ids=lambda arguments: " ".join(arguments[::2]),
)
def test_what_takes_one_processor_says_so_in_a_line(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    path = written(tmp_path)
    done = run(*(each.format(path=path, folder=tmp_path) for each in arguments), code=2)
    [told] = [line for line in done.stderr.splitlines() if line.startswith("latenz: ")]
    assert "processors 0 and 1 have slots of their own; this takes a system" in told
    assert [each.name for each in tmp_path.iterdir()] == ["system.toml"]


def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["./latenz", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def written(folder: Path) -> str:
    (folder / "system.toml").write_text(EXAMPLE)
    return str(folder / "system.toml")


def example(folder: Path) -> System:
    return read_system(Path(written(folder)))


def test_a_watchdog_is_looked_at_in_the_cycle_of_its_processor(tmp_path: Path) -> None:
    """From one slot of `vision` to the next are 800 us, whatever processor 0 has."""
    right = EXAMPLE.replace('"vision"\ncpu = 1', '"vision"\ncpu = 1\nwatchdog = "800 us"')
    (tmp_path / "system.toml").write_text(right)
    assert read_system(tmp_path / "system.toml").hosted[0].watchdog_ns == 800_000
    (tmp_path / "system.toml").write_text(right.replace("800 us", "799 us"))
    with pytest.raises(
        BadInput, match="shorter than from one of its slots to the next; write at least 8"
    ):
        read_system(tmp_path / "system.toml")


def test_a_device_of_a_processor_is_bounded_as_it_is_stamped(tmp_path: Path) -> None:
    device = 'devices = [{ physical = 0xFF110000, size = "4 KiB", interrupts = [68] }]\n'
    text = EXAMPLE.replace('period = "2 ms" }', 'period = "2 ms" }\ninterrupt = 68')
    text = text.replace('"vision"\ncpu = 1\n', f'"vision"\nguest = "own.bin"\ncpu = 1\n{device}')
    (tmp_path / "system.toml").write_text(text)
    told = run("bound", str(tmp_path / "system.toml"), "--json").stdout
    bounds = json.loads(told)
    assert [each["verdict"] for each in bounds["sources"]] == ["bounded"] * 3
    assert any(each.startswith("camera is a device's") for each in bounds["assumptions"])


def test_an_experiment_says_where_it_names_such_a_system(tmp_path: Path) -> None:
    written(tmp_path)
    probe = '[probe.two]\nengine = "simulation"\nsystem = "system.toml"\nirqs = 10\n'
    condition = '[[condition]]\nname = "quiet"\nbench = "simulation"\nprobe = "two"\n'
    (tmp_path / "plan.toml").write_text(f'name = "short"\n{probe}{condition}')
    done = run("run", str(tmp_path / "plan.toml"), "-o", str(tmp_path / "run"), code=2)
    assert "plan.toml:4: probe.two.system: processors 0 and 1 have slots" in done.stderr
    assert not (tmp_path / "run").exists()


def test_three_processors_are_listed_and_each_is_bounded(tmp_path: Path) -> None:
    text = EXAMPLE.replace('name = "network"\ncpu = 1', 'name = "network"\ncpu = 3')
    (tmp_path / "system.toml").write_text(text)
    system = read_system(tmp_path / "system.toml")
    assert [len(part.slots) for part in parts(system)] == [2, 1, 1]
    with pytest.raises(BadInput, match="processors 0, 1 and 3 have slots of their own"):
        check_one_processor(system)
    both = bound(example(tmp_path)).of("ethernet").wcrt_ns
    alone = bound(system).of("ethernet").wcrt_ns
    assert both is not None
    assert alone is not None
    assert alone < both  # without the top handler of the camera
    shares = {each.name: [x.source for x in each.shares] for each in bound(system).sources}
    assert shares == {name: [name] for name in ("can", "camera", "ethernet")}
