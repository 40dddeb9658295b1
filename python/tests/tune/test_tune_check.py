"""Checks of trees of files: states with reasons, hostile trees, and the command's contract."""

import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from latenz.cli import main
from latenz.errors import BadInput
from latenz.tune.catalogue import chosen, load
from latenz.tune.check import Check, check
from latenz.tune.context import (
    Context,
    detected_profile,
    isolated_cpus,
    online_cpus,
    parse_command_line,
)
from latenz.tune.root import Root

CPU = "sys/devices/system/cpu"
CODE_6 = (
    "isolcpus=4 rcu_nocbs=4 nohz_full=4 nohz=on default_hugepagesz=1G hugepagesz=1G hugepages=8 "
    "intel_iommu=on rdt=13cat nmi_watchdog=0 idle=poll clocksource=tsc tsc=reliable audit=0 "
    "skew_tick=1 intel_pstate=disable intel.max_cstate=0 intel_idle.max_cstate=0 "
    "processor.max_cstate=0 processor_idle.max_cstate=0 nosoftlockup no_timer_check nospectre_v2 "
    "spectre_v2_user=off kvm.kvmclock_periodic_sync=N kvm_intel.ple_gap=0 irqaffinity=0"
)
"""The kernel command line of `pamuk2024`, as printed."""


def cpuinfo(flags: str, vendor: str = "GenuineIntel", cpus: int = 14) -> str:
    return "".join(
        f"processor\t: {cpu}\nvendor_id\t: {vendor}\nflags\t\t: {flags}\n\n" for cpu in range(cpus)
    )


def tree(folder: Path, **files: str | bytes | None) -> Path:
    """Write files, by paths; those of a machine with 14 CPUs of which 4 is isolated."""
    usual: dict[str, str | bytes | None] = {
        "proc/cmdline": f"BOOT_IMAGE=/vmlinuz root=/dev/sda1 {CODE_6}\n",
        "proc/cpuinfo": cpuinfo("fpu hwp constant_tsc nonstop_tsc pdpe1gb cat_l3"),
        "proc/version": "Linux version 6.1.0-rt PREEMPT_RT\n",
        f"{CPU}/online": "0-13\n",
        f"{CPU}/isolated": "4\n",
        f"{CPU}/nohz_full": "4\n",
        "proc/irq/default_smp_affinity": "0001\n",
    }
    for name, content in (usual | files).items():
        path = folder / name
        if content is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def one(folder: Path, id_: str, cpus: str | None = None, profile: str = "host") -> Check:
    (found,) = check(Context.of(Root(folder), cpus, profile), chosen((id_,), ""))
    return found


def told(found: Check) -> tuple[str, str | None, str | None]:
    return found.state, found.found, found.wanted


@pytest.mark.parametrize(
    ("id_", "state", "found", "reason"),
    [
        ("cmdline-isolcpus", "ok", "isolcpus=4; 4", ""),
        ("cmdline-nohz-full", "ok", "nohz_full=4; 4", ""),
        ("cmdline-irqaffinity", "wrong", "irqaffinity=0; 0001", ""),
        (
            "cmdline-bogus-cstate-tokens",
            "wrong",
            "intel.max_cstate=0; processor_idle.max_cstate=0",
            "",
        ),
        ("cmdline-rdt-l3cat", "wrong", "rdt=13cat", ""),
        ("cmdline-managed-irq", "wrong", "isolcpus=4", ""),
        ("cmdline-skew-tick", "ok", "skew_tick=1", ""),
        ("cmdline-tsc-reliable", "ok", "tsc=reliable", ""),
        ("cmdline-idle-poll", "ok", "idle=poll", ""),
        ("cmdline-kthread-cpus", "ok", None, "Linux itself does not know it"),
        ("cmdline-no-timer-check", "ok", "no_timer_check", ""),
        ("cmdline-threadirqs", "not applicable", "PREEMPT_RT", "which does so itself"),
        ("bios-speedshift-off", "ok", "intel_pstate=disable", ""),
        ("bios-power-profile", "unknown", None, "Choose the preset"),
        ("bios-smt-off", "ok", None, "the kernel knows no SMT"),
        ("host-rt-throttling-off", "unknown", None, "there is no such file"),
    ],
)
def test_the_command_line_of_the_publication(
    tmp_path: Path, id_: str, state: str, found: str | None, reason: str
) -> None:
    seen = one(tree(tmp_path), id_)
    assert (seen.state, seen.found) == (state, found)
    assert reason in seen.reason


