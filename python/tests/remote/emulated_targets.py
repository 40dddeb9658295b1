"""Targets in the emulator: Debian's kernel, busybox and dropbear, reached by real ssh.

Nothing of Latenz is on them. `/etc`, `/boot` and `/var` lie on a disk, as those of a real board do:
what was not written to it before the power is cut is lost.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from latenz.boards.archive import Node, write_cpio
from latenz.boards.images import initrd, linux
from latenz.boards.packages import Architecture

OWN = ("etc", "boot", "var")
"""What lies on the target's disk."""
_MODULES = ("virtio_net", "virtio_mmio", "virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
_BOOT_LIMIT_S = 300.0
_INIT = f"""#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs trace /sys/kernel/tracing
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts /run /tmp /root
mount -t devpts pts /dev/pts
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mount -t tmpfs shm /dev/shm
for module in {" ".join(_MODULES)}; do modprobe $module 2>/dev/null; done
ip link set lo up
for wait in 1 2 3 4 5 6 7 8 9 10; do [ -e /sys/class/net/eth0 ] && break; usleep 100000; done
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
mkdir -p /boot /disk /var
dropbearconvert openssh dropbear /keys/host /keys/own 2>/dev/null
mkdir -p /root/.ssh
cp /keys/user.pub /root/.ssh/authorized_keys
chmod 700 /root /root/.ssh
if mount -t ext4 /dev/vda /disk 2>/dev/null; then
  for name in {" ".join(OWN)}; do mount --bind /disk/$name /$name; done
fi
head -c 1 /dev/random >/dev/null
cat /proc/sys/kernel/random/boot_id >/boot_id
exec init
"""
_ETC = {
    "inittab": b"::respawn:/usr/sbin/dropbear -F -E -s -r /keys/own -p 22\n",
    "passwd": b"root:x:0:0:root:/root:/bin/sh\n",
}


@dataclass(frozen=True)
class _Kind:
    """How a kind of processor is emulated."""

    program: str
    options: tuple[str, ...]


_KINDS: dict[str, _Kind] = {
    "arm64": _Kind("qemu-system-aarch64", ("-M", "virt", "-cpu", "cortex-a53")),
    "armhf": _Kind("qemu-system-arm", ("-M", "virt", "-cpu", "cortex-a15")),
}


class EmulatedTarget:
    """A running machine.

    Args:
        folder: For its keys and its disk; empty at first.
        architecture: Debian's name of its processor.
        cpus: How many it has.
        tree: What its disk holds: the folders of `OWN`, to which what it boots with is added; None
            for no disk.
        counted: Count instructions, with one CPU: time is then what they take.

    Attributes:
        url: Its URL for `--on`.
        ssh: What `LATENZ_SSH_COMMAND` has to be.
        disk: The image of its disk.
    """

    def __init__(
        self,
        folder: Path,
        architecture: Architecture = "arm64",
        *,
        cpus: int = 2,
        tree: Path | None = None,
        counted: bool = False,
    ) -> None:
        self._folder = folder
        self._kind = _KINDS[architecture]
        self._architecture = architecture
        self._cpus, self._counted = cpus, counted
        self._port = _free_port()
        self.url = f"ssh://root@127.0.0.1:{self._port}"
        self.disk = folder / "disk.ext4"
        self._has_disk = tree is not None
        if tree is not None:
            _make_disk(self.disk, tree)
        for name in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name],
                check=True,
            )
        _, kind, key = ("x " + (folder / "host.pub").read_text()).split(" ")[:3]
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self._port} {kind} {key}\n")
        self.ssh = (
            f"ssh -F none -i {folder / 'user'} -o UserKnownHostsFile={folder / 'known_hosts'}"
            " -o IdentitiesOnly=yes -o HostKeyAlgorithms=ssh-ed25519"
        )
        self._emulator: subprocess.Popen[bytes] | None = None
        self._monitor: IO[bytes] | None = None
        self._commands: socket.socket | None = None

    def start(self) -> None:
        """Switch it on; return once it answers."""
        self._emulator = subprocess.Popen(
            self._command(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        self._connect_monitor()
        self.wait()
        mounted = "/dev/vda /etc " in self.run("cat /proc/mounts").stdout
        assert mounted == self._has_disk, self.run("dmesg").stdout[-2000:]

    def _command(self) -> list[str]:
        kernel = linux("stock", self._architecture)
        disk = (
            *("-drive", f"file={self.disk},format=raw,if=none,id=disk,cache=writethrough"),
            *("-device", "virtio-blk-device,drive=disk"),
        )
        counted = ("-icount", "shift=0,sleep=off") if self._counted else ()
        return [
            *(self._kind.program, *self._kind.options, "-m", "512", "-smp", str(self._cpus)),
            *("-kernel", str(kernel.path), "-initrd", str(self._initrd())),
            *("-append", "quiet console=ttyAMA0 panic=-1"),
            *("-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{self._port}-:22"),
            *("-device", "virtio-net-device,netdev=net,id=card"),
            *(disk if self._has_disk else ()),
            *counted,
            *("-display", "none", "-monitor", "none"),
            *("-serial", f"file:{self._folder / 'console'}"),
            *("-qmp", f"unix:{self._folder / 'qmp'},server=on,wait=off"),
        ]

    def _initrd(self) -> Path:
        """Return what it starts from: a cached system, and its own keys behind it."""
        made = initrd(
            "target",
            _INIT,
            packages=("busybox-static", "dropbear-bin"),
            programs=("/bin/busybox", "/usr/sbin/dropbear", "/usr/bin/dropbearconvert"),
            modules=_MODULES,
            files={f"/etc/{name}": content for name, content in _ETC.items()},
            architecture=self._architecture,
        )
        keys = self._folder / "keys.cpio"
        write_cpio(
            keys,
            {
                f"/keys/{name}": Node.file((self._folder / name).read_bytes())
                for name in ("host", "user.pub")
            },
        )
        own = self._folder / "initrd"
        own.write_bytes(made.path.read_bytes() + keys.read_bytes())
        return own

    def _connect_monitor(self) -> None:
        path = self._folder / "qmp"
        deadline = time.monotonic() + 30
        while True:
            self._commands = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(OSError):
                self._commands.connect(str(path))
                break
            self._commands.close()
            assert time.monotonic() < deadline, "the emulator does not start"
            time.sleep(0.05)
        self._monitor = self._commands.makefile("rb")
        self._monitor.readline()
        self._order("qmp_capabilities")

    def _order(self, order: str, **arguments: object) -> None:
        assert self._commands is not None
        assert self._monitor is not None
        told = json.dumps({"execute": order, "arguments": arguments})
        self._commands.sendall(told.encode() + b"\n")
        while "return" not in (answer := json.loads(self._monitor.readline())):
            assert "error" not in answer, answer

    def wait(self) -> None:
        """Wait until it answers."""
        deadline = time.monotonic() + _BOOT_LIMIT_S
        while self.run("true", limit_s=60).returncode != 0:
            assert time.monotonic() < deadline, (self._folder / "console").read_text()[-2000:]
            time.sleep(0.2)

    def run(self, command: str, limit_s: float = 120) -> "subprocess.CompletedProcess[str]":
        """Run a command on it, by ssh alone."""
        options = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-p", str(self._port))
        return subprocess.run(
            [*self.ssh.split(), *options, "root@127.0.0.1", command],
            capture_output=True,
            text=True,
            check=False,
            timeout=limit_s,
        )

    def cut_link(self) -> None:
        """Pull the cable."""
        self._order("set_link", name="card", up=False)

    def mend_link(self) -> None:
        """Plug the cable in."""
        self._order("set_link", name="card", up=True)

    def cut_power(self) -> None:
        """Cut its power, and switch it on: what it had not written is lost."""
        self._order("system_reset")

    def left(self) -> set[str]:
        """Return processes and folders of the agent that are there."""
        command = (
            "for p in /proc/[0-9]*; do readlink $p/exe | grep -q latenz && echo $p; done;"
            " ls -d /run/latenz* /tmp/latenz* /dev/shm/latenz* /var/tmp/latenz* 2>/dev/null"
        )
        return set(self.run(command).stdout.split())

    def stop(self) -> None:
        """Switch it off for good."""
        if self._emulator is not None:
            self._emulator.kill()
            self._emulator.wait()
        for each in (self._monitor, self._commands):
            if each is not None:
                each.close()


@contextlib.contextmanager
def emulated(
    folder: Path, architecture: Architecture = "arm64", **options: object
) -> Iterator[EmulatedTarget]:
    """Start a target; switch it off at the end of the block."""
    folder.mkdir(exist_ok=True)
    target = EmulatedTarget(folder, architecture, **options)  # type: ignore[arg-type]
    try:
        target.start()
        yield target
    finally:
        target.stop()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _make_disk(disk: Path, tree: Path) -> None:
    """Write a tree into a file system of its own."""
    assert shutil.which("mke2fs") is not None
    disk.unlink(missing_ok=True)
    for name, content in _ETC.items():
        (tree / "etc" / name).write_bytes(content)
    subprocess.run(
        ["mke2fs", "-q", "-t", "ext4", "-d", tree, disk, "64M"],
        stdout=subprocess.DEVNULL,
        check=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": "0"},
    )
