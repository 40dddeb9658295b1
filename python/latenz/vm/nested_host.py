"""The emulated host of nested machines: its small system, and how its own settings are tuned.

Debian's cloud kernel with `kvm_amd` runs on emulated processors that have AMD's SVM, with Debian's
QEMU, trace-cmd and perf on it. What a machine is started with, and what is done to the host before,
is a shell script of its own, made for each measurement.
"""

import shlex
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from latenz.boards import archive, images
from latenz.boards.archive import Node
from latenz.programs import probe_program
from latenz.stacks import guest_linux
from latenz.vm.command import VCPU_PRIORITY, host_cpu

if TYPE_CHECKING:
    from latenz.tune.context import Context
    from latenz.tune.model import Entry
    from latenz.vm.settings import VmSettings

_PACKAGES = ("qemu-system-x86", "ipxe-qemu", "seabios", "trace-cmd", "linux-perf", "util-linux")
_PROGRAMS = (
    *("/usr/bin/qemu-system-x86_64", "/usr/bin/trace-cmd", "/usr/bin/perf"),
    "/usr/bin/chrt",  # busybox of amd64 has none
)
_FIRMWARE = (
    *("/usr/share/seabios/bios-256k.bin", "/usr/share/seabios/vgabios-stdvga.bin"),
    *(f"/usr/share/qemu/{name}.bin" for name in ("kvmvapic", "linuxboot_dma", "pvh")),
    *(f"/usr/lib/ipxe/qemu/{name}.rom" for name in ("efi-e1000", "efi-virtio")),
)
_MODULES = ("kvm_amd",)
_EVENTS = (
    *("kvm", "irq", "irq_vectors", "power:cpu_idle"),
    *(f"sched:sched_{name}" for name in ("switch", "waking", "wakeup")),
    *("timer:hrtimer_start", "timer:hrtimer_expire_entry"),
)
SENT = "/sent"
"""Where the emulated host puts what it sends back."""
GUEST_FILES = "/guest"
"""Where the emulated host has what its guest boots."""
WRITTEN = "written"
"""Name of the file of what the emulated host sends that names the tunings it has written."""
_KVM = ("kvm", "kvm_amd")
_HUGE_PAGE_MIB = 2
_PROCESSOR = "kvm-pv-eoi=off"


def kernel() -> images.Image:
    """Return the emulated host's kernel: Debian's for clouds, which boots the quickest."""
    return images.linux("cloud", "amd64")


def system() -> images.Image:
    """Return the emulated host's system, the same for all measurements.

    Raises:
        BadInput: A package cannot be had, or our probe is not built.
    """
    script = resources.files("latenz.vm").joinpath("init", "nested.sh").read_text()
    return images.initrd(
        "nested",
        guest_linux.script("common") + script,
        packages=(*guest_linux.PACKAGES, *_PACKAGES),
        programs=(*guest_linux.PROGRAMS, *_PROGRAMS, *_FIRMWARE),
        modules=_MODULES,
        files={
            "/bin/spin": guest_linux.script("spin").encode(),
            "/bin/latenz-wakeup": probe_program("latenz-wakeup"),
        },
        kernel="cloud",
        architecture="amd64",
    )


def add_order(path: Path, files: Mapping[str, Path | str]) -> None:
    """Append a measurement's own files to a RAM disk.

    Linux unpacks archives that stand one behind the other.

    Args:
        path: The RAM disk, written anew.
        files: Content, or a file here, by the path on the emulated host.
    """
    nodes = {
        name: Node.file(each.encode() if isinstance(each, str) else each.read_bytes())
        for name, each in files.items()
    }
    nodes |= {folder: Node.folder() for folder in (GUEST_FILES, SENT)}
    own = path.with_suffix(".own")
    archive.write_cpio(own, nodes)
    with path.open("ab") as whole:
        whole.write(own.read_bytes())
    own.unlink()


def order(
    settings: "VmSettings", entries: Iterable["Entry"], context: "Context", *, trace: bool
) -> str:
    """Return the script that says what to do before, and to the threads of a machine.

    Args:
        settings: The machine.
        entries: Tunings of the layers cmdline, host and kvm.
        context: The emulated host's CPUs.
        trace: Whether to record what KVM and the kernel do.
    """
    entries = list(entries)
    writes = [line for entry in entries for line in _writes(entry, context)]
    lines = ["tuned() {", *_modules(entries), *writes]
    if huge_pages := _huge_pages(settings):
        lines += [
            f"  written qemu-hugepages {huge_pages} /proc/sys/vm/nr_hugepages",
            "  mount -t hugetlbfs hugetlbfs /dev/hugepages",
        ]
    lines += ["}", "threads() {", "  :", *_threads(settings), "}"]
    events = " ".join(f"-e {name}" for name in _EVENTS)
    lines += [f"trace_events() {{ echo {shlex.quote(events)}; }}"]
    return "\n".join([*lines, f"tracing={'yes' if trace else ''}", ""])


