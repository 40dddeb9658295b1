"""Runs cocotb tests on the design under GHDL.

GHDL analyses once for each state of the sources; generics are given when a simulation starts, so
every configuration shares that analysis. All output is below build/hdl/verification.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import cocotb_tools.config
import find_libpython

from simulation.vhdl_sources import ALL, HDL, MEASURING, listed
from verification.latencies_ip import coverage
from verification.latencies_ip.bench import as_environment
from verification.model.configuration import Configuration
from verification.random_parts import bins

BUILD = HDL.parent / "build/hdl/verification"
SIMULATION_SECONDS = 240
HAVE_THOSE_OF_THE_IP = ("latencies_ip", "latencies_ip_channels")


class ToolError(Exception):
    """A tool did not accept its input; the text is its output."""


@dataclass(frozen=True)
class Result:
    """What one simulation said.

    Attributes:
        passed: Names of tests that passed.
        failed: Names of tests that failed.
        log: Everything that the simulator wrote.
    """

    passed: list[str]
    failed: list[str]
    log: str


def sources(with_bench: bool = False) -> list[Path]:
    """The VHDL files in compile order."""
    return listed(*ALL) if with_bench else listed(MEASURING)


def command(*arguments: object, cwd: Path, seconds: int = 120) -> str:
    """Run a tool; its standard output, or `ToolError`."""
    done = subprocess.run(
        [str(argument) for argument in arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise ToolError(f"{arguments}\n{done.stdout}{done.stderr}")
    return done.stdout


def analysed(files: Sequence[Path]) -> Path:
    """A directory in which GHDL has analysed these files into library work."""
    state = hashlib.sha256()
    for file in files:
        state.update(str(file).encode() + b"\0" + file.read_bytes())
    place = BUILD / "analysed" / state.hexdigest()[:16]
    if not place.exists():
        making = place.with_name(f"{place.name}.{os.getpid()}")
        making.mkdir(parents=True)
        command("ghdl", "-a", "--std=08", *files, cwd=making)
        try:
            making.rename(place)
        except OSError:  # another process was faster
            shutil.rmtree(making)
    return place


def given(top: str, ip: Configuration, generics: Mapping[str, str]) -> list[str]:
    """GHDL's options for an entity: its own generics, and those of `ip` where it has them."""
    options = ip.generics() if top in HAVE_THOSE_OF_THE_IP else []
    names = {f"-g{name}" for name in generics}
    kept = [each for each in options if each.partition("=")[0] not in names]
    return [*kept, *(f"-g{name}={value}" for name, value in generics.items())]


def simulate(
    module: str,
    ip: Configuration,
    *,
    name: str,
    tests: str = "",
    work: Path | None = None,
    top: str = "latencies_ip",
    generics: Mapping[str, str] | None = None,
    stop_at_failure: bool = False,
    longest_ns: int = 0,
    program: Path | None = None,
) -> Result:
    """Run the tests of one cocotb module on one configuration.

    Args:
        module: The module with the tests.
        ip: The generics of latencies_ip.
        name: Of the run's directory, and of its coverage file.
        tests: Regular expression of the tests to run; empty: all.
        work: Where the design is analysed; by default the sources as they are.
        top: The entity to simulate.
        generics: Further ones, by their names in the VHDL, of an entity that is not latencies_ip.
        stop_at_failure: Leave out the tests behind the first that fails.
        longest_ns: Of simulated time, after which a test that still runs has failed; the simulator
            is then held to 30 s of CPU, too. 0: no end.
        program: That GHDL has made of the entity, instead of what is analysed in `work`.
    """
    place = BUILD / "runs" / name
    place.mkdir(parents=True, exist_ok=True)
    work = work or (program.parent if program else analysed(sources()))
    entry = cocotb_tools.config.lib_entry("vpi", "ghdl")
    python = [find_libpython.find_libpython() or "", cocotb_tools.config.pygpi_entry_point()]
    options = given(top, ip, generics or {})
    environment = {
        **os.environ,
        **as_environment(ip),
        "LATENZ_GENERICS": " ".join(option[2:] for option in options),
        "COCOTB_MAX_FAILURES": str(int(stop_at_failure)),
        "GPI_USERS": ";".join(python),
        "PYGPI_PYTHON_BIN": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(HDL), str(HDL / "simulation"), *sys.path]),
        "COCOTB_TEST_MODULES": module,
        "COCOTB_TEST_FILTER": tests,
        "COCOTB_TOPLEVEL": top,
        "TOPLEVEL_LANG": "vhdl",
        "COCOTB_RANDOM_SEED": "7",
        "COCOTB_ANSI_OUTPUT": "0",
        "COCOTB_TRUST_INERTIAL_WRITES": "1",
        "COCOTB_RESOLVE_X": "zeros",  # a word of a memory that nobody wrote
        # cocotb starts pytest's rewriting of asserts, and that every plug-in: seconds
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "COCOTB_RESULTS_FILE": str(place / "results.xml"),
        coverage.FILE: str(place / "coverage.json"),
        bins.FILE: str(place / "bins.json"),
    }
    (place / "results.xml").unlink(missing_ok=True)
    limit = ["prlimit", "--cpu=30"] if longest_ns else []
    interpreted = ["ghdl", "-r", "--std=08", f"--workdir={work}", top]
    arguments = [*limit, *([str(program)] if program else interpreted), *options]
    end = [f"--stop-time={longest_ns}ns"] if longest_ns else []
    done = subprocess.run(
        [*arguments, f"--vpi={entry}", "--ieee-asserts=disable", *end],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=None if longest_ns else SIMULATION_SECONDS,
        check=False,
    )
    log = done.stdout + done.stderr
    (place / "log.txt").write_text(log)
    results = place / "results.xml"
    if done.returncode or not results.exists():
        raise ToolError(log[-4000:])
    ran = [
        test for test in ElementTree.parse(results).iter("testcase") if not test.findall("skipped")
    ]
    wrong = [test for test in ran if test.findall("failure") or test.findall("error")]
    return Result(
        [test.attrib["name"] for test in ran if test not in wrong],
        [test.attrib["name"] for test in wrong],
        log,
    )
