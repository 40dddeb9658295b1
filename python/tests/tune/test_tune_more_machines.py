"""What a plan says on machines whose boot loader, service manager or board is another one's."""

from pathlib import Path

import pytest
from more_machines import MORE
from test_tune_twelve_machines import as_it_looks

from latenz.tune.catalogue import load
from latenz.tune.changes import FileChange
from latenz.tune.check import Check, check
from latenz.tune.context import Context
from latenz.tune.plan import Plan
from latenz.tune.root import Root


def plan_of(name: str, folder: Path) -> Plan:
    return as_it_looks(MORE[name].write(folder / name))


def checks(name: str, folder: Path) -> dict[str, Check]:
    root = MORE[name].write(folder / name)
    return {each.id: each for each in check(Context.of(Root(root), "2-3"), load())}


def paths(plan: Plan) -> set[str]:
    return {each.path for each in plan.changes if isinstance(each, FileChange)}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("proxmox", r"add to the line of /etc/kernel/cmdline: isolcpus=managed_irq,domain,2-3 "),
        ("proxmox", "; then proxmox-boot-tool refresh"),
        ("alpine", "add to default_kernel_opts in /etc/update-extlinux.conf: isolcpus="),
        ("alpine", "; then update-extlinux"),
        ("microos", "add to GRUB_CMDLINE_LINUX in /etc/default/grub: isolcpus="),
        ("microos", "; then transactional-update grub.cfg"),
        ("ubuntu-core", 'snap set system system.kernel.dangerous-cmdline-append="isolcpus='),
        ("imx-yocto", "add to bootargs (fw_printenv bootargs shows it): isolcpus="),
    ],
)
def test_the_command_line_is_left_to_whom_it_belongs(name: str, told: str, tmp_path: Path) -> None:
    plan = plan_of(name, tmp_path)
    assert any(told in each.advice for each in plan.by_hand), plan.by_hand
    assert not any("grub" in path or "cmdline" in path for path in paths(plan))


def test_a_board_that_extlinux_starts_keeps_its_own_words(tmp_path: Path) -> None:
    [change] = [
        each
        for each in plan_of("jetson", tmp_path).changes
        if isinstance(each, FileChange) and "extlinux" in each.path
    ]
    assert b"\tAPPEND ${cbootargs} root=PARTUUID=1 rw rootwait isolcpus=" in (change.content or b"")


@pytest.mark.parametrize("name", ["alpine", "imx-yocto"])
def test_nothing_is_called_lasting_that_only_systemd_would_set(name: str, tmp_path: Path) -> None:
    plan = plan_of(name, tmp_path)
    assert not [path for path in paths(plan) if "systemd" in path or "tmpfiles" in path]
    [left] = [each for each in plan.by_hand if "no systemd" in each.title]
    assert {"host-irq-default-mask", "host-workqueue-mask"} <= set(left.entries)
    assert "echo 3 > /proc/irq/default_smp_affinity" in left.advice
    assert (
        "for file in /sys/devices/virtual/workqueue/*/cpumask; do echo 3 > $file; done"
        in left.advice
    )


def test_parameters_that_this_kernel_does_not_know_are_not_given(tmp_path: Path) -> None:
    plan = plan_of("raspberry-pi-without-dynticks", tmp_path)
    [line] = [
        each
        for each in plan.changes
        if isinstance(each, FileChange) and each.path == "/boot/firmware/cmdline.txt"
    ]
    words = {word.partition(b"=")[0] for word in (line.content or b"").split()}
    assert b"isolcpus" in words
    assert words.isdisjoint({b"nohz_full", b"rcu_nocbs", b"rcutree.nohz_full_patience_delay"})
    told = {each.entries[0]: each.advice for each in plan.by_hand}
    assert told["cmdline-nohz-full"].startswith("the kernel was built without CONFIG_NO_HZ_FULL")


