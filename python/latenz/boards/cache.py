"""Latenz's cache: what was fetched or made once, kept whole and checked when it is used.

It lies in `$XDG_CACHE_HOME/latenz` (`~/.cache/latenz` otherwise) and can be deleted at any time.
It is ours alone: what lies there is booted and run, so nobody else may put anything there.
Files appear by renaming, under a lock for each, so that processes side by side share it. What
nobody has used for a month is deleted.
"""

import errno
import fcntl
import hashlib
import json
import os
import pwd
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from latenz.errors import BadInput
from latenz.files import is_private_place, lock_file, make_folder
from latenz.path_walk import Walk, is_ours, user_name

Make = Callable[[Path], None]
"""Writes the content of a file to the path it is given."""
_UNUSED_AFTER_S = 30 * 86_400


def location() -> Path:
    """Return where the cache lies or would lie.

    Root has its own where the usual place is one that another user could exchange: `sudo -E` keeps
    the variables of whoever calls it.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = home if home.is_absolute() else Path.home() / ".cache"  # relative ones do not count
    return _of_root(base / "latenz") if os.geteuid() == 0 else base / "latenz"


@cache
def _of_root(wanted: Path) -> Path:
    if is_private_place(wanted):
        return wanted
    own = Path(pwd.getpwuid(0).pw_dir) / ".cache/latenz"
    say(f"{wanted} is in the hands of another user: the cache is {own}")
    return own


def folder(*parts: str) -> Path:
    """Return a folder of the cache, made if absent.

    Raises:
        BadInput: It cannot be made, or the cache belongs to another user.
    """
    whole = location()
    path = whole.joinpath(*parts)
    with explaining(path):
        make_folder(whole)
        _keep_private(whole)
        path.mkdir(parents=True, exist_ok=True)
    return path


def _keep_private(whole: Path) -> None:
    with Walk(whole) as walk:
        found = os.fstat(walk.folder())
    if not is_ours(found):
        remedy = "set XDG_CACHE_HOME to a folder of your own"
        raise BadInput(f"belongs to {user_name(found.st_uid)}", str(whole), remedy)
    if found.st_mode & 0o077 and found.st_uid == os.geteuid():
        whole.chmod(0o700)


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Turn errors of the file system at `path` into one clear line.

    Raises:
        BadInput: The disk is full, or the path cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise unwritable(path, error.errno == errno.ENOSPC, error.strerror or str(error)) from None


def unwritable(path: Path, full: bool, reason: str) -> BadInput:
    """Return the error for a path that cannot be written, because its disk is full or else."""
    if full:
        remedy = "free some space, or set XDG_CACHE_HOME to a folder on another disk"
        return BadInput("the disk is full", str(path), remedy)
    remedy = "set XDG_CACHE_HOME to a folder that can be written"
    return BadInput(f"cannot be written ({reason})", str(path), remedy)


def say(text: str) -> None:
    """Tell the user one line on standard error."""
    sys.stderr.write(f"latenz: {text}\n")


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock of that name; other processes that want it wait."""
    path = folder("locks") / name
    with lock_file(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another Latenz that is making {name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file; a file that did not change is read once a process."""
    state = path.stat()
    return _sha256(path, state.st_ino, state.st_mtime_ns, state.st_size)


@cache
def _sha256(path: Path, _inode: int, _mtime_ns: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """Give a new file that takes the place of `path` at the end, unless an error comes first.

    Raises:
        BadInput: The disk is full, or the path cannot be written.
    """
    partial = None
    try:
        with explaining(path):
            descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            os.close(descriptor)
            partial = Path(name)
            yield partial
            partial.chmod(0o644)
            partial.replace(path)
    finally:
        if partial is not None:
            with suppress(OSError):
                partial.unlink()


def used(*paths: Path) -> None:
    """Note that files of the cache are in use; a cache that may only be read stays as it is."""
    for path in paths:
        with suppress(OSError):
            os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))


def forget_unused(folder: Path) -> None:
    """Delete what nobody has used for a month: images and packages of versions gone by."""
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            if path.is_file() and time.time() - path.stat().st_atime > _UNUSED_AFTER_S:
                path.unlink()


def digest(content: bytes) -> str:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def made(name: str, inputs: object, make: Make) -> tuple[Path, str]:
    """Return a file that `inputs` determine, and its SHA-256; made if absent or damaged.

    Args:
        name: First part of the file's name.
        inputs: All that the content depends on, as JSON values.
        make: Writes the content to the path it is given.

    Raises:
        BadInput: `make` raised it, or the cache cannot be written.
    """
    key = digest(json.dumps(inputs, sort_keys=True).encode())[:16]
    path = folder("images") / f"{name}-{key}"
    record = path.with_name(f"{path.name}.sha256")
    with locked(path.name):
        if path.exists() and record.exists():
            wanted = record.read_text().strip()
            if sha256(path) == wanted:
                used(path, record)
                return path, wanted
            say(f"{path}: is damaged (not the content that was written); made again")
        with explaining(record):
            record.unlink(missing_ok=True)
        with appearing(path) as partial:
            make(partial)
        with appearing(record) as partial:
            partial.write_text(sha256(path) + "\n")
        forget_unused(path.parent)
        return path, sha256(path)
