# SPDX-License-Identifier: Apache-2.0
# The bench on AMD's Kria KR260 (K26 module on the robotics carrier). Sourced by build.tcl.
# Checked in a Tcl interpreter; not run in Vivado, nor on hardware. See README.md.

namespace eval ::latenz::board {
    variable name kr260
    variable part xck26-sfvc784-2LV-c
    variable board_part xilinx.com:kr260_som:part0
    variable connections {
        som240_1_connector xilinx.com:kr260_carrier:som240_1_connector:1.0
        som240_2_connector xilinx.com:kr260_carrier:som240_2_connector:1.0
    }
    # 100 MHz are asked for; the module's 33.333 MHz reference gives this.
    variable clock_hz 99999001
}
