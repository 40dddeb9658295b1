// SPDX-License-Identifier: Apache-2.0
// Compiled for every target with -ffreestanding, no exceptions, no RTTI: the headers keep their
// promise.
#include "latenz/control_block.hpp"
#include "latenz/distances.hpp"
#include "latenz/frame_decoder.hpp"
#include "latenz/frame_sender.hpp"
#include "latenz/guest_machine.hpp"
#include "latenz/histogram.hpp"
#include "latenz/learner.hpp"
#include "latenz/limiter.hpp"
#include "latenz/moments.hpp"
#include "latenz/monitor.hpp"
#include "latenz/sample_scan.hpp"
#include "latenz/skipped.hpp"
#include "latenz/split_mix.hpp"
#include "latenz/time.hpp"
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

constexpr bool grants_every_second() {
  constexpr latenz::Duration distances[] = {latenz::Duration(10)};
  latenz::DistanceMonitor<1> monitor(distances);
  return monitor.accept(latenz::Instant(0)) && !monitor.accept(latenz::Instant(9)) &&
         monitor.accept(latenz::Instant(10));
}

static_assert(grants_every_second());

constexpr bool permits_one_a_period() {
  latenz::Limiter<1> limiter({}, latenz::Duration(10), latenz::Duration(2));
  limiter.record(latenz::Instant(0));
  return !limiter.permits(latenz::Instant(7)) && limiter.permits(latenz::Instant(8));
}

static_assert(permits_one_a_period());
static_assert(latenz::Duration::unbounded() + latenz::Duration(1) == latenz::Duration::unbounded());

}  // namespace

bool record_latency(latenz::Histogram& histogram, latenz::Moments& moments, std::int64_t value) {
  moments.add(value);
  return histogram.record(value);
}

latenz::RankInterval scan(latenz::SampleScan& samples, const std::int64_t* values, std::size_t n) {
  samples.add(values, n);
  return samples.locate(samples.moments().n());
}

bool decide(latenz::DistanceMonitor<5>& monitor, latenz::Instant at) { return monitor.accept(at); }

void learn(latenz::DistanceLearner<5>& learner, latenz::Instant at) { learner.observe(at); }

void finish_learning(latenz::Duration* learned, const latenz::Duration* allowed,
                     std::size_t length) {
  latenz::close_super_additively({learned, length});
  latenz::raise_to({learned, length}, {allowed, length});
}

void start_monitor(latenz::DistanceMonitor<5>& monitor, const latenz::Duration* distances,
                   std::size_t length) {
  monitor = latenz::DistanceMonitor<5>({distances, length});
}

void send_note(void (*print)(std::string_view line), std::string_view note) {
  latenz::FrameSender(print, 0).text(latenz::FrameKind::note, note);
}

latenz::FrameDecoder::Step receive(latenz::FrameDecoder& decoder, char character) {
  return decoder.feed(character);
}
