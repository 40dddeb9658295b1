-- SPDX-License-Identifier: Apache-2.0
-- Latencies IP, registers (S01): addresses, and what passes between block and circuit.
-- Not for software: it has a C++ header and a Python module from the same source.
-- See ../doc/latencies_ip.md.
-- Generated from hdl/registers/latencies_ip.rdl by hdl/registers/generate: edit that, not this.

library ieee;
    use ieee.std_logic_1164.all;

package latencies_ip_registers_pkg is

    subtype word_t is std_logic_vector(31 downto 0);

    -- Word addresses: byte addresses / 4.
    constant we_index_c                        : natural := 0;
    constant alarm_lat_index_c                 : natural := 1;
    constant last_index_c                      : natural := 2;
    constant max_index_c                       : natural := 3;
    constant min_index_c                       : natural := 4;
    constant num_index_c                       : natural := 5;
    constant alarm_index_c                     : natural := 6;
    constant identification_index_c            : natural := 8;
    constant configuration_index_c             : natural := 9;
    constant features_index_c                  : natural := 10;
    constant clock_frequency_hz_index_c        : natural := 11;
    constant mode_index_c                      : natural := 12;
    constant command_index_c                   : natural := 13;
    constant status_index_c                    : natural := 14;
    constant alarm_lat_high_index_c            : natural := 15;
    constant last_high_index_c                 : natural := 16;
    constant max_high_index_c                  : natural := 17;
    constant min_high_index_c                  : natural := 18;
    constant orphans_index_c                   : natural := 19;
    constant overlaps_index_c                  : natural := 20;
    constant missed_index_c                    : natural := 21;
    constant saturations_index_c               : natural := 22;
    constant timeout_index_c                   : natural := 23;
    constant timeouts_index_c                  : natural := 24;
    constant interrupt_status_index_c          : natural := 25;
    constant interrupt_enable_index_c          : natural := 26;
    constant write_position_index_c            : natural := 27;
    constant post_trigger_index_c              : natural := 28;
    constant trigger_position_index_c          : natural := 29;
    constant frozen_end_index_c                : natural := 30;
    constant frozen_count_index_c              : natural := 31;
    constant snapshot_num_index_c              : natural := 32;
    constant snapshot_last_index_c             : natural := 33;
    constant snapshot_last_high_index_c        : natural := 34;
    constant snapshot_max_index_c              : natural := 35;
    constant snapshot_max_high_index_c         : natural := 36;
    constant snapshot_min_index_c              : natural := 37;
    constant snapshot_min_high_index_c         : natural := 38;
    constant snapshot_sum_0_index_c            : natural := 39;
    constant snapshot_sum_1_index_c            : natural := 40;
    constant snapshot_sum_of_squares_0_index_c : natural := 41;
    constant snapshot_sum_of_squares_1_index_c : natural := 42;
    constant snapshot_sum_of_squares_2_index_c : natural := 43;
    constant snapshot_sum_of_squares_3_index_c : natural := 44;
    constant snapshot_time_index_c             : natural := 45;
    constant snapshot_time_high_index_c        : natural := 46;
    constant snapshot_orphans_index_c          : natural := 47;
    constant snapshot_overlaps_index_c         : natural := 48;
    constant snapshot_missed_index_c           : natural := 49;
    constant snapshot_saturations_index_c      : natural := 50;
    constant histogram_overflow_index_c        : natural := 51;
    constant histogram_shift_index_c           : natural := 52;
    constant stream_dropped_index_c            : natural := 53;
    constant stream_sent_index_c               : natural := 54;
    constant self_test_delay_index_c           : natural := 56;
    constant self_test_count_index_c           : natural := 57;
    constant time_low_index_c                  : natural := 58;
    constant time_high_index_c                 : natural := 59;

    -- From the circuit to the register block. Words are zero where the circuit has no bits. _error:
    -- a read answers SLVERR.
    type from_hardware_t is record
        last                              : word_t;
        max                               : word_t;
        min                               : word_t;
        num                               : word_t;
        alarm                             : std_logic;
        configuration_latency_width       : std_logic_vector(7 downto 0);
        configuration_log2_depth          : std_logic_vector(4 downto 0);
        configuration_overlap_policy      : std_logic_vector(1 downto 0);
        configuration_synchroniser_stages : std_logic_vector(1 downto 0);
        configuration_log2_bins           : std_logic_vector(4 downto 0);
        configuration_sub_bits            : std_logic_vector(3 downto 0);
        configuration_log_linear          : std_logic;
        features_counters                 : std_logic;
        features_watchdog                 : std_logic;
        features_time_stamp               : std_logic;
        features_snapshot                 : std_logic;
        features_sums                     : std_logic;
        features_histogram                : std_logic;
        features_stream                   : std_logic;
        features_freeze                   : std_logic;
        features_self_test                : std_logic;
        features_wide_num                 : std_logic;
        features_shared_time              : std_logic;
        clock_frequency_hz                : word_t;
        status_open                       : std_logic;
        status_full                       : std_logic;
        status_wrapped                    : std_logic;
        status_num_stopped                : std_logic;
        status_saturated                  : std_logic;
        status_ready                      : std_logic;
        status_self_test_running          : std_logic;
        status_frozen                     : std_logic;
        status_frozen_half                : std_logic;
        last_high                         : word_t;
        max_high                          : word_t;
        min_high                          : word_t;
        orphans                           : word_t;
        overlaps                          : word_t;
        missed                            : word_t;
        saturations                       : word_t;
        timeouts                          : word_t;
        interrupt_status_alarm            : std_logic;
        interrupt_status_timeout          : std_logic;
        interrupt_status_self_test_done   : std_logic;
        interrupt_status_frozen           : std_logic;
        write_position                    : word_t;
        trigger_position                  : word_t;
        frozen_end                        : word_t;
        frozen_count                      : word_t;
        snapshot_num                      : word_t;
        snapshot_last                     : word_t;
        snapshot_last_high                : word_t;
        snapshot_max                      : word_t;
        snapshot_max_high                 : word_t;
        snapshot_min                      : word_t;
        snapshot_min_high                 : word_t;
        snapshot_sum_0                    : word_t;
        snapshot_sum_1                    : word_t;
        snapshot_sum_of_squares_0         : word_t;
        snapshot_sum_of_squares_1         : word_t;
        snapshot_sum_of_squares_2         : word_t;
        snapshot_sum_of_squares_3         : word_t;
        snapshot_time                     : word_t;
        snapshot_time_high                : word_t;
        snapshot_orphans                  : word_t;
        snapshot_overlaps                 : word_t;
        snapshot_missed                   : word_t;
        snapshot_saturations              : word_t;
        histogram_overflow                : word_t;
        stream_dropped                    : word_t;
        stream_sent                       : word_t;
        time_low                          : word_t;
        time_high                         : word_t;
    end record from_hardware_t;

    -- From the register block to the circuit. _next: the value after the coming clock edge; _clear:
    -- software writes 1; _read, _written: software does so in this cycle; _delivered: the data read
    -- are handed over in this cycle. Meaningless while aresetn is low.
    type to_hardware_t is record
        we                                    : std_logic;
        we_next                               : std_logic;
        alarm_lat                             : word_t;
        alarm_clear                           : std_logic;
        mode_wrap                             : std_logic;
        mode_histogram_read_clears            : std_logic;
        mode_freeze_on_alarm                  : std_logic;
        command_snapshot                      : std_logic;
        command_self_test                     : std_logic;
        alarm_lat_high                        : word_t;
        timeout                               : word_t;
        interrupt_status_alarm_clear          : std_logic;
        interrupt_status_timeout_clear        : std_logic;
        interrupt_status_self_test_done_clear : std_logic;
        interrupt_status_frozen_clear         : std_logic;
        interrupt_enable_alarm                : std_logic;
        interrupt_enable_timeout              : std_logic;
        interrupt_enable_self_test_done       : std_logic;
        interrupt_enable_frozen               : std_logic;
        post_trigger                          : word_t;
        histogram_shift                       : word_t;
        self_test_delay                       : word_t;
        self_test_count                       : word_t;
        time_low_read                         : std_logic;
    end record to_hardware_t;

end package latencies_ip_registers_pkg;
