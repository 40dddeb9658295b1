-- SPDX-License-Identifier: Apache-2.0
-- Stream ring writer, registers: addresses, and what passes between block and circuit.
-- Not for software: it has a C++ header and a Python module from the same source.
-- See ../doc/stream_ring_writer.md.
-- Generated from hdl/registers/stream_ring_writer.rdl by hdl/registers/generate: edit that, not
-- this.

library ieee;
    use ieee.std_logic_1164.all;

package stream_ring_writer_registers_pkg is

    subtype word_t is std_logic_vector(31 downto 0);

    -- Word addresses: byte addresses / 4.
    constant enable_index_c    : natural := 0;
    constant base_low_index_c  : natural := 1;
    constant base_high_index_c : natural := 2;
    constant size_log2_index_c : natural := 3;
    constant written_index_c   : natural := 4;
    constant consumed_index_c  : natural := 5;
    constant dropped_index_c   : natural := 6;
    constant status_index_c    : natural := 7;
    constant threshold_index_c : natural := 8;

    -- From the circuit to the register block. Words are zero where the circuit has no bits. _error:
    -- a read answers SLVERR.
    type from_hardware_t is record
        written          : word_t;
        dropped          : word_t;
        status_full      : std_logic;
        status_idle      : std_logic;
        status_bus_error : std_logic;
    end record from_hardware_t;

    -- From the register block to the circuit. _next: the value after the coming clock edge; _clear:
    -- software writes 1; _read, _written: software does so in this cycle; _delivered: the data read
    -- are handed over in this cycle. Meaningless while aresetn is low.
    type to_hardware_t is record
        enable                 : std_logic;
        base_low               : word_t;
        base_high              : word_t;
        size_log2              : word_t;
        consumed               : word_t;
        status_bus_error_clear : std_logic;
        threshold              : word_t;
    end record to_hardware_t;

end package stream_ring_writer_registers_pkg;
