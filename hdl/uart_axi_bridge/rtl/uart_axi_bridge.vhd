-- SPDX-License-Identifier: Apache-2.0
-- Reads and writes words of an AXI4-Lite bus for a program at the other end of a serial line: for
-- boards whose processor is measured, or that have none. A check of 8 bits guards each message.
-- Not for more than one program at a time, nor for strobes: it writes whole words.
-- Messages and their timing: ../doc/uart_axi_bridge.md.

library ieee;
    use ieee.std_logic_1164.all;
    use ieee.numeric_std.all;
    use work.latencies_pkg.all;

entity uart_axi_bridge is
    generic (
        -- Clock cycles of a bit on the line.
        cycles_per_bit_g : positive := 100;
        -- A request that has not gone on for so many bits' time is forgotten.
        silence_bits_g : positive := 32_768
    );
    port (
        aclk    : in    std_logic;
        aresetn : in    std_logic;

        -- From and to the program.
        rxd : in    std_logic;
        txd : out   std_logic;

        -- Bits 19 to 16 of an address are the window.
        m_axi_awaddr  : out   std_logic_vector(19 downto 0);
        m_axi_awprot  : out   std_logic_vector(2 downto 0);
        m_axi_awvalid : out   std_logic;
        m_axi_awready : in    std_logic;
        m_axi_wdata   : out   std_logic_vector(31 downto 0);
        m_axi_wstrb   : out   std_logic_vector(3 downto 0);
        m_axi_wvalid  : out   std_logic;
        m_axi_wready  : in    std_logic;
        m_axi_bresp   : in    std_logic_vector(1 downto 0);
        m_axi_bvalid  : in    std_logic;
        m_axi_bready  : out   std_logic;
        m_axi_araddr  : out   std_logic_vector(19 downto 0);
        m_axi_arprot  : out   std_logic_vector(2 downto 0);
        m_axi_arvalid : out   std_logic;
        m_axi_arready : in    std_logic;
        m_axi_rdata   : in    std_logic_vector(31 downto 0);
        m_axi_rresp   : in    std_logic_vector(1 downto 0);
        m_axi_rvalid  : in    std_logic;
        m_axi_rready  : out   std_logic
    );
end entity uart_axi_bridge;

architecture rtl of uart_axi_bridge is

    subtype byte_t is std_logic_vector(7 downto 0);

    constant read_c    : byte_t := x"52"; -- R
    constant write_c   : byte_t := x"57"; -- W
    constant damaged_c : byte_t := x"FE";

    constant silence_c : positive := silence_bits_g * cycles_per_bit_g;

    -- The remainder after one byte more, of x^8 + x^2 + x + 1.
    function checked (remainder : byte_t; byte : byte_t) return byte_t is
        variable rest : byte_t := remainder xor byte;
    begin
        for step in 1 to 8 loop
            rest := (rest(6 downto 0) & '0') xor (x"07" and rest(7));
        end loop;
        return rest;
    end function checked;

    signal rst : std_logic;

    signal heard : std_logic;
    signal byte  : byte_t;

    -- A request: its bytes so far, the first highest in what is shifted.
    signal is_write  : std_logic := '0';
    signal count     : unsigned(3 downto 0) := (others => '0');
    signal window    : std_logic_vector(3 downto 0) := (others => '0');
    signal address   : unsigned(15 downto 0) := (others => '0');
    signal data      : std_logic_vector(31 downto 0) := (others => '0');
    signal remainder : byte_t := (others => '0');
    signal silence   : unsigned(address_bits(silence_c) - 1 downto 0) := (others => '0');

    signal last_byte : unsigned(3 downto 0);

    -- What is done, one of them at a time; none: a request is awaited.
    signal asks_write : std_logic := '0';
    signal asks_word  : std_logic := '0';
    signal awaits_b   : std_logic := '0';
    signal asks_read  : std_logic := '0';
    signal awaits_r   : std_logic := '0';
    signal answers    : std_logic := '0';
    signal idle       : std_logic;

    -- Address and word of a write have been taken, in this cycle or before.
    signal write_taken : std_logic;

    -- Words still to be read.
    signal words_left : unsigned(7 downto 0) := (others => '0');
    -- Bytes still to be sent, the next one lowest, and how many; then the check.
    signal bytes      : std_logic_vector(39 downto 0) := (others => '0');
    signal bytes_left : unsigned(2 downto 0) := (others => '0');
    signal check_left : std_logic := '0';

    signal send_valid : std_logic;
    signal send_ready : std_logic;
    signal send_byte  : byte_t;

