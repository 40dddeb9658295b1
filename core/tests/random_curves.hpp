// SPDX-License-Identifier: Apache-2.0
// Random cost curves of top handlers for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "latenz/system.hpp"
#include "random_distances.hpp"

/// gamma(1) = `longest`, then up to 5 more sums that do not decrease; not all of them are
/// sub-additive.
inline std::vector<latenz::Duration> random_sums(std::mt19937_64& random,
                                                 latenz::Duration longest) {
  const auto most = static_cast<std::uint64_t>(longest.ns());
  std::vector<latenz::Duration> sums =
      random_vector(random, 1 + (random() % 6), random() % 2 == 0 ? most : most / 3);
  const latenz::Duration first = longest - sums.front();
  for (latenz::Duration& sum : sums) {
    sum += first;
  }
  return sums;
}

/// The same system, where top handlers of most sources take some more and have cost curves.
inline latenz::System with_curves(std::mt19937_64& random, const latenz::System& system) {
  std::vector<latenz::Source> sources(system.sources().begin(), system.sources().end());
  for (latenz::Source& source : sources) {
    if (random() % 4 != 0) {
      const auto more = static_cast<std::uint64_t>(source.top.ns()) + 3;
      source.top += latenz::Duration(static_cast<std::int64_t>(random() % more));
      source.top_sums = latenz::CostCurve(random_sums(random, source.top));
    }
  }
  return {system.table().slots(), system.costs(), sources};
}

/// The same system without cost curves: each top handler may take the longest.
inline latenz::System without_curves(const latenz::System& system) {
  std::vector<latenz::Source> sources(system.sources().begin(), system.sources().end());
  for (latenz::Source& source : sources) {
    source.top_sums.reset();
  }
  return {system.table().slots(), system.costs(), sources};
}
