"""The partition's own commands on a booted Linux 6.1: Debian's, emulated, with control group v2.

Eight busy threads leave the CPUs at once, and come back when it is dissolved. What systemd would do
with `AllowedCPUs=` of the slice is written by hand; the rest is the unit's.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from latenz.boards.images import initrd, linux
from latenz.errors import BadInput
from latenz.tune.catalogue import chosen
from latenz.tune.changes import PARTITION_UNIT, FileChange
from latenz.tune.context import Context, isolated_cpus
from latenz.tune.lasting import Draft, Wish
from latenz.tune.partition import add_lasting_partition
from latenz.tune.root import Root

pytestmark = pytest.mark.boots

_INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t cgroup2 cgroup /sys/fs/cgroup
busybox() {{ /bin/busybox "$@"; }}
cd /sys/fs/cgroup
busybox mkdir system.slice latenz.slice
echo +cpuset > cgroup.subtree_control
echo 2-3 > latenz.slice/cpuset.cpus
tell() {{
  for file in cpuset.cpus.isolated latenz.slice/cpuset.cpus.partition \\
      latenz.slice/cpuset.cpus.effective system.slice/cpuset.cpus.effective; do
    [ -e $file ] && echo "$1 $file $(busybox cat $file)"
  done
}}
echo $$ > system.slice/cgroup.procs
spinning=
for each in 1 2 3 4 5 6 7 8; do
  /bin/busybox sh -c 'while :; do :; done' &
  spinning="$spinning $!"
done
there() {{ # how many of them are on CPU 2 or 3
  found=0
  for each in $spinning; do
    read -r stat < /proc/$each/stat
    set -- ${{stat##*) }}
    case ${{37}} in 2|3) found=$((found + 1)) ;; esac
  done
  echo $found
}}
until [ "$(there)" -gt 0 ]; do busybox usleep 20000; done
echo "before $(there)"
/bin/busybox sh -c '{start}' > /dev/null
echo "started $?"
tell made
for each in 1 2 3 4 5 6 7 8 9 10; do echo "meanwhile $(there)"; busybox usleep 20000; done
busybox taskset -p 4 $$ > /dev/null 2>&1 || echo "outside refused"
echo $$ > latenz.slice/cgroup.procs
busybox taskset -p 4 $$ > /dev/null 2>&1 && echo "inside allowed"
/bin/busybox sh -c '{stop}'
tell dissolved
until [ "$(there)" -gt 0 ]; do busybox usleep 20000; done
echo "after $(there)"
busybox poweroff -f
"""


def _commands(empty: Path) -> list[str]:
    """Return what the planned unit runs, to start and to stop."""
    (entry,) = chosen(("host-cpuset-partition",), "")
    draft = Draft()
    (empty / "proc/1").mkdir(parents=True)
    (empty / "proc/1/comm").write_text("systemd\n")
    context = Context(Root(empty), frozenset({2, 3}), frozenset(range(4)), "host")
    add_lasting_partition([Wish(entry, action) for action in entry.boot], context, draft)
    files = {each.path: each.content for each in draft.changes if isinstance(each, FileChange)}
    unit = (files[PARTITION_UNIT] or b"").decode().replace("\\\n", "").replace("$$", "$")
    return re.findall(r"^Exec(?:Start|Stop)=/bin/sh -c '(.*)'$", unit, re.MULTILINE)


def _booted(init: str) -> str:
    """Return what a machine of four CPUs says on its console."""
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("QEMU is not installed")
    try:
        disk = initrd(
            "tune-partition",
            init,
            packages=["busybox-static"],
            programs=["/bin/busybox"],
            architecture="amd64",
        )
        kernel = linux("stock", "amd64")
    except BadInput as mistake:
        pytest.skip(f"the packages cannot be fetched: {mistake}")
    command = ["qemu-system-x86_64", "-cpu", "max", "-smp", "4", "-m", "512", "-nographic"]
    command += ["-no-reboot", "-net", "none", "-kernel", str(kernel.path), "-initrd"]
    command += [str(disk.path), "-append", "console=ttyS0 quiet panic=-1"]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    return ended.stdout.replace("\r", "")


def test_a_kernel_makes_the_partition_and_dissolves_it(tmp_path: Path) -> None:
    start, stop = _commands(tmp_path)
    said = _booted(_INIT.format(start=start, stop=stop))
    assert "started 0\n" in said, said
    assert "outside refused\n" in said
    assert "inside allowed\n" in said
    assert re.search(r"before [1-8]$", said, re.MULTILINE)
    assert re.findall(r"^meanwhile (.*)$", said, re.MULTILINE) == ["0"] * 10
    assert re.search(r"^after [1-8]$", said, re.MULTILINE)
    told = re.findall(r"^(made|dissolved) (\S+) (.*)$", said, re.MULTILINE)
    values = {(when, path): value for when, path, value in told}
    assert values["made", "system.slice/cpuset.cpus.effective"] == "0-1"
    assert values["dissolved", "system.slice/cpuset.cpus.effective"] == "0-3"
    for when, isolated in (("made", {2, 3}), ("dissolved", set[int]())):
        for (moment, path), value in values.items():
            if moment == when:
                file = tmp_path / when / "sys/fs/cgroup" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"{value}\n")
        assert isolated_cpus(Root(tmp_path / when)) == isolated
