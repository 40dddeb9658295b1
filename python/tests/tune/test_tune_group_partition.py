"""A cpuset partition without systemd: made and dissolved from every state that a kill can leave.

A small model stands for the kernel; the real one is in test_tune_partition_here.
"""

import errno
import os
import shutil
from pathlib import Path

import pytest
from small_machines import debian, planned, write_files

from latenz.affinity import unified_groups
from latenz.errors import BadInput
from latenz.system_calls import OwnSystemCalls
from latenz.tune.changes import GroupChange, Refused
from latenz.tune.context import Context, isolated_cpus
from latenz.tune.places import Place
from latenz.tune.plan import Choice
from latenz.tune.root import Root

MOUNTS = (
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "34 31 0:31 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "40 31 0:38 / {} rw,relatime - cgroup2 cgroup2 rw\n"
)
CHOICE = Choice(only=("host-cpuset-partition",), include=("host-cpuset-partition",))


class Killed(BaseException):
    """The process ends here."""


class ModelKernel(OwnSystemCalls):
    """Control groups as folders; it can refuse the partition, and be left at any call."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses
        self.calls_left = 1 << 30

    def _count(self) -> None:
        self.calls_left -= 1
        if self.calls_left < 0:
            raise Killed

    def write_value(self, path: Path, value: bytes) -> None:
        self._count()
        if path.name == "cgroup.subtree_control":
            words = set(path.read_text().split())
            word = value.decode()
            words = words | {word[1:]} if word[0] == "+" else words - {word[1:]}
            path.write_text(" ".join(sorted(words)) + "\n")
            self._show(path.parent)
        elif path.name == "cgroup.procs":
            for other in path.parent.rglob("cgroup.procs"):
                left = [each for each in other.read_text().split() if each != value.decode()]
                other.write_text("".join(f"{each}\n" for each in left))
            path.write_text(path.read_text() + value.decode() + "\n")
        elif not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        elif value == b"isolated" and self.refuses:
            path.write_text(f"isolated invalid ({self.refuses})\n")
        else:
            path.write_text(value.decode() + "\n")

    def make_folder(self, path: Path, mode: int) -> None:
        self._count()
        super().make_folder(path, mode)
        (path / "cgroup.procs").touch()
        self._show(path.parent)

    def remove_folder(self, path: Path) -> None:
        self._count()
        if (path / "cgroup.procs").read_text().strip():
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        shutil.rmtree(path)

    def _show(self, top: Path) -> None:
        """Let the groups below have files of cpusets, or none."""
        handed_on = "cpuset" in (top / "cgroup.subtree_control").read_text().split()
        for group in filter(Path.is_dir, top.iterdir()):
            for name in ("cpuset.cpus", "cpuset.cpus.partition"):
                if handed_on and not (group / name).exists():
                    (group / name).write_text("member\n" if "partition" in name else "\n")
                elif not handed_on:
                    (group / name).unlink(missing_ok=True)


@pytest.fixture(params=["/sys/fs/cgroup/unified", "/mnt/my\\040groups"])
def groups(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where control group v2 is on a small machine."""
    where: str = request.param
    top = tmp_path / where.replace("\\040", " ").lstrip("/")
    write_files(
        tmp_path,
        {
            "proc/self/mountinfo": MOUNTS.format(where),
            "sys/devices/system/cpu/online": "0-3\n",
        },
    )
    write_files(
        top,
        {
            "cgroup.controllers": "cpuset cpu\n",
            "cgroup.subtree_control": "cpu\n",
            "cgroup.procs": "1\n",
            "other/cgroup.procs": "40\n",
        },
    )
    return top


def place_of(root: Path, kernel: ModelKernel) -> Place:
    place = Place(root)
    place.live, place.calls = True, kernel
    return place


def shown(top: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in sorted(top.rglob("*")) if path.is_file()}


def made(place: Place) -> GroupChange:
    change = GroupChange(cpus="2-3").captured(place, Path("unused"))
    change.do(place)
    return change


