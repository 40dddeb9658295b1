"""Runs the scripts for Vivado in a plain Tcl interpreter whose Vivado commands are recorded."""

import subprocess
from pathlib import Path

HDL = Path(__file__).parents[1]
VIVADO = HDL / "vivado"

# Every command of Vivado and of Quartus' Platform Designer that the scripts may call. What is not
# here is an invalid command, as it would be there.
COMMANDS = """
    add_files apply_bd_automation assign_bd_address connect_bd_intf_net connect_bd_net
    create_bd_cell create_bd_design create_project current_fileset current_project get_bd_addr_segs
    get_bd_addr_spaces get_bd_cells get_bd_intf_pins get_bd_pins get_board_parts get_files
    get_cdc_violations get_ipdefs get_property get_runs get_timing_paths launch_runs make_wrapper
    open_run report_cdc report_methodology report_timing_summary report_utilization
    save_bd_design set_property update_compile_order validate_bd_design
    wait_on_run write_cfgmem write_hw_platform
    ipx::add_bus_parameter ipx::associate_bus_interfaces ipx::check_integrity
    ipx::create_xgui_files ipx::current_core
    ipx::get_bus_interfaces ipx::get_hdl_parameters ipx::get_ports ipx::get_user_parameters
    ipx::infer_bus_interface ipx::infer_bus_interfaces ipx::package_project ipx::save_core
    ipx::update_checksums ipx::update_dependency
"""

# Answers objects by their names, as far as the scripts look at them; `answers` has the rest.
INTERPRETER = r"""
namespace eval ipx {}
set recorded {}
set answers {%(answers)s}
proc stub {name arguments} {
    lappend ::recorded [linsert $arguments 0 $name]
    set called [linsert $arguments 0 $name]
    foreach {pattern answer} $::answers {
        if {[string match $pattern $called]} { return $answer }
    }
    switch -glob $name {
        get_bd_* - get_files - get_runs - ipx::get_* { return [lindex $arguments 0] }
        create_bd_cell { return [lindex $arguments end] }
        ipx::current_core { return core }
        ipx::add_bus_parameter { return "[lindex $arguments 0] of [lindex $arguments 1]" }
        current_project { return project }
        current_fileset { return sources_1 }
    }
    return {}
}
foreach name {%(commands)s} {
    proc $name args "return \[stub $name \$args\]"
}
"""


def run_tcl(script: str, answers: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    """Run a script after the stubs were made."""
    listed = " ".join(f"{{{pattern}}} {{{answer}}}" for pattern, answer in (answers or {}).items())
    whole = INTERPRETER % {"answers": listed, "commands": COMMANDS} + script
    return subprocess.run(
        ["tclsh"], input=whole, capture_output=True, text=True, check=False, timeout=600
    )


def evaluate(expression: str, *scripts: str, before: str = "") -> str:
    """Return what an expression says after latenz.tcl, and perhaps others, were read."""
    lines = [f"source {{{VIVADO / 'latenz.tcl'}}}"]
    for name in scripts:
        # build.tcl and package_latencies_ip.tcl begin to work at their end: not wanted here.
        text = (VIVADO / name).read_text()
        text = text.replace("latenz::build $argv\n", "").replace("latenz::package $argv\n", "")
        lines.append(text.replace("[info script]", f"{{{VIVADO / name}}}"))
    done = run_tcl("\n".join([*lines, before, f"puts [{expression}]", "exit 0"]))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def recorded(
    script: str, arguments: list[str], answers: dict[str, str] | None = None
) -> tuple[list[list[str]], str]:
    """Run a whole script; return its Vivado commands, word by word, and the error it ended with."""
    listed = " ".join(f"{{{word}}}" for word in arguments)
    done = run_tcl(
        f"""
set argv [list {listed}]
set failed [catch {{ source {{{VIVADO / script}}} }} message]
foreach call $recorded {{
    foreach word $call {{ puts -nonewline "$word\\x1f" }}
    puts -nonewline "\\x1e"
}}
if {{$failed}} {{ puts stderr $message; exit 1 }}
exit 0
""",
        answers,
    )
    calls = [call.split("\x1f")[:-1] for call in done.stdout.split("\x1e")[:-1]]
    return calls, done.stderr.strip()
