-- SPDX-License-Identifier: Apache-2.0
-- Sum of a series of latencies and of their squares, for mean and deviation.
-- A sample is in the sum sums_delay_c cycles after it is in latency_statistics, whose last it takes,
-- and in the sum of squares squares_delay_c cycles later: these are pipelined, so that no cycle has
-- more than one multiplication of 16 bits, or one addition.
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
    subtype product_t is unsigned(2 * limb_bits_c - 1 downto 0);
    subtype square_t is unsigned(95 downto 0);

    signal latency : latency_t;
    signal low     : unsigned(limb_bits_c - 1 downto 0);
    signal middle  : unsigned(limb_bits_c - 1 downto 0);
    signal high    : unsigned(limb_bits_c - 1 downto 0);

    -- There is a sample in: last, the products, their sums, the square.
    signal taken : std_logic_vector(0 to squares_delay_c) := (others => '0');

    -- Each limb times itself, and times each other limb: those count twice.
    signal low_low       : product_t := (others => '0');
    signal middle_middle : product_t := (others => '0');
    signal high_high     : product_t := (others => '0');
    signal low_middle    : product_t := (others => '0');
    signal middle_high   : product_t := (others => '0');
    signal low_high      : product_t := (others => '0');

    signal equal_limbs : square_t := (others => '0');
    signal mixed_limbs : square_t := (others => '0');
    signal square      : square_t := (others => '0');

    signal sum_now     : unsigned(sum_bits_c - 1 downto 0) := (others => '0');
    signal squares_now : unsigned(square_bits_c - 1 downto 0) := (others => '0');

begin

    sum            <= std_logic_vector(resize(sum_now, sum'length));
    sum_of_squares <= std_logic_vector(resize(squares_now, sum_of_squares'length));
    latency        <= resize(unsigned(last), latency'length);
    low            <= latency(limb_bits_c - 1 downto 0);
    middle         <= latency(2 * limb_bits_c - 1 downto limb_bits_c);
    high           <= latency(3 * limb_bits_c - 1 downto 2 * limb_bits_c);

    multiply : process (clk) is
    begin

        if rising_edge(clk) then
            low_low       <= low * low;
            middle_middle <= middle * middle;
            high_high     <= high * high;
            low_middle    <= low * middle;
            middle_high   <= middle * high;
            low_high      <= low * high;
            -- Where products lie side by side nothing is to be added.
            equal_limbs <= high_high & middle_middle & low_low;
            mixed_limbs <= shift_left(resize(middle_high & low_middle, square_t'length), limb_bits_c + 1)
                           + shift_left(resize(low_high, square_t'length), 2 * limb_bits_c + 1);
            square      <= equal_limbs + mixed_limbs;
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
                squares_now <= squares_now + resize(square, square_bits_c);
            end if;
            if clear = '1' then
                taken       <= (others => '0');
                sum_now     <= (others => '0');
                squares_now <= (others => '0');
            end if;
        end if;

    end process add;

end architecture rtl;
