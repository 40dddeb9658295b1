"""Small programs with and without planted defects: each defect is found, and nothing else."""

import re
import subprocess
from pathlib import Path

import pytest

from latenz.coherence import Checked, Machine, check

PROGRAMS = Path(__file__).parent / "programs"
COMPILE = (
    *("aarch64-linux-gnu-gcc", "-O1", "-g", "-ffreestanding", "-nostdlib", "-static", "-fno-pie"),
    *("-no-pie", "-mcpu=cortex-a53", "-mstrict-align", "-mgeneral-regs-only", "-Wall", "-Wextra"),
    *("-Werror", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-Wl,--build-id=none"),
    *("-Wl,-z,max-page-size=4096", "-Wl,--no-warn-rwx-segments", "-T", PROGRAMS / "program.ld"),
)
CORES = {"code": 2, "cores": 2}
DEFECTS = {
    ("boot", "tables_not_invalidated"): ("stale", "walk", "top", "from_stack"),
    ("boot", "bss_not_invalidated"): ("stale", "load", "counter", "_start"),
    ("boot", "stack_not_invalidated"): ("stale", "load", ".stacks", "from_stack"),
    ("publish", "not_cleaned"): ("dirty", "load", "message", "program"),
    ("publish", "half_cleaned"): ("dirty", "load", "message", "program"),
    ("publish", "cleaned_for_code"): ("dirty", "load", "message", "program"),
    ("publish", "invalidated_instead"): ("discarded", "load", "message", "program"),
    ("publish", "no_barrier"): ("incomplete", "load", "message", "program"),
    ("receive", "never_dropped"): ("stale", "load", "data", "program"),
    ("receive", "dropped_before"): ("stale", "load", "data", "program"),
    ("receive", "cleaned_instead"): ("stale", "load", "data", "program"),
    ("receive", "shared_line"): ("overwritten", "load", "data", "program"),
    ("code", "code_not_cleaned"): ("uncleaned", "fetch", "code", "program"),
    ("code", "instructions_not_dropped"): ("instructions", "fetch", "code", "program"),
    ("code", "no_barrier_before_drop"): ("instructions", "fetch", "code", "program"),
    ("code", "own_instructions_only"): ("instructions", "fetch", "code", "program"),
    ("tables", "walks_not_cached"): ("dirty", "walk", "top", "program"),
    ("tables", "written_uncached"): ("stale", "walk", "top", "program"),
    ("guest", "information_not_cleaned"): ("dirty", "load", "information", "program"),
    ("guest", "information_without_barrier"): ("incomplete", "load", "information", "program"),
    ("guest", "report_not_dropped"): ("stale", "load", "report", "guest"),
    ("guest", "stage2_not_cleaned"): ("dirty", "walk", "stage2", "program"),
    ("setway", "first_level_only"): ("dirty", "load", "message", "program"),
    ("cores", "given_not_cleaned"): ("dirty", "load", "given", "program"),
    ("cores", "returned_not_dropped"): ("stale", "load", "returned", "second_core"),
}
"""Of each defect: cause, reading, what is read, and the function that wrote it."""


def checked(folder: Path, program: str, defect: str) -> Checked:
    image = folder / f"{program}-{defect}.elf"
    sources = (PROGRAMS / "start.S", PROGRAMS / f"{program}.c")
    subprocess.run([*COMPILE, f"-DDEFECT_{defect}", *sources, "-o", image], check=True)
    found = check(Machine(image, cpus=CORES.get(program, 1), limit_s=30))
    assert "the program switched the board off" in found.notes, found.notes
    return found


@pytest.mark.parametrize("program", sorted({program for program, _ in DEFECTS}))
def test_a_correct_program_is_quiet(tmp_path, program):
    found = checked(tmp_path, program, "none")
    assert found.places == ()
    assert found.accesses
    assert len(found.notes) == 1, found.notes


@pytest.mark.parametrize(("program", "defect"), DEFECTS)
def test_a_planted_defect_is_found(tmp_path, program, defect):
    found = checked(tmp_path, program, defect).places
    cause, reading, symbol, writer = DEFECTS[program, defect]
    told = [(each.cause, each.reading, each.symbol, each.written_by.split()[0]) for each in found]
    assert (cause, reading, symbol, writer) in told
    if program != "boot":  # a whole region is left out there
        assert {each[0] for each in told} == {cause}, told


def test_every_planted_defect_of_the_sources_is_tried():
    planted = {
        (path.stem, name)
        for path in PROGRAMS.iterdir()
        for name in re.findall(r"DEFECT_(\w+)", path.read_text())
    }
    planted = {("boot" if stem == "start" else stem, name) for stem, name in planted}
    assert planted == set(DEFECTS)


def test_caches_that_are_empty_at_entry_hold_nothing_old(tmp_path):
    image = tmp_path / "boot.elf"
    sources = (PROGRAMS / "start.S", PROGRAMS / "boot.c")
    defect = "-DDEFECT_tables_not_invalidated"
    subprocess.run([*COMPILE, defect, *sources, "-o", image], check=True)
    assert check(Machine(image, caches="empty", limit_s=30)).places == ()
