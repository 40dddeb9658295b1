"""The constraints for Vivado and Quartus: valid Tcl, known commands, and names that exist.

No vendor's tool is here: a plain Tcl interpreter reads them with recorded stand-ins for the
commands of timing constraints, and the names are looked up in the netlist.
"""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from simulation.vhdl_sources import ALL, listed
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
        timeout=600,
    )
    called = [line for line in done.stderr.splitlines() if line]
    assert all(line.startswith(KNOWN) for line in called), done.stderr
    return called


def script(name: str) -> str:
    return (CONSTRAINTS / name).read_text()


def test_xdc_bounds_both_first_stages_by_the_period() -> None:
    called = commands(script("latencies_ip_asynchronous.xdc"))
    assert [line for line in called if line.startswith("set_max_delay")] == [
        "set_max_delay -quiet -datapath_only -from {answer of all_clocks} -to {answer of get_cells}"
        " answer"
    ]
    assert "get_clocks -quiet -of_objects {answer of get_cells}" in called
    assert not any(line.startswith("get_ports") for line in called)


def test_xdc_has_no_control_flow_which_vivado_refuses_in_one() -> None:
    for line in script("latencies_ip_asynchronous.xdc").splitlines():
        assert re.match(r"#|$|set |set_max_delay ", line), line


@pytest.mark.parametrize(
    ("top", "generics", "first_stages"),
    [
        ("latencies_ip", {"synchroniser_stages_g": 2}, 2),
        ("latencies_ip", {"synchroniser_stages_g": 0}, 0),
        ("random_data_generator", {"synchroniser_stages_g": 3}, 1),
        ("latency_bench", {"synchroniser_stages_g": 2}, 5),
        ("latencies_ip_channels", {"synchroniser_stages_g": 2, "chained_g": True}, 7),
    ],
)
def test_xdc_finds_every_first_stage_and_no_other(
    top: str, generics: flow.Generics, first_stages: int
) -> None:
    """Vivado's names are VHDL's: looked up in the netlist, flattened, of GHDL and Yosys."""
    verilog = flow.netlist(top, generics, "sources.txt", "bench_sources.txt")
    found = [
        (name, bit)
        for name, width in _registers(top, verilog).items()
        for bit in range(width)
        if (
            re.search(r"(interrupt|acknowledgement|edges)\.seen$", name)
            and (width, bit) in ((3, 0), (4, 0))
        )  # one bit wide: no ASYNC_REG
        or re.search(r"\.row_n1_kept$", name)
    ]
    assert len(found) == first_stages, found


NO_SHIFT_REGISTERS = {
    "shreg_extract": "no",
    "syn_srlstyle": "registers",
    "altera_attribute": "-name AUTO_SHIFT_REGISTER_RECOGNITION OFF",
}


def test_no_tool_makes_a_shift_register_of_a_synchroniser() -> None:
    """Each that has ASYNC_REG, which is Vivado's alone, has what other tools want as well."""
    found = 0
    for source in listed(*ALL):
        text = source.read_text()
        for name in re.findall(r"attribute async_reg of (\w+) : signal", text):
            found += 1
            for attribute, value in NO_SHIFT_REGISTERS.items():
                assert f'attribute {attribute} of {name} : signal is "{value}";' in text, source
    assert found >= 2


def _registers(top: str, verilog: str) -> dict[str, int]:
    """Names of what flip-flops keep, with their widths."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "netlist.v", Path(folder) / "netlist.json"
        source.write_text(verilog)
        script = f"read_verilog {source}; hierarchy -top {top}; proc; flatten; clean"
        flow.run("yosys", "-q", "-p", f"{script}; write_json {result}")
        module = json.loads(result.read_text())["modules"][top]
    kept = {
        tuple(cell["connections"]["Q"])
        for cell in module["cells"].values()
        if cell["type"] in ("$dff", "$sdff", "$adff")
    }
    return {
        name: len(net["bits"])
        for name, net in module["netnames"].items()
        if tuple(net["bits"]) in kept
    }


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
    assert f"input_edge:{instance}|seen[0]" in script("latencies_ip_asynchronous.sdc")