@pytest.mark.parametrize(
    ("name", "given"),
    [("jetson", False), ("alpine", True), ("microos", True), ("ubuntu-core", False)],
)
def test_a_parameter_is_given_to_the_kernels_that_have_it(
    name: str, given: bool, tmp_path: Path
) -> None:
    """rcutree.nohz_full_patience_delay came with Linux 6.11."""
    plan = plan_of(name, tmp_path)
    texts = [each.advice for each in plan.by_hand]
    texts += [str(each.content) for each in plan.changes if isinstance(each, FileChange)]
    assert any("nohz_full_patience_delay=" in text for text in texts) is given


def test_boards_are_told_of_clocks_that_are_not_the_cpus(tmp_path: Path) -> None:
    imx = checks("imx-yocto", tmp_path)["host-imx-busfreq"]
    assert (imx.state, imx.found) == ("wrong", "Bus frequency scaling is enabled")
    file = tmp_path / "imx-yocto/sys/bus/platform/drivers/imx_busfreq/busfreq/enable"
    file.write_text("Bus frequency scaling is disabled\n")
    found = check(Context.of(Root(tmp_path / "imx-yocto"), "2-3"), load())
    assert {each.id: each for each in found}["host-imx-busfreq"].state == "ok"
    jetson = checks("jetson", tmp_path)
    assert jetson["host-jetson-power-mode"].state == "unknown"
    assert "nvpmodel -q" in jetson["host-jetson-power-mode"].reason
    assert jetson["host-devfreq-performance"].state == "wrong"
    assert checks("alpine", tmp_path)["host-jetson-power-mode"].state == "not applicable"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("# force_turbo=1\n", "wrong"),
        ("arm_64bit=1\n", "wrong"),
        ("force_turbo=0\n", "wrong"),
        ("arm_64bit=1\nforce_turbo=1\n[all]\n", "ok"),
    ],
)
def test_force_turbo_is_read_from_the_firmwares_configuration(
    text: str, state: str, tmp_path: Path
) -> None:
    root = MORE["raspberry-pi-without-dynticks"].write(tmp_path / "pi")
    (root / "boot/firmware/config.txt").write_text(text)
    found = {each.id: each for each in check(Context.of(Root(root), "2-3"), load())}
    assert found["host-pi-force-turbo"].state == state


WATERMARK = "proc/sys/vm/watermark_scale_factor"


def test_memory_is_kept_free_only_if_somebody_names_it(tmp_path: Path) -> None:
    root = MORE["proxmox"].write(tmp_path / "root")
    (root / WATERMARK).write_text("10\n")
    assert "host-memory-watermarks" in {each.id for each in as_it_looks(root).offers}
    (root / WATERMARK).write_text("150\n")
    assert "host-memory-watermarks" not in {each.id for each in as_it_looks(root).offers}


def test_other_entries_apply_where_their_files_are(tmp_path: Path) -> None:
    root = MORE["proxmox"].write(tmp_path / "root")
    for name, text in {
        "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw": "65000000\n",
        "sys/class/ptp/ptp0/clock_name": "igc\n",
        "sys/devices/system/cpu/amd_pstate/prefcore": "enabled\n",
        "boot/config-6.8.12-1-pve": "CONFIG_DEBUG_PREEMPT=y\nCONFIG_CPU_ISOLATION=y\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    cpuinfo = root / "proc/cpuinfo"
    cpuinfo.write_text(cpuinfo.read_text().replace("GenuineIntel", "AuthenticAMD"))
    found = {each.id: each for each in check(Context.of(Root(root), "2-3"), load())}
    assert found["host-power-cap"].state == "unknown"
    assert "turbostat" in found["host-power-cap"].reason
    assert {found[name].state for name in ("host-net-launch-time", "host-net-xdp")} == {"unknown"}
    assert found["host-amd-preferred-cores"].state == "wrong"
    assert found["host-kernel-debug-preempt"].state == "wrong"
    assert found["host-mpam-group"].state == "not applicable"
    bare = {
        each.id: each
        for each in check(Context.of(Root(MORE["alpine"].write(tmp_path / "a")), "2-3"), load())
    }
    for name in ("host-power-cap", "host-net-launch-time", "host-net-xdp"):
        assert bare[name].state == "not applicable", name
