"""The stack `partitioned`: static partitions, one on each core, of our own hypervisor."""

import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field

from latenz.errors import BadInput
from latenz.loads.stress_ng import StressNgAllSettings
from latenz.measuring.settings import StackSettings
from latenz.model import SampleSet
from latenz.stacks.base import Stack

if TYPE_CHECKING:
    from latenz.boards.console import Received
    from latenz.boards.images import Image
    from latenz.boards.payload import Payload
    from latenz.hypervisor.configuration import Cell
    from latenz.hypervisor.guest import Program as Guest
    from latenz.hypervisor.image import Segment
    from latenz.hypervisor.memory import MemoryPlan
    from latenz.path.software import Program
    from latenz.system.hosting import Device

_FIRMWARE_BOARD = "virt"
"""Guests see a machine that is laid out like QEMU's, on every board."""
_FIRMWARE_SENDER, _LINUX_SENDER = 0, 1
_FIRMWARE_MEMORY = 4 << 20
_TICK_US = 100
_BOOT_NS = 4_200_000_000
"""By when Linux begins its load; it has half of the virtual time beside a firmware that polls."""
_STARTING_ALL_NS = 3_000_000_000
_MARGIN_NS = 20_000_000
_LEAST_KINDS = 250  # of stressors that stress-ng --all starts; there are 282 in 0.15.06
_ARGUMENTS_LENGTH = 500
_TRIGGER = 0xFF12_0000  # TTC1 of a ZCU102
_LOGIC_BYTES = 0x5_0000
_FIRST_SPI = 32  # interrupt numbers in device trees begin here
_IMAGE_SIZE, _IMAGE_SIZE_AT = struct.Struct("<Q"), 16  # in the header of an arm64 Image
_COPIED_AT_ONCE = 64
_TOLD = re.compile(r"(un)?loaded_ns=(\d+) processes=(\d+)")


class _Uart(NamedTuple):
    """The UART that Linux has for itself.

    Attributes:
        address: Physical, and Linux'.
        interrupt: Its number at the interrupt controllers.
        kind: Lines of its node in the device tree.
        clock_hz: What it is clocked with.
        console: Its name in Linux.
    """

    address: int
    interrupt: int
    kind: str
    clock_hz: int
    console: str


_UARTS = {
    "virt": _Uart(
        0x0904_0000,
        40,
        'compatible = "arm,pl011", "arm,primecell"; clock-names = "uartclk", "apb_pclk";',
        24_000_000,
        "ttyAMA0",
    ),
    "zcu102": _Uart(
        0xFF01_0000,
        54,
        'compatible = "xlnx,zynqmp-uart", "cdns,uart-r1p12"; clock-names = "uart_clk", "pclk";',
        100_000_000,
        "ttyPS0",
    ),
}


class PartitionedSettings(StackSettings):
    """Linux on one core, the firmware on another."""

    kind: Literal["partitioned"]
    linux_memory_mib: int = Field(default=768, ge=256, le=832, multiple_of=2)
    """Memory of Linux; the load stress-ng-all takes some hundred MiB."""


