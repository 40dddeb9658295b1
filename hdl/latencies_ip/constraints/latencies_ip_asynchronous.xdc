# SPDX-License-Identifier: Apache-2.0
# Vivado: inputs of another clock, for instances with synchroniser_stages_g of 2 or 3. Scoped:
#   set_property SCOPED_TO_REF latencies_ip [get_files latencies_ip_asynchronous.xdc]
# Not for synchroniser_stages_g = 0: there the inputs are of aclk, and must be timed like any path.
# Not run on hardware; its syntax is checked by a Tcl interpreter.

# Both stages next to each other, never merged nor turned into a shift register.
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *interrupt/seen_reg[*]}]
set_property ASYNC_REG TRUE [get_cells -hierarchical -filter {NAME =~ *acknowledgement/seen_reg[*]}]

# The first stage has no timing towards a foreign clock. Both paths get the same bound of one period
# of aclk, rather than none: what they differ by adds to a latency's uncertainty.
set period [get_property PERIOD [get_clocks -of_objects [get_ports aclk]]]
set first_stages [get_cells -hierarchical -filter {NAME =~ *interrupt/seen_reg[0] || NAME =~ *acknowledgement/seen_reg[0]}]
set_max_delay -datapath_only -from [all_clocks] -to $first_stages $period
