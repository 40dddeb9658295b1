// SPDX-License-Identifier: Apache-2.0
// The order of accesses matters here: the first read of data ends the latency that is measured.
#include "latenz/ip/random_data_generator.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <vector>

namespace latenz::ip {
namespace {

/// A bus with words to be read; reading one too many is a bus error.
struct Bus {
  std::deque<std::uint32_t> words;
  std::vector<std::uint32_t> read_offsets;
  std::vector<std::uint32_t> written;
  unsigned bus_errors = 0;
};

class Registers {
 public:
  explicit Registers(Bus& bus) : bus_(&bus) {}

  std::uint32_t read(std::uint32_t offset) {
    bus_->read_offsets.push_back(offset);
    if (offset != generator::data_offset) return bus_->words.empty() ? 1U : 0U;
    if (bus_->words.empty()) {
      ++bus_->bus_errors;
      return 0;
    }
    const std::uint32_t word = bus_->words.front();
    bus_->words.pop_front();
    return word;
  }

  void write(std::uint32_t /*offset*/, std::uint32_t value) { bus_->written.push_back(value); }

 private:
  Bus* bus_;
};

TEST(RandomDataGenerator, DrainReadsDataFirstAndNeverTooMuch) {
  for (std::uint32_t count = 1; count < 20; ++count) {
    Bus bus;
    for (std::uint32_t i = 0; i < count; ++i) bus.words.push_back(100 + i);
    RandomDataGenerator generator{Registers(bus)};
    std::vector<std::uint32_t> got;
    EXPECT_EQ(generator.drain([&](std::uint32_t word) { got.push_back(word); }), count);
    EXPECT_EQ(bus.read_offsets.front(), generator::data_offset);
    EXPECT_EQ(bus.bus_errors, 0U);
    ASSERT_EQ(got.size(), count);
    EXPECT_EQ(got.back(), 99 + count);
  }
}

TEST(RandomDataGenerator, RefusesASeedThatWouldStayZero) {
  Bus bus;
  RandomDataGenerator generator{Registers(bus)};
  EXPECT_FALSE(generator.set_seed(0));
  EXPECT_TRUE(bus.written.empty());
  EXPECT_TRUE(generator.set_seed(5));
  EXPECT_EQ(bus.written, std::vector<std::uint32_t>{5});
}

}  // namespace
}  // namespace latenz::ip
