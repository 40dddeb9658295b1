"""No two entries of a plan undo each other: each pair is planned, and its effect is simulated.

The machine is a small tree on which as much as possible is wrong. What a plan writes is carried out
on it, then a boot: the kernel command line shows in the files of the kernel, options of modules and
lines of sysctl.d and tmpfiles.d are written, in this order. The kernel's own consequences, by which
one setting undoes another, are in `_consequences`.
"""

import re
from itertools import combinations
from pathlib import Path

import pytest
from collected_trees import Tree
from small_machines import debian, write_files

from latenz.errors import BadInput
from latenz.tune.catalogue import load
from latenz.tune.changes import FileChange, WriteChange, chosen_word, shown_as
from latenz.tune.check import check
from latenz.tune.context import Context
from latenz.tune.cpus import format_mask, parse_list
from latenz.tune.model import Entry
from latenz.tune.plan import Choice, Plan, plan
from latenz.tune.root import Root

pytestmark = pytest.mark.proofs

_CPU = "sys/devices/system/cpu"
_POLICY = f"{_CPU}/cpufreq/policy2"
_KVM = "sys/module/kvm/parameters"
_INTEL = "sys/module/kvm_intel/parameters"
_EPP = f"{_POLICY}/energy_performance_preference"
_PREEMPTION_TIMER = f"{_INTEL}/preemption_timer"
_PI_INJECT = f"{_KVM}/pi_inject_timer"
_MIGRATION = "proc/sys/kernel/timer_migration"
WIDE = {
    "proc/1/comm": "systemd\n",
    "proc/1/status": "Name:\tsystemd\nCpus_allowed_list:\t0-3\n",
    "proc/1/task/1/stat": f"1 (systemd) S {' '.join(['0'] * 49)}\n",
    "proc/1/task/1/status": "Name:\tsystemd\nCpus_allowed_list:\t0-3\n",
    "proc/2/task/2/stat": f"2 (kthreadd) S {' '.join(['0'] * 5)} 2097152 {' '.join(['0'] * 43)}\n",
    "proc/2/task/2/status": "Name:\tkthreadd\nCpus_allowed_list:\t0-3\n",
    "proc/cmdline": "root=/dev/sda1 ro quiet\n",
    "proc/meminfo": "MemAvailable: 9000000 kB\n",
    "proc/version": "Linux version 6.1.0 SMP PREEMPT_DYNAMIC\n",
    "proc/swaps": "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n",
    "proc/sys/kernel/soft_watchdog": "1\n",
    "proc/sys/kernel/hung_task_timeout_secs": "120\n",
    "proc/sys/kernel/numa_balancing": "1\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/sys/vm/compaction_proactiveness": "20\n",
    "sys/kernel/mm/ksm/run": "1\n",
    "sys/kernel/mm/ksm/pages_sharing": "9\n",
    "sys/kernel/debug/sched/preempt": "none (voluntary) full\n",
    "sys/fs/cgroup/cgroup.controllers": "cpuset cpu\n",
    "sys/devices/system/machinecheck/machinecheck0/check_interval": "12c\n",
    "sys/devices/system/machinecheck/machinecheck0/ignore_ce": "0\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet\n",
    "sys/module/rcupdate/parameters/rcu_normal_after_boot": "0\n",
    "sys/block/sda/queue/rq_affinity": "0\n",
    f"{_CPU}/isolated": "\n",
    f"{_CPU}/nohz_full": "(null)\n",
    f"{_CPU}/smt/active": "1\n",
    f"{_CPU}/smt/control": "on\n",
    f"{_CPU}/intel_pstate/status": "active\n",
    f"{_CPU}/intel_pstate/no_turbo": "0\n",
    f"{_CPU}/cpu2/cpuidle/state3/name": "C6\n",
    f"{_CPU}/cpu2/cpuidle/state3/latency": "133\n",
    f"{_CPU}/cpu2/cpuidle/state3/disable": "0\n",
    f"{_CPU}/cpu2/topology/thread_siblings_list": "2,4\n",
    f"{_POLICY}/scaling_governor": "powersave\n",
    _EPP: "balance_power\n",
    _PREEMPTION_TIMER: "Y\n",
    _PI_INJECT: "0\n",
    f"{_KVM}/lapic_timer_advance_ns": "7500\n",
    f"{_KVM}/min_timer_period_us": "500\n",
    f"{_INTEL}/enable_apicv": "N\n",
    f"{_INTEL}/enable_ipiv": "Y\n",
    "etc/security/limits.conf": "# nothing\n",
    "proc/sys/kernel/printk": "7 4 1 7\n",
    "proc/sys/kernel/split_lock_mitigate": "1\n",
    "proc/sys/kernel/watchdog_cpumask": "0-3\n",
    "proc/sys/net/core/busy_poll": "0\n",
    "proc/sys/net/core/busy_read": "0\n",
    "sys/module/pcie_aspm/parameters/policy": "[default] performance powersave\n",
    "sys/class/devfreq/dmc/governor": "simple_ondemand\n",
    f"{_CPU}/cpu2/power/pm_qos_resume_latency_us": "0\n",
    f"{_CPU}/cpu3/power/pm_qos_resume_latency_us": "0\n",
}


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = debian(tmp_path_factory.mktemp("wide") / "root")
    write_files(root, WIDE)
    cpuinfo = root / "proc/cpuinfo"
    cpuinfo.write_text(cpuinfo.read_text().replace(" vmx", " vmx hwp"))
    return root


