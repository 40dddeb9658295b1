# SPDX-License-Identifier: Apache-2.0
"""The designs that can be simulated: their sources, generics, windows, and how they are built."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cocotb_tools.runner import get_runner
from vhdl_sources import ALL, HDL, listed

from latenz.errors import BadInput, closest, shown

BUILDS = HDL.parent / "build/hdl/simulation"
GHDL = ["--std=08"]
ONE_CLOCK = {"synchroniser_stages_g": "0"}
"""Of a simulated board, unless others are asked for: its signals all have the one clock."""
_WHY = re.compile(
    r"(?:assertion failure|bound check failure)\): (.*)|:error: (.*)|Error: (.*)"
    r"|ghdl-\w+: (.*)|vhd:\d+:\d+: (.*)"
)
_GENERIC = re.compile(r"^\s*(\w+_g)\s*:\s*(\w+)[^:\n]*:=\s*([^;\s]+)", re.MULTILINE)


@dataclass(frozen=True)
class Instance:
    """One Latencies IP in a design: name, ports' prefix, and what it measures."""

    name: str
    prefix: str
    from_event: str
    to_event: str


@dataclass(frozen=True)
class Design:
    """A top entity: its source and the Latencies IPs in it; window 2 i is the S00 of number i.

    `generator` and `ring` are the ports' prefixes of what has the next windows: a generator of
    random words; a stream_ring_writer, whose memory is the window behind it.
    """

    source: Path
    instances: tuple[Instance, ...]
    generator: str | None = None
    ring: str | None = None


DESIGNS = {
    "latency_bench": Design(
        HDL / "latency_bench/rtl/latency_bench.vhd",
        (
            Instance("T1", "t1_", "ps_pl_irq rises", "pl_ps_irq rises"),
            Instance("T2", "t2_", "pl_ps_irq rises", "a word of the FIFO is read"),
        ),
        "generator_axi",
    ),
    "latencies_ip": Design(
        HDL / "latencies_ip/rtl/latencies_ip.vhd",
        (Instance("latencies_ip", "", "irq_in rises", "ack_in rises"),),
    ),
    "latency_stream": Design(
        HDL / "latency_stream/rtl/latency_stream.vhd",
        (Instance("latency_stream", "", "irq_in rises", "ack_in rises"),),
        ring="ring_axi",
    ),
}


def checked_generics(design: Design, given: list[str]) -> dict[str, str]:
    """Return generics, given as NAME=VALUE each, as GHDL takes them.

    Raises:
        BadInput: The design has no such generic, or its type has no such value.
    """
    known = _generics(design)
    values = dict(ONE_CLOCK)
    for each in given:
        name, _, value = each.partition("=")
        if name not in known:
            raise BadInput("there is no such generic", shown(name), closest(name, known))
        values[name] = _literal(name, known[name][0], value)
    return values


def all_generics(design: Design, values: dict[str, str]) -> dict[str, str]:
    """Return the value of every generic of a design: as given, or its default."""
    defaults = {name: default for name, (_, default) in _generics(design).items()}
    return defaults | values


def _generics(design: Design) -> dict[str, tuple[str, str]]:
    """Return type and default of each generic of a design."""
    text = design.source.read_text()
    entity = text[text.index("\nentity ") : text.index("    port (")]
    return {name: (kind, default) for name, kind, default in _GENERIC.findall(entity)}


def _literal(name: str, kind: str, value: str) -> str:
    wanted = {
        "boolean": ("true or false", r"true|false"),
        "string": ("letters, digits and -", r"[a-z0-9-]{1,32}"),
    }.get(kind, ("a whole number below 2 ** 31", r"[0-9]{1,10}"))
    literal = value.lower() if kind == "boolean" else value
    number_fits = not literal.isdecimal() or kind == "string" or int(literal) < 1 << 31
    if not (re.fullmatch(wanted[1], literal) and number_fits):
        raise BadInput(f"{shown(value)} is not a value", name, f"wanted: {wanted[0]}")
    return literal


def run(
    top: str, module: str, generics: dict[str, str], folder: Path, environment: dict[str, str]
) -> Path:
    """Run a cocotb module on a design; analyse the sources unless that was done for just these.

    Args:
        top: The entity.
        module: A module that Python finds.
        generics: Of the entity; those not named keep their defaults.
        folder: Takes what the run leaves, `log` among it.
        environment: Variables that the run gets besides.

    Returns:
        The file of results.

    Raises:
        BadInput: The simulator refuses the design, such as its generics.
    """
    if shutil.which("ghdl") is None:
        raise BadInput("is not installed", "ghdl", "run setup/ensure hdl")
    runner = get_runner("ghdl")
    log = folder / "log"
    try:
        return runner.test(
            module,
            top,
            hdl_toplevel_library="work",
            hdl_toplevel_lang="vhdl",
            parameters=generics,
            test_args=[*GHDL, f"--workdir={analysed()}"],
            plusargs=["--ieee-asserts=disable-at-0"],  # before the first inputs
            build_dir=folder,
            log_file=log,
            # cocotb starts pytest's rewriting of asserts, and that every plug-in: seconds
            # a word of a memory that nobody wrote is undefined: here it reads 0
            extra_env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COCOTB_RESOLVE_X": "zeros"}
            | environment,
            results_xml=str(folder / "results.xml"),
        )
    except (RuntimeError, SystemExit):
        raise BadInput(reason(log.read_text("utf-8", "replace")), top) from None


def reason(said: str) -> str:
    """Return why a tool refuses a design, of all that it has said."""
    for line in said.splitlines():
        if found := _WHY.search(line):
            return str(next(filter(None, found.groups())))
    return "the tool failed and did not say why"


def analysed() -> Path:
    """Return the folder of GHDL's library with all sources; generics come when it runs."""
    files = listed(*ALL)
    digest = hashlib.sha256()
    for file in files:
        digest.update(str(file).encode() + file.read_bytes())
    folder = BUILDS / digest.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two started at once analyse once
        done = folder / "done"
        if not done.exists():
            command = ["ghdl", "-a", *GHDL, f"--workdir={folder}", *files]
            said = subprocess.run(command, capture_output=True, text=True, check=False)
            if said.returncode:
                lines = [line for line in said.stderr.splitlines() if ": error: " in line]
                raise BadInput(f"GHDL rejects the sources: {lines or said.stderr}", os.fspath(HDL))
            done.touch()
    return folder
