-- SPDX-License-Identifier: Apache-2.0
-- The measuring core: latencies from the edges of an interrupt and of its acknowledgement to
-- statistics, alarm and memory. What alonso2024 calls Latencies IP, without its AXI slaves.
-- Not for a block design: that is latencies_ip.
-- See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity latencies_core is
    generic (
        latency_width_g       : positive := 16;
        depth_g               : positive := 512;
        num_width_g           : positive := 16;
        synchroniser_stages_g : natural  := 2;
        overlap_policy_g      : string   := "drop";
        queue_depth_g         : positive := 16;
        time_stamp_g          : boolean  := false;
        watchdog_g            : boolean  := false;
        -- Where samples are stored is given from outside, rather than from num.
        placed_g : boolean := false;
        -- Edges of the self test can take the inputs' place.
        self_test_g : boolean := false
    );
    port (
        clk : in    std_logic;
        rst : in    std_logic;

        irq : in    std_logic;
        ack : in    std_logic;

        -- With self_test_g: while testing, these edges are measured and the inputs' are not. They
        -- come in behind the synchronisers, which an earlier edge of an input may still be in.
        testing   : in    std_logic := '0';
        irq_tests : in    std_logic := '0';
        ack_tests : in    std_logic := '0';

        -- Measure; what is open when it falls is forgotten.
        enable : in    std_logic;
        -- Begin a new series.
        clear   : in    std_logic;
        tick    : in    tick_t := (others => '0');
        timeout : in    std_logic_vector(31 downto 0) := (others => '0');

        alarm_limit : in    std_logic_vector(latency_width_g - 1 downto 0);
        alarm_clear : in    std_logic;
        alarm       : out   std_logic;

        last    : out   std_logic_vector(latency_width_g - 1 downto 0);
        maximum : out   std_logic_vector(latency_width_g - 1 downto 0);
        minimum : out   std_logic_vector(latency_width_g - 1 downto 0);
        num     : out   std_logic_vector(num_width_g - 1 downto 0);

        -- One cycle for each sample, with what is known of it.
        sample_valid : out   std_logic;
        sample       : out   std_logic_vector(latency_width_g - 1 downto 0);
        saturated    : out   std_logic;
        start_tick   : out   tick_t;
        new_maximum  : out   std_logic;
        new_alarm    : out   std_logic;
        is_open      : out   std_logic;
        orphan       : out   std_logic;
        overlap      : out   std_logic;
        missed       : out   std_logic;
        timed_out    : out   std_logic;

        -- With placed_g: where this cycle's sample belongs, and whether it is stored at all.
        place_valid : in    std_logic := '0';
        place       : in    std_logic_vector(address_bits(depth_g) - 1 downto 0) := (others => '0');

        read_enable  : in    std_logic;
        read_address : in    std_logic_vector(address_bits(depth_g) - 1 downto 0);
        read_data    : out   std_logic_vector(latency_width_g - 1 downto 0)
    );
end entity latencies_core;

architecture rtl of latencies_core is

    constant index_bits_c : positive := address_bits(depth_g);

    -- Edges of the inputs, and those that are measured.
    signal irq_seen  : std_logic;
    signal ack_seen  : std_logic;
    signal irq_rises : std_logic;
    signal ack_rises : std_logic;

    signal valid_now  : std_logic;
    signal sample_now : std_logic_vector(latency_width_g - 1 downto 0);
    signal beyond_now : std_logic;
    signal exceeds    : std_logic;
    signal limit      : std_logic_vector(latency_width_g - 1 downto 0) := (others => '1');
    signal alarm_now  : std_logic := '0';

    signal clears     : std_logic;
    signal num_now    : std_logic_vector(num_width_g - 1 downto 0);
    signal store      : std_logic;
    signal store_here : std_logic_vector(index_bits_c - 1 downto 0);

