// SPDX-License-Identifier: Apache-2.0
// Configurations that cannot be carried out are refused before anything starts.
#include "configuration_check.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
#include <span>
#include <string>

#include "latenz/crc32.hpp"

namespace latenz::hypervisor {
namespace {

constexpr std::uint64_t mebibyte = 0x10'0000;
constexpr std::uint32_t cpus = 4;

void seal(Configuration& configuration) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&configuration);
  Crc32 sum;
  for (std::size_t i = offsetof(Configuration, crc) + 4; i < sizeof configuration; ++i) {
    sum.add(bytes[i]);
  }
  configuration.crc = sum.value();
}

/// Two partitions that take turns, the first with a source.
Configuration fine() {
  Configuration made{};
  made.magic = Configuration::expected_magic;
  made.version = Configuration::current_version;
  made.size = sizeof made;
  made.mode = Mode::carry;
  made.partitions = made.slots = 2;
  made.sources = 1;
  made.memory_end = 0x8000'0000;
  made.arrivals = 0x4060'0000;
  made.trace = 0x4080'0000;
  made.trace_records = 1000;
  for (std::uint32_t i = 0; i < 2; ++i) {
    PartitionEntry& each = made.partition[i];
    each.memory = 0x5000'0000 + (4 * mebibyte * i);
    each.memory_guest = 0x4000'0000;
    each.memory_size = 2 * mebibyte;
    each.images[0] = {
        .stored = 0x4400'0000 + (2 * mebibyte * i), .target = 0x4000'0000, .size = 128};
    made.slot[i] = {.partition = i, .reserved = 0, .length_ns = 1'000'000};
  }
  made.source[0].interrupt = 64;
  made.source[0].bottom_ns = 1000;
  return made;
}

struct Wrong {
  const char* problem;
  std::function<void(Configuration&)> how;
};

std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.problem; }

class WrongConfiguration : public testing::TestWithParam<Wrong> {};

TEST_P(WrongConfiguration, IsRefusedWithItsReason) {
  Configuration configuration = fine();
  GetParam().how(configuration);
  seal(configuration);
  EXPECT_EQ(problem_of(configuration, cpus), GetParam().problem);
}

