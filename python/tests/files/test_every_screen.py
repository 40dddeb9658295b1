"""Every command on terminals of 60, 80 and 120 columns: no figure, unit or first column is cut.

What a command writes, bars that come and go included, is put onto a screen as a terminal does. The
figures that stand there are those of a screen of 400 columns; a column may be missing only where a
line names it. Commands that measure tell other figures each time, and those that boot are run once,
on the narrowest terminal: there, too, nothing may end in the middle of a figure.
"""

import json
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from test_strangers_folders import (
    DATA,
    IRQS,
    ROBOT,
    SYSTEM,
    Inputs,
    commands,
    inputs,  # noqa: F401 - a fixture
    latenz,
)

from latenz.cli import VERBS

TESTS = Path(__file__).parents[1]
ICC = TESTS.parents[1] / "icc/include"
PAIR = TESTS.parents[1] / "icc/examples/pair"
WIDE = 400
HISTOGRAMS = DATA / "importers/cyclictest-v2.4-hist-smp.txt"
OTHER = DATA / "importers/oslat-v2.4.json"
FIGURE = re.compile(
    r"(?<![\w./:_-])[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]\d+)?(?![\w/:_-]|\.\w)"
    r"(?: ?(?:ns|µs|ms|s|%|Hz|MHz|MiB|KiB|bytes)(?!\w))?"
)


@dataclass(frozen=True)
class Example:
    """How a command is called.

    Attributes:
        words: `NEW` is a file that does not exist yet, `PAGE` one that ends in .html, `TREE` a
            machine's tree to change, `APPLIED` one with changes.
        steady: It prints the same each time.
        once: It takes long and is run on the narrowest terminal alone.
        code: Its exit code.
    """

    words: tuple[object, ...]
    steady: bool = True
    once: bool = False
    code: int = 0


EXAMPLES = {
    "run": Example(("run", "experiment.toml", "-o", "NEW"), steady=False),
    "attach": Example(("attach", "--from", DATA / "traces/planted/throttled.dat", "-o", "NEW")),
    "self-check": Example(("self-check",), steady=False),
    "show": Example(("show", HISTOGRAMS, "--deadline=3ms", "--deadline=30us@0"), code=1),
    "import": Example(("import", HISTOGRAMS, "-o", "NEW")),
    "export": Example(("export", "run", "--to=csv", "-o", "NEW")),
    "query": Example(("query", "select * from sample_sets", "run")),
    "report": Example(("report", "run", "-o", "PAGE", "--deadline=30us@0"), code=1),
    "compare": Example(("compare", HISTOGRAMS, HISTOGRAMS, "--fail-if", "p99 > +10%"), code=3),
    "bound": Example(("bound", SYSTEM, "--deadline=can-engine=300us")),
    "simulate": Example(("simulate", SYSTEM, "--irqs=200")),
    "coherence": Example(("coherence", "publish.elf"), code=1),
    "explain": Example(("explain", DATA / "traces/planted/throttled.dat")),
    "check": Example(("check", SYSTEM, "--effort=20")),
    "explore": Example(
        ("explore", SYSTEM, "--deadline=can-engine=300us", "--candidates=20", "-o", "NEW")
    ),
    "learn": Example(("learn", "arrivals.csv", "--length=2")),
    "published": Example(("published", "pamuk2024.table2")),
    "sample-size": Example(("sample-size", "--allowed=1/day")),
    "doctor": Example(("doctor",), steady=False),
    "schema": Example(("schema", "experiment")),
    "hypervisor build": Example(("hypervisor", "build", SYSTEM, IRQS, "-o", "NEW")),
    "hypervisor run": Example(("hypervisor", "run", SYSTEM, IRQS)),
    "hypervisor costs": Example(("hypervisor", "costs", SYSTEM, IRQS), once=True),
    "hypervisor trace": Example(("hypervisor", "trace", "booted", "-o", "NEW")),
    "hypervisor watch": Example(("hypervisor", "watch", SYSTEM, IRQS), steady=False),
    "icc watch": Example(("icc", "watch", "region", "--once", "--interval=10ms"), steady=False),
    "icc show": Example(("icc", "show", "region")),
    "icc generate": Example(("icc", "generate", ROBOT, "-o", "NEW")),
    "icc try": Example(("icc", "try", PAIR)),
    "ip read": Example(("ip", "read", "sim:latency_bench", "--samples=5", "-o", "NEW")),
    "ip watch": Example(("ip", "watch", "sim:latency_bench", "--once"), steady=False),
    "ip selftest": Example(("ip", "selftest", "sim:latency_bench"), code=3),
    "ip replay": Example(("ip", "replay", "waves.vcd", "--start=irq", "--end=ack", "-o", "NEW")),
    "tune check": Example(("tune", "check", "--cpus=1"), steady=False),
    "tune snapshot": Example(("tune", "snapshot", "NEW", "--root=TREE")),
    "tune plan": Example(("tune", "plan", "--cpus=1")),
    "tune apply": Example(("tune", "apply", "--cpus=1", "--root=TREE", "--yes")),
    "tune status": Example(("tune", "status", "--root=APPLIED")),
    "tune revert": Example(("tune", "revert", "--root=APPLIED")),
    "tune prove": Example(
        (
            *("tune", "prove", "experiment.toml", "--root=TREE", "--cpus=1", "--profile=host"),
            *("--only=host-stat-interval", "--figure=mean", "--yes", "-o", "NEW"),
        ),
        steady=False,
        once=True,
        code=3,
    ),
    "tune irqs": Example(("tune", "irqs", "--all"), steady=False),
    "tune tasks": Example(("tune", "tasks", "--all"), steady=False),
    "tune topology": Example(("tune", "topology")),
    "vm build": Example(("vm", "build")),
    "vm command": Example(("vm", "command")),
    "vm xml": Example(("vm", "xml")),
    "vm run": Example(
        ("vm", "run", "--accelerator=tcg", "--duration=1s", "-o", "NEW"), steady=False, once=True
    ),
}