def test_it_is_made_seen_and_dissolved(groups: Path, tmp_path: Path) -> None:
    place, before = place_of(tmp_path, ModelKernel()), shown(groups)
    change = made(place)
    (groups / "latenz.slice/cpuset.cpus.effective").write_text("2-3\n")
    assert isolated_cpus(Root(tmp_path)) == {2, 3}
    (groups / "latenz.slice/cpuset.cpus.effective").unlink()
    place.calls.write_value(groups / "latenz.slice/cgroup.procs", b"77")
    change.undo(place, Path("unused"))
    assert (groups / "cgroup.procs").read_text() == "1\n77\n", "what ran in it goes on"
    (groups / "cgroup.procs").write_text("1\n")
    assert shown(groups) == before


def test_from_wherever_it_was_killed_it_is_taken_back(groups: Path, tmp_path: Path) -> None:
    before = shown(groups)
    for first in range(20):
        for second in range(20):
            kernel = ModelKernel()
            place = place_of(tmp_path, kernel)
            change = GroupChange(cpus="2-3").captured(place, Path("unused"))
            kernel.calls_left = first
            try:
                change.do(place)
            except Killed:
                assert change.now(place, None) in ("as applied", "as before")
            kernel.calls_left = second
            try:
                change.undo(place, Path("unused"))
            except Killed:
                kernel.calls_left = 1 << 30
                change.undo(place, Path("unused"))
            assert shown(groups) == before, (first, second)


def test_what_the_kernel_does_not_make_leaves_nothing(groups: Path, tmp_path: Path) -> None:
    before = shown(groups)
    place = place_of(tmp_path, ModelKernel("Cpu list in cpuset.cpus not exclusive"))
    with pytest.raises(Refused, match="not exclusive"):
        made(place)
    assert shown(groups) == before


def test_what_others_use_of_it_meanwhile_stays(groups: Path, tmp_path: Path) -> None:
    place = place_of(tmp_path, ModelKernel())
    change = made(place)
    (groups / "other/cpuset.cpus").write_text("0\n")
    change.undo(place, Path("unused"))
    assert "cpuset" in (groups / "cgroup.subtree_control").read_text()
    assert (groups / "other/cpuset.cpus").read_text() == "0\n"


def test_a_group_that_is_there_is_not_taken(groups: Path, tmp_path: Path) -> None:
    (groups / "latenz.slice").mkdir()
    with pytest.raises(BadInput, match="is there already"):
        GroupChange(cpus="2-3").captured(place_of(tmp_path, ModelKernel()), Path("unused"))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (None, "/sys/fs/cgroup"),
        ("", "/sys/fs/cgroup"),
        ("damaged - cgroup2", "/sys/fs/cgroup"),
        ("1 2 0:3 /../below /first rw - cgroup2 x rw\n1 2 0:3 / /top rw - cgroup2 x rw", "/top"),
        ("1 2 0:3 /../below /first rw shared:9 - cgroup2 x rw", "/first"),
        ("1 2 0:3 / /a\\134b rw - cgroup2 x rw", "/a\\b"),
    ],
)
def test_where_control_group_v2_is(text: str | None, place: str) -> None:
    assert unified_groups(lambda path: text if path.endswith("mountinfo") else None) == place


def test_a_plan_tells_what_lasts_without_systemd(tmp_path: Path) -> None:
    debian(tmp_path)
    files = {"proc/1/comm": "openrc-init\n", "sys/fs/cgroup/cgroup.controllers": "cpuset\n"}
    write_files(tmp_path, files)
    found = planned(tmp_path, profile="host", choice=CHOICE)
    where = "the partition is made on the machine itself only"
    assert f"host-cpuset-partition: {where}" in found.notes
    assert not found.changes


def test_cpusets_of_control_group_v1_are_told(tmp_path: Path) -> None:
    debian(tmp_path)
    write_files(tmp_path, {"sys/fs/cgroup/cgroup.controllers": "hugetlb\n"})
    [note, *_] = planned(tmp_path, profile="host", choice=CHOICE).notes
    assert "not applicable (control group v2 has no cpuset here (one of v1" in note
    assert Context.of(Root(tmp_path), "2-3").expand("/{groups}") == "/sys/fs/cgroup"
