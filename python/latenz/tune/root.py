"""A machine's files: its own (`/`), a folder that holds another machine's, or a snapshot's tar.

Paths are absolute, as that machine knows them. In a folder or a tar, symbolic links lead to where
they would lead on that machine, and never out of it.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from latenz.errors import BadInput
from latenz.machine import Tree, measured_target
from latenz.unpacking import Damaged, Member, members

ABSENT = "there is no such file"
LARGEST = 4 << 20
"""Files with more bytes than that are not read: none that is asked for is that large."""
LEFT_OUT = "/latenz/left-out"
"""In a snapshot: what could not be read when it was taken, as lines of path, tab, reason."""
_MOST_LINKS = 40  # as Linux
_LARGEST_ARCHIVE = 1 << 30
_MOST_KEPT = 1 << 28  # bytes of an archive that are held in memory, those of its tables included
_ENTRY_BYTES = 500  # about what the tables need for an entry besides its path
_DEEPEST_PATH = 256  # folders; those of a machine's settings lie in some 20
_DEEPEST = 16  # folders that ** looks into
_MOST_STEPS = 10_000_000
"""Names looked up and listed in one folder or archive of a stranger; for a real one's check some
100,000."""
_WILD = frozenset("*?[")
_PLACES = ("/proc", "/sys", "/etc", "/boot", "/latenz", "/usr", "/var")
"""Of these a machine's tree has at least one."""
ResultT = TypeVar("ResultT")


class Unreadable(Exception):  # noqa: N818 - an answer, not a mistake in the program
    """Why something cannot be read, in a few words."""


