"""Plans of whole machines: what they choose, and that those who read the files take them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pexpect
import pytest
from collected_trees import unpack
from small_machines import debian, fedora, planned, write_files
from trees_at_random import apply_all, fingerprint, revert_all

from latenz.boards.packages import fetch
from latenz.cli import main
from latenz.errors import BadInput
from latenz.tune import plan_show
from latenz.tune.catalogue import load
from latenz.tune.changes import (
    FileChange,
    LinkChange,
    PartitionChange,
    RestartChange,
    WriteChange,
)
from latenz.tune.check import check
from latenz.tune.context import Context
from latenz.tune.plan import Choice, Plan
from latenz.tune.plan import plan as plan_of
from latenz.tune.plan_now import is_as_wanted
from latenz.tune.plan_show import plan_document
from latenz.tune.root import Root

MACHINES = {"debian": debian, "fedora": fedora}


def contents(plan: Plan) -> dict[str, str]:
    return {
        change.path: (change.content or b"").decode()
        for change in plan.changes
        if isinstance(change, FileChange)
    }


def ids(plan: Plan) -> set[str]:
    return {entry for change in plan.changes for entry in change.entries}


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_is_right_after_apply_and_the_same_after_revert(folder: Path, name: str) -> None:
    root = MACHINES[name](folder / "root")
    before = fingerprint(root)
    plan = planned(root)
    assert fingerprint(root) == before
    assert len(plan.changes) > 15
    apply_all(root, plan.changes)
    context = Context.of(Root(root), "2-3", "kvm-host")
    now = {each.id: each.state for each in check(context, load())}
    written = {
        entry
        for change in plan.changes
        if isinstance(change, WriteChange)
        for entry in change.entries
        if not entry.startswith("cmdline-")  # these are right from the next boot on
    }
    assert len(written) > 5
    assert {entry: now[entry] for entry in written} == dict.fromkeys(written, "ok")
    revert_all(root)
    assert fingerprint(root) == before


@pytest.fixture(scope="module")
def in_effect(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A host of guests on which KVM uses the VMX preemption timer."""
    root = debian(tmp_path_factory.mktemp("effect") / "root")
    parameters = "sys/module/kvm/parameters"
    write_files(
        root,
        {
            f"{parameters}/pi_inject_timer": "0\n",
            "sys/module/kvm_intel/parameters/preemption_timer": "Y\n",
        },
    )
    return root


def test_of_two_that_undo_each_other_only_one_is_planned(in_effect: Path) -> None:
    timers = {"host-timer-migration-off", "kvm-pi-inject-timer"}
    unasked = planned(in_effect)
    assert ids(unasked) & timers == {"host-timer-migration-off"}
    assert any("would undo kvm-preemption-timer" in note for note in unasked.notes)
    asked = planned(in_effect, choice=Choice(include=("kvm-pi-inject-timer",)))
    assert ids(asked) & timers == {"kvm-pi-inject-timer"}
    with pytest.raises(BadInput, match=r"undo each other; name one"):
        planned(in_effect, choice=Choice(include=tuple(timers)))


def test_what_is_in_effect_is_not_undone(in_effect: Path) -> None:
    (in_effect / "sys/module/kvm/parameters/pi_inject_timer").write_text("1\n")
    plan = planned(in_effect)
    assert "host-timer-migration-off" not in ids(plan)
    assert any("would undo kvm-pi-inject-timer" in note for note in plan.notes)
    (in_effect / "sys/module/kvm/parameters/pi_inject_timer").write_text("0\n")


def test_merged_pages_are_taken_apart_only_if_they_fit(folder: Path) -> None:
    root = debian(folder / "root")
    write_files(
        root,
        {
            "sys/kernel/mm/ksm/run": "1\n",
            "sys/kernel/mm/ksm/pages_sharing": "1000\n",
            "proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    4001 kB\n",
        },
    )
    assert not ids(planned(root)) & {"host-ksm-off", "host-ksm-unmerge"}
    stop = planned(root, choice=Choice(include=("host-ksm-off",)))
    assert {each.value for each in stop.changes if each.what == "/sys/kernel/mm/ksm/run"} == {"0"}
    both = Choice(include=("host-ksm-unmerge",))
    apart = [each for each in planned(root, choice=both).changes if "/ksm/run" in each.what]
    assert [getattr(each, "value", None) for each in apart] == ["2"]
    (root / "proc/meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:    4000 kB\n")
    told = planned(root, choice=both)
    assert "host-ksm-unmerge" not in ids(told)
    assert any("do not fit" in each.advice for each in told.by_hand)


