"""The files of a machine, or of a copy of its tree, as changes need them: exact, whole, durable.

Every path is one inside the root. Symbolic links are followed as that machine would follow them,
so that nothing outside a copied tree can be reached through it.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from shlex import quote
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from latenz.errors import BadInput
from latenz.machine import measured_machine, measured_target
from latenz.system_calls import Looks, OwnSystemCalls, SystemCalls

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
        root: `/` for the measured machine (`latenz.machine`), be it a target, or the folder that
            holds a copy of a machine's tree.

    Attributes:
        live: Whether it is a machine that runs: only then are programs run and threads changed.
        calls: How its files are changed.
        name: What messages call it.

    Raises:
        BadInput: The root is not a folder.
    """

    def __init__(self, root: Path) -> None:
        self.top = Path(os.path.realpath(root))
        self.live = self.top == Path("/")
        target = measured_target() if self.live else None
        self.calls: SystemCalls = OwnSystemCalls() if target is None else target.system_calls()
        self.name = str(self.top) if target is None else target.name
        if not os.path.isdir(self.top):  # noqa: PTH112 - one that is closed to us is none, no error
            raise BadInput("is not a folder", str(root), "name the root of a tree of files")

    def command(self, verb: str) -> str:
        """Return what a user types for a verb of `latenz tune` on the same machine."""
        option = "--on" if self.live else "--root"
        where = "" if self.name == "/" else f" {option} {quote(self.name)}"
        return f"latenz tune {verb}{where}"

    def is_ours_to_change(self) -> bool:
        """Return whether we are root there, or may change a copied tree."""
        return not self.live or measured_machine().is_root()

    def answers_until(self, given_up: Callable[[], bool]) -> AbstractContextManager[None]:
        """Wait for a target's answers only until a function says so, while the link is cut."""
        target = measured_target() if self.live else None
        return nullcontext() if target is None else target.answered_or(given_up)

    def at(self, path: str, *, follow: bool = True) -> Path:
        """Return where a path of the root is found; it need not exist.

        Args:
            path: An absolute path.
            follow: Whether the last component is followed if it is a symbolic link.

        Raises:
            BadInput: Too many symbolic links, or a component is a file.
        """
        try:
            return self.calls.real(self.top, path, follow)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise BadInput("symbolic links without end", path, "mend them") from None

    def real(self, path: str) -> str:
        """Return a path of the root with all its symbolic links followed, as a path of the root."""
        return "/" + str(self.at(path).relative_to(self.top)).removeprefix(".")

    def mode(self, path: Path) -> int:
        """Return type and permissions of what lies there, a link as such; 0: nothing does."""
        try:
            return self.calls.status(path).mode
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def is_folder(self, path: Path) -> bool:
        """Return whether a folder lies there."""
        return stat.S_ISDIR(self.mode(path))

    def boot_id(self) -> str:
        """Return what the kernel calls this boot; empty if that is not known."""
        try:
            content = self.calls.content(self.at(_BOOT_ID))
        except OSError:
            return ""
        return content.decode("ascii", "replace").strip()[:64]

    def read(self, path: Path) -> bytes:
        """Return the content of a file, up to a size that no file changed here can have.

        Raises:
            BadInput: It is larger.
            OSError: It cannot be read.
        """
        try:
            return self.calls.content(path)
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            more = f"has more than {self.calls.most_bytes} bytes"
            raise BadInput(more, str(path), "it is not what it should be") from None

    def image(self, path: Path) -> Image | None:
        """Return what a file is; None if there is none.

        Raises:
            BadInput: It is not a regular file, has several names, or is too large.
        """
        try:
            found = self.calls.status(path)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.mode):
            raise BadInput("is not a regular file", str(path), "move it away")
        if found.links > 1:
            raise BadInput(
                f"has {found.links} hard links, which replacing it would break",
                str(path),
                "copy it to a new file and rename that",
            )
        return Image(
            sha256=hashlib.sha256(self.read(path)).hexdigest(),
            mode=found.mode & 0o7777,
            uid=found.uid,
            gid=found.gid,
            mtime_ns=found.modified_ns,
            xattrs=self.calls.attributes(path),
        )

    def put(self, path: Path, content: bytes, image: Image, *, keep_time: bool = False) -> None:
        """Make a file be this, at once or not at all; it is on the disk when this returns.

        Raises:
            OSError: It cannot be written.
        """
        modified_ns = image.mtime_ns if keep_time else None
        looks = Looks(image.mode, image.uid, image.gid, modified_ns, image.xattrs)
        self.calls.put(path, partial_of(path), content, looks)

    def clear(self, path: Path) -> None:
        """Remove what a killed `put` left of its work."""
        self.calls.remove(partial_of(path))

    def remove_tree(self, folder: Path) -> None:
        """Remove a folder with all that is in it."""
        for name in self.calls.names(folder):
            path = folder / name
            if self.is_folder(path):
                self.remove_tree(path)
            else:
                self.calls.remove(path)
        self.calls.remove_folder(folder)


def partial_of(path: Path) -> Path:
    """Return the name under which a file is made before it takes its place."""
    return path.with_name(f".{path.name[:200]}.latenz-partial")