begin

    rst  <= not aresetn;
    idle <= not (asks_write or asks_word or awaits_b or asks_read or awaits_r or answers);

    m_axi_awaddr  <= window & std_logic_vector(address);
    m_axi_awprot  <= "000";
    m_axi_awvalid <= asks_write;
    m_axi_wdata   <= data;
    m_axi_wstrb   <= "1111";
    m_axi_wvalid  <= asks_word;
    m_axi_bready  <= awaits_b;
    m_axi_araddr  <= window & std_logic_vector(address);
    m_axi_arprot  <= "000";
    m_axi_arvalid <= asks_read;
    m_axi_rready  <= awaits_r;

    write_taken <= (asks_write or asks_word) and (not asks_write or m_axi_awready)
                   and (not asks_word or m_axi_wready);

    last_byte <= to_unsigned(8, 4) when is_write = '1' else to_unsigned(5, 4);

    send_valid <= answers and ((or bytes_left) or check_left);
    send_byte  <= bytes(7 downto 0) when bytes_left /= 0 else remainder;

    receiver : entity work.uart_receiver
        generic map (
            cycles_per_bit_g => cycles_per_bit_g
        )
        port map (
            clk   => aclk,
            rst   => rst,
            line  => rxd,
            valid => heard,
            data  => byte
        );

    transmitter : entity work.uart_transmitter
        generic map (
            cycles_per_bit_g => cycles_per_bit_g
        )
        port map (
            clk   => aclk,
            rst   => rst,
            valid => send_valid,
            ready => send_ready,
            data  => send_byte,
            line  => txd
        );

    serve : process (aclk) is

        -- What is answered to a request or a word of it: a status and maybe a word, then maybe the check.
        procedure answer (
            status : byte_t;
            word   : std_logic_vector(31 downto 0);
            length : positive;
            ends   : std_logic
        ) is
        begin
            answers    <= '1';
            bytes      <= word & status;
            bytes_left <= to_unsigned(length, bytes_left'length);
            check_left <= ends;
        end procedure answer;

    begin

        if rising_edge(aclk) then
            silence <= silence + 1;
            if idle = '1' and heard = '1' then
                silence   <= (others => '0');
                count     <= count + 1;
                remainder <= checked(remainder, byte);
                if count = 0 then
                    is_write  <= to_bit(byte = write_c);
                    remainder <= checked((others => '0'), byte);
                    -- Not the beginning of a request: perhaps the end of one that was cut.
                    if byte /= write_c and byte /= read_c then
                        count <= (others => '0');
                    end if;
                elsif count = 1 then
                    window <= byte(3 downto 0);
                elsif count = 2 then
                    address(7 downto 0) <= unsigned(byte);
                elsif count = 3 then
                    address(15 downto 8) <= unsigned(byte);
                elsif count /= last_byte then
                    data       <= byte & data(31 downto 8);
                    words_left <= unsigned(byte);
                else
                    count     <= (others => '0');
                    remainder <= (others => '0');
                    if byte /= remainder or (is_write = '0' and words_left = 0) then
                        words_left <= (others => '0');
                        answer(damaged_c, data, 1, '1');
                    else
                        asks_write <= is_write;
                        asks_word  <= is_write;
                        asks_read  <= not is_write;
                        if is_write = '1' then
                            words_left <= (others => '0');
                        end if;
                    end if;
                end if;
            elsif silence = silence_c - 1 then
                count <= (others => '0');
            end if;

            if asks_write = '1' and m_axi_awready = '1' then
                asks_write <= '0';
            end if;
            if asks_word = '1' and m_axi_wready = '1' then
                asks_word <= '0';
            end if;
            if write_taken = '1' then
                awaits_b <= '1';
            end if;
            if awaits_b = '1' and m_axi_bvalid = '1' then
                awaits_b <= '0';
                answer("000000" & m_axi_bresp, data, 1, '1');
            end if;

            if asks_read = '1' and m_axi_arready = '1' then
                asks_read <= '0';
                awaits_r  <= '1';
            end if;
            if awaits_r = '1' and m_axi_rvalid = '1' then
                awaits_r   <= '0';
                words_left <= words_left - 1;
                address    <= address + 4;
                if m_axi_rresp(1) = '1' then
                    words_left <= (others => '0');
                    answer("000000" & m_axi_rresp, m_axi_rdata, 1, '1');
                else
                    answer(x"00", m_axi_rdata, 5, to_bit(words_left = 1));
                end if;
            end if;

            if answers = '1' and send_ready = '1' then
                if bytes_left /= 0 then
                    bytes      <= x"00" & bytes(39 downto 8);
                    bytes_left <= bytes_left - 1;
                    remainder  <= checked(remainder, send_byte);
                elsif check_left = '1' then
                    check_left <= '0';
                else
                    answers   <= '0';
                    asks_read <= or words_left;
                end if;
            end if;

            if rst = '1' then
                count      <= (others => '0');
                asks_write <= '0';
                asks_word  <= '0';
                awaits_b   <= '0';
                asks_read  <= '0';
                awaits_r   <= '0';
                answers    <= '0';
                check_left <= '0';
            end if;
        end if;

    end process serve;

end architecture rtl;