def test_a_mask_is_right_however_it_is_written(tmp_path: Path) -> None:
    for mask in ("3fef", "00003fef", "0,00003fef\n", "ffffffff,ffffffef"):
        files = {"proc/cmdline": "irqaffinity=0-3,5-13", "proc/irq/default_smp_affinity": mask}
        assert one(tree(tmp_path, **files), "cmdline-irqaffinity").state == "ok", mask


def test_a_parameter_counts_with_its_effect(tmp_path: Path) -> None:
    refused = one(tree(tmp_path, **{f"{CPU}/nohz_full": "(null)\n"}), "cmdline-nohz-full")
    assert told(refused) == ("wrong", "nohz_full=4; (null)", "CPU 4")
    assert "no effect" in refused.reason
    files = {"proc/cmdline": "quiet", "proc/sys/kernel/nmi_watchdog": "0\n"}
    passing = one(tree(tmp_path, **files), "cmdline-nmi-watchdog")
    assert told(passing) == ("wrong", "0", "0")
    assert "not from the next boot on" in passing.reason
    blind = one(
        tree(
            tmp_path, **{"proc/cmdline": "nmi_watchdog=0"} | {"proc/sys/kernel/nmi_watchdog": None}
        ),
        "cmdline-nmi-watchdog",
    )
    assert blind.state == "unknown"
    assert "whether it took effect is not known" in blind.reason


def test_a_later_file_of_systemd_can_take_back_an_earlier_one(tmp_path: Path) -> None:
    files = {
        "proc/1/comm": "systemd\n",
        "proc/1/status": "Cpus_allowed_list:\t0-3,5-13\n",
        "etc/systemd/system.conf": "[Manager]\nCPUAffinity=0-13\n",
    }
    assert one(tree(tmp_path, **files), "host-systemd-cpuaffinity").state == "wrong"
    later = {"etc/systemd/system.conf.d/a.conf": "CPUAffinity=\nCPUAffinity=0-3 5-13\n"}
    assert one(tree(tmp_path, **files | later), "host-systemd-cpuaffinity").state == "ok"


def test_another_parameter_that_does_the_same_counts(tmp_path: Path) -> None:
    """kernel-parameters.txt: nowatchdog disables both lockup detectors."""
    watchdogs = {f"proc/sys/kernel/{name}_watchdog": "0\n" for name in ("nmi", "soft")}
    folder = tree(tmp_path, **watchdogs | {"proc/cmdline": "quiet nowatchdog"})
    for id_ in ("cmdline-nmi-watchdog", "cmdline-nosoftlockup"):
        seen = one(folder, id_)
        assert (seen.state, seen.found) == ("ok", "nowatchdog; 0")


@pytest.mark.parametrize(
    ("release", "runtime", "state"),
    [
        ("6.1.0-21-amd64", "50000000", "ok"),  # cannot be: the kernel has none
        ("6.11.9", None, "ok"),
        ("6.12.43+deb13-amd64", "50000000", "wrong"),
        ("6.12.43+deb13-amd64", "0", "ok"),
        ("7.0.0", "50000000", "wrong"),
        ("6.18.4", None, "ok"),
    ],
)
def test_the_fair_server_takes_what_throttling_took(
    tmp_path: Path, release: str, runtime: str | None, state: str
) -> None:
    """Of Linux 6.12 on, sched_rt_runtime_us does not tell all: its share is 50 ms of a second."""
    files = {
        "proc/sys/kernel/osrelease": f"{release}\n",
        "proc/sys/kernel/sched_rt_runtime_us": "-1\n",
        "sys/kernel/debug/sched/fair_server/cpu0/runtime": "50000000\n",
        "sys/kernel/debug/sched/fair_server/cpu4/runtime": runtime and f"{runtime}\n",
    }
    seen = one(tree(tmp_path, **files), "host-rt-throttling-off")
    assert seen.state == state
    if state == "wrong":
        assert (seen.found, "fair server since 6.12" in seen.reason) == ("50000000", True)


def test_of_a_parameter_that_is_given_twice_the_kernels_choice_counts(tmp_path: Path) -> None:
    folder = tree(tmp_path, **{"proc/cmdline": "isolcpus=4 isolcpus=5 skew_tick=0 skew_tick=1"})
    assert one(folder, "cmdline-isolcpus").found == "isolcpus=4; 4"
    assert one(folder, "cmdline-skew-tick").state == "ok"


