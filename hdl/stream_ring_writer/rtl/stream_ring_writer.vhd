---------------------------------------------------------------------------------------------------
-- SPDX-License-Identifier: Apache-2.0
--
-- Writes the samples of one or more Latencies IPs from their AXI-Stream into a ring in memory, so
-- that a run is limited only by how fast software empties the ring.
--
-- Not for: packets or beats of other sizes than 16 bytes, nor memory in another clock domain (put
-- the interconnect's converter between).
--
-- Documentation: ../doc/stream_ring_writer.md
---------------------------------------------------------------------------------------------------

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.stream_ring_writer_registers_pkg.all;

entity stream_ring_writer is
    generic (
        -- Bits of an address in memory.
        address_width_g : positive range 33 to 64 := 40
    );
    port (
        aclk    : in    std_logic;
        -- Synchronous, active low. The memory's side of m_axi has to be reset with it.
        aresetn : in    std_logic;

        -- Level: threshold or more records are written and not consumed.
        interrupt : out   std_logic;

        s_axis_tdata  : in    std_logic_vector(127 downto 0);
        s_axis_tvalid : in    std_logic;
        s_axis_tready : out   std_logic;

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

        -- Registers.
        s_axi_awaddr  : in    std_logic_vector(11 downto 0);
        s_axi_awprot  : in    std_logic_vector(2 downto 0) := (others => '0');
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
        s_axi_arprot  : in    std_logic_vector(2 downto 0) := (others => '0');
        s_axi_arvalid : in    std_logic;
        s_axi_arready : out   std_logic;
        s_axi_rdata   : out   std_logic_vector(31 downto 0);
        s_axi_rresp   : out   std_logic_vector(1 downto 0);
        s_axi_rvalid  : out   std_logic;
        s_axi_rready  : in    std_logic
    );
end entity stream_ring_writer;

architecture rtl of stream_ring_writer is

    signal from_hardware : from_hardware_t;
    signal to_hardware   : to_hardware_t;

    signal base        : std_logic_vector(63 downto 0);
    signal written     : std_logic_vector(31 downto 0);
    signal in_ring     : unsigned(31 downto 0);
    signal interrupt_r : std_logic := '0';

begin

    base <= to_hardware.base_high & to_hardware.base_low;

    m_axi_awid    <= "0";
    m_axi_awlen   <= (others => '0');
    m_axi_awsize  <= "100";
    m_axi_awburst <= "01";
    m_axi_awlock  <= '0';
    -- Normal, not cacheable, not bufferable: the memory itself answers, not a buffer before it, for
    -- software reads a record as soon as it is counted.
    m_axi_awcache <= "0010";
    m_axi_awprot  <= (others => '0');
    m_axi_awqos   <= (others => '0');
    m_axi_wstrb   <= (others => '1');
    m_axi_wlast   <= '1';
    m_axi_bready  <= '1';

    in_ring   <= unsigned(written) - unsigned(to_hardware.consumed);
    interrupt <= interrupt_r;

    from_hardware.written <= written;

    notify : process (aclk) is
    begin

        if rising_edge(aclk) then
            interrupt_r <= '0';
            if in_ring >= unsigned(to_hardware.threshold) then
                interrupt_r <= or to_hardware.threshold;
            end if;

            if aresetn = '0' then
                interrupt_r <= '0';
            end if;
        end if;

    end process notify;

    writer : entity work.ring_writer
        generic map (
            address_width_g => address_width_g
        )
        port map (
            aclk            => aclk,
            aresetn         => aresetn,
            enable          => to_hardware.enable,
            base            => base(address_width_g - 1 downto 4),
            size_log2       => to_hardware.size_log2(4 downto 0),
            consumed        => to_hardware.consumed,
            clear_bus_error => to_hardware.status_bus_error_clear,
            written         => written,
            dropped         => from_hardware.dropped,
            full            => from_hardware.status_full,
            idle            => from_hardware.status_idle,
            bus_error       => from_hardware.status_bus_error,
            s_axis_tdata    => s_axis_tdata,
            s_axis_tvalid   => s_axis_tvalid,
            s_axis_tready   => s_axis_tready,
            m_axi_awaddr    => m_axi_awaddr,
            m_axi_awvalid   => m_axi_awvalid,
            m_axi_awready   => m_axi_awready,
            m_axi_wdata     => m_axi_wdata,
            m_axi_wvalid    => m_axi_wvalid,
            m_axi_wready    => m_axi_wready,
            m_axi_bresp     => m_axi_bresp,
            m_axi_bvalid    => m_axi_bvalid
        );

    registers : entity work.stream_ring_writer_register_block
        generic map (
            address_width_g => address_width_g
        )
        port map (
            aclk          => aclk,
            aresetn       => aresetn,
            s_axi_awaddr  => s_axi_awaddr,
            s_axi_awprot  => s_axi_awprot,
            s_axi_awvalid => s_axi_awvalid,
            s_axi_awready => s_axi_awready,
            s_axi_wdata   => s_axi_wdata,
            s_axi_wstrb   => s_axi_wstrb,
            s_axi_wvalid  => s_axi_wvalid,
            s_axi_wready  => s_axi_wready,
            s_axi_bresp   => s_axi_bresp,
            s_axi_bvalid  => s_axi_bvalid,
            s_axi_bready  => s_axi_bready,
            s_axi_araddr  => s_axi_araddr,
            s_axi_arprot  => s_axi_arprot,
            s_axi_arvalid => s_axi_arvalid,
            s_axi_arready => s_axi_arready,
            s_axi_rdata   => s_axi_rdata,
            s_axi_rresp   => s_axi_rresp,
            s_axi_rvalid  => s_axi_rvalid,
            s_axi_rready  => s_axi_rready,
            from_hardware => from_hardware,
            to_hardware   => to_hardware
        );

end architecture rtl;
