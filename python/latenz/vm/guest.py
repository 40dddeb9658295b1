"""What a virtual machine boots: Debian's kernel and a small system that measures."""

import shutil
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenz.boards import images
from latenz.boards.images import Flavour, Image
from latenz.files import make_folder, replacing
from latenz.programs import probe_program
from latenz.stacks import guest_linux

if TYPE_CHECKING:
    from latenz.stacks.base import Job
    from latenz.vm.settings import VmSettings

_PORT = ("virtio_pci", "virtio_console")
_NETWORK = {"plain": "e1000", "virtio": "virtio_net"}
_DISK = {"plain": ("ata_piix", "sd_mod"), "virtio": ("virtio_blk",)}
OWN_PROGRAMS = ("latenz-wakeup", "latenz-robot")


@dataclass(frozen=True)
class Guest:
    """Kernel and initial RAM disk of a guest.

    Attributes:
        kernel: A bzImage.
        initrd: Has busybox, cyclictest, stress-ng, chrt, taskset, our probe and robot, and what
            those need.
        release: The kernel's name for its version.
    """

    kernel: Image
    initrd: Image
    release: str

    def provenance(self) -> dict[str, Any]:
        """Return hashes, and the packages with their versions."""
        return {
            "kernel": self.kernel.provenance(),
            "initrd": self.initrd.provenance(),
            "release": self.release,
        }


def flavour(settings: "VmSettings") -> Flavour:
    """Return which kernel a machine boots."""
    return "rt" if settings.on("guest-rt-kernel") else "stock"


def guest(kernel: Flavour) -> Guest:
    """Return what a guest boots, made from Debian packages and kept in the cache.

    The kernel is this release's, stock or with PREEMPT_RT. The same packages give the same files.

    Raises:
        BadInput: A package cannot be had, or our probe is not built, or for another processor.
    """
    own = {f"/bin/{name}": probe_program(name) for name in OWN_PROGRAMS}
    script = resources.files("latenz.vm").joinpath("init", "guest.sh").read_text()
    initrd = images.initrd(
        "guest",
        guest_linux.script("common") + script,
        packages=(*guest_linux.PACKAGES, "util-linux"),
        programs=(*guest_linux.PROGRAMS, "/usr/bin/chrt"),  # this busybox has none
        modules=(*_PORT, *_NETWORK.values(), *_DISK["plain"], *_DISK["virtio"]),
        files={"/bin/spin": guest_linux.script("spin").encode(), **own},
        kernel=kernel,
        architecture="amd64",
    )
    return Guest(images.linux(kernel, "amd64"), initrd, images.kernel_release(kernel, "amd64"))


TRACE = "trace.txt"
"""Name of what the guest recorded of itself, among what it sends."""
_TRACED = (
    *(f"sched/sched_{name}" for name in ("switch", "waking", "wakeup", "migrate_task")),
    *("irq", "irq_vectors/local_timer_entry", "irq_vectors/local_timer_exit"),
    *(f"timer/hrtimer_{name}" for name in ("start", "expire_entry", "expire_exit")),
    *("power/cpu_idle", "printk/console"),
    *("workqueue/workqueue_execute_start", "workqueue/workqueue_execute_end"),
)


def guest_options(settings: "VmSettings", job: "Job", *, trace: bool = False) -> str:
    """Return what the first program is told on the kernel's command line.

    Args:
        settings: The machine.
        job: What to measure: engine, load, duration.
        trace: Also record what the guest's kernel does meanwhile, as the text `TRACE`.

    Raises:
        BadInput: The engine or the load does not run in a guest.
    """
    measured = (settings.measured_cpu,)
    command = guest_linux.measuring_command(job, measured)
    load = guest_linux.load_command(job.condition.load, None, beside_probe=True)
    return guest_linux.kernel_options(
        modules=" ".join(_modules(settings)),
        measure=" ".join(command),
        output=guest_linux.output_file(job),
        load=" ".join(load),
        settle_us=guest_linux.settle_us(job.condition.load) if load else "",
        trace=" ".join(_TRACED) if trace else "",
    )


def _modules(settings: "VmSettings") -> tuple[str, ...]:
    """Return the drivers of the devices that a machine has: probing for others takes seconds."""
    kind = "virtio" if settings.on("guest-virtio-minimal") else "plain"
    return (*_PORT, _NETWORK[kind], *(_DISK[kind] if settings.disk else ()))


EXPORTED = ("vmlinuz", "initrd.cpio")
"""Names of the kernel and the RAM disk in a folder for them."""


def export(made: Guest, folder: Path) -> list[Path]:
    """Copy kernel and RAM disk into a folder under the names `EXPORTED`; return the copies.

    Raises:
        BadInput: The folder cannot be written.
    """
    copies = [folder / name for name in EXPORTED]
    make_folder(folder)
    for source, copy in zip((made.kernel.path, made.initrd.path), copies, strict=True):
        with replacing(copy) as partial:
            shutil.copyfile(source, partial)
    return copies
