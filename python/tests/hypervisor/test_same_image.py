"""One program on two boards, whose counters run at 1 GHz and at 62.5 MHz (16 ns a tick).

What becomes of an interrupt follows from its arrival, the slots and the monitor, not from what the
hypervisor's work takes on a board. Only ticks can tell boards apart: an arrival is stamped with the
nearest one, so that one nearer than half a tick to a slot's edge, or less than a tick closer to its
predecessor than the monitor allows, may fall to the other side.
"""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from latenz.boards.places import ENVIRONMENTS
from latenz.hypervisor import configuration
from latenz.hypervisor.arrivals import Arrivals
from latenz.hypervisor.build import build, build_system
from latenz.hypervisor.comparison import compared
from latenz.hypervisor.run import boot, ensure_built
from latenz.hypervisor.trace import Kind
from latenz.system import Monitor, Periodic, Platform, Slot, Source, System

pytestmark = pytest.mark.boots

LATENZ = Path(__file__).parents[3] / "latenz"
SYSTEMS = Path("experiments/systems")
BENCHES = ("virt", "zcu102")
US, MS = 1_000, 1_000_000
TICK_NS = 16
IRQS = 1000


def booted(built, folder):
    """Boot on every board; return what each showed, and the files that were booted."""
    ensure_built()
    runs, files = [], []
    for bench in BENCHES:
        (folder / bench).mkdir()
        runs.append(boot(built, bench, folder / bench).measured)
        files.append((folder / bench / "image.elf").read_bytes())
    assert [run.clock.hz for run in runs] == [10**9, 62_500_000]
    assert all(run.outcome.complete for run in runs)
    return runs, files


def handlings(run):
    """Return what became of each interrupt, source by source in the order of arrivals."""
    return run.irqs.handling[np.lexsort((run.irqs.arrival_ns, run.irqs.source))]


def on_ticks(raised):
    return replace(raised, time_ns=raised.time_ns // TICK_NS * TICK_NS)


@pytest.mark.parametrize("mode", ["carry", "paper"])
def test_every_board_boots_the_same_program_and_handles_every_interrupt_alike(tmp_path, mode):
    path = SYSTEMS / "can-gateway.toml"
    drawn = build(path, mode, irqs=IRQS, seed=8)
    built = build_system(drawn.system, mode, on_ticks(drawn.arrivals))
    runs, (one, other) = booted(built, tmp_path)
    differs = [at for at, (x, y) in enumerate(zip(one, other, strict=True)) if x != y]
    block = one.index(configuration.MAGIC.to_bytes(8, "little"))
    assert {at - block for at in differs} <= {16, 17, 18, 19, 80}, "the checksum, and the board"
    virt, zcu102 = map(handlings, runs)
    assert len(virt) == IRQS
    assert (virt == zcu102).all()
    assert len(set(virt.tolist())) == 3
    for run in runs:
        beside = compared(built.system, built, run)
        assert beside.alike >= 0.999 * beside.irqs
        assert beside.exceeding == 0


def test_arrivals_between_ticks_agree_with_the_simulator(tmp_path):
    built = build(SYSTEMS / "beckert2014-10-percent.toml", "paper", irqs=IRQS, seed=8)
    assert (built.arrivals.time_ns % TICK_NS != 0).mean() > 0.9
    runs, _ = booted(built, tmp_path)
    for run in runs:
        beside = compared(built.system, built, run)
        assert beside.irqs == IRQS
        assert beside.alike >= 0.999 * beside.irqs


def two_slots(length_ns: int) -> System:
    source = Source("s", "P1", 2 * US, 20 * US, Periodic(MS, US), Monitor((MS,)))
    return System(Platform(), (Slot("P1", 4 * MS), Slot("P2", length_ns)), (source,), "paper")


def test_what_differs_is_what_a_tick_cannot_tell(tmp_path):
    """The second of each pair keeps its distance, or is closer by 4 ns: a quarter of a tick."""
    firsts = np.arange(20) * 8 * MS + 5 * MS
    short = np.where(np.arange(20) % 2 == 0, 0, 4)
    time_ns = np.sort(np.concatenate([firsts, firsts + MS - short]))
    raised = Arrivals(time_ns, np.zeros(len(time_ns), np.int64), int(time_ns[-1]))
    runs, _ = booted(build_system(two_slots(4 * MS), "paper", raised), tmp_path)
    virt, zcu102 = (handlings(run)[1::2] for run in runs)
    interposed, delayed = 1, 2
    assert virt.tolist() == [interposed, delayed] * 10
    assert zcu102.tolist() == [interposed, interposed] * 10


def with_the_counter_of_silicon(folder, monkeypatch):
    """A Raspberry Pi's runs at 54 MHz: 18.5 ns a tick, of which the emulator makes 18."""
    described = (ENVIRONMENTS / "raspi4b.yaml").read_text()
    rate = '        extra_args: ["-global", "cortex-a72-arm-cpu.cntfrq=54000000"]\n'
    (folder / "latenz").mkdir()
    (folder / "latenz" / "raspi4b.yaml").write_text(
        described.replace("tools:\n", rate + "tools:\n")
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))


@pytest.mark.parametrize(("bench", "hz"), [("zcu102", 62_500_000), ("raspi4b", 54_000_000)])
def test_slots_that_cut_ticks_do_not_drift(tmp_path, monkeypatch, bench, hz):
    """A part of a tick is left of each cycle; they begin as the table has it, rounded down."""
    ensure_built()
    if bench == "raspi4b":
        with_the_counter_of_silicon(tmp_path, monkeypatch)
    raised = Arrivals(np.array([MS]), np.array([0]), 2 * MS)
    built = build_system(two_slots(4 * MS + 8), "paper", raised, least_cycles=60)
    run = boot(built, bench).measured
    assert run.outcome.complete
    assert run.clock.hz == hz
    slots = run.records[run.records["kind"] == Kind.SLOT_SWITCH]
    edges = (slots["start"] - slots["value"]).astype(np.int64) - run.clock.epoch_tick
    cycles_ns = np.arange(60) * built.system.cycle_ns
    assert edges[::2][:60].tolist() == (cycles_ns * hz // 10**9).tolist()


def test_the_command_builds_the_file_that_is_booted(tmp_path):
    path = SYSTEMS / "can-gateway.toml"
    target = tmp_path / "gateway.elf"
    command = [LATENZ, "hypervisor", "build", path, "--irqs", "50", "-o", target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    build(path, irqs=50).write(tmp_path / "again.elf")
    assert target.read_bytes() == (tmp_path / "again.elf").read_bytes()
