-- SPDX-License-Identifier: Apache-2.0
-- AXI4-Lite slave through which memories are read; it answers writes, and reads of what is not
-- there, with SLVERR. One read at a time, its data one cycle after its address where the memory
-- is block RAM. Data of an error is undefined. awprot, arprot and write data do not matter.
-- Writes and reads take turns: a write waits until the answer to a read under way was taken.
-- See ../doc/latencies_ip.md.

library ieee;
    use ieee.std_logic_1164.all;

entity sample_window is
    generic (
        address_bits_g : positive := 12;
        -- Words of a region, as a power of two.
        region_bits_g : positive := 9;
        -- Words that regions 0 ... 3, and region 4, really have, as powers of two.
        sample_bits_g : positive := 9;
        bin_bits_g    : positive := 9;
        -- Regions 0 ... 7 that are there.
        regions_g : std_logic_vector(7 downto 0) := x"01";
        -- The region whose data comes later, with delayed_valid; 8: none.
        delayed_region_g : natural range 0 to 8 := 8
    );
    port (
        clk : in    std_logic;
        rst : in    std_logic;

        awvalid : in    std_logic;
        awready : out   std_logic;
        wvalid  : in    std_logic;
        wready  : out   std_logic;
        bresp   : out   std_logic_vector(1 downto 0);
        bvalid  : out   std_logic;
        bready  : in    std_logic;
        araddr  : in    std_logic_vector(address_bits_g - 1 downto 0);
        arvalid : in    std_logic;
        arready : out   std_logic;
        rresp   : out   std_logic_vector(1 downto 0);
        rvalid  : out   std_logic;
        rready  : in    std_logic;

        -- High for the cycle in which the memory of a region takes the address.
        fetch : out   std_logic_vector(7 downto 0);
        -- The region whose data is to be given back; stays until it has been taken.
        region : out   std_logic_vector(7 downto 0);
        -- The data of the delayed region is there, and stays.
        delayed_valid : in    std_logic := '0'
    );
end entity sample_window;

architecture rtl of sample_window is

    constant first_region_bit_c : positive := region_bits_g + 2;
    constant last_region_bit_c  : natural  := first_region_bit_c + 2;
    constant error_c            : std_logic_vector(1 downto 0) := "10";

    signal written : std_logic := '0';
    signal answers : std_logic := '0';
    signal waits   : std_logic := '0';
    -- Of a read's answer: it is an error. Without a read: a write is taken in this cycle, which is the
    -- one after it was seen, so that no output depends on an input (IHI 0022, A3.1.1).
    signal marked  : std_logic := '0';

    signal takes_write : std_logic;
    signal sees_write  : std_logic;
    signal accepts     : std_logic;
    signal chosen      : std_logic_vector(7 downto 0);

begin

    awready <= takes_write;
    wready  <= takes_write;
    bvalid  <= written;
    bresp   <= error_c;

    arready <= not answers and not waits and not marked;
    rvalid  <= answers;
    rresp   <= marked & '0';

    takes_write <= marked and not answers and not waits;
    sees_write  <= awvalid and wvalid and not written;
    accepts     <= arvalid and not answers and not waits and not marked;
    fetch   <= chosen when accepts = '1' else (others => '0');

    decode : process (all) is

        variable outside : std_logic_vector(7 downto 0);
        variable number  : natural range 0 to 7;

    begin

        outside := (others => '0');
        number  := 0;
        for bit in araddr'range loop
            if bit >= first_region_bit_c and bit <= last_region_bit_c then
                if araddr(bit) = '1' then
                    number := number + 2 ** (bit - first_region_bit_c);
                end if;
            elsif bit > last_region_bit_c then
                outside := outside or araddr(bit);
            else
                if bit >= sample_bits_g + 2 then
                    outside(3 downto 0) := outside(3 downto 0) or araddr(bit);
                end if;
                if bit >= bin_bits_g + 2 then
                    outside(4) := outside(4) or araddr(bit);
                end if;
            end if;
        end loop;
        chosen         <= (others => '0');
        chosen(number) <= regions_g(number) and not outside(number);

    end process decode;

    answer_writes : process (clk) is
    begin

        if rising_edge(clk) then
            if takes_write = '1' then
                written <= '1';
            elsif bready = '1' then
                written <= '0';
            end if;
            if rst = '1' then
                written <= '0';
            end if;
        end if;

    end process answer_writes;

    prompt : if delayed_region_g = 8 generate

        waits <= '0';

        answer_reads : process (clk) is
        begin

            if rising_edge(clk) then
                if accepts = '1' then
                    answers <= '1';
                    marked  <= nor chosen;
                elsif answers = '0' or rready = '1' then
                    answers <= '0';
                    marked  <= sees_write and not takes_write;
                end if;
                if rst = '1' then
                    answers <= '0';
                    marked  <= '0';
                end if;
            end if;

        end process answer_reads;

    end generate prompt;

    delayed : if delayed_region_g < 8 generate

        answer_reads : process (clk) is
        begin

            if rising_edge(clk) then
                if accepts = '1' then
                    waits   <= chosen(delayed_region_g);
                    answers <= not chosen(delayed_region_g);
                    marked  <= nor chosen;
                elsif waits = '1' then
                    waits   <= not delayed_valid;
                    answers <= delayed_valid;
                elsif answers = '0' or rready = '1' then
                    answers <= '0';
                    marked  <= sees_write and not takes_write;
                end if;
                if rst = '1' then
                    waits   <= '0';
                    answers <= '0';
                    marked  <= '0';
                end if;
            end if;

        end process answer_reads;

    end generate delayed;

    one_region : if regions_g = x"01" generate

        region <= x"01";

    end generate one_region;

    regions : if regions_g /= x"01" generate

        signal chosen_then : std_logic_vector(7 downto 0) := (others => '0');

    begin

        region <= chosen_then;

        remember : process (clk) is
        begin

            if rising_edge(clk) then
                if accepts = '1' then
                    chosen_then <= chosen;
                end if;
            end if;

        end process remember;

    end generate regions;

end architecture rtl;
