"""Snapshots: as good as the machine for every check, the same bytes again, and no secrets."""

import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from collected_trees import BASES, ISOLATED, unpack

from latenz.errors import BadInput
from latenz.tune.catalogue import load
from latenz.tune.check import Check, check
from latenz.tune.context import Context
from latenz.tune.model import (
    Condition,
    IrqsProbe,
    QemuMemoryProbe,
    QemuProbe,
    QemuThreadsProbe,
    ServiceProbe,
    StealProbe,
    TasksProbe,
)
from latenz.tune.root import Root
from latenz.tune.snapshot import write_snapshot

PROFILES = ("host", "kvm-host", "guest")


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("trees"))


def checked(root: Path, cpus: str | None, profile: str) -> list[Check]:
    return check(Context.of(Root(root), cpus, profile), load())


@pytest.mark.parametrize("base", sorted(set(BASES.values())))
def test_a_snapshot_is_as_good_as_the_tree(trees: Path, tmp_path: Path, base: str) -> None:
    taken = tmp_path / "machine.tar"
    write_snapshot(taken, trees / base)
    isolated = ISOLATED[base.partition("/")[0]]
    for profile, some in (("host", (None, "0")), ("kvm-host", (isolated,)), ("guest", ("0",))):
        for cpus in some:
            assert checked(taken, cpus, profile) == checked(trees / base, cpus, profile)
    assert Context.of(Root(taken)).profile == Context.of(Root(trees / base)).profile


def test_a_snapshot_may_be_unpacked_and_taken_again(trees: Path, tmp_path: Path) -> None:
    first, again, third = (tmp_path / name for name in ("a.tar", "b.tar", "c.tar"))
    write_snapshot(first, trees / "debian12/tuned")
    write_snapshot(again, trees / "debian12/tuned")
    assert first.read_bytes() == again.read_bytes()
    with tarfile.open(first) as archive:
        archive.extractall(tmp_path / "unpacked")
        owners = {(member.uid, member.gid, member.mtime) for member in archive}
    assert owners == {(0, 0, 0)}
    write_snapshot(third, tmp_path / "unpacked")
    assert checked(third, "3", "kvm-host") == checked(first, "3", "kvm-host")


def changes_by_itself(condition: Condition) -> bool:
    kinds = (TasksProbe, ServiceProbe, IrqsProbe, StealProbe)
    kinds += (QemuProbe, QemuMemoryProbe, QemuThreadsProbe)
    parts = (*condition.all, *condition.any)
    return isinstance(condition.probe, kinds) or any(map(changes_by_itself, parts))


def test_a_snapshot_of_this_machine_says_what_the_machine_says(tmp_path: Path) -> None:
    """All but what other programs change meanwhile: threads, and the time that a host takes.

    What another test applies and takes back just while the snapshot is taken differs once; what
    the snapshot gets wrong differs each time.
    """
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a machine with one CPU has none to isolate")
    cpu = str(max(os.sched_getaffinity(0)))
    unlike = unlike_this_machine(tmp_path / "this.tar", cpu)
    for _ in range(9):
        if not unlike:
            break
        time.sleep(1)
        again = unlike_this_machine(tmp_path / "this.tar", cpu)
        unlike = {id_: again[id_] for id_ in unlike.keys() & again.keys()}
    assert not unlike


def unlike_this_machine(snapshot: Path, cpu: str) -> dict[str, tuple[Check, Check]]:
    """Take a snapshot; return what it says otherwise than the machine before and after it."""
    before = checked(Path("/"), cpu, "kvm-host")
    write_snapshot(snapshot)
    stored = checked(snapshot, cpu, "kvm-host")
    after = checked(Path("/"), cpu, "kvm-host")
    assert len(before) == len(stored) == len(after)
    found = {}
    for one, kept, other in zip(before, stored, after, strict=True):
        outcome = kept.entry.outcome
        if changes_by_itself(kept.entry) or (outcome and changes_by_itself(outcome)):
            continue
        if one == other != kept:
            found[kept.id] = (one, kept)
    return found


SECRET = "hunter2"


