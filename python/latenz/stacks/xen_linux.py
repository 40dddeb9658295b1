"""The stack `xen-linux`: Linux as a guest of Xen, with cyclictest or our probe on it."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from latenz.model import SampleSet
from latenz.stacks.xen import AnyXen, AnyXenSettings

if TYPE_CHECKING:
    from latenz.boards.console import Received
    from latenz.boards.devicetree import Domain
    from latenz.boards.payload import Load

_GUEST_MIB = 256
_MEASURED = (0,)
_SECOND_NS = 1_000_000_000


class XenLinuxSettings(AnyXenSettings):
    """Xen with Debian's Linux in a domain of its own."""

    kind: Literal["xen-linux"]
    kernel: Literal["stock", "rt"] = "rt"
    """The guest's kernel: Debian's stock one, or the one with PREEMPT_RT."""


class XenLinux(AnyXen[XenLinuxSettings]):
    """Linux as a guest of Xen: Table 2 of `alonso2021`, on one virtual CPU instead of four."""

    name = "xen-linux"
    settings_type = XenLinuxSettings
    benches = ("virt", "zcu102")
    engines = ("cyclictest", "wakeup")
    planned_s = 60
    boot_ns = 3_400_000_000  # both kernels boot at once, each at half the speed
    _guest_arguments = ""

    def _guest_files(self, begin_ns: int) -> list[Path]:
        from latenz.boards import images
        from latenz.stacks import guest_linux

        flavour = self.settings.kernel
        self._made["guest_kernel"] = images.linux(flavour)
        self._made["guest_initrd"] = guest_linux.initrd("linux", flavour, "latenz-wakeup")
        options = guest_linux.kernel_options(
            measure=" ".join(guest_linux.measuring_command(self.job, _MEASURED)),
            output=guest_linux.output_file(self.job),
            not_before_s=begin_ns // _SECOND_NS,
        )
        self._guest_arguments = f"console=ttyAMA0 quiet panic=-1 {options}"
        return [self._made[name].path for name in ("guest_kernel", "guest_initrd")]

    def _guest(self, loads: "list[Load]", begin_ns: int) -> "Domain":  # noqa: ARG002
        from latenz.boards.devicetree import Domain, Module

        self._told["guest_arguments"] = self._guest_arguments
        kernel = Module("kernel", loads[0], self._guest_arguments)
        return Domain(_GUEST_MIB, (kernel, Module("ramdisk", loads[1])))

    def _begin_ns(self) -> int:
        """Return when measuring begins, in whole seconds of the guest's own uptime."""
        return -(-super()._begin_ns() // _SECOND_NS) * _SECOND_NS

    def _sets(self, received: "Received") -> list[SampleSet]:
        from latenz.boards.images import kernel_release
        from latenz.stacks.guest_linux import linux_sets

        suffix = " PREEMPT_RT" if self.settings.kernel == "rt" else ""
        return linux_sets(
            self.job,
            received,
            _MEASURED,
            machine=f"Xen ({self.settings.scheduler}), one virtual CPU on Cortex-A53 0",
            kernel=kernel_release(self.settings.kernel) + suffix,
        )