class Root:
    """A machine's files.

    Args:
        path: `/`, another folder, or a tar file, which may be compressed. `/` is that of the
            measured machine (`latenz.machine`), be it a target.

    Raises:
        BadInput: There is no such folder or tar file, or it cannot be read.

    Attributes:
        path: As given.
        live: Whether these are the files of the machine that we run on.
        running: Whether they are of a machine that runs: this one, or a target.
    """

    def __init__(self, path: Path | str = "/") -> None:
        self.path = Path(path)
        if "\0" in str(path):
            raise BadInput("is not a path", repr(str(path)[:60]), "give a folder or a tar")
        real = os.path.realpath(path)
        of_target = measured_target() if real == "/" else None
        self.running = real == "/"
        self.live = self.running and of_target is None
        self._steps = 0
        self._tree: Tree
        if of_target is not None:
            self._tree = of_target.tree()
        elif self.live:
            self._tree = _Machine()
        elif os.path.isdir(real):  # noqa: PTH112 - one that is closed to us is none, no error
            self._tree = _Folder(real)
        else:
            self._tree = _Archive(self.path)

    def read(self, path: str) -> str | None:
        """Return the text of a file, None if it cannot be read; `problem` tells why."""
        content = self.read_bytes(path)
        return None if content is None else content.decode("utf-8", "replace")

    def read_bytes(self, path: str) -> bytes | None:
        """Return the bytes of a file, None if it cannot be read."""
        try:
            return self.content(path)
        except Unreadable:
            return None

    def content(self, path: str) -> bytes:
        """Return the bytes of a file.

        Raises:
            Unreadable: With the reason.
        """
        return _told(lambda: self._tree.content(self._resolved(path)))

    def problem(self, path: str) -> str | None:
        """Return why a file cannot be read, None if it can."""
        try:
            self.content(path)
        except Unreadable as reason:
            return str(reason)
        return None

    def exists(self, path: str) -> bool:
        """Return whether there is something, whatever it is."""
        try:
            _told(lambda: self._tree.mode(self._resolved(path)))
        except Unreadable as reason:
            return str(reason) != ABSENT
        return True

    def is_folder(self, path: str) -> bool:
        """Return whether there is a folder."""
        try:
            return stat.S_ISDIR(_told(lambda: self._tree.mode(self._resolved(path))))
        except Unreadable:
            return False

    def permissions(self, path: str) -> int:
        """Return type and permissions of what lies there, all of them if nobody can tell."""
        try:
            return _told(lambda: self._tree.mode(self._resolved(path)))
        except Unreadable:
            return 0o777

    def check_machine(self) -> None:
        """Refuse a tree that holds nothing of a machine.

        Raises:
            BadInput: It is such a one.
        """
        if not any(self.is_folder(place) for place in _PLACES):
            known = "no proc, sys, etc or boot is in it"
            raise BadInput(
                f"holds no machine's files: {known}", str(self.path), "give the tree's root"
            )

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder; none if there is no such folder."""
        try:
            found = sorted(_told(lambda: self._tree.names(self._resolved(folder))))
        except Unreadable:
            return []
        self._count(len(found))
        return found

    def link(self, path: str) -> str | None:
        """Return what a symbolic link says, None if there is none."""
        try:
            return _told(lambda: self._tree.target(self._resolved(path, last=False)))
        except Unreadable:
            return None

    def glob(self, pattern: str) -> list[str]:
        """Return the sorted paths that match: `*`, `?`, `[...]` in names, `**` for folders."""
        parts = [part for part in pattern.split("/") if part]
        return sorted(set(self._matches("", parts)))

    def _matches(self, folder: str, parts: list[str]) -> Iterator[str]:
        if not parts:
            yield folder or "/"
            return
        first, *rest = parts
        if first == "**":
            yield from self._matches(folder, rest)
            for below in self._folders_below(folder, _DEEPEST):
                yield from self._matches(below, rest)
        elif _WILD.isdisjoint(first):
            path = f"{folder}/{first}"
            if rest or self._is_there(path):
                yield from self._matches(path, rest)
        else:
            for name in self._listed(folder or "/"):
                if fnmatchcase(name, first):
                    yield from self._matches(f"{folder}/{name}", rest)

    def _is_there(self, path: str) -> bool:
        """Return whether there is something, be it a link that leads nowhere."""
        try:
            _told(lambda: self._tree.mode(self._resolved(path, last=False)))
        except Unreadable as reason:
            return str(reason) != ABSENT
        return True

    def _folders_below(self, folder: str, depth: int) -> Iterator[str]:
        """Give all folders below one, without following links."""
        for name in self._listed(folder or "/") if depth else ():
            path = f"{folder}/{name}"
            try:
                if not stat.S_ISDIR(_told(lambda at=path: self._tree.mode(at))):  # type: ignore[misc]
                    continue
            except Unreadable:
                continue
            yield path
            yield from self._folders_below(path, depth - 1)

    def _listed(self, folder: str) -> list[str]:
        return Root.names(self, folder)

    def _resolved(self, path: str, *, last: bool = True) -> str:
        """Return the path with all links followed, the last one only if wanted.

        Raises:
            OSError: Nothing is there, or links lead in a circle.
        """
        if self.live:
            return path
        left = [part for part in reversed(path.split("/")) if part]
        done: list[str] = []
        links = 0
        while left:
            part = left.pop()
            self._count(1)
            if part in (".", ".."):
                del done[len(done) - (part == "..") :]
                continue
            here = "/" + "/".join([*done, part])
            if not stat.S_ISLNK(self._tree.mode(here)) or not (left or last):
                done.append(part)
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            target = self._tree.target(here)
            if target.startswith("/"):
                done = []
            left += [part for part in reversed(target.split("/")) if part]
            if len(left) + len(done) > _DEEPEST_PATH:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        return "/" + "/".join(done)

    def _count(self, steps: int) -> None:
        """Count what was looked up in another machine's files: links can make it endless.

        Raises:
            BadInput: It is more than any machine needs.
        """
        self._steps += steps
        if self._steps > _MOST_STEPS and not self.live:
            raise BadInput(
                "has more files and links than a machine's settings",
                str(self.path),
                "make a snapshot: latenz tune snapshot",
            )


def _told(action: Callable[[], ResultT]) -> ResultT:
    """Do something with a tree; give the reason if that fails."""
    try:
        return action()
    except (FileNotFoundError, NotADirectoryError):
        raise Unreadable(ABSENT) from None
    except OSError as error:
        reason = error.strerror or str(error)
        if reason[1:2].islower():  # a sentence, not an abbreviation
            reason = reason[0].lower() + reason[1:]
        raise Unreadable(reason) from None
    except ValueError:  # a path with a null character
        raise Unreadable(ABSENT) from None


class _Folder:
    """A folder that holds another machine's files."""

    def __init__(self, folder: str) -> None:
        self._folder = folder.rstrip("/")

    def mode(self, path: str) -> int:
        return os.lstat(self._folder + path).st_mode

    def target(self, path: str) -> str:
        return os.readlink(self._folder + path)  # noqa: PTH115 - a text, not to be normalised

    def names(self, path: str) -> list[str]:
        return os.listdir(self._folder + path)  # noqa: PTH208 - names alone

    def content(self, path: str) -> bytes:
        # A link or a pipe put there meanwhile is not followed, and not waited for.
        return _content(self._folder + path, os.O_NOFOLLOW)


class _Machine(_Folder):
    """The machine that we run on, whose kernel follows the links."""

    def __init__(self) -> None:
        super().__init__("/")

    def mode(self, path: str) -> int:
        return os.stat(path).st_mode  # noqa: PTH116 - a text, as everywhere here

    def content(self, path: str) -> bytes:
        return _content(path, 0)


