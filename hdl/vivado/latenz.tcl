# SPDX-License-Identifier: Apache-2.0
# What the scripts beside this one share: sources, variants, addresses, and the block design of the
# bench. Plain Tcl 8.5; checked in a Tcl interpreter, not run in Vivado. See README.md.

namespace eval latenz {
    variable vivado [file dirname [file normalize [info script]]]
    variable hdl [file dirname $vivado]

    # How a bench is built. `published` is what Alonso et al. (2024) had, but for the synchronisers:
    # the timer's interrupt does not belong to the clock of the logic.
    variable variants {
        published {
            synchroniser_stages_g 2
        }
        extended {
            synchroniser_stages_g 2
            latency_width_g 32
            num_width_g 32
            counters_g true
            watchdog_g true
            time_stamp_g true
            snapshot_g true
            sums_g true
            histogram_g true
            self_test_g true
        }
    }

    # Where the bench's slaves are: name, offset from the base. The samples' window is as large as
    # the variant needs it (window_bits), the others have 4 KiB. Device trees say the same.
    variable base 0xA0000000
    variable slaves {
        t1_s00_axi    0x00000
        t1_s01_axi    0x10000
        t2_s00_axi    0x20000
        t2_s01_axi    0x30000
        generator_axi 0x40000
    }

    # Inputs of the processor's interrupt controller, pl_ps_irq0[0] first: shared interrupt 89.
    variable interrupts {pl_ps_irq t1_interrupt t2_interrupt t1_alarm t2_alarm}

    # The files of a list such as sources.txt, with their whole path.
    proc files {list_name} {
        variable hdl
        set channel [open [file join $hdl $list_name]]
        set names [split [string trim [read $channel]] "\n"]
        close $channel
        set files {}
        foreach name $names {
            set name [string trim $name]
            if {$name ne "" && ![string match "#*" $name]} {
                lappend files [file join $hdl $name]
            }
        }
        return $files
    }

    proc generics_of {variant} {
        variable variants
        if {![dict exists $variants $variant]} {
            error "variant '$variant': there is none; wanted: [join [dict keys $variants] {, }]"
        }
        return [dict get $variants $variant]
    }

    proc generic {generics name default} {
        return [expr {[dict exists $generics $name] ? [dict get $generics $name] : $default}]
    }

    # Byte address bits of the samples' window, as function window_bits of latencies_pkg.vhd.
    proc window_bits {generics} {
        set words [generic $generics depth_g 512]
        set histogram [generic $generics histogram_g false]
        set bins [generic $generics histogram_bins_g 1024]
        if {$histogram && $bins > $words} {
            set words $bins
        }
        set bits 2
        while {1 << ($bits - 2) < $words} {
            incr bits
        }
        set wide [expr {[generic $generics latency_width_g 16] > 32}]
        if {$wide || $histogram || [generic $generics time_stamp_g false]} {
            incr bits 3
        }
        return [expr {$bits < 12 ? 12 : $bits}]
    }

    # Name, address and bytes of every slave of the bench.
    proc address_map {generics} {
        variable base
        variable slaves
        set map {}
        foreach {name offset} $slaves {
            set bits [expr {[string match *_s00_axi $name] ? [window_bits $generics] : 12}]
            lappend map [list $name [format 0x%08X [expr {$base + $offset}]] [expr {1 << $bits}]]
        }
        return $map
    }

    # What stands between `generic (` or `port (` of an entity and its end: declarations, without
    # comments, each with its colon as the first of the text.
    proc declarations {text kind} {
        if {![regexp "\\m$kind \\((.*?)\n    \\);" $text -> inside]} {
            error "the entity has no $kind clause where it is expected"
        }
        set found {}
        foreach declaration [split $inside ";"] {
            regsub -all {\s+} [string trim $declaration] " " declaration
            lappend found $declaration
        }
        return $found
    }

    # Lines of a VHDL list.
    proc listed {lines separator} {
        return "            [join $lines "$separator\n            "]"
    }

