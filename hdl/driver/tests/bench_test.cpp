// SPDX-License-Identifier: Apache-2.0
// The processor's part in the bench, on a bus behind which is a small model of the logic: a counter
// of cycles, the generator, and both IPs. Every access takes cycles, so that order and number of
// accesses show in what is measured. The IPs themselves are measured in hdl/tests.
#include "latenz/ip/bench.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace latenz::ip {
namespace {

constexpr std::uint32_t access_cycles = 20;
constexpr std::uint32_t word_count = 16;
constexpr std::uint32_t entry_cycles = 60;

/// One of the two IPs.
struct Meter {
  bool measures = false;
  std::uint64_t open_since = 0;  ///< 0: nothing is open
  std::vector<std::uint32_t> samples;

  void begin(std::uint64_t now) {
    if (measures && open_since == 0) open_since = now;
  }
  void end(std::uint64_t now) {
    if (open_since == 0) return;
    samples.push_back(static_cast<std::uint32_t>(now - open_since));
    open_since = 0;
  }
  void enable(bool wanted) {
    if (wanted && !measures) samples.clear();
    measures = wanted;
    open_since = 0;
  }
};

struct Logic {
  std::uint64_t now = 1;
  std::uint32_t words = 0;
  unsigned bus_errors = 0;
  Meter t1;
  Meter t2;

  /// The processor's interrupt: after a cycle a word the logic's.
  void ask() {
    t1.begin(now);
    now += word_count;
    if (words == 0) {
      t2.begin(now);
      t1.end(now);
    }
    words = word_count;
  }
};

enum class Slave : std::uint8_t { generator, t1_registers, t1_memory, t2_registers, t2_memory };

class Bus {
 public:
  Bus(Logic& logic, Slave slave) : logic_(&logic), slave_(slave) {}

  std::uint32_t read(std::uint32_t offset) {
    logic_->now += access_cycles;
    switch (slave_) {
      case Slave::generator:
        return read_generator(offset);
      case Slave::t1_memory:
        return logic_->t1.samples.at(offset / 4);
      case Slave::t2_memory:
        return logic_->t2.samples.at(offset / 4);
      default:
        if (offset == s01::we_offset) return meter().measures ? 1 : 0;
        return offset == s01::num_offset ? static_cast<std::uint32_t>(meter().samples.size()) : 0;
    }
  }

  void write(std::uint32_t offset, std::uint32_t value) {
    logic_->now += access_cycles;
    if (offset == s01::we_offset) meter().enable(value == 1);
  }

 private:
  Meter& meter() { return slave_ == Slave::t1_registers ? logic_->t1 : logic_->t2; }

  std::uint32_t read_generator(std::uint32_t offset) {
    if (offset == generator::level_offset) return logic_->words;
    if (offset == generator::status_offset) return logic_->words == 0 ? 1 : 0;
    if (logic_->words == 0) {
      ++logic_->bus_errors;
      return 0;
    }
    --logic_->words;
    logic_->t2.end(logic_->now);
    return 0;
  }

  Logic* logic_;
  Slave slave_;
};

Bench<Bus> bench_of(Logic& logic) {
  const Configuration published = Configuration::published();
  return {RandomDataGenerator(Bus(logic, Slave::generator)),
          Latencies<Bus>(Bus(logic, Slave::t1_registers), Bus(logic, Slave::t1_memory), published),
          Latencies<Bus>(Bus(logic, Slave::t2_registers), Bus(logic, Slave::t2_memory), published)};
}

void take(Logic& logic, Bench<Bus>& bench, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    logic.now += 10'000;
    logic.ask();
    logic.now += entry_cycles;
    bench.on_interrupt();
  }
}

TEST(Bench, T2ContainsOneAccessAndNoMore) {
  Logic logic;
  Bench<Bus> bench = bench_of(logic);
  ASSERT_TRUE(bench.start());
  take(logic, bench, 100);
  EXPECT_EQ(bench.handled(), 100U);
  ASSERT_TRUE(bench.stop());
  EXPECT_EQ(logic.bus_errors, 0U);
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(bench.sample(Way::t1, i).latency, word_count);
    EXPECT_EQ(bench.sample(Way::t2, i).latency, entry_cycles + access_cycles);
  }
}

TEST(Bench, BeginsAnewThoughWordsWereLeft) {
  Logic logic;
  Bench<Bus> bench = bench_of(logic);
  logic.ask();  // before anybody listens
  for (unsigned round = 0; round < 3; ++round) {
    ASSERT_TRUE(bench.start());
    EXPECT_EQ(logic.words, 0U);
    take(logic, bench, 7 + round);
    ASSERT_TRUE(bench.stop());
    EXPECT_EQ(bench.handled(), 7U + round);
  }
  EXPECT_EQ(logic.bus_errors, 0U);
}

TEST(Bench, TellsThatNobodyIsThere) {
  struct Nobody {
    static std::uint32_t read(std::uint32_t /*offset*/) { return 0; }
    static void write(std::uint32_t /*offset*/, std::uint32_t /*value*/) {}
  };
  const Latencies<Nobody> ip(Nobody{}, Nobody{}, Configuration::published());
  Bench<Nobody> bench(RandomDataGenerator(Nobody{}), ip, ip);
  EXPECT_FALSE(bench.start());
}

TEST(Bench, TellsThatAnInterruptWasNotMeasured) {
  Logic logic;
  Bench<Bus> bench = bench_of(logic);
  ASSERT_TRUE(bench.start());
  take(logic, bench, 3);
  logic.words = 1;
  bench.on_interrupt();  // of what no interrupt has asked for
  EXPECT_FALSE(bench.stop());
}

}  // namespace
}  // namespace latenz::ip
