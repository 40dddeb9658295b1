"""A few hundred mutations of every format; `fuzz.py` runs as many as one likes."""

import fuzz
import pytest

from latenz import importers

RUNS = [b" ", b"0", b"|", b":", b",", b"[", b"a"]


@pytest.mark.parametrize("name", [name for name in importers.FORMATS if name != "parquet"])
def test_long_runs_of_one_character_take_no_longer(name, tmp_path):
    """A pattern that tries again from every place in a run would take minutes here."""
    for content in fuzz.seeds(name):
        lines = content.splitlines(keepends=True)[:4]
        for run in RUNS:
            for number, line in enumerate(lines):
                middle = len(line) // 2
                for at in (middle, len(line.rstrip())):
                    damaged = [*lines]
                    damaged[number] = line[:at] + run * 50_000 + line[at:]
                    fuzz.read_one(name, b"".join(damaged), name, tmp_path / "long")


@pytest.mark.parametrize("name", [name for name in importers.FORMATS if name != "parquet"])
def test_mutations_are_read_or_refused(name, tmp_path):
    read, refused = fuzz.fuzz(name, 300, 1, tmp_path)
    assert read + refused == 300
    assert read > 0
    assert refused > 0
