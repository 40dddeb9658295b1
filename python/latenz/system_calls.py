"""The system calls that changes to a machine are made of, whether it is this one or a target.

Each does what it says or raises OSError. Paths are absolute; none is followed if it is a link.
"""

import errno
import fcntl
import os
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

_PART = 1 << 16  # the kernel makes room for all that is asked for, even if a value has 3 bytes
_MOST_LINKS = 40  # as the kernel follows, path_resolution(7)


class FileStatus(NamedTuple):
    """What lstat(2) tells of a file.

    Attributes:
        mode: Its type and permissions.
        links: How many names it has.
        uid: Whose it is.
        gid: Its group.
        modified_ns: When its content was changed last, since 1970.
    """

    mode: int
    links: int
    uid: int
    gid: int
    modified_ns: int


class Looks(NamedTuple):
    """What a file is to be besides its content; None: as the kernel makes it.

    Attributes:
        mode: Its permissions.
        uid: Whose it is.
        gid: Its group.
        modified_ns: When its content was changed last, since 1970.
        attributes: All its extended attributes.
    """

    mode: int
    uid: int | None
    gid: int | None
    modified_ns: int | None
    attributes: dict[str, bytes] | None


class Ended(NamedTuple):
    """How a program ended.

    Attributes:
        status: Its exit status.
        errors: What it wrote to standard error.
    """

    status: int
    errors: str


class SystemCalls(Protocol):
    """What a machine's kernel does for us. All raise OSError.

    Attributes:
        most_bytes: A larger file is not read: nothing that is changed here comes near it.
    """

    most_bytes: int

    def user(self) -> int:
        """Return who makes them."""

    def real(self, top: Path, path: str, follow: bool) -> Path:
        """Return where a path below `top` leads; the last component is followed on demand."""

    def status(self, path: Path) -> FileStatus:
        """Return what a file is."""

    def link(self, path: Path) -> str:
        """Return what a symbolic link says, to the letter."""

    def names(self, path: Path) -> list[str]:
        """Return the names in a folder."""

    def content(self, path: Path) -> bytes:
        """Return what a file holds; EFBIG if that is too much."""

    def attributes(self, path: Path) -> dict[str, bytes]:
        """Return a file's extended attributes."""

    def put(self, path: Path, partial: Path, content: bytes, looks: Looks) -> None:
        """Make a file be this, by way of another name: at once, and on the disk afterwards."""

    def write_new(self, path: Path, content: bytes, room: int = 0) -> None:
        """Write a file for its owner alone; it is on the disk afterwards, with room for more."""

    def write_at(self, path: Path, offset: int, content: bytes) -> None:
        """Write into a file; that is on the disk afterwards."""

    def write_value(self, path: Path, value: bytes) -> None:
        """Write a value of the kernel."""

    def make_folder(self, path: Path, mode: int) -> None:
        """Make a folder with these permissions, if there is none."""

    def set_mode(self, path: Path, mode: int) -> None:
        """Set a file's permissions."""

    def remove(self, path: Path) -> None:
        """Remove a file, if there is one."""

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""

    def rename(self, path: Path, to: Path) -> None:
        """Give a file or folder another name, in place of what has that name."""

    def point(self, path: Path, partial: Path, target: str) -> None:
        """Make a symbolic link, by way of another name: at once."""

    def sync(self, folder: Path) -> None:
        """Bring the names in a folder to the disk."""

    def locked(self, folder: Path) -> AbstractContextManager[None]:
        """Keep others from locking the same; BlockingIOError if somebody has."""

    def scheduling(self, tid: int) -> tuple[tuple[int, ...], int, int]:
        """Return the CPUs, the policy and the priority of a thread."""

    def schedule(self, tid: int, policy: int, priority: int) -> None:
        """Give a thread a policy and a priority."""

    def allow(self, tid: int, cpus: Sequence[int]) -> None:
        """Let a thread run on these CPUs alone."""

    def run(self, command: Sequence[str], timeout_s: float) -> Ended:
        """Run a program to its end."""


