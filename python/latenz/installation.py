"""Where Latenz is installed, and what lies beside its code: built programs, experiments.

In its own folder, a clone, `setup/ensure` builds what is missing, and experiments are where people
write them. Installed from a package, all of it is in the package's own tree, and nothing is built.
"""

import functools
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from latenz.errors import BadInput, closest_name, shown

Kind = Literal["experiment", "system"]
_FOLDERS: dict[Kind, str] = {"experiment": ".", "system": "systems"}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@functools.cache
def clone() -> Path | None:
    """Return Latenz' own folder if this is run from there; None if it is installed."""
    root = Path(__file__).parents[2]
    return root if (root / "setup/ensure").is_file() else None


def package() -> Path:
    """Return the folder that the native core was installed into."""
    from latenz import _core

    return Path(_core.__file__).parent


def built(*parts: str) -> Path:
    """Return where something is that was built for boards; it need not be there.

    Args:
        parts: Its place, such as "firmware", "virt-O2", "latency.elf".
    """
    return (Path(sys.prefix) if clone() else package()).joinpath(*parts)


def built_file(*parts: str) -> Path:
    """Return a file that was built for boards.

    Raises:
        BadInput: It was not built.
    """
    path = built(*parts)
    if not path.is_file():
        raise BadInput("was not built", str(path), remedy("boards"))
    return path


def remedy(group: str) -> str:
    """Return what brings something that is built, by the set-up group that builds it."""
    if clone():
        return f"run setup/ensure {group}"
    return "install a wheel of a release, or clone Latenz and run ./latenz there"


def add_python(group: str) -> str:
    """Return the command that adds the Python packages of a group."""
    if clone():
        return f"setup/ensure {group}"
    prefix = Path(sys.prefix)
    if prefix.parts[-3:-1] == ("uv", "tools"):
        return f"uv tool install --force 'latenz[{group}]'"
    if prefix.parts[-3:-1] == ("pipx", "venvs"):
        return f"pipx install --force 'latenz[{group}]'"
    return f"{sys.executable} -m pip install 'latenz[{group}]'"


def experiments() -> Path:
    """Return the folder of the experiments that come with Latenz."""
    return (clone() or package()) / "experiments"


def shipped(kind: Kind) -> dict[str, Path]:
    """Return the files of a kind that come with Latenz, by name."""
    folder = experiments() / _FOLDERS[kind]
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def file_or_shipped(path: Path, kind: Kind) -> Path:
    """Return a file as given, or the one of that name that comes with Latenz.

    Args:
        path: A file, or a name alone, such as `quick`; a file of that name in the current folder
            goes before.
        kind: What it is to be.

    Raises:
        BadInput: There is neither.
    """
    name = str(path)
    if path.exists() or path.is_symlink():
        return path
    known = shipped(kind)
    if name in known:
        return known[name]
    if _PLAIN_NAME.fullmatch(name) and path.suffix != ".toml":
        raise BadInput(f"there is no {kind} of this name", shown(name), _known(name, known))
    if path.stem in known and path.suffix == ".toml":
        remedy = f"name your own file, or {path.stem} for the {kind} that comes with Latenz"
        raise BadInput("there is no such file", name, remedy)
    return path


def _known(name: str, known: Iterable[str]) -> str:
    if near := closest_name(name, known):
        return f"did you mean {near}?"
    return f"name a file, or one that comes with Latenz: {', '.join(known)}"
