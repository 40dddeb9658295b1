"""Some hundred damaged traces of each format; `fuzz_traces.py` makes as many as one likes."""

import fuzz_traces
import pytest

RUNS = [b" ", b"0", b"[", b"]", b"] ", b"] a", b".", b"a", b"=", b" a=", b"# x\r\n", b",", b":"]


@pytest.mark.parametrize("kind", fuzz_traces.SEEDS)
def test_damaged_traces_are_read_or_refused(kind, tmp_path):
    read, refused = fuzz_traces.fuzz(kind, 500, 1, tmp_path)
    assert read + refused == 500
    assert read > 0
    assert refused > 0


@pytest.mark.parametrize("kind", ["btf", "ftrace"])
def test_long_runs_take_no_longer(kind, tmp_path):
    """A pattern that tries again from every place in a run would take minutes here."""
    path = tmp_path / "trace"
    counted = {"btf": b"activate", "ftrace": b"irq_handler_entry"}[kind]
    seed = max(fuzz_traces.SEEDS[kind], key=lambda content: content.count(counted))
    lines = seed.splitlines(keepends=True)[-6:]
    head = b"" if kind == "ftrace" else b"#timeScale ns\n"
    for run in RUNS:
        for number, line in enumerate(lines):
            for at in (0, line.find(b"=") + 1, len(line) // 2, len(line.rstrip())):
                damaged = [head, *lines]
                damaged[number + 1] = line[:at] + run * 30_000 + line[at:]
                path.write_bytes(b"".join(damaged))
                fuzz_traces.read_one(path, None, None)
                fuzz_traces.read_one(path, kind, None)


def test_comments_alone_are_no_trace(tmp_path):
    for end in (b"\r\n", b"\n", b"\r"):
        (tmp_path / "trace").write_bytes((b"# comment" + end) * 2000)
        assert not fuzz_traces.read_one(tmp_path / "trace", None, None)
