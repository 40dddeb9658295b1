-- SPDX-License-Identifier: Apache-2.0
-- Bytes to a serial line: one start bit, eight data bits with the lowest first, one stop bit.
-- Not for receivers that need more than one stop bit.
-- See ../doc/uart_axi_bridge.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity uart_transmitter is
    generic (
        -- Clock cycles of a bit.
        cycles_per_bit_g : positive := 100
    );
    port (
        clk : in    std_logic;
        rst : in    std_logic;
        -- A byte is taken in a cycle with both high.
        valid : in    std_logic;
        ready : out   std_logic;
        data  : in    std_logic_vector(7 downto 0);
        -- High while idle.
        line : out   std_logic
    );
end entity uart_transmitter;

architecture rtl of uart_transmitter is

    subtype pause_t is unsigned(address_bits(cycles_per_bit_g) - 1 downto 0);

    constant bit_c : pause_t := to_unsigned(cycles_per_bit_g - 1, pause_t'length);

    -- Of the bit that is on the line.
    signal pause : pause_t := (others => '0');
    -- Bits still to be sent, the next one lowest, below a marker; 0: all are.
    signal left : std_logic_vector(9 downto 0) := (others => '0');
    signal busy : std_logic;

begin

    busy  <= or left;
    ready <= not busy;

    send : process (clk) is
    begin

        if rising_edge(clk) then
            if busy = '0' then
                line  <= '1';
                pause <= bit_c;
                if valid = '1' then
                    line <= '0';
                    left <= "11" & data;
                end if;
            elsif pause = 0 then
                pause <= bit_c;
                line  <= left(0);
                left  <= '0' & left(9 downto 1);
            else
                pause <= pause - 1;
            end if;
            if rst = '1' then
                line <= '1';
                left <= (others => '0');
            end if;
        end if;

    end process send;

end architecture rtl;
