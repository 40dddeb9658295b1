"""What a file is that was given to the wrong command, and which one reads it.

Only for error messages: what a command reads it finds out by itself.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from latenz.errors import BadInput

_HEAD = 1 << 16
_MAGIC = (
    (b"\x17\x08\x44tracing", "a recording of trace-cmd", "latenz explain"),
    (b"PERFILE2", "a recording of perf", "latenz explain"),
    (b"\x1f\x8b", "compressed by gzip", "gunzip"),
    (b"\xfd7zXZ\0", "compressed by xz", "unxz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "unzstd"),
    (b"BZh", "compressed by bzip2", "bunzip2"),
    (b"\xff\xfe", "text in UTF-16", "iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "text in UTF-16", "iconv -f UTF-16 -t UTF-8"),
    (b"\x7fELF", "a program", None),
    (b"\x89PNG", "a picture", None),
    (b"%PDF", "a PDF", None),
)
_EVENT = re.compile(
    rb"^\s*\S.{0,60}-\d+\s+(?:\(.{0,12}\)\s+)?\[\d{3}\].{0,24}\s\d+\.\d{6,9}:\s\w+:", re.M
)
_PAGE = re.compile(rb"<(!doctype html|html|svg)", re.I)
_SYSTEM = frozenset(("platform", "slot", "source"))
_EXPERIMENT = frozenset(("probe", "stressor", "matrix", "condition", "deadline", "duration"))


def other_use(head: bytes) -> str | None:
    """Return what a file is that begins like this, and which command reads it; None if unknown."""
    for magic, kind, command in _MAGIC:
        if head.startswith(magic):
            return f"it is {kind}" + (f": {command} FILE" if command else "")
    if _EVENT.search(head):
        return "it is the text of a trace: latenz explain FILE"
    if _PAGE.search(head[:1000]):
        return "it is a page or picture, not what it was made from"
    if head.lstrip()[:1] not in (b"{", b"<"):
        return _toml_use(head)
    return None


def other_use_of(path: Path) -> str | None:
    """Return the same for a file that is no trace, None also if it cannot be read."""
    from latenz import importers

    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
        return (
            other_use(head) or f"it is output of {importers.recognise(head, '')}: latenz show FILE"
        )
    except (BadInput, OSError):
        return None


def use_of_table(table: dict[str, Any]) -> str | None:
    """Return what a TOML document is, by its keys."""
    if _SYSTEM & table.keys():
        return "it is a system file: latenz bound, simulate, check, explore or hypervisor run FILE"
    if _EXPERIMENT & table.keys():
        return "it is an experiment file: latenz run FILE"
    return None


def _toml_use(head: bytes) -> str | None:
    text = head.decode("utf-8", errors="replace")
    while text:
        try:
            return use_of_table(tomllib.loads(text))
        except (tomllib.TOMLDecodeError, ValueError, RecursionError):
            if len(head) < _HEAD:
                return None
            text = text.rpartition("\n[")[0]  # a file that is longer: its last table is cut
    return None
