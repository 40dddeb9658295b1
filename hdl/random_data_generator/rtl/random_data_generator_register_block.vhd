-- SPDX-License-Identifier: Apache-2.0
-- Random data generator, registers: the AXI4-Lite slave.
-- Address and data of a write are taken together. Absent, read-only and, where a register refuses,
-- unreadable addresses answer SLVERR and change nothing. The low two address bits, awprot and
-- arprot are ignored; strobes are honoured.
-- Not for other bus widths than 32 bits, nor for more than one transfer at a time.
-- See ../doc/random_data_generator.md.
-- Generated from hdl/registers/random_data_generator.rdl by hdl/registers/generate: edit that, not
-- this.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.random_data_generator_registers_pkg.all;

entity random_data_generator_register_block is
    generic (
        words_g : positive := 16
    );
    port (
        aclk    : in    std_logic;
        aresetn : in    std_logic;

        s_axi_awaddr  : in    std_logic_vector(11 downto 0);
        s_axi_awprot  : in    std_logic_vector(2 downto 0);
        s_axi_awvalid : in    std_logic;
        s_axi_awready : out   std_logic;
        s_axi_wdata   : in    std_logic_vector(31 downto 0);
        s_axi_wstrb   : in    std_logic_vector(3 downto 0);
        s_axi_wvalid  : in    std_logic;
        s_axi_wready  : out   std_logic;
        s_axi_bresp   : out   std_logic_vector(1 downto 0);
        s_axi_bvalid  : out   std_logic;
        s_axi_bready  : in    std_logic;
        s_axi_araddr  : in    std_logic_vector(11 downto 0);
        s_axi_arprot  : in    std_logic_vector(2 downto 0);
        s_axi_arvalid : in    std_logic;
        s_axi_arready : out   std_logic;
        s_axi_rdata   : out   std_logic_vector(31 downto 0);
        s_axi_rresp   : out   std_logic_vector(1 downto 0);
        s_axi_rvalid  : out   std_logic;
        s_axi_rready  : in    std_logic;

        from_hardware : in    from_hardware_t;
        to_hardware   : out   to_hardware_t
    );
end entity random_data_generator_register_block;

architecture rtl of random_data_generator_register_block is

    constant highest_c : natural := 7;

    type words_t is array (0 to highest_c) of word_t;

    -- '1' for true.
    function to_bit (value : boolean) return std_logic is
    begin
        if value then
            return '1';
        end if;
        return '0';
    end function to_bit;

    -- One bit a word address: what can be read, what can be written.
    constant present_c : std_logic_vector(0 to highest_c) := (
        data_index_c     => '1',
        seed_index_c     => '1',
        words_index_c    => '1',
        level_index_c    => '1',
        status_index_c   => '1',
        overruns_index_c => '1',
        requests_index_c => '1',
        others => '0'
    );

    constant writable_c : std_logic_vector(0 to highest_c) := (
        seed_index_c  => '1',
        words_index_c => '1',
        others => '0'
    );

    -- Address bits that tell the present registers apart.
    function decoded_bits return positive is
        variable bits : positive := 1;
    begin
        for i in present_c'range loop
            while present_c(i) = '1' and i >= 2 ** bits loop
                bits := bits + 1;
            end loop;
        end loop;
        return bits;
    end function decoded_bits;

    constant decoded_bits_c : positive := decoded_bits;

    -- A word after a write of it, or without one.
    function merged (old, data : word_t; strobes : std_logic_vector(3 downto 0); write : std_logic)
        return word_t is
        variable word : word_t := old;
    begin
        for lane in strobes'range loop
            if write = '1' and strobes(lane) = '1' then
                word(8 * lane + 7 downto 8 * lane) := data(8 * lane + 7 downto 8 * lane);
            end if;
        end loop;
        return word;
    end function merged;

    -- A flag of a word address. Compared one by one: ghdl 2.0 --synth writes constants of more than
    -- 32 bits wrongly into Verilog when they are indexed by a signal.
    function is_set (flags : std_logic_vector; index : natural) return std_logic is
        variable result : std_logic := '0';
    begin
        for i in flags'range loop
            if flags(i) = '1' and index = i then
                result := '1';
            end if;
        end loop;
        return result;
    end function is_set;

    -- What reads return, without what this block keeps.
    function driven (circuit : from_hardware_t) return words_t is
        variable words : words_t := (others => (others => '0'));
    begin
        words(data_index_c) := circuit.data;
        words(level_index_c) := circuit.level;
        words(status_index_c)(0) := circuit.status_empty;
        words(status_index_c)(1) := circuit.status_full;
        words(status_index_c)(2) := circuit.status_busy;
        words(overruns_index_c) := circuit.overruns;
        words(requests_index_c) := circuit.requests;
        return words;
    end function driven;

    -- What this block keeps: the bits that have flip-flops, the word after reset, its value.
    constant seed_bits_c  : word_t := x"FFFFFFFF";
    constant seed_reset_c : word_t := x"00000001" and seed_bits_c;
    signal   seed_value   : word_t := seed_reset_c;
    signal   seed_next    : word_t;

    constant words_bits_c  : word_t := x"FFFFFFFF";
    constant words_reset_c : word_t := std_logic_vector(to_unsigned(words_g, 32)) and words_bits_c;
    signal   words_value   : word_t := words_reset_c;
    signal   words_next    : word_t;

    signal write_index  : natural range 0 to highest_c;
    signal write_accept : std_logic;
    signal write_okay   : std_logic;
    signal writes       : std_logic_vector(0 to highest_c);
    signal ones         : word_t;
    signal read_index   : natural range 0 to highest_c;
    signal read_accept  : std_logic;
    signal read_okay    : std_logic;

    -- An answer to a write, and whether it is an error; without one: a write is taken in this cycle.
    signal bvalid : std_logic := '0';
    signal marked : std_logic := '0';
    signal rvalid : std_logic := '0';
    signal rerror : std_logic := '0';
    signal rdata  : word_t := (others => '0');
    signal data_pending : std_logic := '0';
