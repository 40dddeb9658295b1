-- SPDX-License-Identifier: Apache-2.0
-- What runs on a ULX3S: one Latencies IP between two pins, a source of interrupts at random
-- distances for a third, and the bridge through which a computer reads it all over USB.
-- Not for other boards as it stands; without its pins and PLL, which are in ulx3s.v, it is portable.
-- The way to a measurement: docs/ip-ulx3s.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity ulx3s_bench is
    generic (
        clock_frequency_hz_g : positive := 75_000_000;
        -- Of the serial line: 1 Mbit/s.
        cycles_per_bit_g : positive := 75;
        -- Cycles from one stimulus to the next: 2 to this power, up to three times that. It falls when
        -- half of the least are left. 17: from 1.7 ms to 5.2 ms.
        stimulus_bits_g : positive range 4 to 30 := 17;
        -- Samples that the IP's memory holds, and bins of its histogram: powers of two.
        depth_g : positive := 1024;
        bins_g  : positive := 1024
    );
    port (
        clk : in    std_logic;
        -- High while the clock is not stable.
        rst : in    std_logic;

        -- The serial line, as the computer sees it: to it, from it.
        ftdi_rxd : out   std_logic;
        ftdi_txd : in    std_logic;

        -- Rises at random distances: wire it to what is to be measured.
        stimulus : out   std_logic;
        -- A latency ends with its rising edge.
        answer : in    std_logic;
        -- With sw on a latency begins with this one's rising edge, else with the stimulus.
        begin_in : in    std_logic;
        sw       : in    std_logic;

        -- Alarm, interrupt, stimulus, begin, answer; the last one blinks as long as the clock runs.
        led : out   std_logic_vector(7 downto 0)
    );
end entity ulx3s_bench;

architecture rtl of ulx3s_bench is

    constant latency_c     : positive := 32;
    -- With so many cycles left a stimulus falls.
    constant low_c         : positive := 2 ** (stimulus_bits_g - 1);
    constant window_bits_c : positive := window_bits(depth_g, latency_c, true, bins_g);

    -- The reset as the clock sees it.
    signal settled : std_logic_vector(1 downto 0) := "00";

    attribute async_reg : string;
    attribute async_reg of settled : signal is "true";
    -- Never a shift register in a LUT or a memory: Vivado and Yosys, Synplify, Quartus.
    attribute shreg_extract : string;
    attribute shreg_extract of settled : signal is "no";
    attribute syn_srlstyle : string;
    attribute syn_srlstyle of settled : signal is "registers";
    attribute altera_attribute : string;
    attribute altera_attribute of settled : signal is "-name AUTO_SHIFT_REGISTER_RECOGNITION OFF";

    signal aresetn : std_logic;
    signal reset   : std_logic;

    signal awaddr  : std_logic_vector(19 downto 0);
    signal awprot  : std_logic_vector(2 downto 0);
    signal awvalid : std_logic;
    signal awready : std_logic;
    signal wdata   : std_logic_vector(31 downto 0);
    signal wstrb   : std_logic_vector(3 downto 0);
    signal wvalid  : std_logic;
    signal wready  : std_logic;
    signal bresp   : std_logic_vector(1 downto 0);
    signal bvalid  : std_logic;
    signal bready  : std_logic;
    signal araddr  : std_logic_vector(19 downto 0);
    signal arprot  : std_logic_vector(2 downto 0);
    signal arvalid : std_logic;
    signal arready : std_logic;
    signal rdata   : std_logic_vector(31 downto 0);
    signal rresp   : std_logic_vector(1 downto 0);
    signal rvalid  : std_logic;
    signal rready  : std_logic;

    -- Of S00, bit 0, and S01.
    signal to_awvalid   : std_logic_vector(1 downto 0);
    signal from_awready : std_logic_vector(1 downto 0);
    signal from_bresp   : std_logic_vector(3 downto 0);
    signal from_bvalid  : std_logic_vector(1 downto 0);
    signal to_bready    : std_logic;
    signal to_arvalid   : std_logic_vector(1 downto 0);
    signal from_arready : std_logic_vector(1 downto 0);
    signal from_rdata   : std_logic_vector(63 downto 0);
    signal from_rresp   : std_logic_vector(3 downto 0);
    signal from_rvalid  : std_logic_vector(1 downto 0);
    signal to_rready    : std_logic;

    signal irq       : std_logic;
    signal alarm     : std_logic;
    signal interrupt : std_logic;
    signal raised    : std_logic := '0';
    signal remaining : unsigned(stimulus_bits_g + 1 downto 0) := (others => '0');
    signal draws     : std_logic;
    -- What the next distance adds to the least one: a register, for a word takes most of a cycle.
    signal drawn     : unsigned(stimulus_bits_g downto 0) := (others => '0');
    signal word      : std_logic_vector(31 downto 0);
    signal beat      : unsigned(25 downto 0) := (others => '0');

