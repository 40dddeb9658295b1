-- SPDX-License-Identifier: Apache-2.0
-- Where in the memory a sample goes: up to its end, around and around, or into one of its halves.
-- The halves keep what happened around the largest latency: after a trigger, post_trigger further
-- samples go into the half, which then stays as it is until the next trigger has done so.
-- See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity sample_placement is
    generic (
        index_bits_g : positive := 9;
        freeze_g     : boolean  := false
    );
    port (
        clk : in    std_logic;
        -- Begins a new series; wins over a sample of the same cycle.
        clear        : in    std_logic;
        sample_valid : in    std_logic;

        -- Without halves: overwrite the oldest when full, rather than stop.
        wrap : in    std_logic;
        -- With halves: the sample of this cycle is one to freeze around.
        trigger : in    std_logic;
        -- How many samples a half takes after the trigger; at most so many that it stays in it.
        post_trigger : in    std_logic_vector(31 downto 0);

        -- Of this cycle's sample.
        place_valid : out   std_logic;
        place       : out   std_logic_vector(index_bits_g - 1 downto 0);

        -- No place is left that has not been written in this series.
        full : out   std_logic;
        -- A sample of this series has been overwritten.
        wrapped : out   std_logic;

        -- There is a frozen half: which, and the pulse of the cycle after it was exchanged.
        frozen      : out   std_logic;
        frozen_half : out   std_logic;
        freezes     : out   std_logic;
        -- Positions within the frozen half, and how many of its samples are of this series.
        trigger_position : out   std_logic_vector(31 downto 0);
        frozen_end       : out   std_logic_vector(31 downto 0);
        frozen_count     : out   std_logic_vector(31 downto 0)
    );
end entity sample_placement;

architecture rtl of sample_placement is

    -- Bits that count within the memory, or within one of its halves.
    function bits_within return positive is
    begin
        if freeze_g then
            return index_bits_g - 1;
        end if;
        return index_bits_g;
    end function bits_within;

    subtype position_t is unsigned(bits_within - 1 downto 0);

    signal position    : position_t := (others => '0');
    signal full_now    : std_logic := '0';
    signal wrapped_now : std_logic := '0';
    signal place_now   : std_logic;
    signal begins_half : std_logic;

begin

    place_valid <= place_now;
    full        <= full_now;
    wrapped     <= wrapped_now;

    advance : process (clk) is
    begin

        if rising_edge(clk) then
            if place_now = '1' then
                position    <= position + 1;
                full_now    <= full_now or is_full(position);
                wrapped_now <= wrapped_now or full_now;
            end if;
            if clear = '1' or begins_half = '1' then
                position <= (others => '0');
                full_now <= '0';
            end if;
            if clear = '1' then
                wrapped_now <= '0';
            end if;
        end if;

    end process advance;

    whole : if not freeze_g generate

        place       <= std_logic_vector(position);
        place_now   <= sample_valid and (wrap or not full_now);
        begins_half <= '0';

        frozen           <= '0';
        frozen_half      <= '0';
        freezes          <= '0';
        trigger_position <= (others => '0');
        frozen_end       <= (others => '0');
        frozen_count     <= (others => '0');

    end generate whole;

    halves : if freeze_g generate

        constant last_c : position_t := (others => '1');
        constant all_c  : unsigned(31 downto 0) := to_unsigned(2 ** (index_bits_g - 1), 32);

        signal half       : std_logic := '0';
        signal pending    : std_logic := '0';
        signal remaining  : position_t := (others => '0');
        signal triggered  : position_t := (others => '0');
        signal wanted     : position_t;
        signal now_left   : position_t;
        signal now_waits  : std_logic;
        signal next_place : position_t;

        signal none_wanted : std_logic;
        signal last_one    : std_logic;

        signal freezes_now : std_logic := '0';
        signal frozen_now  : std_logic := '0';
        signal which_now   : std_logic := '0';
        signal trigger_now : position_t := (others => '0');
        signal end_now     : position_t := (others => '0');
        signal all_now     : std_logic := '0';

    begin

        place     <= half & std_logic_vector(position);
        place_now <= sample_valid;

        wanted     <= resize(minimum(unsigned(post_trigger), last_c), wanted'length);
        now_left   <= wanted when trigger = '1' else remaining - 1;
        now_waits  <= sample_valid and (trigger or pending);
        next_place <= position + 1;

        -- Whether none is left, found beside the search for a trigger: that is a long way by itself.
        none_wanted <= nor post_trigger;
        last_one    <= to_bit(remaining = 1);
        begins_half <= (trigger and sample_valid and none_wanted)
                       or (not trigger and sample_valid and pending and last_one);
        freezes     <= freezes_now;

        frozen           <= frozen_now;
        frozen_half      <= which_now;
        trigger_position <= to_word(trigger_now);
        frozen_end       <= to_word(end_now);
        -- A half that has been filled once holds as many samples as it can.
        frozen_count <= to_word(all_c) when all_now = '1' else to_word(end_now);

        follow : process (clk) is
        begin

            if rising_edge(clk) then
                freezes_now <= begins_half;
                if now_waits = '1' then
                    pending   <= '1';
                    remaining <= now_left;
                    if trigger = '1' then
                        triggered <= position;
                    end if;
                end if;
                if begins_half = '1' then
                    pending     <= '0';
                    half        <= not half;
                    frozen_now  <= '1';
                    which_now   <= half;
                    end_now     <= next_place;
                    all_now     <= full_now or is_full(position);
                    trigger_now <= triggered;
                    if trigger = '1' then
                        trigger_now <= position;
                    end if;
                end if;
                if clear = '1' then
                    pending     <= '0';
                    half        <= '0';
                    freezes_now <= '0';
                    frozen_now  <= '0';
                end if;
            end if;

        end process follow;

    end generate halves;

end architecture rtl;
