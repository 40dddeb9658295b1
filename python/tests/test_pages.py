"""Every command that a page prints: its options are there, and what runs here in seconds runs."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import typer

from latenz.cli import _application

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / "icc" / "README.md", ROOT / "hdl" / "README.md"),
)
RUN_HERE = re.compile(
    r"(bound|check|simulate|learn|published|schema|sample-size|doctor) "
    r"|(hypervisor build|vm command|vm xml|tune check --why|run \S+ --list)"
)
"""Commands that need nothing but the project, and change nothing."""
ENDS = {0, 1, 3}
DOMAIN = ROOT / "python/tests/data/vm/own-domain.xml"
MADE = {"measured.toml"}
"""What a page's command makes that boots a board for minutes."""


def printed() -> list[tuple[str, str]]:
    """Return the commands in the pages' blocks of code, each with its page, comments left out."""
    found = []
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        settings: dict[str, str] = {}
        for block in re.findall(r"^```(?:sh|console)?\n(.*?)^```", page.read_text(), re.S | re.M):
            for line in re.split(r"\n|;", block.replace("\\\n", " ")):
                if match := re.fullmatch(r"(\w+)=(\S+)\s*(#.*)?", line.strip()):
                    settings[f"${match[1]}"] = match[2]
                match = re.match(r"(?:\$ )?(?:sudo )?(?:\./)?latenz (\S.*)", line.strip())
                if match:
                    text = " ".join(shlex.split(match[1], comments=True))
                    if text:
                        words = shlex.split(match[1], comments=True)
                        found.append((name, shlex.join([settings.get(x, x) for x in words])))
    return list(dict.fromkeys(found))


COMMANDS = printed()


def arguments(text: str) -> list[str]:
    """Return a command's arguments, up to where its output goes."""
    words = shlex.split(text)
    return words[: words.index(">")] if ">" in words else words


@pytest.mark.parametrize(("page", "text"), COMMANDS)
def test_its_options_are_there(page, text):
    words = arguments(text)
    command: click.Command = typer.main.get_command(_application(words))
    context = click.Context(command, info_name="latenz")
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert found is not None, f"{page}: there is no {name}"
        command, context = found, click.Context(found, info_name=name, parent=context)
        if isinstance(command, click.Group) and not words:
            return
        if isinstance(command, click.Group) and command.invoke_without_command:
            break
    command.make_context(context.info_name or "", list(words), resilient_parsing=False)


def is_runnable(words: list[str]) -> bool:
    """Return whether a command needs what the pages have, and neither a board nor minutes."""
    given = not any(re.fullmatch(r"[A-Z]+|results/.*", word) for word in words)
    return bool(RUN_HERE.match(" ".join([*words, ""]))) and given and not MADE & set(words)


RUNNABLE = [(page, words) for page, text in COMMANDS if is_runnable(words := arguments(text))]
"""Those whose inputs are the project's, or made by a command before them on the same page."""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with what the pages' commands read."""
    for name in ("experiments", "python/tests/data/learn"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(DOMAIN, tmp_path / "mine.xml")
    return tmp_path


def test_what_runs_here_is_not_little():
    assert len(COMMANDS) > 110
    assert len(RUNNABLE) > 25


@pytest.mark.parametrize("page", dict.fromkeys(page for page, _ in RUNNABLE))
def test_it_runs_as_printed(here, page):
    for words in (words for other, words in RUNNABLE if other == page):
        done = subprocess.run(
            [sys.executable, "-m", "latenz", *words],
            cwd=here,
            env={**os.environ, "COLUMNS": "100"},
            capture_output=True,
            text=True,
        )

        assert done.returncode in ENDS, (words, done.stderr)
        assert "Traceback" not in done.stderr
