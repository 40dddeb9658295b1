"""Proves the properties beside this file on the netlists of our VHDL: `python -m formal.prove`.

Three ways, each by yosys-smtbmc and z3: no counterexample within some cycles of power-up (bounded);
none ever, by k-induction; and for each `cover` a trace that reaches it, so that no property holds
only because nothing happens. One property is false on purpose, and must be refuted.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from latenz.progress import counting
from simulation.vhdl_sources import ALL, MEASURING
from synthesis import flow

HERE = Path(__file__).resolve().parent
INDUCTION_STEPS = 3

SMALL_CORE: flow.Generics = {
    "synchroniser_stages_g": 0,
    "latency_width_g": 3,
    "num_width_g": 3,
    "depth_g": 4,
    "queue_depth_g": 2,
}
SMALL_MACROS = ("WIDTH=3", "NUM_WIDTH=3", "INDEX_BITS=2", "SMALL")
WIDE_CORE: flow.Generics = {"depth_g": 4, "synchroniser_stages_g": 0}
WIDE_MACROS = ("WIDTH=16", "NUM_WIDTH=16", "INDEX_BITS=2")
SMALL_IP: flow.Generics = {"depth_g": 4, "queue_depth_g": 2, "synchroniser_stages_g": 0}
ADDITIONS: flow.Generics = {
    f"{name}_g": True
    for name in (
        *("identification", "counters", "watchdog", "time_stamp", "snapshot", "sums"),
        *("histogram", "stream", "freeze", "self_test"),
    )
}


@dataclass(frozen=True)
class Proof:
    """One design, one set of properties.

    Attributes:
        name: What is proved, for the table.
        top: Entity that is proved.
        generics: Of this entity.
        properties: Top module of the properties.
        files: Where the properties are, beside this file.
        macros: What they are read with.
        bounded: Cycles from power-up within which there must be no counterexample; at least the
            steps of the induction.
        covered: Cycles within which every cover must be reached.
        refuted: The property that must fail; none normally.
        lists: Of the sources that the entity is made of.
    """

    name: str
    top: str
    generics: flow.Generics
    properties: str
    files: tuple[str, ...]
    macros: tuple[str, ...] = ()
    bounded: int = 20
    covered: int = 20
    refuted: str | None = None
    lists: tuple[str, ...] = (MEASURING,)


def _core(
    name: str,
    policy: str,
    generics: flow.Generics,
    macros: Sequence[str],
    *,
    bounded: int = Proof.bounded,
    covered: int = Proof.covered,
    refuted: str | None = None,
) -> Proof:
    given = {*(macro.split("=")[0] for macro in macros)}
    defaults = [macro for macro in ("STAGES=0", "CAPACITY=1") if macro.split("=")[0] not in given]
    return Proof(
        name=name,
        top="latencies_core",
        generics={**generics, "overlap_policy_g": policy},
        properties="core_properties",
        files=("core_properties.sv",),
        macros=(*macros, *defaults, policy.upper()),
        bounded=bounded,
        covered=covered,
        refuted=refuted,
    )


def _ip(name: str, policy: str) -> Proof:
    return Proof(
        name=name,
        top="latencies_ip",
        generics={**SMALL_IP, "overlap_policy_g": policy},
        properties="ip_properties",
        files=("axi_lite_rules.sv", "ip_properties.sv"),
        macros=(policy.upper(),),
        bounded=6,
        covered=12,
    )


PROOFS = (
    _core("core, 3 bit, drop", "drop", SMALL_CORE, SMALL_MACROS),
    _core("core, 3 bit, restart", "restart", SMALL_CORE, SMALL_MACROS),
    _core("core, 3 bit, queue", "queue", SMALL_CORE, (*SMALL_MACROS, "CAPACITY=2"), bounded=7),
    _core("core, 16 bit, drop", "drop", WIDE_CORE, WIDE_MACROS, bounded=4, covered=10),
    _core(
        "core, 16 bit, restart, 2 stages",
        "restart",
        {**WIDE_CORE, "synchroniser_stages_g": 2},
        (*WIDE_MACROS, "STAGES=2", "SYNCHRONISED"),
        bounded=4,
        covered=12,
    ),
    _core(
        "core, 16 bit, queue, 3 stages",
        "queue",
        {**WIDE_CORE, "synchroniser_stages_g": 3, "queue_depth_g": 2},
        (*WIDE_MACROS, "STAGES=3", "SYNCHRONISED", "CAPACITY=2"),
        bounded=4,
        covered=13,
    ),
    _core(
        "core, 48 bit, restart",
        "restart",
        {**WIDE_CORE, "latency_width_g": 48, "num_width_g": 32},
        ("WIDTH=48", "NUM_WIDTH=32", "INDEX_BITS=2"),
        bounded=4,
        covered=10,
    ),
    _ip("whole, published", "drop"),
    _ip("whole, restart", "restart"),
    _ip("whole, queue", "queue"),
    Proof(
        name="whole, every addition: AXI",
        top="latencies_ip",
        generics={**SMALL_IP, **ADDITIONS, "histogram_bins_g": 8},
        properties="extended_properties",
        files=("axi_lite_rules.sv", "extended_properties.sv"),
        bounded=4,
        covered=17,
    ),
    Proof(
        name="event counter, 32 bit",
        top="event_counter",
        generics={},
        properties="event_counter_properties",
        files=("event_counter_properties.sv",),
        bounded=6,
        covered=8,
    ),
    Proof(
        name="stream merger, 3 inputs",
        top="stream_merger",
        generics={"inputs_g": 3},
        properties="stream_merger_properties",
        files=("stream_merger_properties.sv",),
        bounded=8,
        covered=10,
        lists=ALL,
    ),
    Proof(
        name="selector, 3 channels",
        top="axi_lite_selector",
        generics={"channels_g": 3, "window_bits_g": 4},
        properties="axi_lite_selector_properties",
        files=("axi_lite_rules.sv", "axi_lite_selector_properties.sv"),
        bounded=6,
        covered=10,
        lists=ALL,
    ),
    Proof(
        name="ring writer, any ring",
        top="ring_writer",
        generics={},
        properties="ring_writer_properties",
        files=("ring_writer_properties.sv",),
        bounded=6,
        covered=14,
        lists=ALL,
    ),
    _core(
        "a planted falsehood",
        "drop",
        SMALL_CORE,
        (*SMALL_MACROS, "PLANTED"),
        bounded=12,
        refuted="a_planted",
    ),
)


@dataclass
class Result:
    """How a proof went; `failures` is empty when all is proved and reached."""

    proof: Proof
    properties: int = 0
    covers: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


def prove(proof: Proof) -> Result:
    """Run bounded check, induction and covers of one proof, or refute what is false."""
    begun = time.monotonic()
    result = Result(proof)
    with tempfile.TemporaryDirectory() as directory:
        model = Path(directory) / "model.smt2"
        _write_model(proof, model)
        text = model.read_text()
        result.properties = len(re.findall(r"^; yosys-smt2-assert ", text, re.MULTILINE))
        result.covers = len(re.findall(r"^; yosys-smt2-cover ", text, re.MULTILINE))
        if not result.properties:
            result.failures.append("there is nothing to prove")
        elif proof.refuted:
            result.failures += _refute(proof, model)
        else:
            steps = [f"-t {proof.bounded}", f"-i -t {INDUCTION_STEPS}", f"-c -t {proof.covered}"]
            result.failures += [line for options in steps for line in _checked(model, options)]
    result.seconds = time.monotonic() - begun
    return result


def _write_model(proof: Proof, model: Path) -> None:
    netlist = model.with_name("netlist.v")
    netlist.write_text(flow.netlist(proof.top, proof.generics, *proof.lists))
    files = " ".join(str(HERE / name) for name in proof.files)
    macros = " ".join(f"-D{macro}" for macro in proof.macros)
    # Memories become registers before modules are flattened: properties name their words.
    script = (
        f"read_verilog -formal -sv {macros} {files}; read_verilog {netlist}; "
        f"hierarchy -check -top {proof.properties}; proc; memory -nordff; flatten; opt; "
        f"async2sync; dffunmap; opt_clean; check -assert; write_smt2 -wires {model}"
    )
    flow.run("yosys", "-q", "-p", script)


def _solve(model: Path, options: str) -> str:
    tool = "yosys-smtbmc"
    return flow.run(tool, "--noprogress", "-s", "z3", *options.split(), model, refusal_is=1)


def _checked(model: Path, options: str) -> list[str]:
    log = _solve(model, options)
    if "Status: PASSED" in log:
        return []
    reasons = re.findall(r"(Assert failed in .*|Unreached cover .*|.*induction failed.*)", log)
    return [f"{options}: {reason.strip()}" for reason in reasons or log.splitlines()[-3:]]


def _refute(proof: Proof, model: Path) -> list[str]:
    log = _solve(model, f"-t {proof.bounded}")
    found = re.search(rf"Assert failed in .*: {proof.refuted}\b", log)
    return [] if found and "Status: FAILED" in log else [f"{proof.refuted} was not refuted"]


def prove_all(proofs: Sequence[Proof] = PROOFS, at_once: int = 2) -> list[Result]:
    """Run proofs, some of them at once; their results in the same order."""
    for lists in {proof.lists for proof in proofs}:
        flow.library(*lists)  # once, before the threads ask for it
    done = 0
    with (
        counting("proofs", len(proofs), wanted=True) as show,
        ThreadPoolExecutor(at_once) as pool,
    ):
        results = []
        for result in pool.map(prove, proofs):
            results.append(result)
            done += 1
            show(done)
    return results


def main() -> int:
    """Prove everything, print a table; 1 when something is not proved."""
    results = prove_all()
    print(f"{'design':34} {'properties':>10} {'covers':>7} {'time':>7}  result")
    for result in results:
        outcome = "refuted, as it must be" if result.proof.refuted else "proved by induction"
        print(
            f"{result.proof.name:34} {result.properties:>10} {result.covers:>7}"
            f" {result.seconds:>5.1f} s  {'FAILED' if result.failures else outcome}"
        )
        for failure in result.failures:
            print(f"    {failure}")
    return int(any(result.failures for result in results))


if __name__ == "__main__":
    sys.exit(main())
