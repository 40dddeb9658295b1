// SPDX-License-Identifier: Apache-2.0
// Driver of one Latencies IP: freestanding, without heap, exceptions or waiting.
//
// A call is a few register accesses; none blocks. Latencies and times are in cycles of the IP's
// clock. What the IP was not built with is refused (false, or nothing) without an access. One
// thread at a time; the interrupt handler of a measured interrupt need not touch the IP.
#pragma once

#include <cstdint>
#include <optional>

#include "latenz/ip/configuration.hpp"
#include "latenz/ip/register_access.hpp"
#include "latenz/ip/registers/latencies_ip.hpp"
#include "latenz/ip/results.hpp"

namespace latenz::ip {

/// Bits of the IP's interrupt.
enum class Interrupt : std::uint32_t {
  alarm = s01::interrupt_status_alarm_mask,
  timeout = s01::interrupt_status_timeout_mask,
  self_test_done = s01::interrupt_status_self_test_done_mask,
  frozen = s01::interrupt_status_frozen_mask
};

/// @tparam Registers how S01 is reached
/// @tparam Memory    how S00 is reached
template <RegisterAccess Registers, RegisterReads Memory = Registers>
class Latencies {
 public:
  /// @param configuration what the IP was built with: Configuration::published(), or what
  ///        Configuration::read said
  constexpr Latencies(Registers registers, Memory memory, const Configuration& configuration)
      : registers_(registers), memory_(memory), configuration_(configuration) {}

  [[nodiscard]] constexpr const Configuration& configuration() const { return configuration_; }

  // A series

  /// Forgets the samples so far and measures. With a histogram no interrupt counts before `ready`.
  /// The alarm, if raised, stays.
  void start_series() {
    write(s01::we_offset, 0);
    write(s01::we_offset, s01::we_mask);
  }

  /// Measures no more; an open measurement is given up. Everything stays readable.
  void stop_series() { write(s01::we_offset, 0); }

  [[nodiscard]] bool is_measuring() { return (read(s01::we_offset) & s01::we_mask) != 0; }

  /// Whether interrupts count: at once after the start, but with a histogram once it is cleared.
  [[nodiscard]] bool ready() {
    return configuration_.extended ? (status() & s01::status_ready_mask) != 0 : is_measuring();
  }

  /// Keeps the newest samples instead of the first: the memory becomes a ring. Before the start.
  bool keep_newest(bool wanted) { return set_mode(s01::mode_wrap_mask, wanted); }

  // The alarm

  /// Latencies of more cycles raise the alarm. False if the limit is above
  /// Configuration::longest(). On the way the limit is never below both the old and the new one.
  bool set_alarm_limit(std::uint64_t cycles) {
    if (cycles > configuration_.longest()) return false;
    if (configuration_.is_wide()) {
      write(s01::alarm_lat_high_offset, high(configuration_.longest()));
    }
    write(s01::alarm_lat_offset, low(cycles));
    if (configuration_.is_wide()) write(s01::alarm_lat_high_offset, high(cycles));
    return true;
  }

  [[nodiscard]] std::uint64_t alarm_limit() {
    return wide(s01::alarm_lat_offset, s01::alarm_lat_high_offset);
  }

  /// Stays until cleared.
  [[nodiscard]] bool alarm() { return (read(s01::alarm_offset) & s01::alarm_mask) != 0; }
  void clear_alarm() { write(s01::alarm_offset, s01::alarm_mask); }

  // Results

  [[nodiscard]] std::uint32_t num() { return read(s01::num_offset); }

  /// Statistics of one moment: from a snapshot where the IP has it, else by reading until two
  /// readings agree. Then they held together when `last` was read the second time: `max` only
  /// rises and `min` only falls, so neither has changed between the readings.
  ///
  /// @param attempts readings at most, without snapshot
  /// @return nothing if samples came faster than they were read
  [[nodiscard]] std::optional<Statistics> statistics(unsigned attempts = 16) {
    if (configuration_.snapshot) {
      write(s01::command_offset, s01::command_snapshot_mask);
      return Statistics{.num = read(s01::snapshot_num_offset),
                        .last = wide(s01::snapshot_last_offset, s01::snapshot_last_high_offset),
                        .max = wide(s01::snapshot_max_offset, s01::snapshot_max_high_offset),
                        .min = wide(s01::snapshot_min_offset, s01::snapshot_min_high_offset)};
    }
    Statistics before = read_statistics();
    for (unsigned readings = 1; readings < attempts; ++readings) {
      const Statistics now = read_statistics();
      if (now == before) return now;
      before = now;
    }
    return std::nullopt;
  }

  /// Sums as of the last call of `statistics`.
  [[nodiscard]] std::optional<Sums> sums() {
    if (!configuration_.sums) return std::nullopt;
    return Sums{.sum = pair(s01::snapshot_sum_0_offset, s01::snapshot_sum_1_offset),
                .squares_low = pair(s01::snapshot_sum_of_squares_0_offset,
                                    s01::snapshot_sum_of_squares_1_offset),
                .squares_high = pair(s01::snapshot_sum_of_squares_2_offset,
                                     s01::snapshot_sum_of_squares_3_offset)};
  }

