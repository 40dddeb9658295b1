"""Transactions: applied and taken back, nothing is different; killed anywhere, nothing is lost."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from trees_at_random import (
    apply_all,
    fingerprint,
    make_changes,
    make_tree,
    revert_all,
    set_boot,
)

from latenz.tune.changes import AnyChange, FileChange, FolderChange, LinkChange, WriteChange
from latenz.tune.places import Place
from latenz.tune.transaction import find

_SYSCALLS = (
    "write", "pwrite", "posix_fallocate", "replace", "rename", "unlink", "mkdir", "rmdir",
    "chmod", "chown", "setxattr", "removexattr", "symlink", "utime", "open",
)  # fmt: skip
"""All by which the file system is changed, where a file is opened to be written: a kill before each
call of these is a kill in every state that another process can ever find."""
_WRITING = os.O_WRONLY | os.O_RDWR


def killed_at(count: int, work: Callable[[], object], *, torn: bool) -> bool:
    """Do the work in a process of its own that is killed at its n-th system call.

    Args:
        count: n.
        work: What is done.
        torn: Only writes are counted, and half of the n-th is written.

    Returns:
        Whether it was killed: False if it has ended before.
    """
    child = os.fork()
    if child == 0:
        left = [count]

        def wrapped(name: str) -> Callable[..., object]:
            real = getattr(os, name)

            def call(*arguments: object, **named: object) -> object:
                reads = name == "open" and not arguments[1] & _WRITING  # type: ignore[operator]
                left[0] -= not reads
                if left[0] == 0 and not reads:
                    if torn:
                        descriptor, content, *rest = arguments
                        assert isinstance(content, bytes)
                        real(descriptor, content[: len(content) // 2], *rest)
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments, **named)

            return call

        for name in ("write", "pwrite") if torn else _SYSCALLS:
            setattr(os, name, wrapped(name))
        try:
            work()
            os._exit(0)
        except BaseException:  # whatever it is: the parent has to know
            import traceback

            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def small_tree(root: Path) -> list[AnyChange]:
    """Make a tree, and return one change of each kind."""
    (root / "etc").mkdir(parents=True)
    (root / "etc/there").write_bytes(b"before\n" * 99)
    (root / "etc/there").chmod(0o640)
    (root / "etc/gone").write_bytes(b"removed\n")
    (root / "etc/link").symlink_to("there")
    if os.geteuid() == 0:
        os.setxattr(root / "etc/there", "trusted.latenz-test", b"kept")
        os.chown(root / "etc/there", 3, 4)
    (root / "sys/kernel").mkdir(parents=True)
    (root / "sys/kernel/value").write_bytes(b"always [madvise] never\n")
    set_boot(root, "first")
    return [
        FolderChange(path="/etc/new.d"),
        FileChange(path="/etc/new.d/latenz.conf", content=b"made\n"),
        FileChange(path="/etc/there", content=b"after\n" * 99),
        FileChange(path="/etc/gone", content=None),
        LinkChange(path="/etc/link", target=None),
        LinkChange(path="/etc/another", target="/dev/null"),
        WriteChange(path="/sys/kernel/value", value="never"),
    ]


@pytest.mark.parametrize("seed", range(30))
def test_a_random_tree_is_the_same_after_random_changes_were_taken_back(
    folder: Path, seed: int
) -> None:
    random, root = Random(seed), folder / "root"
    make_tree(root, random)
    before, times = fingerprint(root), modified(root)
    apply_all(root, make_changes(root, random))
    assert fingerprint(root) != before
    revert_all(root)
    assert fingerprint(root) == before
    assert modified(root) == times


def modified(root: Path) -> dict[Path, int]:
    """Return when each file was modified; folders have other times than before."""
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    return {path: path.stat().st_mtime_ns for path in files}


def test_all_is_on_the_disk_before_the_step_that_relies_on_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No kill can show that, but a power failure: the order of the system calls does."""
    root = folder / "root"
    changes = small_tree(root)
    calls: list[str] = []
    changing = {"write", "pwrite", "replace", "rename", "unlink", "mkdir", "rmdir"}
    for name in (*changing, "fsync", "fdatasync"):
        real = getattr(os, name)

        def call(*arguments: object, _name: str = name, _real: object = real, **named: object):
            calls.append(_name)
            return _real(*arguments, **named)  # type: ignore[operator]

        monkeypatch.setattr(os, name, call)
    apply_all(root, changes)
    revert_all(root)
    unsafe = {
        "pwrite": changing,  # what is announced, and that it was done
        "write": {"replace", "rename"},  # the content of what takes a place
        "replace": {"pwrite"},  # the step that is then reported as done
        "unlink": {"pwrite"},
        "mkdir": {"pwrite"},
        "rmdir": {"pwrite"},
    }
    assert calls.count("pwrite") > 4 * len(changes)
    for number, name in enumerate(calls):
        rest = calls[number + 1 :]
        until = next((at for at, each in enumerate(rest) if each in unsafe.get(name, ())), None)
        if until is not None:
            assert {"fsync", "fdatasync"} & set(rest[:until]), calls[number : number + until + 2]


@pytest.mark.parametrize("finish", [False, True])
@pytest.mark.parametrize("torn", [False, True])
def test_killed_at_each_step_of_applying_all_can_be_taken_back_or_finished(
    folder: Path, torn: bool, finish: bool
) -> None:
    whole = folder / "whole"
    changes = small_tree(whole)
    before = fingerprint(whole)
    apply_all(whole, changes)
    wanted = _without_state(whole)
    kills = 0
    for count in range(1, 10_000):
        root = folder / "root"
        small_tree(root)
        if not killed_at(count, lambda at=root: apply_all(at, changes), torn=torn):
            break
        kills += 1
        transaction = find(Place(root))  # what `status` reads: no kill makes it unreadable
        assert transaction is None or transaction.phase in ("applying", "applied")
        if finish:
            apply_all(root, changes)
            assert _without_state(root) == wanted
        revert_all(root)
        assert fingerprint(root) == before
        _remove(root)
    assert kills > (20 if torn else 70)


@pytest.mark.parametrize("torn", [False, True])
def test_killed_at_each_step_of_taking_back_the_rest_is_taken_back(
    folder: Path, torn: bool
) -> None:
    kills = 0
    for count in range(1, 10_000):
        root = folder / "root"
        changes = small_tree(root)
        before = fingerprint(root)
        apply_all(root, changes)
        killed = killed_at(count, lambda at=root: revert_all(at), torn=torn)
        kills += killed
        find(Place(root))
        revert_all(root)
        assert fingerprint(root) == before
        _remove(root)
        if not killed:
            break
    assert kills > (10 if torn else 40)


def _without_state(root: Path) -> dict[str, tuple[object, ...]]:
    return {path: found for path, found in fingerprint(root).items() if not path.startswith("var")}


def _remove(root: Path) -> None:
    import shutil

    shutil.rmtree(root)
