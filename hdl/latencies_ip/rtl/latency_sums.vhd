-- SPDX-License-Identifier: Apache-2.0
-- Sum of a series of latencies and of their squares, for mean and deviation.
-- A sample is in the sums one cycle after it is in latency_statistics, whose last it takes.
-- The sum wraps after 2**64 cycles in all, the sum of squares never before num does.
-- See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;

entity latency_sums is
    generic (
        latency_width_g : positive := 16
    );
    port (
        clk : in    std_logic;
        -- Begins a new series; wins over a sample of the same cycle.
        clear        : in    std_logic;
        sample_valid : in    std_logic;
        -- The last sample, from the cycle after sample_valid on.
        last           : in    std_logic_vector(latency_width_g - 1 downto 0);
        sum            : out   std_logic_vector(63 downto 0);
        sum_of_squares : out   std_logic_vector(127 downto 0)
    );
end entity latency_sums;

architecture rtl of latency_sums is

    function smaller (left : positive; right : positive) return positive is
    begin
        if left < right then
            return left;
        end if;
        return right;
    end function smaller;

    -- 32 bits more than one value has, as num has at most 32.
    constant sum_bits_c    : positive := smaller(latency_width_g + 32, 64);
    constant square_bits_c : positive := 2 * latency_width_g + 32;

    signal taken       : std_logic := '0';
    signal sum_now     : unsigned(sum_bits_c - 1 downto 0) := (others => '0');
    signal squares_now : unsigned(square_bits_c - 1 downto 0) := (others => '0');

begin

    sum            <= std_logic_vector(resize(sum_now, sum'length));
    sum_of_squares <= std_logic_vector(resize(squares_now, sum_of_squares'length));

    add : process (clk) is
    begin

        if rising_edge(clk) then
            taken <= sample_valid;
            if taken = '1' then
                sum_now     <= sum_now + unsigned(last);
                squares_now <= squares_now + unsigned(last) * unsigned(last);
            end if;
            if clear = '1' then
                taken       <= '0';
                sum_now     <= (others => '0');
                squares_now <= (others => '0');
            end if;
        end if;

    end process add;

end architecture rtl;