  /// Counters of now; with snapshots those of the last call of `statistics`.
  [[nodiscard]] std::optional<Counters> counters() {
    if (!configuration_.counters) return std::nullopt;
    const std::uint32_t first =
        configuration_.snapshot ? s01::snapshot_orphans_offset : s01::orphans_offset;
    return Counters{.orphans = read(first),
                    .overlaps = read(first + 4),
                    .missed = read(first + 8),
                    .saturations = read(first + 12)};
  }

  /// Whether a sample of this series stands for more than it says. The published configuration does
  /// not tell: there the maximum being Configuration::longest() is all that can be known.
  [[nodiscard]] std::optional<bool> saturated() {
    if (!configuration_.extended) return std::nullopt;
    return (status() & s01::status_saturated_mask) != 0;
  }

  /// How many samples the memory holds, from `oldest()` on. Without additions the memory does not
  /// wrap. None with the addition `freeze`, whose halves are told by `frozen_half`.
  [[nodiscard]] std::uint32_t stored() {
    if (configuration_.freeze) return 0;
    if (configuration_.extended &&
        (status() & (s01::status_full_mask | s01::status_wrapped_mask)) != 0) {
      return configuration_.depth;
    }
    const std::uint32_t taken = num();
    return taken < configuration_.depth ? taken : configuration_.depth;
  }

  /// Index in the memory of the oldest sample stored.
  [[nodiscard]] std::uint32_t oldest() {
    if (!configuration_.extended || (status() & s01::status_wrapped_mask) == 0) return 0;
    return read(s01::write_position_offset) & (configuration_.depth - 1);
  }

  /// A sample of the memory.
  ///
  /// @param index below `configuration().depth`; sample i of a series is at (oldest() + i) % depth
  [[nodiscard]] Sample sample(std::uint32_t index) {
    Sample sample{.latency = word(Region::latency_low, index), .start = 0};
    if (configuration_.is_wide()) {
      sample.latency |= std::uint64_t{word(Region::latency_high, index)} << 32U;
    }
    if (configuration_.time_stamp) {
      sample.start = word(Region::time_stamp_low, index) |
                     std::uint64_t{word(Region::time_stamp_high, index)} << 32U;
    }
    return sample;
  }

  /// The counter that time stamps are taken from.
  [[nodiscard]] std::optional<std::uint64_t> now() {
    if (!configuration_.time_stamp) return std::nullopt;
    return pair(s01::time_low_offset,
                s01::time_high_offset);  // reading the low word latches the other
  }

  // Watchdog

  /// Gives a measurement up that is open for so many cycles; 0: never.
  bool set_timeout(std::uint32_t cycles) {
    return configuration_.watchdog && put(s01::timeout_offset, cycles);
  }

  /// Measurements given up in this series.
  [[nodiscard]] std::optional<std::uint32_t> timeouts() {
    if (!configuration_.watchdog) return std::nullopt;
    return read(s01::timeouts_offset);
  }

  // The IP's own interrupt

  /// Lets these, and no others, raise it.
  bool enable_interrupts(std::uint32_t bits) {
    return configuration_.extended && put(s01::interrupt_enable_offset, bits);
  }

  /// What has happened since it was cleared, whether it may interrupt or not.
  [[nodiscard]] std::uint32_t pending_interrupts() {
    return configuration_.extended ? read(s01::interrupt_status_offset) : 0;
  }

  bool clear_interrupts(std::uint32_t bits) {
    return configuration_.extended && put(s01::interrupt_status_offset, bits);
  }

  // Histogram

  /// Latencies of 2^shift cycles share a bin of a linear histogram. Before the start.
  bool set_histogram_shift(std::uint32_t shift) {
    if (!configuration_.histogram || configuration_.log_linear || shift > 63) return false;
    return put(s01::histogram_shift_offset, shift);
  }

  /// Whether reading a bin sets it to 0, in one step.
  bool clear_bins_when_read(bool wanted) {
    return configuration_.histogram && set_mode(s01::mode_histogram_read_clears_mask, wanted);
  }

  /// Samples in a bin.
  [[nodiscard]] std::optional<std::uint32_t> bin(std::uint32_t index) {
    if (index >= configuration_.histogram_bins) return std::nullopt;
    return word(Region::histogram, index);
  }

  /// Samples beyond the last bin.
  [[nodiscard]] std::optional<std::uint32_t> histogram_overflow() {
    if (!configuration_.histogram) return std::nullopt;
    return read(s01::histogram_overflow_offset);
  }

  /// The shortest latency of a bin; a bin's latencies end before the next bin's.
  [[nodiscard]] std::uint64_t bin_begin(std::uint32_t index) {
    if (!configuration_.log_linear) {
      const std::uint32_t shift = configuration_.histogram ? read(s01::histogram_shift_offset) : 0;
      return std::uint64_t{index} << shift;
    }
    const std::uint32_t sub_bits = configuration_.histogram_sub_bits;
    const std::uint32_t octave = index >> sub_bits;
    if (octave == 0) return index;
    const std::uint32_t within = index & ((1U << sub_bits) - 1);
    return std::uint64_t{(1U << sub_bits) + within} << (octave - 1);
  }

