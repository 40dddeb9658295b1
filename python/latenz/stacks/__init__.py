"""Stacks: the system software that is put on a board to measure on. One module each."""

from typing import Annotated

from pydantic import Field

from latenz.measuring.settings import StackSettings
from latenz.stacks.amp import Amp, AmpSettings
from latenz.stacks.base import Job, Stack, StackKind
from latenz.stacks.linux import Linux, LinuxRt, LinuxRtSettings, LinuxSettings
from latenz.stacks.pair import Pair, PairSettings
from latenz.stacks.partitioned import Partitioned, PartitionedSettings
from latenz.stacks.standalone import Standalone, StandaloneSettings
from latenz.stacks.vm import Vm, VmStackSettings
from latenz.stacks.xen import Xen, XenSettings
from latenz.stacks.xen_linux import XenLinux, XenLinuxSettings

AnyStackSettings = Annotated[
    StandaloneSettings
    | LinuxSettings
    | LinuxRtSettings
    | XenSettings
    | XenLinuxSettings
    | AmpSettings
    | PartitionedSettings
    | PairSettings
    | VmStackSettings,
    Field(discriminator="kind"),
]
"""Settings of any stack, told apart by `kind`."""

STACKS: dict[str, type[StackKind]] = {
    stack.name: stack
    for stack in (Standalone, Linux, LinuxRt, Xen, XenLinux, Amp, Partitioned, Pair, Vm)
}
"""Every stack by its name."""

__all__ = ["STACKS", "AnyStackSettings", "Job", "Stack", "StackKind", "StackSettings"]
