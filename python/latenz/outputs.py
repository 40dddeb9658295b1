"""Which files a command may write: never what it reads, nor, unasked, what others wrote.

A file that Latenz writes, and could make again, is remembered by an extended attribute with its
size and time, so that one that somebody edited or replaced since counts as somebody's. Pages say
who made them as well: that survives a copy, and places without extended attributes.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from latenz.errors import BadInput
from latenz.path_walk import Walk

_WRITTEN = "user.latenz.written"
_PAGE_MARK = b'<meta name="generator" content="Latenz '
_HEAD_BYTES = 4096


def check_output(
    output: Path | None,
    inputs: Iterable[Path | None] = (),
    *,
    force: bool = False,
) -> None:
    """Refuse to write over an input, or over what Latenz did not write; call it before any work.

    Args:
        output: The file that is to be written; None: none is.
        inputs: Files and folders that the command reads.
        force: Whether the user allows to replace what others wrote. An input is never replaced.

    Raises:
        BadInput: It is an input, or lies in an input's folder and is not a page of Latenz; or
            others wrote it, and `force` is not given.
    """
    found = _regular_file(output) if output is not None else None
    if output is None or found is None:
        return
    written = _is_written_by_us(output)
    is_page = written and output.suffix == ".html"
    for given in inputs:
        if given is not None and _is_or_lies_in(output, found, given, is_page=is_page):
            raise BadInput("is what the command reads", str(output), "name another file")
    if force or found.st_size == 0 or written:
        return
    raise BadInput(
        "exists and was not written by Latenz, or cannot be made again",
        str(output),
        "name another file, or add --force",
    )


def check_outputs(
    outputs: Iterable[Path | None], inputs: Iterable[Path | None] = (), *, force: bool = False
) -> None:
    """Check several outputs of a command, which must be different files.

    Raises:
        BadInput: As `check_output`, or two are one file.
    """
    named = [each for each in outputs if each is not None and each != Path(os.devnull)]
    given = list(inputs)
    for number, output in enumerate(named):
        if any(output.resolve() == other.resolve() for other in named[:number]):
            raise BadInput("is named for two outputs", str(output), "name two files")
        check_output(output, given, force=force)


def remember(file: Path | int) -> None:
    """Remember that Latenz wrote a file and can make it again, where the file system can.

    Args:
        file: Its path or descriptor; nothing is written to it any more.
    """
    with suppress(OSError):
        os.setxattr(file, _WRITTEN, _mark(os.stat(file)))  # noqa: PTH116 - or a descriptor


def _mark(found: os.stat_result) -> bytes:
    return f"{found.st_size} {found.st_mtime_ns}".encode()


def _is_written_by_us(file: Path) -> bool:
    with suppress(OSError):
        if os.getxattr(file, _WRITTEN) == _mark(file.stat()):
            return True
    with suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe by now?
        with os.fdopen(descriptor, "rb") as content:
            return _PAGE_MARK in content.read(_HEAD_BYTES)
    return False


def _regular_file(path: Path) -> os.stat_result | None:
    """Return what is there; None: nothing, or no regular file, or what a process has open."""
    try:
        with Walk(path) as walk:
            end = walk.end()
    except OSError:
        return None  # the writer tells why it cannot be written
    if end.found is None or end.of_process or not stat.S_ISREG(end.found.st_mode):
        return None
    return end.found


def _is_or_lies_in(output: Path, found: os.stat_result, given: Path, *, is_page: bool) -> bool:
    """Tell whether a file is an input or a part of one; pages in a run's folder may be renewed."""
    with suppress(OSError):
        if os.path.samestat(found, given.stat()):
            return True
    of_run = (given.parent / "run.json").exists()
    folder = given if given.is_dir() else given.parent if of_run else None
    return folder is not None and not is_page and output.resolve().is_relative_to(folder.resolve())