def test_irqbalance_is_kept_off_and_goes_on(folder: Path) -> None:
    root = debian(folder / "root")
    drop_in = "/etc/systemd/system/irqbalance.service.d/latenz"
    plan = planned(root)
    assert f"EnvironmentFile={drop_in}.env" in contents(plan)[f"{drop_in}.conf"]
    assert "\nIRQBALANCE_BANNED_CPULIST=2-3\n" in contents(plan)[f"{drop_in}.env"]
    assert not any(
        "irqbalance.service" in each.what and each.kind == "link" for each in plan.changes
    )
    assert any("start irqbalance.service again" in note for note in plan.notes)
    conflict = {each.unit: each.remedy for each in plan.conflicts}["irqbalance.service"]
    assert conflict == "the plan keeps it off the isolated CPUs"
    apply_all(root, plan.changes)
    context = Context.of(Root(root), "2-3", "kvm-host")
    assert {each.id: each.state for each in check(context, load())}["host-irqbalance-off"] == "ok"


def test_collected_trees_are_the_same_after_all_was_applied_and_reverted(folder: Path) -> None:
    unpack(folder)
    consent = {entry.id for entry in load() if entry.consent} - {"host-ksm-off"}
    everything = Choice(include=tuple(consent))
    for tree, isolated, profile in (
        ("debian12/untuned", "3", "kvm-host"),
        ("debian12/tuned", "2", "guest"),
        ("linux618", "1", "host"),
    ):
        root = folder / tree
        before = fingerprint(root)
        plan = planned(root, cpus=isolated, profile=profile, choice=everything)
        assert not plan.offers
        assert len(plan.changes) > 10
        apply_all(root, plan.changes)
        revert_all(root)
        assert fingerprint(root) == before


def test_planning_changes_nothing_and_names_each_value(folder: Path) -> None:
    root = debian(folder / "root")
    writes = {
        change.path: change.value
        for change in planned(root).changes
        if isinstance(change, WriteChange)
    }
    assert writes["/proc/irq/24/smp_affinity_list"] == "0-1"
    assert writes["/proc/sys/kernel/timer_migration"] == "0"
    assert writes["/sys/devices/virtual/workqueue/cpumask"] == "3"
    assert "/proc/irq/26/smp_affinity_list" not in writes, "it keeps off the isolated CPUs already"


@pytest.mark.parametrize(
    ("path", "found", "wanted", "expected"),
    [
        ("/sys/x/cpumask", "0000000f,00000003", "f,00000003", True),
        ("/sys/x/cpumask", "00000000,00000003\n", "3", True),
        ("/sys/x/cpumask", "7", "3", False),
        ("/proc/irq/9/smp_affinity_list", "1", "0-1", True),
        ("/proc/irq/9/smp_affinity_list", "0-2", "0-1", False),
        ("/proc/irq/default_smp_affinity", "1", "3", False),
        ("/proc/sys/vm/stat_interval", "010", "10", False),
    ],
)
def test_values_are_compared_by_what_they_mean(
    path: str, found: str, wanted: str, expected: bool
) -> None:
    assert is_as_wanted(path, found, wanted) is expected


def test_what_gives_something_up_is_applied_only_by_name(folder: Path) -> None:
    root = debian(folder / "root")
    offers = {entry.id for entry in planned(root).offers}
    assert offers >= {"host-thermald-off", "kvm-nx-huge-pages", "host-rt-throttling-off"}
    assert not offers & ids(planned(root))
    assert all(entry.consent for entry in planned(root).offers)
    included = planned(root, choice=Choice(include=("kvm-nx-huge-pages",)))
    assert "kvm-nx-huge-pages" in ids(included)
    assert {entry.id for entry in included.offers} == offers - {"kvm-nx-huge-pages"}
    only = planned(root, choice=Choice(only=("kvm-nx-huge-pages",)))
    assert (ids(only), [entry.id for entry in only.offers]) == (set(), ["kvm-nx-huge-pages"])


WEAKENS = re.compile(
    r"watchdog|nosoftlockup|stall_suppress|hung_task|rt_runtime|fair_server|tsc=|clocksource"
    r"|ksm/run|swappiness|check_interval|ignore_ce|mitigations|spectre|nx_huge_pages|audit=0"
    r"|split_lock|printk|thermald|limits.d|rt_group_sched"
)
"""What turns off detection, protection, security, the memory of others, or the watch of time."""


