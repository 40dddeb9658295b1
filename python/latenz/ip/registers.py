# SPDX-License-Identifier: Apache-2.0
# Generated from hdl/registers/*.rdl by hdl/registers/generate: edit those, not this.
"""Registers of the IPs: byte offsets, and the fields within their words."""

from typing import NamedTuple


class Field(NamedTuple):
    """Bits low to low + width - 1 of the register at a byte offset."""

    offset: int
    low: int
    width: int

    def of(self, word: int) -> int:
        """Return the field's value in the register's word."""
        return (word >> self.low) & ((1 << self.width) - 1)

    def at(self, value: int) -> int:
        """Return the word whose only contents is this field's value.

        Raises:
            ValueError: the value does not fit.
        """
        if not 0 <= value < 1 << self.width:
            raise ValueError(f"{value} does not fit in {self.width} bits")
        return value << self.low


LATENCIES_IP_OFFSETS = {
    "we": 0x00,
    "alarm_lat": 0x04,
    "last": 0x08,
    "max": 0x0C,
    "min": 0x10,
    "num": 0x14,
    "alarm": 0x18,
    "identification": 0x20,
    "configuration": 0x24,
    "features": 0x28,
    "clock_frequency_hz": 0x2C,
    "mode": 0x30,
    "command": 0x34,
    "status": 0x38,
    "alarm_lat_high": 0x3C,
    "last_high": 0x40,
    "max_high": 0x44,
    "min_high": 0x48,
    "orphans": 0x4C,
    "overlaps": 0x50,
    "missed": 0x54,
    "saturations": 0x58,
    "timeout": 0x5C,
    "timeouts": 0x60,
    "interrupt_status": 0x64,
    "interrupt_enable": 0x68,
    "write_position": 0x6C,
    "post_trigger": 0x70,
    "trigger_position": 0x74,
    "frozen_end": 0x78,
    "frozen_count": 0x7C,
    "snapshot_num": 0x80,
    "snapshot_last": 0x84,
    "snapshot_last_high": 0x88,
    "snapshot_max": 0x8C,
    "snapshot_max_high": 0x90,
    "snapshot_min": 0x94,
    "snapshot_min_high": 0x98,
    "snapshot_sum_0": 0x9C,
    "snapshot_sum_1": 0xA0,
    "snapshot_sum_of_squares_0": 0xA4,
    "snapshot_sum_of_squares_1": 0xA8,
    "snapshot_sum_of_squares_2": 0xAC,
    "snapshot_sum_of_squares_3": 0xB0,
    "snapshot_time": 0xB4,
    "snapshot_time_high": 0xB8,
    "snapshot_orphans": 0xBC,
    "snapshot_overlaps": 0xC0,
    "snapshot_missed": 0xC4,
    "snapshot_saturations": 0xC8,
    "histogram_overflow": 0xCC,
    "histogram_shift": 0xD0,
    "stream_dropped": 0xD4,
    "stream_sent": 0xD8,
    "self_test_delay": 0xE0,
    "self_test_count": 0xE4,
    "time_low": 0xE8,
    "time_high": 0xEC,
}

