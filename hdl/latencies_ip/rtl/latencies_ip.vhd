-- SPDX-License-Identifier: Apache-2.0
-- The Latencies IP: measures from the edge of one signal to the edge of another, in clock cycles,
-- and lets a processor read every latency, their statistics and an alarm through AXI4-Lite.
-- As it stands it is what alonso2024 describes (section 4, Table 2); every addition has a generic.
-- Not for pulses shorter than a clock cycle, nor for inputs of another clock without synchronisers.
-- See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;
    use work.latencies_ip_registers_pkg.all;

entity latencies_ip is
    generic (
        -- Bits of a latency: 16, 32 or 48.
        latency_width_g : positive := 16;
        -- Latencies that the memory holds: a power of two from 2 to 65536.
        depth_g : positive := 512;
        -- Bits of the number of latencies: 16 or 32.
        num_width_g : positive := 16;
        -- Flip-flops that synchronise each input: 0, 2 or 3.
        synchroniser_stages_g : natural := 2;
        -- What an interrupt does while another is open: drop, restart or queue.
        overlap_policy_g : string := "drop";
        -- With queue: how many can be open, a power of two.
        queue_depth_g : positive := 16;
        -- Of aclk; for software only.
        clock_frequency_hz_g : positive := 100_000_000;

        -- Registers that tell software what this IP is; every other addition brings them, too.
        identification_g : boolean := false;
        -- Orphans, overlaps, missed ones, saturated ones.
        counters_g : boolean := false;
        -- Gives up what is open for too long.
        watchdog_g : boolean := false;
        -- Keeps with each latency when it began.
        time_stamp_g : boolean := false;
        -- Time stamps are of time_in, which rises by 1 every cycle, rather than of an own counter.
        shared_time_g : boolean := false;
        -- Copies all statistics in one cycle.
        snapshot_g : boolean := false;
        -- Sum and sum of squares, in the snapshot.
        sums_g : boolean := false;
        histogram_g : boolean := false;
        -- A power of two.
        histogram_bins_g : positive := 1024;
        -- linear or log-linear.
        histogram_kind_g : string := "linear";
        -- With log-linear: 2 to this power bins an octave.
        histogram_sub_bits_g : positive := 4;
        -- Every latency leaves on AXI-Stream.
        stream_g : boolean := false;
        -- Number of this IP in its stream.
        channel_g : natural range 0 to 255 := 0;
        -- Keeps the latencies around the largest one.
        freeze_g : boolean := false;
        -- A generator of known latencies.
        self_test_g : boolean := false
    );
    port (
        aclk    : in    std_logic;
        aresetn : in    std_logic;

        -- A latency begins and ends with the rising edge of these.
        irq_in : in    std_logic;
        ack_in : in    std_logic;

        -- A latency exceeded alarm_lat; stays until it is cleared.
        alarm : out   std_logic;
        -- Level: an enabled event of the additions has happened.
        interrupt : out   std_logic;

        time_in : in    std_logic_vector(63 downto 0) := (others => '0');

        m_axis_tdata  : out   std_logic_vector(127 downto 0);
        m_axis_tvalid : out   std_logic;
        m_axis_tready : in    std_logic := '1';

        -- The memory of latencies.
        s00_axi_awaddr  : in    std_logic_vector(
            window_bits(depth_g, latency_width_g, time_stamp_g, shown_bins(histogram_g, histogram_bins_g)) - 1 downto 0
        );
        s00_axi_awprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        s00_axi_awvalid : in    std_logic;
        s00_axi_awready : out   std_logic;
        s00_axi_wdata   : in    std_logic_vector(31 downto 0);
        s00_axi_wstrb   : in    std_logic_vector(3 downto 0);
        s00_axi_wvalid  : in    std_logic;
        s00_axi_wready  : out   std_logic;
        s00_axi_bresp   : out   std_logic_vector(1 downto 0);
        s00_axi_bvalid  : out   std_logic;
        s00_axi_bready  : in    std_logic;
        s00_axi_araddr  : in    std_logic_vector(
            window_bits(depth_g, latency_width_g, time_stamp_g, shown_bins(histogram_g, histogram_bins_g)) - 1 downto 0
        );
        s00_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        s00_axi_arvalid : in    std_logic;
        s00_axi_arready : out   std_logic;
        s00_axi_rdata   : out   std_logic_vector(31 downto 0);
        s00_axi_rresp   : out   std_logic_vector(1 downto 0);
        s00_axi_rvalid  : out   std_logic;
        s00_axi_rready  : in    std_logic;

        -- Registers.
        s01_axi_awaddr  : in    std_logic_vector(11 downto 0);
        s01_axi_awprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        s01_axi_awvalid : in    std_logic;
        s01_axi_awready : out   std_logic;
        s01_axi_wdata   : in    std_logic_vector(31 downto 0);
        s01_axi_wstrb   : in    std_logic_vector(3 downto 0);
        s01_axi_wvalid  : in    std_logic;
        s01_axi_wready  : out   std_logic;
        s01_axi_bresp   : out   std_logic_vector(1 downto 0);
        s01_axi_bvalid  : out   std_logic;
        s01_axi_bready  : in    std_logic;
        s01_axi_araddr  : in    std_logic_vector(11 downto 0);
        s01_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        s01_axi_arvalid : in    std_logic;
        s01_axi_arready : out   std_logic;
        s01_axi_rdata   : out   std_logic_vector(31 downto 0);
        s01_axi_rresp   : out   std_logic_vector(1 downto 0);
        s01_axi_rvalid  : out   std_logic;
        s01_axi_rready  : in    std_logic
    );
