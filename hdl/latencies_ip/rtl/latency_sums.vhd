-- SPDX-License-Identifier: Apache-2.0
-- Sum of a series of latencies and of their squares, for mean and deviation.
-- A sample is in the sum sums_delay_c cycles after it is in latency_statistics, whose last it takes,
-- and in the sum of squares squares_delay_c cycles later: these are pipelined, so that no cycle has
-- more than one multiplication of 16 bits by a latency, or one addition.
-- The sum wraps after 2**64 cycles in all, the sum of squares never before num does.
-- See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

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

    -- A latency as limbs of 16 bits; those above its width are 0.
    constant limb_bits_c : positive := 16;

    subtype latency_t is unsigned(47 downto 0);
    subtype product_t is unsigned(latency_width_g + limb_bits_c - 1 downto 0);
    subtype square_t is unsigned(2 * latency_width_g - 1 downto 0);
    type products_t is array (0 to 2) of product_t;

    signal latency : latency_t;

    -- There is a sample in: last, the products, their sums, the square.
    signal taken       : std_logic_vector(0 to squares_delay_c) := (others => '0');
    -- The latency times each of its limbs.
    signal products    : products_t := (others => (others => '0'));
    signal low_two     : square_t := (others => '0');
    signal high_one    : product_t := (others => '0');
    signal square      : square_t := (others => '0');
    signal sum_now     : unsigned(sum_bits_c - 1 downto 0) := (others => '0');
    signal squares_now : unsigned(square_bits_c - 1 downto 0) := (others => '0');

begin

    sum            <= std_logic_vector(resize(sum_now, sum'length));
    sum_of_squares <= std_logic_vector(resize(squares_now, sum_of_squares'length));
    latency        <= resize(unsigned(last), latency'length);

    multiply : process (clk) is
    begin

        if rising_edge(clk) then
            for i in products'range loop
                products(i) <= unsigned(last) * latency(limb_bits_c * i + limb_bits_c - 1 downto limb_bits_c * i);
            end loop;
            low_two  <= resize(products(0), square_t'length)
                        + shift_left(resize(products(1), square_t'length), limb_bits_c);
            high_one <= products(2);
            square   <= low_two + shift_left(resize(high_one, square_t'length), 2 * limb_bits_c);
        end if;

    end process multiply;

    add : process (clk) is
    begin

        if rising_edge(clk) then
            taken <= sample_valid & taken(0 to taken'high - 1);
            if taken(0) = '1' then
                sum_now <= sum_now + unsigned(last);
            end if;
            if taken(taken'high) = '1' then
                squares_now <= squares_now + square;
            end if;
            if clear = '1' then
                taken       <= (others => '0');
                sum_now     <= (others => '0');
                squares_now <= (others => '0');
            end if;
        end if;

    end process add;

end architecture rtl;