@pytest.mark.parametrize("profile", ["host", "kvm-host", "guest"])
def test_nothing_is_weakened_unasked(folder: Path, profile: str) -> None:
    unpack(folder)
    trees = {"debian12/untuned": "3", "linux618": "1", "debian": "2-3", "fedora": "2-3"}
    for name, made in MACHINES.items():
        made(folder / name)
    offered = set()
    for tree, cpus in trees.items():
        plan = planned(folder / tree, cpus=cpus, profile=profile)
        offered |= {entry.id for entry in plan.offers}
        said = [str(plan_document(plan)["changes"]), *contents(plan).values()]
        assert not any(WEAKENS.search(text) for text in said)
        assert plan.changes
    throttling = "guest-rt-throttling-off" if profile == "guest" else "host-rt-throttling-off"
    assert offered >= {throttling, "host-hung-task", "cmdline-nosoftlockup"}


def test_an_offer_tells_risk_and_gain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = debian(folder / "root")
    code, out, _ = run("plan", "--root", str(root), "--cpus", "2-3", "--json", capsys=capsys)
    document = json.loads(out)
    assert code == 0
    offers = {each["id"]: each for each in document["offers"]}
    offer = offers["host-rt-throttling-off"]
    assert (offer["gives_up"], offer["option"]) == (
        "protection",
        "--include host-rt-throttling-off",
    )
    assert offer["risk"].startswith("A real-time task that never sleeps")
    assert offer["gain"].startswith("With the kernel's default, real-time tasks")
    assert not {entry for each in document["changes"] for entry in each["entries"]} & set(offers)
    named = run(
        "plan", "--root", str(root), "--cpus", "2-3", "--include", "host-rt-throttling-off",
        "--json", capsys=capsys,
    )[1]  # fmt: skip
    written = {each["what"]: each["new"] for each in json.loads(named)["changes"]}
    assert written["/proc/sys/kernel/sched_rt_runtime_us"] == "-1"


def test_only_and_skip_choose(folder: Path) -> None:
    root = debian(folder / "root")
    both = ("host-timer-migration-off", "host-thp")
    assert ids(planned(root, choice=Choice(only=both))) == set(both)
    assert ids(planned(root, choice=Choice(only=both, skip=both[:1]))) == set(both[1:])
    assert "host-thp" not in ids(planned(root, choice=Choice(skip=("host-thp",))))
    right = planned(root, choice=Choice(only=("cmdline-nohz-on",)))
    assert right.changes == ()
    assert right.notes[0].startswith("cmdline-nohz-on: ok")
    with pytest.raises(BadInput, match=r"--skip: 'host-tph' is not an entry .* 'host-thp'"):
        Choice(skip=("host-tph",))


def test_services_that_would_undo_it_are_named(folder: Path) -> None:
    plan = planned(debian(folder / "debian"))
    conflicts = {each.unit: each for each in plan.conflicts}
    assert conflicts["irqbalance.service"].state == "active, enabled"
    assert "host-irq-affinity" in conflicts["irqbalance.service"].entries
    assert any("99-sysctl.conf is read after" in note for note in plan.notes)
    plan = planned(fedora(folder / "fedora"))
    conflicts = {each.unit: each for each in plan.conflicts}
    assert "host-timer-migration-off" in conflicts["tuned.service"].entries
    assert conflicts["tuned.service"].remedy.startswith("its profile latenz takes in")


def test_a_service_is_disabled_by_what_systemctl_would_remove(folder: Path) -> None:
    root = debian(folder / "root")
    link = "/etc/systemd/system/multi-user.target.wants/thermald.service"
    alias = root / "etc/systemd/system/dbus-org.freedesktop.thermald.service"
    alias.symlink_to("/lib/systemd/system/thermald.service")
    choice = Choice(only=("host-thermald-off",), include=("host-thermald-off",))
    plan = planned(root, choice=choice)
    removed = {
        change.path
        for change in plan.changes
        if isinstance(change, LinkChange) and change.target is None
    }
    assert removed == {link, "/" + str(alias.relative_to(root))}
    before = fingerprint(root)
    apply_all(root, plan.changes)
    asked = ["systemctl", f"--root={root}", "is-enabled", "thermald.service"]
    if shutil.which("systemctl"):
        (root / "usr/lib/systemd/system/thermald.service").write_text(
            "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
            "Alias=dbus-org.freedesktop.thermald.service\n"
        )
        said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        assert said.strip() == "disabled"
        (root / "usr/lib/systemd/system/thermald.service").unlink()
    revert_all(root)
    assert fingerprint(root) == before