class OwnSystemCalls:
    """Those of the machine that Latenz runs on; its files may be below another root."""

    most_bytes = 64 << 20

    def user(self) -> int:
        """As the protocol says."""
        return os.geteuid()

    def real(self, top: Path, path: str, follow: bool) -> Path:
        """Follow symbolic links as a machine whose root is `top` would."""
        left = [part for part in reversed(path.split("/")) if part not in ("", ".")]
        here, links = top, 0
        while left:
            part = left.pop()
            if part == "..":
                here = here.parent if here != top else here
                continue
            here = here / part
            if not here.is_symlink() or not (left or follow):
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = str(here.readlink())
            here = top if target.startswith("/") else here.parent
            left += [part for part in reversed(target.split("/")) if part not in ("", ".")]
        return here

    def status(self, path: Path) -> FileStatus:
        """As the protocol says."""
        found = path.lstat()
        return FileStatus(
            found.st_mode, found.st_nlink, found.st_uid, found.st_gid, found.st_mtime_ns
        )

    def link(self, path: Path) -> str:
        """As the protocol says."""
        return os.readlink(path)  # noqa: PTH115 - exactly, not normalised as Path does

    def names(self, path: Path) -> list[str]:
        """As the protocol says."""
        return os.listdir(path)  # noqa: PTH208 - names alone

    def content(self, path: Path) -> bytes:
        """As the protocol says."""
        content = bytearray()
        with path.open("rb", buffering=0) as file:
            while part := file.read(_PART):
                content += part
                if len(content) > self.most_bytes:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return bytes(content)

    def attributes(self, path: Path) -> dict[str, bytes]:
        """As the protocol says."""
        return {
            name: os.getxattr(path, name, follow_symlinks=False)
            for name in os.listxattr(path, follow_symlinks=False)
        }

    def put(self, path: Path, partial: Path, content: bytes, looks: Looks) -> None:
        """As the protocol says."""
        self.write_new(partial, content)
        _dress(partial, looks)
        partial.replace(path)
        self.sync(path.parent)

    def write_new(self, path: Path, content: bytes, room: int = 0) -> None:
        """As the protocol says."""
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with _opened(path, flags, 0o600) as descriptor:
            if room:
                os.posix_fallocate(descriptor, 0, len(content) + room)
            _write_all(descriptor, content)
            os.fsync(descriptor)

    def write_at(self, path: Path, offset: int, content: bytes) -> None:
        """As the protocol says."""
        with _opened(path, os.O_RDWR) as descriptor:
            os.pwrite(descriptor, content, offset)
            os.fdatasync(descriptor)

    def write_value(self, path: Path, value: bytes) -> None:
        """As the protocol says."""
        with _opened(path, os.O_WRONLY | os.O_TRUNC) as descriptor:
            os.write(descriptor, value)

    def make_folder(self, path: Path, mode: int) -> None:
        """As the protocol says."""
        try:
            path.mkdir(mode=mode)
        except FileExistsError:
            if not stat.S_ISDIR(path.lstat().st_mode):
                raise
            return
        path.chmod(mode)  # whatever the user's umask is

    def set_mode(self, path: Path, mode: int) -> None:
        """As the protocol says."""
        path.chmod(mode)

    def remove(self, path: Path) -> None:
        """As the protocol says."""
        path.unlink(missing_ok=True)

    def remove_folder(self, path: Path) -> None:
        """As the protocol says."""
        path.rmdir()

    def rename(self, path: Path, to: Path) -> None:
        """As the protocol says."""
        path.replace(to)

    def point(self, path: Path, partial: Path, target: str) -> None:
        """As the protocol says."""
        partial.unlink(missing_ok=True)
        partial.symlink_to(target)
        partial.replace(path)
        self.sync(path.parent)

    def sync(self, folder: Path) -> None:
        """As the protocol says."""
        with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            os.fsync(descriptor)

    @contextmanager
    def locked(self, folder: Path) -> Iterator[None]:
        """As the protocol says; the kernel ends it with the process."""
        with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield

    def scheduling(self, tid: int) -> tuple[tuple[int, ...], int, int]:
        """As the protocol says."""
        priority = os.sched_getparam(tid).sched_priority
        return tuple(sorted(os.sched_getaffinity(tid))), os.sched_getscheduler(tid), priority

    def schedule(self, tid: int, policy: int, priority: int) -> None:
        """As the protocol says."""
        os.sched_setscheduler(tid, policy, os.sched_param(priority))

    def allow(self, tid: int, cpus: Sequence[int]) -> None:
        """As the protocol says."""
        os.sched_setaffinity(tid, cpus)

    def run(self, command: Sequence[str], timeout_s: float) -> Ended:
        """As the protocol says; Ctrl-C reaches Latenz alone, which ends after this step."""
        try:
            ended = subprocess.run(
                command,
                check=False,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise OSError(errno.ETIMEDOUT, f"it took more than {timeout_s:.0f} s") from None
        return Ended(ended.returncode, ended.stderr)


@contextmanager
def _opened(path: Path, flags: int, mode: int = 0o777) -> Iterator[int]:
    """Give a descriptor that is closed again."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    """Write all of it: write(2) may take less than it was given."""
    while content:
        content = content[os.write(descriptor, content) :]


def _dress(path: Path, looks: Looks) -> None:
    """Give a file its looks; change only what differs, as VFAT has no owners."""
    found = path.lstat()
    uid = found.st_uid if looks.uid is None else looks.uid
    gid = found.st_gid if looks.gid is None else looks.gid
    if (found.st_uid, found.st_gid) != (uid, gid):
        os.chown(path, uid, gid, follow_symlinks=False)
    if looks.attributes is not None:
        for name in set(os.listxattr(path)) - set(looks.attributes):
            os.removexattr(path, name)
        for name, value in looks.attributes.items():
            if name not in os.listxattr(path) or os.getxattr(path, name) != value:
                os.setxattr(path, name, value)
    if path.lstat().st_mode & 0o7777 != looks.mode:
        path.chmod(looks.mode)
    if looks.modified_ns is not None:
        os.utime(path, ns=(looks.modified_ns, looks.modified_ns))
    with _opened(path, os.O_RDONLY) as descriptor:
        os.fsync(descriptor)
