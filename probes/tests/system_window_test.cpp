// SPDX-License-Identifier: Apache-2.0
#include "system_window.hpp"

#include <gtest/gtest.h>

namespace latenz::probe {
namespace {

using Counts = std::vector<std::uint64_t>;

// Cut from /proc/stat of a virtual machine in which CPU 1 was offline.
TEST(ParseSteal, FindsTheColumnOfEachCpu) {
  const std::string stat =
      "cpu  15726 0 6566 230345 1183 0 135 112 0 0\n"
      "cpu0 4926 0 2296 119688 47 0 17 51 0 0\n"
      "cpu2 10799 0 4269 110656 1135 0 118 61 0 0\n"
      "intr 342652 0 0\n";
  EXPECT_EQ(parse_steal_ns(stat, 10'000'000),
            (std::vector<std::int64_t>{510'000'000, 0, 610'000'000}));
  EXPECT_TRUE(parse_steal_ns("", 1).empty());
}

// Cut from /proc/interrupts of an x86 machine in which CPU 1 was offline.
TEST(ParseInterrupts, NamesAndCountsThem) {
  const std::string text =
      "           CPU0       CPU2       \n"
      " 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n"
      " 38:          0      16587 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n"
      "LOC:      41304      51381   Local timer interrupts\n"
      "ERR:          0\n";
  const auto interrupts = parse_interrupts(text);
  ASSERT_EQ(interrupts.size(), 3U);
  EXPECT_EQ(interrupts.at("24:ACPI:Ged"), (Counts{1, 0, 0}));
  EXPECT_EQ(interrupts.at("38:virtio2-input.0"), (Counts{0, 0, 16587}));
  EXPECT_EQ(interrupts.at("LOC"), (Counts{41304, 0, 51381}));
}

TEST(ParseInterrupts, SurvivesWhatItDoesNotKnow) {
  EXPECT_TRUE(parse_interrupts("").empty());
  EXPECT_TRUE(parse_interrupts("no such header\n 1: 2 3\n").empty());
  EXPECT_TRUE(parse_interrupts("CPU0 CPU1\n 1:\n 2: x\n").empty());
}

TEST(SystemReader, ReadsThisMachineTwiceAndNothingRunsBackwards) {
  SystemReader reader({0}, true);
  const SystemReading before = reader.read(1);
  const SystemReading after = reader.read(2);
  EXPECT_FALSE(before.interrupts.empty());
  for (const auto& [name, counts] : before.interrupts) {
    ASSERT_TRUE(after.interrupts.contains(name));
    for (std::size_t cpu = 0; cpu < counts.size(); ++cpu) {
      EXPECT_GE(after.interrupts.at(name).at(cpu), counts[cpu]) << name;
    }
  }
}

}  // namespace
}  // namespace latenz::probe
