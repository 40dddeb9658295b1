-- SPDX-License-Identifier: Apache-2.0
-- Pseudo-random words, reproducible from a seed: a linear-feedback shift register of maximal
-- length, shifted by a whole word a cycle. As width_g has no factor in common with the period
-- 2 ** width_g - 1, every word but 0 comes once a period.
-- Not for keys or anything secret: from one word all later ones follow.
-- See ../doc/random_data_generator.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;

entity linear_feedback_register is
    generic (
        -- Bits of a word: 8, 16 or 32.
        width_g : positive := 32
    );
    port (
        clk   : in    std_logic;
        reset : in    std_logic;
        -- Begin anew from the seed; 0, from which nothing but 0 would follow, counts as 1.
        load : in    std_logic;
        seed : in    std_logic_vector(width_g - 1 downto 0);
        -- Go on to the next word.
        advance : in    std_logic;
        -- The word that follows; the first one is width_g shifts after the seed.
        word : out   std_logic_vector(width_g - 1 downto 0)
    );
end entity linear_feedback_register;

architecture rtl of linear_feedback_register is

    subtype state_t is std_logic_vector(width_g - 1 downto 0);

    constant one_c : state_t := (0 => '1', others => '0');

    -- Taps of maximal length from P. Alfke, "Efficient Shift Registers, LFSR Counters, and Long
    -- Pseudo-Random Sequence Generators", Xilinx XAPP 052, table 3, with XOR in place of XNOR;
    -- a tap n there is bit n - 1 here.
    function taps return state_t is
        variable mask : std_logic_vector(31 downto 0) := (others => '0');
    begin
        if width_g = 8 then
            mask := x"000000B8"; -- 8, 6, 5, 4
        elsif width_g = 16 then
            mask := x"0000D008"; -- 16, 15, 13, 4
        else
            mask := x"80200003"; -- 32, 22, 2, 1
        end if;
        return mask(width_g - 1 downto 0);
    end function taps;

    constant taps_c : state_t := taps;

    function next_word (state : state_t) return state_t is
        variable shifted : state_t := state;
    begin
        for step in 1 to width_g loop
            shifted := shifted(width_g - 2 downto 0) & (xor (shifted and taps_c));
        end loop;
        return shifted;
    end function next_word;

    signal state : state_t := one_c;

begin

    assert width_g = 8 or width_g = 16 or width_g = 32
        report "width_g is 8, 16 or 32"
        severity failure;

    word <= next_word(state);

    shift : process (clk) is
    begin

        if rising_edge(clk) then
            if advance = '1' then
                state <= next_word(state);
            end if;
            if load = '1' then
                state <= seed;
                if unsigned(seed) = 0 then
                    state <= one_c;
                end if;
            end if;
            if reset = '1' then
                state <= one_c;
            end if;
        end if;

    end process shift;

end architecture rtl;
