"""The hypervisor begins as boot loaders start it, and says so where it cannot begin."""

import os
import select
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest
from debugger import Debugger
from elftools.elf.elffile import ELFFile

from latenz.boards.archive import members
from latenz.boards.console import Collector
from latenz.boards.packages import fetch
from latenz.hypervisor.build import build
from latenz.hypervisor.image import Image, Segment, write_image, write_raw_image
from latenz.hypervisor.run import SENDER, ensure_built
from latenz.hypervisor.trace import read_statistics

pytestmark = pytest.mark.boots

U_BOOT = Path("/usr/lib/u-boot/qemu_arm64/u-boot.bin")
EMULATOR = [
    "qemu-system-aarch64",
    "-nodefaults",
    "-display",
    "none",
    "-icount",
    "shift=0,sleep=off",
]
VIRT = [*EMULATOR, "-cpu", "cortex-a53,cntfrq=1000000000", "-m", "1024", "-smp", "1"]
RASPI4B = [*EMULATOR, "-M", "raspi4b", "-m", "2048"]
ZCU102 = [*EMULATOR, "-M", "xlnx-zcu102,virtualization=on", "-m", "2048", "-audio", "none"]
MACHINE = "virt,gic-version=2,dtb-randomness=off"
WITH_GICV3 = "virt,gic-version=3,dtb-randomness=off"
AT_EL1, AT_EL2, AT_EL3 = "", ",virtualization=on", ",virtualization=on,secure=on"
GICV3_IMAGES = ("virt-gicv3.elf", "virt-gicv3.img")
IRQS = 30
LIMIT_S = 120
ARM_STUB = "/usr/lib/arm-trusted-firmware/rpi4/bl31.bin"
PATCHED_AT, KERNEL_ADDRESS = 0xF0, 0x20_0000
ELSEWHERE = 0x5000_0000


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Images of one system for all boards, of both kinds."""
    ensure_built()
    folder = tmp_path_factory.mktemp("images")
    built = build(Path("experiments/systems/can-gateway.toml"), irqs=IRQS)
    for bench in ("virt", "virt-gicv3", "zcu102", "raspi4b"):
        for kind in ("elf", "img"):
            built.write(folder / f"{bench}.{kind}", bench)
    return folder


class Console:
    """A board's serial line, at a socket."""

    def __init__(self, folder: Path) -> None:
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(folder / "line"))
        self._server.listen()
        self.option = ["-serial", f"unix:{folder / 'line'}"]
        self._line: socket.socket | None = None
        self.said = b""

    def read_until(self, words: bytes | None) -> None:
        """Take what comes until these words; None: until the board switches itself off."""
        if self._line is None:
            self._server.settimeout(LIMIT_S)
            self._line, _ = self._server.accept()
        until = time.monotonic() + LIMIT_S
        while words is None or words not in self.said:
            left = until - time.monotonic()
            ready = select.select([self._line], [], [], max(left, 0))[0]
            assert ready, f"{words!r} did not come, but {self.said[-300:]!r}"
            piece = os.read(self._line.fileno(), 4096)
            if not piece:
                assert words is None, f"the end came, {self.said[-300:]!r}"
                return
            self.said += piece

    def type(self, text: str) -> None:
        assert self._line is not None
        self.said = b""
        self._line.sendall(text.encode())

    def close(self) -> None:
        for each in (self._line, self._server):
            if each is not None:
                each.close()


@pytest.fixture
def console(tmp_path):
    made = Console(tmp_path)
    yield made
    made.close()


def check_run(console):
    """A whole run was told, with every interrupt."""
    console.read_until(None)
    collector = Collector()
    collector.feed([(0, console.said)])
    collector.finish()
    received = collector.received
    assert SENDER in received.ended
    assert (received.damaged, received.missing) == (0, 0)
    statistics = read_statistics(bytes(received.files["statistics.json"]))
    assert sum(each.completed for each in statistics.sources) == IRQS


