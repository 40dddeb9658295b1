-- SPDX-License-Identifier: Apache-2.0
-- Words in the order in which they came. The oldest one stands at the output while there is one.
-- Pushing into a full one and popping an empty one change nothing.
-- Not for crossing clocks.
-- See ../doc/random_data_generator.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity word_fifo is
    generic (
        width_g : positive := 32;
        -- How many words it holds; a power of two, 2 or more.
        depth_g : positive := 64
    );
    port (
        clk   : in    std_logic;
        reset : in    std_logic;
        push  : in    std_logic;
        word  : in    std_logic_vector(width_g - 1 downto 0);
        pop   : in    std_logic;
        -- The oldest word; undefined while empty.
        oldest : out   std_logic_vector(width_g - 1 downto 0);
        -- How many words are in it, 0 to depth_g.
        level : out   unsigned(address_bits(depth_g) downto 0);
        empty : out   std_logic;
        full  : out   std_logic
    );
end entity word_fifo;

architecture rtl of word_fifo is

    constant index_bits_c : positive := address_bits(depth_g);

    type memory_t is array (0 to depth_g - 1) of std_logic_vector(width_g - 1 downto 0);

    signal memory : memory_t := (others => (others => '0'));
    signal first  : unsigned(index_bits_c - 1 downto 0) := (others => '0');
    signal free   : unsigned(index_bits_c - 1 downto 0) := (others => '0');
    signal count  : unsigned(index_bits_c downto 0) := (others => '0');
    signal enters : std_logic;
    signal leaves : std_logic;

begin

    assert is_power_of_two(depth_g) and depth_g > 1
        report "fifo depth is a power of two, 2 or more"
        severity failure;

    empty  <= nor count;
    full   <= count(index_bits_c);
    level  <= count;
    oldest <= memory(to_integer(first));
    enters <= push and not count(index_bits_c);
    leaves <= pop and (or count);

    store : process (clk) is
    begin

        if rising_edge(clk) then
            if enters = '1' then
                memory(to_integer(free)) <= word;
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
                first <= first + 1;
            end if;
            if enters = '1' and leaves = '0' then
                count <= count + 1;
            elsif leaves = '1' and enters = '0' then
                count <= count - 1;
            end if;
            if reset = '1' then
                first <= (others => '0');
                free  <= (others => '0');
                count <= (others => '0');
            end if;
        end if;

    end process follow;

end architecture rtl;
