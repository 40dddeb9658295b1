"""A stock Linux is the judge of the GICv3 that guests see: its driver, its timer, its UART."""

import re
import struct
import subprocess
from subprocess import PIPE
from threading import Timer

import pytest

from latenz.boards import images
from latenz.boards.devicetree import compiled, template
from latenz.hypervisor.configuration import Cell, for_board, static_configuration
from latenz.hypervisor.guest import Piece, Program, hypervisor_for
from latenz.hypervisor.image import Segment, joined, read_image, write_image
from latenz.hypervisor.memory import CONFIGURATION, MemoryPlan
from latenz.hypervisor.run import ensure_built
from latenz.system.hosting import BLOCK, GUEST_MEMORY, Device

pytestmark = pytest.mark.boots

BENCH = "virt-gicv3"
UART, UART_INTERRUPT = 0x0904_0000, 40
MEMORY = 256 << 20
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc
/bin/busybox mount -t proc none /proc
/bin/busybox sleep 1
echo "say something"
read words
echo "heard $words"
/bin/busybox cat /proc/interrupts
/bin/busybox poweroff -f
"""
GICV2 = """		compatible = "arm,cortex-a15-gic";
		#interrupt-cells = <3>;
		#address-cells = <0>;
		interrupt-controller;
		reg = <0x0 0x8000000 0x0 0x1000>, <0x0 0x8010000 0x0 0x2000>;
"""
GICV3 = """		compatible = "arm,gic-v3";
		#interrupt-cells = <3>;
		#address-cells = <0>;
		interrupt-controller;
		reg = <0x0 0x8000000 0x0 0x10000>, <0x0 0x80a0000 0x0 0x20000>;
"""
EMULATOR = (
    *("qemu-system-aarch64", "-nodefaults", "-display", "none", "-icount", "shift=0,sleep=off"),
    *("-M", "virt,gic-version=3,virtualization=on,dtb-randomness=off"),
    *("-cpu", "cortex-a53,cntfrq=1000000000", "-m", "1024"),
)
LIMIT_S = 300


def tree(folder, initrd_at, initrd_size):
    """Return the device tree of a partition, with a GICv3 in the place of the GICv2."""
    source = template("partition-linux")
    assert GICV2 in source
    kind = 'compatible = "arm,pl011", "arm,primecell"; clock-names = "uartclk", "apb_pclk";'
    for name, value in {
        GICV2: GICV3,
        "@CLOCK_HZ@": "24000000",
        "@UART@": f"{UART:x}",
        "@SPI@": str(UART_INTERRUPT - 32),
        "@UART_KIND@": f"\t\t{kind}",
        "@MEMORY@": f"{MEMORY:#x}",
        "@ARGUMENTS@": "console=ttyAMA0 panic=-1",
        "@INITRD_BEGIN@": f"{initrd_at:#x}",
        "@INITRD_END@": f"{initrd_at + initrd_size:#x}",
    }.items():
        source = source.replace(name, value)
    return compiled(source, folder / "linux.dtb").read_bytes()


def linux(folder):
    """Return what a partition with Linux starts."""
    kernel = images.linux("stock").path.read_bytes()
    made = images.initrd(
        "gicv3-test", INIT, packages=("busybox-static",), programs=("/bin/busybox",)
    )
    initrd = made.path.read_bytes()
    kernel_at = GUEST_MEMORY + BLOCK
    [kernel_size] = struct.unpack_from("<Q", kernel, 16)
    initrd_at = kernel_at + -(-kernel_size // BLOCK) * BLOCK
    contents = {
        GUEST_MEMORY: tree(folder, initrd_at, len(initrd)),
        kernel_at: kernel,
        initrd_at: initrd,
    }
    pieces = tuple(Piece(at, each + bytes(-len(each) % 64)) for at, each in contents.items())
    return Program(kernel_at, pieces)


def image(folder):
    """Write an image with Linux alone on the first processor; return where it is."""
    plan = MemoryPlan()
    plan.place("configuration", 1)
    program = linux(folder)
    memory = plan.place("memory", MEMORY)
    stored = tuple(plan.place("program", len(each.content)) for each in program.pieces)
    uart = Device(UART, 0x1000, (UART_INTERRUPT,))
    cell = Cell("linux", 0, program, GUEST_MEMORY, memory, stored, False, (uart,))
    block = for_board(static_configuration([cell]), BENCH)
    segments = [Segment(CONFIGURATION, block, len(block))]
    for place, piece in zip(stored, program.pieces, strict=True):
        segments.append(Segment(place.begin, piece.content, len(piece.content)))
    write_image(joined(read_image(hypervisor_for(BENCH)), segments), folder / "linux.elf")
    return folder / "linux.elf"


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> str:
    """All that Linux said until it switched itself off."""
    ensure_built()
    folder = tmp_path_factory.mktemp("linux")
    command = [*EMULATOR, "-serial", "null", "-serial", "stdio", "-kernel", image(folder)]
    lines = []
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, errors="replace") as board:
        guard = Timer(LIMIT_S, board.kill)
        guard.start()
        for line in board.stdout:
            lines.append(line)
            if line.strip() == "say something":
                board.stdin.write("hello\n")
                board.stdin.flush()
        guard.cancel()
    return "".join(lines)


def test_its_driver_takes_the_controller_for_what_it_is(said):
    assert "GICv3: 988 SPIs implemented" in said
    assert re.search(r"CPU0: found redistributor 0 .*:0x00000000080a0000", said)


def test_its_timer_and_its_uart_interrupt_it(said):
    counts = {
        name: int(count)
        for count, name in re.findall(r"^ *\d+: +(\d+) +GICv3 +\d+ Level +(\S+)", said, re.M)
    }
    assert counts["arch_timer"] > 100, "four ticks each 16 ms at least"
    assert counts["uart-pl011"] > 0
    assert "heard hello" in said
