-- SPDX-License-Identifier: Apache-2.0
-- On an interrupt from the processor it makes random words, keeps them in a FIFO and raises its own
-- interrupt, until the processor has read them all over AXI4-Lite: work for both directions of
-- interrupts, so that their latencies can be measured.
-- Not a source of secrets: the words follow from a seed.
-- Ports, registers and the exact timing: ../doc/random_data_generator.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;
    use work.random_data_generator_registers_pkg.all;

entity random_data_generator is
    generic (
        -- Words of an interrupt after a reset; software can change it.
        words_g : positive := 16;
        -- How many words the FIFO holds; a power of two, 2 to 32,768, at least words_g.
        fifo_depth_g : positive := 64;
        -- Flip-flops that synchronise ps_pl_irq: 0 if it is of this clock, else 2 or 3.
        synchroniser_stages_g : natural := 2
    );
    port (
        aclk    : in    std_logic;
        aresetn : in    std_logic;
        -- Its rising edge asks for words.
        ps_pl_irq : in    std_logic;
        -- High from when all words are there until the last one was read.
        pl_ps_irq : out   std_logic;
        -- High in the cycle in which a read hands over a word (rvalid and rready).
        data_read : out   std_logic;

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
end entity random_data_generator;

architecture rtl of random_data_generator is

    signal reset         : std_logic;
    signal from_hardware : from_hardware_t;
    signal to_hardware   : to_hardware_t;

    signal request : std_logic;
    signal accept  : std_logic;
    signal overrun : std_logic;
    signal finish  : std_logic;

    -- Words are being made; how many are still to be made, this cycle's included.
    signal busy      : std_logic := '0';
    signal remaining : unsigned(address_bits(fifo_depth_g) downto 0) := (others => '0');
    signal ready     : std_logic := '0';

    signal word   : std_logic_vector(31 downto 0);
    signal oldest : std_logic_vector(31 downto 0);
    signal level  : unsigned(address_bits(fifo_depth_g) downto 0);
    signal empty  : std_logic;
    signal full   : std_logic;
    signal pop    : std_logic;

begin

    assert fifo_depth_g <= 32_768 and words_g <= fifo_depth_g
        report "fifo_depth_g is 2 to 32768 and holds words_g words"
        severity failure;

    reset     <= not aresetn;
    pop       <= to_hardware.data_delivered;
    data_read <= pop;
    pl_ps_irq <= ready;

    accept <= request and not busy and not ready;
    -- The last word goes into the FIFO.
    finish <= busy and to_bit(remaining = 1);

    overrun <= request and not accept;

    edges : entity work.input_edge
        generic map (
            synchroniser_stages_g => synchroniser_stages_g
        )
        port map (
            clk      => aclk,
            level_in => ps_pl_irq,
            rising   => request
        );

    source : entity work.linear_feedback_register
        port map (
            clk     => aclk,
            reset   => reset,
            load    => to_hardware.seed_written,
            seed    => to_hardware.seed_next,
            advance => busy,
            word    => word
        );

    fifo : entity work.word_fifo
        generic map (
            depth_g => fifo_depth_g
        )
        port map (
            clk    => aclk,
            reset  => reset,
            push   => busy,
            word   => word,
            pop    => pop,
            oldest => oldest,
            level  => level,
            empty  => empty,
            full   => full
        );

    from_hardware.data         <= oldest;
    from_hardware.data_error   <= empty;
    from_hardware.level        <= to_word(level);
    from_hardware.status_empty <= empty;
    from_hardware.status_full  <= full;
    from_hardware.status_busy  <= busy;

    registers : entity work.random_data_generator_register_block
        generic map (
            words_g => words_g
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

    generate_words : process (aclk) is
    begin

        if rising_edge(aclk) then
            if busy = '1' then
                remaining <= remaining - 1;
            end if;
            if accept = '1' then
                remaining <= resize(unsigned(to_hardware.words), remaining'length);
                if unsigned(to_hardware.words) > fifo_depth_g then
                    remaining <= to_unsigned(fifo_depth_g, remaining'length);
                end if;
                busy <= or to_hardware.words;
            end if;
            if finish = '1' then
                busy  <= '0';
                ready <= '1';
            end if;
            if pop = '1' and level = 1 and busy = '0' then
                ready <= '0';
            end if;
            if reset = '1' then
                busy  <= '0';
                ready <= '0';
            end if;
        end if;

    end process generate_words;

    count_requests : entity work.event_counter
        port map (
            clk       => aclk,
            clear     => reset,
            event_now => request,
            total     => from_hardware.requests
        );

    count_overruns : entity work.event_counter
        port map (
            clk       => aclk,
            clear     => reset,
            event_now => overrun,
            total     => from_hardware.overruns
        );

end architecture rtl;
