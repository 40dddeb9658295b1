"""Trees of twelve kinds of machines that people tune, small, as their own files look."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from small_machines import debian, enable, fedora, write_files

CONTROLLERS = {"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n"}
_SYSTEMD = {"proc/1/comm": "systemd\n", **CONTROLLERS}
_PROTECTED = {
    "proc/sys/kernel/soft_watchdog": "1\n",
    "proc/sys/kernel/watchdog": "1\n",
    "proc/sys/kernel/hung_task_timeout_secs": "120\n",
    "proc/sys/kernel/split_lock_mitigate": "1\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/swaps": "Filename Type Size Used Priority\n/dev/dm-1 partition 8388604 0 -2\n",
    "etc/fstab": "UUID=1 / ext4 defaults 0 1\nUUID=2 none swap sw 0 0\n",
    "sys/kernel/mm/ksm/run": "1\n",
    "sys/kernel/mm/ksm/pages_sharing": "5000\n",
    "sys/devices/system/machinecheck/machinecheck0/check_interval": "12c\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/cpu/vulnerabilities/spectre_v2": "Mitigation: Retpolines\n",
    "sys/devices/system/cpu/smt/control": "on\n",
    "sys/module/pcie_aspm/parameters/policy": "[default] performance powersave\n",
}
"""What a plan leaves alone, unless it is told otherwise."""


@dataclass(frozen=True)
class Machine:
    """One kind of machine.

    Attributes:
        make: Writes its tree.
        files: What is not as in the small machine that it begins with.
        units: Services that start at boot.
    """

    make: Callable[[Path], Path]
    files: dict[str, str]
    units: tuple[str, ...] = ()

    def write(self, root: Path) -> Path:
        """Write the tree."""
        root.mkdir()
        self.make(root)
        write_files(root, _PROTECTED | self.files)
        for unit in self.units:
            enable(root, unit)
            group = f"sys/fs/cgroup/system.slice/{unit}/cgroup.procs"
            write_files(root, {group: "900\n"})
        return root


def release(version: str, os_id: str, name: str) -> dict[str, str]:
    return {
        "proc/sys/kernel/osrelease": f"{version}\n",
        "etc/os-release": f'ID={os_id}\nPRETTY_NAME="{name}"\n',
        **_SYSTEMD,
    }


def bare(root: Path) -> Path:
    """A machine without any of the boot loaders that plans edit."""
    write_files(
        root,
        {
            "proc/cmdline": "root=/dev/mmcblk0p2 rw rootwait\n",
            "sys/devices/system/cpu/online": "0-3\n",
            "proc/sys/kernel/random/boot_id": "first\n",
            "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
            "proc/sys/kernel/timer_migration": "1\n",
            "proc/sys/vm/stat_interval": "1\n",
            "etc/sysctl.d/": "",
            "etc/systemd/system/multi-user.target.wants/": "",
            "usr/lib/systemd/system/": "",
            "var/lib/": "",
        },
    )
    return root


_TUNED = {
    "etc/tuned/active_profile": "realtime\n",
    "etc/tuned/realtime-variables.conf": "isolated_cores=2-3\nisolate_managed_irq=Y\n",
}
_RT = {"sys/kernel/realtime": "1\n"}
_BATTERY = {
    "sys/class/power_supply/BAT0/type": "Battery\n",
    "sys/class/dmi/id/chassis_type": "10\n",
}
ARM = {"proc/cpuinfo": "".join(f"processor\t: {n}\nCPU implementer\t: 0x41\n\n" for n in range(4))}
_OSTREE = "root=UUID=1 ostree=/ostree/boot.1/fedora/abc/0 rw"

MACHINES = {
    "debian-12": Machine(debian, release("6.1.0-28-amd64", "debian", "Debian 12")),
    "debian-13": Machine(debian, release("6.12.41+deb13-rt-amd64", "debian", "Debian 13") | _RT),
    "ubuntu-24.04": Machine(
        debian,
        release("6.8.0-60-generic", "ubuntu", "Ubuntu 24.04"),
        ("apparmor.service", "ufw.service"),
    ),
    "ubuntu-24.04-realtime": Machine(
        debian, release("6.8.1-1020-realtime", "ubuntu", "Ubuntu 24.04") | _RT
    ),
    "rhel-9": Machine(
        fedora,
        release("5.14.0-503.el9.x86_64+rt", "rhel", "RHEL 9") | _TUNED | _RT,
        ("auditd.service", "firewalld.service"),
    ),
    "rhel-10": Machine(
        fedora,
        release("6.12.0-55.el10.x86_64", "rhel", "RHEL 10") | _TUNED,
        ("auditd.service", "firewalld.service"),
    ),
    "fedora": Machine(fedora, release("6.14.9-300.fc42.x86_64", "fedora", "Fedora 42")),
    "yocto": Machine(
        bare,
        ARM
        | {
            "proc/sys/kernel/osrelease": "6.6.32-rt32-yocto-preempt-rt\n",
            "etc/os-release": "ID=poky\n",
            "boot/extlinux/extlinux.conf": "default l\nlabel l\n\tlinux /Image\n"
            "\tappend root=/dev/mmcblk0p2 rw rootwait\n",
        }
        | _RT,
    ),
    "raspberry-pi-os": Machine(
        bare,
        ARM
        | release("6.12.25+rpt-rpi-2712", "debian", "Raspberry Pi OS")
        | {
            "boot/firmware/cmdline.txt": "console=tty1 root=PARTUUID=1 rootwait\n",
            "boot/firmware/config.txt": "arm_64bit=1\n",
            "sys/firmware/devicetree/base/model": "Raspberry Pi 5 Model B Rev 1.0\0",
        },
    ),
    "ostree": Machine(
        fedora,
        release("6.14.9-300.fc42.x86_64", "fedora", "Fedora IoT 42")
        | {
            "run/ostree-booted": "",
            "proc/cmdline": f"BOOT_IMAGE=(hd0,gpt3)/ostree/fedora-abc/vmlinuz {_OSTREE}\n",
            "boot/loader/entries/ostree-1.conf": f"title Fedora IoT\noptions {_OSTREE}\n",
        },
    ),
    "kubernetes": Machine(
        debian,
        release("6.8.0-60-generic", "ubuntu", "Ubuntu 24.04")
        | {
            "var/lib/kubelet/cpu_manager_state": '{"policyName":"static","defaultCpuSet":"0-1",'
            '"entries":{"pod":{"app":"2-3"}},"checksum":1}\n',
            "var/lib/kubelet/config.yaml": "cpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n",
            "sys/fs/cgroup/kubepods.slice/cpuset.cpus": "0-3\n",
        },
        ("kubelet.service", "containerd.service"),
    ),
    "laptop": Machine(
        debian,
        release("6.14.0-24-generic", "ubuntu", "Ubuntu 25.04") | _BATTERY,
        ("power-profiles-daemon.service",),
    ),
}
