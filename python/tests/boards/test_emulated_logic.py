"""The Latencies IP's own VHDL in step with an emulated processor: the loop is closed."""

import json
import subprocess
import sys

import pytest

from latenz.boards import logic
from latenz.errors import BadInput
from latenz.experiment.progress import Progress
from latenz.experiment.runner import run_experiment
from latenz.experiment.schema import Experiment
from latenz.importers.opening import open_sample_sets
from latenz.programs import plugin_arguments
from latenz.stacks.measured import WARM_UP
from latenz.store.run import Run

SAMPLES = 400
WORDS, SYNCHRONISERS = 16, 0
T1_CYCLES = SYNCHRONISERS + WORDS + 1
"""By the formula of hdl/latency_bench/doc/latency_bench.md."""
EXPERIMENT = """
name = "logic"
[probe.poll]
engine = "interrupt"
measured_by = "latencies-ip"
path = true
[probe.asleep]
engine = "interrupt"
measured_by = "latencies-ip"
wait = "wfi"
optimization = "O2"
[probe.few]
engine = "interrupt"
measured_by = "latencies-ip"
samples = 40
[probe.many]
engine = "interrupt"
measured_by = "latencies-ip"
samples = 600
"""
CONDITION = """
[[condition]]
name = "{name}"
bench = "zcu102"
stack = "{stack}"
probe = "{probe}"
"""


def measured(folder, *conditions):
    text = EXPERIMENT + "".join(
        CONDITION.format(name=f"{stack}-{probe}", stack=stack, probe=probe)
        for stack, probe in conditions
    )
    folder.mkdir()
    (folder / "logic.toml").write_text(text)
    experiment = Experiment.read(folder / "logic.toml")
    run_experiment(experiment, folder / "run", experiment.conditions, Progress(wanted=False))
    accounts = Run.open(folder / "run").info.conditions
    assert [each["state"] for each in accounts] == ["measured"] * len(conditions), accounts
    return folder / "run"


def latencies(run):
    return {
        each.metadata.name: [
            value for batch in each.batches("latency_ns") for value in batch.column(0).to_pylist()
        ]
        for each in open_sample_sets(run)
    }


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    probes = ("poll", "asleep", "many")
    return measured(
        tmp_path_factory.mktemp("alone") / "first", *(("standalone", each) for each in probes)
    )


@pytest.mark.boots
def test_t1_is_what_the_circuit_takes(alone):
    found = latencies(alone)
    for probe, samples in (("poll", SAMPLES), ("asleep", SAMPLES), ("many", 600)):
        assert found[f"standalone-{probe}/T1"] == [T1_CYCLES] * samples


@pytest.mark.boots
def test_t2_is_what_the_path_recorder_counts(alone):
    """It counts instructions itself and knows nothing of the logic but where it is read first."""
    [path] = json.loads((alone / "standalone-poll/path.json").read_text())["paths"]
    assert path["interrupts"] == SAMPLES
    assert path["begin"] == "exception"
    assert path["unaccounted_ns"] == 0
    executed = sum(each["instructions"] for each in path["segments"])
    assert latencies(alone)["standalone-poll/T2"] == [executed + 1] * SAMPLES


@pytest.mark.long
@pytest.mark.boots
def test_two_runs_are_the_same_bit_by_bit(alone, tmp_path):
    again = measured(tmp_path / "again", ("standalone", "poll"), ("standalone", "asleep"))
    before = {each["condition"]: each for each in Run.open(alone).info.conditions}
    for each in Run.open(again).info.conditions:
        assert each["identity"] == before[each["condition"]]["identity"]
        assert each["samples_sha256"] == before[each["condition"]]["samples_sha256"]


@pytest.mark.long
@pytest.mark.boots
@pytest.mark.parametrize(("stack", "at_least"), [("xen", 500), ("partitioned", 60)])
def test_hypervisors_are_in_t2_and_not_in_t1(tmp_path, stack, at_least):
    found = latencies(measured(tmp_path / "run", (stack, "few")))
    assert found[f"{stack}-few/T1"] == [T1_CYCLES] * 40
    assert min(found[f"{stack}-few/T2"]) > at_least
    # the same handler alone takes 27 instructions: what is more is the hypervisor's
    assert len(found[f"{stack}-few/T2"]) == 40


