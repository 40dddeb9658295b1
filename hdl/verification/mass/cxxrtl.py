"""A fast C++ model of the VHDL, and random edges by the million through it.

GHDL synthesises the VHDL to Verilog, yosys makes C++ of that, the C++ compiler a program with the
harness beside this file. Each such program is kept as long as nothing it is made of changes. So
what runs is the synthesised netlist, not the simulator's reading of the source.
"""

import hashlib
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np

from verification.latencies_ip.runner import BUILD, analysed, command, sources
from verification.mass import edges
from verification.model.configuration import POLICIES, PUBLISHED, Configuration
from verification.model.latencies import Latencies
from verification.model.registers import ADDRESS, registers

HERE = Path(__file__).parent
PARTS = [HERE / name for name in ("harness.cpp", "design.cpp", "design.hpp")]
FLAGS = ("-std=c++20", "-O2", "-I/usr/share/yosys/include")
COUNTERS = ("orphans", "overlaps", "missed", "saturations")

# What the mass run goes through; the latter half counts what gave no sample.
CONFIGURATIONS = {
    f"{width}-{policy}-{stages}": replace(
        PUBLISHED,
        latency_width=width,
        overlap_policy=policy,
        synchroniser_stages=stages,
        counters=stages > 0,
        stream=stages == 2,
        time_stamp=stages == 2,
    )
    for width in (16, 32)
    for policy in POLICIES
    for stages in (0, 2, 3)
}


def seed(ip: Configuration) -> int:
    """Of the random edges for a configuration: the same whatever its synchronisers are."""
    return ip.latency_width + POLICIES.index(ip.overlap_policy)


class DifferenceError(AssertionError):
    """The design and the model disagree."""


def _place(kind: str, *state: object) -> Path:
    """The directory for what is made of this, and of nothing else."""
    known = hashlib.sha256(repr((state, FLAGS)).encode())
    for part in PARTS:
        known.update(part.read_bytes())
    return BUILD / kind / known.hexdigest()[:16]


def _compile(made: Path, *arguments: object) -> Path:
    making = made.with_name(f"{made.name}.{os.getpid()}")
    command("g++", *FLAGS, f"-I{HERE}", "-I.", *arguments, "-o", making, cwd=made.parent)
    making.rename(made)
    return made


def _harness() -> Path:
    """The harness without a design, the same for all of them."""
    made = _place("harness") / "harness.o"
    if made.exists():
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    return _compile(made, "-c", PARTS[0])


def program(ip: Configuration) -> Path:
    """The harness with the C++ model of a configuration."""
    place = _place("models", ip, [file.read_bytes() for file in sources()])
    made = place / "harness"
    if made.exists():
        return made
    place.mkdir(parents=True, exist_ok=True)
    verilog = command(
        *("ghdl", "--synth", "--std=08", f"--workdir={analysed(sources())}", "--out=verilog"),
        *(*ip.generics(), "latencies_ip"),
        cwd=place,
    )
    (place / "design.v").write_text(verilog)
    script = "read_verilog design.v; hierarchy -top latencies_ip; proc; flatten; opt -full"
    command("yosys", "-q", "-p", f"{script}; write_cxxrtl -g0 design.h", cwd=place)
    until_ready = ip.histogram_bins + 8 if ip.histogram else 0
    defines = ('-DDESIGN="design.h"', f"-DDEPTH={ip.depth}", f"-DUNTIL_READY={until_ready}")
    return _compile(made, *defines, PARTS[1], _harness())


def _model(ip: Configuration, series: edges.Series) -> Latencies:
    model = Latencies(ip)
    model.alarm_lat = series.alarm_lat
    model.write_we(True)
    ticks, kinds = series.events()
    model.run(ticks.tolist(), kinds.tolist())
    return model


def _read_of(model: Latencies) -> list[int]:
    ip = model.configuration
    further = [getattr(model, name) for name in COUNTERS] if ip.counters else []
    stored = model.latencies()[: ip.depth]
    values = [model.last, model.max, model.min, model.num, int(model.alarm), *further]
    return [*values, len(stored), *stored]


def expected(ip: Configuration, series: edges.Series) -> list[int]:
    """What software must have read after a series."""
    return _read_of(_model(ip, series))


def _check_beats(model: Latencies, beats: list[int]) -> bool:
    """Whether the stream has told every sample; the time stamps count from any moment."""
    wanted = model.beats()
    if len(beats) != len(wanted):
        return False
    low = 2**64 - 1
    offset = (beats[0] - wanted[0]) & low if beats else 0
    return all(
        beat >> 64 == want >> 64 and (want + offset) & low == beat & low
        for beat, want in zip(beats, wanted, strict=True)
    )


def compare(ip: Configuration, run: list[edges.Series], place: Path) -> int:
    """Run the series through the design; how many samples agree, or `DifferenceError`."""
    harness = program(ip)
    place.mkdir(parents=True, exist_ok=True)
    np.concatenate([series.words for series in run]).tofile(place / "edges")
    further = [ADDRESS[name] for name in COUNTERS] if ip.counters else []
    command(harness, "edges", "edges", "read", *further, cwd=place, seconds=600)
    read = np.fromfile(place / "read", np.uint32).tolist()
    at = samples = 0
    for index, series in enumerate(run):
        model = _model(ip, series)
        wanted = _read_of(model)
        got = read[at : at + len(wanted)]
        if got != wanted:
            first = next(i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b)
            raise DifferenceError(
                f"{ip}: series {index}, word {first}: {got[first]}, not {wanted[first]}"
            )
        at += len(wanted)
        words = read[at + 1 : at + 1 + 4 * read[at]]
        at += 1 + len(words)
        beats = [
            words[i] | words[i + 1] << 32 | words[i + 2] << 64 | words[i + 3] << 96
            for i in range(0, len(words), 4)
        ]
        if ip.stream and not _check_beats(model, beats):
            raise DifferenceError(f"{ip}: series {index}: the stream tells something else")
        samples += len(model.starts)
    if at != len(read):
        raise DifferenceError(f"{ip}: {len(read) - at} words too many")
    return samples


def table(ip: Configuration) -> str:
    """What the harness must know to judge random AXI transactions."""
    lines = []
    for register in registers(ip):
        reset = "-" if register.reset is None else register.reset
        lines.append(f"register {register.address} {register.access} {register.mask} {reset}")
    words = {0: ip.depth}
    if ip.latency_width > 32:
        words[1] = ip.depth
    if ip.time_stamp:
        words |= {2: ip.depth, 3: ip.depth}
    if ip.histogram:
        words[4] = ip.histogram_bins
    lines += [f"present {ip.region_bytes * region} {4 * n}" for region, n in words.items()]
    regions = 8 if len(words) > 1 else 1
    lines.append(f"window {max(4096, ip.region_bytes * regions)}")
    return "\n".join(lines) + "\n"


def transactions(ip: Configuration, count: int, seed: int, place: Path) -> tuple[int, int]:
    """So many random AXI transactions; those that ended, of each slave."""
    harness = program(ip)
    place.mkdir(parents=True, exist_ok=True)
    (place / "table").write_text(table(ip))
    arguments = [str(harness), "axi", "table", str(count), str(seed)]
    done = subprocess.run(
        arguments, cwd=place, capture_output=True, text=True, timeout=900, check=False
    )
    if done.returncode:
        raise DifferenceError(f"{ip}: {done.stderr.strip()}")
    samples, registers_done = done.stdout.split()
    return int(samples), int(registers_done)
