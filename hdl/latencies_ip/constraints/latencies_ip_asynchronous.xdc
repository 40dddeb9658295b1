# SPDX-License-Identifier: Apache-2.0
# Vivado: inputs of another clock, wherever there are synchronisers: in latencies_ip, in
# latencies_ip_channels before a signal forks, in the random data generator. The scripts in hdl/vivado
# load it, and it is in the packaged IP; whoever adds the sources by hand adds this, too:
#   set_property SCOPED_TO_REF latencies_ip [get_files latencies_ip_asynchronous.xdc]
#   set_property PROCESSING_ORDER LATE [get_files latencies_ip_asynchronous.xdc]
# with latency_bench or latencies_ip_channels in its place where that is the top of ours.
# With synchroniser_stages_g = 0 it finds nothing: ASYNC_REG, which the VHDL sets, is false there, and
# the inputs are timed like any path.
# Not run in Vivado; its syntax is checked by a Tcl interpreter, its names against the netlist.

# The first stage has no timing towards a foreign clock. All get the same bound of one period of their
# own clock, rather than none: what the paths differ by adds to a latency's uncertainty. The clock is
# asked of cells, for get_ports is not reliable in a scoped file.
set latenz_first_stages [get_cells -quiet -hierarchical -filter {ASYNC_REG && (NAME =~ *seen_reg[0] || NAME =~ *row[1].kept_reg[*])}]
set latenz_period_ns [get_property -quiet PERIOD [get_clocks -quiet -of_objects $latenz_first_stages]]
set_max_delay -quiet -datapath_only -from [all_clocks] -to $latenz_first_stages [lindex $latenz_period_ns 0]