def test_what_is_the_default_may_be_left_out(tmp_path: Path) -> None:
    source = "sys/devices/system/clocksource/clocksource0/current_clocksource"
    files = {"proc/cmdline": "quiet", source: "tsc\n"}
    assert one(tree(tmp_path, **files), "cmdline-clocksource-tsc").state == "ok"
    other = one(tree(tmp_path, **files | {source: "hpet\n"}), "cmdline-clocksource-tsc")
    assert told(other) == ("wrong", "hpet", "tsc")


def test_the_kernel_reads_its_command_line_so() -> None:
    text = 'a=1 b-c="d e" f "g=h i" nohz_full=2 -- nohz_full=3'
    wanted = (("a", "1"), ("b_c", "d e"), ("f", ""), ("g", "h i"), ("nohz_full", "2"))
    assert parse_command_line(text) == wanted


def test_without_isolated_cpus_it_is_told_what_to_give(tmp_path: Path) -> None:
    files = {"proc/cmdline": "quiet", f"{CPU}/isolated": "\n", f"{CPU}/nohz_full": None}
    folder = tree(tmp_path, **files)
    blind = one(folder, "host-irq-default-mask")
    assert blind.state == "unknown"
    assert "give --cpus" in blind.reason
    assert one(folder, "host-irq-default-mask", "4").state == "wrong"
    assert one(folder, "cmdline-skew-tick").state == "wrong"  # needs none


def test_the_cpus_are_found_where_they_are_told(tmp_path: Path) -> None:
    files = {f"{CPU}/online": None, "proc/stat": "cpu  1 2\ncpu0 1 1\ncpu1 0 1\nintr 5\n"}
    assert online_cpus(Root(tree(tmp_path, **files))) == frozenset(range(14))
    assert online_cpus(Root(tree(tmp_path, **files | {"proc/cpuinfo": "flags: x\n"}))) == {0, 1}
    assert online_cpus(Root(tree(tmp_path, **files | {"proc/cpuinfo": None}))) == {0, 1}
    (tmp_path / "proc/stat").unlink()
    unknown = one(tmp_path, "host-irq-default-mask", "4")
    assert unknown.state == "unknown"
    assert unknown.reason == "which CPUs the machine has cannot be read"


def test_the_isolated_cpus_are_those_that_the_machine_isolates(tmp_path: Path) -> None:
    assert isolated_cpus(Root(tree(tmp_path))) == {4}
    assert isolated_cpus(Root(tree(tmp_path, **{f"{CPU}/isolated": "2-3\n"}))) == {2, 3, 4}
    cpuset = {"sys/fs/cgroup/cpuset.cpus.isolated": "6-7\n"}
    assert isolated_cpus(Root(tree(tmp_path, **cpuset))) == {4, 6, 7}
    (tmp_path / "sys/fs/cgroup/cpuset.cpus.isolated").unlink()
    kernel_lists_none = {f"{CPU}/isolated": "\n", f"{CPU}/nohz_full": "(null)\n"}
    assert isolated_cpus(Root(tree(tmp_path, **kernel_lists_none))) == set()
    without = {f"{CPU}/isolated": None, f"{CPU}/nohz_full": None}
    assert isolated_cpus(Root(tree(tmp_path, **without))) == {4}
    text = "isolcpus=domain,10-N isolcpus=2 quiet"
    last = isolated_cpus(Root(tree(tmp_path, **without | {"proc/cmdline": text})))
    assert last == {10, 11, 12, 13}


def test_the_profile_is_what_the_machine_seems_to_be(tmp_path: Path) -> None:
    assert detected_profile(Root(tree(tmp_path))) == "host"
    (tmp_path / "sys/module/kvm").mkdir(parents=True)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kvm").touch()
    assert detected_profile(Root(tmp_path)) == "host", "KVM is loaded nearly everywhere"
    for guest in ("sys/kernel/debug/kvm/4711-12/", "etc/libvirt/qemu/rt.xml", "proc/4711/cmdline"):
        path = tmp_path / guest
        path.parent.mkdir(parents=True, exist_ok=True)
        if guest.endswith("/"):
            path.mkdir()
        else:
            path.write_bytes(b"qemu-system-x86_64\0-enable-kvm\0")
        assert detected_profile(Root(tmp_path)) == "kvm-host", guest
        shutil.rmtree(path.parent)
    virtual = tree(tmp_path, **{"proc/cpuinfo": cpuinfo("fpu hypervisor")})
    assert detected_profile(Root(virtual)) == "guest"
    entry = one(virtual, "cmdline-isolcpus", profile="guest")
    assert entry.state == "not applicable"
    assert "for host or kvm-host" in entry.reason


