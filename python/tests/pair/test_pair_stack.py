"""The stack `pair` measures messages between an emulated Cortex-A53 and Cortex-R5."""

from pathlib import Path

import pytest

from latenz.benches import BENCHES
from latenz.experiment.progress import Progress
from latenz.experiment.runner import run_experiment
from latenz.experiment.schema import Experiment
from latenz.model import TimeBase
from latenz.store.run import Run

pytestmark = pytest.mark.boots

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
SAMPLES = 300
WAYS = {
    "there": 'through = "exchange"\nmemory = "ocm"',
    "large": 'through = "exchange"\nmemory = "ocm"\nbytes = 1024',
    "back": 'through = "mailbox"\nmemory = "ddr"\ndirection = "back"',
    "rpmsg": 'through = "rpmsg"\nmemory = "ocm"\nbytes = 64',
    "called": 'through = "rpmsg"\nmemory = "ocm"\nwait = "doorbell"\ndirection = "back"',
    "ring": 'through = "ring"\nmemory = "ocm"\nwait = "doorbell"\ndirection = "back"',
    "interrupt": 'through = "interrupt"\ndirection = "back"',
}
LOADED = ("spin", "memory")
AGAIN = {"back", "interrupt", "there-memory"}
KINDS = {"half-round-trip", "one-way", "raw"}


def probe(name: str, way: str) -> str:
    common = f'engine = "intercore"\nsamples = {SAMPLES}'
    return f"[probe.{name}]\n{common}\n{way}\n"


def condition(name: str, of: str, load: str = "none") -> str:
    return (
        f'[[condition]]\nname = "{name}"\nbench = "zcu102"\nstack = "pair"\n'
        f'probe = "{of}"\nstressor = "{load}"\n'
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Run]:
    """The experiment, and what of it is carried out again."""
    folder = tmp_path_factory.mktemp("pair")
    file = folder / "pair.toml"
    file.write_text(
        'name = "pair"\nseed = 1\n'
        + "".join(probe(*each) for each in WAYS.items())
        + "".join(condition(each, each) for each in WAYS)
        + "".join(condition(f"there-{load}", "there", load) for load in LOADED)
    )
    experiment = Experiment.read(file)
    again = [each for each in experiment.conditions if each.name in AGAIN]
    for name, conditions in (("first", experiment.conditions), ("second", again)):
        run_experiment(experiment, folder / name, conditions, Progress(wanted=False))
    return [Run.open(folder / name) for name in ("first", "second")]


def hashes(run: Run) -> dict[str, dict[str, str]]:
    for each in run.info.conditions:
        assert each["state"] == "measured", each
    return {each["condition"]: each["samples_sha256"] for each in run.info.conditions}


def latencies(run: Run) -> dict[str, list[int]]:
    return {
        each.metadata.name: [
            value for batch in each.batches() for value in batch["latency_ns"].to_pylist()
        ]
        for each in run.sample_sets
    }


def test_two_runs_give_the_same_samples(runs):
    first, second = (hashes(each) for each in runs)
    assert set(second) == AGAIN
    assert {name: first[name] for name in AGAIN} == second


def test_every_set_is_there_and_says_what_it_is(runs):
    found = {each.metadata.name: each.metadata for each in runs[0].sample_sets}
    expected = {f"{way}/{kind}" for way in WAYS for kind in KINDS}
    expected |= {f"there-{load}/{kind}" for load in LOADED for kind in KINDS}
    assert set(found) == expected - {"interrupt/half-round-trip"}
    assert {each.time_base for each in found.values()} == {TimeBase.VIRTUAL}
    there = found["there/one-way"]
    assert there.from_event == "exchange: 8 bytes, stamp before sending on Cortex-A53"
    assert there.to_event == "stamp at Cortex-R5"
    assert found["back/raw"].from_event == "raw: a flag, Cortex-R5 writes a word"
    assert any("memory and interconnect take no time" in note for note in there.notes)
    assert any("the clocks of both cores" in note for note in there.notes)
    assert any("sets it pending" in note for note in found["interrupt/one-way"].notes)


def test_figures_are_what_both_cores_execute(runs):
    found = latencies(runs[0])
    assert {len(each) for each in found.values()} == {SAMPLES}
    for way in ("there", "large", "back", "rpmsg", "called", "ring"):
        halves, ways, raw = (max(found[f"{way}/{kind}"]) for kind in sorted(KINDS))
        assert 0 < raw < halves < 2 * ways + 20  # the clocks are known to within 10 ns
    words = 1024 // 8
    longer = min(found["large/one-way"]) - max(found["there/one-way"])
    assert 2 * words < longer < 40 * words  # copied once by each side, in words of 8 and 4 bytes


def test_a_load_is_turns_of_the_emulator_whatever_it_does(runs):
    told = hashes(runs[0])
    names = [f"there-{load}/half-round-trip" for load in LOADED]
    assert told["there-spin"][names[0]] == told["there-memory"][names[1]]
    found = latencies(runs[0])
    assert min(found[names[0]]) > max(found["there/half-round-trip"])


@pytest.mark.parametrize(
    ("bench", "wanted", "reason"),
    [
        ("zcu102", 'memory = "tcm"', 'memory "tcm" exists on silicon only'),
        ("zcu102", 'memory = "ddr-cci"', 'memory "ddr-cci" exists on silicon only'),
        (
            "zcu102",
            'memory = "ocm"\nwait = "spin"',
            "a core that spins would keep the emulator to itself",
        ),
        ("zcu102", "", 'memory "shared" is that of bench host'),
        ("zcu102", 'through = "interrupt"', "QEMU's Cortex-R5 gets no interrupts"),
        ("zcu102", 'memory = "ocm"\nwait = "doorbell"', "QEMU's Cortex-R5 gets no interrupts"),
        ("zcu102", 'through = "pipe"', "pipe needs a Linux on both sides"),
        ("zcu102", 'memory = "ocm"\nsamples = 100000', "boards keep 99990 samples"),
        ("zcu102-board", 'memory = "tcm"', "nothing here starts its Cortex-R5"),
    ],
)
def test_what_cannot_be_measured_is_told_in_one_line(bench, wanted, reason, tmp_path):
    file = tmp_path / "refused.toml"
    file.write_text(
        f'name = "refused"\n[probe.it]\nengine = "intercore"\n{wanted}\n'
        f'[[condition]]\nname = "it"\nbench = "{bench}"\nstack = "pair"\nprobe = "it"\n'
    )
    [condition] = Experiment.read(file).conditions
    told = str(BENCHES[bench]().obstacle(condition))
    assert told.startswith(reason)
    assert "\n" not in told


@pytest.mark.parametrize("name", ["signal", "transfer"])
def test_the_publications_conditions_fit_the_emulated_board(name):
    conditions = Experiment.read(EXPERIMENTS / f"coppik2025-{name}.toml").conditions
    emulated = [each for each in conditions if each.bench == "zcu102"]
    assert emulated
    assert all(each.name.startswith("zcu102-") for each in emulated)
    assert [BENCHES["zcu102"]().obstacle(each) for each in emulated] == [None] * len(emulated)