INSTANTIATE_TEST_SUITE_P(
    Every, WrongConfiguration,
    testing::Values(
        Wrong{"block not found", [](auto& made) { made.magic = 0; }},
        Wrong{"block of another version", [](auto& made) { ++made.version; }},
        Wrong{"block of another version", [](auto& made) { made.size -= 8; }},
        Wrong{"counts out of range", [](auto& made) { made.partitions = 0; }},
        Wrong{"counts out of range", [](auto& made) { made.partitions = 9; }},
        Wrong{"counts out of range", [](auto& made) { made.slots = 65; }},
        Wrong{"counts out of range", [](auto& made) { made.sources = UINT32_MAX; }},
        Wrong{"counts out of range", [](auto& made) { made.mappings = 33; }},
        Wrong{"counts out of range", [](auto& made) { made.interrupts = 33; }},
        Wrong{"mode not 0 to 2", [](auto& made) { std::memset(&made.mode, 3, 1); }},
        Wrong{"partition: no such CPU", [](auto& made) { made.partition[1].cpu = cpus; }},
        Wrong{"partition: no memory", [](auto& made) { made.partition[1].memory_size = 0; }},
        Wrong{"partition: memory is no multiple of 2 MiB",
              [](auto& made) { made.partition[0].memory += 4096; }},
        Wrong{"partition: memory is not the board's",
              [](auto& made) { made.partition[0].memory = 0x4020'0000; }},
        Wrong{"partition: memory is not the board's",
              [](auto& made) { made.partition[0].memory_size = UINT64_MAX - 0x1F'FFFF; }},
        Wrong{"partition: guest address too high",
              [](auto& made) { made.partition[0].memory_guest = 1ULL << 35U; }},
        Wrong{"image: not aligned", [](auto& made) { made.partition[0].images[0].size = 100; }},
        Wrong{"image: not in memory",
              [](auto& made) { made.partition[0].images[0].stored = 1ULL << 40U; }},
        Wrong{"image: not in the partition's memory",
              [](auto& made) { made.partition[0].images[0].target = 0x4020'0000; }},
        Wrong{"image: not in the partition's memory",
              [](auto& made) { made.partition[0].images[0].target = 0x3FFF'0000; }},
        Wrong{"slot: no such partition", [](auto& made) { made.slot[1].partition = 2; }},
        Wrong{"slot: not of the first CPU", [](auto& made) { made.partition[1].cpu = 1; }},
        Wrong{"partition: its CPU is another's",
              [](auto& made) {
                made.partitions = 3;
                made.partition[2] = made.partition[0];
                made.partition[2].memory = 0x6000'0000;
                made.partition[1].cpu = made.partition[2].cpu = 1;
              }},
        Wrong{"partition: its CPU is another's", [](auto& made) { made.slots = made.sources = 0; }},
        Wrong{"slot: length", [](auto& made) { made.slot[0].length_ns = 0; }},
        Wrong{"slot: length", [](auto& made) { made.slot[1].length_ns = INT64_MAX; }},
        Wrong{"source: there are no slots",
              [](auto& made) {
                made.slots = 0;
                made.partition[1].cpu = 1;
              }},
        Wrong{"source: no such partition", [](auto& made) { made.source[0].partition = 2; }},
        Wrong{"source: interrupt not 32 to 127", [](auto& made) { made.source[0].interrupt = 27; }},
        Wrong{"source: interrupt not 32 to 127",
              [](auto& made) { made.source[0].interrupt = 128; }},
        Wrong{"source: its device's interrupt has another owner",
              [](auto& made) {
                made.interrupts = 1;
                made.interrupt[0] = {0, made.source[0].interrupt};
                made.source[0].flags |= SourceEntry::is_device;
              }},
        Wrong{"source: its device's interrupt has another owner",
              [](auto& made) {
                made.source[0].flags |= SourceEntry::is_device;
                made.source[1] = made.source[0];
                made.sources = 2;
              }},
        Wrong{"source: too many distances", [](auto& made) { made.source[0].distances = 65; }},
        Wrong{"source: distances not there",
              [](auto& made) { made.source[0].first_distance = 513; }},
        Wrong{"source: no bottom handler", [](auto& made) { made.source[0].bottom_ns = 0; }},
        Wrong{"interrupt: no such partition",
              [](auto& made) {
                made.interrupts = 1;
                made.interrupt[0] = {2, 40};
              }},
        Wrong{"interrupt: not 32 to 127",
              [](auto& made) {
                made.interrupts = 1;
                made.interrupt[0] = {0, 128};
              }},
        Wrong{"mapping: no such partition",
              [](auto& made) {
                made.mappings = 1;
                made.mapping[0] = {2, 0, 0x1000, 0x6000'0000, 0x1000};
              }},
        Wrong{"mapping: not whole pages",
              [](auto& made) {
                made.mappings = 1;
                made.mapping[0] = {0, 0, 0x1000, 0x6000'0100, 0x1000};
              }},
        Wrong{"mapping: not in memory",
              [](auto& made) {
                made.mappings = 1;
                made.mapping[0] = {0, 0, 0x1000, 0x4020'0000, 0x1000};
              }},
        Wrong{"mapping: of a device, but in memory",
              [](auto& made) {
                made.mappings = 1;
                made.mapping[0] = {0, MappingEntry::device, 0x1000, 0x4020'0000, 0x1000};
              }},
        Wrong{"mapping: of a device, but in memory",
              [](auto& made) {
                made.mappings = 1;
                made.mapping[0] = {0, MappingEntry::device, 0x1000, 0x3FFF'F000, 0x2000};
              }},
        Wrong{"arrivals: not in memory", [](auto& made) { made.arrival_count = UINT64_MAX; }},
        Wrong{"arrivals: not in memory", [](auto& made) { made.arrivals = 0x4020'0000; }},
        Wrong{"trace: not in memory", [](auto& made) { made.trace_records = 1ULL << 33U; }},
        Wrong{"memory of two overlaps",
              [](auto& made) { made.partition[1].memory = made.partition[0].memory; }},
        Wrong{"memory of two overlaps", [](auto& made) { made.trace = 0x5000'0000; }},
        Wrong{"memory of two overlaps",
              [](auto& made) { made.partition[0].images[0].stored = 0x5040'0000; }}));

TEST(ConfigurationCheck, FindsNothingWrongWithAFineOne) {
  Configuration configuration = fine();
  seal(configuration);
  EXPECT_EQ(problem_of(configuration, cpus), "");
}

TEST(ConfigurationCheck, NoticesEveryChangedByte) {
  Configuration configuration = fine();
  seal(configuration);
  auto* bytes = reinterpret_cast<std::uint8_t*>(&configuration);
  for (std::size_t i = 0; i < sizeof configuration; i += 7) {
    bytes[i] ^= 0x10U;
    EXPECT_NE(problem_of(configuration, cpus), "") << i;
    bytes[i] ^= 0x10U;
  }
}

TEST(ConfigurationCheck, LooksThroughTheArrivals) {
  Configuration configuration = fine();
  ArrivalEntry entries[3] = {{5, 0, 0}, {5, 0, 0}, {7, 0, 0}};
  configuration.arrivals = reinterpret_cast<std::uint64_t>(entries);
  configuration.arrival_count = 3;
  EXPECT_EQ(problem_of_arrivals(configuration), "");
  entries[2].source = 1;
  EXPECT_EQ(problem_of_arrivals(configuration), "arrival: no such source");
  entries[2] = {4, 0, 0};
  EXPECT_EQ(problem_of_arrivals(configuration), "arrivals: not sorted");
  entries[2] = {1ULL << 63U, 0, 0};
  EXPECT_EQ(problem_of_arrivals(configuration), "arrival: too late");
}

}  // namespace
}  // namespace latenz::hypervisor
