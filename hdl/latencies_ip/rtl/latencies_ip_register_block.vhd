-- SPDX-License-Identifier: Apache-2.0
-- Latencies IP, registers (S01): the AXI4-Lite slave.
-- Address and data of a write are taken together. Absent, read-only and, where a register refuses,
-- unreadable addresses answer SLVERR and change nothing. The low two address bits, awprot and
-- arprot are ignored; strobes are honoured.
-- Not for other bus widths than 32 bits, nor for more than one transfer at a time.
-- See ../doc/latencies_ip.md.
-- Generated from hdl/registers/latencies_ip.rdl by hdl/registers/generate: edit that, not this.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_ip_registers_pkg.all;

entity latencies_ip_register_block is
    generic (
        extended_g      : boolean := false;
        latency_width_g : positive := 16;
        counters_g      : boolean := false;
        watchdog_g      : boolean := false;
        time_stamp_g    : boolean := false;
        snapshot_g      : boolean := false;
        sums_g          : boolean := false;
        histogram_g     : boolean := false;
        stream_g        : boolean := false;
        freeze_g        : boolean := false;
        self_test_g     : boolean := false
    );
    port (
        aclk    : in    std_logic;
        aresetn : in    std_logic;

        s_axi_awaddr  : in    std_logic_vector(11 downto 0);
        s_axi_awprot  : in    std_logic_vector(2 downto 0);
        s_axi_awvalid : in    std_logic;
        s_axi_awready : out   std_logic;
        s_axi_wdata   : in    std_logic_vector(31 downto 0);
        s_axi_wstrb   : in    std_logic_vector(3 downto 0);
        s_axi_wvalid  : in    std_logic;
        s_axi_wready  : out   std_logic;
        s_axi_bresp   : out   std_logic_vector(1 downto 0);
        s_axi_bvalid  : out   std_logic;
        s_axi_bready  : in    std_logic;
        s_axi_araddr  : in    std_logic_vector(11 downto 0);
        s_axi_arprot  : in    std_logic_vector(2 downto 0);
        s_axi_arvalid : in    std_logic;
        s_axi_arready : out   std_logic;
        s_axi_rdata   : out   std_logic_vector(31 downto 0);
        s_axi_rresp   : out   std_logic_vector(1 downto 0);
        s_axi_rvalid  : out   std_logic;
        s_axi_rready  : in    std_logic;

        from_hardware : in    from_hardware_t;
        to_hardware   : out   to_hardware_t
    );
end entity latencies_ip_register_block;

