-- SPDX-License-Identifier: Apache-2.0
-- One Latencies IP whose samples go into a ring in memory: latencies_ip with its stream, and a
-- stream_ring_writer behind it, so that a run is limited by its reader only. An example to measure
-- with, and to copy the wiring from.
-- Not for sources that are not of this clock unless synchroniser_stages_g is 2 or 3.
-- See ../doc/latency_stream.md.

library ieee;
    use ieee.std_logic_1164.all;
    use work.latencies_pkg.all;

entity latency_stream is
    generic (
        -- Of the Latencies IP, see ../../latencies_ip/doc/latencies_ip.md; some defaults are other ones.
        latency_width_g : positive := 16;
        depth_g : positive := 512;
        num_width_g : positive := 32;
        synchroniser_stages_g : natural := 2;
        overlap_policy_g : string := "drop";
        queue_depth_g : positive := 16;
        clock_frequency_hz_g : positive := 100_000_000;
        identification_g : boolean := true;
        counters_g : boolean := true;
        watchdog_g : boolean := false;
        time_stamp_g : boolean := true;
        snapshot_g : boolean := false;
        sums_g : boolean := false;
        histogram_g : boolean := false;
        histogram_bins_g : positive := 1024;
        histogram_kind_g : string := "linear";
        histogram_sub_bits_g : positive := 4;
        freeze_g : boolean := false;
        self_test_g : boolean := false;
        channel_g : natural range 0 to 255 := 0;
        -- Of the writer: bits of an address in memory.
        address_width_g : positive range 33 to 64 := 40
    );
    port (
        aclk    : in    std_logic;
        -- Synchronous, active low. The memory's side of m_axi has to be reset with it.
        aresetn : in    std_logic;

        irq_in : in    std_logic;
        ack_in : in    std_logic;

        alarm     : out   std_logic;
        interrupt : out   std_logic;
        -- Of the writer: as many records as its threshold are waiting.
        ring_interrupt : out   std_logic;

        -- The memory of latencies.
        s00_axi_awaddr  : in    std_logic_vector(
            window_bits(depth_g, latency_width_g, time_stamp_g, shown_bins(histogram_g, histogram_bins_g)) - 1 downto 0
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
            window_bits(depth_g, latency_width_g, time_stamp_g, shown_bins(histogram_g, histogram_bins_g)) - 1 downto 0
        );
        s00_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        s00_axi_arvalid : in    std_logic;
        s00_axi_arready : out   std_logic;
        s00_axi_rdata   : out   std_logic_vector(31 downto 0);
        s00_axi_rresp   : out   std_logic_vector(1 downto 0);
        s00_axi_rvalid  : out   std_logic;
        s00_axi_rready  : in    std_logic;

        -- Registers.
        s01_axi_awaddr  : in    std_logic_vector(11 downto 0);
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
        s01_axi_araddr  : in    std_logic_vector(11 downto 0);
        s01_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        s01_axi_arvalid : in    std_logic;
        s01_axi_arready : out   std_logic;
        s01_axi_rdata   : out   std_logic_vector(31 downto 0);
        s01_axi_rresp   : out   std_logic_vector(1 downto 0);
        s01_axi_rvalid  : out   std_logic;
        s01_axi_rready  : in    std_logic;

        -- Writes of one beat, all strobes set, one identifier.
        m_axi_awid    : out   std_logic_vector(0 downto 0);
        m_axi_awaddr  : out   std_logic_vector(address_width_g - 1 downto 0);
        m_axi_awlen   : out   std_logic_vector(7 downto 0);
        m_axi_awsize  : out   std_logic_vector(2 downto 0);
        m_axi_awburst : out   std_logic_vector(1 downto 0);
        m_axi_awlock  : out   std_logic;
        m_axi_awcache : out   std_logic_vector(3 downto 0);
        m_axi_awprot  : out   std_logic_vector(2 downto 0);
        m_axi_awqos   : out   std_logic_vector(3 downto 0);
        m_axi_awvalid : out   std_logic;
        m_axi_awready : in    std_logic;
        m_axi_wdata   : out   std_logic_vector(127 downto 0);
        m_axi_wstrb   : out   std_logic_vector(15 downto 0);
        m_axi_wlast   : out   std_logic;
        m_axi_wvalid  : out   std_logic;
        m_axi_wready  : in    std_logic;
        m_axi_bid     : in    std_logic_vector(0 downto 0) := (others => '0');
        m_axi_bresp   : in    std_logic_vector(1 downto 0);
        m_axi_bvalid  : in    std_logic;
        m_axi_bready  : out   std_logic;

        -- Registers of the writer.
        ring_axi_awaddr  : in    std_logic_vector(11 downto 0);
        ring_axi_awprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        ring_axi_awvalid : in    std_logic;
        ring_axi_awready : out   std_logic;
        ring_axi_wdata   : in    std_logic_vector(31 downto 0);
        ring_axi_wstrb   : in    std_logic_vector(3 downto 0);
        ring_axi_wvalid  : in    std_logic;
        ring_axi_wready  : out   std_logic;
        ring_axi_bresp   : out   std_logic_vector(1 downto 0);
        ring_axi_bvalid  : out   std_logic;
        ring_axi_bready  : in    std_logic;
        ring_axi_araddr  : in    std_logic_vector(11 downto 0);
        ring_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        ring_axi_arvalid : in    std_logic;
        ring_axi_arready : out   std_logic;
        ring_axi_rdata   : out   std_logic_vector(31 downto 0);
        ring_axi_rresp   : out   std_logic_vector(1 downto 0);
        ring_axi_rvalid  : out   std_logic;
        ring_axi_rready  : in    std_logic
    );
