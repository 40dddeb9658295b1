"""Virtual machines under real KVM on an emulated host: `kvm-in-tcg`.

Where KVM does not run, what it does can still be seen: QEMU emulates a machine whose processors
have AMD's SVM, Linux with its own KVM runs there, and on that the virtual machine, by the command
that a real host would be given. Exits, interrupts, scheduling and their order are real. Times are
not: they are instructions, counted over all emulated processors, 1 ns each, without caches, and an
entry into a guest costs what QEMU executes for it, not what silicon needs.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenz.errors import BadInput
from latenz.files import scratch_place
from latenz.keeper import KeptProgram
from latenz.programs import turn_arguments
from latenz.stacks import guest_linux
from latenz.unpacking import Damaged, members
from latenz.vm import nested_host
from latenz.vm.heartbeat import Heartbeat

if TYPE_CHECKING:
    from latenz.boards.console import Received
    from latenz.boards.images import Image
    from latenz.model import SampleSet
    from latenz.stacks.base import Job
    from latenz.traces.recording import Recorded
    from latenz.tune.context import Context
    from latenz.tune.model import Entry
    from latenz.vm.settings import VmSettings

HOUSEKEEPING = (0,)
"""The emulated host's CPU for all that is not a vCPU."""
_POLLING = frozenset({"kvm-halt-poll", "qemu-hint-dedicated", "guest-haltpoll", "guest-idle-poll"})
_SECOND_VCPU = frozenset({"vcpu-non-rt-spare", "guest-isolcpus-nohz-rcu", "guest-irqaffinity"})
NOT_HERE = _POLLING | _SECOND_VCPU
"""Tunings that an emulated host leaves out: those that need a second vCPU, as there is one, and
those that poll, as QEMU needs a thousand times longer for a PAUSE than for other instructions. For
the same reason KVM's own halt polling, which is on in real hosts, is off."""
TRACE = "trace.dat"
PERF = "perf-kvm-stat.txt"
NOTE = (
    "KVM (SVM) inside an emulated processor: instructions, not nanoseconds of silicon; the emulated"
    " CPUs take turns"
)
_TURN_US = 10
_BEATS, _PID = "host-beats", "host-pid"
_HOST_MIB = 1536
_STARTS = 5
"""How often an emulated host is started whose machine hangs, each time with 1 MiB more."""
_FILES = (
    guest_linux.RESULTS,
    TRACE,
    PERF,
    "trace-cmd.log",
    "console.log",
    "notes",
    nested_host.WRITTEN,
)
_POLL_S = 0.2
_BOOT_LIMIT_S = 900
_WORDS = (
    *("console=ttyS0", "quiet", "panic=-1", "tsc=reliable", "nowatchdog"),
    "mitigations=off",  # against holes that an emulated processor does not have
)


@dataclass(frozen=True)
class Wish:
    """What is to be measured on the emulated host.

    Attributes:
        settings: The virtual machine, as `placed` returns it.
        job: What to measure, for how long, and where files go.
        host_tunings: Ids of the layers cmdline, host and kvm, done to the emulated host.
        load_on_host: The load runs on the emulated host beside the machine, not in the guest.
        without_machine: Measures on the emulated host itself.
        trace: Also records what KVM and the kernel do: `trace.dat` and perf's account of it.
    """

    settings: "VmSettings"
    job: "Job"
    host_tunings: tuple[str, ...] = ()
    load_on_host: bool = False
    without_machine: bool = False
    trace: bool = False


@dataclass(frozen=True)
class Nested:
    """What came back.

    Attributes:
        sets: What was measured.
        account: Commands, software and tunings, for the run.
        trace: The recorded trace; None without one.
        guest_trace: What the guest recorded of itself meanwhile; None without that.
    """

    sets: "list[SampleSet]"
    account: dict[str, Any]
    trace: Path | None = None
    guest_trace: Path | None = None

    def recorded(self) -> "Recorded | None":
        """Return both sides' traces as they are explained; None without the host's."""
        from latenz.traces.recording import Recorded

        if self.trace is None:
            return None
        guests = (self.guest_trace,) if self.guest_trace else ()
        return Recorded(paths=(self.trace,), late=(), notes=(), guests=guests)


