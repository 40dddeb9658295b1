---------------------------------------------------------------------------------------------------
-- SPDX-License-Identifier: Apache-2.0
--
-- Makes pairs of irq and ack edges with known distances: what the measuring core then tells must be
-- these distances, to the clock cycle, on the board itself.
--
-- Not for: the path outside the device, nor the synchronisers. Its edges start behind both.
--
-- Documentation: ../doc/self_test.md
---------------------------------------------------------------------------------------------------

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;

entity self_test is
    port (
        clk    : in    std_logic;
        -- Synchronous, active high; ends a test under way without done.
        rst    : in    std_logic := '0';

        -- Pulse: begins. Ignored while active. delay and count are taken with it.
        start  : in    std_logic;
        -- Cycles from irq to ack of the first pair; the next pairs have one more each. 0: the same
        -- cycle. Beyond the maximum it goes on from 0.
        delay  : in    std_logic_vector(31 downto 0);
        -- Number of pairs; with 0, done comes after one pause.
        count  : in    std_logic_vector(31 downto 0);

        -- From the cycle after start to the one before done: irq and ack below are to be measured.
        active : out   std_logic;
        -- Pulse, at least 8 cycles after the last edge: all samples have been taken by then.
        done   : out   std_logic;
        -- High for the one cycle of an edge.
        irq    : out   std_logic;
        ack    : out   std_logic
    );
end entity self_test;

architecture rtl of self_test is

    -- There is no edge this long before each pair and after the last: more than the measuring core
    -- needs, so that one measurement is open at a time.
    constant pause_c : unsigned(2 downto 0) := "111";

    signal running   : std_logic := '0';
    signal ended     : std_logic := '0';
    signal irq_edge  : std_logic := '0';
    signal ack_edge  : std_logic := '0';
    -- Between the edges of a pair, the first one's cycle included.
    signal opened    : std_logic := '0';

    signal pause      : unsigned(2 downto 0)  := (others => '0');
    signal to_ack     : unsigned(31 downto 0) := (others => '0');
    signal pair_delay : unsigned(31 downto 0) := (others => '0');
    signal pairs_left : unsigned(31 downto 0) := (others => '0');

begin

    active <= running;
    done   <= ended;
    irq    <= irq_edge;
    ack    <= ack_edge;

    generate_pairs : process (clk) is
    begin

        if rising_edge(clk) then
            ended    <= '0';
            irq_edge <= '0';
            ack_edge <= '0';

            if running = '0' then
                if start = '1' then
                    running    <= '1';
                    pause      <= pause_c;
                    pair_delay <= unsigned(delay);
                    pairs_left <= unsigned(count);
                end if;
            elsif pause /= 0 then
                pause <= pause - 1;
            elsif opened = '0' and pairs_left = 0 then
                running <= '0';
                ended   <= '1';
            elsif opened = '0' then
                opened     <= '1';
                irq_edge   <= '1';
                to_ack     <= pair_delay;
                pair_delay <= pair_delay + 1;
                pairs_left <= pairs_left - 1;
                if pair_delay = 0 then
                    ack_edge <= '1';
                end if;
            elsif ack_edge = '1' then
                opened <= '0';
                pause  <= pause_c;
            else
                to_ack <= to_ack - 1;
                if to_ack = 1 then
                    ack_edge <= '1';
                end if;
            end if;

            if rst = '1' then
                running   <= '0';
                ended     <= '0';
                irq_edge  <= '0';
                ack_edge  <= '0';
                opened    <= '0';
            end if;
        end if;

    end process generate_pairs;

end architecture rtl;