begin

    assert is_power_of_two(depth_g) and depth_g >= 2 and depth_g <= 65536
        report "depth_g is a power of two from 2 to 65536"
        severity failure;
    assert overlap_policy_g = "drop" or overlap_policy_g = "restart" or overlap_policy_g = "queue"
        report "overlap_policy_g is drop, restart or queue"
        severity failure;
    assert num_width_g > index_bits_c
        report "num_width_g is too small to count more than a full memory"
        severity failure;

    interrupt : entity work.input_edge
        generic map (
            synchroniser_stages_g => synchroniser_stages_g
        )
        port map (
            clk      => clk,
            level_in => irq,
            rising   => irq_seen
        );

    acknowledgement : entity work.input_edge
        generic map (
            synchroniser_stages_g => synchroniser_stages_g
        )
        port map (
            clk      => clk,
            level_in => ack,
            rising   => ack_seen
        );

    inputs : if not self_test_g generate

        irq_rises <= irq_seen;
        ack_rises <= ack_seen;

    end generate inputs;

    inputs_or_test : if self_test_g generate

        irq_rises <= irq_tests when testing = '1' else
                     irq_seen;
        ack_rises <= ack_tests when testing = '1' else
                     ack_seen;

    end generate inputs_or_test;

    one_open : if overlap_policy_g /= "queue" generate

        limit <= alarm_limit;

        counter : entity work.latency_counter
            generic map (
                latency_width_g => latency_width_g,
                restarts_g      => overlap_policy_g = "restart",
                time_stamp_g    => time_stamp_g,
                watchdog_g      => watchdog_g
            )
            port map (
                clk          => clk,
                enable       => enable,
                start        => irq_rises,
                stop         => ack_rises,
                tick         => tick,
                timeout      => timeout,
                sample_valid => valid_now,
                sample       => sample_now,
                saturated    => beyond_now,
                start_tick   => start_tick,
                is_open      => is_open,
                orphan       => orphan,
                overlap      => overlap,
                missed       => missed,
                timed_out    => timed_out
            );

    end generate one_open;

    many_open : if overlap_policy_g = "queue" generate

        signal enable_queue : std_logic;

    begin

        -- Its samples are one cycle late: a reset in between takes them along, and the limit that
        -- counts is the one of the acknowledgement.
        enable_queue <= enable and not rst;

        delay : process (clk) is
        begin

            if rising_edge(clk) then
                limit <= alarm_limit;
            end if;

        end process delay;

        queue : entity work.start_queue
            generic map (
                latency_width_g => latency_width_g,
                queue_depth_g   => queue_depth_g,
                watchdog_g      => watchdog_g
            )
            port map (
                clk          => clk,
                enable       => enable_queue,
                start        => irq_rises,
                stop         => ack_rises,
                tick         => tick,
                timeout      => timeout,
                sample_valid => valid_now,
                sample       => sample_now,
                saturated    => beyond_now,
                start_tick   => start_tick,
                is_open      => is_open,
                orphan       => orphan,
                overlap      => overlap,
                missed       => missed,
                timed_out    => timed_out
            );

    end generate many_open;

    clears <= clear or rst;

    statistics : entity work.latency_statistics
        generic map (
            latency_width_g => latency_width_g,
            num_width_g     => num_width_g
        )
        port map (
            clk          => clk,
            clear        => clears,
            sample_valid => valid_now,
            sample       => sample_now,
            last         => last,
            maximum      => maximum,
            minimum      => minimum,
            num          => num_now,
            new_maximum  => new_maximum
        );

    num          <= num_now;
    sample_valid <= valid_now;
    sample       <= sample_now;
    saturated    <= beyond_now;
    new_alarm    <= exceeds;
    alarm        <= alarm_now;

    -- A latency that is longer than can be told exceeds every limit.
    exceeds <= valid_now and (beyond_now or is_greater(sample_now, limit));

    watch : process (clk) is
    begin

        if rising_edge(clk) then
            if exceeds = '1' then
                alarm_now <= '1';
            elsif alarm_clear = '1' then
                alarm_now <= '0';
            end if;
            if rst = '1' then
                alarm_now <= '0';
            end if;
        end if;

    end process watch;

    numbered : if not placed_g generate

        store      <= valid_now and not (or num_now(num_width_g - 1 downto index_bits_c));
        store_here <= num_now(index_bits_c - 1 downto 0);

    end generate numbered;

    placed : if placed_g generate

        store      <= place_valid;
        store_here <= place;

    end generate placed;

    memory : entity work.sample_memory
        generic map (
            width_g        => latency_width_g,
            address_bits_g => index_bits_c
        )
        port map (
            clk           => clk,
            write_enable  => store,
            write_address => store_here,
            write_data    => sample_now,
            read_enable   => read_enable,
            read_address  => read_address,
            read_data     => read_data
        );

end architecture rtl;
