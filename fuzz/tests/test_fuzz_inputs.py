"""Seeds and findings are read or refused; what counts as a finding is told from what does not."""

import json
import re

import pytest

from latenz.errors import BadInput
from latenz.model import Metadata, Reported, SampleSet, TimeBase
from outcomes import MOST_CHARACTERS, check_samples, outcome
from targets import ROOT, TARGETS, Target

pytestmark = pytest.mark.fuzzing

PYTHON = [target for target in TARGETS if target.readers]
NATIVE = [target for target in TARGETS if not target.readers]
RUNS = [b" ", b"0", b"|", b":", b",", b"[", b"a", b'"', b".", b"#", b"=", b"\n", b"] "]


def feed(target: Target, tmp_path, content: bytes) -> list[bool]:
    path = tmp_path / "input"
    path.write_bytes(content)
    return [outcome(reader, path) for reader in target.functions()]


@pytest.mark.parametrize("target", PYTHON, ids=lambda each: each.name)
def test_known_inputs_are_read_or_refused_and_every_reader_reads_one(target, tmp_path):
    read = [feed(target, tmp_path, path.read_bytes()) for path in target.known_inputs()]
    assert read
    reached = [any(of_reader) for of_reader in zip(*read, strict=True)]
    assert dict(zip(target.readers, reached, strict=True)) == dict.fromkeys(target.readers, True)


@pytest.mark.long
@pytest.mark.parametrize("target", [each for each in PYTHON if each.is_text], ids=lambda t: t.name)
def test_long_runs_of_one_character_take_no_longer(target, tmp_path):
    """A pattern that tries again from every place in a run would take minutes here."""
    shortest = sorted((path.read_bytes() for path in target.known_inputs()), key=len)
    for content in shortest[:2]:
        lines = content.splitlines(keepends=True)[:3]
        for run in RUNS:
            damaged = [*lines]
            number = len(run * 7) % len(lines)
            line = lines[number]
            damaged[number] = line[: len(line) // 2] + run * 30_000 + line[len(line) // 2 :]
            feed(target, tmp_path, b"".join(damaged))


@pytest.mark.parametrize("target", NATIVE, ids=lambda each: each.name)
def test_targets_in_cpp_have_a_source_a_build_and_seeds(target):
    assert (ROOT / f"fuzz/native/{target.name.replace('-', '_')}.cpp").exists()
    assert f"add_target({target.name} " in (ROOT / "fuzz/CMakeLists.txt").read_text()
    assert target.known_inputs()
    assert all(path.stat().st_size <= target.longest for path in target.known_inputs())


def test_everything_that_is_built_or_kept_is_in_the_table():
    names = {target.name for target in TARGETS}
    built = re.findall(r"^add_target\(([a-z-]+)", (ROOT / "fuzz/CMakeLists.txt").read_text(), re.M)
    assert set(built) == {target.name for target in NATIVE}
    for kind in ("seeds", "found"):
        assert {folder.name for folder in (ROOT / "fuzz" / kind).glob("*/")} <= names
    preset = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    assert [each for each in preset if each["name"] == "fuzz"]


@pytest.mark.parametrize(
    "refusal",
    [
        BadInput("is wrong"),
        BadInput("is wrong", "x" * 2000),
        ValueError("is not a refusal"),
        MemoryError(),
    ],
    ids=str,
)
def test_what_is_no_clear_refusal_is_a_finding(refusal, tmp_path):
    def reader(path):
        raise refusal

    with pytest.raises((AssertionError, ValueError, MemoryError)):
        outcome(reader, tmp_path)


def test_a_refusal_shows_both_ends_of_what_is_too_long():
    line = str(BadInput("holds no " + "x\x05" * 9000 + " at all", "file:1", "y" * 9000))
    assert len(line) < MOST_CHARACTERS
    assert line.startswith("file:1: holds no x\\x05x")
    assert " at all; yyy" in line


def test_a_refusal_with_a_place_is_none(tmp_path):
    def reader(path):
        raise BadInput("is wrong", str(path))

    assert outcome(reader, tmp_path) is False


def test_figures_that_contradict_each_other_are_a_finding():
    metadata = Metadata(
        name="set",
        source="file, read as tool",
        time_base=TimeBase.SILICON,
        reported=Reported(n=3, min_ns=9, max_ns=2),
    )
    with pytest.raises(AssertionError, match="9"):
        check_samples(SampleSet.from_columns(metadata))
