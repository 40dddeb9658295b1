"""The stack `xen`: our firmware as a guest of Xen, with Linux as Dom0 beside it."""

import hashlib
import re
from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import Field

from latenz.errors import BadInput
from latenz.loads.stress_ng import StressNgAllSettings
from latenz.measuring.settings import StackSettings
from latenz.model import SampleSet
from latenz.stacks.base import Stack

if TYPE_CHECKING:
    from latenz.boards.console import Received
    from latenz.boards.devicetree import Domain
    from latenz.boards.images import Image
    from latenz.boards.logic import Logic
    from latenz.boards.payload import Load, Payload
    from latenz.path.software import Program

_DOM0_SENDER = 2
_DOM0_SCRIPT = "xen_dom0"
_MEMORY_START = {"virt": 0x4000_0000, "zcu102": 0}
_GUEST_MEMORY_START = 0x4000_0000
"""Where Xen puts a guest's memory, and our firmware at its begin (public/arch-arm.h)."""
_MEMORY_MIB = 2048
_GUEST_MIB = 16
_STARTING_ALL_NS = {"virt": 1_800_000_000, "zcu102": 2_600_000_000}
"""By how much later Dom0 has started stress-ng --all; the scheduler credit gives it little."""
_LEAST_KINDS = 250  # of stressors that stress-ng --all starts; there are 282 in 0.15.06
_TICK_US = 10
_TURN_NS = _TICK_US * 1000
_AFTER_TURN_NS = 2000
_BOOT_OF_A_VCPU_NS = 1_400_000_000
_ARGUMENTS_LENGTH = 400
_BEHIND = re.compile(r"counter_behind_ns=(\d+)")
_TOLD = re.compile(r"held_ns=(\d+) released_ns=(\d+) processes=(\d+)")


class AnyXenSettings(StackSettings):
    """Which Xen, and how much of the board Dom0 gets."""

    scheduler: Literal["credit", "credit2"] = "credit"
    """`credit`, as in the publications, or `credit2`, what Xen takes by itself today."""
    dom0_vcpus: int = Field(default=1, ge=1, le=4)
    """Virtual CPUs of Dom0, all on the second core; `alonso2024` has 4."""
    dom0_memory_mib: int = Field(default=1024, ge=256, le=1280)
    """Memory of Dom0; the load stress-ng-all takes some hundred MiB."""


class XenSettings(AnyXenSettings):
    """Xen with our firmware in a domain of its own."""

    kind: Literal["xen"]


SettingsT = TypeVar("SettingsT", bound=AnyXenSettings)