LATENCIES_IP_FIELDS = {
    "we": Field(0x00, 0, 1),
    "alarm_lat": Field(0x04, 0, 32),
    "last": Field(0x08, 0, 32),
    "max": Field(0x0C, 0, 32),
    "min": Field(0x10, 0, 32),
    "num": Field(0x14, 0, 32),
    "alarm": Field(0x18, 0, 1),
    "identification_minor": Field(0x20, 0, 8),
    "identification_major": Field(0x20, 8, 8),
    "identification_letters": Field(0x20, 16, 16),
    "configuration_latency_width": Field(0x24, 0, 8),
    "configuration_log2_depth": Field(0x24, 8, 5),
    "configuration_overlap_policy": Field(0x24, 16, 2),
    "configuration_synchroniser_stages": Field(0x24, 18, 2),
    "configuration_log2_bins": Field(0x24, 20, 5),
    "configuration_sub_bits": Field(0x24, 25, 4),
    "configuration_log_linear": Field(0x24, 29, 1),
    "features_counters": Field(0x28, 0, 1),
    "features_watchdog": Field(0x28, 1, 1),
    "features_time_stamp": Field(0x28, 2, 1),
    "features_snapshot": Field(0x28, 3, 1),
    "features_sums": Field(0x28, 4, 1),
    "features_histogram": Field(0x28, 5, 1),
    "features_stream": Field(0x28, 6, 1),
    "features_freeze": Field(0x28, 7, 1),
    "features_self_test": Field(0x28, 8, 1),
    "features_wide_num": Field(0x28, 9, 1),
    "features_shared_time": Field(0x28, 10, 1),
    "clock_frequency_hz": Field(0x2C, 0, 32),
    "mode_wrap": Field(0x30, 0, 1),
    "mode_histogram_read_clears": Field(0x30, 1, 1),
    "mode_freeze_on_alarm": Field(0x30, 2, 1),
    "command_snapshot": Field(0x34, 0, 1),
    "command_self_test": Field(0x34, 1, 1),
    "status_open": Field(0x38, 0, 1),
    "status_full": Field(0x38, 1, 1),
    "status_wrapped": Field(0x38, 2, 1),
    "status_num_stopped": Field(0x38, 3, 1),
    "status_saturated": Field(0x38, 4, 1),
    "status_ready": Field(0x38, 5, 1),
    "status_self_test_running": Field(0x38, 6, 1),
    "status_frozen": Field(0x38, 7, 1),
    "status_frozen_half": Field(0x38, 8, 1),
    "alarm_lat_high": Field(0x3C, 0, 16),
    "last_high": Field(0x40, 0, 16),
    "max_high": Field(0x44, 0, 16),
    "min_high": Field(0x48, 0, 16),
    "orphans": Field(0x4C, 0, 32),
    "overlaps": Field(0x50, 0, 32),
    "missed": Field(0x54, 0, 32),
    "saturations": Field(0x58, 0, 32),
    "timeout": Field(0x5C, 0, 32),
    "timeouts": Field(0x60, 0, 32),
    "interrupt_status_alarm": Field(0x64, 0, 1),
    "interrupt_status_timeout": Field(0x64, 1, 1),
    "interrupt_status_self_test_done": Field(0x64, 2, 1),
    "interrupt_status_frozen": Field(0x64, 3, 1),
    "interrupt_enable_alarm": Field(0x68, 0, 1),
    "interrupt_enable_timeout": Field(0x68, 1, 1),
    "interrupt_enable_self_test_done": Field(0x68, 2, 1),
    "interrupt_enable_frozen": Field(0x68, 3, 1),
    "write_position": Field(0x6C, 0, 32),
    "post_trigger": Field(0x70, 0, 32),
    "trigger_position": Field(0x74, 0, 32),
    "frozen_end": Field(0x78, 0, 32),
    "frozen_count": Field(0x7C, 0, 32),
    "snapshot_num": Field(0x80, 0, 32),
    "snapshot_last": Field(0x84, 0, 32),
    "snapshot_last_high": Field(0x88, 0, 16),
    "snapshot_max": Field(0x8C, 0, 32),
    "snapshot_max_high": Field(0x90, 0, 16),
    "snapshot_min": Field(0x94, 0, 32),
    "snapshot_min_high": Field(0x98, 0, 16),
    "snapshot_sum_0": Field(0x9C, 0, 32),
    "snapshot_sum_1": Field(0xA0, 0, 32),
    "snapshot_sum_of_squares_0": Field(0xA4, 0, 32),
    "snapshot_sum_of_squares_1": Field(0xA8, 0, 32),
    "snapshot_sum_of_squares_2": Field(0xAC, 0, 32),
    "snapshot_sum_of_squares_3": Field(0xB0, 0, 32),
    "snapshot_time": Field(0xB4, 0, 32),
    "snapshot_time_high": Field(0xB8, 0, 32),
    "snapshot_orphans": Field(0xBC, 0, 32),
    "snapshot_overlaps": Field(0xC0, 0, 32),
    "snapshot_missed": Field(0xC4, 0, 32),
    "snapshot_saturations": Field(0xC8, 0, 32),
    "histogram_overflow": Field(0xCC, 0, 32),
    "histogram_shift": Field(0xD0, 0, 6),
    "stream_dropped": Field(0xD4, 0, 32),
    "stream_sent": Field(0xD8, 0, 32),
    "self_test_delay": Field(0xE0, 0, 32),
    "self_test_count": Field(0xE4, 0, 32),
    "time_low": Field(0xE8, 0, 32),
    "time_high": Field(0xEC, 0, 32),
}

RANDOM_DATA_GENERATOR_OFFSETS = {
    "data": 0x00,
    "seed": 0x04,
    "words": 0x08,
    "level": 0x0C,
    "status": 0x10,
    "overruns": 0x14,
    "requests": 0x18,
}

RANDOM_DATA_GENERATOR_FIELDS = {
    "data": Field(0x00, 0, 32),
    "seed": Field(0x04, 0, 32),
    "words": Field(0x08, 0, 32),
    "level": Field(0x0C, 0, 32),
    "status_empty": Field(0x10, 0, 1),
    "status_full": Field(0x10, 1, 1),
    "status_busy": Field(0x10, 2, 1),
    "overruns": Field(0x14, 0, 32),
    "requests": Field(0x18, 0, 32),
}

STREAM_RING_WRITER_OFFSETS = {
    "enable": 0x00,
    "base_low": 0x04,
    "base_high": 0x08,
    "size_log2": 0x0C,
    "written": 0x10,
    "consumed": 0x14,
    "dropped": 0x18,
    "status": 0x1C,
    "threshold": 0x20,
}

STREAM_RING_WRITER_FIELDS = {
    "enable": Field(0x00, 0, 1),
    "base_low": Field(0x04, 4, 28),
    "base_high": Field(0x08, 0, 32),
    "size_log2": Field(0x0C, 0, 5),
    "written": Field(0x10, 0, 32),
    "consumed": Field(0x14, 0, 32),
    "dropped": Field(0x18, 0, 32),
    "status_full": Field(0x1C, 0, 1),
    "status_idle": Field(0x1C, 1, 1),
    "status_bus_error": Field(0x1C, 2, 1),
    "threshold": Field(0x20, 0, 32),
}
