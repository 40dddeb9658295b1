-- SPDX-License-Identifier: Apache-2.0
-- The last, largest and smallest of a series of latencies, and how many there are.
-- See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity latency_statistics is
    generic (
        latency_width_g : positive := 16;
        num_width_g     : positive := 16
    );
    port (
        clk : in    std_logic;
        -- Begins a new series; wins over a sample of the same cycle.
        clear        : in    std_logic;
        sample_valid : in    std_logic;
        sample       : in    std_logic_vector(latency_width_g - 1 downto 0);

        last    : out   std_logic_vector(latency_width_g - 1 downto 0);
        maximum : out   std_logic_vector(latency_width_g - 1 downto 0);
        -- All ones before the first sample.
        minimum : out   std_logic_vector(latency_width_g - 1 downto 0);
        -- Stops at its largest value: all ones means that many, or more.
        num : out   std_logic_vector(num_width_g - 1 downto 0);
        -- The sample of this cycle is larger than all before it.
        new_maximum : out   std_logic
    );
end entity latency_statistics;

architecture rtl of latency_statistics is

    signal last_now    : std_logic_vector(latency_width_g - 1 downto 0) := (others => '0');
    signal maximum_now : std_logic_vector(latency_width_g - 1 downto 0) := (others => '0');
    signal minimum_now : std_logic_vector(latency_width_g - 1 downto 0) := (others => '1');
    signal num_now     : unsigned(num_width_g - 1 downto 0) := (others => '0');

    signal larger : std_logic;

begin

    larger      <= is_greater(sample, maximum_now);
    new_maximum <= sample_valid and larger;

    last    <= last_now;
    maximum <= maximum_now;
    minimum <= minimum_now;
    num     <= std_logic_vector(num_now);

    accumulate : process (clk) is
    begin

        if rising_edge(clk) then
            if sample_valid = '1' then
                last_now <= sample;
                if larger = '1' then
                    maximum_now <= sample;
                end if;
                if is_greater(minimum_now, sample) = '1' then
                    minimum_now <= sample;
                end if;
                if is_full(num_now) = '0' then
                    num_now <= num_now + 1;
                end if;
            end if;
            if clear = '1' then
                last_now    <= (others => '0');
                maximum_now <= (others => '0');
                minimum_now <= (others => '1');
                num_now     <= (others => '0');
            end if;
        end if;

    end process accumulate;

end architecture rtl;
