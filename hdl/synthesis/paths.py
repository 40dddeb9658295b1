"""Combinational paths of a netlist: which inputs an output depends on within the same clock cycle.

AXI forbids them all (AMBA AXI, IHI 0022, A3.1.1): "there must be no combinatorial paths between
input and output signals". No simulation nor clocked property sees them: they are a question of
structure, which is asked here of the netlist.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synthesis import flow

_SEQUENTIAL = re.compile(r"\$(s|a|al)?dff|\$dffsr|\$mem")


def combinational(top: str, verilog: str) -> dict[str, set[str]]:
    """Inputs that each output depends on without a flip-flop between; no output that has none."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "netlist.v", Path(folder) / "netlist.json"
        source.write_text(verilog)
        script = f"read_verilog {source}; hierarchy -top {top}; proc; flatten; opt; memory; opt"
        flow.run("yosys", "-q", "-p", f"{script}; write_json {result}")
        module = json.loads(result.read_text())["modules"][top]
    drivers = dict(_drivers(module))
    inputs = {
        bit: name
        for name, port in module["ports"].items()
        if port["direction"] == "input"
        for bit in port["bits"]
    }
    found = {
        name: {inputs[bit] for bit in _cone(port["bits"], drivers) if bit in inputs}
        for name, port in module["ports"].items()
        if port["direction"] == "output"
    }
    return {name: reached for name, reached in found.items() if reached}


def _drivers(module: dict[str, Any]) -> Iterator[tuple[int, list[int]]]:
    """Each net that a combinational cell drives, with the nets that this cell reads."""
    for cell in module["cells"].values():
        if _SEQUENTIAL.match(cell["type"]):
            continue
        ways = cell["port_directions"]
        read = [
            bit
            for port, bits in cell["connections"].items()
            if ways[port] == "input"
            for bit in bits
        ]
        for port, bits in cell["connections"].items():
            if ways[port] == "output":
                yield from ((bit, read) for bit in bits)


def _cone(bits: list[int], drivers: dict[int, list[int]]) -> set[int]:
    """Every net that these depend on, themselves included."""
    seen: set[int] = set()
    left = list(bits)
    while left:
        bit = left.pop()
        if bit not in seen:
            seen.add(bit)
            left += drivers.get(bit, ())
    return seen
