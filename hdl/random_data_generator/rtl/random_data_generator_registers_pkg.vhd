-- SPDX-License-Identifier: Apache-2.0
-- Random data generator, registers: addresses, and what passes between block and circuit.
-- Not for software: it has a C++ header and a Python module from the same source.
-- See ../doc/random_data_generator.md.
-- Generated from hdl/registers/random_data_generator.rdl by hdl/registers/generate: edit that, not
-- this.

library ieee;
    use ieee.std_logic_1164.all;

package random_data_generator_registers_pkg is

    subtype word_t is std_logic_vector(31 downto 0);

    -- Word addresses: byte addresses / 4.
    constant data_index_c     : natural := 0;
    constant seed_index_c     : natural := 1;
    constant words_index_c    : natural := 2;
    constant level_index_c    : natural := 3;
    constant status_index_c   : natural := 4;
    constant overruns_index_c : natural := 5;
    constant requests_index_c : natural := 6;

    -- From the circuit to the register block. Words are zero where the circuit has no bits. _error:
    -- a read answers SLVERR.
    type from_hardware_t is record
        data         : word_t;
        level        : word_t;
        status_empty : std_logic;
        status_full  : std_logic;
        status_busy  : std_logic;
        overruns     : word_t;
        requests     : word_t;
        data_error   : std_logic;
    end record from_hardware_t;

    -- From the register block to the circuit. _next: the value after the coming clock edge; _clear:
    -- software writes 1; _read, _written: software does so in this cycle; _delivered: the data read
    -- are handed over in this cycle. Meaningless while aresetn is low.
    type to_hardware_t is record
        data_read      : std_logic;
        seed           : word_t;
        seed_next      : word_t;
        seed_written   : std_logic;
        words          : word_t;
        data_delivered : std_logic;
    end record to_hardware_t;

end package random_data_generator_registers_pkg;
