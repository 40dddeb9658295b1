"""The netlist that GHDL makes: whose it is, and what its Verilog back end gets wrong."""

from dataclasses import replace

from synthesis import flow
from synthesis.resimulate import generics
from verification.model.configuration import FULL, PUBLISHED


def test_the_published_netlist_is_that_of_the_defaults() -> None:
    """Without generics the entity is the published configuration: their netlists are equal."""
    assert flow.netlist("latencies_ip", generics(PUBLISHED)) == flow.netlist("latencies_ip")
    wider = flow.netlist("latencies_ip", generics(replace(PUBLISHED, latency_width=32)))
    assert wider != flow.netlist("latencies_ip", generics(FULL))


def test_all_ones_of_48_bits_are_no_text() -> None:
    """What GHDL writes as a string of 48 characters is a constant of 48 bits."""
    verilog = flow.netlist("latencies_ip", generics(replace(PUBLISHED, latency_width=48)))
    assert f"48'b{48 * '1'}" in verilog
    assert f'"{48 * "1"}"' not in verilog
