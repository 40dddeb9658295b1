---------------------------------------------------------------------------------------------------
-- SPDX-License-Identifier: Apache-2.0
--
-- Up to 16 Latencies IPs behind one pair of AXI4-Lite slaves, with one time stamp for all and their
-- streams merged into one. Chained, a channel begins where the one before ends, so that the parts
-- of a way are measured with the whole.
--
-- Not for: channels that differ in their generics, or are clocked differently.
--
-- Documentation: ../doc/latencies_ip_channels.md
---------------------------------------------------------------------------------------------------

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity latencies_ip_channels is
    generic (
        channels_g : positive range 1 to 16 := 2;
        -- The irq of channel i > 0 is the ack of channel i - 1; irq_in(i) is not used.
        chained_g  : boolean := false;

        -- Of every channel, as latencies_ip has them.
        latency_width_g       : positive := 16;
        depth_g               : positive := 512;
        num_width_g           : positive := 16;
        synchroniser_stages_g : natural := 2;
        overlap_policy_g      : string := "drop";
        queue_depth_g         : positive := 16;
        clock_frequency_hz_g  : positive := 100_000_000;
        identification_g      : boolean := false;
        counters_g            : boolean := false;
        watchdog_g            : boolean := false;
        time_stamp_g          : boolean := true;
        snapshot_g            : boolean := false;
        sums_g                : boolean := false;
        histogram_g           : boolean := false;
        histogram_bins_g      : positive := 1024;
        histogram_kind_g      : string := "linear";
        histogram_sub_bits_g  : positive := 4;
        stream_g              : boolean := false;
        freeze_g              : boolean := false;
        self_test_g           : boolean := false
    );
    port (
        aclk    : in    std_logic;
        -- Synchronous, active low.
        aresetn : in    std_logic;

        irq_in : in    std_logic_vector(channels_g - 1 downto 0);
        ack_in : in    std_logic_vector(channels_g - 1 downto 0);

        alarm     : out   std_logic_vector(channels_g - 1 downto 0);
        -- Level: any channel's.
        interrupt : out   std_logic;

        -- Samples of all channels in turn; bits 119:112 of a beat are its channel.
        m_axis_tdata  : out   std_logic_vector(127 downto 0);
        m_axis_tvalid : out   std_logic;
        m_axis_tready : in    std_logic := '1';

        -- The memories of latencies: the upper four address bits are the channel.
        s00_axi_awaddr  : in    std_logic_vector(
            window_bits(depth_g, latency_width_g, time_stamp_g,
                        shown_bins(histogram_g, histogram_bins_g)) + 3 downto 0
        );
        s00_axi_awprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        s00_axi_awvalid : in    std_logic;
        s00_axi_awready : out   std_logic;
        s00_axi_wdata   : in    std_logic_vector(31 downto 0);
        s00_axi_wstrb   : in    std_logic_vector(3 downto 0);
        s00_axi_wvalid  : in    std_logic;
        s00_axi_wready  : out   std_logic;
        s00_axi_bresp   : out   std_logic_vector(1 downto 0);
        s00_axi_bvalid  : out   std_logic;
        s00_axi_bready  : in    std_logic;
        s00_axi_araddr  : in    std_logic_vector(
            window_bits(depth_g, latency_width_g, time_stamp_g,
                        shown_bins(histogram_g, histogram_bins_g)) + 3 downto 0
        );
        s00_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        s00_axi_arvalid : in    std_logic;
        s00_axi_arready : out   std_logic;
        s00_axi_rdata   : out   std_logic_vector(31 downto 0);
        s00_axi_rresp   : out   std_logic_vector(1 downto 0);
        s00_axi_rvalid  : out   std_logic;
        s00_axi_rready  : in    std_logic;

        -- Registers: address bits 15:12 are the channel.
        s01_axi_awaddr  : in    std_logic_vector(15 downto 0);
        s01_axi_awprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        s01_axi_awvalid : in    std_logic;
        s01_axi_awready : out   std_logic;
        s01_axi_wdata   : in    std_logic_vector(31 downto 0);
        s01_axi_wstrb   : in    std_logic_vector(3 downto 0);
        s01_axi_wvalid  : in    std_logic;
        s01_axi_wready  : out   std_logic;
        s01_axi_bresp   : out   std_logic_vector(1 downto 0);
        s01_axi_bvalid  : out   std_logic;
        s01_axi_bready  : in    std_logic;
        s01_axi_araddr  : in    std_logic_vector(15 downto 0);
        s01_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        s01_axi_arvalid : in    std_logic;
        s01_axi_arready : out   std_logic;
        s01_axi_rdata   : out   std_logic_vector(31 downto 0);
        s01_axi_rresp   : out   std_logic_vector(1 downto 0);
        s01_axi_rvalid  : out   std_logic;
        s01_axi_rready  : in    std_logic
    );
end entity latencies_ip_channels;

