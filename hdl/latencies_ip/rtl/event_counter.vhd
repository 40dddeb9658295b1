-- SPDX-License-Identifier: Apache-2.0
-- Counts events on 32 bits and stops at the largest value: all ones means that many, or more.
-- See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity event_counter is
    port (
        clk : in    std_logic;
        -- Back to 0; wins over an event of the same cycle.
        clear : in    std_logic;
        -- High for one cycle each.
        event_now : in    std_logic;
        total     : out   std_logic_vector(31 downto 0)
    );
end entity event_counter;

architecture rtl of event_counter is

    signal total_now : unsigned(31 downto 0) := (others => '0');

begin

    total <= std_logic_vector(total_now);

    count : process (clk) is
    begin

        if rising_edge(clk) then
            if event_now = '1' and is_full(total_now) = '0' then
                total_now <= total_now + 1;
            end if;
            if clear = '1' then
                total_now <= (others => '0');
            end if;
        end if;

    end process count;

end architecture rtl;