def test_services_are_seen_without_asking_anybody(tmp_path: Path) -> None:
    none = {f"{CPU}/isolated": "\n", f"{CPU}/nohz_full": "(null)\n"}
    folder = tree(tmp_path, **none | {"proc/77/comm": "bash\n"})
    assert one(folder, "host-irqbalance-off", cpus="4").state == "ok"
    wants = folder / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "irqbalance.service").symlink_to("/lib/systemd/system/irqbalance.service")
    enabled = one(folder, "host-irqbalance-off", cpus="4")
    assert (enabled.state, enabled.found) == ("wrong", "irqbalance.service: enabled")
    (folder / "etc/systemd/system/irqbalance.service").symlink_to("/dev/null")
    assert one(folder, "host-irqbalance-off", cpus="4").state == "ok"  # masked
    group = folder / "sys/fs/cgroup/system.slice/irqbalance.service"
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text("812\n")
    running = one(folder, "host-irqbalance-off", cpus="4")
    assert (running.state, running.found) == ("wrong", "irqbalance.service: active")
    banned = folder / "etc/default/irqbalance"
    banned.parent.mkdir()
    banned.write_text('IRQBALANCE_BANNED_CPULIST="4"\n')
    assert one(folder, "host-irqbalance-off", cpus="4").state == "ok"
    banned.write_text("#IRQBALANCE_BANNED_CPUS=00000010\nIRQBALANCE_BANNED_CPUS=00000010\n")
    assert one(folder, "host-irqbalance-off", cpus="4").state == "ok"
    banned.write_text("IRQBALANCE_BANNED_CPUS=00000020\n")
    assert one(folder, "host-irqbalance-off", cpus="4").state == "wrong"


def test_irqbalance_keeps_off_by_itself_what_the_kernel_lists(tmp_path: Path) -> None:
    """cputree.c of irqbalance: of isolcpus= and nohz_full= together, unless it is told of CPUs."""
    wants = "etc/systemd/system/multi-user.target.wants/irqbalance.service"
    files = {wants: "", f"{CPU}/isolated": "2\n", f"{CPU}/nohz_full": "4\n"}
    folder = tree(tmp_path, **files)
    for cpus, state in (("2,4", "ok"), ("4", "ok"), ("2-4", "wrong")):
        assert one(folder, "host-irqbalance-off", cpus=cpus).state == state
    (folder / f"{CPU}/isolated").write_text("\n")
    (folder / f"{CPU}/nohz_full").write_text("(null)\n")
    assert one(folder, "host-irqbalance-off", cpus="4").state == "wrong"
    (folder / f"{CPU}/nohz_full").write_text("4\n")
    assert one(folder, "host-irqbalance-off", cpus="4").state == "ok"
    told = folder / "etc/default/irqbalance"
    told.parent.mkdir()
    told.write_text("IRQBALANCE_BANNED_CPULIST=\n#IRQBALANCE_BANNED_CPUS=f\n")
    assert one(folder, "host-irqbalance-off", cpus="4").state == "ok"
    told.write_text("IRQBALANCE_BANNED_CPULIST=7\n")
    assert one(folder, "host-irqbalance-off", cpus="4").state == "wrong", "what it is told wins"


def test_rights_of_a_group_that_nobody_made_are_nobody_s(tmp_path: Path) -> None:
    limits = "@realtime - rtprio 98\n@realtime - memlock unlimited\n"
    files = {"etc/security/limits.d/rt.conf": limits, "etc/group": "root:x:0:\n"}
    folder = tree(tmp_path, **files)
    assert one(folder, "host-limits").state == "wrong"
    assert one(folder, "guest-mlock", profile="guest").state == "wrong"
    (folder / "etc/group").write_text("root:x:0:\nrealtime:x:998:\n")
    assert one(folder, "host-limits").state == "ok"
    assert one(folder, "guest-mlock", profile="guest").state == "ok"


