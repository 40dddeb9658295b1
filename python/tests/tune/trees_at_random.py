"""Random trees of files, random changes to them, and a fingerprint of all that a tree is."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from latenz.tune.applying import apply, revert
from latenz.tune.changes import AnyChange, FileChange, FolderChange, LinkChange, WriteChange
from latenz.tune.places import Place
from latenz.tune.transaction import Restored, Transaction

_FOLDERS = (
    "etc",
    "etc/sysctl.d",
    "etc/default",
    "boot",
    "boot/loader",
    "var",
    "var/lib",
    "usr/lib",
)
_VALUES = (
    b"0\n",
    b"950000\n",
    b"0-3\n",
    b"always [madvise] never\n",
    b"3\n",
    b"N\n",
    b"f,00000000\n",
)


def never() -> bool:
    """Return that nobody asked to stop."""
    return False


def quiet(_done: int) -> None:
    """Take progress, and tell nobody."""


def apply_all(root: Path, changes: Sequence[AnyChange]) -> Transaction:
    """Apply changes, or finish what was interrupted."""
    return apply(Place(root), changes, "2-3", "kvm-host", never, quiet)


def revert_all(root: Path, *, force: bool = False) -> list[Restored]:
    """Revert what was applied."""
    results = revert(Place(root), force, never, quiet)
    assert results is not None
    return results


def fingerprint(root: Path) -> dict[str, tuple[object, ...]]:
    """Return, for each path: type and mode, owner, content or target, attributes."""
    found = {}
    for path in sorted([root, *root.rglob("*")]):
        status = path.lstat()
        content: object = None
        if path.is_symlink():
            content = os.readlink(path)  # noqa: PTH115 - exactly
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        names = os.listxattr(path, follow_symlinks=False)
        attributes = {name: os.getxattr(path, name, follow_symlinks=False) for name in names}
        found[str(path.relative_to(root))] = (
            status.st_mode, status.st_uid, status.st_gid, content, attributes,
        )  # fmt: skip
    return found


def make_tree(root: Path, random: Random) -> None:
    """Make a tree with files, links and attributes, and a kernel's files below proc and sys."""
    root.mkdir()
    for folder in _FOLDERS:
        if random.random() < 0.7:
            (root / folder).mkdir(parents=True, exist_ok=True)
    for folder in [path for path in root.rglob("*") if path.is_dir()]:
        for number in range(random.randrange(3)):
            _make_file(folder / f"file{number}", random)
        if random.random() < 0.3:
            (folder / "link").symlink_to(random.choice(["file0", "../file0", "/etc", "nowhere"]))
        folder.chmod(random.choice([0o755, 0o750, 0o700]))
    for number in range(1, 5):
        folder = root / f"proc/irq/{number}/device{number}"
        folder.mkdir(parents=True)
        (folder.parent / "smp_affinity_list").write_bytes(random.choice(_VALUES))
    (root / "sys/kernel").mkdir(parents=True)
    for number in range(4):
        (root / f"sys/kernel/value{number}").write_bytes(random.choice(_VALUES))
    set_boot(root, "first")


def set_boot(root: Path, boot: str) -> None:
    path = root / "proc/sys/kernel/random/boot_id"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(boot + "\n")


def _make_file(path: Path, random: Random) -> None:
    path.write_bytes(random.randbytes(random.choice([0, 7, 5000])))
    path.chmod(random.choice([0o644, 0o600, 0o755, 0o4755]))
    if os.geteuid() == 0:
        os.chown(path, random.randrange(3), random.randrange(3))
        if random.random() < 0.5:
            os.setxattr(path, "trusted.latenz-test", random.randbytes(9))


def make_changes(root: Path, random: Random) -> list[AnyChange]:
    """Return changes that fit a tree: of what is there, and of what is not."""
    kinds: list[Callable[[Path, Random], list[AnyChange]]] = [_files, _links, _writes]
    changes = [change for kind in kinds for change in kind(root, random)]
    random.shuffle(changes)
    return [*_folders(random), *changes]


def _folders(random: Random) -> list[AnyChange]:
    return [
        FolderChange(path=path)
        for path in ("/made", "/made/below", "/etc", "/etc/new.d")
        if path == "/etc" or random.random() < 0.8 or path == "/made"
    ]


def _files(root: Path, random: Random) -> list[AnyChange]:
    there = [path for path in root.rglob("file*") if path.is_file() and not path.is_symlink()]
    changed: list[AnyChange] = [
        FileChange(
            path="/" + str(path.relative_to(root)),
            content=random.choice([None, b"", random.randbytes(3000)]),
        )
        for path in there
        if random.random() < 0.5
    ]
    return [
        *changed,
        FileChange(path="/etc/latenz.conf", content=b"new\n"),
        FileChange(path="/made/new", content=random.randbytes(100)),
    ]


def _links(root: Path, random: Random) -> list[AnyChange]:
    there = [path for path in root.rglob("*") if path.is_symlink()]
    changed: list[AnyChange] = [
        LinkChange(
            path="/" + str(path.relative_to(root)), target=random.choice([None, "/dev//null"])
        )
        for path in there
        if random.random() < 0.6
    ]
    return [*changed, LinkChange(path="/etc/new-link", target="../etc/./nothing")]


def _writes(root: Path, random: Random) -> list[AnyChange]:
    return [
        WriteChange(
            path=f"/proc/irq/{number}/smp_affinity_list",
            value="0",
            interrupt=("", f"device{number}"),
        )
        for number in range(1, 5)
        if random.random() < 0.7
    ] + [
        WriteChange(path=f"/sys/kernel/value{number}", value=random.choice(["1", "never", "-1"]))
        for number in range(4)
        if random.random() < 0.7
    ]


def changes_below(root: Path, seed: int, folders: Sequence[str]) -> list[AnyChange]:
    """Return random changes of files, links and folders below some folders of a tree."""
    mine = tuple(f"/{name}/" for name in folders)
    return [
        change
        for change in make_changes(root, Random(seed))
        if isinstance(change, FileChange | LinkChange | FolderChange)
        and change.path.startswith(mine)
    ]
