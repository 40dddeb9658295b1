"""The C++ driver against the simulated IP.

What the driver reads of the design that GHDL runs must be what Python reads there, by other code
and after it.
"""

import json
import random
import re
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from planted_board import DRIVER, HDL, compiled, series
from systemrdl import RDLCompiler
from systemrdl.node import RegNode

from latenz.ip.instance import open_instances
from latenz.ip.link import SocketLink
from latenz.ip.simulated import Answers, Scenario, simulated_board

pytestmark = pytest.mark.proofs

__all__ = ["series"]


def run_series(series: Path, board: Path, instance, *what: object) -> dict:
    place = instance.place
    kind = "published" if place.published else "extended"
    command = [series, board, str(place.s00), str(place.s01), kind, *map(str, what)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
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
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
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
        [program], input=asked, capture_output=True, text=True, check=True, timeout=600
    )
    compiler = RDLCompiler()
    compiler.compile_file(str(HDL / "registers/latencies_ip.rdl"))
    for (width, features), told in zip(cases, done.stdout.split(), strict=True):
        assert told == registers_of(compiler, width, features), (width, features)


# Without an operating system


@pytest.mark.parametrize(
    ("compiler", "options", "most_bytes"),
    [
        ("aarch64-linux-gnu-g++", ("-mcpu=cortex-a53", "-mgeneral-regs-only"), 5_500),
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


def test_offsets_of_the_driver_are_those_of_the_bench():
    """The generated header has every register once, in order."""
    text = (DRIVER / "include/latenz/ip/registers/latencies_ip.hpp").read_text()
    offsets = [int(value, 16) for value in re.findall(r"_offset = (0x\w+);", text)]
    assert len(offsets) > 50
    assert all(before < after for before, after in pairwise(offsets))
