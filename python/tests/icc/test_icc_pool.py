"""A pool from its description: C and C++ as both ends, and looked into from outside."""

import subprocess
from pathlib import Path

import pytest

from latenz.icc import Kind, find_channels, look, newest, open_region

ROOT = Path(__file__).parents[3]
INCLUDE = f"-I{ROOT / 'icc/include'}"
STRICT = ("-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
DESCRIPTION = """\
[types.Echo]
distance = "float32"
number = "uint16"

[channels.scans]
kind = "pool"
payload = "Echo"
longest = 100
slots = 9
"""
PROGRAM = """\
#include <cstdio>
#include <vector>
#include "latenz/icc.h"
#include "robot.hpp"
namespace C {
#include "robot.h"
}
using Scans = robot::scans<>;
static_assert(Scans::bytes == C::scans_bytes);
alignas(64) static std::byte memory[Scans::bytes];
int main(int, char** argv) {
  latenz_icc_problem problem;
  C::scans_writer writer;
  if (!C::scans_writer_create(&writer, memory, sizeof memory, "scans", &problem)) return 2;
  auto reader = *Scans::Reader::attach(memory, sizeof memory);
  unsigned sum = 0;
  for (std::uint32_t n = 1; n <= 1000; ++n) {
    const std::uint32_t items = 1 + n % 100;
    C::Echo* place = nullptr;
    if (C::scans_writer_try_loan(&writer, items, &place) != LATENZ_ICC_OK) return 3;
    for (std::uint32_t i = 0; i < items; ++i) place[i] = {0.5F, static_cast<std::uint16_t>(n + i)};
    C::scans_writer_publish(&writer, items);
    std::span<const robot::Echo> message;
    if (reader.try_take(message) != latenz::icc::Result::ok || message.size() != items) return 4;
    for (std::uint32_t i = 0; i < items; ++i) {
      if (message[i].number != n + i) return 5;
      ++sum;
    }
    if (n < 1000 && reader.release(message) != latenz::icc::Result::ok) return 6;
  }
  // and back: C++ writes, C reads what its predecessor has left, and what is new
  auto again = *Scans::Writer::create(memory, sizeof memory, "scans");
  C::scans_reader other;
  if (!C::scans_reader_attach(&other, memory, sizeof memory, &problem)) return 7;
  if (other.state.endpoint.dropped != 1) return 8;
  if (again.try_write(std::vector<robot::Echo>(7, {1.5F, 42})) != latenz::icc::Result::ok) return 9;
  C::Echo got[100];
  std::uint32_t items = 0;
  if (C::scans_reader_try_read(&other, got, &items) != LATENZ_ICC_OK || items != 7) return 10;
  std::printf("%u items, the last %u\\n", sum, got[6].number);
  std::FILE* file = std::fopen(argv[1], "wb");
  return std::fwrite(memory, sizeof memory, 1, file) == 1 && std::fclose(file) == 0 ? 0 : 11;
}
"""


@pytest.fixture(scope="module")
def folder(run_latenz, tmp_path_factory):
    made = tmp_path_factory.mktemp("pool")
    (made / "robot.toml").write_text(DESCRIPTION)
    done = run_latenz("icc", "generate", made / "robot.toml", "-o", made)
    assert done.returncode == 0, done.stderr
    return made


def compiled(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_c_and_cpp_are_ends_of_one_pool_and_an_onlooker_reads_it(folder):
    (folder / "both.cpp").write_text(PROGRAM)
    (folder / "one.c").write_text('#include "robot.h"\nint main(void) { return 0; }\n')
    compiled("gcc", "-std=c99", *STRICT, INCLUDE, "-fsyntax-only", folder / "one.c")
    compiled("g++", "-std=c++20", INCLUDE, folder / "both.cpp", "-o", folder / "both")
    done = subprocess.run(
        [folder / "both", folder / "region"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "50500 items, the last 42\n")
    with open_region(str(folder / "region")) as region:
        found = find_channels(region)
        assert not found.unreadable
        [channel] = found.channels
        assert (channel.kind, channel.roles) == (Kind.POOL, ("writer", "reader"))
        assert channel.pool_classes == ((64, 9), (256, 2), (832, 2))
        value = newest(region, channel)
        assert value is not None
        assert (value.number, value.is_whole) == (1001, True)
        assert dict(value.fields) == {"distance": 1.5, "number": 42}
        assert look(region, channel).messages == 1001


@pytest.mark.parametrize(
    ("was", "is_now", "told"),
    [
        ("longest = 100\n", "", "a pool needs longest"),
        ("slots = 9\n", "", "a pool needs slots"),
        ("longest = 100", "longest = 1000000000", "the longest message has 8000000000 bytes"),
        ("slots = 9", "slots = 65537", "65537 slots"),
        ('kind = "pool"', 'kind = "ring"', "a ring has no use for longest"),
        ("slots = 9", "slots = 9\nreaders = 2", "a pool has one reader"),
    ],
)
def test_what_is_no_pool_is_refused_by_a_line(run_latenz, tmp_path, was, is_now, told):
    (tmp_path / "robot.toml").write_text(DESCRIPTION.replace(was, is_now))
    done = run_latenz("icc", "generate", tmp_path / "robot.toml", "-o", tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
