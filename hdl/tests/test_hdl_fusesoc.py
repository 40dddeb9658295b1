"""FuseSoC itself reads our core files, and its tools take what they name."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.vhdl_sources import ALL, HDL, MEASURING, listed

FUSESOC = Path(sys.executable).with_name("fusesoc")
CORES = {"latenz:fpga:latencies_ip:0.1.0": (MEASURING,), "latenz:fpga:benches:0.1.0": ALL}


def fusesoc(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [FUSESOC, "--cores-root", HDL, *arguments],
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},  # it keeps settings there
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_it_finds_every_core(tmp_path: Path) -> None:
    told = fusesoc(tmp_path, "core", "list")
    assert set(re.findall(r"latenz:\S+", told)) == set(CORES)


@pytest.mark.parametrize("core", CORES)
def test_ghdl_takes_all_sources_in_their_order(core: str, tmp_path: Path) -> None:
    told = fusesoc(tmp_path, "run", "--setup", "--target", "sim", core)
    assert "WARNING" not in told
    (listing,) = tmp_path.glob("build/*/sim/*.eda.yml")
    names = re.findall(r"name: (?:src/[^/]+|.*?/hdl)/(\S+\.vhd)$", listing.read_text(), re.M)
    assert names == [str(file.relative_to(HDL)) for file in listed(*CORES[core])]
    subprocess.run(["make", "analyze"], cwd=listing.parent, check=True, timeout=600)
    (library,) = listing.parent.glob("default_library/*.cf")
    assert (
        f"entity {'latency_bench' if 'bench' in core else 'latencies_ip'} " in library.read_text()
    )


def test_vivado_gets_the_constraints_and_their_scope(tmp_path: Path) -> None:
    """The project that FuseSoC writes for Vivado; nobody runs that here."""
    core = "latenz:fpga:latencies_ip:0.1.0"
    fusesoc(tmp_path, "run", "--setup", "--target", "default", "--tool", "vivado", core)
    (script,) = tmp_path.glob("build/*/default-vivado/*_0.1.0.tcl")
    text = script.read_text()
    constraints = text.index("latencies_ip_asynchronous.xdc")
    assert text.rindex("read_xdc", 0, constraints) > 0
    assert text.index("constraints/scoped.tcl") > constraints
