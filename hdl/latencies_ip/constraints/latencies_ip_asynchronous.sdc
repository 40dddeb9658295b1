# SPDX-License-Identifier: Apache-2.0
# Quartus (Intel, Altera): inputs of another clock, for instances with synchroniser_stages_g of 2
# or 3. Name the period of aclk in ns before reading it: set latencies_ip_period 10.0
# Not for synchroniser_stages_g = 0: there the inputs are of aclk, and must be timed like any path.
# Not run on hardware; its syntax is checked by a Tcl interpreter.

set latencies_ip_first_stages [get_registers {*|input_edge:interrupt|seen[0] *|input_edge:acknowledgement|seen[0] *|input_edge:edges|seen[0] *|synchroniser:*|\row:1:kept[*]}]

# Neither setup nor hold towards a foreign clock; but both paths have the same bound of one period of
# aclk: what they differ by adds to a latency's uncertainty.
set_max_delay -to $latencies_ip_first_stages 100
set_min_delay -to $latencies_ip_first_stages -100
set_net_delay -max $latencies_ip_period -from [get_pins -compatibility_mode *] -to $latencies_ip_first_stages
