"""A machine of its own, whose boot menu GRUB makes: apply and revert run there as on any machine.

Its root is an overlay on this machine's, in which Latenz runs by chroot: for it this is `/`. The
files of the kernel are plain ones; GRUB is Debian's, but for the probing of disks.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from small_machines import write_files

from latenz.boards.packages import fetch
from latenz.errors import BadInput

pytestmark = pytest.mark.boots

MENU = "boot/grub/grub.cfg"
PROBE = """#!/bin/sh
case "$*" in *device*) echo /dev/sda1 ;; *target=fs\\ *) echo ext2 ;; *) echo 1234-5678 ;; esac
"""


def mount(stack: ExitStack, *arguments: str) -> None:
    if subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode:
        pytest.skip("an overlay of the root takes root, and a kernel that lets it")
    stack.callback(subprocess.run, ["umount", arguments[-1]], check=True)


@pytest.fixture
def machine(folder: Path) -> Iterator[Path]:
    """The root of a Debian with four CPUs and GRUB."""
    if os.geteuid() != 0:
        pytest.skip("an overlay of the root takes root")
    try:
        [package] = fetch(["grub-common"], architecture="amd64")
    except BadInput as mistake:
        pytest.skip(f"GRUB cannot be fetched: {mistake}")
    upper, work, root = folder / "upper", folder / "work", folder / "root"
    for each in (upper, work, root):
        each.mkdir()
    with ExitStack() as stack:
        options = f"lowerdir=/,upperdir={upper},workdir={work}"
        mount(stack, "-t", "overlay", "overlay", "-o", options, str(root))
        if not (root / sys.executable.lstrip("/")).exists():
            pytest.skip("Python lies on a file system of its own")
        mount(stack, "--bind", "/dev", str(root / "dev"))
        subprocess.run(["dpkg-deb", "--extract", package.path, root], check=True)
        (root / "usr/sbin/grub-probe").write_text(PROBE)
        write_files(
            root,
            {
                "proc/cmdline": "root=/dev/sda1 ro quiet isolcpus=1\n",
                "proc/sys/kernel/random/boot_id": "first\n",
                "proc/uptime": "100.0 100.0\n",
                "sys/devices/system/cpu/online": "0-3\n",
                "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
                "boot/vmlinuz-6.1.0-1-amd64": "a kernel\n",
                "boot/grub/": "",
                "etc/default/grub": 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'
                'GRUB_CMDLINE_LINUX="isolcpus=1"\nGRUB_DISABLE_OS_PROBER=true\n',
            },
        )
        make_menu(root)
        yield root


def make_menu(root: Path) -> None:
    command = ["chroot", root, "grub-mkconfig", "-o", f"/{MENU}"]
    subprocess.run(command, check=True, capture_output=True)


def tune(root: Path, *arguments: str) -> dict[str, object]:
    command = ["chroot", root, sys.executable, "-m", "latenz", "tune", *arguments, "--json"]
    found: dict[str, object] = json.loads(subprocess.check_output(command))
    return found


def kernels(root: Path) -> list[list[str]]:
    """Return the command lines of the menu's first entries: one for each kernel."""
    lines = (root / MENU).read_text().splitlines()
    found = [line.split()[1:] for line in lines if line.split()[:1] == ["linux"]]
    return [words for words in found if "single" not in words]


def test_the_boot_menu_is_made_anew_and_restored(machine: Path) -> None:
    chosen = ("--cpus", "2-3", "--profile", "host", "--only", "cmdline-isolcpus", "--yes")
    before = (machine / MENU).read_bytes()
    assert [word for words in kernels(machine) for word in words if "isolcpus" in word] == [
        "isolcpus=1", "isolcpus=1",
    ]  # fmt: skip

    assert tune(machine, "apply", *chosen)["state"] == "applied"
    for words in kernels(machine):
        assert [word for word in words if "isolcpus" in word] == ["isolcpus=managed_irq,domain,2-3"]
        assert "quiet" in words
    tune(machine, "revert")
    assert (machine / MENU).read_bytes() == before
    assert not (machine / "etc/default/grub.d/latenz.cfg").exists()

    # A kernel that comes meanwhile stays in the menu, without our settings.
    tune(machine, "apply", *chosen)
    (machine / "boot/vmlinuz-6.1.0-2-amd64").write_text("another kernel\n")
    make_menu(machine)
    tune(machine, "revert")
    assert {words[0] for words in kernels(machine)} == {
        "/boot/vmlinuz-6.1.0-1-amd64", "/boot/vmlinuz-6.1.0-2-amd64",
    }  # fmt: skip
    assert {word for words in kernels(machine) for word in words if "isolcpus" in word} == {
        "isolcpus=1"
    }
