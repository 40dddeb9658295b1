---------------------------------------------------------------------------------------------------
-- SPDX-License-Identifier: Apache-2.0
--
-- One AXI4-Lite slave in front of up to 16 alike ones: the four address bits above the window of
-- one say which. What is not there answers SLVERR. One write and one read at a time.
--
-- Not for: slaves that take the address of a write before its data or after, or as soon as they see
-- it; ours take both in one cycle, the one after they were offered.
--
-- Documentation: ../doc/latencies_ip_channels.md
---------------------------------------------------------------------------------------------------

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;

entity axi_lite_selector is
    generic (
        channels_g    : positive range 1 to 16 := 2;
        -- Byte address bits of one slave.
        window_bits_g : positive := 12
    );
    port (
        aclk    : in    std_logic;
        aresetn : in    std_logic;

        -- The requests; their address, data, strobes and protection go to all slaves directly.
        awaddr  : in    std_logic_vector(window_bits_g + 3 downto 0);
        awvalid : in    std_logic;
        awready : out   std_logic;
        wvalid  : in    std_logic;
        wready  : out   std_logic;
        bresp   : out   std_logic_vector(1 downto 0);
        bvalid  : out   std_logic;
        bready  : in    std_logic;
        araddr  : in    std_logic_vector(window_bits_g + 3 downto 0);
        arvalid : in    std_logic;
        arready : out   std_logic;
        rdata   : out   std_logic_vector(31 downto 0);
        rresp   : out   std_logic_vector(1 downto 0);
        rvalid  : out   std_logic;
        rready  : in    std_logic;

        -- One bit, or two, or 32, a slave; slave 0 lowest. awvalid is wvalid, too.
        channel_awvalid : out   std_logic_vector(channels_g - 1 downto 0);
        channel_awready : in    std_logic_vector(channels_g - 1 downto 0);
        channel_bresp   : in    std_logic_vector(2 * channels_g - 1 downto 0);
        channel_bvalid  : in    std_logic_vector(channels_g - 1 downto 0);
        channel_bready  : out   std_logic;
        channel_arvalid : out   std_logic_vector(channels_g - 1 downto 0);
        channel_arready : in    std_logic_vector(channels_g - 1 downto 0);
        channel_rdata   : in    std_logic_vector(32 * channels_g - 1 downto 0);
        channel_rresp   : in    std_logic_vector(2 * channels_g - 1 downto 0);
        channel_rvalid  : in    std_logic_vector(channels_g - 1 downto 0);
        channel_rready  : out   std_logic
    );
end entity axi_lite_selector;

architecture rtl of axi_lite_selector is

    subtype channels_t is std_logic_vector(channels_g - 1 downto 0);

    constant slverr_c : std_logic_vector(1 downto 0) := "10";

    -- A request has been taken, its answer not.
    signal writing      : std_logic := '0';
    signal reading      : std_logic := '0';
    -- The answer is ours: there is no such channel.
    signal write_absent : std_logic := '0';
    signal read_absent  : std_logic := '0';

    -- A write to no channel is taken in this cycle.
    signal takes_absent : std_logic := '0';

    signal write_to  : channels_t;
    signal read_from : channels_t;

    signal write_offered : std_logic;
    signal write_taken   : std_logic;
    signal read_ready    : std_logic;
    signal read_taken    : std_logic;
    signal b_valid       : std_logic;
    signal r_valid       : std_logic;

    function one_hot (number : std_logic_vector(3 downto 0)) return channels_t is

        variable selected : channels_t := (others => '0');

    begin

        for i in selected'range loop
            if unsigned(number) = i then
                selected(i) := '1';
            end if;
        end loop;
        return selected;

    end function one_hot;

    -- The word of the channel whose valid is set, or 0.
    function answer (
        valid : channels_t;
        words : std_logic_vector;
        width : positive
    ) return std_logic_vector is

        alias words_a : std_logic_vector(words'length - 1 downto 0) is words;

        variable word : std_logic_vector(width - 1 downto 0) := (others => '0');

    begin

        for i in valid'range loop
            word := word or (words_a(width * (i + 1) - 1 downto width * i) and valid(i));
        end loop;
        return word;

    end function answer;

begin

    write_to      <= one_hot(awaddr(window_bits_g + 3 downto window_bits_g));
    write_offered <= awvalid and wvalid and not writing;
    -- Of registers alone, as a slave's awready is: no output depends on an input of the same cycle
    -- (IHI 0022, A3.1.1).
    write_taken   <= takes_absent or (or channel_awready);

    channel_awvalid <= write_to and write_offered;
    channel_bready  <= bready;

    awready <= write_taken;
    wready  <= write_taken;
    b_valid <= write_absent or (or channel_bvalid);
    bvalid  <= b_valid;
    bresp   <= answer(channel_bvalid, channel_bresp, 2) or (slverr_c and write_absent);

    read_from    <= one_hot(araddr(window_bits_g + 3 downto window_bits_g));
    read_ready   <= (and channel_arready) and not reading;
    read_taken   <= arvalid and read_ready;

    channel_arvalid <= read_from and read_taken;
    channel_rready  <= rready;

    arready <= read_ready;
    r_valid <= read_absent or (or channel_rvalid);
    rvalid  <= r_valid;
    rresp   <= answer(channel_rvalid, channel_rresp, 2) or (slverr_c and read_absent);
    rdata   <= answer(channel_rvalid, channel_rdata, 32);

    remember : process (aclk) is
    begin

        if rising_edge(aclk) then
            takes_absent <= write_offered and (nor write_to) and not takes_absent;
            if write_taken = '1' then
                writing      <= '1';
                write_absent <= takes_absent;
            elsif b_valid = '1' and bready = '1' then
                writing      <= '0';
                write_absent <= '0';
            end if;

            if read_taken = '1' then
                reading     <= '1';
                read_absent <= nor read_from;
            elsif r_valid = '1' and rready = '1' then
                reading     <= '0';
                read_absent <= '0';
            end if;

            if aresetn = '0' then
                writing      <= '0';
                takes_absent <= '0';
                write_absent <= '0';
                reading      <= '0';
                read_absent  <= '0';
            end if;
        end if;

    end process remember;

end architecture rtl;
