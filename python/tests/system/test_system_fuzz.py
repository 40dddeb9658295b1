"""Some hundred damaged system files and traces; `fuzz_systems.py` makes as many as one likes."""

import fuzz_systems
import pytest

RUNS = [b" ", b"0", b'"', b",", b"[", b"{", b".", b"a", b"\n", b"#"]


@pytest.mark.parametrize("kind", fuzz_systems.KINDS)
def test_damaged_files_are_read_or_refused(kind, tmp_path):
    read, refused = fuzz_systems.fuzz(kind, 600, 1, tmp_path)
    assert read + refused == 600
    assert read > 0
    assert refused > 0


@pytest.mark.parametrize(
    ("kind", "content"),
    [("system", fuzz_systems.SYSTEMS[-1]), ("trace", fuzz_systems.TRACES[0])],
)
def test_long_runs_of_one_character_take_no_longer(kind, content, tmp_path):
    """A pattern that tries again from every place in a run would take minutes here."""
    path = tmp_path / fuzz_systems.KINDS[kind][2]
    lines = content.splitlines(keepends=True)
    for run in RUNS:
        for number, line in enumerate(lines):
            for at in (len(line) // 2, len(line.rstrip())):
                damaged = [*lines]
                damaged[number] = line[:at] + run * 50_000 + line[at:]
                path.write_bytes(b"".join(damaged))
                fuzz_systems.read_one(kind, path)
