"""The files of a machine, or of a copy of its tree, as changes need them: exact, whole, durable.

Every path is one inside the root. Symbolic links are followed as that machine would follow them,
so that nothing outside a copied tree can be reached through it.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from latenz.errors import BadInput

MOST_BYTES = 64 << 20
"""A larger file is refused: nothing that is changed here comes near it."""
_PART = 1 << 16  # the kernel makes room for all that is asked for, even if a value has 3 bytes
_MOST_LINKS = 40  # as the kernel follows, path_resolution(7)
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Image(BaseModel):
    """A regular file as it was, except for its content, of which it has the SHA-256.

    Attributes:
        uid: None for a file of ours, which belongs to whoever makes it; as `gid`.
        xattrs: Extended attributes: access control lists and security labels are among them. None
            for a file of ours, which gets what new files get in its folder.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"
    )

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    mode: Annotated[int, Field(ge=0, le=0o7777)] = 0o644
    uid: Annotated[int, Field(ge=0, lt=1 << 32)] | None = None
    gid: Annotated[int, Field(ge=0, lt=1 << 32)] | None = None
    mtime_ns: Annotated[int, Field(gt=-(1 << 62), lt=1 << 62)] = 0
    xattrs: dict[str, bytes] | None = None

    def looks_like(self, other: "Image | None") -> bool:
        """Return whether content, mode and owner are the same; labels may be renewed any time."""
        if other is None or (self.sha256, self.mode) != (other.sha256, other.mode):
            return False
        owners = ((self.uid, other.uid), (self.gid, other.gid))
        return all(one == another for one, another in owners if None not in (one, another))


class Place:
    """The root under which changes are made.

    Args:
        root: `/` for this machine, or the folder that holds a copy of a machine's tree.

    Attributes:
        live: Whether it is this machine: only then are programs run and threads changed.

    Raises:
        BadInput: The root is no folder.
    """

    def __init__(self, root: Path) -> None:
        self.top = Path(os.path.realpath(root))
        self.live = self.top == Path("/")
        if not os.path.isdir(self.top):  # noqa: PTH112 - one that is closed to us is none, no error
            raise BadInput("is no folder", str(root), "name the root of a tree of files")

    def at(self, path: str, *, follow: bool = True) -> Path:
        """Return where a path of the root is found; it need not exist.

        Args:
            path: An absolute path.
            follow: Whether the last component is followed if it is a symbolic link.

        Raises:
            BadInput: Too many symbolic links, or a component is a file.
        """
        left = [part for part in reversed(path.split("/")) if part not in ("", ".")]
        here, links = self.top, 0
        while left:
            part = left.pop()
            if part == "..":
                here = here.parent if here != self.top else here
                continue
            here = here / part
            if not here.is_symlink() or not (left or follow):
                continue
            links += 1
            if links > _MOST_LINKS:
                raise BadInput("symbolic links without end", path, "mend them")
            target = str(here.readlink())
            here = self.top if target.startswith("/") else here.parent
            left += [part for part in reversed(target.split("/")) if part not in ("", ".")]
        return here

    def real(self, path: str) -> str:
        """Return a path of the root with all its symbolic links followed, as a path of the root."""
        return "/" + str(self.at(path).relative_to(self.top)).removeprefix(".")

    def boot_id(self) -> str:
        """Return what the kernel calls this boot; empty if that is not known."""
        try:
            return self.at(_BOOT_ID).read_text("ascii", "replace").strip()[:64]
        except OSError:
            return ""

    def image(self, path: Path) -> Image | None:
        """Return what a file is; None if there is none.

        Raises:
            BadInput: It is no regular file, has several names, or is too large.
        """
        try:
            found = path.lstat()
        except FileNotFoundError:
            return None
        if not path.is_file() or path.is_symlink():
            raise BadInput("is no regular file", str(path), "move it away")
        if found.st_nlink > 1:
            raise BadInput(
                f"has {found.st_nlink} hard links, which replacing it would break",
                str(path),
                "copy it to a new file and rename that",
            )
        return Image(
            sha256=hashlib.sha256(read_bytes(path)).hexdigest(),
            mode=found.st_mode & 0o7777,
            uid=found.st_uid,
            gid=found.st_gid,
            mtime_ns=found.st_mtime_ns,
            xattrs={
                name: os.getxattr(path, name, follow_symlinks=False)
                for name in os.listxattr(path, follow_symlinks=False)
            },
        )

    def put(self, path: Path, content: bytes, image: Image, *, keep_time: bool = False) -> None:
        """Make a file be this, at once or not at all; it is on the disk when this returns.

        Raises:
            OSError: It cannot be written.
        """
        partial = partial_of(path)
        write_durably(partial, content)
        dress(partial, image, keep_time=keep_time)
        partial.replace(path)
        sync_folder(path.parent)

    def clear(self, path: Path) -> None:
        """Remove what a killed `put` left of its work."""
        partial_of(path).unlink(missing_ok=True)


def partial_of(path: Path) -> Path:
    """Return the name under which a file is made before it takes its place."""
    return path.with_name(f".{path.name[:200]}.latenz-partial")


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, up to a size that no file changed here can have.

    Raises:
        BadInput: It is larger.
    """
    content = bytearray()
    with path.open("rb", buffering=0) as file:
        while part := file.read(_PART):
            content += part
            if len(content) > MOST_BYTES:
                more = f"has more than {MOST_BYTES} bytes"
                raise BadInput(more, str(path), "it is not what it should be")
    return bytes(content)


def write_durably(path: Path, content: bytes) -> None:
    """Write a new file, readable for its owner only, that is on the disk when this returns."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of it: write(2) may take less than it was given."""
    while content:
        content = content[os.write(descriptor, content) :]


def dress(path: Path, image: Image, *, keep_time: bool) -> None:
    """Give a file mode, owner and attributes; change only what differs, as VFAT has none."""
    found = path.lstat()
    uid = found.st_uid if image.uid is None else image.uid
    gid = found.st_gid if image.gid is None else image.gid
    if (found.st_uid, found.st_gid) != (uid, gid):
        os.chown(path, uid, gid, follow_symlinks=False)
    if image.xattrs is not None:
        for name in set(os.listxattr(path)) - set(image.xattrs):
            os.removexattr(path, name)
        for name, value in image.xattrs.items():
            if name not in os.listxattr(path) or os.getxattr(path, name) != value:
                os.setxattr(path, name, value)
    if path.lstat().st_mode & 0o7777 != image.mode:
        path.chmod(image.mode)
    if keep_time:
        os.utime(path, ns=(image.mtime_ns, image.mtime_ns))
    with opened(path, os.O_RDONLY) as descriptor:
        os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    with opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        os.fsync(descriptor)


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """Give a descriptor that is closed again."""
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
