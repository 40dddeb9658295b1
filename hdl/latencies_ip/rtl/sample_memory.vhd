-- SPDX-License-Identifier: Apache-2.0
-- Memory with one port to write and one to read, as block RAM has.
-- A word that is read in the cycle in which it is written is the old or the new one: which, is
-- the RAM's affair, so nobody may depend on it. Not cleared by a reset, and without initial values,
-- which some block RAMs cannot have: a word that was never written is undefined.
-- See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;

entity sample_memory is
    generic (
        width_g        : positive := 16;
        address_bits_g : positive := 9
    );
    port (
        clk           : in    std_logic;
        write_enable  : in    std_logic;
        write_address : in    std_logic_vector(address_bits_g - 1 downto 0);
        write_data    : in    std_logic_vector(width_g - 1 downto 0);
        read_enable   : in    std_logic;
        read_address  : in    std_logic_vector(address_bits_g - 1 downto 0);
        -- Of the last cycle with read_enable.
        read_data : out   std_logic_vector(width_g - 1 downto 0)
    );
end entity sample_memory;

architecture rtl of sample_memory is

    type memory_t is array (0 to 2 ** address_bits_g - 1) of std_logic_vector(width_g - 1 downto 0);

    signal memory  : memory_t;
    signal fetched : std_logic_vector(width_g - 1 downto 0);

begin

    read_data <= fetched;

    access_memory : process (clk) is
    begin

        if rising_edge(clk) then
            if write_enable = '1' then
                memory(to_integer(unsigned(write_address))) <= write_data;
            end if;
            if read_enable = '1' then
                fetched <= memory(to_integer(unsigned(read_address)));
            end if;
        end if;

    end process access_memory;

end architecture rtl;
