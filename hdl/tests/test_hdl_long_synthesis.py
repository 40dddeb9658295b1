"""Size of the published configuration, and no latch anywhere."""

import re
from pathlib import Path
from typing import Any

import pytest

from simulation.vhdl_sources import ALL, listed
from synthesis import flow, measure
from synthesis.measure import VARIANTS

pytestmark = pytest.mark.proofs

BY_NAME = {variant.name: variant for variant in VARIANTS}


def recorded(name: str) -> dict[str, Any]:
    """The recorded figures of a variant; skips where other tools would count differently."""
    record = measure.recorded()
    if record["tools"] != flow.versions():
        pytest.skip(f"recorded with {record['tools']}, these are {flow.versions()}")
    row: dict[str, Any] = record["variants"][name]
    return row


def expected(name: str) -> flow.Size:
    row = recorded(name)
    return flow.Size(**{field: row[field] for field in flow.Size.__dataclass_fields__})


def size(name: str) -> flow.Size:
    return flow.size(BY_NAME[name].top, BY_NAME[name].netlist())


def test_published_configuration_keeps_its_bars_and_its_recorded_size() -> None:
    result = size("published")
    assert result.flip_flops <= measure.MOST_FLIP_FLOPS
    assert result.logic_cells <= measure.MOST_LOGIC_CELLS
    assert result.block_rams == measure.MOST_BLOCK_RAMS
    assert result.latches == 0
    assert result == expected("published")


def test_core_keeps_its_bar_and_its_recorded_size() -> None:
    result = size("measuring core alone")
    assert result.flip_flops <= measure.MOST_CORE_FLIP_FLOPS
    assert result.block_rams == measure.MOST_BLOCK_RAMS
    assert result.latches == 0
    assert result == expected("measuring core alone")


# One of each part; the others were counted when they were recorded.
CHECKED_FOR_LATCHES = (
    *("measuring core alone", "published, 2 synchroniser stages", "policy restart"),
    *("every addition", "every addition, 48 bit, policy queue of 16", "histogram, log-linear"),
    *("random_data_generator", "latency_bench, published"),
    *("latencies_ip_channels, 2 channels", "stream_ring_writer"),
)


def inferred_latches(top: str, verilog: str, directory: Path) -> int:
    """How many latches Yosys infers from a netlist, before it maps anything."""
    source = directory / "netlist.v"
    source.write_text(verilog)
    log = flow.run("yosys", "-p", f"read_verilog {source}; hierarchy -top {top}; proc; stat")
    cells = sum(map(int, re.findall(r"\$(?:a?dlatch|dlatchsr|sr) +(\d+)", log)))
    return max(cells, log.count("Latch inferred"))


@pytest.mark.parametrize("name", CHECKED_FOR_LATCHES)
def test_no_variant_has_a_latch(name: str, tmp_path: Path) -> None:
    variant = BY_NAME[name]
    assert inferred_latches(variant.top, variant.netlist(), tmp_path) == 0


def test_a_latch_is_noticed(tmp_path: Path) -> None:
    """What GHDL makes of a `case` whose last branch it lost."""
    verilog = """
        module top(input [1:0] choice, input a, output reg q);
            always @* case (choice) 2'd0: q <= a; 2'd1: q <= ~a; endcase
        endmodule
    """
    assert inferred_latches("top", verilog, tmp_path) == 1
    assert flow.size("top", verilog).latches == 1


def test_recorded_variants_are_those_that_are_defined_and_within_their_bars() -> None:
    rows = measure.recorded()["variants"]
    assert list(rows) == list(BY_NAME)
    for name, row in rows.items():
        assert (row["top"], row["generics"]) == (BY_NAME[name].top, dict(BY_NAME[name].generics))
        assert row["latches"] == 0
        placed = row["fastest_mhz"]
        assert len(placed) == BY_NAME[name].placed >= 1
        assert all(each >= measure.LEAST_MHZ_OF_ALL for each in placed), name
    assert min(rows["published"]["fastest_mhz"]) >= measure.LEAST_MHZ


@pytest.mark.parametrize("name", BY_NAME)
def test_recorded_figures_are_of_the_vhdl_as_it_is(name: str) -> None:
    """Else measure it anew: `make -C hdl synthesis`."""
    assert recorded(name)["netlist"] == measure.digest(BY_NAME[name].netlist())


def test_the_documentation_shows_the_record() -> None:
    assert measure.PAGE.read_text() == measure.page(measure.recorded())


def test_counts_are_those_that_yosys_prints() -> None:
    statistics = """
     CARRY4                         33
     FDRE                           67
     FDSE                           17
     LDCE                            2
     LUT2                           58
     LUT6                            4
     RAM32M                          3
     RAMB18E2                        3
     RAMB36E2                        1
     SRL16E                          5

   Estimated number of LCs:         38
"""
    assert flow.counted(statistics) == flow.Size(84, 38, 62, 2.5, 8, 0, 2)
    with pytest.raises(flow.ToolError, match="no cells"):
        flow.counted("ERROR: nothing")


def test_no_source_has_a_branch_that_ghdl_would_lose() -> None:
    for source in listed(*ALL):
        assert not re.search(r"when\s+others\s*=>", source.read_text(), re.IGNORECASE), source
