"""The C++ driver against the simulated IP, and the bridge program against a planted board.

What the driver reads of the design that GHDL runs must be what Python reads there, by other code
and after it. The bridge gets the tree of files that Linux shows for UIO devices.
"""

import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from systemrdl import RDLCompiler
from systemrdl.node import RegNode

from latenz.ip.instance import open_instances
from latenz.ip.link import NotAnswered, SocketLink, Window
from latenz.ip.ring import RegisterRingWriter, RingReader
from latenz.ip.simulated import Answers, Scenario, simulated_board

HDL = Path(__file__).parents[1]
ROOT = HDL.parent
DRIVER = HDL / "driver"
INCLUDES = ["-I", ROOT / "probes/src", "-I", ROOT / "core/include", "-I", DRIVER / "include"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
BRIDGE = ["ip_bridge", "ip_bridge_board", "ip_bridge_protocol", "mapped_device", "options", "file"]
PAGE = 4096


def compiled(compiler: str, program: Path, *sources: Path, extra: tuple[str, ...] = ()) -> Path:
    """Build a program, or with -c an object."""
    command = [compiler, "-std=c++20", *WARNINGS, *INCLUDES, *extra]
    if len(sources) == 1:
        subprocess.run([*command, *sources, "-o", program], check=True, timeout=200)
        return program
    folder = program.parent
    objects = [folder / f"{program.name}-{source.stem}.o" for source in sources]
    with ThreadPoolExecutor(2) as two:
        pairs = zip(sources, objects, strict=True)
        list(two.map(lambda pair: compiled(compiler, pair[1], pair[0], extra=("-c",)), pairs))
    subprocess.run([*command, *objects, "-o", program], check=True, timeout=200)
    return program


@pytest.fixture(scope="module")
def series(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("series")
    return compiled("g++", folder / "latenz-ip-series", DRIVER / "examples/series.cpp")


def run_series(series: Path, board: Path, instance, *what: object) -> dict:
    place = instance.place
    kind = "published" if place.published else "extended"
    command = [series, board, str(place.s00), str(place.s01), kind, *map(str, what)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.stderr == ""
    return json.loads(done.stdout)


def instances(board: Path) -> list:
    with SocketLink("simulated", str(board)) as link:
        return open_instances(link)


EVERYTHING = {
    "latency_width_g": 32,
    "num_width_g": 32,
    "counters_g": True,
    "watchdog_g": True,
    "time_stamp_g": True,
    "snapshot_g": True,
    "sums_g": True,
    "histogram_g": True,
    "histogram_bins_g": 64,
    "histogram_kind_g": "log-linear",
    "histogram_sub_bits_g": 3,
    "self_test_g": True,
}
WIDE = {"latency_width_g": 48, "depth_g": 16, "counters_g": True, "time_stamp_g": True}
WIDE |= {"freeze_g": True}
BOARDS = {"published": {}, "everything": EVERYTHING, "48 bits": WIDE}
SCENARIO = Scenario(period_cycles=400, answers=Answers(30, 20, 5, 90), seed=4)


@pytest.fixture(scope="module", params=BOARDS)
def board(request) -> Iterator[Path]:
    with simulated_board("latency_bench", BOARDS[request.param], SCENARIO) as path:
        yield path


def compare_with_python(told: dict, ip, link: SocketLink) -> None:
    """Read by Python what the driver has read, and compare."""
    ip.link = link
    depth = ip.configuration.depth
    stored = 0 if ip.has("freeze") else min(ip.register("num"), depth)
    samples = ip.read_samples(0, stored)
    assert [latency for latency, _ in told["samples"]] == samples.latency.tolist()
    starts = [start for _, start in told["samples"]]
    assert starts == (samples.start.tolist() if samples.start is not None else [0] * stored)
    statistics = ip.statistics()
    for field in ("num", "last", "max", "min", "alarm"):
        assert told[field] == getattr(statistics, field), field
    for field in ("sum", "orphans", "overlaps", "missed", "saturations", "timeouts"):
        assert told.get(field) == getattr(statistics, field), field
    assert told.get("squares") == statistics.sum_of_squares
    assert told["alarm_limit"] == ip.configuration.longest


def test_the_driver_reads_what_python_reads(series, board):
    """The publication's bench: both IPs, by the driver that firmware and Linux use."""
    for ip, cycles in zip(instances(board), (20_000, 24_000), strict=True):
        told = run_series(series, board, ip, "series", cycles)
        with SocketLink("simulated", str(board)) as link:
            compare_with_python(told, ip, link)
        latencies = [latency for latency, _ in told["samples"]]
        assert abs(told["num"] - cycles / SCENARIO.period_cycles) <= 2
        if not ip.has("freeze"):
            assert len(latencies) == told["num"]
            assert (min(latencies), max(latencies)) == (told["min"], told["max"])
        if ip.has("time_stamp"):
            starts = [start for _, start in told.get("frozen", told)["samples"]]
            assert set(np.diff(starts)) == {SCENARIO.period_cycles}
            assert told["now"] > starts[-1]
        if ip.has("sums"):
            assert told["sum"] == sum(latencies)
            assert told["squares"] == sum(latency**2 for latency in latencies)
        if ip.has("histogram"):
            compare_histogram(told, latencies)


@pytest.mark.parametrize("board", ["48 bits"], indirect=True)
def test_the_frozen_half_is_around_the_largest_latency(series, board):
    [_, ip] = instances(board)
    told = run_series(series, board, ip, "series", 40_000)
    latencies = [latency for latency, _ in told["frozen"]["samples"]]
    trigger = told["frozen"]["trigger"]
    assert latencies[trigger] == told["max"] == max(latencies)
    assert len(latencies) - trigger == 1 + 2  # and two after it
    assert len(latencies) <= ip.configuration.depth // 2


def compare_histogram(told: dict, latencies: list[int]) -> None:
    """Count the samples between the edges that the driver tells."""
    assert told["histogram_overflow"] + sum(count for _, count in told["histogram"]) == told["num"]
    for begin, count in told["histogram"]:
        # To the next number with its three bits behind the first.
        width = max(1, 1 << max(begin.bit_length() - 4, 0))
        assert count == sum(begin <= latency < begin + width for latency in latencies)


@pytest.mark.parametrize("board", ["everything"], indirect=True)
def test_the_self_test_by_the_driver(series, board):
    [ip, _] = instances(board)
    told = run_series(series, board, ip, "self-test", 7, 40)
    assert [latency for latency, _ in told["samples"]] == list(range(7, 47))
    assert (told["num"], told["min"], told["max"], told["missed"]) == (40, 7, 46, 0)
    with SocketLink("simulated", str(board)) as link:
        compare_with_python(told, ip, link)


@pytest.mark.parametrize("board", ["published"], indirect=True)
def test_the_driver_asks_a_published_ip_for_nothing_more(series, board):
    """Said to be one with additions it gets a bus error: so SLVERR is what a mistake looks like."""
    [ip, _] = instances(board)
    command = [series, board, str(ip.place.s00), str(ip.place.s01), "extended", "series", "9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 2
    assert done.stderr.endswith("at 32 with status 2\n")


# Which registers there are


PRESENCE = r"""
#include <cstdint>
#include <cstdio>
#include "latenz/ip/configuration.hpp"
int main() {
  unsigned width = 0, features = 0;
  while (std::scanf("%u %u", &width, &features) == 2) {
    const auto found = latenz::ip::Configuration::decode(0x4C5A0100, width | 9u << 8u, features, 1);
    for (std::uint32_t at = 0; at < 0x200; ++at) {
      std::printf("%d", found->has_register(at) ? found->is_writable(at) ? 2 : 1 : 0);
    }
    std::printf("\n");
  }
}
"""
FEATURES = (
    "counters_g",
    "watchdog_g",
    "time_stamp_g",
    "snapshot_g",
    "sums_g",
    "histogram_g",
    "stream_g",
    "freeze_g",
    "self_test_g",
)


def registers_of(compiler: RDLCompiler, width: int, features: int) -> str:
    """Return for each byte offset 0, 1 (read only) or 2, as the register source has it."""
    chosen = {name: bool(features >> bit & 1) for bit, name in enumerate(FEATURES)}
    chosen["extended_g"] = True
    top = compiler.elaborate("latencies_ip", parameters=chosen | {"latency_width_g": width}).top
    offsets = ["0"] * 0x200
    for register in top.children(unroll=True):
        assert isinstance(register, RegNode)
        writable = any(field.is_sw_writable for field in register.fields())
        offsets[register.address_offset] = "2" if writable else "1"
    return "".join(offsets)


def test_the_driver_knows_which_registers_exist(tmp_path):
    source = tmp_path / "presence.cpp"
    source.write_text(PRESENCE)
    program = compiled("g++", tmp_path / "presence", source)
    chosen = random.Random(6)
    cases = [(48 if bit % 2 else 16, 1 << bit) for bit in range(9)]
    cases += [(width, chosen.randrange(512)) for width in (16, 32, 48) for _ in range(2)]
    # The VHDL has sums only with snapshots.
    cases = [(w, f | 8 if f & 16 else f) for w, f in cases]
    asked = "".join(f"{width} {features}\n" for width, features in cases)
    done = subprocess.run(
        [program], input=asked, capture_output=True, text=True, check=True, timeout=100
    )
    compiler = RDLCompiler()
    compiler.compile_file(str(HDL / "registers/latencies_ip.rdl"))
    for (width, features), told in zip(cases, done.stdout.split(), strict=True):
        assert told == registers_of(compiler, width, features), (width, features)


# Without an operating system


@pytest.mark.parametrize(
    ("compiler", "options", "most_bytes"),
    [
        ("aarch64-linux-gnu-g++", ("-mcpu=cortex-a53", "-mgeneral-regs-only"), 5_000),
        ("arm-none-eabi-g++", ("-mcpu=cortex-r5", "-mfloat-abi=soft"), 5_000),
    ],
)
def test_every_function_is_freestanding_and_small(tmp_path, compiler, options, most_bytes):
    """No heap, no exceptions, no library: nothing is undefined but what a compiler may ask for."""
    made = tmp_path / "all.o"
    flags = ("-c", "-Os", "-ffreestanding", "-fno-exceptions", "-fno-rtti", *options)
    compiled(compiler, made, DRIVER / "tests/freestanding.cpp", extra=flags)
    prefix = compiler.removesuffix("g++")
    symbols = subprocess.run(
        [f"{prefix}nm", "-u", "--format=posix", made],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert {line.split()[0] for line in symbols.stdout.splitlines()} <= {"memcpy", "memset"}
    size = subprocess.run([f"{prefix}size", made], capture_output=True, text=True, check=True)
    text, data, bss = map(int, size.stdout.splitlines()[1].split()[:3])
    assert (data, bss) == (0, 0)
    assert 500 < text < most_bytes


# The bridge


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
            told = rf"latenz-ip-bridge: {windows} windows at (127\.0\.0\.1):(\d+)\n"
            match = re.fullmatch(told, line)
            assert match, line
            yield match[1], int(match[2])
            assert program.poll() is None
        finally:
            program.send_signal(signal.SIGTERM)


def test_python_reads_a_board_through_the_bridge(bridge, planted):
    with serving(bridge, planted) as address, SocketLink("board", address) as link:
        assert link.board.board == "Planted board"
        assert link.board.time_base == "silicon"
        assert link.board.clock_hz == 1_000_000
        [ip] = open_instances(link)
        assert (ip.name, ip.place.from_event, ip.place.to_event) == ("T1", "ps_pl_irq", "ack_in")
        assert ip.read_samples(0, 3).latency.tolist() == [11, 12, 13]
        ip.set_alarm(77)
        ip.stop()
        assert (planted.word(1, 0), planted.word(1, 1)) == (0, 77)
        assert link.read(link.board.generator, 4, 2) == [1, 16]
        with pytest.raises(NotAnswered) as failed:
            link.read(ip.place.s01, 0x14, 3)
        assert failed.value.address == 0x1C


def test_python_reads_a_ring_through_the_bridge(bridge, planted):
    planted.plant_ring()
    with (
        serving(bridge, planted, windows=5) as address,
        SocketLink("board", address) as link,
    ):
        ring = link.board.instances[0].ring
        assert (ring.base, ring.size_log2) == (0x8_7000_0000, 8)
        writer = RegisterRingWriter(Window(link, ring.registers, PAGE))
        elsewhere = ring.base + PAGE
        with pytest.raises(NotAnswered):
            writer.begin(elsewhere, ring.size_log2, link.pause)
        planted.put(2, 0x1C, struct.pack("<I", 2))  # idle: a file has no bits that clear themselves
        consumed = writer.begin(ring.base, ring.size_log2, link.pause)
        assert consumed == 5
        assert [planted.word(2, i) for i in range(6)] == [1, 0x7000_0000, 8, 8, 5, 5]
        reader = RingReader(Window(link, ring.memory, PAGE), writer, consumed)
        assert len(reader.read()) == 0
        records = b"".join(struct.pack("<QQ", 100 * i, i << 57 | 7 + i) for i in range(3))
        planted.put(3, 5 * 16, records)
        planted.put(2, 0x10, struct.pack("<I", 8))
        found = reader.read()
        assert found.start.tolist() == [0, 100, 200]
        assert (found.latency.tolist(), found.sequence.tolist()) == ([7, 8, 9], [0, 1, 2])
        assert planted.word(2, 5) == 8


def test_the_driver_reads_a_board_through_the_bridge(bridge, planted, series):
    with serving(bridge, planted) as (host, port):
        command = [series, f"{host}:{port}", "0", "1", "published", "series", "1000"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    told = json.loads(done.stdout)
    assert told["samples"] == [[11, 0], [12, 0], [13, 0]]
    assert (told["num"], told["last"], told["max"], told["min"]) == (3, 9, 20, 5)


def test_a_word_behind_a_devices_end_is_a_bus_error_and_the_next_is_read(bridge, planted):
    planted.make_samples_longer_than_they_are()
    with serving(bridge, planted) as address, SocketLink("board", address) as link:
        for _ in range(3):
            with pytest.raises(NotAnswered):
                link.read(0, 2 * PAGE)
            assert link.read(0, 4) == [12]


def exchange(connection: socket.socket, request: bytes, size: int) -> bytes:
    connection.sendall(request)
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            break
        content += part
    return content


READ_TWO = struct.pack("<BBHI", 1, 0, 2, 0)
TWO_WORDS = struct.pack("<BBHIII", 0, 0, 2, 0, 11, 12)


def test_every_client_finds_it_as_the_first_did(bridge, planted):
    """Half frames, rubbish, an unknown operation, leaving while it waits: then the next client."""
    chosen = random.Random(8)
    rubbish = [chosen.randbytes(chosen.randrange(1, 60)) for _ in range(30)]
    # Not `wait`: a minute may be asked for. It gets its own turn below.
    rubbish = [part if part[0] != 3 else b"\x09" + part[1:] for part in rubbish]
    with serving(bridge, planted) as address:
        for part in [READ_TWO[:5], b"", b"\x09\x00\x00\x00\x00\x00\x00\x00", *rubbish]:
            with socket.create_connection(address, timeout=100) as connection:
                connection.sendall(part)
            with socket.create_connection(address, timeout=100) as connection:
                assert exchange(connection, READ_TWO, 16) == TWO_WORDS
        with socket.create_connection(address, timeout=100) as connection:
            connection.sendall(struct.pack("<BBHI", 3, 0, 0, 0xFFFF_FFFF))
        with socket.create_connection(address, timeout=100) as connection:
            assert exchange(connection, READ_TWO, 16) == TWO_WORDS
            answer = exchange(connection, struct.pack("<BBHI", 77, 0, 0, 0), 9)
            assert answer == struct.pack("<BBHI", 255, 0, 0, 0)  # and then the end
    assert planted.word(0, 0) == 11


def test_it_speaks_over_standard_input_and_output(bridge, planted):
    """As `ssh board latenz-ip-bridge --stdio` would; it ends with its input."""
    wait = struct.pack("<BBHI", 3, 0, 0, 10)
    done = subprocess.run(
        [bridge, "--stdio", f"--root={planted.root}"],
        input=READ_TWO + wait + READ_TWO,
        capture_output=True,
        check=True,
        timeout=100,
    )
    assert done.stdout == TWO_WORDS + struct.pack("<BBHI", 0, 0, 0, 0) + TWO_WORDS
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port=70000"], "--port: "),
        (["--address=localhost"], "--address: 'localhost' is no IPv4 address such as 192.168.1.10"),
        (["--address=203.0.113.1"], "cannot listen there: "),
        (["--listen=x"], "--listen: no such option; --help lists them all"),
        (["--root=/nonexistent"], "no device named latencies-ip-NAME"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(bridge, planted, options, said):
    command = [bridge, *([] if "--root" in options[0] else [f"--root={planted.root}"]), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_bridge_for_boards_runs_alone(tmp_path, planted):
    """Built as for a board, without its libraries, and run by an emulator of its processor."""
    program = compiled(
        "aarch64-linux-gnu-g++",
        tmp_path / "bridge-arm64",
        *[ROOT / f"probes/src/{name}.cpp" for name in BRIDGE],
        extra=("-static",),
    )
    planted.make_samples_longer_than_they_are()
    bus_error = struct.pack("<BBHI", 1, 0, 2, 2 * PAGE - 4)
    done = subprocess.run(
        ["qemu-aarch64", program, "--stdio", f"--root={planted.root}"],
        input=READ_TWO + bus_error + READ_TWO,
        capture_output=True,
        check=True,
        timeout=200,
        env={**os.environ, "QEMU_LD_PREFIX": "/nonexistent"},
    )
    assert done.stdout == TWO_WORDS + struct.pack("<BBHII", 2, 0, 1, 1, 0) + TWO_WORDS


def test_offsets_of_the_driver_are_those_of_the_bench():
    """The generated header has every register once, in order."""
    text = (DRIVER / "include/latenz/ip/registers/latencies_ip.hpp").read_text()
    offsets = [int(value, 16) for value in re.findall(r"_offset = (0x\w+);", text)]
    assert len(offsets) > 50
    assert all(before < after for before, after in pairwise(offsets))
