-- SPDX-License-Identifier: Apache-2.0
-- Rising edges of one input, after a synchroniser for inputs of another clock.
-- Nothing is reset: the input is sampled during a reset as well, so that one which is high then
-- does not look like an edge afterwards. Not for pulses shorter than a clock cycle: these can
-- be missed; interrupt lines are levels that last until they are served.
-- See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;

entity input_edge is
    generic (
        -- Flip-flops before the edge detector: 0 for an input of this clock, else 2 or 3.
        synchroniser_stages_g : natural := 2
    );
    port (
        clk      : in    std_logic;
        level_in : in    std_logic;
        -- High for the one cycle in which the input is first seen high.
        rising : out   std_logic
    );
end entity input_edge;

architecture rtl of input_edge is

    -- The last one is the edge detector's, those before it synchronise.
    signal seen : std_logic_vector(synchroniser_stages_g downto 0) := (others => '1');
    signal here : std_logic;

    function synchronises return string is
    begin
        if synchroniser_stages_g > 0 then
            return "true";
        end if;
        return "false";
    end function synchronises;

    -- Next to each other; by this the constraints find them, too.
    attribute async_reg : string;
    attribute async_reg of seen : signal is synchronises;
    -- Never a shift register in a LUT or a memory: Vivado and Yosys, Synplify, Quartus.
    attribute shreg_extract : string;
    attribute shreg_extract of seen : signal is "no";
    attribute syn_srlstyle : string;
    attribute syn_srlstyle of seen : signal is "registers";
    attribute altera_attribute : string;
    attribute altera_attribute of seen : signal is "-name AUTO_SHIFT_REGISTER_RECOGNITION OFF";

begin

    assert synchroniser_stages_g = 0 or synchroniser_stages_g = 2 or synchroniser_stages_g = 3
        report "synchroniser_stages_g is 0, 2 or 3"
        severity failure;

    direct : if synchroniser_stages_g = 0 generate

        here <= level_in;

    end generate direct;

    synchronised : if synchroniser_stages_g > 0 generate

        here <= seen(synchroniser_stages_g - 1);

    end generate synchronised;

    rising <= here and not seen(synchroniser_stages_g);

    sample : process (clk) is
    begin

        if rising_edge(clk) then
            for stage in seen'range loop
                if stage = 0 then
                    seen(stage) <= level_in;
                else
                    seen(stage) <= seen(stage - 1);
                end if;
            end loop;
        end if;

    end process sample;

end architecture rtl;
