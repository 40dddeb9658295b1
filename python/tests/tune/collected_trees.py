"""Collected trees of machines, and variations of them in which one setting is right or wrong.

A variation is data (`python/tests/data/tune/cases.toml`): what differs from the collected tree. It
is written into the tree, looked at, and taken back.
"""

import re
import shutil
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from latenz.tune.context import Context, online_cpus
from latenz.tune.cpus import format_list, format_mask
from latenz.tune.root import Root

DATA = Path(__file__).parents[1] / "data/tune"
ISOLATED = {"debian12": "3", "linux618": "1"}
"""The CPU that each layout is tuned for, or is to be."""
LAYOUTS = tuple(ISOLATED)
BASES = {
    ("debian12", "right"): "debian12/tuned",
    ("debian12", "wrong"): "debian12/untuned",
    ("linux618", "right"): "linux618",
    ("linux618", "wrong"): "linux618",
}
"""The collected tree that a variation of a layout begins with."""
_KEYS = {"profile", "files", "cmdline", "drop", "flags", "fragments", "threads", "move", "state"}
_POLICIES = {"TS": 0, "FF": 1, "RR": 2, "DLN": 6}
_KERNEL, _NO_SETAFFINITY = 0x0020_0000, 0x0400_0000
_FIRST_MADE_UP = 60_000  # numbers of threads that no collected tree has


@dataclass(frozen=True)
class Variation:
    """What differs from a collected tree.

    Attributes:
        id: The entry of the catalogue.
        layout: Which machine.
        side: "right" or "wrong".
        changes: As in cases.toml.
    """

    id: str
    layout: str
    side: str
    changes: dict[str, Any]

    @property
    def state(self) -> str:
        """What the check must say."""
        return str(self.changes.get("state", "ok" if self.side == "right" else "wrong"))


def variations() -> list[Variation]:
    """Return all variations of cases.toml: each id on each layout, right and wrong."""
    cases = tomllib.loads((DATA / "cases.toml").read_text("utf-8"))
    found = []
    for id_, case in cases.items():
        for layout in LAYOUTS:
            for side in ("right", "wrong"):
                changes: dict[str, Any] = {}
                for part in (case, case.get(side, {}), case.get(layout, {}).get(side, {})):
                    changes |= {key: value for key, value in part.items() if key in _KEYS}
                found.append(Variation(id_, layout, side, changes))
    return found


def unpack(folder: Path) -> Path:
    """Unpack collected trees and fragments into a folder; return it."""
    for name in ("debian12", "linux618", "fragments"):
        with tarfile.open(DATA / f"{name}.tar.xz") as archive:
            archive.extractall(folder)
    return folder


@contextmanager
def unpacked() -> Iterator[Path]:
    """Give a folder with the collected trees; in memory, where that can be had."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield unpack(Path(name))


class Tree:
    """A tree in which files are changed for a while."""

    def __init__(self, folder: Path, isolated: str) -> None:
        self.folder = folder
        self._before: dict[Path, bytes | str | None] = {}
        self._made: list[Path] = []
        online = online_cpus(Root(folder))
        iso = frozenset(map(int, isolated.split(",")))
        release = (folder / "proc/sys/kernel/osrelease").read_text().strip()
        self._words = {"{release}": release}
        for name, cpus in (("iso", iso), ("hk", online - iso), ("all", online)):
            self._words |= {f"{{{name}}}": format_list(cpus), f"{{{name}_mask}}": format_mask(cpus)}

    def text(self, text: str) -> str:
        """Replace the placeholders of a text."""
        for placeholder, word in self._words.items():
            text = text.replace(placeholder, word)
        return text

    def set(self, path: Path, content: bytes | None, link: str | None = None) -> None:
        """Give a file a content, or a link's target, or take it away; remember what was there."""
        if path not in self._before:
            self._before[path] = _content(path)
        if path.is_symlink() or path.exists():
            path.unlink()
        for parent in reversed(path.parents):
            if not parent.exists():
                parent.mkdir()
                self._made.append(parent)
        if link is not None:
            path.symlink_to(link)
        elif content is not None:
            path.write_bytes(content)

    def matching(self, pattern: str) -> list[Path]:
        """Return the files that a pattern matches; the path itself if it is none."""
        relative = self.text(pattern).lstrip("/")
        if not re.search(r"[*?\[]", relative):
            return [self.folder / relative]
        found = sorted(self.folder.glob(relative))
        assert found, f"{pattern} matches nothing in {self.folder}"
        return found

    def restore(self) -> None:
        """Take all changes back."""
        for path, before in self._before.items():
            if path.is_symlink() or path.exists():
                path.unlink()
            if isinstance(before, bytes):
                path.write_bytes(before)
            elif before is not None:
                path.symlink_to(before)
        for folder in reversed(self._made):
            shutil.rmtree(folder)
        self._before, self._made = {}, []


