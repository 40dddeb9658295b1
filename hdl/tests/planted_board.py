"""A tree of files as Linux shows a board's UIO devices, and native programs to look at it with."""

import re
import signal
import struct
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

HDL = Path(__file__).parents[1]
ROOT = HDL.parent
DRIVER = HDL / "driver"
INCLUDES = ["-I", ROOT / "probes/src", "-I", ROOT / "core/include", "-I", DRIVER / "include"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
BRIDGE = [
    "ip_bridge",
    "ip_bridge_board",
    "ip_bridge_protocol",
    "ip_bridge_secret",
    "ip_bridge_server",
    "ip_bridge_session",
    "mapped_device",
    "options",
    "affinity",
    "file",
]
PAGE = 4096


def compiled(compiler: str, program: Path, *sources: Path, extra: tuple[str, ...] = ()) -> Path:
    """Build a program, or with -c an object."""
    command = [compiler, "-std=c++20", *WARNINGS, *INCLUDES, *extra]
    if len(sources) == 1:
        subprocess.run([*command, *sources, "-o", program], check=True, timeout=600)
        return program
    folder = program.parent
    objects = [folder / f"{program.name}-{source.stem}.o" for source in sources]
    with ThreadPoolExecutor(2) as two:
        pairs = zip(sources, objects, strict=True)
        list(two.map(lambda pair: compiled(compiler, pair[1], pair[0], extra=("-c",)), pairs))
    subprocess.run([*command, *objects, "-o", program], check=True, timeout=600)
    return program


@pytest.fixture(scope="module")
def series(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("series")
    return compiled("g++", folder / "latenz-ip-series", DRIVER / "examples/series.cpp")


class PlantedBoard:
    """Folders as the kernel shows UIO devices, with files for their registers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "proc/device-tree").mkdir(parents=True)
        (root / "proc/device-tree/model").write_bytes(b"Planted board\0")
        self.plant("latencies-ip-t1", 0, [11, 12, 13], [1, 0xFFFF, 9, 20, 5, 3, 0])
        node = root / "sys/class/uio/uio0/device/of_node"
        node.mkdir(parents=True)
        (node / "latenz,clock-frequency-hz").write_bytes(struct.pack(">I", 1_000_000))
        (node / "latenz,from-event").write_bytes(b"ps_pl_irq\0")
        self.plant("latenz-random-data-generator", 1, [5, 1, 16, 0, 1, 0, 0])

    def plant(self, name: str, number: int, *maps: list[int]) -> None:
        uio = self.root / f"sys/class/uio/uio{number}"
        content = b""
        for index, words in enumerate(maps):
            folder = uio / f"maps/map{index}"
            folder.mkdir(parents=True)
            (folder / "size").write_text(f"{PAGE:#x}\n")
            (folder / "offset").write_text("0x0\n")
            content += struct.pack(f"<{len(words)}I", *words).ljust(PAGE, b"\0")
        (uio / "name").write_text(f"{name}\n")
        device = self.root / f"dev/uio{number}"
        device.parent.mkdir(exist_ok=True)
        device.write_bytes(content)

    def plant_ring(self) -> None:
        """Two more maps of the IP's device: a writer that has written 5, and is idle; its ring."""
        for name, words in (("ring-writer", [0, 0, 0, 0, 5, 0, 0, 2]), ("ring", [])):
            maps = self.root / "sys/class/uio/uio0/maps"
            folder = maps / f"map{len(list(maps.iterdir()))}"
            folder.mkdir()
            told = {"name": name, "size": f"{PAGE:#x}", "offset": "0x0", "addr": "0x870000000"}
            for file, text in told.items():
                (folder / file).write_text(f"{text}\n")
            with (self.root / "dev/uio0").open("ab") as device:
                device.write(struct.pack(f"<{len(words)}I", *words).ljust(PAGE, b"\0"))

    def put(self, page: int, offset: int, content: bytes) -> None:
        with (self.root / "dev/uio0").open("r+b") as device:
            device.seek(page * PAGE + offset)
            device.write(content)

    def make_samples_longer_than_they_are(self) -> None:
        """What is behind the device's two pages is a bus error, as Linux has it for files."""
        (self.root / "sys/class/uio/uio0/maps/map0/size").write_text(f"{3 * PAGE:#x}\n")

    def word(self, page: int, index: int) -> int:
        content = (self.root / "dev/uio0").read_bytes()
        return struct.unpack_from("<I", content, PAGE * page + 4 * index)[0]


@pytest.fixture
def planted(tmp_path) -> PlantedBoard:
    return PlantedBoard(tmp_path / "root")


@pytest.fixture(scope="module")
def bridge(tmp_path_factory) -> Path:
    sources = [ROOT / f"probes/src/{name}.cpp" for name in BRIDGE]
    return compiled("g++", tmp_path_factory.mktemp("bridge") / "latenz-ip-bridge", *sources)


@contextmanager
def serving(
    bridge: Path, planted: PlantedBoard, *options: str, windows: int = 3
) -> Iterator[tuple[str, int]]:
    command = [bridge, "--port=0", f"--root={planted.root}", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
        try:
            line = program.stderr.readline()
            told = rf"latenz-ip-bridge: {windows} windows at ([0-9.]+):(\d+)\n"
            match = re.fullmatch(told, line)
            assert match, line
            yield match[1], int(match[2])
            assert program.poll() is None
        finally:
            program.send_signal(signal.SIGTERM)
