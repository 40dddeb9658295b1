# SPDX-License-Identifier: Apache-2.0
# From sources to a bit stream, for Linux too, and its hardware description:
#   vivado -mode batch -source hdl/vivado/build.tcl -tclargs zcu102|kv260|kr260 published|extended FOLDER
# Checked in a Tcl interpreter; not run in Vivado, nor on hardware. See README.md.

source [file join [file dirname [file normalize [info script]]] latenz.tcl]

namespace eval latenz {
    variable boards {zcu102 kv260 kr260}

    # The newest description of a board that this Vivado has.
    proc newest_board {board_part} {
        set found [lsort -dictionary [get_board_parts -quiet "$board_part:*"]]
        if {$found eq ""} {
            error "this Vivado does not know the board $board_part; install it from its board store"
        }
        return [lindex $found end]
    }

    proc create_bench_project {folder} {
        create_project -force latency_bench $folder -part $board::part
        set_property board_part [newest_board $board::board_part] [current_project]
        if {$board::connections ne ""} {
            set_property board_connections $board::connections [current_project]
        }
        set_property target_language VHDL [current_project]
        add_sources {sources.txt bench_sources.txt} latency_bench $folder
        add_constraints latency_bench
        # Else wrong generics pass unnoticed.
        set_property STEPS.SYNTH_DESIGN.ARGS.ASSERT true [get_runs synth_1]
    }

    # Ends with an error if a path is too slow or too fast for the clock, or crosses clocks without a
    # synchroniser: latencies could not be trusted.
    proc check_timing_of {folder} {
        report_timing_summary -file [file join $folder timing.txt]
        report_cdc -details -file [file join $folder clock_crossings.txt]
        report_methodology -file [file join $folder methodology.txt]
        foreach {kind too} {-setup fast -hold skewed} {
            set slack [get_property SLACK [get_timing_paths $kind]]
            if {$slack < 0} {
                error "the clock is too $too by [expr {abs($slack)}] ns: see [file join $folder timing.txt]"
            }
        }
        set critical [llength [get_cdc_violations -quiet -filter {SEVERITY == Critical}]]
        if {$critical > 0} {
            error "$critical clock crossings are unsafe: see [file join $folder clock_crossings.txt]"
        }
    }

    proc implement {folder design} {
        set wrapper [make_wrapper -files [get_files $design.bd] -top]
        add_files -norecurse $wrapper
        set_property top ${design}_wrapper [current_fileset]
        update_compile_order -fileset sources_1
        launch_runs impl_1 -to_step write_bitstream -jobs 2
        wait_on_run impl_1
        if {[get_property PROGRESS [get_runs impl_1]] ne "100%"} {
            error "the implementation has failed: see [get_property DIRECTORY [get_runs impl_1]]"
        }
        open_run impl_1
        report_utilization -hierarchical -file [file join $folder utilization.txt]
        check_timing_of $folder
        write_hw_platform -fixed -include_bit -force [file join $folder $design.xsa]
        # What Linux loads: without the header, in the order of its words in memory. The device trees
        # name it.
        set stream [file join [get_property DIRECTORY [get_runs impl_1]] ${design}_wrapper.bit]
        write_cfgmem -force -format BIN -interface SMAPx32 -disablebitswap \
            -loadbit "up 0x0 $stream" [file join $folder latency-bench.bit.bin]
    }

    proc build {arguments} {
        variable boards
        variable vivado
        if {[llength $arguments] != 3} {
            error "give a board ([join $boards {, }]), a variant (published, extended) and a folder"
        }
        lassign $arguments board variant folder
        if {$board ni $boards} {
            error "board '$board': there is none; wanted: [join $boards {, }]"
        }
        generics_of $variant
        source [file join $vivado $board.tcl]
        set folder [file normalize $folder]
        create_bench_project $folder
        set design latency_bench_$variant
        create_design $design $variant $board::clock_hz
        implement $folder $design
    }
}

latenz::build $argv
