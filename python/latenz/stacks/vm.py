"""The stack `vm`: Linux in a virtual machine, with cyclictest, our probe or a robot in it."""

from typing import Any, Literal

from pydantic import Field, model_validator

from latenz.measuring.settings import StackSettings
from latenz.obstacle import Obstacle
from latenz.stacks.base import StackKind

HOST_LAYERS = ("cmdline", "host", "kvm")
"""Layers that are settings of the host, not of the machine."""


class VmStackSettings(StackSettings):
    """A virtual machine, tuned as far as is named."""

    kind: Literal["vm"]
    accel: Literal["auto", "kvm", "kvm-in-tcg", "tcg"] = "auto"
    """`kvm` here; `kvm-in-tcg`: real KVM on an emulated host, in virtual time; `tcg`: no KVM at
    all. `auto`: the first of these that works."""
    measured: Literal["guest", "host"] = "guest"
    """`host`: no machine, the emulated host itself is measured. Only with kvm-in-tcg."""
    tunings: tuple[str, ...] = ()
    """Ids of the catalogue, or layers: `qemu`, `libvirt`, `guest` of the machine, and `cmdline`,
    `host`, `kvm` of its host. An emulated host is given these; a real one is looked at, and the
    run says which of them are not in effect."""
    kernel: Literal["stock", "rt"] | None = None
    """The guest's kernel; None: as the tunings say, stock without guest-rt-kernel."""
    load_on: Literal["guest", "host"] = "guest"
    """Where the load runs. On the host only with kvm-in-tcg."""
    vcpus: int = Field(default=2, ge=2, le=8)
    """Virtual processors of a machine with vcpu-non-rt-spare; others have one."""
    memory_mib: int = Field(default=512, ge=256, le=1 << 20, multiple_of=2)

    @model_validator(mode="after")
    def _emulated(self) -> "VmStackSettings":
        on_host = self.measured == "host" or self.load_on == "host"
        if on_host and self.accel != "kvm-in-tcg":
            key = "measured" if self.measured == "host" else "load_on"
            raise ValueError(f'{key} = "host" needs accel = "kvm-in-tcg"')
        return self


class Vm(StackKind):
    """A virtual machine; the bench `vm` starts it."""

    name = "vm"
    settings_type = VmStackSettings
    benches = ("vm",)
    engines = ("wakeup", "cyclictest", "robot")
    loads = ("none", "spin", "stress-ng-cpu", "stress-ng-all")

    @classmethod
    def windows_obstacle(cls, settings: Any, engine: Any, bench: str) -> Obstacle | None:  # noqa: ARG003
        """Return why a guest's windows cannot be recorded."""
        return Obstacle(
            "windows of kernels for x86-64 are not recorded: the recorder knows the instructions by"
            " which those for arm64 mask interrupts, count preemption and return from interrupts",
            "take the stack linux-rt or linux on the bench virt, or a trace of the guest's own"
            " tracepoints",
        )
