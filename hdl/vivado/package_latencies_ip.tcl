# SPDX-License-Identifier: Apache-2.0
# Makes latencies_ip an IP of Vivado's catalogue, in a folder to be added to ip_repo_paths:
#   vivado -mode batch -source hdl/vivado/package_latencies_ip.tcl -tclargs FOLDER
# Checked in a Tcl interpreter; not run in Vivado. See README.md.

source [file join [file dirname [file normalize [info script]]] latenz.tcl]

namespace eval latenz {
    # Any of them would do to package; none is used by the IP.
    variable packaging_part xczu9eg-ffvb1156-2-e

    variable families {
        zynq Beta zynquplus Beta zynquplusRFSOC Beta versal Beta artix7 Beta kintex7 Beta
        virtex7 Beta spartan7 Beta kintexu Beta virtexu Beta kintexuplus Beta virtexuplus Beta
        artixuplus Beta
    }

    # What a user sees of a generic: its title, and its values: a list, or least and most.
    variable parameters {
        latency_width_g       {"Bits of a latency" list {16 32 48}}
        depth_g               {"Samples in the memory" list
                               {2 4 8 16 32 64 128 256 512 1024 2048 4096 8192 16384 32768 65536}}
        num_width_g           {"Bits of the number of samples" list {16 32}}
        synchroniser_stages_g {"Synchroniser stages of both inputs" list {0 2 3}}
        overlap_policy_g      {"An interrupt while one is open" list {drop restart queue}}
        queue_depth_g         {"Open interrupts at most, with queue" list
                               {2 4 8 16 32 64 128 256 512 1024}}
        clock_frequency_hz_g  {"Frequency of aclk in Hz, for software" range {1 2000000000}}
        identification_g      {"Registers that identify the IP" flag {}}
        counters_g            {"Counters of orphans, overlaps, missed and saturated" flag {}}
        watchdog_g            {"Watchdog for lost interrupts" flag {}}
        time_stamp_g          {"Time stamp of every sample" flag {}}
        shared_time_g         {"Time stamps are of time_in" flag {}}
        snapshot_g            {"Snapshot of all statistics" flag {}}
        sums_g                {"Sum and sum of squares" flag {}}
        histogram_g           {"Histogram" flag {}}
        histogram_bins_g      {"Bins of the histogram" list
                               {8 16 32 64 128 256 512 1024 2048 4096 8192 16384 32768 65536}}
        histogram_kind_g      {"Kind of the histogram" list {linear log-linear}}
        histogram_sub_bits_g  {"Log-linear: 2 to this power bins an octave" range {1 15}}
        stream_g              {"Stream of samples" flag {}}
        channel_g             {"Number of this IP in its stream" range {0 255}}
        freeze_g              {"Freeze around a maximum" flag {}}
        self_test_g           {"Self test" flag {}}
    }

    # When what is there: interfaces and ports by generics.
    variable present {
        interface m_axis {$stream_g}
        port time_in {$shared_time_g}
        port interrupt {$identification_g || $counters_g || $watchdog_g || $time_stamp_g ||
            $snapshot_g || $sums_g || $histogram_g || $stream_g || $freeze_g || $self_test_g}
    }

    # As window_bits of latenz.tcl, for the customization dialogue, which knows generics as variables.
    variable s00_address_bits {
        expr {max(12, 2 + int(ceil(log(max($depth_g, $histogram_g ? $histogram_bins_g : 1))
            / log(2) - 0.001)) + (($latency_width_g > 32 || $time_stamp_g || $histogram_g) ? 3 : 0))}
    }

    proc describe {core} {
        variable families
        foreach {property value} {
            vendor latenz library measurement name latencies_ip version 1.0
            display_name {Latencies IP}
            vendor_display_name Latenz
            description {Measures interrupts from edge to edge, to the clock cycle}
        } {
            set_property $property $value $core
        }
        set_property supported_families $families $core
    }

    proc set_values {core} {
        variable parameters
        dict for {name shown} $parameters {
            lassign $shown title kind values
            set parameter [ipx::get_user_parameters $name -of_objects $core]
            set_property display_name $title $parameter
            switch $kind {
                list {
                    set_property value_validation_type list $parameter
                    set_property value_validation_list $values $parameter
                }
                range {
                    set_property value_validation_type range_long $parameter
                    set_property value_validation_range_minimum [lindex $values 0] $parameter
                    set_property value_validation_range_maximum [lindex $values 1] $parameter
                }
                flag {
                    set_property value_format bool $parameter
                    set_property value_format bool [ipx::get_hdl_parameters $name -of_objects $core]
                }
            }
        }
    }

    # The width of the samples' window follows from the others.
    proc derive_window {core} {
        variable s00_address_bits
        set parameter [ipx::get_user_parameters s00_address_bits_g -of_objects $core]
        set_property enablement_value false $parameter
        set_property value_tcl_expr [string trim $s00_address_bits] $parameter
        ipx::update_dependency $parameter
    }

    proc add_interfaces {core} {
        ipx::infer_bus_interface aclk xilinx.com:signal:clock_rtl:1.0 $core
        ipx::infer_bus_interface aresetn xilinx.com:signal:reset_rtl:1.0 $core
        foreach output {interrupt alarm} {
            ipx::infer_bus_interface $output xilinx.com:signal:interrupt_rtl:1.0 $core
            set interface [ipx::get_bus_interfaces $output -of_objects $core]
            set_property value LEVEL_HIGH [ipx::add_bus_parameter SENSITIVITY $interface]
        }
        ipx::infer_bus_interfaces xilinx.com:interface:aximm_rtl:1.0 $core
        ipx::infer_bus_interfaces xilinx.com:interface:axis_rtl:1.0 $core
        foreach interface {s00_axi s01_axi m_axis} {
            ipx::associate_bus_interfaces -busif $interface -clock aclk -reset aresetn $core
        }
    }

    proc set_presence {core} {
        variable present
        foreach {kind name condition} $present {
            set condition [join $condition]
            if {$kind eq "interface"} {
                set object [ipx::get_bus_interfaces $name -of_objects $core]
            } else {
                set object [ipx::get_ports $name -of_objects $core]
            }
            set_property enablement_dependency $condition $object
        }
        set_property driver_value 0 [ipx::get_ports time_in -of_objects $core]
        set_property driver_value 1 [ipx::get_ports m_axis_tready -of_objects $core]
    }

    proc package {arguments} {
        variable packaging_part
        if {[llength $arguments] != 1} {
            error "give the folder that the IP is to be put in"
        }
        set folder [file normalize [lindex $arguments 0]]
        create_project -in_memory -part $packaging_part
        add_sources sources.txt latencies_ip $folder
        add_constraints latencies_ip
        set_property top latencies_ip_packaged [current_fileset]
        ipx::package_project -root_dir $folder -vendor latenz -library measurement \
            -taxonomy /UserIP -import_files -set_current true
        set core [ipx::current_core]
        describe $core
        set_values $core
        derive_window $core
        add_interfaces $core
        set_presence $core
        ipx::create_xgui_files $core
        ipx::update_checksums $core
        ipx::check_integrity $core
        ipx::save_core $core
    }
}

latenz::package $argv
