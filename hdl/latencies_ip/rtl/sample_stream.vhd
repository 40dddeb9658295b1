---------------------------------------------------------------------------------------------------
-- SPDX-License-Identifier: Apache-2.0
--
-- Samples as AXI-Stream: one beat a sample, through a first-in first-out memory of 16, so that a
-- run is not limited by any memory of the measuring core.
--
-- Not for: holding up the measurement. A sample that finds the memory full is dropped and counted;
-- the sequence number of the beats shows where.
--
-- Documentation: ../doc/sample_stream.md
---------------------------------------------------------------------------------------------------

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;

entity sample_stream is
    generic (
        -- Number of this measuring core, 0 to 255, in every beat.
        channel_g : natural range 0 to 255 := 0
    );
    port (
        clk           : in    std_logic;
        -- Synchronous, active high: empties the memory, sent and dropped to 0.
        rst           : in    std_logic := '0';
        -- Pulse, a new series: sent, dropped and the sequence to 0; beats not taken yet stay. A
        -- sample of the same cycle is not taken.
        clear         : in    std_logic := '0';

        sample_valid  : in    std_logic;
        sample        : in    std_logic_vector(47 downto 0);
        saturated     : in    std_logic;
        -- Time stamp of the interrupt, in clock cycles.
        start_tick    : in    std_logic_vector(63 downto 0);

        -- 63:0 start tick, 111:64 latency, 119:112 channel, 120 saturated, 127:121 sequence: number
        -- of the sample in its series modulo 128, dropped ones counted, so that a gap shows them.
        m_axis_tdata  : out   std_logic_vector(127 downto 0);
        m_axis_tvalid : out   std_logic;
        m_axis_tready : in    std_logic;

        -- Samples of this series that found the memory full; stops at all ones.
        dropped       : out   std_logic_vector(31 downto 0);
        -- Beats taken by the receiver since the series began; stops at all ones.
        sent          : out   std_logic_vector(31 downto 0)
    );
end entity sample_stream;

architecture rtl of sample_stream is

    constant depth_c : positive := 16;

    subtype position_t is unsigned(3 downto 0);
    -- Sequence, saturated, latency, start tick.
    subtype entry_t is std_logic_vector(119 downto 0);
    type memory_t is array (0 to depth_c - 1) of entry_t;

    signal memory         : memory_t   := (others => (others => '0'));
    signal write_position : position_t := (others => '0');
    signal read_position  : position_t := (others => '0');
    signal level          : unsigned(4 downto 0) := (others => '0');

    signal sample_number : unsigned(6 downto 0) := (others => '0');

    signal newest : entry_t;
    signal oldest : entry_t;
    signal valid  : std_logic;
    signal taken  : std_logic;
    signal full   : std_logic;
    signal stored : std_logic;
    signal lost   : std_logic;

    signal begins : std_logic;

begin

    valid  <= '0' when level = 0 else
              '1';
    full   <= '1' when level = depth_c else
              '0';
    taken  <= valid and m_axis_tready;
    stored <= sample_valid and not full and not clear;
    lost   <= sample_valid and full;
    begins <= clear or rst;
    newest <= std_logic_vector(sample_number) & saturated & sample & start_tick;
    oldest <= memory(to_integer(read_position));

    m_axis_tvalid <= valid;
    m_axis_tdata  <= oldest(119 downto 112) & std_logic_vector(to_unsigned(channel_g, 8))
                     & oldest(111 downto 0);

    drops : entity work.event_counter
        port map (
            clk       => clk,
            clear     => begins,
            event_now => lost,
            total     => dropped
        );

    beats : entity work.event_counter
        port map (
            clk       => clk,
            clear     => begins,
            event_now => taken,
            total     => sent
        );

    store : process (clk) is
    begin

        if rising_edge(clk) then
            if stored = '1' then
                memory(to_integer(write_position)) <= newest;
            end if;
        end if;

    end process store;

    count : process (clk) is
    begin

        if rising_edge(clk) then
            if stored = '1' then
                write_position <= write_position + 1;
            end if;
            if taken = '1' then
                read_position <= read_position + 1;
            end if;
            if stored = '1' and taken = '0' then
                level <= level + 1;
            elsif stored = '0' and taken = '1' then
                level <= level - 1;
            end if;

            if sample_valid = '1' then
                sample_number <= sample_number + 1;
            end if;
            if begins = '1' then
                sample_number <= (others => '0');
            end if;

            if rst = '1' then
                write_position <= (others => '0');
                read_position  <= (others => '0');
                level          <= (others => '0');
            end if;
        end if;

    end process count;

end architecture rtl;
