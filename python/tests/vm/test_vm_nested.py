"""What an emulated host is told to do, and what it unpacks; a module of its own runs one."""

import shlex
import subprocess
from types import SimpleNamespace

import pytest

from latenz.boards.archive import Node, write_cpio
from latenz.stacks.vm import VmStackSettings
from latenz.tune.catalogue import load
from latenz.tune.context import Context
from latenz.tune.root import Root
from latenz.vm import nested, nested_host
from latenz.vm.settings import TUNED, VmSettings

pytestmark = pytest.mark.boots


def test_a_machine_is_placed_on_the_emulated_hosts_cpus():
    settings = nested.placed(VmSettings(tunings=TUNED))
    assert settings.cpus == (1,)
    assert settings.housekeeping == (0,)
    assert settings.processors == 1
    assert settings.tunings == TUNED - nested.NOT_HERE


def test_what_is_done_to_the_emulated_host_is_what_the_catalogue_says(tmp_path):
    wanted = (
        "host-rt-throttling-off",
        "kvm-kvmclock-sync",
        "cmdline-isolcpus",
        "host-workqueue-mask",
    )
    entries = [entry for entry in load() if entry.id in wanted]
    assert len(entries) == len(wanted)
    context = Context(Root(tmp_path), frozenset({1}), frozenset({0, 1}), "kvm-host")
    settings = nested.placed(VmSettings(tunings=TUNED))
    order = nested_host.order(settings, entries, context, trace=False)
    assert "written host-rt-throttling-off -1 /proc/sys/kernel/sched_rt_runtime_us" in order
    assert "modprobe kvm halt_poll_ns=0 kvmclock_periodic_sync=N" in order
    assert "written host-workqueue-mask 1 /sys/devices/virtual/workqueue/cpumask" in order
    assert "pinned 0 2 1" in order
    assert nested_host.command_line(entries, context) == ["isolcpus=managed_irq,domain,1"]
    checked = subprocess.run(["sh", "-n"], input=order, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stderr


def test_an_order_is_unpacked_after_the_system(tmp_path):
    disk = tmp_path / "initrd"
    write_cpio(disk, {"/system": Node.file(b"system")})
    nested_host.add_order(disk, {"/order": "echo done\n"})
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    rest = disk.read_bytes()
    # cpio reads one archive at a time, as the kernel goes on to the next
    end = rest.index(b"TRAILER!!!")
    second = rest.index(b"070701", end)
    for archive in (rest, rest[second:]):
        subprocess.run(
            ["cpio", "-id", "--quiet", "--no-absolute-filenames"],
            input=archive,
            cwd=unpacked,
            check=True,
            capture_output=True,
        )
    assert (unpacked / "system").read_text() == "system"
    assert (unpacked / "order").read_text() == "echo done\n"


@pytest.mark.parametrize("key", ["measured", "load_on"])
def test_only_an_emulated_host_is_measured_or_loaded_itself(key):
    with pytest.raises(ValueError, match=f'{key} = "host" needs accel = "kvm-in-tcg"'):
        VmStackSettings.model_validate({"kind": "vm", key: "host", "accel": "kvm"})


def test_a_host_that_hangs_is_ended_and_said_to_have_hung(tmp_path):
    """In place of QEMU a program that beats once and then only works."""
    job = SimpleNamespace(
        condition=SimpleNamespace(load=SimpleNamespace(kind="none", settle=0), duration_ns=0)
    )
    place = shlex.quote(str(tmp_path))
    boot = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done"
    hanging = f"echo $$ >{place}/host-pid; >{place}/host-beats; {boot}"
    hanging += f"; echo >>{place}/host-beats; while :; do :; done"
    wish = nested.Wish(VmSettings(), job)  # type: ignore[arg-type]  # all that is asked of a job
    phases: list[str] = []
    came = nested._boots(
        ["sh", "-c", hanging], tmp_path / "console", wish, lambda: False, phases.append
    )
    assert not came
    assert phases
    ended = nested._boots(["true"], tmp_path / "console", wish, lambda: False, phases.append)
    assert ended
