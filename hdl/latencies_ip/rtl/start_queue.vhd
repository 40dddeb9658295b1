-- SPDX-License-Identifier: Apache-2.0
-- Latencies of measurements that overlap: remembers when each started, the oldest is stopped
-- first. Ticks of 64 bits, so that no age wraps. Samples appear one cycle after their stop, and what
-- is counted beside them one cycle after its edge, so that all counts are of one moment.
-- Not for sources that never overlap: latency_counter is far smaller.
-- See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity start_queue is
    generic (
        latency_width_g : positive := 16;
        -- How many measurements can be open at once; a power of two.
        queue_depth_g : positive := 16;
        -- Give up what is open for too long.
        watchdog_g : boolean := false
    );
    port (
        clk : in    std_logic;
        -- Low: nothing is measured and what is open is forgotten.
        enable : in    std_logic;
        start  : in    std_logic;
        stop   : in    std_logic;
        -- Rises by 1 every cycle.
        tick : in    tick_t;
        -- Cycles after which a measurement is given up; 0: never. A change counts one cycle later.
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
end entity start_queue;

architecture rtl of start_queue is

    constant index_bits_c : positive := address_bits(queue_depth_g);

    type memory_t is array (0 to queue_depth_g - 1) of tick_t;

    signal memory : memory_t := (others => (others => '0'));
    -- Places of the one behind the oldest, and of the next to come.
    signal second : unsigned(index_bits_c - 1 downto 0) := to_unsigned(1, index_bits_c);
    signal free   : unsigned(index_bits_c - 1 downto 0) := (others => '0');
    signal count  : unsigned(index_bits_c downto 0) := (others => '0');
    -- When the oldest started: out of the memory before it is needed, so that no cycle reads and
    -- subtracts.
    signal head : tick_t := (others => '0');

    signal open_now : std_logic;
    signal full     : std_logic;
    signal gives_up : std_logic;
    signal leaves   : std_logic;
    signal enters   : std_logic;
    signal finishes : std_logic;
    signal replaces : std_logic;
    signal behind   : tick_t;
    signal age      : unsigned(tick_width_c - 1 downto 0);

    signal valid_now   : std_logic := '0';
    signal sample_now  : std_logic_vector(latency_width_g - 1 downto 0) := (others => '0');
    signal beyond_now  : std_logic := '0';
    signal started_now : tick_t := (others => '0');

    signal orphan_now  : std_logic := '0';
    signal overlap_now : std_logic := '0';
    signal missed_now  : std_logic := '0';
    signal expired_now : std_logic := '0';

begin

    assert is_power_of_two(queue_depth_g) and queue_depth_g > 1
        report "queue_depth_g is a power of two, 2 or more"
        severity failure;

    open_now <= or count;
    full     <= count(index_bits_c);
    age      <= unsigned(tick) - unsigned(head);
    replaces <= leaves or not open_now;
    behind   <= memory(to_integer(second)) when count > 1 else
                tick;

    leaves   <= enable and open_now and (stop or gives_up);
    enters   <= enable and start and (leaves or (open_now and not full) or (not open_now and not stop));
    finishes <= enable and stop and (open_now or start);

    sample_valid <= valid_now;
    sample       <= sample_now;
    saturated    <= beyond_now;
    start_tick   <= started_now;

    is_open   <= open_now;
    orphan    <= orphan_now;
    overlap   <= overlap_now;
    missed    <= missed_now;
    timed_out <= expired_now;

    store : process (clk) is
    begin

        if rising_edge(clk) then
            if enters = '1' then
                memory(to_integer(free)) <= tick;
            end if;
        end if;

    end process store;

    follow : process (clk) is
    begin

        if rising_edge(clk) then
            if enters = '1' then
                free <= free + 1;
            end if;
            if leaves = '1' then
                second <= second + 1;
            end if;
            if replaces = '1' then
                head <= behind;
            end if;
            if enters = '1' and leaves = '0' then
                count <= count + 1;
            elsif leaves = '1' and enters = '0' then
                count <= count - 1;
            end if;
            if enable = '0' then
                free   <= (others => '0');
                second <= to_unsigned(1, index_bits_c);
                count  <= (others => '0');
            end if;
        end if;

    end process follow;

    finish : process (clk) is
    begin

        if rising_edge(clk) then
            orphan_now  <= enable and stop and not open_now and not start;
            overlap_now <= enable and start and to_bit(count > 1 or (count = 1 and leaves = '0'));
            missed_now  <= enable and ((start and full and not leaves) or gives_up);
            expired_now <= enable and gives_up;
            valid_now   <= finishes;
            started_now <= head;
            sample_now  <= std_logic_vector(age(latency_width_g - 1 downto 0));
            beyond_now  <= '0';
            if (or age(tick_width_c - 1 downto latency_width_g)) = '1' then
                sample_now <= (others => '1');
                beyond_now <= '1';
            end if;
            -- With nothing open, a start and a stop at once are a latency of 0.
            if open_now = '0' then
                started_now <= tick;
                sample_now  <= (others => '0');
                beyond_now  <= '0';
            end if;
        end if;

    end process finish;

    watchdog : if watchdog_g generate

        -- When the oldest is given up, known beforehand as well, and the distance to it.
        signal watches  : std_logic := '0';
        signal deadline : unsigned(tick_width_c - 1 downto 0) := (others => '0');
        signal late     : unsigned(tick_width_c - 1 downto 0);

    begin

        late     <= unsigned(tick) - deadline;
        gives_up <= open_now and not stop and watches and not late(tick_width_c - 1);

        look_ahead : process (clk) is
        begin

            if rising_edge(clk) then
                watches  <= or timeout;
                deadline <= unsigned(head) + unsigned(timeout);
                if replaces = '1' then
                    deadline <= unsigned(behind) + unsigned(timeout);
                end if;
            end if;

        end process look_ahead;

    end generate watchdog;

    no_watchdog : if not watchdog_g generate

        gives_up <= '0';

    end generate no_watchdog;

end architecture rtl;
