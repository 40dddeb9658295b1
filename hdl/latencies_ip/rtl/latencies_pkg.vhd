-- SPDX-License-Identifier: Apache-2.0
-- What the parts of the Latencies IP share: sizes that follow from generics, and conversions.
-- Not for users of the IP: its top is latencies_ip. See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;

package latencies_pkg is

    -- Latencies and time stamps leave the IP at these widths, whatever the generics are.
    constant sample_width_c : positive := 48;
    constant tick_width_c   : positive := 64;

    -- Cycles from a sample in the statistics to it in their sum, and from there in that of squares.
    constant sums_delay_c    : positive := 1;
    constant squares_delay_c : positive := 3;

    subtype sample_t is std_logic_vector(sample_width_c - 1 downto 0);

    subtype tick_t is std_logic_vector(tick_width_c - 1 downto 0);

    -- Bits that count from 0 to value - 1; 1 for values below 3.
    function address_bits (value : positive) return positive;

    -- Whether a value is a power of two.
    function is_power_of_two (value : positive) return boolean;

    -- Bins that the window shows.
    function shown_bins (has_histogram : boolean; bins : positive) return natural;

    -- The region whose data takes longer, or 8 for none.
    function delayed_region (has_histogram : boolean) return natural;

    -- Byte address bits of the window with samples: 12, more where more is in it.
    function window_bits (depth : positive; width : positive; ticks : boolean; bins : natural) return positive;

    -- Bits that count the words of one region of that window.
    function region_bits (depth : positive; bins : natural) return positive;

    -- '1' for true.
    function to_bit (value : boolean) return std_logic;

    -- Whether left > right: the borrow of a subtraction, which every FPGA has a carry chain for.
    function is_greater (left : std_logic_vector; right : std_logic_vector) return std_logic;

    -- Whether a value is all ones: the carry of adding 1, from the chain that counts it anyway.
    function is_full (value : unsigned) return std_logic;

    -- A value on 32 bits, zeros above.
    function to_word (value : unsigned) return std_logic_vector;

    -- A value on 32 bits, zeros above; what does not fit is left out.
    function low_word (value : std_logic_vector) return std_logic_vector;

    -- What of a value does not fit on 32 bits, on 32 bits.
    function high_word (value : std_logic_vector) return std_logic_vector;

end package latencies_pkg;

package body latencies_pkg is

    function address_bits (value : positive) return positive is
        variable bits : positive := 1;
    begin
        while 2 ** bits < value loop
            bits := bits + 1;
        end loop;
        return bits;
    end function address_bits;

    function is_power_of_two (value : positive) return boolean is
    begin
        return value = 1 or 2 ** address_bits(value) = value;
    end function is_power_of_two;

    function shown_bins (has_histogram : boolean; bins : positive) return natural is
    begin
        if has_histogram then
            return bins;
        end if;
        return 0;
    end function shown_bins;

    function delayed_region (has_histogram : boolean) return natural is
    begin
        if has_histogram then
            return 4;
        end if;
        return 8;
    end function delayed_region;

    function region_bits (depth : positive; bins : natural) return positive is
    begin
        if bins > depth then
            return address_bits(bins);
        end if;
        return address_bits(depth);
    end function region_bits;

    function window_bits (depth : positive; width : positive; ticks : boolean; bins : natural) return positive is
        variable bits : positive := 2 + region_bits(depth, bins);
    begin
        if width > 32 or ticks or bins > 0 then
            bits := bits + 3;
        end if;
        if bits < 12 then
            return 12;
        end if;
        return bits;
    end function window_bits;

    function to_bit (value : boolean) return std_logic is
    begin
        if value then
            return '1';
        end if;
        return '0';
    end function to_bit;

    function is_greater (left : std_logic_vector; right : std_logic_vector) return std_logic is
        variable difference : unsigned(left'length downto 0);
    begin
        difference := resize(unsigned(right), left'length + 1) - resize(unsigned(left), left'length + 1);
        return difference(left'length);
    end function is_greater;

    function is_full (value : unsigned) return std_logic is
        variable sum : unsigned(value'length downto 0);
    begin
        sum := resize(value, value'length + 1) + 1;
        return sum(value'length);
    end function is_full;

    function to_word (value : unsigned) return std_logic_vector is
    begin
        return std_logic_vector(resize(value, 32));
    end function to_word;

    function low_word (value : std_logic_vector) return std_logic_vector is
    begin
        return std_logic_vector(resize(unsigned(value), 32));
    end function low_word;

    function high_word (value : std_logic_vector) return std_logic_vector is
    begin
        return std_logic_vector(resize(shift_right(resize(unsigned(value), 64), 32), 32));
    end function high_word;

end package body latencies_pkg;