begin

    stimulus <= raised;
    irq      <= begin_in when sw = '1' else raised;
    led      <= beat(25) & "00" & answer & begin_in & raised & interrupt & alarm;
    aresetn  <= settled(1);
    reset    <= not aresetn;
    draws    <= to_bit(remaining = 0);

    run : process (clk) is
    begin

        if rising_edge(clk) then
            settled   <= settled(0) & not rst;
            beat      <= beat + 1;
            drawn     <= unsigned(word(stimulus_bits_g downto 0));
            remaining <= remaining - 1;
            if draws = '1' then
                raised    <= '1';
                remaining <= resize(drawn, remaining'length) + 2 ** stimulus_bits_g - 1;
            end if;
            if remaining = low_c then
                raised <= '0';
            end if;
            if aresetn = '0' then
                raised    <= '0';
                remaining <= (others => '1');
            end if;
        end if;

    end process run;

    source : entity work.linear_feedback_register
        port map (
            clk     => clk,
            reset   => reset,
            load    => '0',
            seed    => x"00000000",
            advance => draws,
            word    => word
        );

    bridge : entity work.uart_axi_bridge
        generic map (
            cycles_per_bit_g => cycles_per_bit_g
        )
        port map (
            aclk          => clk,
            aresetn       => aresetn,
            rxd           => ftdi_txd,
            txd           => ftdi_rxd,
            m_axi_awaddr  => awaddr,
            m_axi_awprot  => awprot,
            m_axi_awvalid => awvalid,
            m_axi_awready => awready,
            m_axi_wdata   => wdata,
            m_axi_wstrb   => wstrb,
            m_axi_wvalid  => wvalid,
            m_axi_wready  => wready,
            m_axi_bresp   => bresp,
            m_axi_bvalid  => bvalid,
            m_axi_bready  => bready,
            m_axi_araddr  => araddr,
            m_axi_arprot  => arprot,
            m_axi_arvalid => arvalid,
            m_axi_arready => arready,
            m_axi_rdata   => rdata,
            m_axi_rresp   => rresp,
            m_axi_rvalid  => rvalid,
            m_axi_rready  => rready
        );

    selector : entity work.axi_lite_selector
        generic map (
            channels_g    => 2,
            window_bits_g => 16
        )
        port map (
            aclk            => clk,
            aresetn         => aresetn,
            awaddr          => awaddr,
            awvalid         => awvalid,
            awready         => awready,
            wvalid          => wvalid,
            wready          => wready,
            bresp           => bresp,
            bvalid          => bvalid,
            bready          => bready,
            araddr          => araddr,
            arvalid         => arvalid,
            arready         => arready,
            rdata           => rdata,
            rresp           => rresp,
            rvalid          => rvalid,
            rready          => rready,
            channel_awvalid => to_awvalid,
            channel_awready => from_awready,
            channel_bresp   => from_bresp,
            channel_bvalid  => from_bvalid,
            channel_bready  => to_bready,
            channel_arvalid => to_arvalid,
            channel_arready => from_arready,
            channel_rdata   => from_rdata,
            channel_rresp   => from_rresp,
            channel_rvalid  => from_rvalid,
            channel_rready  => to_rready
        );

    ip : entity work.latencies_ip
        generic map (
            latency_width_g       => latency_c,
            depth_g               => depth_g,
            num_width_g           => 32,
            synchroniser_stages_g => 2,
            clock_frequency_hz_g  => clock_frequency_hz_g,
            identification_g      => true,
            counters_g            => true,
            watchdog_g            => true,
            time_stamp_g          => true,
            snapshot_g            => true,
            sums_g                => true,
            histogram_g           => true,
            histogram_bins_g      => bins_g,
            histogram_kind_g      => "log-linear",
            self_test_g           => true
        )
        port map (
            aclk            => clk,
            aresetn         => aresetn,
            irq_in          => irq,
            ack_in          => answer,
            alarm           => alarm,
            interrupt       => interrupt,
            s00_axi_awaddr  => awaddr(window_bits_c - 1 downto 0),
            s00_axi_awvalid => to_awvalid(0),
            s00_axi_awready => from_awready(0),
            s00_axi_wdata   => wdata,
            s00_axi_wstrb   => wstrb,
            s00_axi_wvalid  => to_awvalid(0),
            s00_axi_wready  => open,
            s00_axi_bresp   => from_bresp(1 downto 0),
            s00_axi_bvalid  => from_bvalid(0),
            s00_axi_bready  => to_bready,
            s00_axi_araddr  => araddr(window_bits_c - 1 downto 0),
            s00_axi_arvalid => to_arvalid(0),
            s00_axi_arready => from_arready(0),
            s00_axi_rdata   => from_rdata(31 downto 0),
            s00_axi_rresp   => from_rresp(1 downto 0),
            s00_axi_rvalid  => from_rvalid(0),
            s00_axi_rready  => to_rready,
            s01_axi_awaddr  => awaddr(11 downto 0),
            s01_axi_awvalid => to_awvalid(1),
            s01_axi_awready => from_awready(1),
            s01_axi_wdata   => wdata,
            s01_axi_wstrb   => wstrb,
            s01_axi_wvalid  => to_awvalid(1),
            s01_axi_wready  => open,
            s01_axi_bresp   => from_bresp(3 downto 2),
            s01_axi_bvalid  => from_bvalid(1),
            s01_axi_bready  => to_bready,
            s01_axi_araddr  => araddr(11 downto 0),
            s01_axi_arvalid => to_arvalid(1),
            s01_axi_arready => from_arready(1),
            s01_axi_rdata   => from_rdata(63 downto 32),
            s01_axi_rresp   => from_rresp(3 downto 2),
            s01_axi_rvalid  => from_rvalid(1),
            s01_axi_rready  => to_rready
        );

end architecture rtl;
