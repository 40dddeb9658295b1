"""What an experiment of a stranger can make programs do: measure, and nothing else.

Programs are started as root. So no text of the file may reach their command lines but what was
checked for its form, and nothing in it can name a disk, a network interface or a device of the
machine: those are given on the command line alone, by who starts `latenz vm`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_commands import latenz

from latenz.errors import BadInput
from latenz.experiment.schema import Experiment, json_schema

pytestmark = pytest.mark.fuzzing

DURATIONS = {"duration", "limit", "settle", "period", "warm_up", "stale", "break_above", "burst"}
CPU_LISTS = {"cpus", "spare", "isolated"}
SIZES = {"file_size"}
NAMES = {
    *("name", "bench", "stack", "stressor", "probe", "target"),  # looked up, or by a pattern
    "published",  # looked up
    "tunings",  # ids of the catalogue
    *("method", "exclude"),  # stress-ng's names, by a pattern that begins with a letter
}
NO_PROGRAM = {
    *("description", "source"),  # for people
    *("allowed", "sets"),  # how a deadline is judged, and which results by it
    "system",  # a file that the simulation reads
}
OTHERS = {"dma_latency"}  # a duration, or two words
ATTACHED = {
    *("unit", "thread", "process", "begin", "end"),  # names: of programs that run, places in them
    *("learning", "trace"),  # a duration, a file to read
}
STARTED = {
    "command",  # of the engine attach: only by --start-programs
    "url",  # of a target, which is reached only by --start-programs
}


def free_texts(node: Any, key: str = "") -> Iterator[str]:
    """The keys whose value may be a text that the schema itself does not limit."""
    if isinstance(node, list):
        for each in node:
            yield from free_texts(each, key)
    if not isinstance(node, dict):
        return
    if node.get("type") == "string" and not {"enum", "const", "pattern"} & set(node):
        yield key
    for name, value in node.items():
        if name in ("properties", "$defs"):
            for inner, each in value.items():
                yield from free_texts(each, inner)
        elif name not in ("examples", "description", "patternProperties"):
            yield from free_texts(value, key)


def test_every_free_text_of_an_experiment_is_known_to_be_harmless() -> None:
    assert (
        set(free_texts(json_schema()))
        <= DURATIONS | CPU_LISTS | SIZES | NAMES | NO_PROGRAM | OTHERS | ATTACHED | STARTED
    )


EXPERIMENT = """
name = "x"
duration = "1 s"
[probe.one]
engine = "cyclictest"
[matrix]
probe = ["one"]
"""
STACK = '\n[stack.own]\nkind = "vm"\n'
LOAD = '\n[stressor.own]\nkind = "stress-ng-all"\n'


@pytest.mark.parametrize(
    "further",
    [
        *(
            STACK + line
            for line in (
                'disk = "/dev/sda"',
                'tap = "eth0"',
                'passthrough = "0000:03:00.0"',
                'huge_pages = "/etc"',
                'kernel = "/boot/vmlinuz"',
                'arguments = ["-drive", "file=/dev/sda"]',
            )
        ),
        *(
            LOAD + line
            for line in (
                'exclude = ["--job=/tmp/x"]',
                'exclude = ["-Y"]',
                'exclude = ["cpu,--temp-path=/"]',
                'exclude = ["cpu --log-file x"]',
                'classes = ["--job"]',
                'temp_path = "/"',
            )
        ),
        '\n[stressor.own]\nkind = "stress-ng-cpu"\nmethod = "-Y"\n',
        '\n[stressor.own]\nkind = "stress-ng-cpu"\nmethod = "all --log-file x"\n',
        '\n[probe.other]\nengine = "cyclictest"\noptions = ["--histfile=/etc/passwd"]\n',
        '\n[probe.other]\nengine = "timerlat"\ntrace = "/etc/passwd"\n',
        '\n[probe.other]\nengine = "cyclictest"\ncpus = "0 --histfile=x"\n',
    ],
)
def test_what_names_devices_files_or_options_is_refused_before_anything_starts(
    further: str, tmp_path: Path
) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT)
    Experiment.read(path)
    path.write_text(EXPERIMENT + further)
    with pytest.raises(BadInput) as mistake:
        Experiment.read(path)
    assert str(mistake.value).startswith(f"{path}:")


@pytest.mark.parametrize("name", ["../../../etc/passwd", "/etc/passwd", "-o", ""])
def test_published_tables_are_looked_up_by_name_not_by_path(name: str, tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(f'published = ["{name}"]\n' + EXPERIMENT)
    with pytest.raises(BadInput, match="published"):
        Experiment.read(path)


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        (("run",), ()),
        (("run",), ("--only", "*")),
        (("run",), ("--json",)),
        (("tune", "prove"), ("--yes",)),
    ],
)
def test_no_program_of_the_file_starts_without_the_users_word(verb, options, tmp_path) -> None:
    path, mark = tmp_path / "stranger.toml", tmp_path / "started"
    path.write_text(
        'name = "x"\nduration = "1 s"\n[probe.one]\nengine = "attach"\n'
        f'command = ["touch", "{mark}"]\n[matrix]\nprobe = ["one"]\n'
    )
    answer = latenz(*verb, path, *options, "-o", tmp_path / "run")

    assert answer.is_one_line(), answer
    assert f"would start a program: touch {mark}" in answer.errors
    assert "--start-programs" in answer.errors
    assert not mark.exists()
    assert not (tmp_path / "run").exists()

    listed = latenz("run", path, "--list")
    assert listed.code == 0
    assert not mark.exists()
