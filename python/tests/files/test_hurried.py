"""Users in a hurry: wrong files, Windows' habits, full disks. One line says what would be right."""

import codecs
import subprocess
import sys
from pathlib import Path

import pytest

from latenz import importers
from latenz.coherence import Machine
from latenz.commands import level
from latenz.durations import parse_duration
from latenz.errors import BadInput
from latenz.system.schema import read_system

ROOT = Path(__file__).parents[3]
SYSTEM = ROOT / "experiments/systems/can-gateway.toml"


def told(call, *arguments) -> str:
    with pytest.raises(BadInput) as refused:
        call(*arguments)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_system_file_of_windows_is_read(tmp_path):
    path = tmp_path / "system.toml"
    path.write_bytes(codecs.BOM_UTF8 + SYSTEM.read_bytes().replace(b"\n", b"\r\n"))
    assert read_system(path) == read_system(SYSTEM)


def test_a_system_file_in_utf_16_and_one_that_is_csv_are_named(tmp_path):
    path = tmp_path / "system.toml"
    path.write_text(SYSTEM.read_text(), encoding="utf-16")
    assert "it is text in UTF-16: iconv -f UTF-16 -t UTF-8 FILE" in told(read_system, path)
    path.write_text("t_ns,latency_ns\n1,2\n")
    assert "it is output of csv: latenz show FILE" in told(read_system, path)
    path.write_text("[platform\n")
    assert told(read_system, path).endswith("see https://toml.io")


def test_decimal_commas(tmp_path):
    assert told(parse_duration, "3,5ms", "--deadline").endswith("write 3.5ms")
    assert "write an integer" in told(parse_duration, "3,5,6ms")
    path = tmp_path / "one.csv"
    path.write_text("latency [ms]\n1,5\n")
    assert "decimal comma, separate columns by ; or tabs" in told(importers.read, path)


def test_levels_of_confidence_are_shares():
    assert level("95%") == level("0.95") == level(0.95) == 0.95
    for text in ("95", "-1%", "many", "101%"):
        assert "write 0.95 or 95%" in told(level, text)


def test_what_is_no_program_is_not_said_to_be_coherent(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("latency_us\n1\n")
    assert "give an ELF file for aarch64" in told(Machine(path).payload)
    assert "is not a program for this processor" in told(Machine(Path("/bin/true")).payload)


@pytest.mark.parametrize("words", [["--help"], ["bound", SYSTEM], ["published", "--json"]])
def test_a_full_disk_behind_standard_output_is_told_in_one_line(words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "latenz", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=250,
        )
    assert done.returncode == 2
    assert done.stderr == (
        "latenz: standard output: cannot be written (No space left on device);"
        " make room, or name another\n"
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_outputs_that_the_caller_closed_trouble_nobody(closed):
    line = f'exec "$0" -m latenz bound "$1" {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", line, sys.executable, SYSTEM], capture_output=True, text=True, timeout=250
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert ("can-engine" in done.stdout) == (closed == "2>&-")
