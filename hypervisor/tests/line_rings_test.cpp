// SPDX-License-Identifier: Apache-2.0
// Lines of several producers come out whole, in order, and nobody waits for a slow console.
#include "line_rings.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace latenz::hypervisor {
namespace {

using Rings = LineRings<4, 512>;

std::string all_of(Rings& rings) {
  std::string found;
  rings.send(100'000, [&](char character) {
    found += character;
    return true;
  });
  return found;
}

TEST(LineRings, LinesComeOutWholeAndInTheirRingsOrder) {
  Rings rings;
  rings.add(0, "a| ", "one");
  rings.add(2, "c| ", "two");
  rings.add(0, "a| ", "three");
  EXPECT_FALSE(rings.empty());
  EXPECT_EQ(all_of(rings), "a| one\nc| two\na| three\n");
  EXPECT_TRUE(rings.empty());
}

TEST(LineRings, ALineIsNotInterruptedByAnother) {
  Rings rings;
  rings.add(1, "", "first");
  std::string found;
  const auto put = [&](char character) {
    found += character;
    return true;
  };
  rings.send(3, put);
  rings.add(0, "", "second");
  rings.send(100, put);
  EXPECT_EQ(found, "first\nsecond\n");
}

TEST(LineRings, LongLinesAreCut) {
  Rings rings;
  rings.add(0, std::string(10, 'p'), std::string(500, 'x'));
  EXPECT_EQ(all_of(rings), std::string(10, 'p') + std::string(189, 'x') + "\n");
  rings.add(0, std::string(500, 'p'), "x");
  EXPECT_EQ(all_of(rings), std::string(199, 'p') + "\n");
}

TEST(LineRings, WhatHasNoRoomIsDroppedAndCounted) {
  Rings rings;
  for (int i = 0; i < 10; ++i) rings.add(3, "", std::string(99, 'x'));
  EXPECT_EQ(rings.lost(3), 6U) << "512 characters hold four of 100 with 100 of 200 left for others";
  EXPECT_EQ(rings.lost(0), 0U);
  EXPECT_EQ(all_of(rings).size(), 400U);
  EXPECT_TRUE(rings.has_room(3));
}

TEST(LineRings, ASlowConsoleIsAskedOnceForEachCharacterItRefuses) {
  Rings rings;
  rings.add(0, "", std::string(100, 'x'));
  unsigned asked = 0;
  const auto full_after_3 = [&](char /*character*/) { return ++asked <= 3; };
  rings.send(16, full_after_3);
  EXPECT_EQ(asked, 4U);
  rings.send(16, full_after_3);
  EXPECT_EQ(asked, 5U) << "nobody waits until it takes more";
  EXPECT_EQ(all_of(rings).size(), 98U);
}

TEST(LineRings, ProducersAndConsumerShareNothingButRings) {
  static Rings rings;
  constexpr int lines = 20'000;
  std::atomic<int> working = 4;
  std::vector<std::thread> producers;
  producers.reserve(4);
  for (std::size_t ring = 0; ring < 4; ++ring) {
    producers.emplace_back([&, ring] {
      for (int i = 0; i < lines; ++i)
        rings.add(ring, std::to_string(ring) + " ", std::to_string(i));
      --working;
    });
  }
  std::string found;
  while (working > 0 || !rings.empty()) found += all_of(rings);
  for (auto& each : producers) each.join();
  std::map<char, int> last;
  std::size_t count = 0;
  for (std::size_t at = 0; at < found.size(); ++count) {
    const std::size_t end = found.find('\n', at);
    const std::string line = found.substr(at, end - at);
    ASSERT_TRUE(line.size() >= 3 && line[0] >= '0' && line[0] <= '3' && line[1] == ' ') << line;
    const int number = std::stoi(line.substr(2));
    const auto before = last.find(line[0]);
    if (before != last.end()) {
      ASSERT_GT(number, before->second);
    }
    last[line[0]] = number;
    at = end + 1;
  }
  std::size_t lost = 0;
  for (std::size_t ring = 0; ring < 4; ++ring) lost += rings.lost(ring);
  EXPECT_EQ(count + lost, 4U * lines);
}

}  // namespace
}  // namespace latenz::hypervisor
