---------------------------------------------------------------------------------------------------
-- SPDX-License-Identifier: Apache-2.0
--
-- Histogram of latencies in one simple dual-port block RAM: bins of 32 bits, linear or log-linear,
-- an overflow counter, and a read port that can read and clear a bin in one step.
--
-- Not for: several clocks (all ports are synchronous to clk), or reading a tear-free picture of all
-- bins while samples arrive (each bin is exact, two bins are of two moments).
--
-- Documentation: ../doc/latency_histogram.md
---------------------------------------------------------------------------------------------------

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity latency_histogram is
    generic (
        -- Bits of a sample, at least sub_bits_g + 1.
        latency_width_g : positive := 16;
        -- Number of bins, a power of two from 8.
        bins_g          : positive := 1024;
        -- "linear": bin = sample >> shift. "log-linear": 2**sub_bits_g bins an octave, no shift.
        kind_g          : string := "linear";
        -- Log-linear only: bins keep sub_bits_g bits behind the leading one, from 1.
        sub_bits_g      : positive := 4;
        -- Bits of a bin's count, at most 32.
        count_bits_g    : positive := 32
    );
    port (
        clk             : in    std_logic;
        -- Synchronous, active high; sweeps the bins, too.
        rst             : in    std_logic := '0';

        -- Pulse: all bins and the overflow counter to 0. Wins over samples under way and over a
        -- sample of the same cycle. ready is low for bins_g cycles, from the next cycle on.
        clear           : in    std_logic := '0';
        -- Samples are counted; those that come while it is low are not.
        ready           : out   std_logic;

        -- One sample a cycle may come, back to back, for the same bin or not.
        sample_valid    : in    std_logic;
        sample          : in    std_logic_vector(latency_width_g - 1 downto 0);
        -- The true latency is larger than the sample can say: counts as overflow.
        saturated       : in    std_logic := '0';
        -- Linear only; a level that is constant during a series.
        shift           : in    std_logic_vector(5 downto 0) := (others => '0');
        -- Samples beyond the last bin; stops at all ones.
        overflow        : out   std_logic_vector(31 downto 0);

        -- Pulse. Address and read_clears are taken with it. The next request may come from the
        -- cycle of read_valid on. Waits while samples come, from its own cycle on, and for ready.
        read_request    : in    std_logic := '0';
        read_address    : in    std_logic_vector(address_bits(bins_g) - 1 downto 0) := (others => '0');
        -- The bin is set to 0 in the step that reads it: no sample is lost or counted twice.
        read_clears     : in    std_logic := '0';
        -- One cycle, 4 cycles after the request at the earliest; read_data is valid only then.
        read_valid      : out   std_logic;
        read_data       : out   std_logic_vector(31 downto 0)
    );
end entity latency_histogram;