def test_what_only_a_person_can_do_is_told(folder: Path) -> None:
    root = debian(folder / "root")
    (root / "etc/debian_version").unlink()
    shutil.rmtree(root / "etc/default")
    advice = [each.advice for each in planned(root).by_hand if "cmdline-isolcpus" in each.entries]
    assert len(advice) == 1
    assert "add to the kernel command line: isolcpus=managed_irq,domain,2-3" in advice[0]


def unpacked(name: str, folder: Path) -> Path:
    """Return the files of a Debian package, or skip the test if it cannot be had."""
    try:
        [package] = fetch([name], architecture="amd64")
    except BadInput as mistake:
        pytest.skip(f"the package {name} cannot be fetched: {mistake}")
    subprocess.run(["dpkg-deb", "--extract", package.path, folder], check=True)
    return folder


def test_grub_takes_the_drop_in(folder: Path) -> None:
    """The lines of Debian's own grub-mkconfig that read the settings are run on the tree."""
    root = debian(folder / "root")
    apply_all(root, planned(root).changes)
    script = (unpacked("grub-common", folder / "grub") / "usr/sbin/grub-mkconfig").read_text()
    reading = re.search(
        r"^if test -f \$\{sysconfdir\}/default/grub ; then.*?\ndone\n",
        script,
        re.DOTALL | re.MULTILINE,
    )
    assert reading, "grub-mkconfig reads its settings in another way than this test knows"
    shell = (
        f"set -e\nsysconfdir={root}/etc\n{reading[0]}\n"
        'printf "%s|%s" "$GRUB_CMDLINE_LINUX" "$GRUB_CMDLINE_LINUX_DEFAULT"'
    )
    said = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
    always, default = (part.split() for part in said.split("|"))
    assert always[0] == "console=tty0"
    assert [token for token in always if token.startswith("isolcpus")] == [
        "isolcpus=managed_irq,domain,2-3"
    ]
    assert {"nohz_full=2-3", "rcu_nocbs=2-3", "irqaffinity=0-1"} <= set(always)
    assert default == ["quiet"]


def test_boot_entries_get_the_tokens_once_and_the_rescue_entry_none(folder: Path) -> None:
    root = fedora(folder / "root")
    rescue = (root / "boot/loader/entries/abc-0-rescue.conf").read_text()
    apply_all(root, planned(root).changes)
    [options] = re.findall(
        r"^options (.*)$", (root / "boot/loader/entries/abc-6.1.conf").read_text(), re.MULTILINE
    )
    words = options.split()
    assert words[:4] == ["root=UUID=1", "ro", "rhgb", "$tuned_params"]
    assert [word for word in words if word.startswith("isolcpus")] == [
        "isolcpus=managed_irq,domain,2-3"
    ]
    assert (root / "etc/kernel/cmdline").read_text().split()[3:] == words[4:]
    assert (root / "boot/loader/entries/abc-0-rescue.conf").read_text() == rescue


def test_systemd_boot_s_entries_on_the_system_partition_are_edited(folder: Path) -> None:
    root = fedora(folder / "root")
    (root / "etc/kernel/cmdline").unlink()
    (root / "efi/loader").mkdir(parents=True)
    (root / "boot/loader/entries").rename(root / "efi/loader/entries")
    entry = root / "efi/loader/entries/abc-6.1.conf"
    entry.write_text("title Arch\nlinux /vmlinuz\noptions root=UUID=1\noptions isolcpus=1 rw")
    before = fingerprint(root)
    plan = planned(root, choice=Choice(only=("cmdline-isolcpus",)))
    apply_all(root, plan.changes)
    assert entry.read_text() == (
        "title Arch\nlinux /vmlinuz\noptions root=UUID=1\n"
        "options rw isolcpus=managed_irq,domain,2-3\n"
    )
    assert any("there is no /etc/kernel/cmdline" in note for note in plan.notes)
    revert_all(root)
    assert fingerprint(root) == before


def test_the_energy_preference_is_given_back_after_the_governor(folder: Path) -> None:
    """intel_pstate and amd_pstate refuse (EBUSY) any but performance while that is the governor."""
    root = debian(folder / "root")
    policy = "sys/devices/system/cpu/cpufreq/policy2"
    names = ("energy_performance_preference", "scaling_governor")
    write_files(
        root, {f"{policy}/{names[0]}": "balance_power\n", f"{policy}/{names[1]}": "powersave\n"}
    )
    plan = planned(root, choice=Choice(only=("host-governor-performance",)))
    written = [change.what for change in plan.changes if change.kind == "write"]
    assert written == [f"/{policy}/{name}" for name in names]