end entity latency_stream;

architecture rtl of latency_stream is

    signal beat       : std_logic_vector(127 downto 0);
    signal beat_valid : std_logic;
    signal beat_ready : std_logic;

begin

    ip : entity work.latencies_ip
        generic map (
            stream_g => true,
            channel_g => channel_g,
            latency_width_g => latency_width_g,
            depth_g => depth_g,
            num_width_g => num_width_g,
            synchroniser_stages_g => synchroniser_stages_g,
            overlap_policy_g => overlap_policy_g,
            queue_depth_g => queue_depth_g,
            clock_frequency_hz_g => clock_frequency_hz_g,
            identification_g => identification_g,
            counters_g => counters_g,
            watchdog_g => watchdog_g,
            time_stamp_g => time_stamp_g,
            snapshot_g => snapshot_g,
            sums_g => sums_g,
            histogram_g => histogram_g,
            histogram_bins_g => histogram_bins_g,
            histogram_kind_g => histogram_kind_g,
            histogram_sub_bits_g => histogram_sub_bits_g,
            freeze_g => freeze_g,
            self_test_g => self_test_g
        )
        port map (
            aclk      => aclk,
            aresetn   => aresetn,
            irq_in    => irq_in,
            ack_in    => ack_in,
            alarm     => alarm,
            interrupt => interrupt,
            m_axis_tdata    => beat,
            m_axis_tvalid   => beat_valid,
            m_axis_tready   => beat_ready,
            s00_axi_awaddr  => s00_axi_awaddr,
            s00_axi_awprot  => s00_axi_awprot,
            s00_axi_awvalid => s00_axi_awvalid,
            s00_axi_awready => s00_axi_awready,
            s00_axi_wdata   => s00_axi_wdata,
            s00_axi_wstrb   => s00_axi_wstrb,
            s00_axi_wvalid  => s00_axi_wvalid,
            s00_axi_wready  => s00_axi_wready,
            s00_axi_bresp   => s00_axi_bresp,
            s00_axi_bvalid  => s00_axi_bvalid,
            s00_axi_bready  => s00_axi_bready,
            s00_axi_araddr  => s00_axi_araddr,
            s00_axi_arprot  => s00_axi_arprot,
            s00_axi_arvalid => s00_axi_arvalid,
            s00_axi_arready => s00_axi_arready,
            s00_axi_rdata   => s00_axi_rdata,
            s00_axi_rresp   => s00_axi_rresp,
            s00_axi_rvalid  => s00_axi_rvalid,
            s00_axi_rready  => s00_axi_rready,
            s01_axi_awaddr  => s01_axi_awaddr,
            s01_axi_awprot  => s01_axi_awprot,
            s01_axi_awvalid => s01_axi_awvalid,
            s01_axi_awready => s01_axi_awready,
            s01_axi_wdata   => s01_axi_wdata,
            s01_axi_wstrb   => s01_axi_wstrb,
            s01_axi_wvalid  => s01_axi_wvalid,
            s01_axi_wready  => s01_axi_wready,
            s01_axi_bresp   => s01_axi_bresp,
            s01_axi_bvalid  => s01_axi_bvalid,
            s01_axi_bready  => s01_axi_bready,
            s01_axi_araddr  => s01_axi_araddr,
            s01_axi_arprot  => s01_axi_arprot,
            s01_axi_arvalid => s01_axi_arvalid,
            s01_axi_arready => s01_axi_arready,
            s01_axi_rdata   => s01_axi_rdata,
            s01_axi_rresp   => s01_axi_rresp,
            s01_axi_rvalid  => s01_axi_rvalid,
            s01_axi_rready  => s01_axi_rready
        );

    writer : entity work.stream_ring_writer
        generic map (
            address_width_g => address_width_g
        )
        port map (
            aclk          => aclk,
            aresetn       => aresetn,
            interrupt     => ring_interrupt,
            s_axis_tdata  => beat,
            s_axis_tvalid => beat_valid,
            s_axis_tready => beat_ready,
            m_axi_awid    => m_axi_awid,
            m_axi_awaddr  => m_axi_awaddr,
            m_axi_awlen   => m_axi_awlen,
            m_axi_awsize  => m_axi_awsize,
            m_axi_awburst => m_axi_awburst,
            m_axi_awlock  => m_axi_awlock,
            m_axi_awcache => m_axi_awcache,
            m_axi_awprot  => m_axi_awprot,
            m_axi_awqos   => m_axi_awqos,
            m_axi_awvalid => m_axi_awvalid,
            m_axi_awready => m_axi_awready,
            m_axi_wdata   => m_axi_wdata,
            m_axi_wstrb   => m_axi_wstrb,
            m_axi_wlast   => m_axi_wlast,
            m_axi_wvalid  => m_axi_wvalid,
            m_axi_wready  => m_axi_wready,
            m_axi_bid     => m_axi_bid,
            m_axi_bresp   => m_axi_bresp,
            m_axi_bvalid  => m_axi_bvalid,
            m_axi_bready  => m_axi_bready,
            s_axi_awaddr  => ring_axi_awaddr,
            s_axi_awprot  => ring_axi_awprot,
            s_axi_awvalid => ring_axi_awvalid,
            s_axi_awready => ring_axi_awready,
            s_axi_wdata   => ring_axi_wdata,
            s_axi_wstrb   => ring_axi_wstrb,
            s_axi_wvalid  => ring_axi_wvalid,
            s_axi_wready  => ring_axi_wready,
            s_axi_bresp   => ring_axi_bresp,
            s_axi_bvalid  => ring_axi_bvalid,
            s_axi_bready  => ring_axi_bready,
            s_axi_araddr  => ring_axi_araddr,
            s_axi_arprot  => ring_axi_arprot,
            s_axi_arvalid => ring_axi_arvalid,
            s_axi_arready => ring_axi_arready,
            s_axi_rdata   => ring_axi_rdata,
            s_axi_rresp   => ring_axi_rresp,
            s_axi_rvalid  => ring_axi_rvalid,
            s_axi_rready  => ring_axi_rready
        );

end architecture rtl;
