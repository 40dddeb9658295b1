// SPDX-License-Identifier: Apache-2.0
// The driver against every combination of additions, and against samples that come while it reads.
// How it gets on with the IP itself is in hdl/tests/test_hdl_driver.py.
#include "latenz/ip/latencies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "checked_bus.hpp"

namespace latenz::ip {
namespace {

constexpr std::uint32_t identification = 0x4C5A'0100;

/// Every combination of additions with every width of latencies; the published one is not among
/// them.
std::vector<Configuration> all_configurations() {
  std::vector<Configuration> all;
  for (std::uint32_t features = 0; features < 0x800; ++features) {
    for (const std::uint32_t width : {16U, 32U, 48U}) {
      const std::uint32_t log2_depth = features % 12 + 1;
      const std::uint32_t fields = width | log2_depth << 8U | 10U << 20U | 4U << 25U |
                                   (features >> 5U & 1U) << 29U;  // log-linear
      const auto decoded = Configuration::decode(identification, fields, features, 100'000'000);
      EXPECT_TRUE(decoded);
      if (decoded) all.push_back(*decoded);
    }
  }
  return all;
}

/// Calls all there is.
void exercise(CheckedIp& ip) {
  ip.start_series();
  static_cast<void>(ip.is_measuring());
  static_cast<void>(ip.ready());
  static_cast<void>(ip.keep_newest(true));
  static_cast<void>(ip.set_alarm_limit(ip.configuration().longest()));
  static_cast<void>(ip.alarm_limit());
  static_cast<void>(ip.alarm());
  ip.clear_alarm();
  static_cast<void>(ip.num());
  static_cast<void>(ip.statistics());
  static_cast<void>(ip.sums());
  static_cast<void>(ip.counters());
  static_cast<void>(ip.saturated());
  static_cast<void>(ip.stored());
  static_cast<void>(ip.oldest());
  static_cast<void>(ip.sample(0));
  static_cast<void>(ip.sample(ip.configuration().depth - 1));
  static_cast<void>(ip.now());
  static_cast<void>(ip.set_timeout(1000));
  static_cast<void>(ip.timeouts());
  static_cast<void>(ip.enable_interrupts(15));
  static_cast<void>(ip.pending_interrupts());
  static_cast<void>(ip.clear_interrupts(15));
  static_cast<void>(ip.set_histogram_shift(3));
  static_cast<void>(ip.clear_bins_when_read(true));
  static_cast<void>(ip.bin(0));
  static_cast<void>(ip.bin(1023));
  static_cast<void>(ip.bin(1024));
  static_cast<void>(ip.histogram_overflow());
  static_cast<void>(ip.bin_begin(100));
  static_cast<void>(ip.freeze_around_maximum(0, true));
  if (const auto half = ip.frozen_half()) {
    static_cast<void>(
        ip.frozen_sample({.half = half->half, .trigger = 0, .end = 0, .count = 1}, 0));
  }
  static_cast<void>(ip.start_self_test(1, 10));
  static_cast<void>(ip.self_test_running());
  static_cast<void>(ip.stream_dropped());
  static_cast<void>(ip.stream_sent());
  ip.stop_series();
}

TEST(Latencies, NeverTouchesARegisterThatIsNotThere) {
  std::vector<Configuration> all = all_configurations();
  all.push_back(Configuration::published());
  for (const Configuration& configuration : all) {
    for (const std::uint32_t status : {0x000U, 0x1FFU}) {
      CheckedBus bus{.configuration = configuration, .words = {{s01::status_offset, status}}};
      CheckedIp ip = checked_ip(bus, bus.configuration);
      exercise(ip);
      ASSERT_EQ(bus.bus_errors, 0U);
      ASSERT_GT(bus.reads, 10U);
    }
  }
}

TEST(Latencies, UsesEveryRegisterThatIsThere) {
  Configuration all = all_configurations().back();  // 48 bits and every addition
  CheckedBus bus{.configuration = all, .words = {{s01::status_offset, 0x1FF}}};
  CheckedIp ip = checked_ip(bus, bus.configuration);
  exercise(ip);
  CheckedRegisters registers(bus);
  static_cast<void>(Configuration::read(registers));
  // Also in the published configuration: not by snapshot, and not by that of the counters.
  all.snapshot = false;
  all.log_linear = false;
  CheckedIp again = checked_ip(bus, all);
  exercise(again);
  for (std::uint32_t offset = 0; offset < 0x100; offset += 4) {
    const bool of_time = offset == s01::snapshot_time_offset ||
                         offset == s01::snapshot_time_high_offset;  // `now` is enough
    if (!of_time) {
      EXPECT_EQ(bus.words.contains(offset), bus.configuration.has_register(offset)) << offset;
    }
  }
}

TEST(Latencies, RefusesWhatTheIpWasNotBuiltWith) {
  const Configuration published = Configuration::published();
  CheckedBus bus{.configuration = published, .words = {}};
  CheckedIp ip = checked_ip(bus, bus.configuration);
  EXPECT_FALSE(ip.keep_newest(true));
  EXPECT_FALSE(ip.set_timeout(5));
  EXPECT_FALSE(ip.enable_interrupts(1));
  EXPECT_FALSE(ip.set_histogram_shift(1));
  EXPECT_FALSE(ip.freeze_around_maximum(1, false));
  EXPECT_FALSE(ip.start_self_test(1, 1));
  EXPECT_EQ(ip.counters().has_value(), false);
  EXPECT_EQ(ip.sums().has_value(), false);
  EXPECT_EQ(ip.bin(0).has_value(), false);
  EXPECT_EQ(ip.saturated().has_value(), false);
  EXPECT_EQ(bus.reads + bus.writes, 0U);
}

TEST(Latencies, RefusesAnAlarmLimitThatDoesNotFit) {
  for (const std::uint32_t width : {16U, 32U, 48U}) {
    Configuration configuration;
    configuration.latency_width = width;
    CheckedBus bus{.configuration = configuration, .words = {}};
    CheckedIp ip = checked_ip(bus, bus.configuration);
    const std::uint64_t longest = (std::uint64_t{1} << width) - 1;
    EXPECT_FALSE(ip.set_alarm_limit(longest + 1));
    EXPECT_EQ(bus.writes, 0U);
    EXPECT_TRUE(ip.set_alarm_limit(longest));
    EXPECT_EQ(ip.alarm_limit(), longest);
  }
}

/// A bus that does something before each access, as the IP itself may.
template <typename Before>
class BusyRegisters {
 public:
  BusyRegisters(CheckedBus& bus, Before& before) : registers_(bus), before_(&before) {}

