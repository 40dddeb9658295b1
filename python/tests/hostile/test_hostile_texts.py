"""Texts of strangers that grow where nobody expects it, and files that are none."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from small_commands import MOST_CPU_S, MOST_KIB, latenz
from swelling import SIZE, swollen

from latenz import importers
from latenz.errors import BadInput
from latenz.tune.catalogue import load
from latenz.tune.check import check
from latenz.tune.context import Context
from latenz.tune.root import Root
from latenz.tune.snapshot import write_snapshot
from latenz.tune.topology import read_topology

pytestmark = pytest.mark.fuzzing


@contextmanager
def in_time() -> Iterator[None]:
    """End what takes longer than a command may."""
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_CPU_S)
    before = signal.signal(signal.SIGVTALRM, _too_long)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def refused_or(action: Callable[[], object]) -> None:
    """Do something with a stranger's text; to refuse it in one line is fine, too."""
    with in_time():
        try:
            action()
        except BadInput as mistake:
            if "\n" in str(mistake) or len(str(mistake)) > 1000:
                raise AssertionError("no short line") from mistake


def _too_long(*_: object) -> None:
    raise AssertionError("takes longer than a command may")


PIECES = [
    "key",
    "GIC",
    "0-8191,",
    "domain,",
    "1 ",
    "a=",
    " ",
    "9",
    "f",
    "virtio1-",
    "processor\t: 1\n",
]
FILES = {
    "proc/cmdline": "quiet isolcpus=domain,1 pass=",
    "proc/interrupts": "           CPU0       CPU1\n  24:  1  1  GICv3 ",
    "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu ",
    "sys/devices/system/cpu/online": "0-1,",
    "sys/devices/system/cpu/isolated": "1,",
    "sys/devices/system/cpu/cpu1/cache/index0/shared_cpu_list": "1,",
    "sys/devices/system/cpu/cpu1/topology/thread_siblings_list": "1,",
}


@pytest.mark.long
@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("name", sorted(FILES))
def test_one_file_of_a_machine_has_a_line_of_a_megabyte(
    name: str, piece: str, tmp_path: Path
) -> None:
    machine = tmp_path / "machine"
    for each, text in FILES.items():
        path = machine / each
        path.parent.mkdir(parents=True, exist_ok=True)
        grown = piece * (SIZE // len(piece)) if each == name else ""
        path.write_text(text.rstrip(",") + ("," if grown and text.endswith(",") else "") + grown)
    refused_or(lambda: check(Context.of(Root(machine), "1", "host"), load()))
    refused_or(lambda: read_topology(Root(machine)))
    refused_or(lambda: write_snapshot(tmp_path / "machine.tar", machine))


DATA = Path(__file__).parent.parent / "data/importers"
OUTPUTS = [
    each for each in sorted(DATA.iterdir()) if each.suffix not in (".md", ".parquet", ".bin")
]


@pytest.mark.long
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda path: path.name)
def test_one_part_of_an_output_has_grown_to_a_megabyte(output: Path, tmp_path: Path) -> None:
    path = tmp_path / "file"
    for variant in swollen(output.read_bytes()[:4000], most=8):
        path.write_bytes(variant[:1_000_000])
        refused_or(lambda: [list(each.batches()) for each in importers.read(path)])


@pytest.mark.long
@pytest.mark.parametrize(
    "value",
    [
        '"' + "0-8191," * 130_000 + '"',
        "[" + "0," * 400_000 + "0]",
        "9" * 900_000,
        '"' + "9" * 900_000 + '"',
        "[" * 900_000,
        "{a=" * 250_000,
        ".".join(["a"] * 400_000),
        '"1e999999999 ms"',
        "1e999999999",
    ],
    ids=lambda value: value[:12],
)
@pytest.mark.parametrize("key", ["duration", "probe.one.cpus", "condition"])
def test_an_experiment_with_a_value_of_a_megabyte(key: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(
        f'name = "x"\n{key} = {value}\nprobe.one.engine = "cyclictest"\nmatrix.probe = ["one"]\n'
    )
    answer = latenz("run", path, "--list")
    assert answer.is_one_line(), (answer.code, answer.errors[:500])
    assert len(answer.errors) < 2000
    assert answer.resident_kib <= MOST_KIB


COMMANDS = [
    ("show", "X"),
    ("import", "X", "-o", "run"),
    ("bound", "X"),
    ("simulate", "X"),
    ("check", "X"),
    ("run", "X"),
    ("explain", "X"),
    ("report", "X", "-o", "report.html"),
    ("compare", "X", "X"),
    ("query", "select 1", "X"),
    ("export", "X", "--to", "csv", "-o", "out.csv"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("kind", ["pipe", "zeros", "folder", "link to zeros"])
def test_what_is_no_file_is_refused_at_once(
    command: tuple[str, ...], kind: str, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    if kind == "pipe":
        os.mkfifo(given)
    elif kind == "folder":
        given.mkdir()
    elif kind == "link to zeros":
        given.symlink_to("/dev/zero")
    place = "/dev/zero" if kind == "zeros" else str(given)
    answer = latenz(*(place if word == "X" else word for word in command), folder=tmp_path)
    assert answer.is_one_line(), (answer.code, answer.errors)
    assert [each.name for each in tmp_path.iterdir()] == (["given"] if kind != "zeros" else [])
