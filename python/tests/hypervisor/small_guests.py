"""Guests of a few instructions, in assembly, that report by their progress what they found."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from latenz.hypervisor.build import Built, build
from latenz.hypervisor.run import Boot, boot, ensure_built

REPORT = """
    .macro  report value            // in x0 to the page of reports, and nothing more
    mov     x0, \\value
    movz    x3, #0x0B00, lsl #16
    movk    x3, #0x1000
    str     x0, [x3]
9:  wfi
    b       9b
    .endm
"""
SYSTEM = """
[[slot]]
partition = "small"
length = "500 us"
[[slot]]
partition = "other"
length = "500 us"
[[source]]
name = "timer"
partition = "other"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "2 ms" }}
[[partition]]
name = "small"
guest = "{guest}"
memory = "2 MiB"
{more}
"""


@dataclass(frozen=True)
class Small:
    """A boot of a small guest beside an honest one.

    Attributes:
        built: What was booted.
        boot: What that brought.
        progress: What the guest reported.
        state: Of its partition at the end.
        faults: How many it had.
        restarts: How often it began anew.
    """

    built: Built
    boot: Boot
    progress: int
    state: str
    faults: int
    restarts: int


def assembled(folder: Path, text: str) -> Path:
    """Assemble a guest that begins at `_start`; return its ELF file."""
    source, program = folder / "guest.S", folder / "guest.elf"
    source.write_text(f"{REPORT}    .text\n    .global _start\n_start:\n{text}\n")
    link = ["-nostdlib", "-static", "-Wl,-Ttext=0x40000000", "-Wl,--build-id=none", "-Wl,-n"]
    command = ["aarch64-linux-gnu-gcc", "-mcpu=cortex-a53", *link, source, "-o", program]
    subprocess.run(command, check=True)
    return program


def built_small(folder: Path, text: str, more: str = "", irqs: int = 20) -> Built:
    """Build a system with the guest of this text; `more` goes into its table."""
    ensure_built()
    path = folder / "system.toml"
    path.write_text(SYSTEM.format(guest=assembled(folder, text), more=more))
    return build(path, irqs=irqs)


def booted_small(folder: Path, text: str, more: str = "", irqs: int = 20) -> Small:
    """Boot the guest of this text beside an honest one."""
    built = built_small(folder, text, more, irqs)
    brought = boot(built, "virt")
    found = brought.measured.statistics.partitions[0]
    return Small(built, brought, found.progress, found.state, found.faults, found.restarts)
