# SPDX-License-Identifier: Apache-2.0
# The bench on AMD's ZCU102 (XCZU9EG): the board of Alonso et al. (2024). Sourced by build.tcl.
# Checked in a Tcl interpreter; not run in Vivado, nor on hardware. See README.md.

namespace eval ::latenz::board {
    variable name zcu102
    variable part xczu9eg-ffvb1156-2-e
    variable board_part xilinx.com:zcu102:part0
    variable connections {}
    # 100 MHz are asked for; the board's 33.33 MHz reference gives this.
    variable clock_hz 99990005
}
