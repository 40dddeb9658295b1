// SPDX-License-Identifier: Apache-2.0
#include "cache_line.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace latenz::coherence {
namespace {

constexpr Place cached_writer = 8;
constexpr Place uncached_writer = 16;
constexpr Place maintainer = 24;
constexpr Bytes first_word = 0xFF;
constexpr Bytes second_word = 0xFF00;

Line cached_before() {
  Line line;
  (void)line.read_cached(~Bytes{0}, 0);
  return line;
}

TEST(CacheLine, BytesOfAnAccessEndWithTheLine) {
  EXPECT_EQ(bytes_at(0x1000, 8), first_word);
  EXPECT_EQ(bytes_at(0x1008, 8), second_word);
  EXPECT_EQ(bytes_at(0x1040, 64), ~Bytes{0});
  EXPECT_EQ(std::popcount(bytes_at(0x103C, 16)), 4);
}

TEST(CacheLine, WhatWasWrittenIntoACacheIsNotInMemoryUntilCleaned) {
  Line line;
  line.write_cached(first_word, 0, cached_writer, {1});
  EXPECT_EQ(line.read_cached(first_word, 1).cause, Cause::none);
  const Hazard hazard = line.read_uncached(first_word);
  EXPECT_EQ(hazard.cause, Cause::dirty);
  EXPECT_EQ(hazard.by, cached_writer);
  EXPECT_EQ(line.read_uncached(second_word).cause, Cause::none);
  line.clean(maintainer);
  EXPECT_EQ(line.read_uncached(first_word).cause, Cause::none);
}

TEST(CacheLine, WhatWasWrittenIntoMemoryIsNotInACacheThatHasTheLine) {
  Line line = cached_before();
  line.write_uncached(first_word, false, uncached_writer, {1});
  EXPECT_EQ(line.read_uncached(first_word).cause, Cause::none);
  EXPECT_EQ(line.read_cached(first_word, 0).cause, Cause::stale);
  line.clean(maintainer);
  EXPECT_EQ(line.read_cached(first_word, 0).cause, Cause::stale);
  line.invalidate(maintainer);
  EXPECT_EQ(line.read_cached(first_word, 0).cause, Cause::none);
}

TEST(CacheLine, NoCacheIsStaleThatDoesNotHaveTheLine) {
  Line line;
  line.write_uncached(first_word, false, uncached_writer, {1});
  EXPECT_EQ(line.read_cached(first_word, 0).cause, Cause::none);
}

TEST(CacheLine, AMappingInForceMayBringTheLineAtAnyTime) {
  Line line;
  line.write_uncached(first_word, true, uncached_writer, {1});
  EXPECT_EQ(line.read_cached(first_word, 0).cause, Cause::stale);
}

TEST(CacheLine, CachesMayHoldALineFromBefore) {
  Line line;
  line.inherit();
  line.write_uncached(first_word, false, uncached_writer, {1});
  EXPECT_EQ(line.read_cached(first_word, 0).cause, Cause::stale);
}

TEST(CacheLine, ADirtyLineMayBeWrittenBackOverItsNeighbours) {
  Line line;
  line.write_cached(second_word, 0, cached_writer, {1});
  line.write_uncached(first_word, false, uncached_writer, {1});
  EXPECT_EQ(line.read_uncached(first_word).cause, Cause::overwritten);
  line.clean(maintainer);
  line.invalidate(maintainer);
  EXPECT_EQ(line.read_cached(first_word, 0).cause, Cause::overwritten);
  EXPECT_EQ(line.read_cached(second_word, 0).cause, Cause::none);
}

TEST(CacheLine, WhatIsInvalidatedWhileDirtyIsLostUntilWrittenAgain) {
  Line line;
  line.write_cached(first_word, 0, cached_writer, {1});
  line.invalidate(maintainer);
  EXPECT_EQ(line.read_cached(first_word, 0).cause, Cause::discarded);
  EXPECT_EQ(line.read_uncached(first_word).cause, Cause::discarded);
  line.write_cached(first_word, 0, cached_writer, {2});
  EXPECT_EQ(line.read_cached(first_word, 0).cause, Cause::none);
}

TEST(CacheLine, InstructionsAreCleanedAndThenDropped) {
  Line line;
  EXPECT_EQ(line.fetch_cached(first_word, 0).cause, Cause::none);
  line.write_cached(first_word, 0, cached_writer, {1});
  EXPECT_EQ(line.fetch_cached(first_word, 9).cause, Cause::uncleaned);
  line.unify(2, 3);
  EXPECT_EQ(line.fetch_cached(first_word, 3).cause, Cause::instructions);
  line.invalidate_instructions(3);
  EXPECT_EQ(line.fetch_cached(first_word, 0).cause, Cause::instructions)
      << "dropped before it was cleaned";
  line.invalidate_instructions(4);
  EXPECT_EQ(line.fetch_cached(first_word, 0).cause, Cause::none);
  EXPECT_EQ(line.fetch_cached(first_word, 4).cause, Cause::none);
}

TEST(CacheLine, ACleanThatWasBegunBeforeTheWriteDoesNotCount) {
  Line line;
  line.write_cached(first_word, 0, cached_writer, {5});
  line.unify(5, 6);
  EXPECT_EQ(line.fetch_cached(first_word, 9).cause, Cause::uncleaned);
}

TEST(CacheLine, DataBesideInstructionsDoesNotMakeThemOld) {
  Line line;
  line.write_cached(second_word, 0, cached_writer, {1});
  EXPECT_EQ(line.fetch_cached(first_word, 0).cause, Cause::none);
  line.write_cached(first_word, 0, cached_writer, {2});
  line.unify(3, 4);
  line.invalidate_instructions(5);
  line.write_cached(second_word, 0, cached_writer, {6});
  EXPECT_EQ(line.fetch_cached(first_word, 0).cause, Cause::none);
  EXPECT_EQ(line.fetch_cached(second_word, 0).cause, Cause::uncleaned);
}

TEST(CacheLine, InstructionsInMemoryAreOnlyDropped) {
  Line line;
  line.write_uncached(first_word, false, uncached_writer, {1});
  EXPECT_EQ(line.fetch_cached(first_word, 1).cause, Cause::instructions);
  EXPECT_EQ(line.fetch_cached(first_word, 2).cause, Cause::none);
}

}  // namespace
}  // namespace latenz::coherence