class AnyXen(Stack[SettingsT]):
    """Xen with the measured domain alone on the first core, and Dom0 on the second.

    Dom0 itself moves both there, holds the measured domain until the load runs, and lets it go:
    see `stacks/init/xen_dom0.sh`. The measured domain has the first core because all emulated
    cores share one thread of the host, and only what runs on the first is exact (docs/xen.md).
    """

    loads = ("none", "spin", "stress-ng-cpu", "stress-ng-all")
    boot_ns: ClassVar[int] = 1_500_000_000
    """By when Dom0 holds the measured domain, if it has one virtual CPU."""

    _made: dict[str, "Image"]
    _told: dict[str, Any]

    @abstractmethod
    def _guest_files(self, begin_ns: int) -> list[Path]:
        """Return the images of the measured domain, which measures from `begin_ns` on."""

    @abstractmethod
    def _guest(self, loads: "list[Load]", begin_ns: int) -> "Domain":
        """Return the measured domain, its images being at the given places."""

    @abstractmethod
    def _sets(self, received: "Received") -> list[SampleSet]:
        """Return what was measured; its notes are what is to be known of all of it."""

    def payload(self) -> "Payload":
        """Return Xen, the tree that tells it what to start, and the images of both domains."""
        from latenz.boards import devicetree, images
        from latenz.boards.payload import Payload

        self._made = {
            "xen": images.xen(),
            "dom0_kernel": images.linux("stock"),
            "dom0_initrd": _dom0_initrd(),
        }
        self._told = {}
        begin_ns = self._begin_ns()
        memory = devicetree.Memory(_MEMORY_START[self.job.bench], _MEMORY_MIB)
        dom0_files = [self._made[name].path for name in ("dom0_kernel", "dom0_initrd")]
        loads = devicetree.placed([*dom0_files, *self._guest_files(begin_ns)], memory)
        dom0_arguments = self._dom0_arguments()
        tree = devicetree.xen_tree(
            self.job.bench,
            self.job.folder,
            arguments=self._xen_arguments(),
            dom0=[
                devicetree.Module("kernel", loads[0], dom0_arguments),
                devicetree.Module("ramdisk", loads[1]),
            ],
            domains=[self._guest(loads[2:], begin_ns)],
            logic=self._logic() is not None,
        )
        self._told |= {
            "xen_arguments": self._xen_arguments(),
            "dom0_arguments": dom0_arguments.rstrip(),
            "device_tree_sha256": hashlib.sha256(tree.read_bytes()).hexdigest(),
        }
        return Payload(
            kernel=self._made["xen"].path,
            cpus=2,
            memory_mib=_MEMORY_MIB,
            device_tree=tree,
            loads=tuple(loads),
            hypervisor=True,
            logic=self._logic(),
            tick_us=_TICK_US,
            boot_limit_s=180,
            limit_s=600,
        )

    def done(self, received: "Received") -> bool:
        """Return whether Dom0 has said its last word; that comes after the load's summary."""
        return _DOM0_SENDER in received.ended

    def collect(self, received: "Received") -> list[SampleSet]:
        """Return what was measured while the load ran.

        Raises:
            BadInput: Nothing was measured, or nobody can tell whether the load ran.
        """
        told = [match for note in received.notes if (match := _TOLD.fullmatch(note))]
        others = [note for note in received.notes if "_ns=" not in note]
        console = str(self.job.folder / "console.log")
        if not told:
            if own := [note for note in others if note.startswith("Dom0 ")]:  # Xen notes much else
                what = f"Dom0 did not let the measured domain go: {'; '.join(own)}"
            else:
                what = f"it ended before Dom0 let the measured domain go: {received.last_words}"
            raise BadInput(what, console)
        held_ns, released_ns, processes = (int(value) for value in told[0].groups())
        begin_ns = self._begin_ns()
        if max(held_ns, released_ns) + self._behind_ns(received) >= begin_ns:
            raise BadInput(
                f"Dom0 let the measured domain go at {released_ns} ns, but measuring was to begin"
                f" at {begin_ns} ns",
                console,
                "these samples show no load; give Dom0 fewer virtual CPUs",
            )
        load = self.job.condition.load.kind
        beside = f"{processes} processes in Dom0 then" if load != "none" else "no load in Dom0"
        known = f"held by Dom0 until {released_ns / 1e9:.3f} s, measured from"
        known += f" {begin_ns / 1e9:.3f} s on; {beside}"
        return self._sets(replace(received, notes=[known, *others]))

    def provenance(self) -> dict[str, Any]:
        """Return packages, hashes, the tree's hash and the command lines in it."""
        return {**{name: image.provenance() for name, image in self._made.items()}, **self._told}

    def _begin_ns(self) -> int:
        """Return when measuring begins, on the board's own counter.

        The same for all loads that settle as long, and just after the end of a turn: see
        docs/xen.md.
        """
        load = self.job.condition.load
        starting_ns = _STARTING_ALL_NS[self.job.bench] if load.kind == "stress-ng-all" else 0
        boot_ns = self.boot_ns + (self.settings.dom0_vcpus - 1) * _BOOT_OF_A_VCPU_NS
        settled_ns = boot_ns + starting_ns + load.settle
        return (settled_ns // _TURN_NS + 1) * _TURN_NS + _AFTER_TURN_NS

    def _logic(self) -> "Logic | None":
        """Return what the measured domain has in an emulated board's programmable logic."""
        return None

    def _behind_ns(self, received: "Received") -> int:  # noqa: ARG002
        """Return by how much Dom0's counter is behind that of `_begin_ns`, at most."""
        return 0

    def _xen_arguments(self) -> str:
        settings = self.settings
        return (
            f"console=dtuart bootscrub=0 sched={settings.scheduler}"
            f" dom0_mem={settings.dom0_memory_mib}M dom0_max_vcpus={settings.dom0_vcpus}"
        )

    def _dom0_arguments(self) -> str:
        """Return Dom0's command line; always as long, so that no load moves anything in memory."""
        from latenz.stacks import guest_linux

        load = self.job.condition.load
        command = guest_linux.load_command(load)
        many = isinstance(load, StressNgAllSettings)
        least = 0
        if isinstance(load, StressNgAllSettings) and load.everything:
            least = _LEAST_KINDS * load.instances
        options = guest_linux.kernel_options(
            load=" ".join(command),
            # stress-ng --all starts more than a thousand processes, each of which slows down the
            # starting of the next: stress-ng itself goes first, they are as any other.
            load_class="-R -f 1" if many else "-o 0",
            least_processes=least,
            settle_us=guest_linux.settle_us(load),
        )
        return f"console=hvc0 quiet panic=-1 {options}".ljust(_ARGUMENTS_LENGTH)


class Xen(AnyXen[XenSettings]):
    """Our firmware as a guest of Xen: with the virtual timer, on the ZCU102 with a TTC."""

    name = "xen"
    settings_type = XenSettings
    benches = ("virt", "zcu102")
    engines = ("interrupt",)
    with_logic = ("zcu102",)
    planned_s = 30

    def _guest_files(self, begin_ns: int) -> list[Path]:
        from latenz.boards import devicetree
        from latenz.stacks.measured import measuring_firmware

        board = self.job.bench
        firmware = measuring_firmware(self.job, f"xen-{board}", begin_ns)
        if board != "zcu102":
            return [firmware]
        given = devicetree.passthrough_tree(board, self.job.folder, logic=self._logic() is not None)
        return [firmware, given]

    def _guest(self, loads: "list[Load]", begin_ns: int) -> "Domain":  # noqa: ARG002
        from latenz.boards.devicetree import Domain, Module

        kinds = ("kernel", "tree")
        modules = [Module(kind, load) for kind, load in zip(kinds, loads, strict=False)]
        return Domain(_GUEST_MIB, tuple(modules))

    def _logic(self) -> "Logic | None":
        from latenz.stacks.measured import measuring_logic

        return measuring_logic(self.job)

    def _behind_ns(self, received: "Received") -> int:
        # Xen creates Dom0 first: no counter is further behind than the firmware's.
        found = [match for note in received.notes if (match := _BEHIND.fullmatch(note))]
        return int(found[0][1]) if found else self._begin_ns()

    def programs(self) -> "list[Program]":
        """Return the firmware, where Xen loads it, and Xen."""
        from latenz.boards import images
        from latenz.path.software import Program
        from latenz.path.symbols import embedded_symbols
        from latenz.stacks.measured import firmware_program

        return [
            firmware_program(self.job, f"xen-{self.job.bench}", _GUEST_MEMORY_START),
            Program("Xen", "xen", embedded_symbols(images.xen().path)),
        ]

    def _sets(self, received: "Received") -> list[SampleSet]:
        from latenz.stacks.measured import firmware_sets

        return firmware_sets(self.job, received, *received.notes)


def _dom0_initrd() -> "Image":
    """Return Dom0's small system; one for all loads, so that only the command line tells them."""
    from latenz.boards import images
    from latenz.programs import board_program
    from latenz.stacks import guest_linux

    programs = ("latenz-send", "latenz-xen-control")
    return images.initrd(
        _DOM0_SCRIPT,
        guest_linux.script(_DOM0_SCRIPT),
        packages=("busybox-static", "stress-ng", "util-linux"),
        programs=("/bin/busybox", "/usr/bin/chrt", "/usr/bin/stress-ng"),
        modules=("xen_privcmd",),
        files={
            "/bin/spin": guest_linux.script("spin").encode(),
            **{f"/bin/{each}": board_program(each) for each in programs},
        },
    )
