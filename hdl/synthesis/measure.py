"""Measures every variant of our VHDL and writes the table of the documentation.

    python -m synthesis.measure [NAME ...]

Without names all variants, some minutes; with names those alone, the others stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from latenz.errors import BadInput, closest
from latenz.progress import counting
from synthesis import flow

FIGURES = Path(__file__).with_name("variants.json")
PAGE = flow.HDL / "latencies_ip" / "doc" / "synthesis.md"
ADDITIONS = (
    *("identification", "counters", "watchdog", "time_stamp", "snapshot", "histogram"),
    *("stream", "freeze", "self_test"),
)
PUBLISHED: flow.Generics = {"synchroniser_stages_g": 0}
ALL_ADDITIONS: flow.Generics = {**PUBLISHED, **{f"{name}_g": True for name in (*ADDITIONS, "sums")}}

# What the published configuration must not exceed.
MOST_FLIP_FLOPS = 124
MOST_LOGIC_CELLS = 85
MOST_BLOCK_RAMS = 0.5
MOST_CORE_FLIP_FLOPS = 84
LEAST_MHZ = 150.0

# What no configuration must fall below.
LEAST_MHZ_OF_ALL = 100.0


@dataclass(frozen=True)
class Variant:
    """One row of the table: an entity with its generics; placed so many times for its speed."""

    name: str
    top: str = "latencies_ip"
    generics: flow.Generics = field(default_factory=lambda: PUBLISHED)
    placed: int = 1

    def netlist(self) -> str:
        """Its Verilog."""
        lists = ["sources.txt"]
        if not self.top.startswith("latencies_") or self.top == "latencies_ip_channels":
            lists.append("bench_sources.txt")
        return flow.netlist(self.top, self.generics, *lists)


VARIANTS = (
    Variant("measuring core alone", "latencies_core", placed=3),
    Variant("published", placed=3),
    Variant("published, 2 synchroniser stages", generics={"synchroniser_stages_g": 2}),
    Variant("published, 3 synchroniser stages", generics={"synchroniser_stages_g": 3}),
    Variant("32 bit", generics={**PUBLISHED, "latency_width_g": 32}),
    Variant("48 bit", generics={**PUBLISHED, "latency_width_g": 48}),
    Variant("policy restart", generics={**PUBLISHED, "overlap_policy_g": "restart"}),
    Variant("policy queue of 16", generics={**PUBLISHED, "overlap_policy_g": "queue"}, placed=3),
    *(
        Variant(name.replace("_", " "), generics={**PUBLISHED, f"{name}_g": True})
        for name in ADDITIONS
    ),
    Variant(
        "histogram, log-linear",
        generics={**PUBLISHED, "histogram_g": True, "histogram_kind_g": "log-linear"},
    ),
    Variant("snapshot with sums", generics={**PUBLISHED, "snapshot_g": True, "sums_g": True}),
    Variant("every addition", generics=ALL_ADDITIONS),
    Variant(
        "every addition, 48 bit, policy queue of 16",
        generics={**ALL_ADDITIONS, "latency_width_g": 48, "overlap_policy_g": "queue"},
    ),
    Variant("random_data_generator", "random_data_generator"),
    Variant("latency_bench, published", "latency_bench"),
    Variant("latencies_ip_channels, 2 channels", "latencies_ip_channels"),
    Variant("stream_ring_writer", "stream_ring_writer", {}),
)


def digest(verilog: str) -> str:
    """What figures are of: a netlist without its comments, which tell paths and lines."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", verilog)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def measured(variant: Variant) -> dict[str, Any]:
    """The figures of one variant."""
    verilog = variant.netlist()
    figures: dict[str, Any] = asdict(flow.size(variant.top, verilog))
    seeds = range(1, variant.placed + 1)
    figures["fastest_mhz"] = flow.fastest_mhz(variant.top, verilog, seeds)
    return {
        "top": variant.top,
        "generics": dict(variant.generics),
        "netlist": digest(verilog),
        **figures,
    }


