-- SPDX-License-Identifier: Apache-2.0
-- The publication's measurement (Alonso et al., 2024, figure 7): a random data generator, and two
-- Latencies IPs, T1 from the processor's interrupt to the generator's, and T2 from there to the
-- first word that the processor reads. An example to measure with, and to copy the wiring from.
-- Not for sources that are not of this clock unless synchroniser_stages_g is 2 or 3.
-- What T1 and T2 contain, in cycles: ../doc/latency_bench.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity latency_bench is
    generic (
        -- Of the generator, see ../../random_data_generator/doc/random_data_generator.md.
        words_g : positive := 16;
        fifo_depth_g : positive := 64;
        -- Of both Latencies IPs, see ../../latencies_ip/doc/latencies_ip.md; the synchroniser is the
        -- generator's, too.
        latency_width_g : positive := 16;
        depth_g : positive := 512;
        num_width_g : positive := 16;
        synchroniser_stages_g : natural := 2;
        overlap_policy_g : string := "drop";
        queue_depth_g : positive := 16;
        clock_frequency_hz_g : positive := 100_000_000;
        -- Additions. The time stamp is one counter for both.
        identification_g : boolean := false;
        counters_g : boolean := false;
        watchdog_g : boolean := false;
        time_stamp_g : boolean := false;
        snapshot_g : boolean := false;
        sums_g : boolean := false;
        histogram_g : boolean := false;
        histogram_bins_g : positive := 1024;
        histogram_kind_g : string := "linear";
        histogram_sub_bits_g : positive := 4;
        freeze_g : boolean := false;
        self_test_g : boolean := false
    );
    port (
        aclk    : in    std_logic;
        aresetn : in    std_logic;
        -- From the processor: make words. T1 starts.
        ps_pl_irq : in    std_logic;
        -- To the processor: the words are there. T1 ends, T2 starts; T2 ends with the first read.
        pl_ps_irq : out   std_logic;

        t1_alarm     : out   std_logic;
        t1_interrupt : out   std_logic;
        t2_alarm     : out   std_logic;
        t2_interrupt : out   std_logic;

        t1_s00_axi_awaddr  : in    std_logic_vector(
            window_bits(depth_g, latency_width_g, time_stamp_g, shown_bins(histogram_g, histogram_bins_g)) - 1 downto 0
        );
        t1_s00_axi_awprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        t1_s00_axi_awvalid : in    std_logic;
        t1_s00_axi_awready : out   std_logic;
        t1_s00_axi_wdata   : in    std_logic_vector(31 downto 0);
        t1_s00_axi_wstrb   : in    std_logic_vector(3 downto 0);
        t1_s00_axi_wvalid  : in    std_logic;
        t1_s00_axi_wready  : out   std_logic;
        t1_s00_axi_bresp   : out   std_logic_vector(1 downto 0);
        t1_s00_axi_bvalid  : out   std_logic;
        t1_s00_axi_bready  : in    std_logic;
        t1_s00_axi_araddr  : in    std_logic_vector(
            window_bits(depth_g, latency_width_g, time_stamp_g, shown_bins(histogram_g, histogram_bins_g)) - 1 downto 0
        );
        t1_s00_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        t1_s00_axi_arvalid : in    std_logic;
        t1_s00_axi_arready : out   std_logic;
        t1_s00_axi_rdata   : out   std_logic_vector(31 downto 0);
        t1_s00_axi_rresp   : out   std_logic_vector(1 downto 0);
        t1_s00_axi_rvalid  : out   std_logic;
        t1_s00_axi_rready  : in    std_logic;

        t1_s01_axi_awaddr  : in    std_logic_vector(11 downto 0);
        t1_s01_axi_awprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        t1_s01_axi_awvalid : in    std_logic;
        t1_s01_axi_awready : out   std_logic;
        t1_s01_axi_wdata   : in    std_logic_vector(31 downto 0);
        t1_s01_axi_wstrb   : in    std_logic_vector(3 downto 0);
        t1_s01_axi_wvalid  : in    std_logic;
        t1_s01_axi_wready  : out   std_logic;
        t1_s01_axi_bresp   : out   std_logic_vector(1 downto 0);
        t1_s01_axi_bvalid  : out   std_logic;
        t1_s01_axi_bready  : in    std_logic;
        t1_s01_axi_araddr  : in    std_logic_vector(11 downto 0);
        t1_s01_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        t1_s01_axi_arvalid : in    std_logic;
        t1_s01_axi_arready : out   std_logic;
        t1_s01_axi_rdata   : out   std_logic_vector(31 downto 0);
        t1_s01_axi_rresp   : out   std_logic_vector(1 downto 0);
        t1_s01_axi_rvalid  : out   std_logic;
        t1_s01_axi_rready  : in    std_logic;

        t2_s00_axi_awaddr  : in    std_logic_vector(
            window_bits(depth_g, latency_width_g, time_stamp_g, shown_bins(histogram_g, histogram_bins_g)) - 1 downto 0
        );
        t2_s00_axi_awprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        t2_s00_axi_awvalid : in    std_logic;
        t2_s00_axi_awready : out   std_logic;
        t2_s00_axi_wdata   : in    std_logic_vector(31 downto 0);
        t2_s00_axi_wstrb   : in    std_logic_vector(3 downto 0);
        t2_s00_axi_wvalid  : in    std_logic;
        t2_s00_axi_wready  : out   std_logic;
        t2_s00_axi_bresp   : out   std_logic_vector(1 downto 0);
        t2_s00_axi_bvalid  : out   std_logic;
        t2_s00_axi_bready  : in    std_logic;
        t2_s00_axi_araddr  : in    std_logic_vector(
            window_bits(depth_g, latency_width_g, time_stamp_g, shown_bins(histogram_g, histogram_bins_g)) - 1 downto 0
        );
        t2_s00_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        t2_s00_axi_arvalid : in    std_logic;
        t2_s00_axi_arready : out   std_logic;
        t2_s00_axi_rdata   : out   std_logic_vector(31 downto 0);
        t2_s00_axi_rresp   : out   std_logic_vector(1 downto 0);
        t2_s00_axi_rvalid  : out   std_logic;
        t2_s00_axi_rready  : in    std_logic;

        t2_s01_axi_awaddr  : in    std_logic_vector(11 downto 0);
        t2_s01_axi_awprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        t2_s01_axi_awvalid : in    std_logic;
        t2_s01_axi_awready : out   std_logic;
        t2_s01_axi_wdata   : in    std_logic_vector(31 downto 0);
        t2_s01_axi_wstrb   : in    std_logic_vector(3 downto 0);
        t2_s01_axi_wvalid  : in    std_logic;
        t2_s01_axi_wready  : out   std_logic;
        t2_s01_axi_bresp   : out   std_logic_vector(1 downto 0);
        t2_s01_axi_bvalid  : out   std_logic;
        t2_s01_axi_bready  : in    std_logic;
        t2_s01_axi_araddr  : in    std_logic_vector(11 downto 0);
        t2_s01_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        t2_s01_axi_arvalid : in    std_logic;
        t2_s01_axi_arready : out   std_logic;
        t2_s01_axi_rdata   : out   std_logic_vector(31 downto 0);
        t2_s01_axi_rresp   : out   std_logic_vector(1 downto 0);
        t2_s01_axi_rvalid  : out   std_logic;
        t2_s01_axi_rready  : in    std_logic;

        generator_axi_awaddr  : in    std_logic_vector(11 downto 0);
        generator_axi_awprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        generator_axi_awvalid : in    std_logic;
        generator_axi_awready : out   std_logic;
        generator_axi_wdata   : in    std_logic_vector(31 downto 0);
        generator_axi_wstrb   : in    std_logic_vector(3 downto 0);
        generator_axi_wvalid  : in    std_logic;
        generator_axi_wready  : out   std_logic;
        generator_axi_bresp   : out   std_logic_vector(1 downto 0);
        generator_axi_bvalid  : out   std_logic;
        generator_axi_bready  : in    std_logic;
        generator_axi_araddr  : in    std_logic_vector(11 downto 0);
        generator_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        generator_axi_arvalid : in    std_logic;
        generator_axi_arready : out   std_logic;
        generator_axi_rdata   : out   std_logic_vector(31 downto 0);
        generator_axi_rresp   : out   std_logic_vector(1 downto 0);
        generator_axi_rvalid  : out   std_logic;
        generator_axi_rready  : in    std_logic
    );