def test_of_a_boot_entry_all_but_the_options_keeps_its_bytes(folder: Path) -> None:
    root = fedora(folder / "root")
    entry = root / "boot/loader/entries/abc-6.1.conf"
    entry.write_bytes(b"title F\xe9dora\x0c\r\noptions isolcpus=1 rw\r\n# end")
    plan = planned(root, choice=Choice(only=("cmdline-isolcpus",)))
    apply_all(root, plan.changes)
    assert entry.read_bytes() == (
        b"title F\xe9dora\x0c\r\noptions rw isolcpus=managed_irq,domain,2-3\n# end\n"
    )


def test_services_keep_to_the_housekeeping_cpus(folder: Path) -> None:
    root = debian(folder / "root")
    write_files(
        root,
        {
            "proc/1/comm": "systemd\n",
            "proc/1/status": "Name:\tsystemd\nCpus_allowed_list:\t0-3\n",
            "etc/systemd/system.conf": "[Manager]\nCPUAffinity=2\n",
        },
    )
    apply_all(root, planned(root, choice=Choice(only=("host-systemd-cpuaffinity",))).changes)
    command = [needs("systemd-analyze"), f"--root={root}", "cat-config", "systemd/system.conf"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assigned = re.findall(r"^CPUAffinity=(.*)$", said, re.MULTILINE)
    assert assigned == ["2", "", "0-1"], "an empty one resets what came before: systemd adds others"


_LOAD = """
import json, sys
sys.path.insert(0, sys.argv[1])
import tuned.consts as consts
from tuned.profiles import Factory, Loader, Locator, Merger
from tuned.profiles.variables import Variables
from tuned.utils.global_config import GlobalConfig
locator = Locator([sys.argv[2], sys.argv[3]])
config = GlobalConfig(sys.argv[4])
profile = Loader(locator, Factory(), Merger(), config, Variables()).load(sys.argv[5])
units = {name: dict(unit.options) for name, unit in profile.units.items()}
print(json.dumps({"options": dict(profile.options), "units": units}))
"""


def test_tuned_takes_the_profile_on_top_of_the_one_before(folder: Path) -> None:
    """TuneD's own loader reads it, with the profile of the package that was active."""
    root = fedora(folder / "root")
    apply_all(root, planned(root).changes)
    package = unpacked("tuned", folder / "tuned")
    name = (root / "etc/tuned/active_profile").read_text().strip()
    arguments = [
        package / "usr/lib/python3/dist-packages", package / "usr/lib/tuned",
        root / "etc/tuned", package / "etc/tuned/tuned-main.conf", name,
    ]  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-c", _LOAD, *arguments], capture_output=True, text=True, check=False
    )
    if "No module named" in ended.stderr and "'tuned" not in ended.stderr:
        pytest.skip(f"TuneD's own needs are missing: {ended.stderr.splitlines()[-1]}")
    assert ended.returncode == 0, ended.stderr
    loaded = json.loads(ended.stdout)
    sysctl, sysfs = loaded["units"]["sysctl"], loaded["units"]["sysfs"]
    assert sysctl["kernel.timer_migration"] == "0"
    assert sysctl["vm.swappiness"], "of virtual-host's parents, which is still in"
    assert sysfs["/sys/devices/virtual/workqueue/cpumask"] == "3"


def needs(program: str) -> str:
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if not found:
        pytest.skip(f"{program} is not installed")
    return found


def test_systemd_tmpfiles_writes_what_the_plan_wrote(folder: Path) -> None:
    """It applies our file to a copy of the tree as it was; the values are those of our apply."""
    program = needs("systemd-tmpfiles")
    ours, theirs = debian(folder / "ours"), debian(folder / "theirs")
    plan = planned(ours)
    apply_all(ours, plan.changes)
    path = "etc/tmpfiles.d/latenz.conf"
    (theirs / path).parent.mkdir()
    shutil.copy(ours / path, theirs / path)
    subprocess.run([program, f"--root={theirs}", "--create", "latenz.conf"], check=True)
    written = re.findall(r"^w (\S+)", (ours / path).read_text(), re.MULTILINE)
    assert len(written) > 2
    for pattern in written:
        for found in theirs.glob(pattern.lstrip("/")):
            # a copied file shows all choices, the chosen one in brackets
            shown = (ours / found.relative_to(theirs)).read_text().strip()
            chosen = re.search(r"\[(.+)\]", shown)
            assert found.read_text().startswith(chosen[1] if chosen else shown)