def measured_all(variants: Sequence[Variant]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and figures of several variants, two at a time, as they are done."""
    flow.library("sources.txt")  # once, before the threads ask for them
    flow.library("sources.txt", "bench_sources.txt")
    with counting("variants", len(variants), wanted=True) as show, ThreadPoolExecutor(2) as pool:
        for done, (variant, figures) in enumerate(
            zip(variants, pool.map(measured, variants), strict=True), start=1
        ):
            yield variant.name, figures
            show(done)


def page(record: dict[str, Any]) -> str:
    """The documentation's page for a record of all figures."""
    tools = record["tools"]
    rows = record["variants"]
    with_multipliers = any(row["multipliers"] for row in rows.values())
    sizes = ["flip-flops", "logic cells", "LUT cells", "block RAM", "LUT RAM"]
    sizes += ["multipliers"] if with_multipliers else []
    fields = ["flip_flops", "logic_cells", "lookup_tables", "block_rams", "memory_lookup_tables"]
    fields += ["multipliers"] if with_multipliers else []
    area = _table(
        ["variant", *sizes],
        ([name, *(f"{row[key]:g}" for key in fields)] for name, row in rows.items()),
    )
    speed = _table(
        ["variant", "seeds", "slowest, MHz", "fastest, MHz"],
        (
            [name, str(len(row["fastest_mhz"])), *map(str, _ends(row["fastest_mhz"]))]
            for name, row in rows.items()
        ),
    )
    return f"""# Size and speed

Generated by `make -C hdl synthesis` from `hdl/synthesis/variants.json`: edit neither this nor that.

Measured with {tools["ghdl"]} and {tools["yosys"]}, no vendor's tool: estimates, to compare variants
with each other and to notice when one grows. Nothing here was measured on an FPGA.

## Size

`synth_xilinx -family xcup -nosrl` (UltraScale+), flattened; without shift registers in LUTs, which
Yosys would make of three synchroniser stages (Vivado is told not to by ASYNC_REG). Logic cells are
Yosys's estimate of LUTs after packing; it uses CARRY4 and counts no carry chain. Block RAMs are of
36 kbit: 0.5 is one RAMB18. LUT RAM are cells of distributed RAM. A row without a configuration of
its own is the published one (16 bit, 512 latencies, policy drop, no synchroniser) with that change.
No variant has a latch.

{area}

The publication (alonso2024, end of section 5) gives 94 flip-flops, 36 LUTs and 0.5 block RAM for
its Latencies IP. `last`, `max`, `min`, `num`, `alarm_lat`, `alarm` and `we` of its Table 2 and a
counter are 98 flip-flops before any of AXI, so that its figure can only be a measuring core's; our
core has fewer.

Bars that a test keeps: published {MOST_FLIP_FLOPS} flip-flops, {MOST_LOGIC_CELLS} logic cells,
{MOST_BLOCK_RAMS} block RAM, no latch; core {MOST_CORE_FLIP_FLOPS} flip-flops.

## Speed

Placed and routed with nextpnr for a Lattice ECP5-25 of speed grade 6, without pins
(`--out-of-context`), once a seed. Bars that a test keeps: {LEAST_MHZ:g} MHz for the published
configuration, {LEAST_MHZ_OF_ALL:g} MHz for every row. It shows that no path of these is
unreasonably long; it says nothing about another FPGA, and one seed says little about the next.

{speed}
"""


def _ends(figures: Sequence[float]) -> tuple[float, float]:
    return min(figures), max(figures)


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def recorded() -> dict[str, Any]:
    """The record of the last measurement."""
    record: dict[str, Any] = json.loads(FIGURES.read_text())
    return record


def _write(rows: dict[str, Any]) -> None:
    ordered = {variant.name: rows[variant.name] for variant in VARIANTS if variant.name in rows}
    record = {"tools": flow.versions(), "variants": ordered}
    FIGURES.write_text(json.dumps(record, indent=1) + "\n")
    PAGE.write_text(page(record))


def main(names: Sequence[str]) -> int:
    """Measure the named variants, or all; write record and page."""
    known = {variant.name: variant for variant in VARIANTS}
    for name in names:
        if name not in known:
            raise BadInput(f"there is no variant {name!r}", remedy=closest(name, known))
    rows = recorded()["variants"] if names else {}
    for name, figures in measured_all([known[name] for name in names] or VARIANTS):
        rows[name] = figures
        _write(rows)  # at once: an interrupted measurement keeps what it has
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (BadInput, flow.ToolError) as error:
        sys.exit(f"synthesis: {error}")