architecture rtl of latencies_ip_channels is

    -- Byte address bits of one channel.
    constant s00_bits_c : positive := s00_axi_araddr'length - 4;
    constant s01_bits_c : positive := s01_axi_araddr'length - 4;

    subtype channels_t is std_logic_vector(channels_g - 1 downto 0);
    subtype responses_t is std_logic_vector(2 * channels_g - 1 downto 0);
    subtype words_t is std_logic_vector(32 * channels_g - 1 downto 0);

    signal irq            : channels_t;
    signal ack            : channels_t;
    signal any_interrupt  : channels_t;
    signal tick           : unsigned(63 downto 0) := (others => '0');

    signal tdata  : std_logic_vector(128 * channels_g - 1 downto 0);
    signal tvalid : channels_t;
    signal tready : channels_t;

    signal s00_awvalid : channels_t;
    signal s00_awready : channels_t;
    signal s00_bresp   : responses_t;
    signal s00_bvalid  : channels_t;
    signal s00_bready  : std_logic;
    signal s00_arvalid : channels_t;
    signal s00_arready : channels_t;
    signal s00_rdata   : words_t;
    signal s00_rresp   : responses_t;
    signal s00_rvalid  : channels_t;
    signal s00_rready  : std_logic;

    signal s01_awvalid : channels_t;
    signal s01_awready : channels_t;
    signal s01_bresp   : responses_t;
    signal s01_bvalid  : channels_t;
    signal s01_bready  : std_logic;
    signal s01_arvalid : channels_t;
    signal s01_arready : channels_t;
    signal s01_rdata   : words_t;
    signal s01_rresp   : responses_t;
    signal s01_rvalid  : channels_t;
    signal s01_rready  : std_logic;