def test_real_time_groups_can_be_off_by_the_kernel_s_own_default(tmp_path: Path) -> None:
    """CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED and rt_group_sched= came with Linux 6.16."""
    config = "CONFIG_RT_GROUP_SCHED=y\n"
    for more, line, state in (
        ("", "quiet", "wrong"),
        ("", "rt_group_sched=0", "ok"),
        ("CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y\n", "quiet", "ok"),
        ("CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y\n", "rt_group_sched=1", "wrong"),
    ):
        files = {
            "proc/sys/kernel/osrelease": "6.16.0\n",
            "boot/config-6.16.0": config + more,
            "sys/fs/cgroup/cpu/cpu.rt_runtime_us": "950000\n",
            "proc/cmdline": line,
        }
        assert one(tree(tmp_path, **files), "host-cgroup-rt").state == state, (more, line)


def test_idle_states_by_their_exit_latency(tmp_path: Path) -> None:
    states = {"state0": ("POLL", 0), "state1": ("C1", 2), "state2": ("C6", 133)}
    files = {}
    for state, (name, latency) in states.items():
        at = f"{CPU}/cpu4/cpuidle/{state}"
        files |= {f"{at}/name": name, f"{at}/latency": str(latency), f"{at}/disable": "0\n"}
    folder = tree(tmp_path, **files)
    deep = one(folder, "host-cpuidle-state-disable")
    assert told(deep) == ("wrong", "CPU 4 C6: 133 (1 of 3)", "at most 3")
    assert deep.where == f"/{CPU}/cpu4/cpuidle/state2"
    disabled = tree(tmp_path, **{f"{CPU}/cpu4/cpuidle/state2/disable": "1\n"})
    assert one(disabled, "host-cpuidle-state-disable").state == "ok"


def test_what_cannot_be_understood_is_unknown(tmp_path: Path) -> None:
    for text in ("", "many", "1e3", "9" * 5000, "\0\1\2", "1\u0660"):
        seen = one(tree(tmp_path, **{"proc/sys/vm/stat_interval": text}), "host-stat-interval")
        assert seen.state == "unknown"
        assert seen.reason.startswith("is not understood: ")
    mask = tree(tmp_path, **{"proc/irq/default_smp_affinity": "zz"})
    assert one(mask, "host-irq-default-mask").state == "unknown"


def test_the_output_obeys_no_terminal_codes_of_the_machine(tmp_path: Path) -> None:
    evil = tree(tmp_path, **{"proc/sys/kernel/sched_rt_runtime_us": "\x1b]0;gone\x07\x1b[2J"})
    found = one(evil, "host-rt-throttling-off").found
    assert found == r"\x1b]0;gone\x07\x1b[2J"


def ids(checks: list[Check]) -> list[str]:
    return [each.id for each in checks]


def test_checks_come_by_their_expected_effect(tmp_path: Path) -> None:
    checks = check(Context.of(Root(tree(tmp_path)), profile="kvm-host"), load())
    order = ["large", "medium", "small", "none"]
    positions = [order.index(each.entry.effect) for each in checks]
    assert positions == sorted(positions)
    assert set(ids(checks)) == set(ids_of_catalogue())


def ids_of_catalogue() -> list[str]:
    return [entry.id for entry in load()]


# Hostile trees


def test_names_that_are_no_text_do_no_harm(tmp_path: Path, latenz: "Latenz") -> None:
    folder = tree(tmp_path / "machine")
    queue = os.fsencode(folder / "sys/class/net") + b"/\xff\x1b[2J\n/queues/rx-0"
    os.makedirs(queue)  # noqa: PTH103 - a name of bytes
    with open(queue + b"/rps_cpus", "wb") as file:  # noqa: PTH123 - a name of bytes
        file.write(b"ffff\n")
    only = ("--profile", "host", "--only", "host-net-queues")
    answer = latenz("check", "--root", folder, *only)
    assert answer.returncode == 1
    assert "/sys/class/net/" in answer.stdout
    assert "\x1b" not in answer.stdout
    taken = tmp_path / "machine.tar"
    assert latenz("snapshot", taken, "--root", folder).returncode == 0
    assert latenz("check", "--root", taken, *only).stdout == answer.stdout


def test_strange_roots_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").write_bytes(b"")
    for name in ("circle", "pipe", "empty", "x" * 5000, "nothing\0", "/dev/zero"):
        with pytest.raises(BadInput) as mistake:
            Root(tmp_path / name)
        assert "\n" not in str(mistake.value)


def link_out(folder: Path, outside: Path) -> None:
    (folder / "proc/sys/vm").mkdir(parents=True)
    (folder / "proc/sys/vm/stat_interval").symlink_to(outside)


def link_up(folder: Path, outside: Path) -> None:
    (folder / "proc/sys/vm").mkdir(parents=True)
    up = "../" * 30 + str(outside).lstrip("/")
    (folder / "proc/sys/vm/stat_interval").symlink_to(up)


