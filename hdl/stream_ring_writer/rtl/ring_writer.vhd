---------------------------------------------------------------------------------------------------
-- SPDX-License-Identifier: Apache-2.0
--
-- Takes records of 16 bytes from an AXI-Stream and writes each with one AXI4 beat into a ring in
-- memory; up to 16 writes are under way at a time. Record i lies at base + 16 (i mod size).
--
-- Not for: software. stream_ring_writer adds the registers.
--
-- Documentation: ../doc/stream_ring_writer.md
---------------------------------------------------------------------------------------------------

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;

entity ring_writer is
    generic (
        address_width_g : positive range 33 to 64 := 40
    );
    port (
        aclk    : in    std_logic;
        -- Active low. The memory has to be reset with it: it forgets the writes under way.
        aresetn : in    std_logic;

        -- Low: nothing more is taken from the stream; the writes under way are finished.
        enable    : in    std_logic;
        -- Base and size change only while disabled and idle.
        base      : in    std_logic_vector(address_width_g - 1 downto 4);
        -- The ring has 2**size_log2 records.
        size_log2 : in    std_logic_vector(4 downto 0);
        -- Records that software does not need any more, counted as written is, modulo 2**32.
        consumed  : in    std_logic_vector(31 downto 0);
        -- Pulse; a failure of the same cycle wins.
        clear_bus_error : in    std_logic;

        -- Records that are in memory since reset: counted when the memory has answered.
        written   : out   std_logic_vector(31 downto 0);
        -- Records that were taken and are lost because the memory refused them or one before.
        dropped   : out   std_logic_vector(31 downto 0);
        -- The ring has no place: the stream waits. Also with an impossible value of consumed.
        full      : out   std_logic;
        -- Nothing is under way.
        idle      : out   std_logic;
        -- The memory refused a write; nothing is taken until software has cleared it.
        bus_error : out   std_logic;

        s_axis_tdata  : in    std_logic_vector(127 downto 0);
        s_axis_tvalid : in    std_logic;
        s_axis_tready : out   std_logic;

        m_axi_awaddr  : out   std_logic_vector(address_width_g - 1 downto 0);
        m_axi_awvalid : out   std_logic;
        m_axi_awready : in    std_logic;
        m_axi_wdata   : out   std_logic_vector(127 downto 0);
        m_axi_wvalid  : out   std_logic;
        m_axi_wready  : in    std_logic;
        m_axi_bresp   : in    std_logic_vector(1 downto 0);
        m_axi_bvalid  : in    std_logic
    );
end entity ring_writer;

architecture rtl of ring_writer is

    constant under_way_max_c : positive := 16;

    subtype count_t is unsigned(31 downto 0);

    signal written_count : count_t := (others => '0');
    signal dropped_count : count_t := (others => '0');
    -- Number of the next record to take: ahead of written_count by what is under way.
    signal next_record   : count_t := (others => '0');
    -- And of the one behind it: adding 1 and subtracting in one cycle is a long way.
    signal following     : count_t := to_unsigned(1, count_t'length);
    signal under_way     : unsigned(4 downto 0) := (others => '0');

    -- Of the next record. A register, for the way from `consumed` to tready would be a long one: a
    -- place that software frees is seen one cycle later.
    signal no_place : std_logic := '0';
    signal running  : std_logic := '0';
    signal failed   : std_logic := '0';
    -- A write failed: the records behind it would leave a hole, so they count as dropped, too.
    signal spoiled  : std_logic := '0';

    signal awvalid : std_logic := '0';
    signal wvalid  : std_logic := '0';
    signal awaddr  : unsigned(address_width_g - 1 downto 4) := (others => '0');
    signal wdata   : std_logic_vector(127 downto 0) := (others => '0');

    signal index_mask : count_t;
    -- For the next record, and for the one behind it.
    signal beyond     : std_logic_vector(0 to 1);
    signal nothing    : std_logic;
    signal slot_free  : std_logic;
    signal ready      : std_logic;
    signal taken      : std_logic;
    signal refused    : std_logic;
    signal announced  : std_logic;

begin

    -- Ones for the bits that number a place of the ring.
    mask : for i in index_mask'range generate

        index_mask(i) <= '1' when unsigned(size_log2) > i else
                         '0';

    end generate mask;

    beyond(0) <= or ((next_record - unsigned(consumed)) and not index_mask);
    beyond(1) <= or ((following - unsigned(consumed)) and not index_mask);
    nothing   <= nor under_way;
    slot_free <= (not awvalid or m_axi_awready) and (not wvalid or m_axi_wready);
    ready     <= '0' when under_way = under_way_max_c else
                 running and slot_free and not no_place;
    taken     <= ready and s_axis_tvalid;

    -- SLVERR and DECERR. OKAY and EXOKAY have bit 1 clear.
    refused   <= m_axi_bvalid and m_axi_bresp(1);
    announced <= m_axi_bvalid and not m_axi_bresp(1) and not spoiled;

    written   <= std_logic_vector(written_count);
    dropped   <= std_logic_vector(dropped_count);
    full      <= no_place;
    idle      <= nothing;
    bus_error <= failed;

    s_axis_tready <= ready;
    m_axi_awaddr  <= std_logic_vector(awaddr) & "0000";
    m_axi_awvalid <= awvalid;
    m_axi_wdata   <= wdata;
    m_axi_wvalid  <= wvalid;

    offer : process (aclk) is
    begin

        if rising_edge(aclk) then
            if taken = '1' then
                awvalid <= '1';
                wvalid  <= '1';
                awaddr  <= unsigned(base) + resize(next_record and index_mask, awaddr'length);
                wdata   <= s_axis_tdata;
            else
                awvalid <= awvalid and not m_axi_awready;
                wvalid  <= wvalid and not m_axi_wready;
            end if;

            if aresetn = '0' then
                awvalid <= '0';
                wvalid  <= '0';
            end if;
        end if;

    end process offer;

    count : process (aclk) is
    begin

        if rising_edge(aclk) then
            if taken = '1' then
                next_record <= following;
                following   <= following + 1;
            elsif nothing = '1' then
                next_record <= written_count;
                following   <= written_count + 1;
            end if;

            no_place <= beyond(0);
            if taken = '1' then
                no_place <= beyond(1);
            end if;

            if taken = '1' and m_axi_bvalid = '0' then
                under_way <= under_way + 1;
            elsif taken = '0' and m_axi_bvalid = '1' then
                under_way <= under_way - 1;
            end if;

            if announced = '1' then
                written_count <= written_count + 1;
            elsif m_axi_bvalid = '1' and dropped_count /= (31 downto 0 => '1') then
                dropped_count <= dropped_count + 1;
            end if;

            spoiled <= refused or (spoiled and not nothing);
            failed  <= refused or (failed and not clear_bus_error);
            -- Begins only when the last record of before has been counted.
            running <= enable and not failed and not spoiled and not refused and (running or nothing);

            if aresetn = '0' then
                next_record   <= (others => '0');
                following     <= to_unsigned(1, count_t'length);
                under_way     <= (others => '0');
                written_count <= (others => '0');
                dropped_count <= (others => '0');
                no_place      <= '0';
                spoiled       <= '0';
                failed        <= '0';
                running       <= '0';
            end if;
        end if;

    end process count;

end architecture rtl;