class Stopped(Exception):  # noqa: N818 - what the user wanted
    """The measurement was ended early; nothing came back."""


def host_cpus() -> int:
    """Return how many CPUs the emulated host has: one to keep house, and one for the vCPU."""
    return len(HOUSEKEEPING) + 1


def placed(settings: "VmSettings") -> "VmSettings":
    """Return a machine as it runs on the emulated host: one vCPU, on a CPU of its own if pinned."""
    known = {
        "accelerator": "kvm",
        "tunings": settings.tunings - NOT_HERE,
        "cpus": (host_cpus() - 1,),
        "housekeeping": HOUSEKEEPING,
    }
    return type(settings).model_validate({**settings.model_dump(), **known})


def run(
    wish: Wish, stopped: Callable[[], bool], report: Callable[[str], None] | None = None
) -> Nested:
    """Boot the emulated host, run the machine on it, and return what was measured.

    Args:
        wish: What.
        stopped: Tells whether to end early.
        report: Is told the phase.

    Raises:
        Stopped: It was to end early.
        BadInput: Something cannot be had, or nothing that can be read came back.
    """
    tell = report or (lambda _phase: None)
    tell("building images")
    folder = wish.job.folder.absolute()  # QEMU runs elsewhere
    console, sent = folder / "host-console.log", folder / "host.tar"
    kernel, system = nested_host.kernel(), nested_host.system()
    software: dict[str, Any] = {
        "host_kernel": kernel.provenance(),
        "host_system": system.provenance(),
    }
    with _disk(wish, system, software) as (initrd, machine, options):
        began = time.monotonic()
        for start in range(_STARTS):
            command = _host_command(wish, kernel, initrd, options, start, console, sent)
            if _boots(command, console, wish, stopped, tell):
                break
        else:
            raise BadInput(f"hung {_STARTS} times", str(console), "see docs/pamuk2024.md")
    account = {
        "command": command,
        "machine": machine,
        "software": software,
        "hung": start,
        "wall_ns": int((time.monotonic() - began) * 1e9),
    }
    received = _received(sent, folder, console)
    sent.unlink()
    if start:
        received.notes.append(f"the emulated host was started {start + 1} times, as QEMU hung")
    account |= _host_tunings(wish, folder / nested_host.WRITTEN)
    sets = _sets(wish, received)
    trace = folder / TRACE
    from latenz.vm.guest import TRACE as GUEST_TRACE

    inside = folder / "received" / GUEST_TRACE
    return Nested(
        sets,
        account,
        trace if trace.exists() else None,
        inside if wish.trace and inside.exists() else None,
    )


@contextmanager
def _disk(
    wish: Wish, system: "Image", software: dict[str, Any]
) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Give the emulated host's RAM disk, the machine's command, and words for the host's kernel."""
    context, entries = _context(wish), _entries(wish.host_tunings)
    files: dict[str, Path | str] = {
        "/order": nested_host.order(wish.settings, entries, context, trace=wish.trace)
    }
    if wish.without_machine:
        cpu = host_cpus() - 1
        machine = guest_linux.measuring_command(wish.job, (cpu,))
        output = guest_linux.output_file(wish.job)
        files["/machine"] = nested_host.measuring_script(machine, output)
    else:
        machine = _machine(wish, files, software)
    with tempfile.TemporaryDirectory(prefix="latenz-nested-", dir=scratch_place()) as place:
        initrd = Path(place) / "initrd"
        shutil.copyfile(system.path, initrd)
        nested_host.add_order(initrd, files)
        yield initrd, machine, nested_host.command_line(entries, context)