def link_of_folder(folder: Path, outside: Path) -> None:
    (folder / "proc/sys").mkdir(parents=True)
    (folder / "proc/sys/vm").symlink_to(outside.parent)


def circle(folder: Path, outside: Path) -> None:
    (folder / "proc/sys").mkdir(parents=True)
    (folder / "proc/sys/vm").symlink_to("../sys/vm")


def pipe(folder: Path, outside: Path) -> None:
    (folder / "proc/sys/vm").mkdir(parents=True)
    os.mkfifo(folder / "proc/sys/vm/stat_interval")


def directory(folder: Path, outside: Path) -> None:
    (folder / "proc/sys/vm/stat_interval").mkdir(parents=True)


def huge(folder: Path, outside: Path) -> None:
    (folder / "proc/sys/vm").mkdir(parents=True)
    with (folder / "proc/sys/vm/stat_interval").open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize(
    ("trap", "reason"),
    [
        (link_out, "there is no such file"),
        (link_up, "there is no such file"),
        (link_of_folder, "there is no such file"),
        (circle, "too many levels"),
        (pipe, "is not a regular file"),
        (directory, "is a folder"),
        (huge, "is larger than 4 MiB"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_tree_leads_nowhere_else(
    tmp_path: Path, trap: Callable[[Path, Path], None], reason: str, packed: bool
) -> None:
    outside = tmp_path / "outside/stat_interval"
    outside.parent.mkdir()
    outside.write_text("4711\n")
    folder = tree(tmp_path / "machine")
    trap(folder, outside)
    if packed:
        if trap is huge:
            with (folder / "proc/sys/vm/stat_interval").open("wb") as file:
                file.truncate(5 << 20)
        folder = pack(folder, tmp_path / "machine.tar")
    seen = one(folder, "host-stat-interval")
    assert seen.state == "unknown"
    assert reason in seen.reason
    assert "4711" not in json.dumps(seen.to_json())


def pack(folder: Path, path: Path) -> Path:
    with tarfile.open(path, "w") as archive:
        archive.add(folder, ".")
    return path


def test_links_lead_where_they_would_lead_on_that_machine(tmp_path: Path) -> None:
    folder = tree(tmp_path / "machine", **{"real/values/interval": "20\n"})
    (folder / "proc/sys").mkdir(parents=True)
    (folder / "proc/sys/vm").symlink_to("/real/../real/values")
    (folder / "real/values/stat_interval").symlink_to("interval")
    for machine in (folder, pack(folder, tmp_path / "machine.tar")):
        assert told(one(machine, "host-stat-interval")) == ("ok", "20", "at least 10")


def test_a_tar_with_strange_members(tmp_path: Path) -> None:
    path = tmp_path / "strange.tar"
    with tarfile.open(path, "w") as archive:
        for name, text in (
            ("../../proc/sys/vm/stat_interval", b"1\n"),
            ("/proc/sys/vm/swappiness", b"5\n"),
            ("./proc//cmdline", b"skew_tick=0\n"),
            ("proc/cmdline", b"skew_tick=1\n"),  # the last one of a name counts
            ("proc/cmdline/below", b""),  # but not as a folder
            ("proc/cmdline", b"skew_tick=1\n"),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
        hard = tarfile.TarInfo("proc/swaps")
        hard.type, hard.linkname = tarfile.LNKTYPE, "proc/sys/vm/swappiness"
        archive.addfile(hard)
        device = tarfile.TarInfo("dev/kvm")
        device.type = tarfile.CHRTYPE
        archive.addfile(device)
    root = Root(path)
    assert root.read("/proc/sys/vm/stat_interval") is None
    assert root.read("/proc/swaps") == root.read("/proc/sys/vm/swappiness") == "5\n"
    assert root.exists("/dev/kvm")
    assert root.problem("/dev/kvm") == "is not a regular file"
    assert one(path, "cmdline-skew-tick").state == "ok"


@pytest.mark.parametrize("kept", [0, 1, 100, 511, 513, 2000, 5000])
@pytest.mark.parametrize("form", ["w", "w:gz", "w:xz"])
def test_a_cut_tar_gives_what_it_holds_or_one_line(tmp_path: Path, form: str, kept: int) -> None:
    whole = tmp_path / "whole.tar"
    with tarfile.open(whole, form) as archive:  # type: ignore[call-overload]
        archive.add(tree(tmp_path / "machine"), ".")
    cut = tmp_path / "cut.tar"
    cut.write_bytes(whole.read_bytes()[:kept])
    try:
        checks = check(Context.of(Root(cut), "4", "host"), load())
    except BadInput as mistake:
        text = str(mistake)
        assert "is neither a folder nor a tar" in text or "names no CPU" in text
    else:
        assert len(checks) == len(load())


class Zeros(io.RawIOBase):
    """Zeros without end."""

    def read(self, size: int = -1) -> bytes:
        return b"\0" * size


@pytest.mark.fuzzing
def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("proc/cmdline")
        member.size = 2 << 30
        archive.addfile(member, Zeros())
    with pytest.raises(BadInput, match="unpacks to more than 1024 MiB"):
        Root(path)


PATHS = sorted(
    {
        "/proc/cmdline",
        "/proc/cpuinfo",
        "/proc/interrupts",
        "/proc/irq/24/effective_affinity_list",
        "/proc/irq/default_smp_affinity",
        "/proc/1/task/1/stat",
        "/proc/1/task/1/status",
        "/proc/config.gz",
        "/proc/sys/vm/stat_interval",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/etc/default/irqbalance",
        "/latenz/dmesg",
        "/latenz/smi",
        "/latenz/left-out",
        f"/{CPU}/online",
        f"/{CPU}/isolated",
        f"/{CPU}/cpu4/cpuidle/state1/latency",
        f"/{CPU}/cpufreq/policy0/scaling_governor",
    }
)
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet="0123456789-,:()[]= \n\tabcdefxCPUN", max_size=60).map(str.encode),
    st.just(None),
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(PATHS), CONTENTS, max_size=10))
def test_any_content_gives_a_state(contents: dict[str, bytes | None]) -> None:
    with tempfile.TemporaryDirectory() as name:
        for path, content in contents.items():
            file = Path(name + path)
            file.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                file.mkdir()
            else:
                file.write_bytes(content)
        for profile in ("host", "kvm-host", "guest"):
            checks = check(Context.of(Root(name), None, profile), load())
            assert len(checks) == len(load())
            for each in checks:
                assert each.state in ("ok", "wrong", "unknown", "not applicable")
                assert "\n" not in json.dumps(each.to_json())


# The command


@dataclass
class Answer:
    returncode: int
    stdout: str
    stderr: str


Latenz = Callable[..., Answer]


@pytest.fixture
def latenz(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Latenz:
    """`latenz tune`, without the time that starting a program takes."""

    def run(*arguments: str | Path) -> Answer:
        monkeypatch.setattr(sys, "argv", ["latenz", "tune", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Answer(int(ended.value.code or 0), *capsys.readouterr())

    return run


def test_json_is_as_the_contract_says(tmp_path: Path, latenz: Latenz) -> None:
    answer = latenz("check", "--root", tree(tmp_path), "--profile", "host", "--json")
    assert answer.returncode == 1
    assert answer.stderr == ""
    document = json.loads(answer.stdout)
    assert (document["profile"], document["isolated"]) == ("host", [4])
    assert {each["id"] for each in document["checks"]} == set(ids_of_catalogue())
    for each in document["checks"]:
        assert list(each)[:6] == ["id", "layer", "state", "found", "wanted", "where"]
        assert isinstance(each["where"], str)
        assert each["state"] in ("ok", "wrong", "unknown", "not applicable")
        for key in ("found", "wanted"):
            assert each[key] is None or isinstance(each[key], str)
        assert each["state"] in ("ok", "wrong") or each["reason"]


def test_exit_codes_and_mistakes(tmp_path: Path, latenz: Latenz) -> None:
    folder = tree(tmp_path / "machine")
    common = ("check", "--root", folder, "--profile", "host")
    assert latenz(*common, "--only", "cmdline-skew-tick").returncode == 0
    assert latenz(*common, "--only", "cmdline-rdt-l3cat").returncode == 1
    assert latenz(*common, "--only", "bios-power-profile").returncode == 0  # not known: no failure
    spectre = ("sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Retpolines\n")
    tree(tmp_path / "machine", **{"proc/cmdline": "quiet", spectre[0]: spectre[1]})
    choice = latenz(*common, "--cpus", "4", "--only", "cmdline-nospectre-v2", "--json")
    assert json.loads(choice.stdout)["checks"][0]["state"] == "wrong"
    assert choice.returncode == 0  # to keep security is not a failure
    for arguments, line in (
        (("--cpus", "99"), "--cpus: CPU 99 is not online; choose of 0-13"),
        (("--cpus", "x"), "--cpus: 'x' is neither a CPU nor a range of CPUs; give for example 4"),
        (("--cpus", "0-13"), "--cpus: leaves no CPU for everything else; give fewer CPUs"),
        (("--profile", "hots"), "--profile: 'hots' is not a profile; did you mean 'host'?"),
        (
            ("--only", "host-irq"),
            "--only: 'host-irq' is not an entry of the catalogue; did you mean",
        ),
        (("--why", "x"), "--why: 'x' is not an entry of the catalogue"),
        (("--live", "5s"), "--live: nothing happens in files; leave out --root or --live"),
        (("--root", "/nowhere"), "/nowhere: there is no such folder or tar; give one"),
        (("--root", "/etc/passwd"), "/etc/passwd: is neither a folder nor a tar"),
    ):
        answer = latenz(*common, *arguments)
        assert answer.returncode == 2, arguments
        assert answer.stdout == ""
        assert answer.stderr.startswith(f"latenz: {line}"), arguments
        assert answer.stderr.count("\n") == 1


def test_the_table_has_one_line_a_check_and_why_tells_all(tmp_path: Path, latenz: Latenz) -> None:
    folder = tree(tmp_path)
    answer = latenz("check", "--root", folder, "--profile", "host")
    rows = [line for line in answer.stdout.splitlines() if " cmdline-irqaffinity " in line]
    assert len(rows) == 1
    for word in ("large", "irqaffinity=0; 0001", "CPU 0-3,5-13"):
        assert word in rows[0]
    groups = [answer.stdout.index(f"\n{word} (") for word in ("unknown", "ok")]
    assert answer.stdout.index("wrong (") < groups[0] < groups[1]
    told = latenz("check", "--root", folder, "--profile", "host", "--why", "cmdline-irqaffinity")
    for word in ("pamuk2024 Code 6", "It is a list of CPUs", "irqaffinity=0-3,5-13", "removes it"):
        assert word in told.stdout


PARTITION = {
    f"{CPU}/online": "0-7\n",
    f"{CPU}/isolated": "\n",
    f"{CPU}/nohz_full": "4-7\n",
    "sys/fs/cgroup/cpuset.cpus.isolated": "4-7\n",
    "proc/cmdline": "quiet nohz_full=4-7 rcu_nocbs=4-7",
}
"""A machine that a cpuset partition isolates, as Kubernetes and systemd do."""


def test_a_cpuset_partition_isolates_as_isolcpus_does(tmp_path: Path) -> None:
    folder = tree(tmp_path, **PARTITION)
    seen = one(folder, "cmdline-isolcpus")
    assert (seen.state, seen.found) == ("ok", "4-7")
    assert one(folder, "cmdline-isolcpus", cpus="3-7").state == "wrong", "not all of them"
    assert one(folder, "guest-isolcpus-nohz-rcu", profile="guest").state == "ok"
    managed = one(folder, "cmdline-managed-irq")
    assert managed.state == "wrong"
    context = Context.of(Root(folder))
    assert context.expand("isolcpus=managed_irq,{domain}{iso}") == "isolcpus=managed_irq,4-7"
    given = {"proc/cmdline": "isolcpus=4-7"}
    by_line = Context.of(Root(tree(tmp_path, **PARTITION | given)))
    assert by_line.expand("{domain}{iso}") == "domain,4-7", "what is given goes on"


def test_partitions_of_kernels_that_do_not_list_them_are_seen(tmp_path: Path) -> None:
    """Linux 6.1 to 6.6: an invalid one isolates nothing."""
    group = "sys/fs/cgroup/rt.slice"
    files = PARTITION | {
        "sys/fs/cgroup/cpuset.cpus.isolated": None,
        f"{CPU}/nohz_full": "(null)\n",
        f"{group}/cpuset.cpus.partition": "isolated\n",
        f"{group}/cpuset.cpus.effective": "6-7\n",
        f"{group}/deeper/cpuset.cpus.partition": "member\n",
        f"{group}/deeper/cpuset.cpus.effective": "5\n",
    }
    folder = tree(tmp_path, **files)
    assert isolated_cpus(Root(folder)) == {6, 7}
    assert one(folder, "cmdline-isolcpus").state == "ok"
    (folder / f"{group}/cpuset.cpus.partition").write_text("isolated invalid (no CPU)\n")
    assert isolated_cpus(Root(folder)) == set()