def _entries(root: Path, profile: str) -> list[Entry]:
    """Return the entries that are wrong there, and that change something."""
    context = Context.of(Root(root), "2-3", profile)
    return [
        each.entry
        for each in check(context, load())
        if each.state == "wrong" and (each.entry.now or each.entry.boot)
    ]


def _carry_out(tree: Tree, found: Plan) -> None:
    """Write what a plan writes, and start the machine anew."""
    files = {
        each.path: each.content or b"" for each in found.changes if isinstance(each, FileChange)
    }
    for change in found.changes:
        if isinstance(change, WriteChange):
            _write(tree, change.path, change.value)
        elif isinstance(change, FileChange):
            tree.set(tree.folder / change.path[1:], change.content)
    texts = {path: content.decode() for path, content in files.items()}
    _boot(tree, texts.get("/etc/default/grub.d/latenz.cfg", ""))
    for line in texts.get("/etc/modprobe.d/latenz.conf", "").splitlines():
        if match := re.match(r"options (\w+) (\w+)=(\S+)", line):
            _write(tree, f"/sys/module/{match[1]}/parameters/{match[2]}", match[3])
    for line in texts.get("/etc/sysctl.d/99-latenz.conf", "").splitlines():
        if match := re.match(r"([a-z0-9_.]+) = (\S+)", line):
            _write(tree, f"/proc/sys/{match[1].replace('.', '/')}", match[2])
    for line in texts.get("/etc/tmpfiles.d/latenz.conf", "").splitlines():
        if match := re.match(r"w (\S+) - - - - (\S+)", line):
            _write(tree, match[1], match[2])
    _consequences(tree)


def _write(tree: Tree, pattern: str, value: str) -> None:
    for path in tree.folder.glob(pattern[1:]):
        tree.set(path, shown_as(path.read_bytes(), value))


def _boot(tree: Tree, drop_in: str) -> None:
    """Start with the kernel command line of a drop-in of GRUB, and show it as the kernel does."""
    given = re.search(r'^GRUB_CMDLINE_LINUX="\$\{GRUB_CMDLINE_LINUX:-\} (.*)"$', drop_in, re.M)
    words = given[1].split() if given else []
    tree.set(tree.folder / "proc/cmdline", f"root=/dev/sda1 ro quiet {' '.join(words)}\n".encode())
    values = {word.partition("=")[0]: word.partition("=")[2] for word in words}
    shown = {
        "nohz_full": ("/sys/devices/system/cpu/nohz_full", "{}"),
        "nmi_watchdog": ("/proc/sys/kernel/nmi_watchdog", "{}"),
        "nosoftlockup": ("/proc/sys/kernel/soft_watchdog", "0"),
        "nosmt": ("/sys/devices/system/cpu/smt/active", "0"),
        "clocksource": ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "{}"),
        "transparent_hugepage": ("/sys/kernel/mm/transparent_hugepage/enabled", "{}"),
        "cpufreq.default_governor": (f"/{_POLICY}/scaling_governor", "{}"),
    }
    for name, value in values.items():
        if name in shown:
            _write(tree, shown[name][0], shown[name][1].format(value))
        elif "." in name:
            module, _, option = name.partition(".")
            _write(tree, f"/sys/module/{module}/parameters/{option}", value)
    if "domain" in (isolcpus := values.get("isolcpus", "")):
        tree.set(tree.folder / f"{_CPU}/isolated", isolcpus.rpartition("domain,")[2].encode())
    if "irqaffinity" in values:
        mask = format_mask(parse_list(values["irqaffinity"]))
        tree.set(tree.folder / "proc/irq/default_smp_affinity", mask.encode())
    if values.get("idle") == "poll" or "intel_idle.max_cstate" in values:
        tree.set(tree.folder / f"{_CPU}/cpu2/cpuidle/state3/disable", b"1\n")
    if values.get("intel_pstate") in ("no_hwp", "disable"):
        tree.set(tree.folder / _EPP, None)
    if values.get("intel_pstate") == "disable":
        tree.set(tree.folder / f"{_CPU}/intel_pstate/status", b"off\n")