def test_sysctl_reads_the_values(folder: Path) -> None:
    program = needs("sysctl")
    root = debian(folder / "root")
    apply_all(root, planned(root).changes)
    file = root / "etc/sysctl.d/99-latenz.conf"
    command = [program, "--dry-run", "-p", file]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert "kernel.timer_migration = 0" in said.splitlines()


def test_systemd_accepts_the_unit_and_starts_it_at_boot(folder: Path) -> None:
    program = needs("systemd-analyze")
    root = debian(folder / "root")
    apply_all(root, planned(root).changes)
    unit = root / "etc/systemd/system/latenz-irqs.service"
    ended = subprocess.run([program, "verify", unit], capture_output=True, text=True, check=False)
    about = [line for line in ended.stderr.splitlines() if "latenz" in line]
    assert (ended.returncode, about) == (0, [])
    asked = [needs("systemctl"), f"--root={root}", "is-enabled", unit.name]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    assert said.strip() == "enabled"


def test_the_unit_s_shell_line_writes_to_all_interrupts(folder: Path) -> None:
    root = debian(folder / "root")
    apply_all(root, planned(root).changes)
    text = (root / "etc/systemd/system/latenz-irqs.service").read_text()
    line = re.search(r"ExecStart=/bin/sh -c '(.*)'", text)
    assert line
    (root / "proc/irq/25/smp_affinity_list").write_text("0-3\n")
    shell = line[1].replace("$$", "$").replace("/proc", f"{root}/proc")
    subprocess.run(["sh", "-c", shell], check=True)
    assert (root / "proc/irq/25/smp_affinity_list").read_text() == "0-1\n"


PARTITION = ("host-cpuset-partition",)


def with_cpusets(root: Path) -> Path:
    """Give a machine control group v2 with cpusets, under systemd."""
    write_files(
        debian(root),
        {
            "proc/1/comm": "systemd\n",
            "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory\n",
            "proc/cmdline": "root=/dev/sda1 quiet\n",
        },
    )
    return root


def test_a_partition_isolates_in_place_of_isolcpus(folder: Path) -> None:
    root = with_cpusets(folder / "root")
    assert {"host-cpuset-partition"} <= {entry.id for entry in planned(root).offers}
    plan = planned(root, choice=Choice(include=PARTITION))
    files = contents(plan)
    assert "[Slice]\nAllowedCPUs=2-3\n" in files["/etc/systemd/system/latenz.slice"]
    line = files["/etc/default/grub.d/latenz.cfg"]
    assert " isolcpus=managed_irq,2-3 " in line, "for interrupts, nothing else does it"
    assert "domain" not in line
    assert any("cmdline-isolcpus: left out" in note for note in plan.notes)
    assert any("--slice=latenz.slice" in each.advice for each in plan.by_hand)
    before = fingerprint(root)
    apply_all(root, plan.changes)
    revert_all(root)
    assert fingerprint(root) == before


def test_systemd_accepts_the_partition_s_units(folder: Path) -> None:
    program = needs("systemd-analyze")
    root = with_cpusets(folder / "root")
    apply_all(root, planned(root, choice=Choice(include=PARTITION)).changes)
    units = [root / f"etc/systemd/system/latenz{name}" for name in (".slice", "-partition.service")]
    ended = subprocess.run([program, "verify", *units], capture_output=True, text=True, check=False)
    about = [line for line in ended.stderr.splitlines() if "latenz" in line]
    assert (ended.returncode, about) == (0, [])
    text = units[1].read_text()
    line = re.search(r"ExecStart=/bin/sh -c '(.*?)'$", text, re.DOTALL | re.MULTILINE)
    assert line
    group = root / "sys/fs/cgroup/latenz.slice"
    group.mkdir(parents=True)
    shell = line[1].replace("$$", "$").replace("\\\n", "").replace("/sys", f"{root}/sys")
    assert subprocess.run(["sh", "-c", shell], check=False, capture_output=True).returncode == 0
    refusing = shell.replace("echo isolated >", "echo isolated invalid >")
    assert subprocess.run(["sh", "-c", refusing], check=False, capture_output=True).returncode == 1