begin

    s_axi_awready <= write_accept;
    s_axi_wready  <= write_accept;
    s_axi_bresp   <= marked & '0';
    s_axi_bvalid  <= bvalid;
    s_axi_arready <= not rvalid;
    s_axi_rdata   <= rdata;
    s_axi_rresp   <= rerror & '0';
    s_axi_rvalid  <= rvalid;

    -- A write is taken in the cycle after both its valids were seen: no output depends on an input of
    -- the same cycle (IHI 0022, A3.1.1). They stay until then (A3.2.1).
    write_accept <= marked and not bvalid;
    write_index  <= to_integer(unsigned(s_axi_awaddr(decoded_bits_c + 1 downto 2)));
    write_okay   <= is_set(writable_c, write_index) and
        (nor s_axi_awaddr(11 downto decoded_bits_c + 2));

    select_write : for i in writes'range generate

        writes(i) <= write_accept and write_okay and to_bit(write_index = i);

    end generate select_write;

    -- The ones a write carries in its strobed lanes.
    select_ones : for i in ones'range generate

        ones(i) <= s_axi_wdata(i) and s_axi_wstrb(i / 8);

    end generate select_ones;

    read_accept <= s_axi_arvalid and not rvalid;
    read_index  <= to_integer(unsigned(s_axi_araddr(decoded_bits_c + 1 downto 2)));
    read_okay   <= is_set(present_c, read_index) and
        (nor s_axi_araddr(11 downto decoded_bits_c + 2)) and
        not (from_hardware.data_error and to_bit(read_index = data_index_c));

    seed_next <= seed_bits_c and
        merged(seed_value, s_axi_wdata, s_axi_wstrb, writes(seed_index_c));

    words_next <= words_bits_c and
        merged(words_value, s_axi_wdata, s_axi_wstrb, writes(words_index_c));

    to_hardware.data_read <= read_accept and read_okay and to_bit(read_index = data_index_c);
    to_hardware.seed <= seed_value;
    to_hardware.seed_next <= seed_next;
    to_hardware.seed_written <= writes(seed_index_c) and (or s_axi_wstrb(3 downto 0));
    to_hardware.words <= words_value;
    to_hardware.data_delivered <= data_pending and s_axi_rready;

    keep : process (aclk) is
    begin

        if rising_edge(aclk) then
            seed_value <= seed_next;
            words_value <= words_next;
            if aresetn = '0' then
                seed_value <= seed_reset_c;
                words_value <= words_reset_c;
            end if;
        end if;

    end process keep;

    respond : process (aclk) is
        variable words : words_t;
    begin

        if rising_edge(aclk) then
            if write_accept = '1' then
                bvalid <= '1';
                marked <= not write_okay;
            elsif bvalid = '0' or s_axi_bready = '1' then
                bvalid <= '0';
                marked <= s_axi_awvalid and s_axi_wvalid;
            end if;
            -- What is read while nothing waits is looked at only if it was asked for.
            if rvalid = '0' then
                words  := driven(from_hardware);
                words(seed_index_c) := seed_value;
                words(words_index_c) := words_value;
                rvalid <= s_axi_arvalid;
                rerror <= '0';
                rdata  <= words(read_index);
            elsif s_axi_rready = '1' then
                rvalid <= '0';
            end if;
            -- Behind the choice of a word, where the flip-flops' own reset does it.
            if rvalid = '0' and read_okay = '0' then
                rerror <= '1';
                rdata  <= (others => '0');
            end if;
            if aresetn = '0' then
                bvalid <= '0';
                marked <= '0';
                rvalid <= '0';
            end if;
        end if;

    end process respond;

    remember_data : process (aclk) is
    begin

        if rising_edge(aclk) then
            if read_accept = '1' then
                data_pending <= read_okay and to_bit(read_index = data_index_c);
            elsif s_axi_rready = '1' then
                data_pending <= '0';
            end if;
            if aresetn = '0' then
                data_pending <= '0';
            end if;
        end if;

    end process remember_data;
end architecture rtl;
