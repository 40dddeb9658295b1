import subprocess
import sys
from pathlib import Path

from conftest import Example


def latenz(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "latenz", *arguments], capture_output=True, text=True, timeout=600
    )


def test_it_writes_one_file_and_judges_as_show_does(example: Example, tmp_path: Path) -> None:
    done = latenz("report", str(example.run), "-o", str(tmp_path / "r.html"), "--deadline", "9 us")
    shown = latenz("show", str(example.run), "--deadline", "9 us")
    assert done.returncode == shown.returncode != 0, done.stderr
    assert done.stdout == ""
    assert done.stderr.splitlines()[1:] == [f"report: {tmp_path / 'r.html'}"]
    assert done.stderr.splitlines()[0] in shown.stdout
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.html"]
    assert "9 us" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_mistakes_get_one_line(example: Example, tmp_path: Path) -> None:
    output = str(tmp_path / "r.html")
    for arguments, told in (
        ((str(tmp_path / "none"), "-o", output), "there is no such file"),
        ((str(tmp_path), "-o", output), "run.json"),
        ((str(example.run), "-o", str(tmp_path)), "is a folder"),
        ((str(example.run), "-o", output, "--deadline", "3 parsecs"), "unit of time"),
        ((str(example.run), "-o", output, "--confidence", "95"), "between 0 and 1"),
    ):
        done = latenz("report", *arguments)
        assert done.returncode == 2
        assert told in done.stderr
        assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