end entity latencies_ip;

architecture rtl of latencies_ip is

    -- Extended: more than the publication has.
    constant extended_c : boolean := identification_g or counters_g or watchdog_g or time_stamp_g or snapshot_g
                                     or sums_g or histogram_g or stream_g or freeze_g or self_test_g;
    constant high_words_c : boolean := latency_width_g > 32;
    constant queue_c      : boolean := overlap_policy_g = "queue";
    constant ticks_c      : boolean := time_stamp_g or queue_c;

    constant bins_c         : natural  := shown_bins(histogram_g, histogram_bins_g);
    constant index_bits_c   : positive := address_bits(depth_g);
    constant bin_bits_c     : positive := address_bits(histogram_bins_g);
    constant regions_c      : std_logic_vector(7 downto 0) := "000" & to_bit(histogram_g) & to_bit(time_stamp_g)
                                                              & to_bit(time_stamp_g) & to_bit(high_words_c) & '1';
    constant region_bits_c  : positive := region_bits(depth_g, bins_c);

    function policy_number return natural is
    begin
        if overlap_policy_g = "drop" then
            return 0;
        elsif overlap_policy_g = "restart" then
            return 1;
        end if;
        return 2;
    end function policy_number;

    function histogram_bits return natural is
    begin
        if histogram_g then
            return address_bits(histogram_bins_g);
        end if;
        return 0;
    end function histogram_bits;

    subtype latency_t is std_logic_vector(latency_width_g - 1 downto 0);

    signal rst           : std_logic;
    signal from_hardware : from_hardware_t;
    signal to_hardware   : to_hardware_t;

    signal tick    : tick_t;
    signal clear   : std_logic;
    signal enable  : std_logic;
    signal ready   : std_logic;
    signal limit   : std_logic_vector(63 downto 0);
    signal alarmed : std_logic;
    -- The sums of a snapshot are being copied; S01 takes nothing meanwhile.
    signal settling    : std_logic;
    signal s01_arready : std_logic;

    signal last    : latency_t;
    signal maximum : latency_t;
    signal minimum : latency_t;
    signal num     : std_logic_vector(num_width_g - 1 downto 0);

    signal sample_valid : std_logic;
    signal sample       : latency_t;
    signal saturated    : std_logic;
    signal start_tick   : tick_t;
    signal new_maximum  : std_logic;
    signal new_alarm    : std_logic;
    signal is_open      : std_logic;
    signal orphan       : std_logic;
    signal overlap      : std_logic;
    signal missed       : std_logic;
    signal timed_out    : std_logic;
    signal freezes      : std_logic;
    signal test_done    : std_logic;
    signal testing      : std_logic;
    signal irq_tests    : std_logic;
    signal ack_tests    : std_logic;

    signal place_valid : std_logic;
    signal place       : std_logic_vector(index_bits_c - 1 downto 0);

    -- The sample window: which region is read, and what the regions give.
    signal fetch           : std_logic_vector(7 downto 0);
    signal region          : std_logic_vector(7 downto 0);
    signal latency_read    : latency_t;
    signal tick_read       : tick_t;
    signal bin_read        : std_logic_vector(31 downto 0) := (others => '0');
    signal bin_valid       : std_logic := '0';
    signal window_index    : std_logic_vector(region_bits_c - 1 downto 0);
    signal window_rdata    : std_logic_vector(31 downto 0);
    signal s00_arready     : std_logic;