def command_line(entries: Iterable["Entry"], context: "Context") -> list[str]:
    """Return the words that tunings add to the emulated host's kernel command line."""
    return list(dict.fromkeys(word for entry in entries for word in _words(entry, context)))


def done_at_boot(entries: Iterable["Entry"], context: "Context") -> frozenset[str]:
    """Return the ids of tunings that the host's or KVM's modules' options do."""
    return frozenset(each.id for each in entries if _words(each, context) or _options(each))


def _words(entry: "Entry", context: "Context") -> list[str]:
    from latenz.tune.model import CmdlineToken

    tokens = [action.cmdline for action in entry.boot if isinstance(action, CmdlineToken)]
    return [word for token in tokens for word in context.expand(token).split()]


def _modules(entries: Iterable["Entry"]) -> list[str]:
    """Return commands that load KVM, with the options that tunings give its modules."""
    options: dict[str, list[str]] = {"kvm": ["halt_poll_ns=0"], "kvm_amd": []}
    for module, option in (each for entry in entries for each in _options(entry)):
        options[module].append(option)
    return [f"  modprobe {shlex.join([name, *given])}" for name, given in options.items()]


def _options(entry: "Entry") -> list[tuple[str, str]]:
    """Return the options that a tuning gives to KVM's modules, each with its module."""
    from latenz.tune.model import ModuleOption

    return [
        (action.modprobe, f"{action.option}={action.value}")
        for action in entry.boot
        if isinstance(action, ModuleOption) and action.modprobe in _KVM
    ]


def _writes(entry: "Entry", context: "Context") -> list[str]:
    """Return commands that write what a tuning writes at run time."""
    from latenz.tune.model import Write

    return [
        f"  written {entry.id} {shlex.quote(context.expand(action.value))} {path}"
        for action in entry.now
        if isinstance(action, Write) and action.beside is None
        for path in context.paths(action.write)
    ]


def _huge_pages(settings: "VmSettings") -> int:
    from latenz.vm.command import has_huge_pages

    return settings.memory_mib // _HUGE_PAGE_MIB if has_huge_pages(settings) else 0


def _threads(settings: "VmSettings") -> list[str]:
    """Return commands that put vCPU threads where they belong."""
    lines = []
    for number in range(settings.processors):
        pinning = settings.on("vcpu-pinning") and settings.cpus
        mask = f"{1 << host_cpu(settings, number):x}" if pinning else "-"
        priority = VCPU_PRIORITY if settings.on("vcpu-sched-fifo") else "-"
        if (mask, priority) != ("-", "-"):
            lines.append(f"  pinned {number} {mask} {priority}")
    return lines


def on_emulated_processors(arguments: list[str]) -> list[str]:
    """Return a machine's command as it works on emulated processors: with `kvm-pv-eoi=off`.

    QEMU's VMRUN (10.0, `helper_vmrun`) delivers the interrupt that KVM injects and forgets to take
    back that there is one. Should its budget of instructions end before the next exit, it delivers
    the interrupt once more, even to a kernel that has disabled interrupts, and that then waits for
    a lock it holds. With paravirtual ends of interrupts the next exit comes after locks are taken;
    without, the handler's first deed is to end the interrupt, which is an exit.
    """
    at = arguments.index("-cpu") + 1
    return [*arguments[:at], f"{arguments[at]},{_PROCESSOR}", *arguments[at + 1 :]]


def machine_script(settings: "VmSettings", arguments: list[str]) -> str:
    """Return the script that becomes QEMU; its threads but the vCPUs' keep the CPUs given here."""
    pinned = settings.on("emulator-pinning") and settings.housekeeping
    mask = f"{sum(1 << cpu for cpu in settings.housekeeping or ()):x}"
    words = [*(["taskset", mask] if pinned else []), *arguments]
    return f"exec {shlex.join(words)}\n"


def measuring_script(command: list[str], output: str) -> str:
    """Return the script that measures on the emulated host itself, without any machine.

    Args:
        command: The measuring program with its arguments.
        output: Name of the file that takes what it prints.
    """
    return (
        "taskset -c $(cat /sys/devices/system/cpu/online)"
        f" {shlex.join(command)} >/results/{output} 2>/results/log\n"
        "status=$?\n"
        f"tar -c -C /results . | gzip >{SENT}/{guest_linux.RESULTS}\n"
        "exit $status\n"
    )
