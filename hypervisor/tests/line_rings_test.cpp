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

/// A line, piece by piece.
void add(Rings& rings, std::size_t ring, std::string_view prefix, std::string_view line) {
  if (!rings.begin(ring)) {
    rings.lose(ring);
    return;
  }
  rings.write(ring, prefix);
  rings.write(ring, line);
  rings.end(ring);
}

/// Four pieces.
bool word(std::size_t ring, const Rings::Note& note, unsigned piece, Rings::Worded& text) {
  if (piece == 0) text.add("note of ").add(ring);
  if (piece >= 1 && piece <= note.size()) text.add(" ").add(note[piece - 1]);
  return piece <= note.size();
}

std::string all_of(Rings& rings) {
  std::string found;
  const auto put = [&](char character) {
    found += character;
    return true;
  };
  while (!rings.empty()) rings.send(100, put, word);
  return found;
}

TEST(LineRings, LinesComeOutWholeAndInTheirRingsOrder) {
  Rings rings;
  add(rings, 0, "a| ", "one");
  add(rings, 2, "c| ", "two");
  add(rings, 0, "a| ", "three");
  EXPECT_FALSE(rings.empty());
  EXPECT_EQ(all_of(rings), "a| one\nc| two\na| three\n");
  EXPECT_TRUE(rings.empty());
}

TEST(LineRings, ALineIsNotInterruptedByAnother) {
  Rings rings;
  add(rings, 1, "", "first");
  std::string found;
  const auto put = [&](char character) {
    found += character;
    return true;
  };
  rings.send(3, put, word);
  add(rings, 0, "", "second");
  rings.send(100, put, word);
  EXPECT_EQ(found, "first\nsecond\n");
}

TEST(LineRings, LongLinesAreCut) {
  Rings rings;
  add(rings, 0, std::string(10, 'p'), std::string(500, 'x'));
  EXPECT_EQ(all_of(rings), std::string(10, 'p') + std::string(189, 'x') + "\n");
  add(rings, 0, std::string(500, 'p'), "x");
  EXPECT_EQ(all_of(rings), std::string(199, 'p') + "\n");
}

TEST(LineRings, ALineIsNotSentBeforeItsEnd) {
  Rings rings;
  ASSERT_TRUE(rings.begin(1));
  rings.write(1, "half");
  EXPECT_TRUE(rings.empty());
  EXPECT_EQ(all_of(rings), "");
  rings.write(1, " a line");
  rings.end(1);
  EXPECT_EQ(all_of(rings), "half a line\n");
}

TEST(LineRings, NotesAreWordedInTheirTurn) {
  Rings rings;
  add(rings, 2, "", "before");
  rings.note(2, {1, ~std::uint64_t{0}, 0x0A00'0000'0000'000AU});
  add(rings, 2, "", "after");
  EXPECT_EQ(all_of(rings), "before\nnote of 2 1 18446744073709551615 720575940379279370\nafter\n");
  EXPECT_TRUE(rings.empty());
}

TEST(LineRings, APieceOfANoteIsWordedOrCharactersSent) {
  Rings rings;
  rings.note(0, {7, 8, 9});
  std::string found;
  const auto put = [&](char character) {
    found += character;
    return true;
  };
  for (const auto* const sent : {"note of 0", "note of 0 7", "note of 0 7 8"}) {
    const std::size_t before = found.size();
    EXPECT_TRUE(rings.send(16, put, word));
    EXPECT_EQ(found.size(), before) << "worded";
    EXPECT_TRUE(rings.send(16, put, word));
    EXPECT_EQ(found, sent);
  }
  add(rings, 3, "", "other");
  EXPECT_EQ(found + all_of(rings), "note of 0 7 8 9\nother\n");
}

TEST(LineRings, NothingIsSentBeforeAPieceIsWorded) {
  Rings rings;
  add(rings, 0, "", "one");
  rings.note(1, {7, 8, 9});
  std::string found;
  const auto put = [&](char character) {
    found += character;
    return true;
  };
  unsigned worded = 0;
  const auto counted = [&](std::size_t ring, const auto& note, unsigned piece, auto& text) {
    ++worded;
    return word(ring, note, piece, text);
  };
  EXPECT_TRUE(rings.send(16, put, counted));
  EXPECT_EQ(found, "one\n");
  EXPECT_EQ(worded, 0U);
}

TEST(LineRings, AnEmptyPieceIsNoEnd) {
  Rings rings;
  rings.note(0, {7, 8, 9});
  const auto nameless = [](std::size_t /*ring*/, const auto& note, unsigned piece, auto& text) {
    if (piece == 0) text.add("partition ");
    if (piece == 2) text.add(": ").add(note[0]);
    return piece <= 3;
  };
  std::string found;
  const auto put = [&](char character) {
    found += character;
    return true;
  };
  while (rings.send(16, put, nameless)) {
  }
  EXPECT_EQ(found, "partition : 7\n");
  EXPECT_TRUE(rings.empty());
}

TEST(LineRings, ANoteWaitsForASlowConsole) {
  Rings rings;
  rings.note(2, {1, 2, 3});
  std::string found;
  bool full = false;
  const auto every_second = [&](char character) {
    full = !full;
    if (!full) found += character;
    return !full;
  };
  for (int i = 0; i < 100; ++i) rings.send(16, every_second, word);
  EXPECT_EQ(found, "note of 2 1 2 3\n");
  EXPECT_TRUE(rings.empty());
}

TEST(LineRings, NotesWithoutRoomAreCounted) {
  Rings rings;
  std::string expected;
  for (std::uint64_t i = 0; i < 40; ++i) {
    rings.note(1, {i, 0, 0});
    if (i < Rings::most_notes) expected += "note of 1 " + std::to_string(i) + " 0 0\n";
  }
  EXPECT_EQ(rings.lost(1), 40 - Rings::most_notes);
  EXPECT_EQ(all_of(rings), expected);
  rings.note(1, {7, 8, 9});
  EXPECT_EQ(all_of(rings), "note of 1 7 8 9\n") << "there is room again";
}

TEST(LineRings, NotesAreLostWhereLinesAre) {
  Rings rings;
  for (int i = 0; i < 4; ++i) add(rings, 0, "", std::string(99, 'x'));
  rings.note(0, {});
  EXPECT_EQ(rings.lost(0), 1U);
}

TEST(LineRings, WhatHasNoRoomIsDroppedAndCounted) {
  Rings rings;
  for (int i = 0; i < 10; ++i) add(rings, 3, "", std::string(99, 'x'));
  EXPECT_EQ(rings.lost(3), 6U) << "512 characters hold four of 100 with 100 of 200 left for others";
  EXPECT_EQ(rings.lost(0), 0U);
  EXPECT_EQ(all_of(rings).size(), 400U);
  EXPECT_TRUE(rings.has_room(3));
}

TEST(LineRings, ASlowConsoleIsAskedOnceForEachCharacterItRefuses) {
  Rings rings;
  add(rings, 0, "", std::string(100, 'x'));
  unsigned asked = 0;
  const auto full_after_3 = [&](char /*character*/) { return ++asked <= 3; };
  rings.send(16, full_after_3, word);
  EXPECT_EQ(asked, 4U);
  rings.send(16, full_after_3, word);
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
        add(rings, ring, std::to_string(ring) + " ", std::to_string(i));
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