def _machine(wish: Wish, files: dict[str, Path | str], software: dict[str, Any]) -> list[str]:
    """Return the machine's command; add what it boots to the files."""
    from latenz.vm.command import Boot, arguments, command
    from latenz.vm.guest import flavour, guest, guest_options

    settings = wish.settings
    made = guest(flavour(settings))
    software["guest"] = made.provenance()
    at = {name: Path(nested_host.GUEST_FILES, name) for name in ("vmlinux", "initrd")}
    boot = Boot(
        kernel=at["vmlinux"],
        initrd=at["initrd"],
        options=guest_options(settings, _guest_job(wish), trace=wish.trace),
        console=Path(nested_host.SENT, "console.log"),
        results=f"file,path={nested_host.SENT}/{guest_linux.RESULTS}",
    )
    machine = nested_host.on_emulated_processors(arguments(command(settings, boot)))
    files[str(at["vmlinux"])] = made.kernel.path
    files[str(at["initrd"])] = made.initrd.path
    files["/machine"] = nested_host.machine_script(settings, machine)
    return machine


def _guest_job(wish: Wish) -> "Job":
    """Return the job as the guest is told it: without a load that runs on the host."""
    if not wish.load_on_host:
        return wish.job
    from dataclasses import replace

    from latenz.loads import LOAD_SETTINGS

    load = LOAD_SETTINGS["none"].model_validate({"kind": "none"})
    return replace(wish.job, condition=replace(wish.job.condition, load=load))


def _entries(ids: tuple[str, ...]) -> "list[Entry]":
    from latenz.tune.catalogue import load

    return [entry for entry in load() if entry.id in ids and entry.id not in NOT_HERE]


def _host_tunings(wish: Wish, written: Path) -> dict[str, list[str]]:
    """Return which tunings of the host were done, and which it has nothing for or refused."""
    done = set(nested_host.done_at_boot(_entries(wish.host_tunings), _context(wish)))
    if written.exists():
        done |= set(written.read_text(errors="replace").split())
        written.unlink()
    return {
        "host_tunings": [each for each in wish.host_tunings if each in done],
        "host_tunings_without_effect": [each for each in wish.host_tunings if each not in done],
    }


def _context(wish: Wish) -> "Context":
    """Return the emulated host's CPUs, of which all but the first are isolated."""
    from latenz.tune.context import Context
    from latenz.tune.root import Root

    online = frozenset(range(host_cpus()))
    isolated = online - frozenset(HOUSEKEEPING)
    return Context(Root(wish.job.folder), isolated, online, "kvm-host")


def _host_command(
    wish: Wish,
    kernel: "Image",
    initrd: Path,
    options: list[str],
    start: int,
    console: Path,
    sent: Path,
) -> list[str]:
    memory_mib = _HOST_MIB + wish.settings.memory_mib + start
    load = _host_load(wish)
    told = guest_linux.kernel_options(
        load=" ".join(load),
        settle_us=guest_linux.settle_us(wish.job.condition.load) if load else "",
    )
    return [
        "qemu-system-x86_64",
        *("-machine", "q35,accel=tcg", "-cpu", "EPYC,svm=on,npt=on"),
        *("-smp", str(host_cpus()), "-m", f"{memory_mib}M"),
        *("-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm"),
        *(turn_arguments(_TURN_US) if load else ()),
        *("-nodefaults", "-display", "none", "-no-reboot"),
        *_serial("console", console),
        *_serial("sent", sent),
        *_serial("beats", console.with_name(_BEATS)),
        *("-pidfile", str(console.with_name(_PID))),
        *("-kernel", str(kernel.path), "-initrd", str(initrd)),
        *("-append", " ".join([*_WORDS, *options, *([told] if told else [])])),
    ]


def _serial(name: str, file: Path) -> tuple[str, ...]:
    """Return what makes the next serial line of the emulated host write to a file."""
    return ("-chardev", f"file,id={name},path={file}", "-serial", f"chardev:{name}")


def _host_load(wish: Wish) -> list[str]:
    on_host = wish.load_on_host or wish.without_machine
    return guest_linux.load_command(wish.job.condition.load) if on_host else []


