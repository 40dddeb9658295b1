"""Runs the room's cocotb tests on the netlist, in Icarus Verilog, instead of on the VHDL."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

from cocotb_tools.runner import get_runner

from synthesis import flow
from verification.latencies_ip.bench import as_environment
from verification.model.configuration import Configuration


def generics(ip: Configuration) -> flow.Generics:
    """The generics of a configuration, as `netlist` takes them."""
    options = (option.removeprefix("-g").partition("=") for option in ip.generics())
    return {name: value for name, _, value in options}


def simulate(module: str, ip: Configuration, name: str, tests: str = "") -> tuple[list[str], str]:
    """Run the tests of one cocotb module on the netlist of one configuration.

    Returns:
        The names of the tests that ran and passed, and what failed, with its reason; empty: none.
    """
    place = flow.BUILD / "netlists" / name
    place.mkdir(parents=True, exist_ok=True)
    source = place / "latencies_ip.v"
    source.write_text(flow.netlist("latencies_ip", generics(ip)))
    runner = get_runner("icarus")
    runner.build(
        sources=[source],
        hdl_toplevel="latencies_ip",
        build_dir=place,
        build_args=["-g2012"],
        timescale=("1ns", "1ps"),
        always=True,
        log_file=place / "build.txt",
    )
    results = runner.test(
        hdl_toplevel="latencies_ip",
        test_module=f"verification.latencies_ip.{module}",
        test_filter=tests or None,
        build_dir=place,
        seed=7,
        timescale=("1ns", "1ps"),
        extra_env={
            **as_environment(ip),
            "PYTHONPATH": os.pathsep.join([str(flow.HDL), os.environ.get("PYTHONPATH", "")]),
            "COCOTB_ANSI_OUTPUT": "0",
            "COCOTB_RESOLVE_X": "zeros",
        },
        results_xml=str(place / f"{module}.xml"),
        log_file=place / f"{module}.txt",
    )
    return _outcome(Path(results))


def _outcome(results: Path) -> tuple[list[str], str]:
    passed, failed = [], []
    for case in ElementTree.parse(results).iter("testcase"):  # noqa: S314 - cocotb wrote it here
        wrong = [*case.findall("failure"), *case.findall("error")]
        if wrong:
            failed.append(f"{case.attrib['name']}: {wrong[0].attrib}")
        elif not case.findall("skipped"):
            passed.append(case.attrib["name"])
    return passed, "\n".join(failed)
