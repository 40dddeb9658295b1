"""Another user, who owns a folder that we are told to write in, and does there what he may.

As root the tests have one, and he is real: he has a process under his own user number. Without
root he is us, and his folders are open to all: what he exchanges counts, what he owns cannot.
"""

import contextlib
import hashlib
import os
import secrets
import signal
import time
from collections.abc import Iterator
from pathlib import Path

STRANGER = 65534
"""The user number of nobody."""
IS_ROOT = os.geteuid() == 0


def give_away(*paths: Path) -> None:
    """Make paths the stranger's: links themselves, folders with all that is in them."""
    for path in paths:
        if IS_ROOT:
            os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
        elif path.is_dir() and not path.is_symlink():
            path.chmod(0o777)
        if path.is_dir() and not path.is_symlink():
            give_away(*path.iterdir())


def plant(path: Path, target: Path) -> None:
    """Put a link of the stranger's in a place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    give_away(path)


def state(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Return all that is in a folder: modes, owners, contents."""
    return {
        str(path.relative_to(folder)): (
            found.st_mode,
            found.st_uid,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
        for found in [path.lstat()]
    }


@contextlib.contextmanager
def exchanging(folder: Path, victims: Path) -> Iterator[None]:
    """While this lasts, put links in place of whatever appears in the stranger's folder.

    A folder becomes a link to the folder `victims`, a file one to a file in it; what was there is
    moved aside, where it ends with `.aside`.
    """
    child = os.fork()
    if child == 0:
        try:
            _exchange(folder, victims)
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _exchange(folder: Path, victims: Path) -> None:
    if IS_ROOT:
        os.setgroups([])
        os.setgid(STRANGER)
        os.setuid(STRANGER)
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_DFL)
    owner = os.getppid()
    own = {".ours"}
    link = folder / ".ours"
    while os.getppid() == owner:
        for path in [each for each in folder.iterdir() if each.name not in own]:
            name = path.name
            with contextlib.suppress(OSError):
                target = victims if path.is_dir() else victims / "victim"
                aside = f"{name}.{secrets.token_hex(2)}.aside"
                own |= {aside, name}
                path.rename(folder / aside)
                link.symlink_to(target)
                link.rename(path)
        time.sleep(0.0005)