class Emulated:
    """An emulator that ends with its test."""

    def __init__(self, command: list[str]) -> None:
        self._program = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def __enter__(self) -> "Emulated":
        return self

    def __exit__(self, *_: object) -> None:
        self._program.kill()
        self._program.wait()


@pytest.mark.parametrize("image", ["virt.elf", "virt.img", "zcu102.elf", *GICV3_IMAGES])
def test_the_emulators_own_loader(images, console, image):
    board = WITH_GICV3 if image in GICV3_IMAGES else MACHINE
    machine = [*VIRT, "-M", board + AT_EL2] if "virt" in image else ZCU102
    with Emulated([*machine, *console.option, "-kernel", str(images / image)]):
        check_run(console)


@pytest.mark.parametrize("level", [AT_EL1, AT_EL3])
@pytest.mark.parametrize(("board", "image"), [(MACHINE, "virt"), (WITH_GICV3, "virt-gicv3")])
def test_a_wrong_exception_level_is_told(images, console, level, board, image):
    command = [*VIRT, "-M", board + level, *console.option]
    with Emulated([*command, "-kernel", str(images / f"{image}.elf")]):
        console.read_until(b"latenz hypervisor: not entered at EL2\r\n")


def started_at(image, address, board):
    """Return the command of a board that has a file in memory, and starts at its first byte."""
    return [*board, "-device", f"loader,file={image},addr={address:#x},force-raw=on,cpu-num=0"]


@pytest.mark.parametrize("address", [0x4400_0000, 0x7000_0000])
def test_an_image_elsewhere_moves_to_where_it_belongs(images, console, address):
    size = (images / "virt.img").stat().st_size
    assert 0x4020_0000 + size < 0x4400_0000 <= address <= 0x8000_0000 - size
    board = [*VIRT, "-M", MACHINE + AT_EL2, *console.option]
    with Emulated(started_at(images / "virt.img", address, board)):
        check_run(console)


@pytest.mark.parametrize("kind", ["over itself", "first segment"])
def test_a_wrong_address_is_told(images, console, tmp_path, kind):
    image, address = images / "virt.img", 0x4100_0000
    if kind == "first segment":
        with (images / "virt.elf").open("rb") as file:
            whole = bytearray(0x21_0000)
            for each in list(ELFFile(file).iter_segments("PT_LOAD"))[:4]:
                at = each.header.p_paddr - 0x4020_0000
                if 0 <= at < len(whole):
                    whole[at : at + each.header.p_filesz] = each.data()
        image, address = tmp_path / "segments", 0x5000_0000
        image.write_bytes(whole)
    board = [*VIRT, "-M", MACHINE + AT_EL2, *console.option]
    with Emulated(started_at(image, address, board)):
        console.read_until(b"latenz hypervisor: not loaded at 0x40200000\r\n")


def cores_on(number):
    return ["-global", f"bcm2838.enabled-cpus={number}"]


def test_a_raspberry_pi_switches_itself_off_without_psci(images, console):
    board = [*RASPI4B, *cores_on(1), *console.option]
    with Emulated([*board, "-kernel", str(images / "raspi4b.img")]):
        check_run(console)


def test_a_raspberry_pi_tells_a_wrong_exception_level(images, console):
    """As which the emulator starts an ELF file."""
    board = [*RASPI4B, *cores_on(1), *console.option]
    with Emulated([*board, "-kernel", str(images / "raspi4b.elf")]):
        console.read_until(b"latenz hypervisor: not entered at EL2\r\n")


BESIDE = """
[[partition]]
name = "alone"
guest = "victim"
cpu = 1
"""


