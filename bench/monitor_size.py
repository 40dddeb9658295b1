"""Code, data and executed instructions of one monitor decision on the target processors.

`core/include/latenz/monitor.hpp` is compiled for Cortex-A53, Cortex-R5 and the publication's
ARM926EJ-S. QEMU executes grants and denials one instruction at a time and logs each: the counts are
exact for the instruction set, and say nothing about cycles. Beside them stands what beckert2014,
section 6.2, reports for its own monitor.

Run alone: .venv/bin/python bench/monitor_size.py (prints the table of docs/monitor.md)
"""

import itertools
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

PUBLISHED = {
    "source": "beckert2014, section 6.2: ARM926EJ-S, gcc -O1, its own monitor of length 1",
    "code_bytes": 272,
    "data_bytes": 28,
    "instructions": 128,  # with the call of the scheduler
}


@dataclass(frozen=True)
class Target:
    """A processor: how to compile for it and how to emulate it."""

    name: str
    tools: str
    flags: tuple[str, ...]
    emulator: tuple[str, ...]
    leave: str  # instructions that end the program, by Linux's system call


ARM_LEAVE = "mov r7, #1\\n svc 0"
TARGETS = (
    Target(
        "Cortex-A53",
        "aarch64-linux-gnu-",
        ("-mcpu=cortex-a53",),
        ("qemu-aarch64", "-cpu", "cortex-a53"),
        "mov x8, #93\\n svc 0",
    ),
    Target(
        "Cortex-R5, Thumb",
        "arm-none-eabi-",
        ("-mcpu=cortex-r5", "-mthumb"),
        ("qemu-arm", "-cpu", "cortex-r5"),
        ARM_LEAVE,
    ),
    Target(
        "Cortex-R5, ARM",
        "arm-none-eabi-",
        ("-mcpu=cortex-r5", "-marm"),
        ("qemu-arm", "-cpu", "cortex-r5"),
        ARM_LEAVE,
    ),
    Target(
        "ARM926EJ-S",
        "arm-none-eabi-",
        ("-mcpu=arm926ej-s", "-marm"),
        ("qemu-arm", "-cpu", "arm926"),
        ARM_LEAVE,
    ),
)
TOOLS = ("aarch64-linux-gnu-", "arm-none-eabi-")
LEVELS = ("-O1", "-O2", "-Os")
DISTANCES = {1: (100,), 5: (100, 250, 400, 600, 900)}

MONITOR = """
#include "latenz/monitor.hpp"
bool decide(latenz::DistanceMonitor<{length}>& monitor, latenz::Instant at) {{
  return monitor.accept(at);
}}
"""
PROGRAM = """
#include "latenz/monitor.hpp"
using Monitor = latenz::DistanceMonitor<{length}>;
bool decide(Monitor& monitor, latenz::Instant at);
constexpr latenz::Duration distances[] = {{{distances}}};
constinit Monitor monitor(distances);
constexpr long long times[] = {{{times}}};
extern "C" [[noreturn, gnu::used]] void _start() {{
  for (const long long time : times) {{
    decide(monitor, latenz::Instant(time));
  }}
  asm volatile("{leave}");
  __builtin_unreachable();
}}
"""


def output(*command: str | Path) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


def times(distances: tuple[int, ...]) -> list[int]:
    """Return events that are granted and denied in turns.

    Those granted come as early as allowed, and every eighth much later; 1 ns after each comes one
    that is denied. So every order of the monitor's entries occurs.
    """
    granted = [0]
    for n in range(1, 64):
        recent = reversed(granted[-len(distances) :])
        earliest = max(at + d for at, d in zip(recent, distances, strict=False))
        granted.append(earliest + (distances[-1] if n % 8 == 0 else 0))
    return [at + late for at in granted for late in (0, 1)]


