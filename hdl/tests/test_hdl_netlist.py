"""The netlist that GHDL makes: whose it is, and what its Verilog back end gets wrong."""

import re
from dataclasses import replace

from simulation.vhdl_sources import ALL, listed
from synthesis import flow
from synthesis.resimulate import generics
from verification.model.configuration import FULL, PUBLISHED, Configuration


def test_the_defaults_are_the_published_configuration_with_synchronisers() -> None:
    """The netlists are equal: without generics, and with two stages beyond the published one."""
    default = flow.netlist("latencies_ip")
    assert default == flow.netlist("latencies_ip", generics(Configuration()))
    assert replace(PUBLISHED, synchroniser_stages=2) == Configuration()
    assert default != flow.netlist("latencies_ip", generics(PUBLISHED))
    wider = flow.netlist("latencies_ip", generics(replace(PUBLISHED, latency_width=32)))
    assert wider != flow.netlist("latencies_ip", generics(FULL))


def test_no_input_is_without_synchronisers_unless_somebody_says_so() -> None:
    """An interrupt seldom has the clock of the logic: every entity's default is two flip-flops."""
    defaults = {
        source.stem: found[1]
        for source in listed(*ALL)
        if (
            found := re.search(
                r"\bs(?:ynchroniser_s)?tages_g *: natural *:= (\d)", source.read_text()
            )
        )
    }
    assert set(defaults.values()) == {"2"}
    tops = {"latencies_ip", "latency_bench", "latency_stream", "latencies_ip_channels"}
    assert defaults.keys() > {*tops, "random_data_generator", "input_edge", "synchroniser"}


def test_all_ones_of_48_bits_are_no_text() -> None:
    """What GHDL writes as a string of 48 characters is a constant of 48 bits."""
    verilog = flow.netlist("latencies_ip", generics(replace(PUBLISHED, latency_width=48)))
    assert f"48'b{48 * '1'}" in verilog
    assert f'"{48 * "1"}"' not in verilog
