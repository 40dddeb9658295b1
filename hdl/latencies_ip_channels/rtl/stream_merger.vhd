---------------------------------------------------------------------------------------------------
-- SPDX-License-Identifier: Apache-2.0
--
-- Merges up to 16 AXI-Streams of single beats into one, in turn: none waits for more than one beat
-- of each other.
--
-- Not for: packets of several beats.
--
-- Documentation: ../doc/latencies_ip_channels.md
---------------------------------------------------------------------------------------------------

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;

entity stream_merger is
    generic (
        inputs_g : positive range 1 to 16 := 2
    );
    port (
        aclk    : in    std_logic;
        aresetn : in    std_logic;

        -- 128 bits an input, input 0 lowest.
        s_axis_tdata  : in    std_logic_vector(128 * inputs_g - 1 downto 0);
        s_axis_tvalid : in    std_logic_vector(inputs_g - 1 downto 0);
        s_axis_tready : out   std_logic_vector(inputs_g - 1 downto 0);

        m_axis_tdata  : out   std_logic_vector(127 downto 0);
        m_axis_tvalid : out   std_logic;
        m_axis_tready : in    std_logic
    );
end entity stream_merger;

architecture rtl of stream_merger is

    -- One bit is set: whose turn it is.
    signal turn  : std_logic_vector(inputs_g - 1 downto 0) := (0 => '1', others => '0');
    signal valid : std_logic;

    -- The first input with a beat behind the one whose turn it is, that one last; or no change.
    function next_turn (
        now   : std_logic_vector(inputs_g - 1 downto 0);
        beats : std_logic_vector(inputs_g - 1 downto 0)
    ) return std_logic_vector is

        variable behind : std_logic_vector(inputs_g - 1 downto 0);
        variable wanted : unsigned(inputs_g - 1 downto 0);

    begin

        -- Ones above the set bit.
        behind := std_logic_vector(not ((unsigned(now) - 1) or unsigned(now)));
        wanted := unsigned(beats and behind);
        if wanted = 0 then
            wanted := unsigned(beats);
        end if;
        if wanted = 0 then
            return now;
        end if;
        -- Its lowest bit.
        return std_logic_vector(wanted and (not wanted + 1));

    end function next_turn;

begin

    valid <= or (s_axis_tvalid and turn);

    s_axis_tready <= turn and m_axis_tready;
    m_axis_tvalid <= valid;

    choose : process (all) is

        variable beat : std_logic_vector(127 downto 0);

    begin

        beat := (others => '0');
        for i in turn'range loop
            beat := beat or (s_axis_tdata(128 * i + 127 downto 128 * i) and turn(i));
        end loop;
        m_axis_tdata <= beat;

    end process choose;

    take_turns : process (aclk) is
    begin

        if rising_edge(aclk) then
            -- A beat that has been offered stays until it is taken.
            if valid = '0' or m_axis_tready = '1' then
                turn <= next_turn(turn, s_axis_tvalid);
            end if;

            if aresetn = '0' then
                turn <= (0 => '1', others => '0');
            end if;
        end if;

    end process take_turns;

end architecture rtl;
