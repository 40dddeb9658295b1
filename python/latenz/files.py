"""Files that appear only when they are whole, and folders that are ours while we write in them.

Nothing is written through what another user has put there: not through links, not into folders
that were exchanged meanwhile. Where somebody else can make a path lead elsewhere, what is written
goes by a descriptor of the folder that was found at first (`path_walk`).
"""

import errno
import os
import secrets
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from latenz.errors import BadInput, call
from latenz.outputs import remember
from latenz.path_walk import End, Walk, is_ours, is_shared, user_name

_MOST_OF_NAME = 200  # of 255 bytes: there is room for what makes a name unlike all others
_ALL_READ = 0o666
_OWN_DESCRIPTORS = Path("/proc/self/fd")
_GIVEN_RIGHTS = "system.posix_acl_default"  # acl(5): what a folder gives to all that is made in it


@contextmanager
def replacing(path: Path, *, renewable: bool = True) -> Iterator[Path]:
    """Give a new file that takes the place of `path` at the end, unless an error comes first.

    What is not a regular file, such as /dev/null or /dev/stdout, is written to and never replaced.

    Args:
        path: The file.
        renewable: Whether it can be made again, so that other outputs may replace it unasked.

    Raises:
        BadInput: The path is a folder, leads through a link of another user, is a pipe of another
            user, or cannot be written.
    """
    try:
        with Walk(path) as walk:
            is_special = _is_special(path, walk.end())
        with Walk(path.parent) as walk:
            parent = walk.folder()
            beside = walk.is_private and not is_special
            with _partial(path.name, path.parent if beside else scratch_place()) as partial:
                yield partial
                if is_special:
                    _pour(partial, path)
                elif beside:
                    partial.chmod(_ALL_READ & ~_umask())
                    if renewable:
                        remember(partial)
                    partial.replace(path)
                else:
                    _bring(partial, parent, path.name, renewable)
    except OSError as error:
        raise _unwritable(path, error, "name another file") from None


class OwnFolder:
    """A folder in which nobody else writes, whatever becomes of the folders around it.

    Args:
        given: Where it is; it and its parents are made if absent.

    Attributes:
        given: What the user calls it.
        path: What to write by, for us and the programs that we start. It is `given`, unless
            another user could exchange that; then it is valid while this object and we live.

    Raises:
        BadInput: It belongs to another user, others may write there, or it cannot be made.
    """

    def __init__(self, given: Path) -> None:
        self.given = given
        try:
            with Walk(given, make=True) as walk:
                folder = walk.folder()
                _check_own(given, os.fstat(folder))
                self.path = given if walk.is_private else self._held(folder)
        except OSError as error:
            raise _unwritable(given, error, "name another folder") from None

    def _held(self, folder: int) -> Path:
        descriptor = os.dup(folder)
        weakref.finalize(self, os.close, descriptor)
        path = f"/proc/{os.getpid()}/fd/{descriptor}"
        with suppress(OSError):  # most folders have none
            os.removexattr(path, _GIVEN_RIGHTS)
        call(path, os.fspath(self.given))
        return Path(path)


def make_folder(path: Path) -> None:
    """Make a folder and its parents where they are absent, whoever they belong to.

    Raises:
        BadInput: The path leads through a link of another user, or cannot be made.
    """
    try:
        with Walk(path, make=True) as walk:
            walk.folder()
    except OSError as error:
        raise _unwritable(path, error, "name another folder") from None


@contextmanager
def appearing_folder(path: Path) -> Iterator[Path]:
    """Give a new folder that takes the place of `path` at the end, unless an error comes first.

    Raises:
        BadInput: There is something else than an empty folder, or it cannot be written.
    """
    try:
        with Walk(path.parent, make=True) as walk:
            parent = walk.folder()
            _check_vacant(path, parent)
            name = _new_name(path.name)
            os.mkdir(name, 0o700, dir_fd=parent)
            try:
                around = OwnFolder(path.parent / name)
                made = around.path / "made"
                made.mkdir(0o755)
                yield made
                os.rename(made, path.name, dst_dir_fd=parent)
            finally:
                _remove(name, parent)
    except OSError as error:
        raise _unwritable(path, error, "name another folder") from None


def file_in(folder: Path, name: str) -> Path | None:
    """Return the file of that name in a folder that may be a stranger's; None if there is none.

    Raises:
        BadInput: It lies outside, through links or `..`, or is not a regular file.
    """
    path = folder / name
    try:
        found = path.stat()
        real = path.resolve()
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise BadInput("is a link that leads nowhere", str(path), "copy the file") from None
        return None
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no path"
        raise BadInput(f"cannot be read ({reason})", str(path)) from None
    if not real.is_relative_to(folder.resolve()):
        raise BadInput("leaves its folder", str(path), "copy what it leads to into the folder")
    if not stat.S_ISREG(found.st_mode):
        raise BadInput("is not a regular file", str(path), "remove it")
    return path