architecture rtl of latencies_ip_register_block is

    constant highest_c : natural := 63;

    type words_t is array (0 to highest_c) of word_t;

    -- '1' for true.
    function to_bit (value : boolean) return std_logic is
    begin
        if value then
            return '1';
        end if;
        return '0';
    end function to_bit;

    -- One bit a word address: what can be read, what can be written.
    constant present_c : std_logic_vector(0 to highest_c) := (
        we_index_c                        => '1',
        alarm_lat_index_c                 => '1',
        last_index_c                      => '1',
        max_index_c                       => '1',
        min_index_c                       => '1',
        num_index_c                       => '1',
        alarm_index_c                     => '1',
        identification_index_c            => to_bit(extended_g),
        configuration_index_c             => to_bit(extended_g),
        features_index_c                  => to_bit(extended_g),
        clock_frequency_hz_index_c        => to_bit(extended_g),
        mode_index_c                      => to_bit(extended_g),
        command_index_c                   => to_bit(extended_g),
        status_index_c                    => to_bit(extended_g),
        alarm_lat_high_index_c            => to_bit(latency_width_g > 32),
        last_high_index_c                 => to_bit(latency_width_g > 32),
        max_high_index_c                  => to_bit(latency_width_g > 32),
        min_high_index_c                  => to_bit(latency_width_g > 32),
        orphans_index_c                   => to_bit(counters_g),
        overlaps_index_c                  => to_bit(counters_g),
        missed_index_c                    => to_bit(counters_g),
        saturations_index_c               => to_bit(counters_g),
        timeout_index_c                   => to_bit(watchdog_g),
        timeouts_index_c                  => to_bit(watchdog_g),
        interrupt_status_index_c          => to_bit(extended_g),
        interrupt_enable_index_c          => to_bit(extended_g),
        write_position_index_c            => to_bit(extended_g),
        post_trigger_index_c              => to_bit(freeze_g),
        trigger_position_index_c          => to_bit(freeze_g),
        frozen_end_index_c                => to_bit(freeze_g),
        frozen_count_index_c              => to_bit(freeze_g),
        snapshot_num_index_c              => to_bit(snapshot_g),
        snapshot_last_index_c             => to_bit(snapshot_g),
        snapshot_last_high_index_c        => to_bit(snapshot_g and latency_width_g > 32),
        snapshot_max_index_c              => to_bit(snapshot_g),
        snapshot_max_high_index_c         => to_bit(snapshot_g and latency_width_g > 32),
        snapshot_min_index_c              => to_bit(snapshot_g),
        snapshot_min_high_index_c         => to_bit(snapshot_g and latency_width_g > 32),
        snapshot_sum_0_index_c            => to_bit(sums_g),
        snapshot_sum_1_index_c            => to_bit(sums_g),
        snapshot_sum_of_squares_0_index_c => to_bit(sums_g),
        snapshot_sum_of_squares_1_index_c => to_bit(sums_g),
        snapshot_sum_of_squares_2_index_c => to_bit(sums_g),
        snapshot_sum_of_squares_3_index_c => to_bit(sums_g),
        snapshot_time_index_c             => to_bit(snapshot_g and time_stamp_g),
        snapshot_time_high_index_c        => to_bit(snapshot_g and time_stamp_g),
        snapshot_orphans_index_c          => to_bit(snapshot_g and counters_g),
        snapshot_overlaps_index_c         => to_bit(snapshot_g and counters_g),
        snapshot_missed_index_c           => to_bit(snapshot_g and counters_g),
        snapshot_saturations_index_c      => to_bit(snapshot_g and counters_g),
        histogram_overflow_index_c        => to_bit(histogram_g),
        histogram_shift_index_c           => to_bit(histogram_g),
        stream_dropped_index_c            => to_bit(stream_g),
        stream_sent_index_c               => to_bit(stream_g),
        self_test_delay_index_c           => to_bit(self_test_g),
        self_test_count_index_c           => to_bit(self_test_g),
        time_low_index_c                  => to_bit(time_stamp_g),
        time_high_index_c                 => to_bit(time_stamp_g),
        others => '0'
    );

    constant writable_c : std_logic_vector(0 to highest_c) := (
        we_index_c               => '1',
        alarm_lat_index_c        => '1',
        alarm_index_c            => '1',
        mode_index_c             => to_bit(extended_g),
        command_index_c          => to_bit(extended_g),
        alarm_lat_high_index_c   => to_bit(latency_width_g > 32),
        timeout_index_c          => to_bit(watchdog_g),
        interrupt_status_index_c => to_bit(extended_g),
        interrupt_enable_index_c => to_bit(extended_g),
        post_trigger_index_c     => to_bit(freeze_g),
        histogram_shift_index_c  => to_bit(histogram_g),
        self_test_delay_index_c  => to_bit(self_test_g),
        self_test_count_index_c  => to_bit(self_test_g),
        others => '0'
    );

    -- Address bits that tell the present registers apart.
    function decoded_bits return positive is
        variable bits : positive := 1;
    begin
        for i in present_c'range loop
            while present_c(i) = '1' and i >= 2 ** bits loop
                bits := bits + 1;
            end loop;
        end loop;
        return bits;
    end function decoded_bits;

    constant decoded_bits_c : positive := decoded_bits;

    -- A word with its lowest bits set.
    function low_bits (bits : natural) return word_t is
        variable word : word_t := (others => '0');
    begin
        for i in word'range loop
            if i < bits then
                word(i) := '1';
            end if;
        end loop;
        return word;
    end function low_bits;

    -- A word after a write of it, or without one.
    function merged (old, data : word_t; strobes : std_logic_vector(3 downto 0); write : std_logic)
        return word_t is
        variable word : word_t := old;
    begin
        for lane in strobes'range loop
            if write = '1' and strobes(lane) = '1' then
                word(8 * lane + 7 downto 8 * lane) := data(8 * lane + 7 downto 8 * lane);
            end if;
        end loop;
        return word;
    end function merged;

    -- A flag of a word address. Compared one by one: ghdl 2.0 --synth writes constants of more than
    -- 32 bits wrongly into Verilog when they are indexed by a signal.
    function is_set (flags : std_logic_vector; index : natural) return std_logic is
        variable result : std_logic := '0';
    begin
        for i in flags'range loop
            if flags(i) = '1' and index = i then
                result := '1';
            end if;
        end loop;
        return result;
    end function is_set;

    -- What reads return, without what this block keeps.
    function driven (circuit : from_hardware_t) return words_t is
        variable words : words_t := (others => (others => '0'));
    begin
        words(last_index_c) := circuit.last;
        words(max_index_c) := circuit.max;
        words(min_index_c) := circuit.min;
        words(num_index_c) := circuit.num;
        words(alarm_index_c)(0) := circuit.alarm;
        words(identification_index_c)(7 downto 0) := "00000000";
        words(identification_index_c)(15 downto 8) := "00000001";
        words(identification_index_c)(31 downto 16) := "0100110001011010";
        words(configuration_index_c)(7 downto 0) := circuit.configuration_latency_width;
        words(configuration_index_c)(12 downto 8) := circuit.configuration_log2_depth;
        words(configuration_index_c)(17 downto 16) := circuit.configuration_overlap_policy;
        words(configuration_index_c)(19 downto 18) := circuit.configuration_synchroniser_stages;
        words(configuration_index_c)(24 downto 20) := circuit.configuration_log2_bins;
        words(configuration_index_c)(28 downto 25) := circuit.configuration_sub_bits;
        words(configuration_index_c)(29) := circuit.configuration_log_linear;
        words(features_index_c)(0) := circuit.features_counters;
        words(features_index_c)(1) := circuit.features_watchdog;
        words(features_index_c)(2) := circuit.features_time_stamp;
        words(features_index_c)(3) := circuit.features_snapshot;
        words(features_index_c)(4) := circuit.features_sums;
        words(features_index_c)(5) := circuit.features_histogram;
        words(features_index_c)(6) := circuit.features_stream;
        words(features_index_c)(7) := circuit.features_freeze;
        words(features_index_c)(8) := circuit.features_self_test;
        words(features_index_c)(9) := circuit.features_wide_num;
        words(features_index_c)(10) := circuit.features_shared_time;
        words(clock_frequency_hz_index_c) := circuit.clock_frequency_hz;
        words(status_index_c)(0) := circuit.status_open;
        words(status_index_c)(1) := circuit.status_full;
        words(status_index_c)(2) := circuit.status_wrapped;
        words(status_index_c)(3) := circuit.status_num_stopped;
        words(status_index_c)(4) := circuit.status_saturated;
        words(status_index_c)(5) := circuit.status_ready;
        words(status_index_c)(6) := circuit.status_self_test_running;
        words(status_index_c)(7) := circuit.status_frozen;
        words(status_index_c)(8) := circuit.status_frozen_half;
        words(last_high_index_c) := circuit.last_high;
        words(max_high_index_c) := circuit.max_high;
        words(min_high_index_c) := circuit.min_high;
        words(orphans_index_c) := circuit.orphans;
        words(overlaps_index_c) := circuit.overlaps;
        words(missed_index_c) := circuit.missed;
        words(saturations_index_c) := circuit.saturations;
        words(timeouts_index_c) := circuit.timeouts;
        words(interrupt_status_index_c)(0) := circuit.interrupt_status_alarm;
        words(interrupt_status_index_c)(1) := circuit.interrupt_status_timeout;
        words(interrupt_status_index_c)(2) := circuit.interrupt_status_self_test_done;
        words(interrupt_status_index_c)(3) := circuit.interrupt_status_frozen;
        words(write_position_index_c) := circuit.write_position;
        words(trigger_position_index_c) := circuit.trigger_position;
        words(frozen_end_index_c) := circuit.frozen_end;
        words(frozen_count_index_c) := circuit.frozen_count;
        words(snapshot_num_index_c) := circuit.snapshot_num;
        words(snapshot_last_index_c) := circuit.snapshot_last;
        words(snapshot_last_high_index_c) := circuit.snapshot_last_high;
        words(snapshot_max_index_c) := circuit.snapshot_max;
        words(snapshot_max_high_index_c) := circuit.snapshot_max_high;
        words(snapshot_min_index_c) := circuit.snapshot_min;
        words(snapshot_min_high_index_c) := circuit.snapshot_min_high;
        words(snapshot_sum_0_index_c) := circuit.snapshot_sum_0;
        words(snapshot_sum_1_index_c) := circuit.snapshot_sum_1;
        words(snapshot_sum_of_squares_0_index_c) := circuit.snapshot_sum_of_squares_0;
        words(snapshot_sum_of_squares_1_index_c) := circuit.snapshot_sum_of_squares_1;
        words(snapshot_sum_of_squares_2_index_c) := circuit.snapshot_sum_of_squares_2;
        words(snapshot_sum_of_squares_3_index_c) := circuit.snapshot_sum_of_squares_3;
        words(snapshot_time_index_c) := circuit.snapshot_time;
        words(snapshot_time_high_index_c) := circuit.snapshot_time_high;
        words(snapshot_orphans_index_c) := circuit.snapshot_orphans;
        words(snapshot_overlaps_index_c) := circuit.snapshot_overlaps;
        words(snapshot_missed_index_c) := circuit.snapshot_missed;
        words(snapshot_saturations_index_c) := circuit.snapshot_saturations;
        words(histogram_overflow_index_c) := circuit.histogram_overflow;
        words(stream_dropped_index_c) := circuit.stream_dropped;
        words(stream_sent_index_c) := circuit.stream_sent;
        words(time_low_index_c) := circuit.time_low;
        words(time_high_index_c) := circuit.time_high;
        return words;
    end function driven;

    -- What this block keeps: the bits that have flip-flops, the word after reset, its value.
    constant we_bits_c  : word_t := x"00000001";
    constant we_reset_c : word_t := x"00000000" and we_bits_c;
    signal   we_value   : word_t := we_reset_c;
    signal   we_next    : word_t;

    constant alarm_lat_bits_c  : word_t := low_bits(minimum(latency_width_g, 32));
    constant alarm_lat_reset_c : word_t := x"FFFFFFFF" and alarm_lat_bits_c;
    signal   alarm_lat_value   : word_t := alarm_lat_reset_c;
    signal   alarm_lat_next    : word_t;

    constant mode_bits_c  : word_t := x"00000007";
    constant mode_reset_c : word_t := x"00000000" and mode_bits_c;
    signal   mode_value   : word_t := mode_reset_c;
    signal   mode_next    : word_t;

    constant alarm_lat_high_bits_c  : word_t := x"0000FFFF";
    constant alarm_lat_high_reset_c : word_t := x"0000FFFF" and alarm_lat_high_bits_c;
    signal   alarm_lat_high_value   : word_t := alarm_lat_high_reset_c;
    signal   alarm_lat_high_next    : word_t;

    constant timeout_bits_c  : word_t := x"FFFFFFFF";
    constant timeout_reset_c : word_t := x"00000000" and timeout_bits_c;
    signal   timeout_value   : word_t := timeout_reset_c;
    signal   timeout_next    : word_t;

    constant interrupt_enable_bits_c  : word_t := x"0000000F";
    constant interrupt_enable_reset_c : word_t := x"00000000" and interrupt_enable_bits_c;
    signal   interrupt_enable_value   : word_t := interrupt_enable_reset_c;
    signal   interrupt_enable_next    : word_t;

    constant post_trigger_bits_c  : word_t := x"FFFFFFFF";
    constant post_trigger_reset_c : word_t := x"00000000" and post_trigger_bits_c;
    signal   post_trigger_value   : word_t := post_trigger_reset_c;
    signal   post_trigger_next    : word_t;

    constant histogram_shift_bits_c  : word_t := x"0000003F";
    constant histogram_shift_reset_c : word_t := x"00000000" and histogram_shift_bits_c;
    signal   histogram_shift_value   : word_t := histogram_shift_reset_c;
    signal   histogram_shift_next    : word_t;

    constant self_test_delay_bits_c  : word_t := x"FFFFFFFF";
    constant self_test_delay_reset_c : word_t := x"00000000" and self_test_delay_bits_c;
    signal   self_test_delay_value   : word_t := self_test_delay_reset_c;
    signal   self_test_delay_next    : word_t;

    constant self_test_count_bits_c  : word_t := x"FFFFFFFF";
    constant self_test_count_reset_c : word_t := x"00000000" and self_test_count_bits_c;
    signal   self_test_count_value   : word_t := self_test_count_reset_c;
    signal   self_test_count_next    : word_t;

    signal write_index  : natural range 0 to highest_c;
    signal write_accept : std_logic;
    signal write_okay   : std_logic;
    signal writes       : std_logic_vector(0 to highest_c);
    signal ones         : word_t;
    signal read_index   : natural range 0 to highest_c;
    signal read_accept  : std_logic;
    signal read_okay    : std_logic;

    -- An answer to a write, and whether it is an error; without one: a write is taken in this cycle.
    signal bvalid : std_logic := '0';
    signal marked : std_logic := '0';
    signal rvalid : std_logic := '0';
    signal rerror : std_logic := '0';
    signal rdata  : word_t := (others => '0');

