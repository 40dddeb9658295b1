"""Stacks: the system software that is put on a board to measure on. One module each."""

from typing import TYPE_CHECKING

from latenz import extensions
from latenz.measuring.settings import StackSettings, any_of
from latenz.stacks.amp import Amp
from latenz.stacks.base import Job, Stack, StackKind
from latenz.stacks.linux import Linux, LinuxRt
from latenz.stacks.pair import Pair
from latenz.stacks.partitioned import Partitioned
from latenz.stacks.standalone import Standalone
from latenz.stacks.vm import Vm
from latenz.stacks.xen import Xen
from latenz.stacks.xen_linux import XenLinux

_OWN: tuple[type[StackKind], ...] = (
    *(Standalone, Linux, LinuxRt, Xen, XenLinux),
    *(Amp, Partitioned, Pair, Vm),
)

STACKS: dict[str, type[StackKind]] = {
    stack.name: stack
    for stack in (
        *_OWN,
        *extensions.kinds("latenz.stacks", StackKind, {stack.name for stack in _OWN}),
    )
}
"""Every stack by its name; others' packages may add some."""

if TYPE_CHECKING:
    AnyStackSettings = StackSettings
else:
    AnyStackSettings = any_of((stack.settings_type for stack in STACKS.values()), "kind")
"""Settings of any stack, told apart by `kind`."""

__all__ = ["STACKS", "AnyStackSettings", "Job", "Stack", "StackKind", "StackSettings"]
