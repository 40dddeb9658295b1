---------------------------------------------------------------------------------------------------
-- SPDX-License-Identifier: Apache-2.0
--
-- Brings levels of another clock, or of none, into this one; each bit by itself.
--
-- Not for: words, whose bits would arrive in different cycles.
--
-- Documentation: ../doc/latencies_ip_channels.md
---------------------------------------------------------------------------------------------------

library ieee;
    use ieee.std_logic_1164.all;

entity synchroniser is
    generic (
        width_g  : positive := 1;
        -- Flip-flops in a row: 0 (a wire) for an input of this clock, else 2 or 3.
        stages_g : natural := 2
    );
    port (
        clk   : in    std_logic;
        level : in    std_logic_vector(width_g - 1 downto 0);
        seen  : out   std_logic_vector(width_g - 1 downto 0)
    );
end entity synchroniser;

architecture rtl of synchroniser is

    subtype levels_t is std_logic_vector(width_g - 1 downto 0);
    type stages_t is array (natural range <>) of levels_t;

    signal stage : stages_t(0 to stages_g);

begin

    stage(0) <= level;
    seen     <= stage(stages_g);

    row : for i in 1 to stages_g generate

        -- High from the start: a level that is high then is no edge.
        signal kept : levels_t := (others => '1');

        attribute async_reg : string;
        attribute async_reg of kept : signal is "true";
        -- Never a shift register in a LUT or a memory: Vivado and Yosys, Synplify, Quartus.
        attribute shreg_extract : string;
        attribute shreg_extract of kept : signal is "no";
        attribute syn_srlstyle : string;
        attribute syn_srlstyle of kept : signal is "registers";
        attribute altera_attribute : string;
        attribute altera_attribute of kept : signal is "-name AUTO_SHIFT_REGISTER_RECOGNITION OFF";

    begin

        stage(i) <= kept;

        keep : process (clk) is
        begin

            if rising_edge(clk) then
                kept <= stage(i - 1);
            end if;

        end process keep;

    end generate row;

end architecture rtl;
