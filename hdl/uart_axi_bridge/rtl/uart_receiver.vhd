-- SPDX-License-Identifier: Apache-2.0
-- Bytes from a serial line: one start bit, eight data bits with the lowest first, one stop bit.
-- A byte whose stop bit is missing is left out. The line is synchronised here.
-- Not for lines whose sender's clock is more than 3 % off.
-- See ../doc/uart_axi_bridge.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity uart_receiver is
    generic (
        -- Clock cycles of a bit; 4 or more.
        cycles_per_bit_g : positive := 100
    );
    port (
        clk  : in    std_logic;
        rst  : in    std_logic;
        -- High while idle.
        line : in    std_logic;
        -- High for one cycle with each byte.
        valid : out   std_logic;
        data  : out   std_logic_vector(7 downto 0)
    );
end entity uart_receiver;

architecture rtl of uart_receiver is

    subtype pause_t is unsigned(address_bits(cycles_per_bit_g) - 1 downto 0);

    constant bit_c  : pause_t := to_unsigned(cycles_per_bit_g - 1, pause_t'length);
    -- From when the start bit was seen to its middle.
    constant half_c : pause_t := to_unsigned(cycles_per_bit_g / 2 - 1, pause_t'length);

    signal seen : std_logic_vector(1 downto 0) := "11";

    attribute async_reg : string;
    attribute async_reg of seen : signal is "true";
    -- Never a shift register in a LUT or a memory: Vivado and Yosys, Synplify, Quartus.
    attribute shreg_extract : string;
    attribute shreg_extract of seen : signal is "no";
    attribute syn_srlstyle : string;
    attribute syn_srlstyle of seen : signal is "registers";
    attribute altera_attribute : string;
    attribute altera_attribute of seen : signal is "-name AUTO_SHIFT_REGISTER_RECOGNITION OFF";

    signal busy : std_logic := '0';
    -- Cycles until the next look at the line.
    signal pause : pause_t := (others => '0');
    -- Start, eight of data, stop: what was seen moves down. The marker tells when all are there.
    signal bits  : std_logic_vector(9 downto 0) := (others => '0');
    signal whole : std_logic := '0';

begin

    valid <= whole;
    data  <= bits(8 downto 1);

    receive : process (clk) is
    begin

        if rising_edge(clk) then
            seen  <= seen(0) & line;
            whole <= '0';
            pause <= pause - 1;
            if busy = '0' then
                pause <= half_c;
                bits  <= (9 => '1', others => '0');
                busy  <= not seen(1);
            elsif pause = 0 then
                pause <= bit_c;
                bits  <= seen(1) & bits(9 downto 1);
                -- The marker has reached the end: this is the stop bit.
                if bits(0) = '1' then
                    busy  <= '0';
                    whole <= seen(1);
                end if;
                -- A start bit that is none any more in its middle was a disturbance.
                if bits(9) = '1' and seen(1) = '1' and bits(8 downto 0) = "000000000" then
                    busy <= '0';
                end if;
            end if;
            if rst = '1' then
                busy  <= '0';
                whole <= '0';
                seen  <= "11";
            end if;
        end if;

    end process receive;

end architecture rtl;
