// SPDX-License-Identifier: Apache-2.0
#include "latenz/distances.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "random_distances.hpp"

using latenz::close_super_additively;
using latenz::Duration;
using latenz::raise_to;

namespace {

/// The largest sum of entries over every way to cut so many gaps between events into parts.
Duration best_cut(std::span<const Duration> distances, std::size_t gaps) {
  Duration best;
  for (std::size_t part = 1; part <= std::min(gaps, distances.size()); ++part) {
    best = std::max(best, distances[part - 1] + best_cut(distances, gaps - part));
  }
  return best;
}

/// Whether a stream, given by its gaps, keeps every distance.
bool keeps(std::span<const int> gaps, std::span<const Duration> distances) {
  for (std::size_t first = 0; first < gaps.size(); ++first) {
    Duration span;
    for (std::size_t i = first; i < gaps.size() && i - first < distances.size(); ++i) {
      span += Duration(gaps[i]);
      if (span < distances[i - first]) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

TEST(Distances, ClosureIsTheBestOfAllCuts) {
  for (std::size_t length = 1; length <= 6; ++length) {
    for (const Distances& vector : every_vector(length, length < 5 ? 7 : 5)) {
      Distances closed = vector;
      close_super_additively(closed);
      for (std::size_t i = 0; i < length; ++i) {
        ASSERT_EQ(closed[i], best_cut(vector, i + 1));
      }
      Distances twice = closed;
      close_super_additively(twice);
      ASSERT_EQ(twice, closed);
    }
  }
}

TEST(Distances, ClosedVectorAllowsExactlyTheSameStreams) {
  for (const Distances& vector : every_vector(3, 4)) {
    Distances closed = vector;
    close_super_additively(closed);
    for (int code = 0; code < 6 * 6 * 6 * 6; ++code) {
      const int gaps[] = {code % 6, code / 6 % 6, code / 36 % 6, code / 216};
      ASSERT_EQ(keeps(gaps, vector), keeps(gaps, closed));
    }
  }
}

TEST(Distances, ClosureOfTheLargestTimesSaturates) {
  Distances vector(64, Duration::unbounded() - Duration(1));
  close_super_additively(vector);
  EXPECT_EQ(vector[0], Duration::unbounded() - Duration(1));
  EXPECT_TRUE(std::ranges::all_of(vector.begin() + 1, vector.end(), &Duration::is_unbounded));
}

TEST(Distances, Algorithm2RaisesWhatIsBelowAndNothingElse) {
  Distances learned = {Duration(4), Duration(30), Duration::unbounded()};
  const Distances allowed = {Duration(10), Duration(20), Duration(30)};
  raise_to(learned, allowed);
  EXPECT_EQ(learned, (Distances{Duration(10), Duration(30), Duration::unbounded()}));
}
