"""Paths of real interrupts in QEMU: of a program known to the instruction, and through real Xen."""

import subprocess

import pytest
from path_guest import EMULATOR, SAMPLES, TICK_NS, Guest

from latenz.boards import images
from latenz.errors import BadInput
from latenz.path.recorder import Recorder
from latenz.path.recording import Accessed, read_recording
from latenz.path.software import Program, Software, Term
from latenz.path.symbols import elf_symbols, embedded_symbols
from latenz.programs import probe_program

pytestmark = pytest.mark.boots

KINDS = {"alone": {}, "alone, asleep": {"wfi": True}}
KINDS |= {"in Xen": {"xen": True}, "in Xen, asleep": {"xen": True, "wfi": True}}
KINDS |= {"in Xen, two cores": {"xen": True, "cpus": 2}}


class Recorded:
    """A variant of the program, run plainly and recorded."""

    def __init__(self, folder, **kind):
        guest = Guest(folder, **kind)
        self.ticks, self.console = guest.run()
        symbols = elf_symbols(guest.elf)
        programs = [Program("guest", "firmware", symbols)]
        if guest.xen:
            programs.append(Program("Xen", "xen", embedded_symbols(images.xen().path)))
        self.software = Software(*programs)
        recorder = Recorder(folder, [symbols.find("isr").address], captures=SAMPLES)
        self.recorded_ticks, self.recorded_console = guest.run(*recorder.arguments())
        self.latencies_ns = [TICK_NS * each for each in self.ticks]
        self.paths = recorder.read(self.software, self.latencies_ns, TICK_NS, keep=True).paths
        self.guessed = recorder.read(self.software).paths  # deletes the recording
        self.folder, self.recorder = folder, recorder


@pytest.fixture(scope="module", params=KINDS, ids=str)
def recorded(request, tmp_path_factory):
    return Recorded(tmp_path_factory.mktemp("path"), **KINDS[request.param])


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return Recorded(tmp_path_factory.mktemp("alone"))


def test_recording_changes_nothing(recorded):
    assert recorded.recorded_ticks == recorded.ticks
    assert recorded.recorded_console == recorded.console


def test_instructions_are_the_latency_to_within_its_tick(recorded):
    for path in recorded.paths:
        assert path.unaccounted_ns == 0
        assert path.instructions // TICK_NS == recorded.ticks[path.first]
        assert sum(segment.instructions for segment in path.segments) == path.instructions
        assert sum(path.terms().values()) == path.instructions
    assert sum(path.interrupts for path in recorded.paths) == SAMPLES


def test_paths_are_those_of_the_samples(recorded):
    """Interrupts of different latency took different paths, and each is counted."""
    by_latency = {ticks: recorded.ticks.count(ticks) for ticks in recorded.ticks}
    found = {}
    for path in recorded.paths:
        ticks = path.instructions // TICK_NS
        found[ticks] = found.get(ticks, 0) + path.interrupts
    assert found == by_latency


def test_the_beginning_is_found_without_the_latency_too(recorded):
    assert [(each.first, each.instructions) for each in recorded.guessed] == [
        (each.first, each.instructions) for each in recorded.paths
    ]


def test_hand_disassembled_path(alone):
    (path,) = alone.paths
    entry, handler = path.segments
    assert (path.begin, path.instructions, path.interrupts) == ("exception", 13, SAMPLES)
    assert entry.symbols == {"vectors": 1, "irq_entry": 11}
    assert handler.symbols == {"isr": 1}
    assert path.terms() == {Term.IRQ: 0, Term.HYP: 0, Term.OS: 12, Term.USER: 1}
    assert (path.exception_entries, path.exception_returns) == (1, 0)
    assert (path.device_reads, path.device_writes) == (0, 0)


def test_xen_is_between(tmp_path):
    found = Recorded(tmp_path, xen=True)
    path = found.paths[0]
    assert path.terms()[Term.HYP] == path.instructions - 13
    assert path.terms()[Term.OS] == 12
    # Xen takes the interrupt and returns; the guest takes the virtual one.
    assert (path.exception_entries, path.exception_returns) == (2, 1)
    functions = {name for segment in path.segments for name in segment.symbols}
    assert functions >= {"hyp_traps_vector", "gic_interrupt", "do_IRQ", "vgic_inject_irq"}
    devices = {name for s in path.segments for name in (*s.device_reads, *s.device_writes)}
    assert devices == {"gic_cpu", "gic_viface"}
    assert (path.device_reads, path.device_writes) == (4, 4)
    assert not any(segment.term is Term.UNKNOWN for segment in path.segments)


def test_device_accesses_are_where_the_program_makes_them(tmp_path):
    """Blocks cut at a device count what was executed of them: nothing twice, nothing lost."""
    guest = Guest(tmp_path, wfi=True)  # asleep, so that the recording goes back to the start
    symbols = elf_symbols(guest.elf)
    guest.run(*Recorder(tmp_path, [symbols.find("isr").address], 1).arguments())
    first = read_recording(tmp_path / "path.txt").captures[0]
    written = [event for event in first if isinstance(event, Accessed)]
    # _start switches on distributor, interrupt 27, priority mask and interface, in this order
    assert [(event.store, event.device) for event in written] == [
        (True, "gic_dist"),
        (True, "gic_dist"),
        (True, "gic_cpu"),
        (True, "gic_cpu"),
    ]
    boot = symbols.find("_start")
    executed = [
        address
        for event in first
        if not isinstance(event, Accessed)
        for address in list(event.block.addresses())[: event.executed]
        if boot.address <= address < boot.end
    ]
    assert executed == list(range(boot.address, executed[-1] + 4, 4))


def test_without_icount_it_says_so(tmp_path):
    guest = Guest(tmp_path)
    recorder = Recorder(tmp_path, [elf_symbols(guest.elf).find("isr").address], 1)
    command = ["qemu-system-aarch64", "-M", "virt,gic-version=2", "-cpu", "cortex-a53", "-smp", "2"]
    command += ["-nodefaults", "-display", "none", "-kernel", guest.elf, *recorder.arguments()]
    subprocess.run(command, check=True, timeout=600, capture_output=True)
    with pytest.raises(BadInput, match="start QEMU with -icount"):
        recorder.read(Software())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("captures=1", "handler=ADDRESS and output=FILE are needed"),
        ("handler=0x10,output=/nowhere/at/all", "cannot write /nowhere/at/all"),
        ("handler=nonsense", "wrong argument: handler=nonsense"),
        ("captures=0", "wrong argument: captures=0"),
        ("window=99999999", "wrong argument: window=99999999"),
        ("colour=red", "wrong argument: colour=red"),
    ],
)
def test_wrong_arguments_are_told(arguments, complaint):
    plugin = f"file={probe_program('latenz-path-recorder.so')},{arguments}"
    command = [*EMULATOR, "-M", "virt", "-plugin", plugin]
    done = subprocess.run(command, check=False, timeout=600, capture_output=True, text=True)
    assert done.returncode != 0
    assert f"latenz-path-recorder: {complaint}\n" in done.stderr


def test_a_handler_that_never_runs_is_told(tmp_path):
    guest = Guest(tmp_path)
    recorder = Recorder(tmp_path, [0x1234], 1)
    guest.run(*recorder.arguments())
    with pytest.raises(BadInput, match="see whether the handler ever ran"):
        recorder.read(Software())