end entity latency_bench;

architecture rtl of latency_bench is

    signal ready     : std_logic;
    signal data_read : std_logic;
    signal ticks     : unsigned(tick_width_c - 1 downto 0) := (others => '0');

begin

    pl_ps_irq <= ready;

    generator : entity work.random_data_generator
        generic map (
            words_g => words_g,
            fifo_depth_g => fifo_depth_g,
            synchroniser_stages_g => synchroniser_stages_g
        )
        port map (
            aclk      => aclk,
            aresetn   => aresetn,
            ps_pl_irq => ps_pl_irq,
            pl_ps_irq => ready,
            data_read => data_read,
            s_axi_awaddr  => generator_axi_awaddr,
            s_axi_awprot  => generator_axi_awprot,
            s_axi_awvalid => generator_axi_awvalid,
            s_axi_awready => generator_axi_awready,
            s_axi_wdata   => generator_axi_wdata,
            s_axi_wstrb   => generator_axi_wstrb,
            s_axi_wvalid  => generator_axi_wvalid,
            s_axi_wready  => generator_axi_wready,
            s_axi_bresp   => generator_axi_bresp,
            s_axi_bvalid  => generator_axi_bvalid,
            s_axi_bready  => generator_axi_bready,
            s_axi_araddr  => generator_axi_araddr,
            s_axi_arprot  => generator_axi_arprot,
            s_axi_arvalid => generator_axi_arvalid,
            s_axi_arready => generator_axi_arready,
            s_axi_rdata   => generator_axi_rdata,
            s_axi_rresp   => generator_axi_rresp,
            s_axi_rvalid  => generator_axi_rvalid,
            s_axi_rready  => generator_axi_rready
        );

    t1 : entity work.latencies_ip
        generic map (
            channel_g => 0,
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
            self_test_g => self_test_g,
            shared_time_g => time_stamp_g
        )
        port map (
            aclk      => aclk,
            aresetn   => aresetn,
            irq_in    => ps_pl_irq,
            ack_in    => ready,
            alarm     => t1_alarm,
            interrupt => t1_interrupt,
            time_in   => std_logic_vector(ticks),
            s00_axi_awaddr  => t1_s00_axi_awaddr,
            s00_axi_awprot  => t1_s00_axi_awprot,
            s00_axi_awvalid => t1_s00_axi_awvalid,
            s00_axi_awready => t1_s00_axi_awready,
            s00_axi_wdata   => t1_s00_axi_wdata,
            s00_axi_wstrb   => t1_s00_axi_wstrb,
            s00_axi_wvalid  => t1_s00_axi_wvalid,
            s00_axi_wready  => t1_s00_axi_wready,
            s00_axi_bresp   => t1_s00_axi_bresp,
            s00_axi_bvalid  => t1_s00_axi_bvalid,
            s00_axi_bready  => t1_s00_axi_bready,
            s00_axi_araddr  => t1_s00_axi_araddr,
            s00_axi_arprot  => t1_s00_axi_arprot,
            s00_axi_arvalid => t1_s00_axi_arvalid,
            s00_axi_arready => t1_s00_axi_arready,
            s00_axi_rdata   => t1_s00_axi_rdata,
            s00_axi_rresp   => t1_s00_axi_rresp,
            s00_axi_rvalid  => t1_s00_axi_rvalid,
            s00_axi_rready  => t1_s00_axi_rready,
            s01_axi_awaddr  => t1_s01_axi_awaddr,
            s01_axi_awprot  => t1_s01_axi_awprot,
            s01_axi_awvalid => t1_s01_axi_awvalid,
            s01_axi_awready => t1_s01_axi_awready,
            s01_axi_wdata   => t1_s01_axi_wdata,
            s01_axi_wstrb   => t1_s01_axi_wstrb,
            s01_axi_wvalid  => t1_s01_axi_wvalid,
            s01_axi_wready  => t1_s01_axi_wready,
            s01_axi_bresp   => t1_s01_axi_bresp,
            s01_axi_bvalid  => t1_s01_axi_bvalid,
            s01_axi_bready  => t1_s01_axi_bready,
            s01_axi_araddr  => t1_s01_axi_araddr,
            s01_axi_arprot  => t1_s01_axi_arprot,
            s01_axi_arvalid => t1_s01_axi_arvalid,
            s01_axi_arready => t1_s01_axi_arready,
            s01_axi_rdata   => t1_s01_axi_rdata,
            s01_axi_rresp   => t1_s01_axi_rresp,
            s01_axi_rvalid  => t1_s01_axi_rvalid,
            s01_axi_rready  => t1_s01_axi_rready
        );

    t2 : entity work.latencies_ip
        generic map (
            channel_g => 1,
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
            self_test_g => self_test_g,
            shared_time_g => time_stamp_g
        )
        port map (
            aclk      => aclk,
            aresetn   => aresetn,
            irq_in    => ready,
            ack_in    => data_read,
            alarm     => t2_alarm,
            interrupt => t2_interrupt,
            time_in   => std_logic_vector(ticks),
            s00_axi_awaddr  => t2_s00_axi_awaddr,
            s00_axi_awprot  => t2_s00_axi_awprot,
            s00_axi_awvalid => t2_s00_axi_awvalid,
            s00_axi_awready => t2_s00_axi_awready,
            s00_axi_wdata   => t2_s00_axi_wdata,
            s00_axi_wstrb   => t2_s00_axi_wstrb,
            s00_axi_wvalid  => t2_s00_axi_wvalid,
            s00_axi_wready  => t2_s00_axi_wready,
            s00_axi_bresp   => t2_s00_axi_bresp,
            s00_axi_bvalid  => t2_s00_axi_bvalid,
            s00_axi_bready  => t2_s00_axi_bready,
            s00_axi_araddr  => t2_s00_axi_araddr,
            s00_axi_arprot  => t2_s00_axi_arprot,
            s00_axi_arvalid => t2_s00_axi_arvalid,
            s00_axi_arready => t2_s00_axi_arready,
            s00_axi_rdata   => t2_s00_axi_rdata,
            s00_axi_rresp   => t2_s00_axi_rresp,
            s00_axi_rvalid  => t2_s00_axi_rvalid,
            s00_axi_rready  => t2_s00_axi_rready,
            s01_axi_awaddr  => t2_s01_axi_awaddr,
            s01_axi_awprot  => t2_s01_axi_awprot,
            s01_axi_awvalid => t2_s01_axi_awvalid,
            s01_axi_awready => t2_s01_axi_awready,
            s01_axi_wdata   => t2_s01_axi_wdata,
            s01_axi_wstrb   => t2_s01_axi_wstrb,
            s01_axi_wvalid  => t2_s01_axi_wvalid,
            s01_axi_wready  => t2_s01_axi_wready,
            s01_axi_bresp   => t2_s01_axi_bresp,
            s01_axi_bvalid  => t2_s01_axi_bvalid,
            s01_axi_bready  => t2_s01_axi_bready,
            s01_axi_araddr  => t2_s01_axi_araddr,
            s01_axi_arprot  => t2_s01_axi_arprot,
            s01_axi_arvalid => t2_s01_axi_arvalid,
            s01_axi_arready => t2_s01_axi_arready,
            s01_axi_rdata   => t2_s01_axi_rdata,
            s01_axi_rresp   => t2_s01_axi_rresp,
            s01_axi_rvalid  => t2_s01_axi_rvalid,
            s01_axi_rready  => t2_s01_axi_rready
        );

    shared_time : if time_stamp_g generate

        count : process (aclk) is
        begin

            if rising_edge(aclk) then
                ticks <= ticks + 1;
                if aresetn = '0' then
                    ticks <= (others => '0');
                end if;
            end if;

        end process count;

    end generate shared_time;

end architecture rtl;