@pytest.mark.boots
def test_a_cycle_too_many_is_found(alone):
    """The check of every run has teeth: a T2 of one more cycle than instructions is refused."""
    folder = alone / "standalone-poll"
    right = latencies(alone)["standalone-poll/T2"]
    assert len(logic.instructions(folder)) == SAMPLES + WARM_UP
    logic.check_cycles(folder, right)
    with pytest.raises(BadInput, match="T2 of sample 399 is 29 cycles, but 27 instructions"):
        logic.check_cycles(folder, [*right[:-1], right[-1] + 1])
    with pytest.raises(BadInput, match="tells of 410 interrupts, but 600 were measured"):
        logic.check_cycles(folder, [28] * 600)


def test_faults_of_the_logic_are_told(tmp_path):
    (tmp_path / "logic.txt").write_text("latenz-logic 1 1\nfault a slave does not answer\n")
    with pytest.raises(BadInput, match="a slave does not answer"):
        logic.instructions(tmp_path)
    with pytest.raises(BadInput, match="cannot be read"):
        logic.instructions(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("bench", "stack", "expected"),
    [
        ("virt", "standalone", "the Latencies IP measures on zcu102, zcu102-board, not on virt"),
        ("zcu102", "amp", "the Latencies IP measures on no bench, not on zcu102"),
    ],
)
def test_where_there_is_no_logic(bench, stack, expected):
    from latenz.engines import InterruptSettings
    from latenz.stacks import STACKS

    wanted = InterruptSettings(engine="interrupt", measured_by="latencies-ip")
    assert expected in str(STACKS[stack].engine_obstacle(wanted, bench))
    assert STACKS[stack].engine_obstacle(InterruptSettings(engine="interrupt"), bench) is None


def test_exponential_arrivals_are_refused():
    from pydantic import ValidationError

    from latenz.engines import InterruptSettings

    with pytest.raises(ValidationError, match="periodic only"):
        InterruptSettings(
            engine="interrupt", measured_by="latencies-ip", arrivals="exponential", period=100_000
        )


@pytest.mark.boots
@pytest.mark.parametrize(
    ("generic", "expected"),
    [
        ("colour_g=1", "'colour_g': there is no such generic; did you mean 'counters_g'?"),
        ("words_g=100", "ghdl: fifo_depth_g is 2 to 32768 and holds words_g words"),
        ("words_g=0", 'ghdl: override for generic "words_g" is out of bounds'),
    ],
)
def test_designs_that_cannot_be_compiled(generic, expected):
    command = [sys.executable, "hdl/simulation/compile", "--generic", generic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{expected}\n")


GOOD = {
    "design": "",
    "controller": "/machine/soc/gic",
    "source": "/machine/soc/ttc[1]",
    "output": "",
    "base": "0xa0000000",
    "interrupt": "89",
}


@pytest.mark.boots
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"base": "a"}, "latenz-logic: wrong argument: base=a"),
        ({"period": "0"}, "latenz-logic: wrong argument: period=0"),
        ({"interrupt": "988"}, "latenz-logic: wrong argument: interrupt=988"),
        ({"colour": "red"}, "latenz-logic: wrong argument: colour=red"),
        ({"design": "/dev/null"}, "latenz-logic: is not a compiled design: /dev/null"),
        ({"output": "/nowhere/logic.txt"}, "latenz-logic: cannot write /nowhere/logic.txt"),
        ({"controller": "/machine/x"}, "latenz-logic: this board has no controller /machine/x"),
        ({"source": "/machine/soc/ttc[9]"}, "latenz-logic: this board has no source"),
    ],
)
def test_plugin_refuses_in_one_line(tmp_path, changed, expected):
    design = str(logic.bench_logic().design)
    given = GOOD | {"design": design, "output": str(tmp_path / "logic.txt")} | changed
    options = [f"{name}={value}" for name, value in given.items()]
    command = ["qemu-system-aarch64", "-M", "xlnx-zcu102", "-nodefaults", "-display", "none"]
    command += ["-audio", "none", "-S", *plugin_arguments("latenz-logic", *options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    told = [line for line in done.stderr.splitlines() if line.startswith("latenz-logic")]
    assert done.returncode == 1
    assert len(told) == 1
    assert told[0].startswith(expected)
