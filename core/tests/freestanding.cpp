// SPDX-License-Identifier: Apache-2.0
// Compiled for every target with -ffreestanding, no exceptions, no RTTI: the headers keep their
// promise.
#include "latenz/histogram.hpp"
#include "latenz/moments.hpp"
#include "latenz/sample_scan.hpp"
#include "latenz/wide_integer.hpp"

namespace {

constexpr latenz::Moments two_extremes() {
  latenz::Moments moments;
  moments.add(INT64_MAX);
  moments.add(INT64_MIN);
  return moments;
}

static_assert(two_extremes().mean() == -0.5);
static_assert(two_extremes().variance() == 0x1p127, "half of 2^128 - 2^65 + 1, rounded");
static_assert(latenz::HistogramLayout(1, 3'600'000'000'000, 3).cells() == 33'792);

}  // namespace

bool record_latency(latenz::Histogram& histogram, latenz::Moments& moments, std::int64_t value) {
  moments.add(value);
  return histogram.record(value);
}

latenz::RankInterval scan(latenz::SampleScan& samples, const std::int64_t* values, std::size_t n) {
  samples.add(values, n);
  return samples.locate(samples.moments().n());
}
