"""The parts around the core, synthesised by themselves: no latch, and memories as memories."""

from pathlib import Path

import pytest

from synthesis import flow

pytestmark = pytest.mark.proofs

LISTS = ("sources.txt", "bench_sources.txt")


@pytest.mark.parametrize(
    ("top", "generics"),
    [
        ("latency_histogram", {"kind_g": "log-linear", "latency_width_g": 48}),
        ("sample_stream", {}),
        ("self_test", {}),
        ("stream_ring_writer", {}),
        ("axi_lite_selector", {"channels_g": 16}),
        ("stream_merger", {"inputs_g": 16}),
        ("synchroniser", {"width_g": 3, "stages_g": 3}),
        ("latencies_ip_channels", {"channels_g": 3, "chained_g": True, "stream_g": True}),
    ],
)
def test_no_latch(tmp_path: Path, top: str, generics: flow.Generics) -> None:
    source = tmp_path / "netlist.v"
    source.write_text(flow.netlist(top, generics, *LISTS))
    log = flow.run("yosys", "-p", f"read_verilog {source}; hierarchy -check -top {top}; proc; stat")
    assert "Latch inferred" not in log
    assert "$dlatch" not in log
    assert "$dff" in log


def test_histogram_takes_one_block_ram() -> None:
    generics = {"bins_g": 1024}
    size = flow.size("latency_histogram", flow.netlist("latency_histogram", generics, *LISTS))
    assert size.block_rams == 1
    assert size.memory_lookup_tables == 0
    assert size.latches == 0
