"""A plan nobody asked to weaken a machine does not: twelve kinds of them and more, file by file.

What protects is listed here once more, by hand, and not taken from the catalogue's own consents.
"""

import json
import re
from pathlib import Path

import pytest
from more_machines import MORE
from small_machines import planned
from trees_at_random import apply_all, fingerprint, revert_all
from twelve_machines import MACHINES

from latenz.tune.catalogue import load
from latenz.tune.changes import FileChange, LinkChange, ServiceChange, WriteChange
from latenz.tune.check import check
from latenz.tune.context import Context
from latenz.tune.plan import Choice, Plan, plan
from latenz.tune.root import Root

ALL = MACHINES | MORE
PROTECTING_WORDS = re.compile(
    r"(?<![\w.])(nowatchdog|nosoftlockup|nmi_watchdog=0|tsc=reliable|mitigations=\S*off|nopti|nokaslr"
    r"|nospectre_v[12]|spec_store_bypass_disable=off|mds=off|l1tf=off|mce=(off|ignore_ce)|audit=0"
    r"|selinux=0|enforcing=0|apparmor=0|init_on_alloc=0|init_on_free=0|iommu=(off|pt)|nosmt\S*"
    r"|iommu\.passthrough=1|split_lock_detect=off|rcupdate\.rcu_cpu_stall_suppress=1|idle=poll"
    r"|intel_pstate=disable|hung_task_panic=0|panic=0|swapaccount=0|nohpet|noswap|maxcpus=\S+)(?!\S)"
)
"""Words of the kernel command line that cost detection, protection, memory of others, or CPUs."""
PROTECTING_FILES = (
    "proc/sys/kernel/nmi_watchdog",
    "proc/sys/kernel/soft_watchdog",
    "proc/sys/kernel/watchdog",
    "proc/sys/kernel/hung_task_timeout_secs",
    "proc/sys/kernel/split_lock_mitigate",
    "proc/sys/kernel/sched_rt_runtime_us",
    "proc/swaps",
    "etc/fstab",
    "sys/kernel/mm/ksm/run",
    "sys/devices/system/machinecheck/machinecheck0/check_interval",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "sys/devices/system/cpu/smt/control",
    "sys/module/rcupdate/parameters/rcu_cpu_stall_suppress",
    "sys/module/kvm/parameters/nx_huge_pages",
)
PROTECTING_SYSCTLS = re.compile(
    r"watchdog|hung_task|split_lock|sched_rt_runtime|swappiness|randomize|dmesg_restrict|kptr|panic"
)
PROTECTING_UNITS = re.compile(
    r"thermald|auditd|apparmor|ufw|firewalld|chrony|timesyncd|ntp|kubelet|nvpmodel|nvfan|pve|snapd|transactional|containerd|tuned|mcelog"
)


@pytest.fixture(params=ALL)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def root(name: str, tmp_path: Path) -> Path:
    return ALL[name].write(tmp_path / "root")


def as_it_looks(root: Path, cpus: str = "2-3") -> Plan:
    """Plan without a word of what the machine is for."""
    context = Context.of(Root(root), cpus, None)
    return plan(context, check(context, load()), Choice())


def added(found: Plan) -> str:
    """Return all lines that files get, with their paths."""
    lines = []
    for change in found.changes:
        if isinstance(change, FileChange):
            before = set((found.root.read(change.path) or "").split())
            words = [word for word in change.content.decode().split() if word not in before]
            lines.append(f"{change.path}: {' '.join(words)}")
    return "\n".join(lines)


def test_nothing_is_weakened_unasked_and_all_comes_back(name: str, root: Path) -> None:
    before = fingerprint(root)
    found = as_it_looks(root)
    assert found.changes, "these machines are not tuned: there is something to do"
    assert not PROTECTING_WORDS.search(added(found))
    apply_all(root, found.changes)
    after = fingerprint(root)
    for path in PROTECTING_FILES:
        assert after.get(path) == before.get(path), path
    written = root / "etc/sysctl.d/99-latenz.conf"
    if written.exists():
        assert not PROTECTING_SYSCTLS.search(written.read_text())
    for change in found.changes:
        if isinstance(change, ServiceChange | LinkChange):
            assert not PROTECTING_UNITS.search(change.what), change.what
    revert_all(root)
    assert fingerprint(root) == before


def test_every_offer_says_what_it_gives_up(name: str, root: Path) -> None:
    found = as_it_looks(root)
    assert all(each.consent and each.risk and each.why for each in found.offers)
    planned_ids = {entry for change in found.changes for entry in change.entries}
    consents = {each.id for each in load() if each.consent}
    assert not planned_ids & consents


def test_none_of_them_has_guests_though_kvm_is_loaded(name: str, root: Path) -> None:
    found = as_it_looks(root)
    assert found.profile == "host"
    values = [change.what for change in found.changes if isinstance(change, WriteChange)]
    assert not [each for each in values if "/kvm" in each]


def test_a_plan_for_what_was_planned_is_empty_of_contradictions(name: str, root: Path) -> None:
    """Applied once, what is planned again would write no value that was just written."""
    first = as_it_looks(root)
    apply_all(root, first.changes)
    again = [change.what for change in as_it_looks(root).changes if isinstance(change, WriteChange)]
    made = [change.what for change in first.changes if isinstance(change, WriteChange)]
    assert not set(again) & set(made)


def test_each_boot_loader_is_its_own(tmp_path: Path) -> None:
    files = {
        name: {
            change.path
            for change in planned(machine.write(tmp_path / name), profile="host").changes
            if isinstance(change, FileChange)
        }
        for name, machine in MACHINES.items()
    }
    for name in ("debian-12", "debian-13", "ubuntu-24.04", "kubernetes", "laptop"):
        assert "/etc/default/grub.d/latenz.cfg" in files[name], name
    assert "/boot/loader/entries/abc-6.1.conf" in files["fedora"]
    assert "/boot/extlinux/extlinux.conf" in files["yocto"]
    assert "/boot/firmware/cmdline.txt" in files["raspberry-pi-os"]
    assert not any("loader/entries" in path for path in files["ostree"])


def test_ostree_is_told_its_own_command(tmp_path: Path) -> None:
    found = as_it_looks(MACHINES["ostree"].write(tmp_path / "root"))
    assert any("rpm-ostree kargs" in each.advice for each in found.by_hand)


def test_the_state_of_kubelet_is_not_touched(tmp_path: Path) -> None:
    root = MACHINES["kubernetes"].write(tmp_path / "root")
    state = json.loads((root / "var/lib/kubelet/cpu_manager_state").read_text())
    found = as_it_looks(root)
    apply_all(root, found.changes)
    assert json.loads((root / "var/lib/kubelet/cpu_manager_state").read_text()) == state
    [conflict] = [each for each in found.conflicts if each.unit == "kubelet.service"]
    assert "cmdline-isolcpus" in conflict.entries
    assert "reservedSystemCPUs" in conflict.remedy


def test_what_is_named_is_noticed_by_these_lists(tmp_path: Path) -> None:
    """They would see a plan that weakens: so this one does, as it was asked to."""
    root = MACHINES["debian-12"].write(tmp_path / "root")
    named = Choice(include=("cmdline-nmi-watchdog", "host-rt-throttling-off"))
    found = planned(root, profile="host", choice=named)
    assert PROTECTING_WORDS.search(added(found))
    apply_all(root, found.changes)
    runtime = (root / "proc/sys/kernel/sched_rt_runtime_us").read_text()
    assert runtime.strip() == "-1"
    assert PROTECTING_SYSCTLS.search((root / "etc/sysctl.d/99-latenz.conf").read_text())
