-- SPDX-License-Identifier: Apache-2.0
-- Counts clock cycles from a start to the next stop, one measurement at a time.
-- A start while a measurement is open is left out, or begins it anew (restarts_g).
-- Not for several open measurements: that is start_queue.
-- See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity latency_counter is
    generic (
        latency_width_g : positive := 16;
        -- A start while one is open replaces it; otherwise it is left out.
        restarts_g : boolean := false;
        -- Remember when the open measurement started.
        time_stamp_g : boolean := false;
        -- Give up what is open for too long.
        watchdog_g : boolean := false
    );
    port (
        clk : in    std_logic;
        -- Low: nothing is measured and what is open is forgotten.
        enable : in    std_logic;
        start  : in    std_logic;
        stop   : in    std_logic;
        tick   : in    tick_t;
        -- Cycles after which a measurement is given up; 0: never.
        timeout : in    std_logic_vector(31 downto 0);

        sample_valid : out   std_logic;
        sample       : out   std_logic_vector(latency_width_g - 1 downto 0);
        -- The latency is longer than the largest sample, which stands in its place.
        saturated : out   std_logic;
        -- When the sample's measurement started.
        start_tick : out   tick_t;

        is_open   : out   std_logic;
        orphan    : out   std_logic;
        overlap   : out   std_logic;
        missed    : out   std_logic;
        timed_out : out   std_logic
    );
end entity latency_counter;

architecture rtl of latency_counter is

    constant restarts_c : std_logic := to_bit(restarts_g);

    -- Nothing is open: 0 with `beyond`. Counting: 1 and on. At its largest value it stops, and
    -- one cycle later it is `beyond`.
    signal counter : unsigned(latency_width_g - 1 downto 0) := (others => '0');
    signal beyond  : std_logic := '1';

    signal open_now  : std_logic;
    signal at_end    : std_logic;
    signal gives_up  : std_logic;
    signal closes    : std_logic;
    signal begins    : std_logic;
    signal overlaps  : std_logic;

begin

    open_now <= counter(0) or not beyond;
    at_end   <= is_full(counter);

    closes   <= stop or gives_up;
    overlaps <= start and open_now and not closes;
    -- A start and a stop at once with nothing open are a latency of 0, which leaves nothing open.
    begins <= start and ((open_now and (closes or restarts_c)) or (not open_now and not stop));

    sample_valid <= enable and stop and (open_now or start);
    sample       <= std_logic_vector(counter);
    saturated    <= beyond and counter(0);
    is_open      <= open_now;
    orphan       <= enable and stop and not open_now and not start;
    overlap      <= enable and overlaps;
    missed       <= enable and (overlaps or gives_up);
    timed_out    <= enable and gives_up;

    count : process (clk) is
    begin

        if rising_edge(clk) then
            if at_end = '1' then
                beyond <= '1';
            elsif open_now = '1' then
                counter <= counter + 1;
            end if;
            if begins = '1' or closes = '1' or enable = '0' then
                counter    <= (others => '0');
                counter(0) <= begins and enable;
                beyond     <= not (begins and enable);
            end if;
        end if;

    end process count;

    stamps : if time_stamp_g generate

        signal started : tick_t := (others => '0');

    begin

        start_tick <= started when open_now = '1' else tick;

        remember : process (clk) is
        begin

            if rising_edge(clk) then
                if begins = '1' then
                    started <= tick;
                end if;
            end if;

        end process remember;

    end generate stamps;

    no_stamps : if not time_stamp_g generate

        start_tick <= (others => '0');

    end generate no_stamps;

    watchdog : if watchdog_g generate

        signal age : unsigned(31 downto 0) := (others => '0');

    begin

        gives_up <= open_now and not stop and (or timeout) and to_bit(age >= unsigned(timeout));

        measure : process (clk) is
        begin

            if rising_edge(clk) then
                if begins = '1' then
                    age <= to_unsigned(1, age'length);
                elsif (and age) = '0' then
                    age <= age + 1;
                end if;
            end if;

        end process measure;

    end generate watchdog;

    no_watchdog : if not watchdog_g generate

        gives_up <= '0';

    end generate no_watchdog;

end architecture rtl;