class Partitioned(Stack[PartitionedSettings]):
    """What Jailhouse is in `alonso2024`: the firmware alone on the first core, Linux on the second.

    Nothing is shared but the memory bus, which emulated boards do not have. The firmware measures
    when Linux has told that its load runs; both read the same counter.
    """

    name = "partitioned"
    settings_type = PartitionedSettings
    benches = ("virt", "zcu102")
    engines = ("interrupt",)
    with_logic = ("zcu102",)
    loads = ("none", "spin", "stress-ng-cpu", "stress-ng-all")
    planned_s = 60
    _made: dict[str, "Image"]
    _told: dict[str, Any]

    def payload(self) -> "Payload":
        """Return one image with the hypervisor and what both partitions start."""
        from latenz.boards.payload import Payload
        from latenz.hypervisor.guest import installed
        from latenz.hypervisor.image import joined, read_image, write_image
        from latenz.stacks.measured import measuring_logic

        image = self.job.folder / "hypervisor.elf"
        found = read_image(installed("hypervisor.elf"))
        write_image(joined(found, self._segments()), image)
        return Payload(
            kernel=image,
            cpus=2,
            memory_mib=2048,
            hypervisor=True,
            uarts=2,
            logic=measuring_logic(self.job),
            tick_us=_TICK_US,
            boot_limit_s=180,
            limit_s=600,
        )

    def done(self, received: "Received") -> bool:
        """Return whether both partitions have said their last word."""
        return {_FIRMWARE_SENDER, _LINUX_SENDER} <= received.ended

    def programs(self) -> "list[Program]":
        """Return the firmware, and the hypervisor below it."""
        from latenz.hypervisor.guest import installed
        from latenz.path.software import Program
        from latenz.path.symbols import elf_symbols
        from latenz.stacks.measured import firmware_program

        return [
            firmware_program(self.job, _FIRMWARE_BOARD),
            Program("hypervisor", "hypervisor", elf_symbols(installed("hypervisor.elf"))),
        ]

    def collect(self, received: "Received") -> list[SampleSet]:
        """Return what was measured while the load ran.

        Raises:
            BadInput: Nothing was measured, or nobody can tell whether the load ran.
        """
        from latenz.stacks.measured import firmware_sets

        told = [match for note in received.notes if (match := _TOLD.fullmatch(note))]
        others = [note for note in received.notes if not _TOLD.fullmatch(note)]
        console = str(self.job.folder / "console1.log")
        if len(told) != 2:
            reason = "; ".join(others) or received.last_words
            raise BadInput(f"Linux did not tell when its load ran: {reason}", console)
        (loaded_ns, processes), (unloaded_ns, left) = (
            (int(match[2]), int(match[3])) for match in told
        )
        begin_ns, end_ns = self._begin_ns(), self._end_ns()
        if loaded_ns >= begin_ns or unloaded_ns < end_ns:
            raise BadInput(
                f"the load ran from {loaded_ns} to {unloaded_ns} ns, measured was from {begin_ns}"
                f" to {end_ns} ns",
                console,
                "these samples show no load",
            )
        known = f"Linux' load ran from {loaded_ns / 1e9:.3f} s on, measured from"
        known += f" {begin_ns / 1e9:.3f} s on; {processes} processes then, {left} afterwards"
        return firmware_sets(self.job, received, known, *others)

    def provenance(self) -> dict[str, Any]:
        """Return packages, hashes and Linux' command line."""
        return {**{name: image.provenance() for name, image in self._made.items()}, **self._told}

    def _begin_ns(self) -> int:
        """Return when measuring begins at the earliest, by the counter of both partitions."""
        load = self.job.condition.load
        starting_ns = _STARTING_ALL_NS if load.kind == "stress-ng-all" else 0
        return _BOOT_NS + starting_ns + load.settle

    def _end_ns(self) -> int:
        """Return when it has ended at the latest: the firmware starts soon after the counter."""
        from latenz.stacks.measured import WARM_UP, firmware_settings

        settings = firmware_settings(self.job)
        return self._begin_ns() + (settings.samples + WARM_UP) * settings.period + _MARGIN_NS

    def _segments(self) -> "list[Segment]":
        from latenz.hypervisor.configuration import for_board, static_configuration
        from latenz.hypervisor.image import Segment
        from latenz.hypervisor.memory import CONFIGURATION, MemoryPlan

        plan = MemoryPlan()
        plan.place("configuration", 1)
        cells = [self._firmware(plan), self._linux(plan)]
        block = for_board(static_configuration(cells), self.job.bench)
        found = [Segment(CONFIGURATION, block, len(block))]
        for cell in cells:
            for region, piece in zip(cell.images, cell.program.pieces, strict=True):
                found.append(Segment(region.begin, piece.content, len(piece.content)))
        return found

    def _firmware(self, plan: "MemoryPlan") -> "Cell":
        from latenz.hypervisor.guest import program
        from latenz.stacks.measured import measuring_firmware, measuring_logic
        from latenz.system import Partition
        from latenz.system.hosting import Device

        path = measuring_firmware(self.job, _FIRMWARE_BOARD, self._begin_ns())
        partition = Partition("firmware", guest=str(path), memory=_FIRMWARE_MEMORY)
        devices: tuple[Device, ...] = ()
        if logic := measuring_logic(self.job):
            trigger, bus = (
                _TRIGGER,
                Device(logic.base, _LOGIC_BYTES, (_FIRST_SPI + logic.interrupt,)),
            )
            devices = (Device(trigger, 0x1000), bus)
        return _cell(
            plan, "firmware", 0, program(partition), _FIRMWARE_MEMORY, console=True, devices=devices
        )

    def _linux(self, plan: "MemoryPlan") -> "Cell":
        from latenz.boards import images
        from latenz.hypervisor.guest import Piece, Program
        from latenz.system.hosting import BLOCK, GUEST_MEMORY, Device

        uart = _UARTS[self.job.bench]
        kernel = images.linux("stock")
        initrd = _initrd()
        self._made = {"kernel": kernel, "initrd": initrd}
        memory = self.settings.linux_memory_mib << 20
        kernel_at = GUEST_MEMORY + BLOCK
        kernel_bytes = kernel.path.read_bytes()
        [kernel_size] = _IMAGE_SIZE.unpack_from(kernel_bytes, _IMAGE_SIZE_AT)
        initrd_at = kernel_at + -(-kernel_size // BLOCK) * BLOCK
        initrd_bytes = initrd.path.read_bytes()
        arguments = self._linux_arguments(uart)
        tree = _tree(self.job.folder, uart, memory, arguments, (initrd_at, len(initrd_bytes)))
        self._told = {"command_line": arguments.rstrip()}
        contents = {GUEST_MEMORY: tree, kernel_at: kernel_bytes, initrd_at: initrd_bytes}
        pieces = tuple(Piece(place, _padded(content)) for place, content in contents.items())
        devices = (Device(uart.address, 0x1000, (uart.interrupt,)),)
        linux = Program(kernel_at, pieces)
        return _cell(plan, "Linux", 1, linux, memory, GUEST_MEMORY, console=False, devices=devices)

    def _linux_arguments(self, uart: _Uart) -> str:
        """Return Linux' command line; always as long, so that no load moves anything in memory."""
        from latenz.stacks import guest_linux

        load = self.job.condition.load
        command = guest_linux.load_command(load)
        # stress-ng --all starts more than a thousand processes, each of which slows down the
        # starting of the next: stress-ng itself goes first, they are as any other.
        priority, least = "chrt -o 0", 0
        if isinstance(load, StressNgAllSettings):
            priority = "chrt -R -f 1"
            least = _LEAST_KINDS * load.instances * load.everything
        options = guest_linux.kernel_options(
            load=" ".join([priority, *command]) if command else "",
            least_processes=least,
            settle_us=guest_linux.settle_us(load),
            until_ns=self._end_ns(),
        )
        arguments = f"console={uart.console} quiet panic=-1 {options}"
        return arguments.ljust(_ARGUMENTS_LENGTH)


def _initrd() -> "Image":
    """Return Linux' small system; one for all loads, so that only the command line tells them."""
    from latenz.boards import images
    from latenz.programs import board_program
    from latenz.stacks import guest_linux

    return images.initrd(
        "partitioned",
        guest_linux.script("common") + guest_linux.script("partitioned"),
        packages=("busybox-static", "stress-ng", "util-linux"),
        programs=("/bin/busybox", "/usr/bin/chrt", "/usr/bin/stress-ng"),
        files={
            "/bin/spin": guest_linux.script("spin").encode(),
            **{f"/bin/{each}": board_program(each) for each in ("latenz-send", "latenz-counter")},
        },
    )


def _cell(
    plan: "MemoryPlan",
    name: str,
    cpu: int,
    program: "Guest",
    memory: int,
    argument: int = 0,
    *,
    console: bool,
    devices: "tuple[Device, ...]",
) -> "Cell":
    from latenz.hypervisor.configuration import Cell

    return Cell(
        name=name,
        cpu=cpu,
        program=program,
        argument=argument,
        memory=plan.place(f"the memory of {name}", memory),
        images=tuple(plan.place(f"{name}'s program", len(x.content)) for x in program.pieces),
        has_console=console,
        devices=devices,
    )


def _tree(folder: Path, uart: _Uart, memory: int, arguments: str, initrd: tuple[int, int]) -> bytes:
    """Return what Linux gets to see of its partition, compiled."""
    from latenz.boards.devicetree import compiled, template

    begin, size = initrd
    source = template("partition-linux")
    for name, value in {
        "@CLOCK_HZ@": str(uart.clock_hz),
        "@UART@": f"{uart.address:x}",
        "@SPI@": str(uart.interrupt - _FIRST_SPI),
        "@UART_KIND@": f"\t\t{uart.kind}",
        "@MEMORY@": f"{memory:#x}",
        "@ARGUMENTS@": arguments.replace('"', '\\"'),
        "@INITRD_BEGIN@": f"{begin:#x}",
        "@INITRD_END@": f"{begin + size:#x}",
    }.items():
        source = source.replace(name, value)
    return compiled(source, folder / "linux.dtb").read_bytes()


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % _COPIED_AT_ONCE)
