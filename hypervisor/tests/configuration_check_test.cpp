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

#include "boards/raspi4b.hpp"
#include "boards/virt.hpp"
#include "boards/zcu102.hpp"
#include "latenz/crc32.hpp"

namespace latenz::hypervisor {
namespace {

constexpr std::uint64_t mebibyte = 0x10'0000;
constexpr BoardRules board = {.cpus = 4, .not_for_guests = zcu102_not_for_guests};

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
  made.cpu[0].trace_records = 1000;
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
  EXPECT_EQ(problem_of(configuration, board), GetParam().problem);
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
        Wrong{"partition: no such CPU", [](auto& made) { made.partition[1].cpu = board.cpus; }},
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
        Wrong{"partition: reaction not 0 to 2",
              [](auto& made) { std::memset(&made.partition[1].on_fault, 3, 1); }},
        Wrong{"partition: reaction not 0 to 2",
              [](auto& made) { std::memset(&made.partition[1].on_watchdog, 3, 1); }},
        Wrong{"partition: time too long",
              [](auto& made) { made.partition[1].watchdog_ns = 1ULL << 63U; }},
        Wrong{"partition: time too long",
              [](auto& made) { made.partition[1].restart_window_ns = 1ULL << 63U; }},
        Wrong{"partition: more restarts than are timed",
              [](auto& made) {
                made.partition[1].restart_window_ns = 1;
                made.partition[1].restarts = 17;
              }},
        Wrong{"partition: a watchdog needs slots",
              [](auto& made) {
                made.slots = 1;
                made.partition[1].watchdog_ns = 1;
                made.partition[1].cpu = 1;
              }},
        Wrong{"slot: no such partition", [](auto& made) { made.slot[1].partition = 2; }},
        Wrong{"slot: no such partition", [](auto& made) { made.slot[1].partition = UINT32_MAX; }},
        Wrong{"partition: its CPU is another's",
              [](auto& made) {
                made.slots = 1;
                made.partitions = 3;
                made.partition[2] = made.partition[0];
                made.partition[2].memory = 0x6000'0000;
                made.partition[1].cpu = made.partition[2].cpu = 1;
              }},
        Wrong{"partition: its CPU is another's", [](auto& made) { made.slots = made.sources = 0; }},
        Wrong{"slot: length", [](auto& made) { made.slot[0].length_ns = 0; }},
        Wrong{"slot: length", [](auto& made) { made.slot[1].length_ns = INT64_MAX; }},
        Wrong{"source: its CPU has no slots",
              [](auto& made) {
                made.slots = 0;
                made.partition[1].cpu = 1;
              }},
        Wrong{"source: its CPU has no slots",
              [](auto& made) {
                made.slots = 1;
                made.partition[1].cpu = 1;
                made.source[0].partition = 1;
              }},
        Wrong{"source: no such partition", [](auto& made) { made.source[0].partition = 2; }},
        Wrong{"source: interrupt not 32 to 1019",
              [](auto& made) { made.source[0].interrupt = 27; }},
        Wrong{"source: interrupt not 32 to 1019",
              [](auto& made) { made.source[0].interrupt = 1020; }},
        Wrong{"source: its device's interrupt has another owner",
              [](auto& made) {
                made.interrupts = 1;
                made.interrupt[0] = {0, static_cast<std::uint16_t>(made.source[0].interrupt), 0};
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
              [](auto& made) { made.source[0].first_distance = 1025; }},
        Wrong{"source: too many distances", [](auto& made) { made.source[0].learned = 65; }},
        Wrong{"source: too many distances",
              [](auto& made) { made.source[0].limit_distances = 65; }},
        Wrong{"source: distances not there",
              [](auto& made) {
                made.source[0].limit_distances = 2;
                made.source[0].first_limit_distance = 1023;
              }},
        Wrong{"source: limit too long",
              [](auto& made) { made.source[0].limit_period_ns = 1ULL << 63U; }},
        Wrong{"source: limit too long",
              [](auto& made) {
                made.source[0].limit_period_ns = 1;
                made.source[0].limit_jitter_ns = UINT64_MAX;
              }},
        Wrong{"source: limit has jitter, but no period",
              [](auto& made) { made.source[0].limit_jitter_ns = 1; }},
        Wrong{"source: no bottom handler", [](auto& made) { made.source[0].bottom_ns = 0; }},
        Wrong{"interrupt: no such partition",
              [](auto& made) {
                made.interrupts = 1;
                made.interrupt[0] = {2, 40, 0};
              }},
        Wrong{"interrupt: not 32 to 1019",
              [](auto& made) {
                made.interrupts = 1;
                made.interrupt[0] = {0, 1020, 0};
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
        Wrong{"trace: not in memory", [](auto& made) { made.cpu[0].trace_records = 1ULL << 33U; }},
        Wrong{"trace: not in memory",
              [](auto& made) {
                made.cpu[6].trace_records = UINT64_MAX;  // their sum is small
                made.cpu[7].trace_records = 2;
              }},
        Wrong{"trace: not in memory",
              [](auto& made) {
                for (auto& each : made.cpu) each.trace_records = 1ULL << 23U;
              }},
        Wrong{"memory of two overlaps",
              [](auto& made) { made.partition[1].memory = made.partition[0].memory; }},
        Wrong{"memory of two overlaps", [](auto& made) { made.trace = 0x5000'0000; }},
        Wrong{"memory of two overlaps",
              [](auto& made) { made.partition[0].images[0].stored = 0x5040'0000; }}));

TEST(ConfigurationCheck, FindsNothingWrongWithAFineOne) {
  Configuration configuration = fine();
  seal(configuration);
  EXPECT_EQ(problem_of(configuration, board), "");
}

/// A page, or more, of normal memory or of a device for the first partition.
std::string_view problem_of_mapping(std::uint32_t flags, std::uint64_t physical,
                                    std::uint64_t size = 0x1000, const BoardRules& rules = board) {
  Configuration made = fine();
  made.arrival_count = 4;
  made.mappings = 1;
  made.mapping[0] = {0, flags, 0x6000'0000, physical, size};
  seal(made);
  return problem_of(made, rules);
}

constexpr std::uint32_t memory = MappingEntry::writable;
constexpr std::uint32_t device = MappingEntry::writable | MappingEntry::device;

TEST(Mappings, OfFreeMemoryAndHarmlessDevicesAreTaken) {
  EXPECT_EQ(problem_of_mapping(memory, 0x6000'0000), "");
  EXPECT_EQ(problem_of_mapping(device, 0xFF01'0000), "") << "UART1";
  EXPECT_EQ(problem_of_mapping(device, 0xFF11'0000, 0x4'0000), "") << "all timers";
  EXPECT_EQ(problem_of_mapping(device, 0xA000'0000), "") << "in the logic";
}

TEST(Mappings, OfWhatIsAnothersAreRefused) {
  const char* const reason = "mapping: of what is another's";
  EXPECT_EQ(problem_of_mapping(memory, 0x5040'0000), reason) << "another partition's memory";
  EXPECT_EQ(problem_of_mapping(memory, 0x5000'0000), reason) << "its own, a second time";
  EXPECT_EQ(problem_of_mapping(memory, 0x4060'0000), reason) << "the arrivals";
  EXPECT_EQ(problem_of_mapping(memory, 0x4080'0000), reason) << "the trace";
  EXPECT_EQ(problem_of_mapping(memory, Configuration::address), reason);
  EXPECT_EQ(problem_of_mapping(memory, 0x4400'0000), reason) << "an image";
  EXPECT_EQ(problem_of_mapping(memory, 0x4400'1000), reason)
      << "behind an image, but mapped with it";
}

TEST(Mappings, OfWhatReachesBeyondTranslationAreRefused) {
  const char* const reason = "mapping: not for guests of this board";
  for (const std::uint64_t physical : {0xF901'0000,     // GICD
                                       0xF902'0000,     // GICC, its first alias
                                       0xF902'F000,     // GICC
                                       0xF904'0000,     // GICH
                                       0xFD07'0000,     // memory controller
                                       0xFD1A'0000,     // CRF
                                       0xFD50'0000,     // GDMA
                                       0xFD5D'0000,     // XMPU
                                       0xFD61'0000,     // FPD_SLCR
                                       0xFD80'0000,     // SMMU
                                       0xFE20'0000,     // USB
                                       0xFF00'0000,     // the console
                                       0xFF0B'0000,     // GEM
                                       0xFF18'0000,     // IOU_SLCR
                                       0xFF33'0000,     // IPI
                                       0xFF5E'0000,     // CRL
                                       0xFF9A'0000,     // RPU
                                       0xFFA8'0000,     // ADMA
                                       0xFFD8'0000}) {  // PMU
    EXPECT_EQ(problem_of_mapping(device, physical), reason) << std::hex << physical;
  }
  EXPECT_EQ(problem_of_mapping(device, 0xFF01'0000, 0xC'0000), reason) << "reaches into GEM0";
  const BoardRules virt = {.cpus = 4, .not_for_guests = virt_not_for_guests};
  EXPECT_EQ(problem_of_mapping(device, 0x0803'0000, 0x1000, virt), reason);
  EXPECT_EQ(problem_of_mapping(device, 0x0A00'0000, 0x1000, virt), reason);
  EXPECT_EQ(problem_of_mapping(device, 0x0901'0000, 0x1000, virt), "") << "the clock";
}

TEST(Mappings, OfARaspberryPisPeripheralsThoseWithoutMastersAreTaken) {
  const char* const reason = "mapping: not for guests of this board";
  const BoardRules raspi4b = {.cpus = 4, .not_for_guests = raspi4b_not_for_guests};
  for (const std::uint64_t physical : {0x0000'0000U,    // spin table
                                       0x3C00'0000U,    // VideoCore's memory
                                       0xFD50'0000,     // PCIe
                                       0xFD58'0000,     // Ethernet
                                       0xFE00'7000,     // DMA
                                       0xFE00'B000,     // mailboxes
                                       0xFE10'0000,     // watchdog
                                       0xFE10'1000,     // clocks
                                       0xFE20'1000,     // UARTs, the console's among them
                                       0xFE34'0000,     // SD
                                       0xFE98'0000,     // USB
                                       0xFEC0'0000,     // GPU
                                       0xFF84'1000}) {  // GICD
    EXPECT_EQ(problem_of_mapping(device, physical, 0x1000, raspi4b), reason)
        << std::hex << physical;
  }
  EXPECT_EQ(problem_of_mapping(device, 0x6'0000'0000, 0x1000, raspi4b), reason) << "behind PCIe";
  for (const std::uint64_t physical : {0xFE00'3000,     // system timer
                                       0xFE20'0000,     // GPIO
                                       0xFE20'4000,     // SPI
                                       0xFE20'C000,     // PWM
                                       0xFE21'5000,     // mini UART
                                       0xFE80'4000}) {  // I2C
    EXPECT_EQ(problem_of_mapping(device, physical, 0x1000, raspi4b), "") << std::hex << physical;
  }
}

TEST(Mappings, DevicesHaveOneOwnerMemoryMayBeShared) {
  Configuration made = fine();
  made.mappings = 2;
  for (std::uint32_t i = 0; i < 2; ++i) made.mapping[i] = {i, memory, 0x1000, 0x6000'0000, 0x1000};
  seal(made);
  EXPECT_EQ(problem_of(made, board), "");
  for (std::uint32_t i = 0; i < 2; ++i) made.mapping[i] = {i, device, 0x1000, 0xFF11'0000, 0x1000};
  seal(made);
  EXPECT_EQ(problem_of(made, board), "mapping: of what is another's");
  made.mapping[1].partition = 0;
  seal(made);
  EXPECT_EQ(problem_of(made, board), "");
  made.mapping[1] = {1, memory, 0x1000, 0x6000'0000, 0x1000};
  made.mapping[0] = {0, device, 0x1000, 0x8000'0000, 0x1000};
  seal(made);
  EXPECT_EQ(problem_of(made, board), "");
}

TEST(Mappings, TheLongestListsHaveRoom) {
  Configuration made = fine();
  made.partitions = Configuration::most_partitions;
  for (std::uint32_t i = 0; i < made.partitions; ++i) {
    made.partition[i] = made.partition[0];
    made.partition[i].memory = 0x5000'0000 + (4 * mebibyte * i);
    made.partition[i].images.fill(made.partition[0].images[0]);
  }
  made.mappings = Configuration::most_mappings;
  for (auto& each : made.mapping) each = {0, memory, 0x1000, 0x6000'0000, 0x1000};
  seal(made);
  EXPECT_EQ(problem_of(made, board), "");
  EXPECT_LE(std::size(zcu102_not_for_guests), BoardRules::most);
  EXPECT_LE(std::size(virt_not_for_guests), BoardRules::most);
}

TEST(Channels, GoFromOnePartitionToAnotherWhoseSourceTheDoorbellIs) {
  const auto told = [](const ChannelEntry& wanted, std::uint32_t flags = 0) {
    Configuration made = fine();
    made.channels = 1;
    made.channel[0] = wanted;
    made.source[0].flags = flags;
    seal(made);
    return std::string(problem_of(made, board));
  };
  const ChannelEntry sound = {.name = {}, .sender = 1, .source = 0, .guest = 0, .size = 0x1000};
  const auto with = [&](auto change) {
    ChannelEntry made = sound;
    change(made);
    return made;
  };
  EXPECT_EQ(told(sound), "");
  EXPECT_EQ(told(with([](auto& each) { each.sender = 2; })),
            "channel: no such partition or source");
  EXPECT_EQ(told(with([](auto& each) { each.source = 1; })),
            "channel: no such partition or source");
  EXPECT_EQ(told(with([](auto& each) { each.sender = 0; })), "channel: its sender is the receiver");
  EXPECT_EQ(told(sound, SourceEntry::is_device), "channel: its source is a device's");
}

TEST(Channels, HaveADoorbellOfTheirOwnAndStayOnOneCpu) {
  Configuration made = fine();
  made.channels = 2;
  made.channel[0] =
      made.channel[1] = {.name = {}, .sender = 1, .source = 0, .guest = 0, .size = 0x1000};
  seal(made);
  EXPECT_EQ(problem_of(made, board), "channel: its source is another's");
  made.channels = 1;
  for (const std::uint32_t slots : {1U, 2U}) {  // the sender has its CPU for itself, or by slots
    made.slots = slots;
    made.partition[1].cpu = 1;
    seal(made);
    EXPECT_EQ(problem_of(made, board), "channel: from one CPU to another");
  }
  made.partition[0].cpu = 1;
  seal(made);
  EXPECT_EQ(problem_of(made, board), "");
  made.channels = Configuration::most_channels + 1;
  seal(made);
  EXPECT_EQ(problem_of(made, board), "counts out of range");
}

TEST(ConfigurationCheck, TakesSlotsOfEachCpu) {
  Configuration made = fine();
  made.partitions = 4;
  made.slots = 3;
  for (const std::uint32_t i : {2U, 3U}) {
    made.partition[i] = made.partition[0];
    made.partition[i].memory = 0x6000'0000 + (4 * mebibyte * i);
    made.partition[i].cpu = i;
  }
  made.partition[1].cpu = 2;  // shared with partition 2; partition 3 has CPU 3 for itself
  made.slot[2] = {.partition = 2, .reserved = 0, .length_ns = 1'000'000};
  made.source[0].partition = 2;
  made.cpu[2].trace_records = 10;
  seal(made);
  EXPECT_EQ(problem_of(made, board), "");
}

TEST(ConfigurationCheck, NoticesEveryChangedByte) {
  Configuration configuration = fine();
  seal(configuration);
  auto* bytes = reinterpret_cast<std::uint8_t*>(&configuration);
  for (std::size_t i = 0; i < sizeof configuration; i += 7) {
    bytes[i] ^= 0x10U;
    EXPECT_NE(problem_of(configuration, board), "") << i;
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
  configuration.sources = 2;
  for (const std::uint64_t time_ns : {0, 5, 7}) {  // each source has an order of its own
    entries[2].time_ns = time_ns;
    EXPECT_EQ(problem_of_arrivals(configuration), "");
  }
  entries[0].source = 1;
  EXPECT_EQ(problem_of_arrivals(configuration), "arrivals: not sorted by source and time");
  entries[0].source = 0;
  entries[2] = {4, 0, 0};
  EXPECT_EQ(problem_of_arrivals(configuration), "arrivals: not sorted by source and time");
  entries[2] = {1ULL << 63U, 0, 0};
  EXPECT_EQ(problem_of_arrivals(configuration), "arrival: too late");
}

}  // namespace
}  // namespace latenz::hypervisor
