"""The hypervisor stays small: code and data by the image that was built, lines by its sources."""

import sys
import tempfile
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).parents[3]
PROGRAMS = ROOT / ".venv" / "firmware" / "hypervisor"
IMAGES = ("hypervisor.elf", "hypervisor-gicv3.elf")
LARGEST_IMAGE = 64 * 1024
MOST_LINES = 7950
"""Of both interrupt controllers.

Beyond 7,300: 10 name a stack that overflows; 70 decide by the health table, 30 carry that out, 30
look at watchdogs, 25 check the block, 15 let an access fail
in the guest, 15 put state and faults into the trace; 115 are for a Raspberry Pi 4, which has no
PSCI, 50 move an image that lies elsewhere.

Slots on every core: 90 give each dispatcher its part of what all share, 50 plan for
each CPU, 60 let cores begin together and end one by one, 35 tell of each, 25 check the block.
"""
PUBLISHED_CODE, PUBLISHED_DATA, PUBLISHED_INSTRUCTIONS = 272, 28, 128
"""Of the monitor of beckert2014, section 6.2."""

sys.path.insert(0, str(ROOT / "bench"))

import monitor_size  # noqa: E402 - a script beside the benchmarks


@pytest.mark.parametrize("image", IMAGES)
def test_code_and_constants_are_small(image):
    with (PROGRAMS / image).open("rb") as file:
        loaded = [each for each in ELFFile(file).iter_segments() if each["p_type"] == "PT_LOAD"]
        assert 16 * 1024 < sum(each["p_filesz"] for each in loaded) <= LARGEST_IMAGE


@pytest.mark.parametrize("image", IMAGES)
def test_the_image_has_no_more_than_its_segments(image):
    with (PROGRAMS / image).open("rb") as file:
        sections = {each.name: each["sh_size"] for each in ELFFile(file).iter_sections()}
    in_the_image = sum(sections.get(name, 0) for name in (".text", ".rodata", ".data"))
    assert sections[".text"] < in_the_image <= LARGEST_IMAGE


def test_the_sources_can_be_read_in_an_afternoon():
    files = [file for file in (ROOT / "hypervisor" / "src").rglob("*") if file.is_file()]
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    assert len(files) > 20
    assert lines <= MOST_LINES


@pytest.fixture(scope="module")
def monitor():
    """The monitor of length 1, compiled as in the image."""
    with tempfile.TemporaryDirectory() as folder:
        return monitor_size.measure(monitor_size.TARGETS[0], "-O2", 1, Path(folder))


def test_the_monitor_is_no_larger_than_the_published_one(monitor):
    assert monitor["processor"] == "Cortex-A53"
    assert 0 < monitor["code_bytes"] <= PUBLISHED_CODE
    assert 0 < monitor["data_bytes"] <= PUBLISHED_DATA


def test_a_decision_takes_no_more_instructions_than_published(monitor):
    executed = monitor["executed_granted"], monitor["executed_denied"]
    assert 0 < min(executed) <= max(executed) <= PUBLISHED_INSTRUCTIONS