def decisions(target: Target, program: Path) -> list[int]:
    """Return how many instructions each call of `decide` took, with what it calls, in order."""
    log = program.with_suffix(".log")
    traced = ("-d", "exec,nochain", "-D", str(log))
    # before version 8.1, and since; each ignores the other's
    step = [f"{name}=1" for name in ("QEMU_SINGLESTEP", "QEMU_ONE_INSN_PER_TB")]
    output("env", *step, *target.emulator, *traced, program)
    trace = re.findall(r"^Trace \d+: \S+ \[\w+/(\w+)/", log.read_text(), re.M)
    symbols = {
        name: (int(address, 16) & ~1, int(size[0], 16) if size else 0)
        for name, _, address, *size in map(
            str.split, output(f"{target.tools}nm", "--format=posix", program).splitlines()
        )
    }
    start, size = symbols["_start"]
    [decide] = (address for name, (address, _) in symbols.items() if "decide" in name)
    calls = itertools.groupby(
        (int(address, 16) for address in trace), key=lambda at: at in range(start, start + size)
    )
    called = [
        list(group) for outside, group in ((not key, group) for key, group in calls) if outside
    ]
    return [len(call) for call in called if call[0] == decide]


def code(target: Target, monitor: Path) -> tuple[int, int]:
    """Return the bytes and the number of instructions of everything `decide` was compiled to."""
    sections = output(f"{target.tools}size", "--format=sysv", monitor)
    bytes_ = sum(int(size) for size in re.findall(r"^\.text\S*\s+(\d+)", sections, re.M))
    listing = output(f"{target.tools}objdump", "-d", monitor)
    lines = re.findall(r"^ +[0-9a-f]+:\t[0-9a-f ]+\t(\S+)", listing, re.M)
    return bytes_, sum(not mnemonic.startswith(".") for mnemonic in lines)


def measure(target: Target, level: str, length: int, folder: Path) -> dict[str, object]:
    distances = DISTANCES[length]
    events = times(distances)
    monitor, rest, program = folder / "monitor.cpp", folder / "rest.cpp", folder / "program"
    monitor.write_text(MONITOR.format(length=length))
    rest.write_text(
        PROGRAM.format(
            length=length,
            distances=", ".join(f"latenz::Duration({each})" for each in distances),
            times=", ".join(map(str, events)),
            leave=target.leave,
        )
    )
    compiler = (f"{target.tools}g++", *target.flags)
    flags = (
        "-std=c++20",
        "-ffreestanding",
        "-fno-exceptions",
        "-fno-rtti",
        f"-I{ROOT}/core/include",
    )
    objects = [source.with_suffix(".o") for source in (monitor, rest)]
    for source, object_file, optimize in zip((monitor, rest), objects, (level, "-Os"), strict=True):
        output(*compiler, *flags, optimize, "-c", source, "-o", object_file)
    output(*compiler, "-nostdlib", "-static", *objects, "-o", program)
    taken = decisions(target, program)
    if len(taken) != len(events):
        raise SystemExit(
            f"{target.name} {level}: {len(taken)} decisions of {len(events)} were seen"
        )
    code_bytes, instructions = code(target, objects[0])
    return {
        "processor": target.name,
        "optimization": level,
        "length": length,
        "code_bytes": code_bytes,
        "data_bytes": data_bytes(target, objects[1]),
        "instructions": instructions,
        "executed_granted": max(taken[0::2]),
        "executed_denied": max(taken[1::2]),
    }


def data_bytes(target: Target, rest: Path) -> int:
    sizes = output(f"{target.tools}nm", "--print-size", "--format=posix", rest)
    [size] = re.findall(r"^monitor \w \w+ (\w+)$", sizes, re.M)
    return int(size, 16)


def run() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            measure(target, level, length, Path(folder))
            for target in TARGETS
            for length in DISTANCES
            for level in LEVELS
        ]
    compilers = [output(f"{tools}g++", "--version").splitlines()[0] for tools in TOOLS]
    emulator = output("qemu-arm", "--version").splitlines()[0]
    return {"compilers": compilers, "emulator": emulator, "published": PUBLISHED, "emulated": rows}


def table(rows: list[dict[str, object]]) -> str:
    """Return the rows as Markdown, those of all optimization levels in one."""
    columns = ("code_bytes", "data_bytes", "executed_granted", "executed_denied")
    lines = [["processor", "l", *columns], ["---"] * (2 + len(columns))]
    for (processor, length), group in itertools.groupby(
        rows, key=lambda row: (row["processor"], row["length"])
    ):
        levels = list(group)
        cells = [" / ".join(str(row[column]) for row in levels) for column in columns]
        lines.append([str(processor), str(length), *cells])
    return "\n".join("| " + " | ".join(line).replace("_", " ") + " |" for line in lines)


if __name__ == "__main__":
    print(table(run()["emulated"]))