    # VHDL-93 around an entity, with the same generics and ports but one: s00_address_bits_g is the
    # width that VHDL computes for the samples' window. Vivado takes neither VHDL-2008 nor functions
    # in the ports of a top (UG1118, "Top-Level HDL Requirements"). A wrong width is an error when
    # the design is elaborated.
    proc wrapper_text {name entity_file} {
        set channel [open $entity_file]
        regsub -all -line -- {--.*$} [read $channel] "" text
        close $channel
        regexp "entity $name is.*?end entity" $text text
        set generics [declarations $text generic]
        set ports {}
        foreach port [declarations $text port] {
            regsub {(s00_axi_a[rw]addr : in std_logic_vector).*} $port \
                {\1(s00_address_bits_g - 1 downto 0)} port
            lappend ports $port
        }
        foreach {kind declared} [list generic $generics port $ports] {
            set maps($kind) {}
            foreach declaration $declared {
                set formal [lindex $declaration 0]
                lappend maps($kind) "$formal => $formal"
            }
        }
        set width {s00_address_bits_g : positive := 12}
        return "-- Made by hdl/vivado/latenz.tcl from entity $name.

library ieee;
    use ieee.std_logic_1164.all;

entity ${name}_packaged is
    generic (
[listed [linsert $generics 0 $width] ";"]
    );
    port (
[listed $ports ";"]
    );
end entity ${name}_packaged;

architecture rtl of ${name}_packaged is

    component $name is
        generic (
[listed $generics ";"]
        );
        port (
[listed $ports ";"]
        );
    end component $name;

begin

    wrapped : $name
        generic map (
[listed $maps(generic) ","]
        )
        port map (
[listed $maps(port) ","]
        );

end architecture rtl;
"
    }

    # Writes the wrapper of an entity into a folder; returns its path.
    proc write_wrapper {name folder} {
        variable hdl
        file mkdir $folder
        set path [file join $folder ${name}_packaged.vhd]
        set channel [open $path w]
        puts -nonewline $channel [wrapper_text $name [file join $hdl $name rtl $name.vhd]]
        close $channel
        return $path
    }

    # Adds the VHDL of a design; only its wrapper is VHDL-93, as Vivado wants it of a top.
    proc add_sources {lists name folder} {
        set sources {}
        foreach list_name $lists {
            lappend sources {*}[files $list_name]
        }
        add_files -norecurse $sources
        set_property file_type {VHDL 2008} [get_files $sources]
        set top [write_wrapper $name $folder]
        add_files -norecurse $top
        set_property file_type VHDL [get_files $top]
        update_compile_order -fileset sources_1
    }

    # Adds the constraints of the synchronisers, for all cells below an entity; after the clocks are
    # known, which they ask for.
    proc add_constraints {entity} {
        variable hdl
        set path [file join $hdl latencies_ip constraints latencies_ip_asynchronous.xdc]
        add_files -fileset constrs_1 -norecurse $path
        foreach {property value} [list \
            SCOPED_TO_REF $entity PROCESSING_ORDER LATE USED_IN_SYNTHESIS false \
        ] {
            set_property $property $value [get_files $path]
        }
    }

    # The newest version of an IP that this Vivado has.
    proc newest {name} {
        set found [lsort -dictionary [get_ipdefs -all "xilinx.com:ip:$name:*"]]
        if {$found eq ""} {
            error "this Vivado has no IP $name; 2020.2 or later with Zynq UltraScale+ is needed"
        }
        return [lindex $found end]
    }