begin

    s_axi_awready <= write_accept;
    s_axi_wready  <= write_accept;
    s_axi_bresp   <= marked & '0';
    s_axi_bvalid  <= bvalid;
    s_axi_arready <= not rvalid;
    s_axi_rdata   <= rdata;
    s_axi_rresp   <= rerror & '0';
    s_axi_rvalid  <= rvalid;

    -- A write is taken in the cycle after both its valids were seen: no output depends on an input of
    -- the same cycle (IHI 0022, A3.1.1). They stay until then (A3.2.1).
    write_accept <= marked and not bvalid;
    write_index  <= to_integer(unsigned(s_axi_awaddr(decoded_bits_c + 1 downto 2)));
    write_okay   <= is_set(writable_c, write_index) and
        (nor s_axi_awaddr(11 downto decoded_bits_c + 2));

    select_write : for i in writes'range generate

        writes(i) <= write_accept and write_okay and to_bit(write_index = i);

    end generate select_write;

    -- The ones a write carries in its strobed lanes.
    select_ones : for i in ones'range generate

        ones(i) <= s_axi_wdata(i) and s_axi_wstrb(i / 8);

    end generate select_ones;

    read_accept <= s_axi_arvalid and not rvalid;
    read_index  <= to_integer(unsigned(s_axi_araddr(decoded_bits_c + 1 downto 2)));
    read_okay   <= is_set(present_c, read_index) and
        (nor s_axi_araddr(11 downto decoded_bits_c + 2));

    we_next <= we_bits_c and
        merged(we_value, s_axi_wdata, s_axi_wstrb, writes(we_index_c));

    alarm_lat_next <= alarm_lat_bits_c and
        merged(alarm_lat_value, s_axi_wdata, s_axi_wstrb, writes(alarm_lat_index_c));

    mode_next <= mode_bits_c and
        merged(mode_value, s_axi_wdata, s_axi_wstrb, writes(mode_index_c));

    alarm_lat_high_next <= alarm_lat_high_bits_c and
        merged(alarm_lat_high_value, s_axi_wdata, s_axi_wstrb, writes(alarm_lat_high_index_c));

    timeout_next <= timeout_bits_c and
        merged(timeout_value, s_axi_wdata, s_axi_wstrb, writes(timeout_index_c));

    interrupt_enable_next <= interrupt_enable_bits_c and
        merged(interrupt_enable_value, s_axi_wdata, s_axi_wstrb, writes(interrupt_enable_index_c));

    post_trigger_next <= post_trigger_bits_c and
        merged(post_trigger_value, s_axi_wdata, s_axi_wstrb, writes(post_trigger_index_c));

    histogram_shift_next <= histogram_shift_bits_c and
        merged(histogram_shift_value, s_axi_wdata, s_axi_wstrb, writes(histogram_shift_index_c));

    self_test_delay_next <= self_test_delay_bits_c and
        merged(self_test_delay_value, s_axi_wdata, s_axi_wstrb, writes(self_test_delay_index_c));

    self_test_count_next <= self_test_count_bits_c and
        merged(self_test_count_value, s_axi_wdata, s_axi_wstrb, writes(self_test_count_index_c));

    to_hardware.we <= we_value(0);
    to_hardware.we_next <= we_next(0);
    to_hardware.alarm_lat <= alarm_lat_value;
    to_hardware.alarm_clear <= writes(alarm_index_c) and ones(0);
    to_hardware.mode_wrap <= mode_value(0);
    to_hardware.mode_histogram_read_clears <= mode_value(1);
    to_hardware.mode_freeze_on_alarm <= mode_value(2);
    to_hardware.command_snapshot <= writes(command_index_c) and ones(0);
    to_hardware.command_self_test <= writes(command_index_c) and ones(1);
    to_hardware.alarm_lat_high <= alarm_lat_high_value;
    to_hardware.timeout <= timeout_value;
    to_hardware.interrupt_status_alarm_clear <= writes(interrupt_status_index_c) and ones(0);
    to_hardware.interrupt_status_timeout_clear <= writes(interrupt_status_index_c) and ones(1);
    to_hardware.interrupt_status_self_test_done_clear <= writes(interrupt_status_index_c) and
        ones(2);
    to_hardware.interrupt_status_frozen_clear <= writes(interrupt_status_index_c) and ones(3);
    to_hardware.interrupt_enable_alarm <= interrupt_enable_value(0);
    to_hardware.interrupt_enable_timeout <= interrupt_enable_value(1);
    to_hardware.interrupt_enable_self_test_done <= interrupt_enable_value(2);
    to_hardware.interrupt_enable_frozen <= interrupt_enable_value(3);
    to_hardware.post_trigger <= post_trigger_value;
    to_hardware.histogram_shift <= histogram_shift_value;
    to_hardware.self_test_delay <= self_test_delay_value;
    to_hardware.self_test_count <= self_test_count_value;
    to_hardware.time_low_read <= read_accept and read_okay and
        to_bit(read_index = time_low_index_c);

    keep : process (aclk) is
    begin

        if rising_edge(aclk) then
            we_value <= we_next;
            alarm_lat_value <= alarm_lat_next;
            mode_value <= mode_next;
            alarm_lat_high_value <= alarm_lat_high_next;
            timeout_value <= timeout_next;
            interrupt_enable_value <= interrupt_enable_next;
            post_trigger_value <= post_trigger_next;
            histogram_shift_value <= histogram_shift_next;
            self_test_delay_value <= self_test_delay_next;
            self_test_count_value <= self_test_count_next;
            if aresetn = '0' then
                we_value <= we_reset_c;
                alarm_lat_value <= alarm_lat_reset_c;
                mode_value <= mode_reset_c;
                alarm_lat_high_value <= alarm_lat_high_reset_c;
                timeout_value <= timeout_reset_c;
                interrupt_enable_value <= interrupt_enable_reset_c;
                post_trigger_value <= post_trigger_reset_c;
                histogram_shift_value <= histogram_shift_reset_c;
                self_test_delay_value <= self_test_delay_reset_c;
                self_test_count_value <= self_test_count_reset_c;
            end if;
        end if;

    end process keep;

    respond : process (aclk) is
        variable words : words_t;
    begin

        if rising_edge(aclk) then
            if write_accept = '1' then
                bvalid <= '1';
                marked <= not write_okay;
            elsif bvalid = '0' or s_axi_bready = '1' then
                bvalid <= '0';
                marked <= s_axi_awvalid and s_axi_wvalid;
            end if;
            -- What is read while nothing waits is looked at only if it was asked for.
            if rvalid = '0' then
                words  := driven(from_hardware);
                words(we_index_c)(0) := we_value(0);
                words(alarm_lat_index_c) := alarm_lat_value;
                words(mode_index_c)(0) := mode_value(0);
                words(mode_index_c)(1) := mode_value(1);
                words(mode_index_c)(2) := mode_value(2);
                words(alarm_lat_high_index_c) := alarm_lat_high_value;
                words(timeout_index_c) := timeout_value;
                words(interrupt_enable_index_c)(0) := interrupt_enable_value(0);
                words(interrupt_enable_index_c)(1) := interrupt_enable_value(1);
                words(interrupt_enable_index_c)(2) := interrupt_enable_value(2);
                words(interrupt_enable_index_c)(3) := interrupt_enable_value(3);
                words(post_trigger_index_c) := post_trigger_value;
                words(histogram_shift_index_c) := histogram_shift_value;
                words(self_test_delay_index_c) := self_test_delay_value;
                words(self_test_count_index_c) := self_test_count_value;
                rvalid <= s_axi_arvalid;
                rerror <= '0';
                rdata  <= words(read_index);
            elsif s_axi_rready = '1' then
                rvalid <= '0';
            end if;
            -- Behind the choice of a word, where the flip-flops' own reset does it.
            if rvalid = '0' and read_okay = '0' then
                rerror <= '1';
                rdata  <= (others => '0');
            end if;
            if aresetn = '0' then
                bvalid <= '0';
                marked <= '0';
                rvalid <= '0';
            end if;
        end if;

    end process respond;

end architecture rtl;