def machine_with_secrets(folder: Path) -> Path:
    memory = "-object\0memory-backend-file,id=m,size=1G,mem-path=/dev/hugepages\0"
    disk = f"{memory}-object\0secret,id=s0,data={SECRET}\0-spice\0port=1,password={SECRET},x=y\0"
    files = {
        "proc/cmdline": f"quiet root=UUID={SECRET} rd.luks.key={SECRET} iscsi_password={SECRET}\n",
        "proc/100/cmdline": f"/usr/bin/qemu-system-x86_64\0-enable-kvm\0{disk}",
        "proc/100/comm": "qemu-system-x86\n",
        "proc/100/environ": f"TOKEN={SECRET}\0",
        "proc/200/cmdline": f"mysql\0--password={SECRET}\0",
        "proc/200/environ": f"TOKEN={SECRET}\0",
        "proc/mounts": f"//{SECRET}/share /mnt cifs rw 0 0\nh /dev/hugepages hugetlbfs rw 0 0\n",
        "proc/cpuinfo": f"processor\t: 0\nprocessor\t: 1\nSerial\t\t: {SECRET}\n",
        "etc/shadow": f"root:{SECRET}:1::::::\n",
        "etc/ssh/ssh_host_key": SECRET,
        "etc/security/limits.conf": f"# {SECRET}\n@realtime - rtprio 98\n",
        "etc/chrony/chrony.conf": f"server {SECRET} iburst\nmakestep 1 3\n",
        "etc/systemd/system.conf": f"#{SECRET}\nCPUAffinity=0\n",
        "etc/libvirt/qemu/a.xml": f"<domain><graphics type='vnc' passwd='{SECRET}'/></domain>",
        "etc/libvirt/qemu/b.xml": f'<domain><graphics type="vnc" passwd="{SECRET}"/></domain>',
        "root/.ssh/id_ed25519": SECRET,
        "latenz/dmesg": f"booting {SECRET}\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "etc/modprobe.d").mkdir()
    (folder / "etc/modprobe.d/evil.conf").symlink_to("../shadow")
    return folder


def test_a_snapshot_holds_no_secrets(tmp_path: Path) -> None:
    folder = machine_with_secrets(tmp_path / "machine")
    (folder / "etc/modprobe.d/evil.conf").unlink()
    write_snapshot(tmp_path / "machine.tar", folder)
    content = (tmp_path / "machine.tar").read_bytes()
    assert SECRET.encode() not in content
    kept = Root(tmp_path / "machine.tar")
    assert kept.read("/proc/cmdline") == "quiet root=... rd.luks.key=... iscsi_password=...\n"
    arguments = kept.read("/proc/100/cmdline")
    assert arguments is not None
    assert "secret,id=s0,data=...\0-spice\0port=1,password=...,x=y\0" in arguments
    assert kept.read("/proc/200/cmdline") is None
    assert kept.read("/etc/chrony/chrony.conf") == "makestep 1 3\n"
    assert kept.read("/etc/systemd/system.conf") == "CPUAffinity=0\n"
    assert kept.read("/proc/mounts") == "h /dev/hugepages hugetlbfs rw 0 0\n"
    with tarfile.open(tmp_path / "machine.tar") as archive:
        names = archive.getnames()
    for name in ("shadow", "environ", "ssh_host_key", "id_ed25519", ".ssh"):
        assert not any(name in path for path in names)


def test_a_link_cannot_bring_a_foreign_file_into_a_snapshot(tmp_path: Path) -> None:
    folder = machine_with_secrets(tmp_path / "machine")
    outside = tmp_path / "outside"
    outside.write_text("4711\n")
    link = folder / "proc/sys/vm/stat_interval"
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    write_snapshot(tmp_path / "machine.tar", folder)
    assert b"4711" not in (tmp_path / "machine.tar").read_bytes()


def as_nobody(action: Callable[[], object]) -> str:
    """Do something as an ordinary user, in a child; return what it gave, as text."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        told = "failed"
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            told = repr(action())
        finally:
            os.write(write_end, told.encode())
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return told


def test_what_cannot_be_read_is_told_and_stays_unknown(folder: Path) -> None:
    machine, taken = folder / "machine", folder / "taken"
    for name, text in (
        ("proc/sys/vm/stat_interval", "10\n"),
        ("proc/sys/vm/swappiness", "60\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
    ):
        (machine / name).parent.mkdir(parents=True, exist_ok=True)
        (machine / name).write_text(text)
    (machine / "proc/sys/vm/stat_interval").chmod(0)
    folder.chmod(0o755)
    taken.mkdir()
    taken.chmod(0o777)
    write_snapshot(taken / "first.tar", machine)  # all modules are loaded while we may do so
    told = as_nobody(lambda: write_snapshot(taken / "second.tar", machine))
    assert told == "{'/proc/sys/vm/stat_interval': 'permission denied'}"
    checks = {each.id: each for each in checked(taken / "second.tar", "1", "host")}
    closed = checks["host-stat-interval"]
    assert closed.state == "unknown"
    assert closed.reason == "/proc/sys/vm/stat_interval: permission denied"
    assert Root(taken / "second.tar").read("/proc/sys/vm/swappiness") == "60\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a namespace of processes")
def test_in_a_container_the_machine_s_threads_are_not_known_to_be_absent(tmp_path: Path) -> None:
    """In a PID namespace of its own, as in a container; and from a snapshot taken there."""
    ids = ("cmdline-audit-off", "host-irq-thread-affinity", "host-thermald-off")
    only = [word for id_ in ids for word in ("--only", id_)]
    command = [sys.executable, "-m", "latenz", "tune"]
    tar = str(tmp_path / "container.tar")
    inside = ["unshare", "--pid", "--fork", "--mount-proc", *command]
    subprocess.run([*inside, "snapshot", tar], check=True, capture_output=True, timeout=600)
    for prefix, more in ((inside, ["--live", "50ms"]), (command, ["--root", tar])):
        answer = subprocess.run(
            [*prefix, "check", "--cpus", "1", "--profile", "host", "--json", *more, *only],
            capture_output=True,
            timeout=600,
        )
        seen = {each["id"]: each for each in json.loads(answer.stdout)["checks"]}
        assert {id_: seen[id_]["state"] for id_ in ids} == dict.fromkeys(ids, "unknown"), seen
        assert "container" in seen["cmdline-audit-off"]["reason"]
        assert seen.get("live-tasks", {"state": "unknown"})["state"] == "unknown", seen


def test_the_command_tells_what_it_left_out(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "latenz", "tune", "snapshot", str(tmp_path / "this.tar")]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert answer.returncode == 0
    assert answer.stdout == f"snapshot: {tmp_path / 'this.tar'}\n"
    assert all(line.startswith("left out: ") for line in answer.stderr.splitlines())
    root = Root(tmp_path / "this.tar")
    for path in ("/proc/interrupts", "/proc/cpuinfo", "/sys/devices/system/cpu/online"):
        assert root.read(path)


def test_a_snapshot_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        write_snapshot(tmp_path, tmp_path)
    with pytest.raises(BadInput, match="cannot be written"):
        write_snapshot(tmp_path / "nowhere/machine.tar", tmp_path)


def test_a_folder_that_is_read_through_a_link_is_a_folder_in_the_snapshot(tmp_path: Path) -> None:
    folder = tmp_path / "machine"
    (folder / "sys/devices/pci/net/eth0/queues/rx-0").mkdir(parents=True)
    (folder / "sys/devices/pci/net/eth0/queues/rx-0/rps_cpus").write_text("f\n")
    (folder / "sys/class/net").mkdir(parents=True)
    (folder / "sys/class/net/eth0").symlink_to("../../devices/pci/net/eth0")
    write_snapshot(tmp_path / "machine.tar", folder)
    kept = Root(tmp_path / "machine.tar")
    assert kept.glob("/sys/class/net/*/queues/rx-*/rps_cpus") == [
        "/sys/class/net/eth0/queues/rx-0/rps_cpus"
    ]
    assert kept.read("/sys/class/net/eth0/queues/rx-0/rps_cpus") == "f\n"
    with tarfile.open(fileobj=io.BytesIO((tmp_path / "machine.tar").read_bytes())) as archive:
        archive.extractall(tmp_path / "unpacked")
