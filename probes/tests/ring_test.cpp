// SPDX-License-Identifier: Apache-2.0
#include "ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <thread>

namespace latenz::probe {
namespace {

struct Record {
  std::uint64_t number;
  std::uint64_t check;
};

TEST(Ring, RefusesWhenFullAndKeepsWhatItHolds) {
  Ring<int> ring(5);
  ASSERT_EQ(ring.capacity(), 8U);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(ring.push(i));
  }
  EXPECT_FALSE(ring.push(8));
  std::array<int, 16> out{};
  ASSERT_EQ(ring.pop(out), 8U);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(out.at(static_cast<std::size_t>(i)), i);
  }
  EXPECT_EQ(ring.pop(out), 0U);
}

TEST(Ring, AgreesWithAQueueOverRandomSteps) {
  Ring<std::uint64_t> ring(16);
  std::deque<std::uint64_t> queue;
  std::mt19937_64 random(20240608);
  std::array<std::uint64_t, 7> out{};
  for (int step = 0; step < 100'000; ++step) {
    const std::uint64_t value = random();
    if (value % 5 < 3) {
      const bool fits = queue.size() < ring.capacity();
      ASSERT_EQ(ring.push(value), fits);
      if (fits) {
        queue.push_back(value);
      }
      continue;
    }
    const std::size_t wanted = value % (out.size() + 1);
    const std::size_t got = ring.pop(std::span(out).first(wanted));
    ASSERT_EQ(got, std::min(wanted, queue.size()));
    for (std::size_t i = 0; i < got; ++i) {
      ASSERT_EQ(out.at(i), queue.front());
      queue.pop_front();
    }
  }
}

TEST(Ring, TwoThreadsExchangeEveryRecordWholeAndInOrder) {
  constexpr std::uint64_t total = 2'000'000;
  Ring<Record> ring(64);
  const std::jthread producer([&ring] {
    for (std::uint64_t i = 0; i < total;) {
      if (ring.push({.number = i, .check = ~i})) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::array<Record, 48> out{};
  for (std::uint64_t expected = 0; expected < total;) {
    const std::size_t got = ring.pop(out);
    for (std::size_t i = 0; i < got; ++i, ++expected) {
      ASSERT_EQ(out.at(i).number, expected);
      ASSERT_EQ(out.at(i).check, ~expected);
    }
    if (got == 0) {
      std::this_thread::yield();
    }
  }
}

}  // namespace
}  // namespace latenz::probe