  std::uint32_t read(std::uint32_t offset) {
    (*before_)();
    return registers_.read(offset);
  }

  void write(std::uint32_t offset, std::uint32_t value) {
    registers_.write(offset, value);
    (*before_)();
  }

 private:
  CheckedRegisters registers_;
  Before* before_;
};

TEST(Latencies, ALimitOnTheWayIsNeverBelowBothOldAndNew) {
  Configuration configuration = all_configurations().back();
  configuration.latency_width = 48;
  for (const auto& [old_limit, new_limit] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0x1'0000'0000, 0xFFFF'FFFF}, {0xFFFF'FFFF, 0x1'0000'0000}, {7, 0x5'0000'0003}}) {
    CheckedBus bus{.configuration = configuration, .words = {}};
    std::uint64_t lowest = ~std::uint64_t{0};
    auto look = [&] {
      const std::uint64_t limit = std::uint64_t{bus.words[s01::alarm_lat_high_offset]} << 32U |
                                  bus.words[s01::alarm_lat_offset];
      lowest = limit < lowest ? limit : lowest;
    };
    Latencies ip{BusyRegisters{bus, look}, CheckedMemory(bus), bus.configuration};
    ASSERT_TRUE(ip.set_alarm_limit(old_limit));
    lowest = ~std::uint64_t{0};
    ASSERT_TRUE(ip.set_alarm_limit(new_limit));
    EXPECT_GE(lowest, old_limit < new_limit ? old_limit : new_limit);
    EXPECT_EQ(ip.alarm_limit(), new_limit);
  }
}

TEST(Latencies, AFrozenHalfIsNeverMadeOfTwo) {
  Configuration configuration = all_configurations().back();
  configuration.freeze = true;
  for (unsigned moment = 0; moment < 12; ++moment) {
    CheckedBus bus{.configuration = configuration, .words = {}};
    unsigned accesses = 0;
    auto freeze = [&] {  // the half changes at that access, and what is told of it
      const std::uint32_t number = accesses++ < moment ? 0 : 1;
      bus.words[s01::status_offset] =
          s01::status_frozen_mask | (number != 0 ? s01::status_frozen_half_mask : 0);
      bus.words[s01::trigger_position_offset] = 2 + number;
      bus.words[s01::frozen_end_offset] = 6 + number;
      bus.words[s01::frozen_count_offset] = 6 + number;
    };
    Latencies ip{BusyRegisters{bus, freeze}, CheckedMemory(bus), bus.configuration};
    const auto half = ip.frozen_half();
    ASSERT_TRUE(half);
    EXPECT_EQ(half->trigger, 2 + half->half);
    EXPECT_EQ(half->end, 6 + half->half);
    EXPECT_EQ(half->count, 6 + half->half);
  }
}

TEST(Latencies, AssemblesSamplesFromTheRegions) {
  Configuration configuration = all_configurations().back();
  configuration.depth = 512;
  configuration.histogram_bins = 1024;
  CheckedBus bus{.configuration = configuration, .words = {}};
  CheckedIp ip = checked_ip(bus, bus.configuration);
  const Sample sample = ip.sample(511);  // each word is its own offset: regions of 1024 words
  EXPECT_EQ(sample.latency, std::uint64_t{0x17FC} << 32U | 0x07FCU);
  EXPECT_EQ(sample.start, std::uint64_t{0x37FC} << 32U | 0x27FCU);
  EXPECT_EQ(ip.bin(1023), 0x4FFCU);
}