architecture rtl of latency_histogram is

    constant address_width_c : positive := address_bits(bins_g);

    -- Width of the leading-one search: the next power of two, so that it halves evenly.
    constant search_levels_c : positive := address_bits(latency_width_g);
    constant search_width_c  : positive := 2 ** search_levels_c;

    -- Wide enough for every bin number that a sample can ask for.
    constant log_width_c : positive := search_levels_c + 1 + sub_bits_g;
    constant bin_width_c : positive := maximum(maximum(latency_width_g, log_width_c), address_width_c + 1);

    subtype count_t is unsigned(count_bits_g - 1 downto 0);
    subtype address_t is unsigned(address_width_c - 1 downto 0);
    subtype bin_t is unsigned(bin_width_c - 1 downto 0);
    type ram_t is array (0 to bins_g - 1) of count_t;

    -- One step of the pipeline: nothing, a sample that adds one, or a read that may clear.
    type operation_t is record
        counts  : std_logic;
        reads   : std_logic;
        clears  : std_logic;
        address : address_t;
    end record operation_t;

    constant idle_c : operation_t := ('0', '0', '0', (others => '0'));

    -- The bin of a sample is found in two steps, for it is a long way. The first one does the upper
    -- half of the work: of the shift (linear), or of the search for the leading one (log-linear).
    type found_t is record
        -- The sample, with the leading one near the top (log-linear) or moved down (linear).
        value : unsigned(search_width_c - 1 downto 0);
        -- Zeros that were above it.
        zeros : unsigned(search_levels_c - 1 downto 0);
        -- Log-linear: the sample is below 2**sub_bits_g, and this.
        is_small : std_logic;
        small    : unsigned(sub_bits_g - 1 downto 0);
    end record found_t;

    constant middle_c : natural := search_levels_c / 2;

    function half_found (
        sample : std_logic_vector(latency_width_g - 1 downto 0);
        amount : std_logic_vector(5 downto 0)
    ) return found_t is

        variable found : found_t;

    begin

        found.zeros    := (others => '0');
        found.is_small := to_bit(shift_right(unsigned(sample), sub_bits_g) = 0);
        found.small    := unsigned(sample(sub_bits_g - 1 downto 0));
        if kind_g = "linear" then
            found.value := resize(
                shift_right(unsigned(sample), 8 * to_integer(unsigned(amount(5 downto 3)))), search_width_c);
            return found;
        end if;
        found.value := shift_left(
            resize(unsigned(sample), search_width_c), search_width_c - latency_width_g);
        for level in search_levels_c - 1 downto middle_c loop
            if found.value(search_width_c - 1 downto search_width_c - 2 ** level) = 0 then
                found.value        := shift_left(found.value, 2 ** level);
                found.zeros(level) := '1';
            end if;
        end loop;
        return found;

    end function half_found;

    -- Log-linear: the samples below 2**sub_bits_g have a bin each (octave 0); octave g > 0 holds the
    -- samples with leading one at bit sub_bits_g + g - 1, split by the sub_bits_g bits behind it.
    function bin_of (half : found_t; amount : std_logic_vector(5 downto 0)) return bin_t is

        variable found  : found_t := half;
        variable octave : unsigned(search_levels_c downto 0);

    begin

        if kind_g = "linear" then
            return resize(shift_right(half.value, to_integer(unsigned(amount(2 downto 0)))), bin_width_c);
        end if;
        if half.is_small = '1' then
            return resize(half.small, bin_width_c);
        end if;
        for level in middle_c - 1 downto 0 loop
            if found.value(search_width_c - 1 downto search_width_c - 2 ** level) = 0 then
                found.value        := shift_left(found.value, 2 ** level);
                found.zeros(level) := '1';
            end if;
        end loop;
        octave := to_unsigned(latency_width_g - sub_bits_g, octave'length) - found.zeros;
        return resize(octave & found.value(search_width_c - 2 downto search_width_c - 1 - sub_bits_g),
                      bin_width_c);

    end function bin_of;

    -- Without initial values, which some block RAMs cannot have: the sweep writes every bin.
    signal ram : ram_t;

    signal sweeping      : std_logic := '1';
    signal sweep_address : address_t := (others => '0');
    signal clear_now     : std_logic;
    signal overflows     : std_logic;

    signal pending         : std_logic := '0';
    signal pending_clears  : std_logic := '0';
    signal pending_address : address_t := (others => '0');

    -- Stage 0 has half of a sample's bin, stage 1 addresses the RAM, stage 2 has its word, stage 3 writes.
    signal counts_0    : std_logic := '0';
    signal saturated_0 : std_logic := '0';
    signal found_0     : found_t;

    signal stage_1  : operation_t := idle_c;
    signal beyond_1 : std_logic   := '0';
    signal stage_2  : operation_t := idle_c;

    signal stage_3  : operation_t := idle_c;

    signal ram_word : count_t := (others => '0');
    signal value_2  : count_t;
    signal value_3  : count_t := (others => '0');

    -- What stage 3 writes, and what it wrote in the cycle before.
    signal write_3   : std_logic;
    signal new_value : count_t;
    signal written   : count_t := (others => '0');

    -- Stage 2 is for the bin that stage 3 is for; or was for in the cycle before, when the RAM was
    -- read.
    signal meets_3  : std_logic := '0';
    signal missed_3 : std_logic := '0';

    signal ram_write         : std_logic;
    signal ram_write_address : address_t;
    signal ram_write_word    : count_t;

begin

    assert bins_g >= 8 and is_power_of_two(bins_g)
        report "latency_histogram: bins_g is " & integer'image(bins_g) & "; a power of two from 8 is needed"
        severity failure;
    assert kind_g = "linear" or kind_g = "log-linear"
        report "latency_histogram: kind_g is """ & kind_g & """; linear or log-linear is needed"
        severity failure;
    assert count_bits_g <= 32
        report "latency_histogram: count_bits_g is " & integer'image(count_bits_g) & "; at most 32 is possible"
        severity failure;
    -- Software is told them in four bits.
    assert sub_bits_g < latency_width_g and sub_bits_g <= 15
        report "latency_histogram: sub_bits_g is " & integer'image(sub_bits_g)
            & "; 1 to 15 and less than latency_width_g is needed"
        severity failure;

    ready     <= not sweeping;
    clear_now <= clear or rst;
    overflows <= stage_1.counts and beyond_1;

    beyond_the_last : entity work.event_counter
        port map (
            clk       => clk,
            clear     => clear_now,
            event_now => overflows,
            total     => overflow
        );

    -- The word from the RAM is old when one of the two steps before wrote the same bin.
    value_2   <= new_value when meets_3 = '1' else
                 written when missed_3 = '1' else
                 ram_word;
    write_3   <= stage_3.counts or stage_3.clears;
    new_value <= (others => '0') when stage_3.clears = '1' else
                 value_3 when is_full(value_3) = '1' else
                 value_3 + 1;

    read_valid <= stage_3.reads;
    read_data  <= to_word(value_3);

    -- One write port, with its choice outside the process: else no block RAM is inferred.
    ram_write         <= sweeping or write_3;
    ram_write_address <= sweep_address when sweeping = '1' else
                         stage_3.address;
    ram_write_word    <= (others => '0') when sweeping = '1' else
                         new_value;

    ram_ports : process (clk) is
    begin

        if rising_edge(clk) then
            if ram_write = '1' then
                ram(to_integer(ram_write_address)) <= ram_write_word;
            end if;
            ram_word <= ram(to_integer(stage_1.address));
        end if;

    end process ram_ports;

    pipeline : process (clk) is

        variable bin : bin_t;

    begin

        if rising_edge(clk) then
            stage_2        <= stage_1;
            stage_2.counts <= stage_1.counts and not beyond_1;
            stage_3        <= stage_2;
            value_3        <= value_2;
            written        <= new_value;

            meets_3 <= '0';
            if stage_2.address = stage_1.address then
                meets_3 <= stage_2.counts or stage_2.clears;
            end if;
            missed_3 <= '0';
            if stage_3.address = stage_1.address then
                missed_3 <= write_3;
            end if;

            counts_0    <= sample_valid and not sweeping;
            saturated_0 <= saturated;
            found_0     <= half_found(sample, shift);

            bin      := bin_of(found_0, shift);
            beyond_1 <= saturated_0;
            if bin >= bins_g then
                beyond_1 <= '1';
            end if;

            stage_1 <= idle_c;
            if counts_0 = '1' then
                stage_1.counts  <= '1';
                stage_1.address <= bin(address_t'range);
            elsif pending = '1' and sweeping = '0' then
                stage_1 <= ('0', '1', pending_clears, pending_address);
                pending <= '0';
            end if;

            if read_request = '1' then
                pending         <= '1';
                pending_clears  <= read_clears;
                pending_address <= unsigned(read_address);
            end if;

            if sweeping = '1' then
                sweep_address <= sweep_address + 1;
                if sweep_address = bins_g - 1 then
                    sweeping <= '0';
                end if;
            end if;

            if clear_now = '1' then
                sweeping       <= '1';
                sweep_address  <= (others => '0');
                counts_0       <= '0';
                stage_1.counts <= '0';
            end if;

            if rst = '1' then
                stage_1.reads <= '0';
                stage_2.reads <= '0';
                stage_3.reads <= '0';
                pending       <= '0';
            end if;
        end if;

    end process pipeline;

end architecture rtl;
