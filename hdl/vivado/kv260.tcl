# SPDX-License-Identifier: Apache-2.0
# The bench on AMD's Kria KV260 (K26 module on the vision carrier). Sourced by build.tcl.
# Checked in a Tcl interpreter; not run in Vivado, nor on hardware. See README.md.

namespace eval ::latenz::board {
    variable name kv260
    variable part xck26-sfvc784-2LV-c
    variable board_part xilinx.com:kv260_som:part0
    variable connections {
        som240_1_connector xilinx.com:kv260_carrier:som240_1_connector:1.3
    }
    # 100 MHz are asked for; the module's 33.333 MHz reference gives this.
    variable clock_hz 99999001
}
