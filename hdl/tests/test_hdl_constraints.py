"""The constraints for Vivado and Quartus: valid Tcl, known commands, and names that exist.

No vendor's tool is here: a plain Tcl interpreter reads them with recorded stand-ins for the
commands of timing constraints, and the names are looked up in the netlist.
"""

import subprocess
from pathlib import Path

import pytest

from synthesis import flow

CONSTRAINTS = Path(__file__).parents[1] / "latencies_ip" / "constraints"
KNOWN = (
    *("set_property", "set_max_delay", "set_min_delay", "set_net_delay", "get_cells", "get_clocks"),
    *("get_ports", "get_pins", "get_property", "get_registers", "all_clocks"),
)
STAND_INS = (
    f"foreach name {{{' '.join(KNOWN)}}}"
    + """ {
    proc $name args "puts stderr \\[list $name {*}\\$args\\]; return {answer of $name}"
}
"""
)


def commands(script: str) -> list[str]:
    """What a script called, in order."""
    done = subprocess.run(
        ["tclsh"],
        input=STAND_INS + script,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    called = [line for line in done.stderr.splitlines() if line]
    assert all(line.startswith(KNOWN) for line in called), done.stderr
    return called


def script(name: str) -> str:
    return (CONSTRAINTS / name).read_text()


def test_xdc_bounds_both_first_stages_by_the_period() -> None:
    called = commands(script("latencies_ip_asynchronous.xdc"))
    assert sum(line.startswith("set_property ASYNC_REG TRUE") for line in called) == 2
    assert [line for line in called if line.startswith("set_max_delay")] == [
        "set_max_delay -datapath_only -from {answer of all_clocks} -to {answer of get_cells}"
        " {answer of get_property}"
    ]


def test_sdc_bounds_both_first_stages_by_the_period() -> None:
    called = commands("set latencies_ip_period 10.0\n" + script("latencies_ip_asynchronous.sdc"))
    last = [line for line in called if line.startswith("set_net_delay")]
    assert last == [
        "set_net_delay -max 10.0 -from {answer of get_pins} -to {answer of get_registers}"
    ]


def test_a_wrong_command_is_noticed() -> None:
    with pytest.raises(AssertionError, match="invalid command name"):
        commands("set_maximum_delay 1")


@pytest.mark.parametrize("instance", ["interrupt", "acknowledgement"])
def test_the_named_registers_exist(instance: str) -> None:
    verilog = flow.netlist("latencies_core", {"synchroniser_stages_g": 2})
    assert f"input_edge_2 {instance} (" in verilog
    body = verilog[verilog.index("module input_edge_2") :]
    assert "reg [2:0] seen;" in body[: body.index("endmodule")]
    for name in ("latencies_ip_asynchronous.xdc", "latencies_ip_asynchronous.sdc"):
        assert instance in script(name)
        assert "seen" in script(name)
