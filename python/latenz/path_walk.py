"""Where a path leads, found by going there step by step, and never by a link of another user.

Who owns a folder can at any time put symbolic links into it, or one in place of a folder of ours
that lies there. So a path is walked by descriptors: what was found stays found. A link is followed
only if it belongs to root or to us.
"""

import errno
import os
import pwd
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from latenz.errors import BadInput

NAMED = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags to open whatever has a name: not for its content, and not what a link leads to."""
_MOST_LINKS = 40  # as the kernel follows, path_resolution(7)
_NEW_FOLDER = 0o755  # whatever the umask: who could write there could lead us elsewhere


@dataclass(frozen=True)
class End:
    """Where a path leads.

    Attributes:
        folder: Descriptor of the folder that holds it, open while the walk is.
        name: Its name there.
        found: What is there, None if nothing is.
        of_process: Whether it is what a process has open, named by a link in /proc.
        is_private: Whether nobody but root and us can make the path lead elsewhere.
    """

    folder: int
    name: str
    found: os.stat_result | None
    of_process: bool
    is_private: bool


class Walk:
    """A walk along a path; as a context it closes what it opened.

    Args:
        path: Where to go.
        make: Make folders that are not there.

    Raises:
        BadInput: A link of another user lies on the way.
        OSError: As from the system call that found it.
    """

    def __init__(self, path: Path, *, make: bool = False) -> None:
        self._path = path
        self._make = make
        self._links = 0
        self._proc = _device(Path("/proc"))
        self._left = _parts(os.fspath(path.absolute()))
        # From the root down to here: `..` goes back, wherever a folder was moved meanwhile.
        self._folders = [os.open("/", NAMED | os.O_DIRECTORY)]

    def __enter__(self) -> "Walk":
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what was opened."""
        while self._folders:
            os.close(self._folders.pop())

    @property
    def here(self) -> int:
        """Descriptor of the folder that was reached, open while the walk is."""
        return self._folders[-1]

    @property
    def is_private(self) -> bool:
        """Whether nobody but root and us can put anything in place of where we are."""
        return all(is_private(os.fstat(each)) for each in self._folders)

    def folder(self) -> int:
        """Go to the end, which must be a folder; return its descriptor, open while the walk is."""
        while self._left:
            self._step(self._left.pop())
        return self.here

    def end(self) -> End:
        """Go to the end, whatever it is; links are followed there as well."""
        while True:
            while len(self._left) > 1:
                self._step(self._left.pop())
            name = self._left[0] if self._left else "."
            found = self._look(name)
            of_process = False
            if found is not None and stat.S_ISLNK(found.st_mode):
                self._check_link(found)
                of_process = found.st_dev == self._proc
                if not of_process:
                    self._left.pop()
                    self._follow(os.readlink(name, dir_fd=self.here))
                    continue
                found = os.stat(name, dir_fd=self.here)
            return End(self.here, name, found, of_process, self.is_private)

    def _look(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.here, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _step(self, name: str) -> None:
        if name == "..":
            if len(self._folders) > 1:
                os.close(self._folders.pop())
            return
        try:
            descriptor = os.open(name, NAMED, dir_fd=self.here)
        except FileNotFoundError:
            if not self._make:
                raise
            descriptor = self._made(name)
        try:
            found = os.fstat(descriptor)
            if stat.S_ISLNK(found.st_mode):
                self._check_link(found)
                if found.st_dev == self._proc:
                    self._jump(os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=self.here))
                else:
                    self._follow(os.readlink("", dir_fd=descriptor))
            elif stat.S_ISDIR(found.st_mode):
                self._folders.append(os.dup(descriptor))
            else:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        finally:
            os.close(descriptor)

    def _made(self, name: str) -> int:
        with suppress(FileExistsError):  # somebody else was quicker: whoever that is, is seen next
            os.mkdir(name, _NEW_FOLDER, dir_fd=self.here)
        return os.open(name, NAMED, dir_fd=self.here)

    def _jump(self, descriptor: int) -> None:
        """Go on from a folder that is held already: how it was reached has no say."""
        while self._folders:
            os.close(self._folders.pop())
        self._folders.append(descriptor)

    def _follow(self, target: str) -> None:
        if target.startswith("/"):
            self._jump(os.open("/", NAMED | os.O_DIRECTORY))
        self._left += _parts(target)

    def _check_link(self, found: os.stat_result) -> None:
        self._links += 1
        if self._links > _MOST_LINKS:
            raise BadInput("symbolic links without end", str(self._path), "mend them")
        if found.st_uid not in _trusted():
            raise BadInput(
                f"leads through a symbolic link of {user_name(found.st_uid)}",
                str(self._path),
                "name the folder itself",
            )


def is_private(found: os.stat_result) -> bool:
    """Return whether nobody but root and us can exchange what lies in a folder.

    In a sticky folder, such as /tmp, others can add names, but not exchange what is ours.
    """
    return found.st_uid in _trusted() and (
        not is_shared(found) or bool(found.st_mode & stat.S_ISVTX)
    )


def is_shared(found: os.stat_result) -> bool:
    """Return whether others than its owner may write; the user's own group is no other."""
    by_group = found.st_mode & stat.S_IWGRP and found.st_gid != found.st_uid
    return bool(by_group or found.st_mode & stat.S_IWOTH)


def is_ours(found: os.stat_result) -> bool:
    """Return whether something belongs to root or to us."""
    return found.st_uid in _trusted()


def user_name(uid: int) -> str:
    """Return what people call a user."""
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _trusted() -> tuple[int, ...]:
    """Root, us, and who owns `/`: in a user namespace root may have no number of its own."""
    return 0, os.geteuid(), _root_folder_uid()


@cache
def _root_folder_uid() -> int:
    return Path("/").stat().st_uid


def _parts(path: str) -> list[str]:
    """Return the names in a path, the last one first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _device(path: Path) -> int | None:
    try:
        return path.stat().st_dev
    except OSError:
        return None