def _content(path: str, flags: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "is not a regular file")
        found = bytearray()
        while part := os.read(descriptor, 1 << 16):
            found += part
            if len(found) > LARGEST:
                raise OSError(errno.EFBIG, "is larger than 4 MiB")
    finally:
        os.close(descriptor)
    return bytes(found)


class _Archive:
    """A tar with a machine's files, of which the small ones are kept in memory."""

    def __init__(self, path: Path) -> None:
        self._modes: dict[str, int] = {"/": stat.S_IFDIR}
        self._contents: dict[str, bytes] = {}
        self._targets: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._below: dict[str, set[str]] = {"/": set()}
        self._kept = 0
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise _no_snapshot(path, "no regular file")
            with path.open("rb") as file:
                for member in members(file, _LARGEST_ARCHIVE):
                    self._take(member)
            self._take_left_out()
        except FileNotFoundError:
            raise BadInput(
                "there is no such folder or tar", str(path), "give one, or leave it out for /"
            ) from None
        except Damaged as error:
            raise _no_snapshot(path, error.what) from None
        except OSError as error:
            raise _no_snapshot(path, error.strerror or str(error)) from None

    def _take_left_out(self) -> None:
        for line in self._contents.get(LEFT_OUT, b"").decode("utf-8", "replace").splitlines():
            left_out, _, reason = line.partition("\t")
            self._add(left_out, stat.S_IFREG)
            self._refused[left_out] = reason

    def _take(self, member: Member) -> None:
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        if ".." in parts:
            return
        name = "/" + "/".join(parts)
        if member.kind == "hard link":
            self._keep_hard_link(name, "/" + member.target.removeprefix("./").lstrip("/"))
            return
        self._add(name, _MODES[member.kind])
        if member.kind == "link":
            self._targets[name] = member.target
            self._charge(len(member.target))
        elif member.size > LARGEST and member.kind == "file":
            self._refused[name] = "is larger than 4 MiB"
        elif member.kind == "file":
            self._charge(member.size)
            self._contents[name] = member.content(LARGEST)

    def _keep_hard_link(self, name: str, other: str) -> None:
        if other in self._contents:
            content = self._contents[other]
            self._add(name, stat.S_IFREG)
            self._contents[name] = content

    def _add(self, name: str, mode: int) -> None:
        """Enter a path, and the folders above it that are not there yet."""
        if name.count("/") > _DEEPEST_PATH:
            raise Damaged(f"a path in it has more than {_DEEPEST_PATH} folders")
        while name != "/":
            self._charge(_ENTRY_BYTES + len(name))
            self._modes[name] = mode
            for kept in (self._contents, self._targets, self._refused):
                kept.pop(name, None)  # the last one of a name counts, as when a tar is unpacked
            if mode == stat.S_IFDIR:
                self._below.setdefault(name, set())
            folder, _, last = name.rpartition("/")
            above = self._below.setdefault(folder or "/", set())
            above.add(last)
            if self._modes.get(folder or "/") == stat.S_IFDIR:
                return
            name, mode = folder, stat.S_IFDIR

    def _charge(self, size: int) -> None:
        """Count what is kept in memory."""
        self._kept += size
        if self._kept > _MOST_KEPT:
            raise Damaged("it holds more than a machine's settings")

    def mode(self, path: str) -> int:
        if path not in self._modes:
            raise FileNotFoundError(errno.ENOENT, path)
        return self._modes[path]

    def target(self, path: str) -> str:
        if path not in self._targets:
            raise OSError(errno.EINVAL, "is not a link")
        return self._targets[path]

    def names(self, path: str) -> list[str]:
        if self.mode(path) != stat.S_IFDIR:
            raise NotADirectoryError(errno.ENOTDIR, path)
        return list(self._below[path])

    def content(self, path: str) -> bytes:
        mode = self.mode(path)
        if mode == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        if path in self._refused:
            raise OSError(errno.EACCES, self._refused[path])
        if path not in self._contents:
            raise OSError(errno.EINVAL, "is not a regular file")
        return self._contents[path]


_MODES = {
    "file": stat.S_IFREG,
    "folder": stat.S_IFDIR,
    "link": stat.S_IFLNK,
    "other": stat.S_IFCHR,
}


def _no_snapshot(path: Path, reason: str) -> BadInput:
    return BadInput(
        f"is neither a folder nor a tar ({reason[:100]})",
        str(path),
        "make one: latenz tune snapshot",
    )
