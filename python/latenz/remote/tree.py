"""The files of a target, for what looks at many of them."""

import errno
import os
import stat
from collections.abc import Callable

from latenz.remote.link import number

_LARGEST = 4 << 20


class TargetTree:
    """Files and folders as they are now, each asked for once.

    A folder's names come with their types and with what its links say, so that following a path
    seldom asks again.

    Args:
        ask: Asks the agent.
    """

    def __init__(self, ask: Callable[..., list[bytes]]) -> None:
        self._ask = ask
        self._folders: dict[str, dict[str, tuple[int, str]] | int] = {}
        self._contents: dict[str, tuple[int, bytes]] = {}

    def mode(self, path: str) -> int:
        """Return type and permissions of what lies there, a link as such."""
        return self._entry(path)[0]

    def target(self, path: str) -> str:
        """Return what a symbolic link says."""
        mode, said = self._entry(path)
        if not stat.S_ISLNK(mode):
            raise OSError(errno.EINVAL, "is not a link")
        return said

    def names(self, path: str) -> list[str]:
        """Return the names in a folder."""
        return list(self._folder(path))

    def content(self, path: str) -> bytes:
        """Return the bytes of a regular file."""
        if path not in self._contents:
            told, content = self._ask("read", str(_LARGEST), path)
            self._contents[path] = number(told), content
        error, content = self._contents[path]
        if error:
            raise OSError(error, os.strerror(error))
        return content

    def _entry(self, path: str) -> tuple[int, str]:
        if path == "/":
            return stat.S_IFDIR | 0o755, ""
        folder, _, name = path.rpartition("/")
        try:
            entries = self._folder(folder or "/")
        except PermissionError:  # it may be entered all the same
            return self._alone(path)
        if name not in entries:
            raise FileNotFoundError(errno.ENOENT, path)
        return entries[name]

    def _alone(self, path: str) -> tuple[int, str]:
        error, mode = (number(each) for each in self._ask("modes", path))
        if error:
            raise OSError(error, os.strerror(error))
        said = self._ask("link", path)[1].decode("utf-8", "replace") if stat.S_ISLNK(mode) else ""
        return mode, said

    def _folder(self, path: str) -> dict[str, tuple[int, str]]:
        if path not in self._folders:
            error, *told = self._ask("names", path)
            if number(error):
                self._folders[path] = number(error)
            else:
                names = (each.decode("utf-8", "surrogateescape") for each in told[::3])
                modes = (number(each) for each in told[1::3])
                links = (each.decode("utf-8", "surrogateescape") for each in told[2::3])
                entries = zip(names, zip(modes, links, strict=True), strict=True)
                self._folders[path] = {name: entry for name, entry in entries if _is_name(name)}
        found = self._folders[path]
        if isinstance(found, int):
            raise OSError(found, os.strerror(found))
        return found


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name