def _consequences(tree: Tree) -> None:
    """What the kernel makes of settings together, as its sources say."""

    def value(path: str) -> str:
        return chosen_word((tree.folder / path).read_bytes()).decode().strip()

    if value("sys/kernel/mm/ksm/run") != "1":  # unmerged, or never merged since the boot
        tree.set(tree.folder / "sys/kernel/mm/ksm/pages_sharing", b"0\n")
    if value(_PI_INJECT) == "1":  # arch/x86/kvm/lapic.c: kvm_can_use_hv_timer()
        tree.set(tree.folder / _PREEMPTION_TIMER, b"N\n")
    if value(_PI_INJECT) == "1" and value(_MIGRATION) == "0":  # kernel/time/hrtimer.c
        tree.set(tree.folder / _PI_INJECT, b"0\n")
    if (tree.folder / "etc/systemd/system/latenz-partition.service").exists():
        tree.set(tree.folder / "sys/fs/cgroup/cpuset.cpus.isolated", b"2-3\n")


def _undone(root: Path, pair: tuple[Entry, Entry], profile: str) -> str | None:
    """Return what a plan of two entries does not reach; None if it is right, or refused."""
    context = Context.of(Root(root), "2-3", profile)
    ids = tuple(each.id for each in pair)
    try:
        found = plan(context, check(context, pair), Choice(include=ids, only=ids))
    except BadInput as mistake:
        if "undo each other" not in str(mistake):
            raise
        return None
    tree = Tree(root, "2,3")
    planned = {entry for change in found.changes for entry in change.entries}
    try:
        _carry_out(tree, found)
        after = check(Context.of(Root(root), "2-3", profile), [e for e in pair if e.id in planned])
        wrong = [each for each in after if each.state == "wrong"]
    finally:
        tree.restore()
    return "; ".join(f"{ids}: {each.id} is {each.found}, {each.reason}" for each in wrong) or None


NOT_SIMULATED = {
    "cmdline-rcu-nocbs": "threads",
    "cmdline-threadirqs": "threads",
    "host-systemd-cpuaffinity": "threads",
    "host-thermald-off": "services",
    "guest-mlock": "a group",
}
"""Entries that are not right on the tree even alone: what the simulation would have to make."""


@pytest.mark.parametrize(("profile", "least"), [("kvm-host", 60), ("guest", 30)])
def test_no_pair_of_a_plan_undoes_itself(wide: Path, profile: str, least: int) -> None:
    entries = _entries(wide, profile)
    assert len(entries) >= least, [each.id for each in entries]
    alone = {each.id for each in entries if _undone(wide, (each, each), profile)}
    seen = [
        undone
        for pair in combinations([each for each in entries if each.id not in alone], 2)
        if (undone := _undone(wide, pair, profile))
    ]
    assert seen == []
    assert alone <= set(NOT_SIMULATED), "what is right with no other is not looked at in pairs"


def test_a_pair_that_does_not_know_of_each_other_is_found(wide: Path) -> None:
    entries = {entry.id: entry for entry in load()}
    injected = entries["kvm-pi-inject-timer"].model_copy(update={"conflicts": ()})
    pair = (entries["host-timer-migration-off"], injected)
    assert "kvm-pi-inject-timer is 0" in (_undone(wide, pair, "kvm-host") or "")
    assert _undone(wide, (pair[0], entries["kvm-pi-inject-timer"]), "kvm-host") is None
