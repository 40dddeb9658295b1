// SPDX-License-Identifier: Apache-2.0
// What a Latencies IP was built with: the widths, and which registers it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "latenz/ip/register_access.hpp"
#include "latenz/ip/registers/latencies_ip.hpp"

namespace latenz::ip {

namespace s01 = registers::latencies_ip;

/// What happens to an interrupt that comes while one is being measured.
enum class OverlapPolicy : std::uint8_t { drop, restart, queue };

/// Regions of the window with samples (S00), in the order of the address.
enum class Region : std::uint8_t {
  latency_low,
  latency_high,
  time_stamp_low,
  time_stamp_high,
  histogram
};

struct Configuration {
  std::uint32_t latency_width = 16;            ///< bits
  std::uint32_t depth = 512;                   ///< samples in the memory
  OverlapPolicy policy = OverlapPolicy::drop;  ///< known only if `extended`
  std::uint32_t synchroniser_stages = 0;       ///< known only if `extended`
  std::uint32_t histogram_bins = 0;            ///< 0 without histogram
  std::uint32_t histogram_sub_bits = 0;        ///< of a log-linear histogram
  bool log_linear = false;                     ///< the histogram is; else linear
  std::uint32_t clock_frequency_hz = 0;        ///< of `aclk`; 0: the IP cannot tell
  bool extended = false;                       ///< has the registers from 0x20 on
  bool counters = false;
  bool watchdog = false;
  bool time_stamp = false;
  bool snapshot = false;
  bool sums = false;
  bool histogram = false;
  bool stream = false;
  bool freeze = false;
  bool self_test = false;
  bool wide_num = false;     ///< `num` has 32 bits; else 16
  bool shared_time = false;  ///< time stamps are of a counter that others share

  /// The configuration of the publication. It cannot be read from the IP: who uses it must know.
  static constexpr Configuration published() { return {}; }

  /// What four registers of an IP with additions say; nothing if `identification` is not that of a
  /// Latencies IP of the major version that this driver knows.
  static constexpr std::optional<Configuration> decode(std::uint32_t identification,
                                                       std::uint32_t configuration,
                                                       std::uint32_t features,
                                                       std::uint32_t clock_frequency_hz) {
    constexpr std::uint32_t fixed = ~s01::identification_minor_mask;
    if ((identification & fixed) != (s01::identification_reset & fixed)) return std::nullopt;
    const auto field = [configuration](std::uint32_t mask, std::uint32_t shift) {
      return (configuration & mask) >> shift;
    };
    const auto has = [features](std::uint32_t mask) { return (features & mask) != 0; };
    Configuration found{
        .latency_width =
            field(s01::configuration_latency_width_mask, s01::configuration_latency_width_shift),
        .depth =
            1U << field(s01::configuration_log2_depth_mask, s01::configuration_log2_depth_shift),
        .policy = static_cast<OverlapPolicy>(
            field(s01::configuration_overlap_policy_mask, s01::configuration_overlap_policy_shift)),
        .synchroniser_stages = field(s01::configuration_synchroniser_stages_mask,
                                     s01::configuration_synchroniser_stages_shift),
        .clock_frequency_hz = clock_frequency_hz,
        .extended = true,
        .counters = has(s01::features_counters_mask),
        .watchdog = has(s01::features_watchdog_mask),
        .time_stamp = has(s01::features_time_stamp_mask),
        .snapshot = has(s01::features_snapshot_mask),
        .sums = has(s01::features_sums_mask),
        .histogram = has(s01::features_histogram_mask),
        .stream = has(s01::features_stream_mask),
        .freeze = has(s01::features_freeze_mask),
        .self_test = has(s01::features_self_test_mask),
        .wide_num = has(s01::features_wide_num_mask),
        .shared_time = has(s01::features_shared_time_mask)};
    if (found.histogram) {
      found.histogram_bins =
          1U << field(s01::configuration_log2_bins_mask, s01::configuration_log2_bins_shift);
      found.log_linear = field(s01::configuration_log_linear_mask, 0) != 0;
      found.histogram_sub_bits =
          field(s01::configuration_sub_bits_mask, s01::configuration_sub_bits_shift);
    }
    return found;
  }

  /// Reads it from an IP that has additions. The published configuration answers the first access
  /// with a bus error.
  template <RegisterReads Registers>
  static std::optional<Configuration> read(Registers& registers) {
    const std::uint32_t identification = registers.read(s01::identification_offset);
    const std::uint32_t configuration = registers.read(s01::configuration_offset);
    const std::uint32_t features = registers.read(s01::features_offset);
    return decode(identification, configuration, features,
                  registers.read(s01::clock_frequency_hz_offset));
  }