@pytest.mark.parametrize("cores", [1, 2])
def test_trusted_firmware_of_a_raspberry_pi(images, console, tmp_path, cores):
    """Debian's, as config.txt's armstub: it is at address 0, and the firmware tells it where the
    kernel is. Its further cores are started by PSCI."""
    path = Path("experiments/systems/can-gateway.toml")
    image = images / "raspi4b.img"
    if cores == 2:
        (tmp_path / "system.toml").write_text(path.read_text() + BESIDE)
        image = tmp_path / "two.img"
        build(tmp_path / "system.toml", irqs=IRQS).write(image, "raspi4b")
    [package] = fetch(["arm-trusted-firmware"])
    [(_, content)] = members(package.path, lambda name: name == ARM_STUB)
    stub = bytearray(content)
    assert stub[PATCHED_AT : PATCHED_AT + 4] == b"\x0b\x57\xfe\x5a"
    struct.pack_into("<4I", stub, PATCHED_AT, 0, 0, 0, KERNEL_ADDRESS)
    (tmp_path / "stub").write_bytes(stub)
    board = [*RASPI4B, *cores_on(cores), *console.option]
    command = started_at(tmp_path / "stub", 0, board)
    kernel = f"loader,file={image},addr={KERNEL_ADDRESS:#x},force-raw=on"
    with Emulated([*command, "-device", kernel]):
        check_run(console)
    assert b"BL31: cortex_a72" in console.said


def u_boot(console, image, address, board=MACHINE):
    """Return the command of a board with Debian's U-Boot, and an image somewhere in memory."""
    load = f"loader,file={image},addr={address:#x},force-raw=on"
    machine = [*VIRT, "-M", board + AT_EL2, "-bios", str(U_BOOT), "-device", load]
    return [*machine, *console.option]


def wait_for_prompt(console):
    console.read_until(b"Hit any key")
    console.type("\n")
    console.read_until(b"=> ")


@pytest.mark.parametrize(("board", "image"), [(MACHINE, "virt"), (WITH_GICV3, "virt-gicv3")])
def test_u_boots_booti(images, console, board, image):
    with Emulated(u_boot(console, images / f"{image}.img", 0x4020_0000, board)):
        wait_for_prompt(console)
        console.type("booti 0x40200000 - ${fdtcontroladdr}\n")
        console.read_until(b"Starting kernel")
        check_run(console)


def test_u_boots_bootelf_loads_every_segment(images, console):
    """It does so by sections. Only loads: this U-Boot waits for ever for its UART then."""
    with Emulated(u_boot(console, images / "virt.elf", ELSEWHERE)):
        wait_for_prompt(console)
        console.type(f"bootelf {ELSEWHERE:#x}\n")
        console.read_until(b"=> ")
        console.type("booti 0x40200000 - ${fdtcontroladdr}\n")
        check_run(console)


def test_a_boot_loader_may_leave_its_translation_and_caches_on(images, console, tmp_path):
    """As `bootelf` and `go` do: U-Boot is stopped at its prompt and made to jump."""
    with Debugger(u_boot(console, images / "virt.elf", ELSEWHERE), tmp_path) as debugger:
        debugger.run()
        wait_for_prompt(console)
        console.type(f"bootelf {ELSEWHERE:#x}\n")
        console.read_until(b"=> ")
        debugger.halt()
        assert debugger.system_register("SCTLR_EL2") & 0b101 == 0b101
        debugger.set_place(0x4020_0000)
        debugger.run()
        check_run(console)


def test_each_segment_is_a_section(images):
    with (images / "virt.elf").open("rb") as file:
        elf = ELFFile(file)
        segments = [(each.header.p_paddr, each.data()) for each in elf.iter_segments("PT_LOAD")]
        sections = [
            (each.header.sh_addr, each.data())
            for each in elf.iter_sections()
            if each.name == ".loaded"
        ]
        assert len(segments) > 3
        assert sections == segments


def test_a_raw_image_is_what_lies_in_memory(tmp_path):
    head = bytes(range(64)) + bytes(100)
    segments = (Segment(0x1000, head, 0x100), Segment(0x2000, b"configuration", 0x500))
    write_raw_image(Image(0x1000, segments), tmp_path / "x.img")
    whole = (tmp_path / "x.img").read_bytes()
    assert whole[:16] == head[:16]
    assert int.from_bytes(whole[16:24], "little") == 0x1500
    assert whole[24:164] == head[24:]
    assert whole[0x1000:] == b"configuration"
    write_image(Image(0x1000, segments), tmp_path / "x.elf")
