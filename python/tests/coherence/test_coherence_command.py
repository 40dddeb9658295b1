"""The command line: exit codes, JSON, table, refusals; and what the plugin's recording may hold."""

import json
import subprocess
from pathlib import Path

import pytest

from latenz.coherence.recording import read_recording
from latenz.errors import BadInput

LATENZ = Path(__file__).parents[3] / "latenz"
PROGRAMS = Path(__file__).parent / "programs"


def latenz(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [LATENZ, "coherence", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def program(folder: Path, name: str, defect: str) -> Path:
    image = folder / f"{name}.elf"
    flags = "-O1 -ffreestanding -nostdlib -static -fno-pie -no-pie -mcpu=cortex-a53 -mstrict-align"
    flags += " -mgeneral-regs-only -Wl,--build-id=none -Wl,--no-warn-rwx-segments"
    flags += " -Wl,-z,max-page-size=4096"
    sources = [PROGRAMS / "start.S", PROGRAMS / f"{name}.c", "-T", PROGRAMS / "program.ld"]
    command = ["aarch64-linux-gnu-gcc", *flags.split(), f"-DDEFECT_{defect}", *sources]
    subprocess.run([*command, "-o", image], check=True)
    return image


def test_a_defect_is_told_and_ends_with_1(tmp_path):
    image = program(tmp_path, "publish", "not_cleaned")
    done = latenz(image, "--json")
    assert done.returncode == 1, done.stderr
    [place] = json.loads(done.stdout)["places"]
    assert place["cause"] == "dirty"
    assert place["symbol"] == "message"
    assert place["written_by"] == place["read_by"] == "program (EL2, CPU 0)"
    assert place["first_ns"] > 0
    table = latenz(image).stdout
    [row] = [line for line in table.splitlines() if line.strip().startswith("not cleaned ")]
    assert "(message)" in row
    assert row.count("program (EL2, CPU 0)") == 2


def test_a_correct_program_ends_with_0(tmp_path):
    done = latenz(program(tmp_path, "publish", "none"))
    assert done.returncode == 0, done.stderr
    assert "nothing was seen" in done.stdout


def test_names_can_be_those_of_another_file_and_level(tmp_path):
    image = program(tmp_path, "publish", "not_cleaned")
    done = latenz(image, "--json", "--symbols", f"{image}@1")
    [place] = json.loads(done.stdout)["places"]
    assert place["symbol"] == "message"
    assert place["written_by"].startswith("0x"), "code of EL2 has no names"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("none.elf",), "there is no such file"),
        ((__file__,), "is not a program for this processor"),
        (("IMAGE", "--bench", "zcu103"), "did you mean 'zcu102'?"),
        (("IMAGE", "--caches", "full"), "--caches: 'full' is not a state of caches"),
        (("IMAGE", "--symbols", "x.elf@9"), "'9' is not an exception level"),
        (("IMAGE", "--symbols", "x.elf"), "x.elf: cannot be read"),
        (("IMAGE", "--r5", "IMAGE"), "take --bench zcu102"),
    ],
)
def test_bad_input_is_one_line(tmp_path, arguments, told):
    image = program(tmp_path, "publish", "none")
    done = latenz(*(image if each == "IMAGE" else each for each in arguments))
    assert done.returncode == 2
    [line] = [each for each in done.stderr.splitlines() if not each.startswith("latenz set-up:")]
    assert told in line


@pytest.mark.parametrize(
    "text",
    [
        "",
        "latenz-path 1 aarch64 1\n",
        "latenz-coherence 2 aarch64 1\n",
        "latenz-coherence 1 aarch64 1\nfound load dirty 1000 1000 5 -  0:1:80\n",
        "latenz-coherence 1 aarch64 1\nfound look dirty 1000 1000 5 0:1:80 -\n",
        "latenz-coherence 1 aarch64 1\nfound load dirty 1000 1000 5 - 0:1:80\n",
        "latenz-coherence 1 aarch64 1\nfound load dirty 1000\n",
        "latenz-coherence 1 aarch64 1\nlost\n",
        "latenz-coherence 1 aarch64 1\nend \n",
        "\xff\n",
    ],
)
def test_a_damaged_recording_is_refused(tmp_path, text):
    path = tmp_path / "coherence.txt"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(BadInput):
        read_recording(path)


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "coherence.txt"
    line = "found load dirty 1000 2000 5 0:1:80 1:2:90\n"
    path.write_text(f"latenz-coherence 1 aarch64 2\n{line}note a b\n{line[:20]}")
    recording = read_recording(path)
    [found] = recording.findings
    assert (found.physical, found.address, found.time_ns) == (0x1000, 0x2000, 5)
    assert (found.reader.cpu, found.reader.level, found.reader.address) == (0, 1, 0x80)
    assert found.writer is not None
    assert found.writer.level == 2
    assert recording.notes == ["a b"]
    assert recording.accesses is None
