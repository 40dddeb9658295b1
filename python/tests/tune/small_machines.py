"""Trees of small machines: a Debian with GRUB, and a Fedora with boot entries and TuneD."""

from pathlib import Path

from latenz.tune.catalogue import load
from latenz.tune.check import check
from latenz.tune.context import Context
from latenz.tune.plan import Choice, Plan, plan
from latenz.tune.root import Root

_FLAGS = "fpu vme tsc msr constant_tsc nonstop_tsc pdpe1gb tsc_deadline_timer vmx"
_KERNEL = {
    "proc/cmdline": "root=/dev/sda1 ro quiet isolcpus=1\n",
    "proc/cpuinfo": "".join(
        f"processor\t: {cpu}\nvendor_id\t: GenuineIntel\nflags\t\t: {_FLAGS}\n\n"
        for cpu in range(4)
    ),
    "proc/interrupts": "           CPU0       CPU1       CPU2       CPU3       \n"
    " 24:    10    0    0    0  PCI-MSIX-0000:00:01.0   0-edge      nvme0q0\n"
    " 25:     0    7    0    0  PCI-MSIX-0000:00:02.0   0-edge      eth0-rx\n"
    " 26:     0    0    3    0  IO-APIC   5-edge      ACPI:Ged\n"
    "LOC:    1    1    1    1   Local timer interrupts\n",
    "proc/irq/default_smp_affinity": "f\n",
    "proc/irq/24/smp_affinity_list": "0-3\n",
    "proc/irq/25/smp_affinity_list": "0-3\n",
    "proc/irq/26/smp_affinity_list": "0\n",
    "proc/irq/24/nvme0q0/": "",
    "proc/irq/25/eth0-rx/": "",
    "proc/irq/26/ACPI:Ged/": "",
    "proc/sys/kernel/random/boot_id": "first\n",
    "proc/sys/kernel/osrelease": "6.1.0-13-amd64\n",
    "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    "proc/sys/kernel/timer_migration": "1\n",
    "proc/sys/kernel/nmi_watchdog": "1\n",
    "proc/sys/vm/stat_interval": "1\n",
    "sys/devices/system/cpu/online": "0-3\n",
    "sys/devices/virtual/workqueue/cpumask": "f\n",
    "sys/devices/virtual/workqueue/writeback/cpumask": "f\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
    "sys/kernel/mm/transparent_hugepage/defrag": "always defer [madvise] never\n",
    "sys/module/rcupdate/parameters/rcu_cpu_stall_suppress": "0\n",
    "sys/module/kvm/parameters/halt_poll_ns": "200000\n",
    "sys/module/kvm/parameters/kvmclock_periodic_sync": "Y\n",
    "sys/module/kvm/parameters/nx_huge_pages": "Y\n",
    "sys/module/kvm_intel/parameters/ple_gap": "128\n",
    "sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs": "77\n",
    "sys/fs/cgroup/system.slice/thermald.service/cgroup.procs": "78\n",
}
_DEBIAN = {
    "etc/debian_version": "12.5\n",
    "etc/default/grub": 'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'
    'GRUB_CMDLINE_LINUX="isolcpus=1 console=tty0"\n',
    "etc/default/grub.d/": "",
    "etc/sysctl.d/99-sysctl.conf": "# ours\nvm/stat_interval = 1\n",
    "etc/systemd/system/multi-user.target.wants/": "",
    "boot/grub/grub.cfg": "# a menu\n",
    "usr/lib/systemd/system/": "",
    "var/lib/": "",
}
_FEDORA = {
    "boot/loader/entries/abc-6.1.conf": "title Fedora\nversion 6.1\nlinux /vmlinuz\n"
    "options root=UUID=1 ro isolcpus=1 rhgb $tuned_params\n",
    "boot/loader/entries/abc-0-rescue.conf": "title Rescue\noptions root=UUID=1 ro\n",
    "etc/kernel/cmdline": "root=UUID=1 ro rhgb\n",
    "etc/tuned/active_profile": "virtual-host\n",
    "etc/tuned/profile_mode": "auto\n",
    "etc/systemd/system/multi-user.target.wants/": "",
    "usr/lib/systemd/system/": "",
    "var/lib/": "",
}


def write_files(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def enable(root: Path, unit: str) -> None:
    link = root / f"etc/systemd/system/multi-user.target.wants/{unit}"
    link.symlink_to(f"/lib/systemd/system/{unit}")


def debian(root: Path) -> Path:
    write_files(root, _KERNEL | _DEBIAN)
    enable(root, "irqbalance.service")
    enable(root, "thermald.service")
    return root


def fedora(root: Path) -> Path:
    write_files(root, _KERNEL | _FEDORA)
    enable(root, "tuned.service")
    return root


def planned(
    root: Path, *, cpus: str = "2-3", profile: str = "kvm-host", choice: Choice | None = None
) -> Plan:
    context = Context.of(Root(root), cpus, profile)
    return plan(context, check(context, load()), choice or Choice())
