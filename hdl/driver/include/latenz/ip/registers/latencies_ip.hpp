// SPDX-License-Identifier: Apache-2.0
// Latencies IP, registers (S01): byte offsets, and where the fields are: value = (word & mask) >>
// shift. Resets are those of an IP with everything. Latencies are in cycles of aclk. Registers up
// to 0x18 are the published ones; every other exists only with its generics, and an absent one
// answers SLVERR.
// Generated from hdl/registers/latencies_ip.rdl by hdl/registers/generate: edit that, not this.
#pragma once

#include <cstdint>

namespace latenz::ip::registers::latencies_ip {

/// Write enable.
inline constexpr std::uint32_t we_offset = 0x00;
inline constexpr std::uint32_t we_reset = 0x00000000;
/// 1: measure. Writing 1 while 0 starts a new series; writing 0 ends it and aborts an open
/// measurement.
inline constexpr std::uint32_t we_mask = 0x00000001;
inline constexpr std::uint32_t we_shift = 0;

/// Alarm threshold.
inline constexpr std::uint32_t alarm_lat_offset = 0x04;
inline constexpr std::uint32_t alarm_lat_reset = 0xFFFFFFFF;
/// The alarm rises for latencies strictly greater than this; low word.
inline constexpr std::uint32_t alarm_lat_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t alarm_lat_shift = 0;

/// Last latency.
inline constexpr std::uint32_t last_offset = 0x08;
/// Latency of the newest sample, low word.
inline constexpr std::uint32_t last_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t last_shift = 0;

/// Greatest latency.
inline constexpr std::uint32_t max_offset = 0x0C;
/// Greatest latency of the series, low word; 0 before its first sample.
inline constexpr std::uint32_t max_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t max_shift = 0;

/// Least latency.
inline constexpr std::uint32_t min_offset = 0x10;
/// Least latency of the series, low word; all ones before its first sample.
inline constexpr std::uint32_t min_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t min_shift = 0;

/// Number of samples.
inline constexpr std::uint32_t num_offset = 0x14;
/// Samples of the series; stops at its greatest value, which means that many or more.
inline constexpr std::uint32_t num_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t num_shift = 0;

/// Alarm.
inline constexpr std::uint32_t alarm_offset = 0x18;
inline constexpr std::uint32_t alarm_reset = 0x00000000;
/// A latency was greater than alarm_lat, or beyond what its width can hold.
inline constexpr std::uint32_t alarm_mask = 0x00000001;
inline constexpr std::uint32_t alarm_shift = 0;

/// Identification; exists if extended_g.
inline constexpr std::uint32_t identification_offset = 0x20;
inline constexpr std::uint32_t identification_reset = 0x4C5A0100;
/// Version of the register map, minor.
inline constexpr std::uint32_t identification_minor_mask = 0x000000FF;
inline constexpr std::uint32_t identification_minor_shift = 0;
/// Version of the register map, major.
inline constexpr std::uint32_t identification_major_mask = 0x0000FF00;
inline constexpr std::uint32_t identification_major_shift = 8;
/// The letters LZ.
inline constexpr std::uint32_t identification_letters_mask = 0xFFFF0000;
inline constexpr std::uint32_t identification_letters_shift = 16;

/// Configuration; exists if extended_g.
inline constexpr std::uint32_t configuration_offset = 0x24;
/// Width of a latency in bits.
inline constexpr std::uint32_t configuration_latency_width_mask = 0x000000FF;
inline constexpr std::uint32_t configuration_latency_width_shift = 0;
/// Base-two logarithm of the depth.
inline constexpr std::uint32_t configuration_log2_depth_mask = 0x00001F00;
inline constexpr std::uint32_t configuration_log2_depth_shift = 8;
/// Overlap policy: 0 drop, 1 restart, 2 queue.
inline constexpr std::uint32_t configuration_overlap_policy_mask = 0x00030000;
inline constexpr std::uint32_t configuration_overlap_policy_shift = 16;
/// Stages of the synchronisers.
inline constexpr std::uint32_t configuration_synchroniser_stages_mask = 0x000C0000;
inline constexpr std::uint32_t configuration_synchroniser_stages_shift = 18;
/// Base-two logarithm of the number of histogram bins.
inline constexpr std::uint32_t configuration_log2_bins_mask = 0x01F00000;
inline constexpr std::uint32_t configuration_log2_bins_shift = 20;
/// Sub-bin bits of a log-linear histogram.
inline constexpr std::uint32_t configuration_sub_bits_mask = 0x1E000000;
inline constexpr std::uint32_t configuration_sub_bits_shift = 25;
/// 1: the histogram is log-linear.
inline constexpr std::uint32_t configuration_log_linear_mask = 0x20000000;
inline constexpr std::uint32_t configuration_log_linear_shift = 29;

/// Features; exists if extended_g.
inline constexpr std::uint32_t features_offset = 0x28;
/// counters_g
inline constexpr std::uint32_t features_counters_mask = 0x00000001;
inline constexpr std::uint32_t features_counters_shift = 0;
/// watchdog_g
inline constexpr std::uint32_t features_watchdog_mask = 0x00000002;
inline constexpr std::uint32_t features_watchdog_shift = 1;
/// time_stamp_g
inline constexpr std::uint32_t features_time_stamp_mask = 0x00000004;
inline constexpr std::uint32_t features_time_stamp_shift = 2;
/// snapshot_g
inline constexpr std::uint32_t features_snapshot_mask = 0x00000008;
inline constexpr std::uint32_t features_snapshot_shift = 3;
/// sums_g
inline constexpr std::uint32_t features_sums_mask = 0x00000010;
inline constexpr std::uint32_t features_sums_shift = 4;
/// histogram_g
inline constexpr std::uint32_t features_histogram_mask = 0x00000020;
inline constexpr std::uint32_t features_histogram_shift = 5;
/// stream_g
inline constexpr std::uint32_t features_stream_mask = 0x00000040;
inline constexpr std::uint32_t features_stream_shift = 6;
/// freeze_g
inline constexpr std::uint32_t features_freeze_mask = 0x00000080;
inline constexpr std::uint32_t features_freeze_shift = 7;
/// self_test_g
inline constexpr std::uint32_t features_self_test_mask = 0x00000100;
inline constexpr std::uint32_t features_self_test_shift = 8;
/// num is 32 bits wide.
inline constexpr std::uint32_t features_wide_num_mask = 0x00000200;
inline constexpr std::uint32_t features_wide_num_shift = 9;
/// shared_time_g
inline constexpr std::uint32_t features_shared_time_mask = 0x00000400;
inline constexpr std::uint32_t features_shared_time_shift = 10;

/// Clock frequency; exists if extended_g.
inline constexpr std::uint32_t clock_frequency_hz_offset = 0x2C;
/// Frequency of aclk in hertz.
inline constexpr std::uint32_t clock_frequency_hz_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t clock_frequency_hz_shift = 0;

/// Mode; exists if extended_g.
inline constexpr std::uint32_t mode_offset = 0x30;
inline constexpr std::uint32_t mode_reset = 0x00000000;
/// 1: the sample memory is a ring; 0: it stops when full.
inline constexpr std::uint32_t mode_wrap_mask = 0x00000001;
inline constexpr std::uint32_t mode_wrap_shift = 0;
/// 1: reading a bin of the histogram clears it.
inline constexpr std::uint32_t mode_histogram_read_clears_mask = 0x00000002;
inline constexpr std::uint32_t mode_histogram_read_clears_shift = 1;
/// 1: an alarm freezes, too; 0: a new maximum only.
inline constexpr std::uint32_t mode_freeze_on_alarm_mask = 0x00000004;
inline constexpr std::uint32_t mode_freeze_on_alarm_shift = 2;

/// Command; exists if extended_g.
inline constexpr std::uint32_t command_offset = 0x34;
inline constexpr std::uint32_t command_reset = 0x00000000;
/// Latches all snapshot registers in one cycle.
inline constexpr std::uint32_t command_snapshot_mask = 0x00000001;
inline constexpr std::uint32_t command_snapshot_shift = 0;
/// Starts the self test.
inline constexpr std::uint32_t command_self_test_mask = 0x00000002;
inline constexpr std::uint32_t command_self_test_shift = 1;

/// Status; exists if extended_g.
inline constexpr std::uint32_t status_offset = 0x38;
/// A measurement is open.
inline constexpr std::uint32_t status_open_mask = 0x00000001;
inline constexpr std::uint32_t status_open_shift = 0;
/// The sample memory is full.
inline constexpr std::uint32_t status_full_mask = 0x00000002;
inline constexpr std::uint32_t status_full_shift = 1;
/// The ring has overwritten samples.
inline constexpr std::uint32_t status_wrapped_mask = 0x00000004;
inline constexpr std::uint32_t status_wrapped_shift = 2;
/// num has reached its greatest value.
inline constexpr std::uint32_t status_num_stopped_mask = 0x00000008;
inline constexpr std::uint32_t status_num_stopped_shift = 3;
/// A latency of the series was beyond its width.
inline constexpr std::uint32_t status_saturated_mask = 0x00000010;
inline constexpr std::uint32_t status_saturated_shift = 4;
/// The series has begun: edges are measured.
inline constexpr std::uint32_t status_ready_mask = 0x00000020;
inline constexpr std::uint32_t status_ready_shift = 5;
/// The self test is running.
inline constexpr std::uint32_t status_self_test_running_mask = 0x00000040;
inline constexpr std::uint32_t status_self_test_running_shift = 6;
/// A frozen half exists.
inline constexpr std::uint32_t status_frozen_mask = 0x00000080;
inline constexpr std::uint32_t status_frozen_shift = 7;
/// Which half is frozen.
inline constexpr std::uint32_t status_frozen_half_mask = 0x00000100;
inline constexpr std::uint32_t status_frozen_half_shift = 8;

/// Alarm threshold, high word; exists if latency_width_g > 32.
inline constexpr std::uint32_t alarm_lat_high_offset = 0x3C;
inline constexpr std::uint32_t alarm_lat_high_reset = 0x0000FFFF;
/// Bits 47 to 32.
inline constexpr std::uint32_t alarm_lat_high_mask = 0x0000FFFF;
inline constexpr std::uint32_t alarm_lat_high_shift = 0;

/// Last latency, high word; exists if latency_width_g > 32.
inline constexpr std::uint32_t last_high_offset = 0x40;
/// Bits 47 to 32.
inline constexpr std::uint32_t last_high_mask = 0x0000FFFF;
inline constexpr std::uint32_t last_high_shift = 0;

/// Greatest latency, high word; exists if latency_width_g > 32.
inline constexpr std::uint32_t max_high_offset = 0x44;
/// Bits 47 to 32.
inline constexpr std::uint32_t max_high_mask = 0x0000FFFF;
inline constexpr std::uint32_t max_high_shift = 0;

/// Least latency, high word; exists if latency_width_g > 32.
inline constexpr std::uint32_t min_high_offset = 0x48;
/// Bits 47 to 32.
inline constexpr std::uint32_t min_high_mask = 0x0000FFFF;
inline constexpr std::uint32_t min_high_shift = 0;

/// Orphans; exists if counters_g.
inline constexpr std::uint32_t orphans_offset = 0x4C;
/// Acknowledgements with nothing open and no interrupt in the same cycle; stops at its maximum.
inline constexpr std::uint32_t orphans_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t orphans_shift = 0;

/// Overlaps; exists if counters_g.
inline constexpr std::uint32_t overlaps_offset = 0x50;
/// Interrupts while a measurement was open; stops at its maximum.
inline constexpr std::uint32_t overlaps_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t overlaps_shift = 0;

/// Missed; exists if counters_g.
inline constexpr std::uint32_t missed_offset = 0x54;
/// Starts that got no sample: dropped, replaced, lost to a full queue, timed out; stops at its
/// maximum.
inline constexpr std::uint32_t missed_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t missed_shift = 0;

/// Saturations; exists if counters_g.
inline constexpr std::uint32_t saturations_offset = 0x58;
/// Samples beyond the width of a latency; stops at its maximum.
inline constexpr std::uint32_t saturations_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t saturations_shift = 0;

/// Time-out; exists if watchdog_g.
inline constexpr std::uint32_t timeout_offset = 0x5C;
inline constexpr std::uint32_t timeout_reset = 0x00000000;
/// Cycles after which an open measurement is given up; 0: never.
inline constexpr std::uint32_t timeout_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t timeout_shift = 0;

/// Time-outs; exists if watchdog_g.
inline constexpr std::uint32_t timeouts_offset = 0x60;
/// Measurements given up; stops at its maximum.
inline constexpr std::uint32_t timeouts_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t timeouts_shift = 0;

/// Interrupt status; exists if extended_g.
inline constexpr std::uint32_t interrupt_status_offset = 0x64;
inline constexpr std::uint32_t interrupt_status_reset = 0x00000000;
/// The alarm rose.
inline constexpr std::uint32_t interrupt_status_alarm_mask = 0x00000001;
inline constexpr std::uint32_t interrupt_status_alarm_shift = 0;
/// A measurement timed out.
inline constexpr std::uint32_t interrupt_status_timeout_mask = 0x00000002;
inline constexpr std::uint32_t interrupt_status_timeout_shift = 1;
/// The self test is done.
inline constexpr std::uint32_t interrupt_status_self_test_done_mask = 0x00000004;
inline constexpr std::uint32_t interrupt_status_self_test_done_shift = 2;
/// A half of the sample memory was frozen.
inline constexpr std::uint32_t interrupt_status_frozen_mask = 0x00000008;
inline constexpr std::uint32_t interrupt_status_frozen_shift = 3;

/// Interrupt enable; exists if extended_g.
inline constexpr std::uint32_t interrupt_enable_offset = 0x68;
inline constexpr std::uint32_t interrupt_enable_reset = 0x00000000;
/// The alarm interrupts.
inline constexpr std::uint32_t interrupt_enable_alarm_mask = 0x00000001;
inline constexpr std::uint32_t interrupt_enable_alarm_shift = 0;
/// A time-out interrupts.
inline constexpr std::uint32_t interrupt_enable_timeout_mask = 0x00000002;
inline constexpr std::uint32_t interrupt_enable_timeout_shift = 1;
/// The end of the self test interrupts.
inline constexpr std::uint32_t interrupt_enable_self_test_done_mask = 0x00000004;
inline constexpr std::uint32_t interrupt_enable_self_test_done_shift = 2;
/// A frozen half interrupts.
inline constexpr std::uint32_t interrupt_enable_frozen_mask = 0x00000008;
inline constexpr std::uint32_t interrupt_enable_frozen_shift = 3;

/// Write position; exists if extended_g.
inline constexpr std::uint32_t write_position_offset = 0x6C;
/// Index in the sample memory that the next sample takes.
inline constexpr std::uint32_t write_position_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t write_position_shift = 0;

/// Post-trigger samples; exists if freeze_g.
inline constexpr std::uint32_t post_trigger_offset = 0x70;
inline constexpr std::uint32_t post_trigger_reset = 0x00000000;
/// Samples stored after a trigger before the half freezes.
inline constexpr std::uint32_t post_trigger_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t post_trigger_shift = 0;

/// Trigger position; exists if freeze_g.
inline constexpr std::uint32_t trigger_position_offset = 0x74;
/// Index of the trigger within the frozen half.
inline constexpr std::uint32_t trigger_position_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t trigger_position_shift = 0;

/// Frozen end; exists if freeze_g.
inline constexpr std::uint32_t frozen_end_offset = 0x78;
/// Index after the last sample, within the frozen half.
inline constexpr std::uint32_t frozen_end_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t frozen_end_shift = 0;

/// Frozen count; exists if freeze_g.
inline constexpr std::uint32_t frozen_count_offset = 0x7C;
/// Valid samples of the frozen half, at most half the depth.
inline constexpr std::uint32_t frozen_count_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t frozen_count_shift = 0;

/// Snapshot of num; exists if snapshot_g.
inline constexpr std::uint32_t snapshot_num_offset = 0x80;
/// num at the snapshot.
inline constexpr std::uint32_t snapshot_num_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_num_shift = 0;

/// Snapshot of last; exists if snapshot_g.
inline constexpr std::uint32_t snapshot_last_offset = 0x84;
/// last at the snapshot.
inline constexpr std::uint32_t snapshot_last_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_last_shift = 0;

/// Snapshot of last, high word; exists if snapshot_g && latency_width_g > 32.
inline constexpr std::uint32_t snapshot_last_high_offset = 0x88;
/// Bits 47 to 32.
inline constexpr std::uint32_t snapshot_last_high_mask = 0x0000FFFF;
inline constexpr std::uint32_t snapshot_last_high_shift = 0;

/// Snapshot of max; exists if snapshot_g.
inline constexpr std::uint32_t snapshot_max_offset = 0x8C;
/// max at the snapshot.
inline constexpr std::uint32_t snapshot_max_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_max_shift = 0;

/// Snapshot of max, high word; exists if snapshot_g && latency_width_g > 32.
inline constexpr std::uint32_t snapshot_max_high_offset = 0x90;
/// Bits 47 to 32.
inline constexpr std::uint32_t snapshot_max_high_mask = 0x0000FFFF;
inline constexpr std::uint32_t snapshot_max_high_shift = 0;

/// Snapshot of min; exists if snapshot_g.
inline constexpr std::uint32_t snapshot_min_offset = 0x94;
/// min at the snapshot.
inline constexpr std::uint32_t snapshot_min_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_min_shift = 0;

/// Snapshot of min, high word; exists if snapshot_g && latency_width_g > 32.
inline constexpr std::uint32_t snapshot_min_high_offset = 0x98;
/// Bits 47 to 32.
inline constexpr std::uint32_t snapshot_min_high_mask = 0x0000FFFF;
inline constexpr std::uint32_t snapshot_min_high_shift = 0;

/// Snapshot of the sum, word 0; exists if sums_g.
inline constexpr std::uint32_t snapshot_sum_0_offset = 0x9C;
/// Sum of the latencies of the series, bits 31 to 0.
inline constexpr std::uint32_t snapshot_sum_0_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_sum_0_shift = 0;

/// Snapshot of the sum, word 1; exists if sums_g.
inline constexpr std::uint32_t snapshot_sum_1_offset = 0xA0;
/// Bits 63 to 32.
inline constexpr std::uint32_t snapshot_sum_1_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_sum_1_shift = 0;

/// Snapshot of the sum of squares, word 0; exists if sums_g.
inline constexpr std::uint32_t snapshot_sum_of_squares_0_offset = 0xA4;
/// Sum of the squared latencies of the series, bits 31 to 0.
inline constexpr std::uint32_t snapshot_sum_of_squares_0_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_sum_of_squares_0_shift = 0;

/// Snapshot of the sum of squares, word 1; exists if sums_g.
inline constexpr std::uint32_t snapshot_sum_of_squares_1_offset = 0xA8;
/// Bits 63 to 32.
inline constexpr std::uint32_t snapshot_sum_of_squares_1_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_sum_of_squares_1_shift = 0;

/// Snapshot of the sum of squares, word 2; exists if sums_g.
inline constexpr std::uint32_t snapshot_sum_of_squares_2_offset = 0xAC;
/// Bits 95 to 64.
inline constexpr std::uint32_t snapshot_sum_of_squares_2_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_sum_of_squares_2_shift = 0;

/// Snapshot of the sum of squares, word 3; exists if sums_g.
inline constexpr std::uint32_t snapshot_sum_of_squares_3_offset = 0xB0;
/// Bits 127 to 96.
inline constexpr std::uint32_t snapshot_sum_of_squares_3_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_sum_of_squares_3_shift = 0;

/// Snapshot of the time; exists if snapshot_g && time_stamp_g.
inline constexpr std::uint32_t snapshot_time_offset = 0xB4;
/// The time-stamp counter at the snapshot, bits 31 to 0.
inline constexpr std::uint32_t snapshot_time_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_time_shift = 0;

/// Snapshot of the time, high word; exists if snapshot_g && time_stamp_g.
inline constexpr std::uint32_t snapshot_time_high_offset = 0xB8;
/// Bits 63 to 32.
inline constexpr std::uint32_t snapshot_time_high_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_time_high_shift = 0;

/// Snapshot of orphans; exists if snapshot_g && counters_g.
inline constexpr std::uint32_t snapshot_orphans_offset = 0xBC;
/// orphans at the snapshot.
inline constexpr std::uint32_t snapshot_orphans_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_orphans_shift = 0;

/// Snapshot of overlaps; exists if snapshot_g && counters_g.
inline constexpr std::uint32_t snapshot_overlaps_offset = 0xC0;
/// overlaps at the snapshot.
inline constexpr std::uint32_t snapshot_overlaps_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_overlaps_shift = 0;

/// Snapshot of missed; exists if snapshot_g && counters_g.
inline constexpr std::uint32_t snapshot_missed_offset = 0xC4;
/// missed at the snapshot.
inline constexpr std::uint32_t snapshot_missed_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_missed_shift = 0;

/// Snapshot of saturations; exists if snapshot_g && counters_g.
inline constexpr std::uint32_t snapshot_saturations_offset = 0xC8;
/// saturations at the snapshot.
inline constexpr std::uint32_t snapshot_saturations_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t snapshot_saturations_shift = 0;

/// Histogram overflow; exists if histogram_g.
inline constexpr std::uint32_t histogram_overflow_offset = 0xCC;
/// Samples beyond the last bin.
inline constexpr std::uint32_t histogram_overflow_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t histogram_overflow_shift = 0;

/// Histogram shift; exists if histogram_g.
inline constexpr std::uint32_t histogram_shift_offset = 0xD0;
inline constexpr std::uint32_t histogram_shift_reset = 0x00000000;
/// Linear histogram: a bin is 2 to this power cycles wide.
inline constexpr std::uint32_t histogram_shift_mask = 0x0000003F;
inline constexpr std::uint32_t histogram_shift_shift = 0;

/// Dropped beats; exists if stream_g.
inline constexpr std::uint32_t stream_dropped_offset = 0xD4;
/// Samples lost because the stream was not taken.
inline constexpr std::uint32_t stream_dropped_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t stream_dropped_shift = 0;

/// Sent beats; exists if stream_g.
inline constexpr std::uint32_t stream_sent_offset = 0xD8;
/// Samples handed over on the stream.
inline constexpr std::uint32_t stream_sent_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t stream_sent_shift = 0;

/// Self-test delay; exists if self_test_g.
inline constexpr std::uint32_t self_test_delay_offset = 0xE0;
inline constexpr std::uint32_t self_test_delay_reset = 0x00000000;
/// Latency of the first pair in cycles; every further one is a cycle longer.
inline constexpr std::uint32_t self_test_delay_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t self_test_delay_shift = 0;

/// Self-test count; exists if self_test_g.
inline constexpr std::uint32_t self_test_count_offset = 0xE4;
inline constexpr std::uint32_t self_test_count_reset = 0x00000000;
/// Pairs the self test generates.
inline constexpr std::uint32_t self_test_count_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t self_test_count_shift = 0;

/// Time; exists if time_stamp_g.
inline constexpr std::uint32_t time_low_offset = 0xE8;
/// The time-stamp counter, bits 31 to 0. Reading it latches time_high.
inline constexpr std::uint32_t time_low_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t time_low_shift = 0;

/// Time, high word; exists if time_stamp_g.
inline constexpr std::uint32_t time_high_offset = 0xEC;
/// Bits 63 to 32 as of the last read of time_low.
inline constexpr std::uint32_t time_high_mask = 0xFFFFFFFF;
inline constexpr std::uint32_t time_high_shift = 0;

}  // namespace latenz::ip::registers::latencies_ip