TEST(Latencies, RefusesAnotherDevice) {
  EXPECT_FALSE(Configuration::decode(0x4C5A'0200, 0, 0, 0).has_value());
  EXPECT_FALSE(Configuration::decode(0x0000'0000, 0, 0, 0).has_value());
  EXPECT_FALSE(Configuration::decode(0xFFFF'FFFF, 0, 0, 0).has_value());
  EXPECT_TRUE(Configuration::decode(0x4C5A'0107, 16 | 9U << 8U, 0, 1).has_value());
}

/// Bins of a log-linear histogram by their definition: the leading one and the bits behind it.
TEST(Latencies, BinsBeginWhereTheOneBeforeEnds) {
  for (const std::uint32_t sub_bits : {1U, 4U, 7U}) {
    Configuration configuration = all_configurations().back();
    configuration.histogram_sub_bits = sub_bits;
    CheckedBus bus{.configuration = configuration, .words = {}};
    CheckedIp ip = checked_ip(bus, bus.configuration);
    std::uint32_t bin = 0;
    for (std::uint64_t latency = 0; latency < 20'000; ++latency) {
      std::uint64_t kept = latency;
      while (kept >> (sub_bits + 1) != 0) kept >>= 1U;
      std::uint64_t first = kept;
      for (; first < latency && first << 1U <= latency; first <<= 1U) {
      }
      if (first == latency && ip.bin_begin(bin + 1) == latency) ++bin;
      ASSERT_LE(ip.bin_begin(bin), latency);
      ASSERT_GT(ip.bin_begin(bin + 1), latency);
      ASSERT_EQ(ip.bin_begin(bin), first);
    }
  }
}

/// Four registers of an IP that goes on measuring: between two accesses samples may come.
class MeasuringRegisters {
 public:
  MeasuringRegisters(std::mt19937& random, std::uint32_t largest_num, std::vector<Statistics>& past)
      : random_(&random), largest_num_(largest_num), past_(&past) {}

  std::uint32_t read(std::uint32_t offset) {
    if ((*random_)() % 4 == 0) take((*random_)() % 3);  // few values: they come again
    const Statistics& now = past_->back();
    switch (offset) {
      case s01::num_offset:
        return now.num;
      case s01::last_offset:
        return static_cast<std::uint32_t>(now.last);
      case s01::max_offset:
        return static_cast<std::uint32_t>(now.max);
      default:
        return static_cast<std::uint32_t>(now.min);
    }
  }

  void write(std::uint32_t /*offset*/, std::uint32_t /*value*/) {}

 private:
  void take(std::uint64_t latency) {
    Statistics now = past_->back();
    now.num = std::min(now.num + 1, largest_num_);
    now.last = latency;
    now.max = std::max(now.max, latency);
    now.min = std::min(now.min, latency);
    past_->push_back(now);
  }

  std::mt19937* random_;
  std::uint32_t largest_num_;
  std::vector<Statistics>* past_;
};

/// The proof is in the header; this would find where it is wrong.
TEST(Latencies, StatisticsWithoutSnapshotAreOfOneMoment) {
  std::mt19937 random(7);
  unsigned answered = 0;
  unsigned torn_first = 0;
  for (unsigned run = 0; run < 20'000; ++run) {
    const std::uint32_t largest_num = run % 2 == 0 ? 65'535 : 3;  // it stops, and tells no more
    std::vector<Statistics> past{{.num = 0, .last = 0, .max = 0, .min = 65'535}};
    MeasuringRegisters registers(random, largest_num, past);
    const Statistics one_reading{.num = registers.read(s01::num_offset),
                                 .last = registers.read(s01::last_offset),
                                 .max = registers.read(s01::max_offset),
                                 .min = registers.read(s01::min_offset)};
    if (std::ranges::find(past, one_reading) == past.end()) ++torn_first;
    Latencies<MeasuringRegisters> ip(registers, registers, Configuration::published());
    if (const auto statistics = ip.statistics()) {
      ++answered;
      ASSERT_NE(std::ranges::find(past, *statistics), past.end());
    }
  }
  EXPECT_GT(answered, 1000U);
  EXPECT_GT(torn_first, 1000U);  // so the danger is there
}

TEST(Latencies, StatisticsGiveUpWhenSamplesDoNotCease) {
  struct Restless {
    std::uint32_t accesses = 0;
    std::uint32_t read(std::uint32_t /*offset*/) { return ++accesses; }
    void write(std::uint32_t /*offset*/, std::uint32_t /*value*/) {}
  };
  Latencies<Restless> ip(Restless{}, Restless{}, Configuration::published());
  EXPECT_FALSE(ip.statistics().has_value());
}

}  // namespace
}  // namespace latenz::ip