    # The processor: its first timer counter (TTC1) interrupts the logic, the logic interrupts it,
    # and it reads registers through M_AXI_HPM0_FPD. Returns the clock of the logic in hertz.
    proc create_processor {} {
        set processor [create_bd_cell -type ip -vlnv [newest zynq_ultra_ps_e] processor]
        apply_bd_automation -rule xilinx.com:bd_rule:zynq_ultra_ps_e \
            -config {apply_board_preset 1} $processor
        set_property -dict [list \
            CONFIG.PSU__USE__M_AXI_GP0 1 \
            CONFIG.PSU__USE__M_AXI_GP1 0 \
            CONFIG.PSU__USE__M_AXI_GP2 0 \
            CONFIG.PSU__USE__IRQ0 1 \
            CONFIG.PSU__TTC1__PERIPHERAL__ENABLE 1 \
            CONFIG.PSU__IRQ_P2F_TTC1__INT0 1 \
            CONFIG.PSU__FPGA_PL0_ENABLE 1 \
            CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ 100 \
        ] $processor
        set mhz [get_property CONFIG.PSU__CRL_APB__PL0_REF_CTRL__ACT_FREQMHZ $processor]
        return [expr {round($mhz * 1e6)}]
    }

    # A clock that differs from what the board's script says by more than 10 parts in a million
    # would make every latency of the published variant wrong: there only the device tree tells it.
    proc check_clock {found_hz expected_hz} {
        if {abs($found_hz - $expected_hz) * 100000 > $expected_hz} {
            error "the clock of the logic is $found_hz Hz, not $expected_hz Hz: change clock_hz in\
                the board's script and the clock in hdl/devicetree"
        }
    }

    proc connect_interrupts {} {
        variable interrupts
        set all [create_bd_cell -type ip -vlnv [newest xlconcat] interrupts]
        set_property CONFIG.NUM_PORTS [llength $interrupts] $all
        set number 0
        foreach output $interrupts {
            connect_bd_net [get_bd_pins bench/$output] [get_bd_pins interrupts/In$number]
            incr number
        }
        connect_bd_net [get_bd_pins interrupts/dout] [get_bd_pins processor/pl_ps_irq0]
        connect_bd_net [get_bd_pins processor/ps_pl_irq_ttc1_0] [get_bd_pins bench/ps_pl_irq]
    }

    proc connect_registers {generics} {
        set map [address_map $generics]
        set bus [create_bd_cell -type ip -vlnv [newest smartconnect] registers]
        set_property -dict [list CONFIG.NUM_SI 1 CONFIG.NUM_MI [llength $map]] $bus
        connect_bd_intf_net [get_bd_intf_pins processor/M_AXI_HPM0_FPD] \
            [get_bd_intf_pins registers/S00_AXI]
        set number 0
        foreach slave $map {
            lassign $slave name address bytes
            connect_bd_intf_net [get_bd_intf_pins registers/[format M%02d_AXI $number]] \
                [get_bd_intf_pins bench/$name]
            assign_bd_address -offset $address -range $bytes \
                -target_address_space [get_bd_addr_spaces processor/Data] \
                [get_bd_addr_segs bench/$name/reg0]
            incr number
        }
    }

    proc connect_clock {} {
        create_bd_cell -type ip -vlnv [newest proc_sys_reset] reset
        connect_bd_net [get_bd_pins processor/pl_clk0] \
            [get_bd_pins processor/maxihpm0_fpd_aclk] [get_bd_pins reset/slowest_sync_clk] \
            [get_bd_pins registers/aclk] [get_bd_pins bench/aclk]
        connect_bd_net [get_bd_pins processor/pl_resetn0] [get_bd_pins reset/ext_reset_in]
        connect_bd_net [get_bd_pins reset/peripheral_aresetn] \
            [get_bd_pins registers/aresetn] [get_bd_pins bench/aresetn]
    }

    # The block design of the bench in the open project.
    proc create_design {name variant clock_hz} {
        set generics [generics_of $variant]
        create_bd_design $name
        set found_hz [create_processor]
        check_clock $found_hz $clock_hz
        set bench [create_bd_cell -type module -reference latency_bench_packaged bench]
        set config [list CONFIG.clock_frequency_hz_g $found_hz \
            CONFIG.s00_address_bits_g [window_bits $generics]]
        dict for {generic value} $generics {
            lappend config CONFIG.$generic $value
        }
        set_property -dict $config $bench
        connect_registers $generics
        connect_interrupts
        connect_clock
        validate_bd_design
        save_bd_design
    }
}
