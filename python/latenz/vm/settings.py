"""What a virtual machine is to be: processors, memory, devices, and which tunings are on."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from latenz.settings import CpuList, Settings

Accelerator = Literal["kvm", "tcg"]

EXPRESSED: dict[str, str] = {
    "qemu-mem-lock": "-overcommit mem-lock=on",
    "qemu-cpu-pm": "-overcommit cpu-pm=on",
    "qemu-hugepages": "-object memory-backend-file,...",
    "qemu-cpu-host": "-cpu host,migratable=off,invtsc=on",
    "qemu-pmu-off": "-cpu ...,pmu=off",
    "qemu-hint-dedicated": "-cpu ...,kvm-hint-dedicated=on",
    "qemu-kvm-pit": "-global kvm-pit.lost_tick_policy=discard",
    "qemu-no-hpet": "-machine hpet=off",
    "qemu-irqchip-kernel": "-machine kernel-irqchip=on",
    "qemu-minimal-devices": "-nodefaults, -machine vmport=off",
    "qemu-iothread": "-object iothread,...",
    "qemu-vhost": "-netdev tap,...,vhost=on",
    "vcpu-pinning": "taskset on the vCPU threads",
    "vcpu-sched-fifo": "chrt on the vCPU threads",
    "emulator-pinning": "taskset on all other threads of QEMU",
    "vcpu-non-rt-spare": "-smp 2 or more, measured on the last",
    "vm-numa-local": "-object memory-backend-...,host-nodes=N,policy=bind",
    "vfio-passthrough": "-device vfio-pci,host=...",
    "libvirt-locked": "-machine mem-merge=off, memory of huge pages and locked",
    "libvirt-no-usb-balloon": "-machine usb=off",
    "guest-rt-kernel": "-kernel",
    "guest-isolcpus-nohz-rcu": "isolcpus=, nohz_full=, rcu_nocbs=",
    "guest-irqaffinity": "irqaffinity=",
    "guest-clocksource-tsc": "clocksource=tsc",
    "guest-tsc-deadline": "-cpu ...,tsc-deadline=on",
    "guest-idle-poll": "idle=poll",
    "guest-haltpoll": "cpuidle_haltpoll.force=1, -cpu ...,kvm-poll-control=on",
    "guest-nmi-watchdog-off": "nmi_watchdog=0",
    "guest-no-timer-check": "no_timer_check",
    "guest-mitigations": "mitigations=off",
    "guest-hugepages": "transparent_hugepage=never",
    "guest-rt-throttling-off": "sysctl.kernel.sched_rt_runtime_us=-1",
    "guest-skew-tick": "skew_tick=1",
    "guest-tsc-reliable": "tsc=reliable",
    "guest-virtio-minimal": "-device virtio-net-pci",
}
"""The tunings that starting a virtual machine can turn on, by their ids in the catalogue."""

NOT_EXPRESSED: dict[str, str] = {
    "vfio-posted-interrupts": "the host's IOMMU has them or not",
    "xen-credit2-null": "is about Xen",
    "guest-mlock": "the measuring programs always lock their memory",
    "guest-kernel-config": "Debian has built the kernel",
    "other-kernel-tuning-talks": "is for people to read",
    "guest-steal-time": "is evidence, and comes back with the results",
}
"""Further ids of the layers qemu, libvirt and guest, and why no option turns them on."""

ALTERNATIVES: dict[str, str] = {
    "guest-idle-poll": "does in the guest what qemu-cpu-pm does at once on the host's side",
    "guest-haltpoll": "is for a host that does not give its CPU away, without qemu-cpu-pm",
    "guest-mitigations": "gives up security: only if it is named",
}
"""Ids that `tuned` leaves out unless they are named, and why."""

TUNED = frozenset(EXPRESSED) - frozenset(ALTERNATIVES)
"""All tunings that fit together and cost no security; in the guest, which is made for one
measurement, its watchdogs, its throttling and the watch of its clock are off."""

NEEDS_KVM = frozenset(
    {
        "qemu-mem-lock",
        "qemu-cpu-pm",
        "qemu-hugepages",
        "qemu-hint-dedicated",
        "qemu-kvm-pit",
        "qemu-irqchip-kernel",
        "vcpu-pinning",
        "vcpu-sched-fifo",
        "emulator-pinning",
        "vm-numa-local",
        "libvirt-locked",
        "guest-tsc-deadline",
        "guest-haltpoll",
    }
)
"""Ids without effect where QEMU counts instructions: they act on the host or on KVM."""

NEEDS_SPARE = ("guest-isolcpus-nohz-rcu", "guest-irqaffinity")
"""Ids that keep work off the measured vCPU, which needs another one."""


def _no_comma(path: Path) -> Path:
    if "," in str(path) or not path.is_absolute():
        raise ValueError(f"{str(path)!r} is not an absolute path without a comma")
    return path


_Path = Annotated[Path, AfterValidator(_no_comma)]


class VmSettings(Settings):
    """A virtual machine."""

    accelerator: Accelerator = "kvm"
    """`kvm`: on the processor itself; `tcg`: emulated, time counts instructions."""
    vcpus: int = Field(default=2, ge=2, le=64)
    """Virtual processors with vcpu-non-rt-spare, measured on the last; one without."""
    memory_mib: int = Field(default=1024, ge=256, le=1 << 20, multiple_of=2)
    tunings: frozenset[str] = frozenset()
    """Which tunings are on, by their ids in the catalogue."""
    cpus: CpuList | None = None
    """Host CPUs for the vCPU threads, one each, the last vCPU on the last; None: not pinned."""
    housekeeping: CpuList | None = None
    """Host CPUs for all other threads of QEMU; None: not pinned."""
    node: int = Field(default=0, ge=0, lt=1024)
    """NUMA node of these CPUs."""
    huge_pages: _Path = Path("/dev/hugepages")
    """Where the file system of huge pages is mounted."""
    disk: _Path | None = None
    """A raw disk image that the guest gets besides its RAM disk: IDE, or virtio if tuned."""
    tap: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_.-]{1,15}$")
    """A network interface of the host (tap) for the guest's; None: QEMU's own user network."""
    passthrough: str | None = Field(
        default=None, pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$"
    )
    """Address of a PCI device that the guest gets (vfio-passthrough), such as 0000:03:00.0."""

    @model_validator(mode="after")
    def _possible(self) -> "VmSettings":
        if unknown := sorted(self.tunings - frozenset(EXPRESSED)):
            reason = NOT_EXPRESSED.get(unknown[0], "it is not a tuning of virtual machines")
            raise ValueError(f"{unknown[0]} cannot be turned on here: {reason}")
        for each in NEEDS_SPARE:
            if each in self.tunings and "vcpu-non-rt-spare" not in self.tunings:
                raise ValueError(f"{each} needs vcpu-non-rt-spare: another vCPU for the rest")
        if self.cpus is not None and len(self.cpus) < self.processors:
            raise ValueError(f"{self.processors} vCPUs need a host CPU each: cpus has too few")
        return self

    def on(self, entry: str) -> bool:
        """Tell whether a tuning is on and can have an effect."""
        wanted = entry in self.tunings
        return wanted and (self.accelerator == "kvm" or entry not in NEEDS_KVM)

    @property
    def processors(self) -> int:
        """How many virtual processors there are."""
        return self.vcpus if self.on("vcpu-non-rt-spare") else 1

    @property
    def measured_cpu(self) -> int:
        """The virtual processor that is measured."""
        return self.processors - 1

    @property
    def spare_cpus(self) -> str:
        """The other virtual processors, as a list of Linux."""
        return "0" if self.processors <= 2 else f"0-{self.processors - 2}"

    def without_effect(self) -> dict[str, str]:
        """Return the tunings that are on and change nothing, and what each would need."""
        needs = {
            "qemu-iothread": (self.disk, "a disk"),
            "qemu-vhost": (self.tap, "a tap interface"),
            "vfio-passthrough": (self.passthrough, "a device to pass through"),
            "vcpu-pinning": (self.cpus, "isolated CPUs"),
            "emulator-pinning": (self.housekeeping, "isolated CPUs, to keep off"),
        }
        found = {}
        for each in sorted(self.tunings):
            given, name = needs.get(each, (True, ""))
            if not self.on(each):
                found[each] = "KVM"
            elif given is None:
                found[each] = name
        return found