def test_a_partition_is_made_now_and_dissolved_by_systemd(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls of systemctl, in the order in which systemd must get them."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr("latenz.tune.changes._run", lambda _, *command: calls.append(command))
    root = with_cpusets(folder / "root")
    plan = planned(root, choice=Choice(include=PARTITION))
    before = fingerprint(root)
    apply_all(root, [*plan.changes, PartitionChange(), RestartChange(unit="irqbalance.service")])
    unit = "latenz-partition.service"
    reload = ("systemctl", "daemon-reload")
    again = ("systemctl", "try-restart", "--", "irqbalance.service")
    assert calls == [reload, ("systemctl", "restart", "--", unit), reload, again]
    calls.clear()
    revert_all(root)
    assert fingerprint(root) == before
    stop = ("systemctl", "stop", "--", unit)
    assert sorted(calls) == sorted([reload, again, stop, reload])
    assert calls.index(stop) < max(at for at, call in enumerate(calls) if call == reload)


def test_every_setting_lasts_or_is_told(folder: Path) -> None:
    """A virtual CPU's thread ends with its machine: nothing of ours can make its policy last."""
    assert {entry.id for entry in load() if entry.now and not entry.boot} == {"vcpu-sched-fifo"}
    root = debian(folder / "root")
    (root / "etc/default/grub.d/latenz.cfg").write_text("")
    for change in planned(root).changes:
        if isinstance(change, FileChange):
            (root / change.path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            (root / change.path.lstrip("/")).write_bytes(change.content or b"")
    told = " ".join(planned(root).notes)
    assert "host-timer-migration-off: lasts until the next restart only" in told


def test_threads_of_the_kernel_get_cpus_and_policies_at_each_boot(folder: Path) -> None:
    """The unit's own shell line, run with programs that write down what they are told."""
    unpack(folder)
    wished = ("host-irq-thread-affinity", "host-rt-priority-order", "host-rcuo-affinity")
    root = folder / "debian12/untuned"
    choice = Choice(only=wished)
    context = Context.of(Root(root), "3", "host")
    checks = [replace(each, state="wrong") for each in check(context, load())]
    unit = contents(plan_of(context, checks, choice))["/etc/systemd/system/latenz-threads.service"]
    line = re.search(r"ExecStart=/bin/sh -c '(.*)'", unit)
    assert line
    fakes, proc = folder / "bin", folder / "proc"
    fakes.mkdir()
    for program in ("taskset", "chrt"):
        (fakes / program).write_text(f'#!/bin/sh\necho {program} "$@" >> {folder}/told\n')
        (fakes / program).chmod(0o755)
    names = {7: "irq/24-nvme", 8: "ktimers/3", 9: "rcuop/3", 10: "rcuc/3", 11: "bash", 12: "irq/x"}
    for number, name in names.items():
        write_files(proc, {f"{number}/comm": name + "\n"})
    (proc / "12/exe").write_text("a program that calls itself so")
    shell = line[1].replace("$$", "$").replace("/proc", str(proc))
    environment = {"PATH": f"{fakes}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", shell], check=True, env=environment)
    assert sorted((folder / "told").read_text().splitlines()) == [
        "chrt --fifo -p 3 8",
        "chrt --fifo -p 4 10",
        "taskset -pc 0-2 7",
        "taskset -pc 0-2 9",
    ]


def test_the_fair_server_is_off_with_throttling_now_and_at_each_boot(folder: Path) -> None:
    root = debian(folder / "root")
    server = "/sys/kernel/debug/sched/fair_server/cpu{}/runtime"
    write_files(root, {server.format(cpu)[1:]: "50000000\n" for cpu in range(4)})
    plan = planned(root, choice=Choice(include=("host-rt-throttling-off",)))
    written = {each.path: each.value for each in plan.changes if isinstance(each, WriteChange)}
    servers = {path: value for path, value in written.items() if "fair_server" in path}
    assert servers == {server.format(2): "0", server.format(3): "0"}
    unit = contents(plan)["/etc/systemd/system/latenz-irqs.service"]
    assert f"for file in {server.format(3)}; do echo 0 > $$file; done" in unit


def test_a_module_is_given_no_option_that_it_does_not_have(folder: Path) -> None:
    """Linux 6.18 has lapic_timer_advance (Y or N) in place of lapic_timer_advance_ns."""
    root = debian(folder / "root")
    parameters = root / "sys/module/kvm/parameters"
    choice = Choice(only=("kvm-lapic-timer-advance",))
    (parameters / "lapic_timer_advance").write_text("N\n")
    newer = planned(root, choice=choice)
    assert newer.changes == ()
    assert any("remove that" in each.advice for each in newer.by_hand)
    (parameters / "lapic_timer_advance").rename(parameters / "lapic_timer_advance_ns")
    (parameters / "lapic_timer_advance_ns").write_text("7500\n")
    older = contents(planned(root, choice=choice))
    assert "options kvm lapic_timer_advance_ns=-1\n" in older["/etc/modprobe.d/latenz.conf"]


def test_modprobe_takes_the_options(folder: Path) -> None:
    program = needs("modprobe")
    root = debian(folder / "root")
    apply_all(root, planned(root).changes)
    command = [program, "--config", root / "etc/modprobe.d", "--showconfig"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "options kvm kvmclock_periodic_sync=N" in said
    assert "options kvm_intel ple_gap=0" in said


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run `latenz tune` and return its exit code, and what it printed."""
    previous, sys.argv = sys.argv, ["latenz", "tune", *arguments]
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        sys.argv = previous
    out, err = capsys.readouterr()
    code = ended.value.code
    return code if isinstance(code, int) else 0, out, err


def test_the_commands_from_plan_to_revert(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = debian(folder / "root")
    before = fingerprint(root)
    chosen = ["--root", str(root), "--cpus", "2-3", "--profile", "kvm-host"]
    code, out, _ = run("plan", *chosen, capsys=capsys)
    assert code == 0
    assert "+kernel.timer_migration = 0" in out
    assert "/proc/sys/kernel/timer_migration: 1 -> 0" in out
    assert fingerprint(root) == before

    _, shown, _ = run("plan", *chosen, "--json", capsys=capsys)
    code, _, err = run("apply", *chosen, capsys=capsys)
    assert (code, fingerprint(root) == before) == (2, True)
    assert err == "latenz: tune apply: nobody can be asked here; add --yes\n"

    code, out, _ = run("apply", *chosen, "--yes", "--json", capsys=capsys)
    document = json.loads(out)
    assert (code, document["state"]) == (0, "applied")
    assert len(document["plan"]["changes"]) == len(document["changes"]) > 15
    assert document["plan"] == json.loads(shown), "with the values before, not those after"

    code, out, _ = run("status", "--root", str(root), "--json", capsys=capsys)
    assert code == 0
    assert {each["now"] for each in json.loads(out)["changes"]} == {"as applied"}

    (root / "etc/sysctl.d/99-latenz.conf").write_text("theirs\n")
    assert run("status", "--root", str(root), capsys=capsys)[0] == 1
    code, _, err = run("revert", "--root", str(root), capsys=capsys)
    assert code == 2
    assert "changed by somebody since: /etc/sysctl.d/99-latenz.conf; nothing is reverted" in err

    code, out, _ = run("revert", "--root", str(root), "--force", "--json", capsys=capsys)
    assert (code, json.loads(out)["complete"]) == (0, True)
    assert fingerprint(root) == before
    code, out, _ = run("status", "--root", str(root), "--json", capsys=capsys)
    assert (code, json.loads(out)) == (0, {"state": "none", "at_work": False, "changes": []})


@pytest.mark.parametrize("verb", ["applied", "reverted"])
def test_ctrl_c_after_the_last_change_is_no_reason_to_be_silent(
    folder: Path, verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All is changed then: whoever is told nothing believes the plan's "nothing is changed yet"."""
    root = debian(folder / "root")
    told = getattr(plan_show, f"print_{verb}")

    def interrupted(*words: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        told(*words)

    monkeypatch.setattr(plan_show, f"print_{verb}", interrupted)
    given = ["--root", str(root)]
    code, out, _ = run("apply", *given, "--only", "host-thp", "--yes", capsys=capsys)
    assert (code, "applied; latenz tune revert" in out) == (0, True)
    code, out, _ = run("revert", *given, capsys=capsys)
    assert (code, "taken back" in out) == (0, True)


def test_what_to_type_next_names_the_machine(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`latenz tune revert` alone would take back what is applied to this machine."""
    root = debian(folder / "a root")
    given = ["--root", str(root)]
    again = f"latenz tune revert --root '{root}'"
    _, out, _ = run("apply", *given, "--only", "host-thp", "--yes", capsys=capsys)
    assert f"{again} takes all back" in out
    for words in (["apply", "--yes"], ["plan", "--cpus", "1"]):
        assert f"{again} first" in run(*words, *given, capsys=capsys)[2]


def test_on_a_terminal_the_user_is_asked(folder: Path) -> None:
    root = debian(folder / "root")
    before = fingerprint(root)
    command = ["-m", "latenz", "tune", "apply", "--root", str(root), "--cpus", "2-3"]
    for answer, told in (("n", "nothing is changed"), ("y", "applied; latenz tune revert")):
        session = pexpect.spawn(sys.executable, [*command, "--only", "host-thp"], timeout=60)
        session.expect_exact("Apply this? [y/N] ")
        assert fingerprint(root) == before
        session.sendline(answer)
        session.expect_exact(told)
        session.expect(pexpect.EOF)
    assert (root / "etc/tmpfiles.d/latenz.conf").exists()
