-- SPDX-License-Identifier: Apache-2.0
-- Drives latencies_ip in its published configuration from a file of edges and writes what software
-- would read after each series; the same actions as harness.cpp, which runs the synthesised netlist.
-- Not a judge: the behavioural model compares. See ../README.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;

use std.textio.all;

entity mass_tb is
    generic (
        -- One action a line: cycles, action, and for the begin of a series its alarm_lat.
        edges_file_g : string;
        -- Values that were read, one a line.
        read_file_g : string
    );
end entity mass_tb;

architecture simulation of mass_tb is

    constant half_period_c   : time    := 5 ns;
    constant settle_cycles_c : natural := 16;
    constant depth_c         : natural := 512;

    subtype word_t is std_logic_vector(31 downto 0);

    subtype address_t is std_logic_vector(11 downto 0);

    signal aclk    : std_logic := '0';
    signal aresetn : std_logic := '0';
    signal irq     : std_logic := '0';
    signal ack     : std_logic := '0';
    signal done    : boolean   := false;

    signal wvalid  : std_logic := '0';
    signal awready : std_logic;
    signal awaddr  : address_t := (others => '0');
    signal wdata   : word_t    := (others => '0');
    signal bvalid  : std_logic;
    signal bready  : std_logic := '0';

    signal araddr   : address_t := (others => '0');
    signal s00_read : std_logic := '0';
    signal s01_read : std_logic := '0';
    signal s00_data : word_t;
    signal s01_data : word_t;
    signal s00_resp : std_logic_vector(1 downto 0);
    signal s01_resp : std_logic_vector(1 downto 0);
    signal s00_rvalid  : std_logic;
    signal s01_rvalid  : std_logic;
    signal s00_arready : std_logic;
    signal s01_arready : std_logic;

begin

    aclk <= not aclk after half_period_c when not done else
            '0';

    dut : entity work.latencies_ip
        generic map (
            synchroniser_stages_g => 0
        )
        port map (
            aclk            => aclk,
            aresetn         => aresetn,
            irq_in          => irq,
            ack_in          => ack,
            alarm           => open,
            interrupt       => open,
            m_axis_tdata    => open,
            m_axis_tvalid   => open,
            s00_axi_awaddr  => (others => '0'),
            s00_axi_awvalid => '0',
            s00_axi_awready => open,
            s00_axi_wdata   => (others => '0'),
            s00_axi_wstrb   => (others => '0'),
            s00_axi_wvalid  => '0',
            s00_axi_wready  => open,
            s00_axi_bresp   => open,
            s00_axi_bvalid  => open,
            s00_axi_bready  => '1',
            s00_axi_araddr  => araddr,
            s00_axi_arvalid => s00_read,
            s00_axi_arready => s00_arready,
            s00_axi_rdata   => s00_data,
            s00_axi_rresp   => s00_resp,
            s00_axi_rvalid  => s00_rvalid,
            s00_axi_rready  => '1',
            s01_axi_awaddr  => awaddr,
            s01_axi_awvalid => wvalid,
            s01_axi_awready => awready,
            s01_axi_wdata   => wdata,
            s01_axi_wstrb   => "1111",
            s01_axi_wvalid  => wvalid,
            s01_axi_wready  => open,
            s01_axi_bresp   => open,
            s01_axi_bvalid  => bvalid,
            s01_axi_bready  => bready,
            s01_axi_araddr  => araddr,
            s01_axi_arvalid => s01_read,
            s01_axi_arready => s01_arready,
            s01_axi_rdata   => s01_data,
            s01_axi_rresp   => s01_resp,
            s01_axi_rvalid  => s01_rvalid,
            s01_axi_rready  => '1'
        );

    -- Signals change a while after the clock's edge, so that no edge sees them change.
    software : process is

        file edges_file : text open read_mode is edges_file_g;
        file read_file  : text open write_mode is read_file_g;

        procedure cycles (
            count : natural
        ) is
        begin
            for cycle in 1 to count loop
                wait until rising_edge(aclk);
            end loop;
            wait for 1 ns;
        end procedure cycles;

        procedure write_register (
            address : natural;
            value : natural
        ) is
        begin
            awaddr <= std_logic_vector(to_unsigned(address, awaddr'length));
            wdata  <= std_logic_vector(to_unsigned(value, wdata'length));
            wvalid <= '1';
            bready <= '1';
            wait until rising_edge(aclk) and awready = '1';
            wait for 1 ns;
            wvalid <= '0';
            wait until rising_edge(aclk) and bvalid = '1';
            wait for 1 ns;
            bready <= '0';
        end procedure write_register;

        procedure read_sample (
            address : natural;
            value : out natural
        ) is
        begin
            araddr   <= std_logic_vector(to_unsigned(address, araddr'length));
            s00_read <= '1';
            wait until rising_edge(aclk) and s00_arready = '1';
            wait for 1 ns;
            s00_read <= '0';
            wait until rising_edge(aclk) and s00_rvalid = '1';
            assert s00_resp = "00"
                report "a sample was refused"
                severity failure;
            value := to_integer(unsigned(s00_data));
            wait for 1 ns;
        end procedure read_sample;

        procedure read_register (
            address : natural;
            value : out natural
        ) is
        begin
            araddr   <= std_logic_vector(to_unsigned(address, araddr'length));
            s01_read <= '1';
            wait until rising_edge(aclk) and s01_arready = '1';
            wait for 1 ns;
            s01_read <= '0';
            wait until rising_edge(aclk) and s01_rvalid = '1';
            assert s01_resp = "00"
                report "a register was refused"
                severity failure;
            value := to_integer(unsigned(s01_data));
            wait for 1 ns;
        end procedure read_register;

        procedure tell (
            value : natural
        ) is
            variable row : line;
        begin
            write(row, value);
            writeline(read_file, row);
        end procedure tell;

        procedure end_series is
            variable value  : natural;
            variable stored : natural;
        begin
            cycles(settle_cycles_c);
            write_register(16#00#, 0);
            for register_index in 2 to 6 loop
                read_register(4 * register_index, value);
                tell(value);
            end loop;
            read_register(16#14#, stored);
            stored := minimum(stored, depth_c);
            tell(stored);
            for index in 0 to stored - 1 loop
                read_sample(4 * index, value);
                tell(value);
            end loop;
            tell(0);
        end procedure end_series;

        variable row    : line;
        variable count  : natural;
        variable action : natural;
        variable limit  : natural;

    begin

        cycles(4);
        aresetn <= '1';
        cycles(4);
        while not endfile(edges_file) loop
            readline(edges_file, row);
            read(row, count);
            read(row, action);
            if count > 0 then
                cycles(count);
            end if;
            if action = 4 then
                end_series;
            elsif action = 5 then
                read(row, limit);
                write_register(16#18#, 1);
                write_register(16#04#, limit);
                write_register(16#00#, 1);
            else
                irq <= to_unsigned(action, 2)(0);
                ack <= to_unsigned(action, 2)(1);
            end if;
        end loop;
        done <= true;
        wait;

    end process software;

end architecture simulation;