@contextmanager
def lock_file(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to lock, made if absent, in a folder of ours.

    Raises:
        BadInput: It cannot be made, or is a link.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.fdopen(os.open(path, flags, 0o600), "wb")
    except OSError as error:
        raise _unwritable(path, error, "name another folder") from None
    with file:
        yield file


def scratch_place() -> Path:
    """Return where temporary files can be made: TMPDIR, unless other users can exchange that."""
    usual = Path(tempfile.gettempdir())
    places = (usual, Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - mkstemp(3) makes the names
    return next(
        (each for each in places if is_private_place(each) and os.access(each, os.W_OK)), usual
    )


def is_private_place(path: Path) -> bool:
    """Tell whether nobody but root and us can exchange a folder, or the nearest one that exists."""
    try:
        with Walk(path) as walk:
            walk.folder()
            return walk.is_private
    except FileNotFoundError:
        return is_private_place(path.parent)
    except (OSError, BadInput):
        return False


def _is_special(path: Path, end: End) -> bool:
    """Tell whether a path is to be written to, not replaced.

    Raises:
        BadInput: It is neither.
    """
    if end.found is None:
        return False
    kind = end.found.st_mode
    if stat.S_ISDIR(kind):
        raise BadInput("is a folder", str(path), "name a file")
    if end.of_process:
        return True
    if stat.S_ISREG(kind):
        return False
    is_device = stat.S_ISCHR(kind) or stat.S_ISBLK(kind)
    if not (is_ours(end.found) or (is_device and end.is_private)):
        owner = user_name(end.found.st_uid)
        raise BadInput(f"is not a regular file, and belongs to {owner}", str(path), "name a file")
    return True


@contextmanager
def _partial(name: str, folder: Path) -> Iterator[Path]:
    descriptor, made = tempfile.mkstemp(prefix=f".{name[:_MOST_OF_NAME]}.", dir=folder)
    os.close(descriptor)
    partial = Path(made)
    try:
        yield partial
    finally:
        with suppress(OSError):
            partial.unlink()


def _pour(whole: Path, path: Path) -> None:
    """Write to what is not a regular file, or to what a process has open."""
    with Walk(path) as walk:
        end = walk.end()
        _is_special(path, end)
        opened = _opened(end)
    with os.fdopen(opened, "wb") as place, whole.open("rb") as source:
        shutil.copyfileobj(source, place)


def _opened(end: End) -> int:
    if end.of_process:
        own = _OWN_DESCRIPTORS.stat()
        if end.name.isdigit() and os.path.samestat(own, os.fstat(end.folder)):
            return os.dup(int(end.name))  # goes on where that was: the file may hold something
        return os.open(end.name, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY, dir_fd=end.folder)
    flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(end.name, flags, dir_fd=end.folder)
    if end.found is None or not os.path.samestat(end.found, os.fstat(descriptor)):
        os.close(descriptor)
        raise OSError(errno.ESTALE, "was exchanged meanwhile")
    return descriptor


def _bring(whole: Path, folder: int, name: str, renewable: bool) -> None:
    """Copy a file into a folder, under that name once it is whole."""
    new = _new_name(name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(new, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as copy, whole.open("rb") as source:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fchmod(copy.fileno(), _ALL_READ & ~_umask())
            if renewable:
                remember(copy.fileno())
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(new, dir_fd=folder)
        raise


def _new_name(name: str) -> str:
    """Return a hidden name that nobody can foresee."""
    return f".{name[:_MOST_OF_NAME]}.{secrets.token_hex(8)}"


def _check_own(path: Path, found: os.stat_result) -> None:
    if not is_ours(found):
        what = f"belongs to {user_name(found.st_uid)}"
    elif is_shared(found):
        what = "is a folder that others may write to"
    else:
        return
    raise BadInput(what, str(path), "name a new folder, such as one in it")


def _check_vacant(path: Path, parent: int) -> None:
    try:
        is_folder = stat.S_ISDIR(os.stat(path.name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return
    if is_folder:
        descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=parent)
        try:
            with os.scandir(descriptor) as names:
                if next(names, None) is None:
                    return
        finally:
            os.close(descriptor)
    raise BadInput("exists and is not empty", str(path), "name a new folder with -o")


def _remove(name: str, parent: int) -> None:
    """Remove a folder of ours, but nothing that somebody put in its place."""
    with suppress(OSError):
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        try:
            if os.fstat(descriptor).st_uid == os.geteuid():
                shutil.rmtree("made", ignore_errors=True, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        os.rmdir(name, dir_fd=parent)


def _unwritable(path: Path, error: OSError, remedy: str) -> BadInput:
    return BadInput(f"cannot be written ({error.strerror or error})", str(path), remedy)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