  // Freezing around a maximum

  /// A half of the memory is kept, `post_trigger` samples after each new maximum, or alarm if so
  /// wanted. Before the start.
  bool freeze_around_maximum(std::uint32_t post_trigger, bool on_alarm) {
    return configuration_.freeze && post_trigger < configuration_.depth / 2 &&
           set_mode(s01::mode_freeze_on_alarm_mask, on_alarm) &&
           put(s01::post_trigger_offset, post_trigger);
  }

  /// The half last frozen: read until two readings agree, since another one may be frozen between
  /// two registers.
  ///
  /// @param attempts readings at most
  /// @return nothing if none is frozen, or halves were frozen faster than they were read
  [[nodiscard]] std::optional<FrozenHalf> frozen_half(unsigned attempts = 16) {
    if (!configuration_.freeze) return std::nullopt;
    std::optional<FrozenHalf> before = read_frozen();
    for (unsigned readings = 1; before && readings < attempts; ++readings) {
      const std::optional<FrozenHalf> now = read_frozen();
      if (now == before) return now;
      before = now;
    }
    return std::nullopt;
  }

  /// Sample i of a frozen half, oldest first.
  ///
  /// @param i below its `count`
  [[nodiscard]] Sample frozen_sample(const FrozenHalf& frozen, std::uint32_t i) {
    const std::uint32_t half = configuration_.depth / 2;
    return sample((frozen.half * half) + ((frozen.end + half - frozen.count + i) % half));
  }

  // Self test

  /// Begins a self test in a new series: so many pairs of interrupt and acknowledgement made in the
  /// IP, `delay`, `delay + 1`, ... cycles apart; the inputs do not count meanwhile. It needs
  /// `ready` first where there is a histogram.
  bool start_self_test(std::uint32_t delay, std::uint32_t count) {
    if (!configuration_.self_test) return false;
    write(s01::self_test_delay_offset, delay);
    write(s01::self_test_count_offset, count);
    write(s01::command_offset, s01::command_self_test_mask);
    return true;
  }

  [[nodiscard]] bool self_test_running() {
    return configuration_.self_test && (status() & s01::status_self_test_running_mask) != 0;
  }

  // Stream

  /// Samples lost because the stream was not taken away.
  [[nodiscard]] std::optional<std::uint32_t> stream_dropped() {
    if (!configuration_.stream) return std::nullopt;
    return read(s01::stream_dropped_offset);
  }

  [[nodiscard]] std::optional<std::uint32_t> stream_sent() {
    if (!configuration_.stream) return std::nullopt;
    return read(s01::stream_sent_offset);
  }

 private:
  static constexpr std::uint32_t low(std::uint64_t value) {
    return static_cast<std::uint32_t>(value);
  }

  static constexpr std::uint32_t high(std::uint64_t value) {
    return static_cast<std::uint32_t>(value >> 32U);
  }

  [[nodiscard]] std::uint32_t read(std::uint32_t offset) { return registers_.read(offset); }
  void write(std::uint32_t offset, std::uint32_t value) { registers_.write(offset, value); }

  bool put(std::uint32_t offset, std::uint32_t value) {
    write(offset, value);
    return true;
  }

  bool set_mode(std::uint32_t bit, bool wanted) {
    if (!configuration_.extended) return false;
    const std::uint32_t others = read(s01::mode_offset) & ~bit;
    return put(s01::mode_offset, wanted ? others | bit : others);
  }

  [[nodiscard]] std::uint32_t status() { return read(s01::status_offset); }

  [[nodiscard]] std::optional<FrozenHalf> read_frozen() {
    const std::uint32_t now = status();
    if ((now & s01::status_frozen_mask) == 0) return std::nullopt;
    return FrozenHalf{.half = (now & s01::status_frozen_half_mask) != 0 ? 1U : 0U,
                      .trigger = read(s01::trigger_position_offset),
                      .end = read(s01::frozen_end_offset),
                      .count = read(s01::frozen_count_offset)};
  }

  [[nodiscard]] std::uint64_t pair(std::uint32_t low_offset, std::uint32_t high_offset) {
    const std::uint64_t low_word = read(low_offset);
    return low_word | std::uint64_t{read(high_offset)} << 32U;
  }

  /// A latency: its high word exists only where latencies are that wide.
  [[nodiscard]] std::uint64_t wide(std::uint32_t low_offset, std::uint32_t high_offset) {
    return configuration_.is_wide() ? pair(low_offset, high_offset) : read(low_offset);
  }

  [[nodiscard]] Statistics read_statistics() {
    return {.num = read(s01::num_offset),
            .last = wide(s01::last_offset, s01::last_high_offset),
            .max = wide(s01::max_offset, s01::max_high_offset),
            .min = wide(s01::min_offset, s01::min_high_offset)};
  }

  [[nodiscard]] std::uint32_t word(Region region, std::uint32_t index) {
    return memory_.read(configuration_.sample_offset(region, index));
  }

  Registers registers_;
  Memory memory_;
  Configuration configuration_;
};

}  // namespace latenz::ip
