"""No output of an AXI interface depends on an input of the same clock cycle (IHI 0022, A3.1.1)."""

import pytest

from synthesis import flow, paths

SMALL: flow.Generics = {"depth_g": 4}
ADDITIONS: flow.Generics = {
    f"{name}_g": True
    for name in (
        *("identification", "counters", "watchdog", "time_stamp", "snapshot", "sums"),
        *("histogram", "stream", "freeze", "self_test"),
    )
}
EVERYTHING: flow.Generics = {**SMALL, **ADDITIONS, "histogram_bins_g": 8}
DESIGNS: dict[str, tuple[str, flow.Generics]] = {
    "published": ("latencies_ip", {**SMALL, "synchroniser_stages_g": 0}),
    "every addition": ("latencies_ip", {**EVERYTHING, "overlap_policy_g": "queue"}),
    "channels": ("latencies_ip_channels", EVERYTHING),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_outputs_depend_on_registers_alone(name: str) -> None:
    top, generics = DESIGNS[name]
    verilog = flow.netlist(top, generics, "sources.txt", "bench_sources.txt")
    assert paths.combinational(top, verilog) == {}


def test_only_the_end_of_t2_depends_on_an_input_of_its_cycle() -> None:
    """`data_read` is not an AXI signal: it ends T2 in the cycle in which a word is taken."""
    generics: flow.Generics = {"words_g": 2, "fifo_depth_g": 4}
    verilog = flow.netlist("random_data_generator", generics, "sources.txt", "bench_sources.txt")
    found = paths.combinational("random_data_generator", verilog)
    assert found == {"data_read": {"s_axi_rready"}}


def test_the_ring_writer_passes_ready_on_from_the_memory_to_the_stream_and_nothing_else() -> None:
    """That is how it takes a record every cycle; its page says so."""
    verilog = flow.netlist("stream_ring_writer", {}, "sources.txt", "bench_sources.txt")
    found = paths.combinational("stream_ring_writer", verilog)
    assert found == {"s_axis_tready": {"m_axi_awready", "m_axi_wready"}}


def test_ready_that_follows_valid_is_seen() -> None:
    """As it must not be: through gates, a submodule and a memory that is read at once."""
    verilog = """
        module inner(input valid, input busy, output ready); assign ready = valid & ~busy; endmodule
        module top(input clk, input valid, input [1:0] a, output ready, output reg q, output d);
            reg busy; reg [3:0] words; wire w;
            inner i(.valid(valid), .busy(busy), .ready(w));
            assign ready = w, d = words[a];
            always @(posedge clk) begin busy <= w; q <= valid; words[a] <= valid; end
        endmodule
    """
    assert paths.combinational("top", verilog) == {"ready": {"valid"}, "d": {"a"}}