begin

    count : process (aclk) is
    begin

        if rising_edge(aclk) then
            interrupt <= or any_interrupt;
            tick <= tick + 1;
            if aresetn = '0' then
                tick      <= (others => '0');
                interrupt <= '0';
            end if;
        end if;

    end process count;

    apart : if not chained_g generate

        irq <= irq_in;
        ack <= ack_in;

    end generate apart;

    -- A signal that ends one measurement and begins another is synchronised before it forks: two
    -- synchronisers of one edge may differ by a cycle, and the parts would not add up to the whole.
    chained : if chained_g generate

        signal irq_here : std_logic;

    begin

        irq_synchroniser : entity work.synchroniser
            generic map (
                width_g  => 1,
                stages_g => synchroniser_stages_g
            )
            port map (
                clk      => aclk,
                level(0) => irq_in(0),
                seen(0)  => irq_here
            );

        ack_synchroniser : entity work.synchroniser
            generic map (
                width_g  => channels_g,
                stages_g => synchroniser_stages_g
            )
            port map (
                clk   => aclk,
                level => ack_in,
                seen  => ack
            );

        join : for i in irq'range generate

            first : if i = 0 generate

                irq(i) <= irq_here;

            end generate first;

            behind : if i > 0 generate

                irq(i) <= ack(i - 1);

            end generate behind;

        end generate join;

    end generate chained;

    s00_selector : entity work.axi_lite_selector
        generic map (
            channels_g    => channels_g,
            window_bits_g => s00_bits_c
        )
        port map (
            aclk            => aclk,
            aresetn         => aresetn,
            awaddr          => s00_axi_awaddr,
            awvalid         => s00_axi_awvalid,
            awready         => s00_axi_awready,
            wvalid          => s00_axi_wvalid,
            wready          => s00_axi_wready,
            bresp           => s00_axi_bresp,
            bvalid          => s00_axi_bvalid,
            bready          => s00_axi_bready,
            araddr          => s00_axi_araddr,
            arvalid         => s00_axi_arvalid,
            arready         => s00_axi_arready,
            rdata           => s00_axi_rdata,
            rresp           => s00_axi_rresp,
            rvalid          => s00_axi_rvalid,
            rready          => s00_axi_rready,
            channel_awvalid => s00_awvalid,
            channel_awready => s00_awready,
            channel_bresp   => s00_bresp,
            channel_bvalid  => s00_bvalid,
            channel_bready  => s00_bready,
            channel_arvalid => s00_arvalid,
            channel_arready => s00_arready,
            channel_rdata   => s00_rdata,
            channel_rresp   => s00_rresp,
            channel_rvalid  => s00_rvalid,
            channel_rready  => s00_rready
        );

    s01_selector : entity work.axi_lite_selector
        generic map (
            channels_g    => channels_g,
            window_bits_g => s01_bits_c
        )
        port map (
            aclk            => aclk,
            aresetn         => aresetn,
            awaddr          => s01_axi_awaddr,
            awvalid         => s01_axi_awvalid,
            awready         => s01_axi_awready,
            wvalid          => s01_axi_wvalid,
            wready          => s01_axi_wready,
            bresp           => s01_axi_bresp,
            bvalid          => s01_axi_bvalid,
            bready          => s01_axi_bready,
            araddr          => s01_axi_araddr,
            arvalid         => s01_axi_arvalid,
            arready         => s01_axi_arready,
            rdata           => s01_axi_rdata,
            rresp           => s01_axi_rresp,
            rvalid          => s01_axi_rvalid,
            rready          => s01_axi_rready,
            channel_awvalid => s01_awvalid,
            channel_awready => s01_awready,
            channel_bresp   => s01_bresp,
            channel_bvalid  => s01_bvalid,
            channel_bready  => s01_bready,
            channel_arvalid => s01_arvalid,
            channel_arready => s01_arready,
            channel_rdata   => s01_rdata,
            channel_rresp   => s01_rresp,
            channel_rvalid  => s01_rvalid,
            channel_rready  => s01_rready
        );

    channel : for i in channels_g - 1 downto 0 generate

        measurement : entity work.latencies_ip
            generic map (
                latency_width_g       => latency_width_g,
                depth_g               => depth_g,
                num_width_g           => num_width_g,
                synchroniser_stages_g => synchroniser_stages_g,
                overlap_policy_g      => overlap_policy_g,
                queue_depth_g         => queue_depth_g,
                clock_frequency_hz_g  => clock_frequency_hz_g,
                identification_g      => identification_g,
                counters_g            => counters_g,
                watchdog_g            => watchdog_g,
                time_stamp_g          => time_stamp_g,
                snapshot_g            => snapshot_g,
                sums_g                => sums_g,
                histogram_g           => histogram_g,
                histogram_bins_g      => histogram_bins_g,
                histogram_kind_g      => histogram_kind_g,
                histogram_sub_bits_g  => histogram_sub_bits_g,
                stream_g              => stream_g,
                freeze_g              => freeze_g,
                self_test_g           => self_test_g,
                shared_time_g         => true,
                channel_g             => i
            )
            port map (
                aclk            => aclk,
                aresetn         => aresetn,
                irq_in          => irq(i),
                ack_in          => ack(i),
                alarm           => alarm(i),
                interrupt       => any_interrupt(i),
                time_in         => std_logic_vector(tick),
                m_axis_tdata    => tdata(128 * i + 127 downto 128 * i),
                m_axis_tvalid   => tvalid(i),
                m_axis_tready   => tready(i),
                s00_axi_awaddr  => s00_axi_awaddr(s00_bits_c - 1 downto 0),
                s00_axi_awprot  => s00_axi_awprot,
                s00_axi_awvalid => s00_awvalid(i),
                s00_axi_awready => s00_awready(i),
                s00_axi_wdata   => s00_axi_wdata,
                s00_axi_wstrb   => s00_axi_wstrb,
                s00_axi_wvalid  => s00_awvalid(i),
                s00_axi_wready  => open,
                s00_axi_bresp   => s00_bresp(2 * i + 1 downto 2 * i),
                s00_axi_bvalid  => s00_bvalid(i),
                s00_axi_bready  => s00_bready,
                s00_axi_araddr  => s00_axi_araddr(s00_bits_c - 1 downto 0),
                s00_axi_arprot  => s00_axi_arprot,
                s00_axi_arvalid => s00_arvalid(i),
                s00_axi_arready => s00_arready(i),
                s00_axi_rdata   => s00_rdata(32 * i + 31 downto 32 * i),
                s00_axi_rresp   => s00_rresp(2 * i + 1 downto 2 * i),
                s00_axi_rvalid  => s00_rvalid(i),
                s00_axi_rready  => s00_rready,
                s01_axi_awaddr  => s01_axi_awaddr(s01_bits_c - 1 downto 0),
                s01_axi_awprot  => s01_axi_awprot,
                s01_axi_awvalid => s01_awvalid(i),
                s01_axi_awready => s01_awready(i),
                s01_axi_wdata   => s01_axi_wdata,
                s01_axi_wstrb   => s01_axi_wstrb,
                s01_axi_wvalid  => s01_awvalid(i),
                s01_axi_wready  => open,
                s01_axi_bresp   => s01_bresp(2 * i + 1 downto 2 * i),
                s01_axi_bvalid  => s01_bvalid(i),
                s01_axi_bready  => s01_bready,
                s01_axi_araddr  => s01_axi_araddr(s01_bits_c - 1 downto 0),
                s01_axi_arprot  => s01_axi_arprot,
                s01_axi_arvalid => s01_arvalid(i),
                s01_axi_arready => s01_arready(i),
                s01_axi_rdata   => s01_rdata(32 * i + 31 downto 32 * i),
                s01_axi_rresp   => s01_rresp(2 * i + 1 downto 2 * i),
                s01_axi_rvalid  => s01_rvalid(i),
                s01_axi_rready  => s01_rready
            );

    end generate channel;

    merger : entity work.stream_merger
        generic map (
            inputs_g => channels_g
        )
        port map (
            aclk          => aclk,
            aresetn       => aresetn,
            s_axis_tdata  => tdata,
            s_axis_tvalid => tvalid,
            s_axis_tready => tready,
            m_axis_tdata  => m_axis_tdata,
            m_axis_tvalid => m_axis_tvalid,
            m_axis_tready => m_axis_tready
        );

end architecture rtl;