def _boots(
    command: list[str],
    console: Path,
    wish: Wish,
    stopped: Callable[[], bool],
    tell: Callable[[str], None],
) -> bool:
    """Run the emulated host until it powers itself off; return whether it did, or hung."""
    limit_s = _BOOT_LIMIT_S + 100 * guest_linux.virtual_seconds(wish.job.condition)
    if "," in str(console):
        raise BadInput("has a comma, which QEMU's options cannot hold", str(console.parent))
    beats, pid = console.with_name(_BEATS), console.with_name(_PID)
    for left in (console, beats, pid):
        left.unlink(missing_ok=True)
    log = console.with_name("host-qemu.log")
    host = KeptProgram(command, console.with_name("host-qemu.out"), log, grace_s=1)
    try:
        ended = _ends(host, Heartbeat(beats, pid), console, limit_s, stopped, tell)
    finally:
        status = host.stop()
    if ended and status != 0:
        told = log.read_text(errors="replace").strip().rpartition("\n")[2]
        raise BadInput(f"QEMU ended with status {status}: {told}", str(log))
    beats.unlink(missing_ok=True)
    return ended


def _ends(
    host: KeptProgram,
    heartbeat: Heartbeat,
    console: Path,
    limit_s: float,
    stopped: Callable[[], bool],
    tell: Callable[[str], None],
) -> bool:
    """Wait for the emulated host's end; return whether it came, or virtual time stood still."""
    began = time.monotonic()
    while host.alive:
        if stopped():
            raise Stopped
        if time.monotonic() - began > limit_s:
            raise BadInput(
                f"did not end within {limit_s:.0f} s (last: {_phase(console)})",
                str(console),
                "try again; see docs/pamuk2024.md",
            )
        if heartbeat.is_lost():
            return False
        tell(_phase(console))
        time.sleep(_POLL_S)
    return True


def _phase(console: Path) -> str:
    """Return how far the emulated host has come, by what it has said."""
    try:
        said = console.read_bytes()
    except OSError:
        return "booting the host"
    phases = {b"latenz: sending": "receiving", b"latenz: starting": "running the machine"}
    return next((phase for text, phase in phases.items() if text in said), "booting the host")


def _received(sent: Path, folder: Path, console: Path) -> "Received":
    """Store what the emulated host sent, and return it as boards' results are.

    Only files of names that are known are taken.
    """
    from latenz.boards.console import Received

    try:
        with sent.open("rb") as archive:
            for member in members(archive, guest_linux.MOST_UNPACKED):
                name = member.name.removeprefix("./")
                if name in _FILES and member.kind == "file":
                    member.write(folder / name)
    except (Damaged, OSError) as error:
        raise BadInput(f"nothing that can be read was sent ({error})", str(console)) from None
    received = Received()
    results, notes = folder / guest_linux.RESULTS, folder / "notes"
    if results.exists() and results.stat().st_size:
        received.files[guest_linux.RESULTS] = bytearray(results.read_bytes())
        results.unlink()
    if notes.exists():
        received.notes += notes.read_text(errors="replace").splitlines()
    return received


def _sets(wish: Wish, received: "Received") -> "list[SampleSet]":
    from latenz.boards.images import kernel_release
    from latenz.vm.guest import flavour

    settings = wish.settings
    if wish.without_machine:
        cpu = host_cpus() - 1
        machine = f"CPU {cpu} of an emulated host with {host_cpus()}"
        release = kernel_release("cloud", "amd64")
    else:
        cpu = settings.measured_cpu
        machine = f"vCPU {cpu} of {settings.processors} under KVM on an emulated host"
        kind = flavour(settings)
        release = kernel_release(kind, "amd64") + (" PREEMPT_RT" if kind == "rt" else "")
    sets = guest_linux.linux_sets(wish.job, received, (cpu,), machine=machine, kernel=release)
    notes = (NOTE, *(("recorded while KVM and the kernel were traced",) if wish.trace else ()))
    return [each.with_metadata(notes=(*each.metadata.notes, *notes)) for each in sets]
