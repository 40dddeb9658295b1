"""Archives: Debian packages read without unpacking them, and initial RAM disks written.

Nothing of a package is ever extracted to a path that the package names: contents are held in
memory and stored under names of ours.
"""

import io
import posixpath
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from latenz import unpacking
from latenz.errors import BadInput, shown

_LARGEST_PACKAGE = 1 << 33  # unpacked
_LARGEST_FILE = 1 << 29  # of those that are wanted from a package
_LAST_RECORD = 10240  # what fills it stands behind a tar's end
_HEADER = "070701" + 13 * "{:08x}"  # "newc": hexadecimal fields, no checksum


@dataclass(frozen=True)
class Link:
    """A symbolic link.

    Attributes:
        target: As it stands in the link.
    """

    target: str


Member = bytes | Link


def members(package: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Member]]:
    """Yield files and links of a Debian package, in its own order.

    Args:
        package: The `.deb` file.
        wanted: Tells by the absolute path which are wanted.

    Yields:
        The absolute path, and the content or the link. Hard links come as symbolic ones.

    Raises:
        BadInput: The package is damaged, or a path in it leaves it.
    """
    if shutil.which("dpkg-deb") is None:
        raise BadInput("is not installed", "dpkg-deb", "boards need a Debian system")
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reader:
        assert reader.stdout is not None  # noqa: S101 - it is piped
        tar = reader.stdout
        try:
            for member in unpacking.members(tar, _LARGEST_PACKAGE):
                path = _absolute(member.name, package)
                if not wanted(path):
                    continue
                if member.kind == "file":
                    yield path, member.content(_LARGEST_FILE)
                elif member.kind == "link":
                    yield path, Link(member.target)
                elif member.kind == "hard link":
                    yield path, Link(_absolute(member.target, package))
            tar.read(_LAST_RECORD)
            tar.close()  # who has more to say is not a tar, and must not be waited for
            if reader.wait() != 0:
                raise unpacking.Damaged("dpkg-deb cannot read it")
        except unpacking.Damaged as error:
            raise BadInput(
                f"is damaged ({error.what})", str(package), "delete it, try again"
            ) from None
        finally:
            reader.kill()  # who found what it wanted does not read on


def _absolute(name: str, package: Path) -> str:
    if ".." in name.split("/"):
        raise BadInput(f"holds a path that leaves it: {shown(name)}", str(package))
    return "/" + name.removeprefix(".").strip("/")


def find(files: Mapping[str, Member], path: str) -> tuple[str, bytes] | None:
    """Return where a path leads through links, and its content; None if nowhere.

    Links of folders (Debian's /lib is one in newer releases) are followed too.
    """
    for _ in range(20):
        member = files.get(path)
        if member is None and path.startswith(("/lib/", "/lib64/", "/bin/", "/sbin/")):
            member = files.get(f"/usr{path}")
        if isinstance(member, bytes):
            return path, member
        if member is None:
            return None
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), member.target))
    return None


@dataclass(frozen=True)
class Node:
    """What stands under one path of an initial RAM disk.

    Attributes:
        mode: Kind and permissions, as `stat` has them.
        content: Of a file, or the target of a symbolic link.
        device: Major and minor number of a device.
    """

    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)

    @classmethod
    def file(cls, content: bytes, *, executable: bool = False) -> "Node":
        """Return a file that everybody may read."""
        return cls(stat.S_IFREG | (0o755 if executable else 0o644), content)

    @classmethod
    def folder(cls) -> "Node":
        """Return a folder."""
        return cls(stat.S_IFDIR | 0o755)

    @classmethod
    def link(cls, target: str) -> "Node":
        """Return a symbolic link."""
        return cls(stat.S_IFLNK | 0o777, target.encode())

    @classmethod
    def terminal(cls, major: int, minor: int) -> "Node":
        """Return a character device."""
        return cls(stat.S_IFCHR | 0o600, device=(major, minor))


def write_cpio(path: Path, nodes: Mapping[str, Node]) -> None:
    """Write an uncompressed archive in the "newc" format, as Linux unpacks it at boot.

    The same nodes give the same bytes: order, inode numbers and times are fixed. It is not
    compressed because unpacking is the emulated processor's time.

    Args:
        path: The file to write.
        nodes: By absolute path; parent folders are added.
    """
    nodes = dict(nodes)
    for name in list(nodes):
        for parent in list(Path(name).parents)[:-1]:
            nodes.setdefault(str(parent), Node.folder())
    with path.open("wb") as file:
        for inode, (name, node) in enumerate(sorted(nodes.items()), start=1):
            _write_entry(file, name.lstrip("/"), node, inode)
        _write_entry(file, "TRAILER!!!", Node(0), 0)


def _write_entry(file: io.BufferedWriter, name: str, node: Node, inode: int) -> None:
    encoded = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(node.mode) else 1
    numbers = (inode, node.mode, 0, 0, links, 0, len(node.content), 0, 0, *node.device)
    header = _HEADER.format(*numbers, len(encoded), 0).encode()
    for part in (header + encoded, node.content):
        file.write(part + b"\0" * (-len(part) % 4))