  /// The longest latency that fits in a sample, in cycles; a sample of it may stand for more.
  [[nodiscard]] constexpr std::uint64_t longest() const {
    return (std::uint64_t{1} << latency_width) - 1;
  }

  /// The largest `num`: so many samples or more.
  [[nodiscard]] constexpr std::uint32_t largest_num() const {
    return wide_num ? 0xFFFF'FFFFU : 0xFFFFU;
  }

  /// Latencies take two words.
  [[nodiscard]] constexpr bool is_wide() const { return latency_width > 32; }

  /// Whether there is a register at a byte offset of S01.
  [[nodiscard]] constexpr bool has_register(std::uint32_t offset) const {
    if (offset % 4 != 0) return false;
    if (offset <= s01::alarm_offset) return true;
    if (offset < s01::identification_offset) return false;
    const auto between = [offset](std::uint32_t first, std::uint32_t last) {
      return first <= offset && offset <= last;
    };
    switch (offset) {
      case s01::snapshot_last_high_offset:
      case s01::snapshot_max_high_offset:
      case s01::snapshot_min_high_offset:
        return snapshot && is_wide();
      default:
        break;
    }
    if (offset <= s01::status_offset) return extended;
    if (between(s01::alarm_lat_high_offset, s01::min_high_offset)) return is_wide();
    if (between(s01::orphans_offset, s01::saturations_offset)) return counters;
    if (between(s01::timeout_offset, s01::timeouts_offset)) return watchdog;
    if (between(s01::interrupt_status_offset, s01::write_position_offset)) return extended;
    if (between(s01::post_trigger_offset, s01::frozen_count_offset)) return freeze;
    if (between(s01::snapshot_num_offset, s01::snapshot_min_offset)) return snapshot;
    if (between(s01::snapshot_sum_0_offset, s01::snapshot_sum_of_squares_3_offset)) return sums;
    if (between(s01::snapshot_time_offset, s01::snapshot_time_high_offset)) {
      return snapshot && time_stamp;
    }
    if (between(s01::snapshot_orphans_offset, s01::snapshot_saturations_offset)) {
      return snapshot && counters;
    }
    if (between(s01::histogram_overflow_offset, s01::histogram_shift_offset)) return histogram;
    if (between(s01::stream_dropped_offset, s01::stream_sent_offset)) return stream;
    if (between(s01::self_test_delay_offset, s01::self_test_count_offset)) return self_test;
    return between(s01::time_low_offset, s01::time_high_offset) && time_stamp;
  }

  /// Whether the register at a byte offset of S01 is there and takes writes.
  [[nodiscard]] constexpr bool is_writable(std::uint32_t offset) const {
    switch (offset) {
      case s01::we_offset:
      case s01::alarm_lat_offset:
      case s01::alarm_offset:
      case s01::mode_offset:
      case s01::command_offset:
      case s01::alarm_lat_high_offset:
      case s01::timeout_offset:
      case s01::interrupt_status_offset:
      case s01::interrupt_enable_offset:
      case s01::post_trigger_offset:
      case s01::histogram_shift_offset:
      case s01::self_test_delay_offset:
      case s01::self_test_count_offset:
        return has_register(offset);
      default:
        return false;
    }
  }

  /// Whether the window with samples has a region.
  [[nodiscard]] constexpr bool has_region(Region region) const {
    switch (region) {
      case Region::latency_low:
        return true;
      case Region::latency_high:
        return is_wide();
      case Region::time_stamp_low:
      case Region::time_stamp_high:
        return time_stamp;
      case Region::histogram:
        return histogram;
    }
    return false;
  }

  /// Words that can be read in a region.
  [[nodiscard]] constexpr std::uint32_t words_of(Region region) const {
    if (!has_region(region)) return 0;
    return region == Region::histogram ? histogram_bins : depth;
  }

  /// Byte offset of a word in the window with samples.
  [[nodiscard]] constexpr std::uint32_t sample_offset(Region region, std::uint32_t index) const {
    const std::uint32_t words = histogram_bins > depth ? histogram_bins : depth;
    return 4 * (static_cast<std::uint32_t>(region) * words + index);
  }

  /// Whether the window with samples can be read at a byte offset.
  [[nodiscard]] constexpr bool has_sample_word(std::uint32_t offset) const {
    if (offset % 4 != 0) return false;
    const std::uint32_t region_bytes = sample_offset(Region::latency_high, 0);
    const std::uint32_t region = offset / region_bytes;
    return region <= static_cast<std::uint32_t>(Region::histogram) &&
           offset % region_bytes / 4 < words_of(static_cast<Region>(region));
  }
};

}  // namespace latenz::ip
