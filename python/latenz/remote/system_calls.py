"""The system calls that the agent on a target makes for changes to it."""

import errno
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from latenz.errors import OutOfReach
from latenz.remote.link import number
from latenz.settings import format_cpu_list, parse_cpu_list
from latenz.system_calls import Ended, FileStatus, Looks

Ask = Callable[..., list[bytes]]
Run = Callable[[Sequence[str], float], tuple[int, str, str]]


class TargetSystemCalls:
    """Those of a target.

    A link that is cut between a call and its answer lets nobody know whether it was made. So each
    call has a number, and the agent makes none twice.

    Args:
        ask: Asks the agent, however often the link is cut.
        run: Runs a program there.
        user: Who the agent is.
    """

    most_bytes = 4 << 20

    def __init__(self, ask: Ask, run: Run, user: int) -> None:
        self._ask = ask
        self._run = run
        self._user = user
        self._numbers = itertools.count(1)
        self._lost = False

    def _call(self, name: str, *arguments: Path | str | int | bytes, told: int = 0) -> list[bytes]:
        """Let the agent make a call; return what it gives: so many fields, any number if below 0.

        Raises:
            OSError: It was refused, or what came is not an answer.
        """
        fields = [each if isinstance(each, bytes) else os.fsencode(str(each)) for each in arguments]
        try:
            error, *given = self._ask("call", str(next(self._numbers)), name, *fields)
        except OutOfReach:
            self._lost = True
            raise
        if number(error):
            where = next((str(each) for each in arguments if isinstance(each, Path)), None)
            raise OSError(number(error), os.strerror(number(error)), where)
        if told >= 0 and len(given) != told:
            raise OSError(errno.EPROTO, "the agent's words are damaged")
        return given

    def user(self) -> int:
        """As the protocol says."""
        return self._user

    def real(self, _top: Path, path: str, follow: bool) -> Path:
        """Follow symbolic links there: the root of a target is its own."""
        return Path(os.fsdecode(self._call("real", Path(path), int(follow), told=1)[0]))

    def status(self, path: Path) -> FileStatus:
        """As the protocol says."""
        *told, modified = self._call("status", path, told=5)
        mode, links, uid, gid = (number(each) for each in told)
        return FileStatus(mode, links, uid, gid, _signed(modified))

    def link(self, path: Path) -> str:
        """As the protocol says."""
        return os.fsdecode(self._call("link", path, told=1)[0])

    def names(self, path: Path) -> list[str]:
        """As the protocol says."""
        return [os.fsdecode(each) for each in self._call("names", path, told=-1)]

    def content(self, path: Path) -> bytes:
        """As the protocol says."""
        error, *content = self._ask("read", str(self.most_bytes), os.fsencode(path))
        if number(error) or len(content) != 1:
            code = number(error) or errno.EPROTO
            raise OSError(code, os.strerror(code), str(path))
        return content[0]

    def attributes(self, path: Path) -> dict[str, bytes]:
        """As the protocol says."""
        told = self._call("attributes", path, told=-1)
        return {
            os.fsdecode(name): value for name, value in zip(told[::2], told[1::2], strict=False)
        }

    def put(self, path: Path, partial: Path, content: bytes, looks: Looks) -> None:
        """As the protocol says."""
        given = ["" if each is None else str(each) for each in looks[:4]]
        attributes: list[str | bytes] = []
        for name, value in (looks.attributes or {}).items():
            attributes += [name, value]
        exactly = str(int(looks.attributes is not None))
        self._call("put", path, partial, content, *given, exactly, *attributes)

    def write_new(self, path: Path, content: bytes, room: int = 0) -> None:
        """As the protocol says."""
        self._call("new", path, content, room)

    def write_at(self, path: Path, offset: int, content: bytes) -> None:
        """As the protocol says."""
        self._call("at", path, offset, content)

    def write_value(self, path: Path, value: bytes) -> None:
        """As the protocol says."""
        self._call("value", path, value)

    def make_folder(self, path: Path, mode: int) -> None:
        """As the protocol says."""
        self._call("folder", path, mode)

    def set_mode(self, path: Path, mode: int) -> None:
        """As the protocol says."""
        self._call("mode", path, mode)

    def remove(self, path: Path) -> None:
        """As the protocol says."""
        self._call("remove", path)

    def remove_folder(self, path: Path) -> None:
        """As the protocol says."""
        self._call("remove_folder", path)

    def rename(self, path: Path, to: Path) -> None:
        """As the protocol says."""
        self._call("rename", path, to)

    def point(self, path: Path, partial: Path, target: str) -> None:
        """As the protocol says."""
        self._call("point", path, partial, target)

    def sync(self, folder: Path) -> None:
        """As the protocol says."""
        self._call("sync", folder)

    @contextmanager
    def locked(self, folder: Path) -> Iterator[None]:
        """As the protocol says; the kernel there ends it with the agent."""
        self._call("lock", folder)
        try:
            yield
        finally:
            if not self._lost:
                self._call("unlock")

    def scheduling(self, tid: int) -> tuple[tuple[int, ...], int, int]:
        """As the protocol says."""
        cpus, policy, priority = self._call("scheduling", tid, told=3)
        try:
            return parse_cpu_list(cpus.decode("ascii")), number(policy), number(priority)
        except ValueError:
            raise OSError(errno.EPROTO, "the agent's words are damaged") from None

    def schedule(self, tid: int, policy: int, priority: int) -> None:
        """As the protocol says."""
        self._call("schedule", tid, policy, priority)

    def allow(self, tid: int, cpus: Sequence[int]) -> None:
        """As the protocol says."""
        self._call("allow", tid, format_cpu_list(tuple(sorted(cpus))))

    def run(self, command: Sequence[str], timeout_s: float) -> Ended:
        """As the protocol says."""
        status, _, errors = self._run(command, timeout_s)
        return Ended(status, errors)


def _signed(field: bytes) -> int:
    """Return a number that may be below 0, such as a time before 1970."""
    return -number(field[1:]) if field.startswith(b"-") else number(field)
