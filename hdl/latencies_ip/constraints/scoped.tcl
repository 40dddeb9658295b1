# SPDX-License-Identifier: Apache-2.0
# Vivado projects that others make, such as FuseSoC's: what the build scripts beside hdl/vivado do.
# Sourced behind the constraints. Not run in Vivado.
foreach {latenz_property latenz_value} {
    SCOPED_TO_REF latencies_ip PROCESSING_ORDER LATE USED_IN_SYNTHESIS false
} {
    set_property $latenz_property $latenz_value [get_files latencies_ip_asynchronous.xdc]
}