def test_every_command_of_the_command_line_has_an_example():
    from importlib import import_module

    names = set()
    for verb in VERBS:
        name = "import_" if verb == "import" else verb.replace("-", "_")
        names |= {
            each for each, _ in commands(import_module(f"latenz.commands.{name}").command, verb)
        }
    assert {name.replace("command_line", "command") for name in names} == set(EXAMPLES)


@pytest.fixture(scope="module")
def here(inputs: Inputs) -> Path:  # noqa: F811
    """A folder with what the examples read."""
    folder = inputs.folder
    channels = folder / "channels"
    source = TESTS / "icc/channels.cpp"
    subprocess.run(["g++", "-std=c++20", f"-I{ICC}", source, "-o", channels], check=True)
    (folder / "region").write_bytes(bytes(65536))
    subprocess.run([channels, "fill", folder / "region"], check=True)
    planted = runpy.run_path(str(TESTS / "coherence/test_coherence_command.py"))["program"]
    planted(folder, "publish", "not_cleaned")
    if not inputs.booted.exists():
        booted = latenz(folder, ["hypervisor", "run", SYSTEM, IRQS, "-o", inputs.booted])
        assert booted.returncode == 0, booted.stderr
    shutil.copytree(inputs.tree, folder / "applied")
    applied = latenz(folder, ["tune", "apply", "--cpus=1", "--root=applied", "--yes"])
    assert applied.returncode == 0, applied.stderr
    return folder


Written = Callable[[tuple[object, ...], int], tuple[int, str]]


@pytest.fixture(scope="module")
def written(here: Path) -> Iterator[Written]:
    """What a command writes to a terminal of a width."""
    numbers = count()
    command = [sys.executable, Path(__file__).with_name("forked_terminal.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:

        def answer(words: tuple[object, ...], columns: int) -> tuple[int, str]:
            new = f"new-{next(numbers):03}"
            for tree, name in (("tree", "TREE"), ("applied", "APPLIED")):
                if any(name in str(each) for each in words):
                    shutil.copytree(here / tree, here / f"{new}-tree", symlinks=True)
            places = {"NEW": new, "PAGE": f"{new}.html"}
            asked = [
                re.sub("TREE|APPLIED", f"{new}-tree", places.get(str(each), str(each)))
                for each in words
            ]
            order = {"words": asked, "columns": columns, "folder": str(here)}
            program.stdin.write(json.dumps(order) + "\n")
            program.stdin.flush()
            told = json.loads(program.stdout.readline())
            return told["code"], told["written"]

        yield answer
        program.stdin.close()


def lines_of(text: str) -> Iterator[str]:
    """Give the lines that a terminal was ever told to show, before it breaks those too long."""
    plain = re.sub(r"\x1b\][^\x07]*\x07|\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return (line.rstrip() for line in re.split(r"[\r\n]+", plain))


def broken(lines: list[str], columns: int) -> list[str]:
    """Return the figures, with their units, that the end of a terminal's line breaks."""
    return [
        found.group()
        for line in lines
        for found in FIGURE.finditer(line)
        if found.start() // columns != (found.end() - 1) // columns
    ]


def first_column(lines: list[str]) -> list[str]:
    """Return what stands first in the rows of tables."""
    rows = [line for line in lines if re.match(r" \w|│ \w", line)]
    return [re.split(r" {2,}|│", line.strip(" │"))[0].strip() for line in rows]


@pytest.mark.boots
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long) if example.once else name
        for name, example in EXAMPLES.items()
    ],
)
def test_nothing_is_cut_on_any_terminal(name, written):
    example = EXAMPLES[name]
    whole: list[str] = []
    if example.steady and not example.once:
        code, text = written(example.words, WIDE)
        assert code == example.code, text
        whole = list(lines_of(text))
    for columns in (60,) if example.once else (60, 80, 120):
        code, text = written(example.words, columns)
        assert code in ({example.code} if example.steady else {0, 1, 3}), text
        assert "Traceback" not in text
        lines = list(lines_of(text))
        assert "…" not in "\n".join(lines)
        assert not broken(lines, columns)
        if whole:
            check_against(whole, lines)


def check_against(whole: list[str], lines: list[str]) -> None:
    """Hold a screen against a wide one: the same figures, but for columns that are named."""
    wide, narrow = (
        {re.match(r"[-+\d,.e]*", figure).group() for figure in FIGURE.findall("\n".join(each))}
        for each in (whole, lines)
    )
    told = re.findall(r"not in (\d+) columns", " ".join(lines))
    assert not narrow - wide - set(told)
    assert told or not wide - narrow
    firsts = "".join(first_column(lines)).replace(" ", "")
    assert not [each for each in first_column(whole) if each.replace(" ", "") not in firsts]


def test_a_cut_figure_is_noticed():
    """The checks above can fail."""
    assert broken(["took 12 ms in all"], 6) == ["12 ms"]
    assert not broken(["took 12 ms in all"], 10)
    with pytest.raises(AssertionError):
        check_against([" name   12.5 ms"], [" name   12.", "        5 ms"])
    with pytest.raises(AssertionError):
        check_against([" long-name   12.5 ms"], [" long-n   12.5 ms"])