begin

    assert latency_width_g = 16 or latency_width_g = 32 or latency_width_g = 48
        report "latency_width_g is 16, 32 or 48"
        severity failure;
    assert num_width_g = 16 or num_width_g = 32
        report "num_width_g is 16 or 32"
        severity failure;
    assert snapshot_g or not sums_g
        report "sums_g needs snapshot_g, through which sums are read"
        severity failure;
    assert not freeze_g or depth_g >= 4
        report "freeze_g needs a depth_g of 4 or more, for its two halves"
        severity failure;

    rst   <= not aresetn;
    alarm <= alarmed;

    s01_axi_arready <= s01_arready and not settling;

    registers : entity work.latencies_ip_register_block
        generic map (
            extended_g      => extended_c,
            latency_width_g => latency_width_g,
            counters_g      => counters_g,
            watchdog_g      => watchdog_g,
            time_stamp_g    => time_stamp_g,
            snapshot_g      => snapshot_g,
            sums_g          => sums_g,
            histogram_g     => histogram_g,
            stream_g        => stream_g,
            freeze_g        => freeze_g,
            self_test_g     => self_test_g
        )
        port map (
            aclk          => aclk,
            aresetn       => aresetn,
            s_axi_awaddr  => s01_axi_awaddr,
            s_axi_awprot  => s01_axi_awprot,
            s_axi_awvalid => s01_axi_awvalid and not settling,
            s_axi_awready => s01_axi_awready,
            s_axi_wdata   => s01_axi_wdata,
            s_axi_wstrb   => s01_axi_wstrb,
            s_axi_wvalid  => s01_axi_wvalid and not settling,
            s_axi_wready  => s01_axi_wready,
            s_axi_bresp   => s01_axi_bresp,
            s_axi_bvalid  => s01_axi_bvalid,
            s_axi_bready  => s01_axi_bready,
            s_axi_araddr  => s01_axi_araddr,
            s_axi_arprot  => s01_axi_arprot,
            s_axi_arvalid => s01_axi_arvalid and not settling,
            s_axi_arready => s01_arready,
            s_axi_rdata   => s01_axi_rdata,
            s_axi_rresp   => s01_axi_rresp,
            s_axi_rvalid  => s01_axi_rvalid,
            s_axi_rready  => s01_axi_rready,
            from_hardware => from_hardware,
            to_hardware   => to_hardware
        );

    core : entity work.latencies_core
        generic map (
            latency_width_g       => latency_width_g,
            depth_g               => depth_g,
            num_width_g           => num_width_g,
            synchroniser_stages_g => synchroniser_stages_g,
            overlap_policy_g      => overlap_policy_g,
            queue_depth_g         => queue_depth_g,
            time_stamp_g          => time_stamp_g,
            watchdog_g            => watchdog_g,
            placed_g              => extended_c,
            self_test_g           => self_test_g
        )
        port map (
            clk          => aclk,
            rst          => rst,
            irq          => irq_in,
            ack          => ack_in,
            testing      => testing,
            irq_tests    => irq_tests,
            ack_tests    => ack_tests,
            enable       => enable,
            clear        => clear,
            tick         => tick,
            timeout      => to_hardware.timeout,
            alarm_limit  => limit(latency_width_g - 1 downto 0),
            alarm_clear  => to_hardware.alarm_clear,
            alarm        => alarmed,
            last         => last,
            maximum      => maximum,
            minimum      => minimum,
            num          => num,
            sample_valid => sample_valid,
            sample       => sample,
            saturated    => saturated,
            start_tick   => start_tick,
            new_maximum  => new_maximum,
            new_alarm    => new_alarm,
            is_open      => is_open,
            orphan       => orphan,
            overlap      => overlap,
            missed       => missed,
            timed_out    => timed_out,
            place_valid  => place_valid,
            place        => place,
            read_enable  => s00_arready,
            read_address => window_index(index_bits_c - 1 downto 0),
            read_data    => latency_read
        );

    limit  <= to_hardware.alarm_lat_high & to_hardware.alarm_lat;
    enable <= to_hardware.we and ready and not clear;

    from_hardware.alarm    <= alarmed;
    from_hardware.last     <= low_word(last);
    from_hardware.max      <= low_word(maximum);
    from_hardware.min      <= low_word(minimum);
    from_hardware.num      <= low_word(num);
    from_hardware.last_high <= high_word(last);
    from_hardware.max_high  <= high_word(maximum);
    from_hardware.min_high  <= high_word(minimum);

    -- What this IP is.
    from_hardware.configuration_latency_width       <= std_logic_vector(to_unsigned(latency_width_g, 8));
    from_hardware.configuration_log2_depth          <= std_logic_vector(to_unsigned(index_bits_c, 5));
    from_hardware.configuration_overlap_policy      <= std_logic_vector(to_unsigned(policy_number, 2));
    from_hardware.configuration_synchroniser_stages <= std_logic_vector(to_unsigned(synchroniser_stages_g, 2));
    from_hardware.configuration_log2_bins           <= std_logic_vector(to_unsigned(histogram_bits, 5));
    from_hardware.configuration_sub_bits            <= std_logic_vector(to_unsigned(histogram_sub_bits_g, 4));
    from_hardware.configuration_log_linear          <= to_bit(histogram_kind_g = "log-linear");

    from_hardware.features_counters    <= to_bit(counters_g);
    from_hardware.features_watchdog    <= to_bit(watchdog_g);
    from_hardware.features_time_stamp  <= to_bit(time_stamp_g);
    from_hardware.features_snapshot    <= to_bit(snapshot_g);
    from_hardware.features_sums        <= to_bit(sums_g);
    from_hardware.features_histogram   <= to_bit(histogram_g);
    from_hardware.features_stream      <= to_bit(stream_g);
    from_hardware.features_freeze      <= to_bit(freeze_g);
    from_hardware.features_self_test   <= to_bit(self_test_g);
    from_hardware.features_wide_num    <= to_bit(num_width_g = 32);
    from_hardware.features_shared_time <= to_bit(shared_time_g);

    from_hardware.clock_frequency_hz <= std_logic_vector(to_unsigned(clock_frequency_hz_g, 32));

    window : entity work.sample_window
        generic map (
            address_bits_g   => s00_axi_araddr'length,
            region_bits_g    => region_bits_c,
            sample_bits_g    => index_bits_c,
            bin_bits_g       => bin_bits_c,
            regions_g        => regions_c,
            delayed_region_g => delayed_region(histogram_g)
        )
        port map (
            clk           => aclk,
            rst           => rst,
            awvalid       => s00_axi_awvalid,
            awready       => s00_axi_awready,
            wvalid        => s00_axi_wvalid,
            wready        => s00_axi_wready,
            bresp         => s00_axi_bresp,
            bvalid        => s00_axi_bvalid,
            bready        => s00_axi_bready,
            araddr        => s00_axi_araddr,
            arvalid       => s00_axi_arvalid,
            arready       => s00_arready,
            rresp         => s00_axi_rresp,
            rvalid        => s00_axi_rvalid,
            rready        => s00_axi_rready,
            fetch         => fetch,
            region        => region,
            delayed_valid => bin_valid
        );

    window_index   <= s00_axi_araddr(region_bits_c + 1 downto 2);
    s00_axi_rdata  <= window_rdata;
    -- The memories follow the address until one is taken, and hold its word until it is, too.
    s00_axi_arready <= s00_arready;

    window_rdata <= (low_word(latency_read) and region(0))
                    or (high_word(latency_read) and region(1))
                    or (low_word(tick_read) and region(2))
                    or (high_word(tick_read) and region(3))
                    or (bin_read and region(4));

    -- A series.

    no_self_test : if not self_test_g generate

        testing   <= '0';
        irq_tests <= '0';
        ack_tests <= '0';
        clear     <= to_hardware.we_next and not to_hardware.we;
        test_done <= '0';

        from_hardware.status_self_test_running <= '0';

    end generate no_self_test;

    with_self_test : if self_test_g generate

        signal commanded : std_logic;
        -- The inputs are disconnected until the series ends.
        signal tests     : std_logic := '0';
        signal waiting   : std_logic := '0';
        signal start     : std_logic;
        signal running   : std_logic;
        signal abandoned : std_logic;

    begin

        testing   <= tests;
        commanded <= to_hardware.command_self_test and to_hardware.we;
        clear     <= (to_hardware.we_next and not to_hardware.we) or commanded;
        start     <= waiting and enable;
        abandoned <= rst or not to_hardware.we or commanded;

        from_hardware.status_self_test_running <= waiting or running;

        generator : entity work.self_test
            port map (
                clk    => aclk,
                rst    => abandoned,
                start  => start,
                delay  => to_hardware.self_test_delay,
                count  => to_hardware.self_test_count,
                active => running,
                done   => test_done,
                irq    => irq_tests,
                ack    => ack_tests
            );

        connect : process (aclk) is
        begin

            if rising_edge(aclk) then
                if commanded = '1' then
                    tests   <= '1';
                    waiting <= '1';
                elsif start = '1' then
                    waiting <= '0';
                end if;
                if rst = '1' or to_hardware.we = '0' then
                    tests   <= '0';
                    waiting <= '0';
                end if;
            end if;

        end process connect;

    end generate with_self_test;

    -- Time.

    ticks : if ticks_c and not shared_time_g generate

        signal tick_now : unsigned(63 downto 0) := (others => '0');

    begin

        tick <= std_logic_vector(tick_now);

        count : process (aclk) is
        begin

            if rising_edge(aclk) then
                tick_now <= tick_now + 1;
                if rst = '1' then
                    tick_now <= (others => '0');
                end if;
            end if;

        end process count;

    end generate ticks;

    shared_ticks : if ticks_c and shared_time_g generate

        tick <= time_in;

    end generate shared_ticks;

    no_ticks : if not ticks_c generate

        tick <= (others => '0');

    end generate no_ticks;

    time_stamps : if time_stamp_g generate

        signal high_then : std_logic_vector(31 downto 0) := (others => '0');

    begin

        from_hardware.time_low  <= tick(31 downto 0);
        from_hardware.time_high <= high_then;

        memory : entity work.sample_memory
            generic map (
                width_g        => tick_width_c,
                address_bits_g => index_bits_c
            )
            port map (
                clk           => aclk,
                write_enable  => place_valid,
                write_address => place,
                write_data    => start_tick,
                read_enable   => s00_arready,
                read_address  => window_index(index_bits_c - 1 downto 0),
                read_data     => tick_read
            );

        read_whole : process (aclk) is
        begin

            if rising_edge(aclk) then
                if to_hardware.time_low_read = '1' then
                    high_then <= tick(63 downto 32);
                end if;
            end if;

        end process read_whole;

    end generate time_stamps;

    no_time_stamps : if not time_stamp_g generate

        from_hardware.time_low  <= (others => '0');
        from_hardware.time_high <= (others => '0');
        tick_read               <= (others => '0');

    end generate no_time_stamps;

    -- Where samples go, and what happened.

    placement : if extended_c generate

        signal trigger        : std_logic;
        signal anew           : std_logic;
        signal saturated_once : std_logic := '0';
        signal happened       : std_logic_vector(3 downto 0);
        signal cleared        : std_logic_vector(3 downto 0);
        signal enabled        : std_logic_vector(3 downto 0);
        signal happened_once  : std_logic_vector(3 downto 0) := (others => '0');
        -- A register, for it leaves for a processor of another clock: no glitch may be seen there.
        signal interrupts     : std_logic := '0';

    begin

        interrupt <= interrupts;

        anew    <= clear or rst;
        trigger <= new_maximum or (new_alarm and to_hardware.mode_freeze_on_alarm);

        placing : entity work.sample_placement
            generic map (
                index_bits_g => index_bits_c,
                freeze_g     => freeze_g
            )
            port map (
                clk              => aclk,
                clear            => anew,
                sample_valid     => sample_valid,
                wrap             => to_hardware.mode_wrap,
                trigger          => trigger,
                post_trigger     => to_hardware.post_trigger,
                place_valid      => place_valid,
                place            => place,
                full             => from_hardware.status_full,
                wrapped          => from_hardware.status_wrapped,
                frozen           => from_hardware.status_frozen,
                frozen_half      => from_hardware.status_frozen_half,
                freezes          => freezes,
                trigger_position => from_hardware.trigger_position,
                frozen_end       => from_hardware.frozen_end,
                frozen_count     => from_hardware.frozen_count
            );

        from_hardware.write_position     <= low_word(place);
        from_hardware.status_open        <= is_open;
        from_hardware.status_num_stopped <= and num;
        from_hardware.status_saturated   <= saturated_once;
        from_hardware.status_ready       <= ready and to_hardware.we;

        happened <= freezes & test_done & timed_out & new_alarm;
        cleared  <= to_hardware.interrupt_status_frozen_clear & to_hardware.interrupt_status_self_test_done_clear
                    & to_hardware.interrupt_status_timeout_clear & to_hardware.interrupt_status_alarm_clear;
        enabled  <= to_hardware.interrupt_enable_frozen & to_hardware.interrupt_enable_self_test_done
                    & to_hardware.interrupt_enable_timeout & to_hardware.interrupt_enable_alarm;

        from_hardware.interrupt_status_alarm          <= happened_once(0);
        from_hardware.interrupt_status_timeout        <= happened_once(1);
        from_hardware.interrupt_status_self_test_done <= happened_once(2);
        from_hardware.interrupt_status_frozen         <= happened_once(3);

        remember : process (aclk) is
        begin

            if rising_edge(aclk) then
                if sample_valid = '1' and saturated = '1' then
                    saturated_once <= '1';
                end if;
                if clear = '1' then
                    saturated_once <= '0';
                end if;
                happened_once <= (happened_once and not cleared) or happened;
                interrupts    <= or (happened_once and enabled);
                if rst = '1' then
                    saturated_once <= '0';
                    happened_once  <= (others => '0');
                    interrupts     <= '0';
                end if;
            end if;

        end process remember;

    end generate placement;

    no_placement : if not extended_c generate

        place_valid <= '0';
        place       <= (others => '0');
        freezes     <= '0';
        interrupt   <= '0';

        from_hardware.write_position                  <= (others => '0');
        from_hardware.status_open                     <= '0';
        from_hardware.status_full                     <= '0';
        from_hardware.status_wrapped                  <= '0';
        from_hardware.status_num_stopped              <= '0';
        from_hardware.status_saturated                <= '0';
        from_hardware.status_ready                    <= '0';
        from_hardware.status_frozen                   <= '0';
        from_hardware.status_frozen_half              <= '0';
        from_hardware.trigger_position                <= (others => '0');
        from_hardware.frozen_end                      <= (others => '0');
        from_hardware.frozen_count                    <= (others => '0');
        from_hardware.interrupt_status_alarm          <= '0';
        from_hardware.interrupt_status_timeout        <= '0';
        from_hardware.interrupt_status_self_test_done <= '0';
        from_hardware.interrupt_status_frozen         <= '0';

    end generate no_placement;

    -- Counts of what gave no sample.

    counters : if counters_g generate

        signal saturation : std_logic;
        signal anew       : std_logic;

    begin

        saturation <= sample_valid and saturated;
        anew       <= clear or rst;

        orphans : entity work.event_counter
            port map (
                clk       => aclk,
                clear     => anew,
                event_now => orphan,
                total     => from_hardware.orphans
            );

        overlaps : entity work.event_counter
            port map (
                clk       => aclk,
                clear     => anew,
                event_now => overlap,
                total     => from_hardware.overlaps
            );

        misses : entity work.event_counter
            port map (
                clk       => aclk,
                clear     => anew,
                event_now => missed,
                total     => from_hardware.missed
            );

        saturations : entity work.event_counter
            port map (
                clk       => aclk,
                clear     => anew,
                event_now => saturation,
                total     => from_hardware.saturations
            );

    end generate counters;

    no_counters : if not counters_g generate

        from_hardware.orphans     <= (others => '0');
        from_hardware.overlaps    <= (others => '0');
        from_hardware.missed      <= (others => '0');
        from_hardware.saturations <= (others => '0');

    end generate no_counters;

    watchdog : if watchdog_g generate

        signal anew : std_logic;

    begin

        anew <= clear or rst;

        timeouts : entity work.event_counter
            port map (
                clk       => aclk,
                clear     => anew,
                event_now => timed_out,
                total     => from_hardware.timeouts
            );

    end generate watchdog;

    no_watchdog : if not watchdog_g generate

        from_hardware.timeouts <= (others => '0');

    end generate no_watchdog;

    -- Statistics that belong together.

    snapshot : if snapshot_g generate

        signal num_then       : std_logic_vector(31 downto 0) := (others => '0');
        signal last_then      : latency_t := (others => '0');
        signal maximum_then   : latency_t := (others => '0');
        signal minimum_then   : latency_t := (others => '1');
        signal tick_then      : tick_t := (others => '0');
        signal orphans_then   : std_logic_vector(31 downto 0) := (others => '0');
        signal overlaps_then  : std_logic_vector(31 downto 0) := (others => '0');
        signal missed_then    : std_logic_vector(31 downto 0) := (others => '0');
        signal saturated_then : std_logic_vector(31 downto 0) := (others => '0');

    begin

        from_hardware.snapshot_num         <= num_then;
        from_hardware.snapshot_last        <= low_word(last_then);
        from_hardware.snapshot_last_high   <= high_word(last_then);
        from_hardware.snapshot_max         <= low_word(maximum_then);
        from_hardware.snapshot_max_high    <= high_word(maximum_then);
        from_hardware.snapshot_min         <= low_word(minimum_then);
        from_hardware.snapshot_min_high    <= high_word(minimum_then);
        from_hardware.snapshot_time        <= low_word(tick_then);
        from_hardware.snapshot_time_high   <= high_word(tick_then);
        from_hardware.snapshot_orphans     <= orphans_then;
        from_hardware.snapshot_overlaps    <= overlaps_then;
        from_hardware.snapshot_missed      <= missed_then;
        from_hardware.snapshot_saturations <= saturated_then;

        copy : process (aclk) is
        begin

            if rising_edge(aclk) then
                if to_hardware.command_snapshot = '1' then
                    num_then       <= low_word(num);
                    last_then      <= last;
                    maximum_then   <= maximum;
                    minimum_then   <= minimum;
                    tick_then      <= tick;
                    orphans_then   <= from_hardware.orphans;
                    overlaps_then  <= from_hardware.overlaps;
                    missed_then    <= from_hardware.missed;
                    saturated_then <= from_hardware.saturations;
                end if;
            end if;

        end process copy;

    end generate snapshot;

    no_snapshot : if not snapshot_g generate

        from_hardware.snapshot_num         <= (others => '0');
        from_hardware.snapshot_last        <= (others => '0');
        from_hardware.snapshot_last_high   <= (others => '0');
        from_hardware.snapshot_max         <= (others => '0');
        from_hardware.snapshot_max_high    <= (others => '0');
        from_hardware.snapshot_min         <= (others => '0');
        from_hardware.snapshot_min_high    <= (others => '0');
        from_hardware.snapshot_time        <= (others => '0');
        from_hardware.snapshot_time_high   <= (others => '0');
        from_hardware.snapshot_orphans     <= (others => '0');
        from_hardware.snapshot_overlaps    <= (others => '0');
        from_hardware.snapshot_missed      <= (others => '0');
        from_hardware.snapshot_saturations <= (others => '0');

    end generate no_snapshot;

    sums : if sums_g generate

        signal sum             : std_logic_vector(63 downto 0);
        signal sum_of_squares  : std_logic_vector(127 downto 0);
        signal sum_then        : std_logic_vector(63 downto 0) := (others => '0');
        signal squares_then    : std_logic_vector(127 downto 0) := (others => '0');
        -- A snapshot was commanded so many cycles ago.
        signal commanded       : std_logic_vector(1 to sums_delay_c + squares_delay_c) := (others => '0');
        signal anew            : std_logic;

    begin

        anew     <= clear or rst;
        settling <= or commanded;

        adder : entity work.latency_sums
            generic map (
                latency_width_g => latency_width_g
            )
            port map (
                clk            => aclk,
                clear          => anew,
                sample_valid   => sample_valid,
                last           => last,
                sum            => sum,
                sum_of_squares => sum_of_squares
            );

        from_hardware.snapshot_sum_0            <= sum_then(31 downto 0);
        from_hardware.snapshot_sum_1            <= sum_then(63 downto 32);
        from_hardware.snapshot_sum_of_squares_0 <= squares_then(31 downto 0);
        from_hardware.snapshot_sum_of_squares_1 <= squares_then(63 downto 32);
        from_hardware.snapshot_sum_of_squares_2 <= squares_then(95 downto 64);
        from_hardware.snapshot_sum_of_squares_3 <= squares_then(127 downto 96);

        -- A sample is in the sums later than in num. Until they have been copied the registers wait:
        -- a new series would clear them, and a read would see those of the snapshot before.
        copy : process (aclk) is
        begin

            if rising_edge(aclk) then
                commanded <= to_hardware.command_snapshot & commanded(1 to commanded'high - 1);
                if commanded(sums_delay_c) = '1' then
                    sum_then <= sum;
                end if;
                if commanded(commanded'high) = '1' then
                    squares_then <= sum_of_squares;
                end if;
                if rst = '1' then
                    commanded <= (others => '0');
                end if;
            end if;

        end process copy;

    end generate sums;

    no_sums : if not sums_g generate

        settling <= '0';

        from_hardware.snapshot_sum_0            <= (others => '0');
        from_hardware.snapshot_sum_1            <= (others => '0');
        from_hardware.snapshot_sum_of_squares_0 <= (others => '0');
        from_hardware.snapshot_sum_of_squares_1 <= (others => '0');
        from_hardware.snapshot_sum_of_squares_2 <= (others => '0');
        from_hardware.snapshot_sum_of_squares_3 <= (others => '0');

    end generate no_sums;

    with_histogram : if histogram_g generate

        signal valid_now : std_logic;
        signal data_now  : std_logic_vector(31 downto 0);
        signal anew      : std_logic;

    begin

        anew <= clear or rst;

        histogram : entity work.latency_histogram
            generic map (
                latency_width_g => latency_width_g,
                bins_g          => histogram_bins_g,
                kind_g          => histogram_kind_g,
                sub_bits_g      => histogram_sub_bits_g
            )
            port map (
                clk          => aclk,
                rst          => rst,
                clear        => anew,
                ready        => ready,
                sample_valid => sample_valid,
                sample       => sample,
                saturated    => saturated,
                shift        => to_hardware.histogram_shift(5 downto 0),
                overflow     => from_hardware.histogram_overflow,
                read_request => fetch(4),
                read_address => window_index(bin_bits_c - 1 downto 0),
                read_clears  => to_hardware.mode_histogram_read_clears,
                read_valid   => valid_now,
                read_data    => data_now
            );

        hold : process (aclk) is
        begin

            if rising_edge(aclk) then
                bin_valid <= valid_now;
                if valid_now = '1' then
                    bin_read <= data_now;
                end if;
            end if;

        end process hold;

    end generate with_histogram;

    no_histogram : if not histogram_g generate

        ready     <= '1';
        bin_valid <= '0';
        bin_read  <= (others => '0');

        from_hardware.histogram_overflow <= (others => '0');

    end generate no_histogram;

    with_stream : if stream_g generate

        signal anew : std_logic;

    begin

        anew <= clear or rst;

        stream : entity work.sample_stream
            generic map (
                channel_g => channel_g
            )
            port map (
                clk           => aclk,
                rst           => rst,
                clear         => anew,
                sample_valid  => sample_valid,
                sample        => std_logic_vector(resize(unsigned(sample), sample_width_c)),
                saturated     => saturated,
                start_tick    => start_tick,
                m_axis_tdata  => m_axis_tdata,
                m_axis_tvalid => m_axis_tvalid,
                m_axis_tready => m_axis_tready,
                dropped       => from_hardware.stream_dropped,
                sent          => from_hardware.stream_sent
            );

    end generate with_stream;

    no_stream : if not stream_g generate

        m_axis_tdata  <= (others => '0');
        m_axis_tvalid <= '0';

        from_hardware.stream_dropped <= (others => '0');
        from_hardware.stream_sent    <= (others => '0');

    end generate no_stream;

end architecture rtl;