def _content(path: Path) -> bytes | str | None:
    if path.is_symlink():
        return str(path.readlink())
    return path.read_bytes() if path.is_file() else None


@contextmanager
def varied(trees: Path, variation: Variation, profile: str) -> Iterator[Context]:
    """Give the context of a collected tree with a variation in it.

    Args:
        trees: Where they were unpacked.
        variation: What differs.
        profile: What the machine is checked as, unless the variation says it.
    """
    folder = trees / BASES[variation.layout, variation.side]
    tree = Tree(folder, ISOLATED[variation.layout])
    changes = variation.changes
    try:
        _change_files(tree, changes, trees / "fragments")
        _change_threads(tree, changes)
        chosen = changes.get("profile", profile)
        yield Context.of(Root(folder), ISOLATED[variation.layout], chosen)
    finally:
        tree.restore()


def _change_files(tree: Tree, changes: dict[str, Any], fragments: Path) -> None:
    for name in changes.get("fragments", ()):
        for path in sorted((fragments / name).rglob("*")):
            if path.is_file():
                text = tree.text(path.read_text("utf-8"))
                tree.set(tree.folder / path.relative_to(fragments / name), text.encode())
    cmdline = tree.folder / "proc/cmdline"
    words = cmdline.read_text().split()
    dropped = changes.get("drop", ())
    words = [word for word in words if word.partition("=")[0] not in dropped]
    if "cmdline" in changes or dropped:
        words.append(tree.text(changes.get("cmdline", "")))
        tree.set(cmdline, (" ".join(words) + "\n").encode())
    if "flags" in changes:
        cpuinfo = tree.folder / "proc/cpuinfo"
        text = cpuinfo.read_text()
        for flag in changes["flags"]:
            text = re.sub(rf" {flag.lstrip('-')}\b", "", text)
            if not flag.startswith("-"):
                text = re.sub(r"^(flags\s*:.*)$", rf"\1 {flag}", text, flags=re.MULTILINE)
        tree.set(cpuinfo, text.encode())
    for pattern, wanted in changes.get("files", {}).items():
        for path in tree.matching(pattern):
            _change_file(tree, path, wanted)


def _change_file(tree: Tree, path: Path, wanted: Any) -> None:
    """Change a file: false takes it away, a text replaces it, tables edit it or make a link."""
    if wanted is False:
        tree.set(path, None)
    elif isinstance(wanted, str):
        tree.set(path, tree.text(wanted).encode())
    elif "link" in wanted:
        tree.set(path, None, tree.text(wanted["link"]))
    elif "append" in wanted:
        tree.set(path, path.read_bytes() + tree.text(wanted["append"]).encode())
    else:
        regex, replacement = wanted["edit"]
        text, count = re.subn(
            tree.text(regex), tree.text(replacement), path.read_text("utf-8"), flags=re.MULTILINE
        )
        assert count, f"{regex} is not in {path}"
        tree.set(path, text.encode())


def _change_threads(tree: Tree, changes: dict[str, Any]) -> None:
    for pattern, cpus in changes.get("move", {}).items():
        for status in sorted(tree.folder.glob("proc/[0-9]*/task/*/status")):
            text = status.read_text()
            if fnmatchcase(text.partition("\n")[0].partition("\t")[2], pattern):
                tree.set(status, _allowed(text, tree.text(cpus)).encode())
    for at, thread in enumerate(changes.get("threads", ())):
        _make_up(tree, _FIRST_MADE_UP + at, thread)


def _make_up(tree: Tree, number: int, thread: dict[str, Any]) -> None:
    """Add a thread, in the form of the first process of the collected tree."""
    name, kernel, bound = thread["name"], thread.get("kernel", False), thread.get("bound", False)
    cpus = tree.text(thread["cpus"])
    init = tree.folder / "proc/1/task/1"
    fields = (init / "stat").read_text().rpartition(") ")[2].split()
    fields[6] = str(kernel * _KERNEL | bound * _NO_SETAFFINITY)
    fields[36] = re.split("[-,]", cpus)[0]
    fields[37] = str(thread.get("priority", 0))
    fields[38] = str(_POLICIES[thread.get("policy", "TS")])
    status = re.sub(r"\AName:\t.*", f"Name:\t{name}", (init / "status").read_text())
    folder = tree.folder / f"proc/{number}"
    tree.set(folder / "comm", f"{name}\n".encode())
    tree.set(folder / "cmdline", b"" if kernel else name.encode() + b"\0")
    task = folder / f"task/{number}"
    tree.set(task / "stat", f"{number} ({name}) {' '.join(fields)}\n".encode())
    tree.set(task / "status", _allowed(status, cpus).encode())


def _allowed(status: str, cpus: str) -> str:
    return re.sub(r"^Cpus_allowed_list:\t.*", f"Cpus_allowed_list:\t{cpus}", status, flags=re.M)
