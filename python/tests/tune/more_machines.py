"""Trees of machines unlike the twelve: other boot loaders, other service managers, boards."""

import shutil
from pathlib import Path

from small_machines import debian, write_files
from twelve_machines import ARM, CONTROLLERS, Machine, bare, release


def without_systemd(root: Path) -> Path:
    """A machine on which nothing is systemd's."""
    bare(root)
    for folder in ("usr/lib/systemd", "etc/systemd"):
        shutil.rmtree(root / folder)
    return root


_RPI_CONFIG = "CONFIG_NO_HZ_IDLE=y\n# CONFIG_NO_HZ_FULL is not set\nCONFIG_CPU_ISOLATION=y\n"


def proxmox(root: Path) -> Path:
    """A host on ZFS, which systemd-boot starts from partitions that are not mounted."""
    debian(root)
    write_files(
        root,
        {
            "proc/cmdline": "initrd=\\EFI\\proxmox\\6.8.12-1-pve\\initrd.img "
            "root=ZFS=rpool/ROOT/pve-1 boot=zfs\n",
            "etc/kernel/cmdline": "root=ZFS=rpool/ROOT/pve-1 boot=zfs\n",
            "etc/kernel/proxmox-boot-uuids": "1234-ABCD\n",
        },
    )
    return root


MORE = {
    "jetson": Machine(
        bare,
        ARM
        | release("5.15.148-tegra", "ubuntu", "Ubuntu 22.04")
        | {
            "boot/extlinux/extlinux.conf": "DEFAULT primary\nLABEL primary\n\tLINUX /boot/Image\n"
            "\tAPPEND ${cbootargs} root=PARTUUID=1 rw rootwait\n",
            "sys/firmware/devicetree/base/model": "NVIDIA Jetson AGX Orin Developer Kit\0",
            "sys/class/devfreq/17000000.gpu/governor": "nvhost_podgov\n",
            "etc/nvpmodel.conf": "< POWER_MODEL ID=0 NAME=MAXN >\n",
            "var/lib/nvpmodel/status": "pmode:0002\n",
        },
        ("nvpmodel.service", "nvfancontrol.service"),
    ),
    "imx-yocto": Machine(
        without_systemd,
        ARM
        | {
            "proc/1/comm": "init\n",
            "proc/sys/kernel/osrelease": "6.6.36-lts-next\n",
            "etc/os-release": "ID=fsl-imx-xwayland\n",
            "etc/fw_env.config": "/dev/mmcblk2 0x700000 0x4000\n",
            "sys/bus/platform/drivers/imx_busfreq/busfreq/enable": "Bus frequency scaling is "
            "enabled\n",
            "proc/irq/default_smp_affinity": "f\n",
            "sys/devices/virtual/workqueue/cpumask": "f\n",
        },
    ),
    "proxmox": Machine(
        proxmox, release("6.8.12-1-pve", "debian", "Debian 12"), ("pveproxy.service",)
    ),
    "alpine": Machine(
        without_systemd,
        {
            **CONTROLLERS,
            "proc/1/comm": "init\n",
            "proc/sys/kernel/osrelease": "6.12.30-0-lts\n",
            "proc/irq/default_smp_affinity": "f\n",
            "sys/devices/virtual/workqueue/cpumask": "f\n",
            "etc/os-release": "ID=alpine\n",
            "etc/update-extlinux.conf": 'default_kernel_opts="quiet rootfstype=ext4"\n',
            "boot/extlinux.conf": "DEFAULT menu.c32\n",
            "etc/runlevels/default/": "",
            "etc/local.d/": "",
        },
    ),
    "microos": Machine(
        bare,
        release("6.14.6-1-default", "opensuse-microos", "openSUSE MicroOS")
        | {
            "proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz-6.14.6-1-default root=UUID=1\n",
            "etc/default/grub": 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n',
            "boot/grub2/grub.cfg": "# a menu\n",
            "usr/sbin/transactional-update": "#!/bin/bash\n",
            "usr/sbin/grub2-mkconfig": "#!/bin/sh\n. /etc/default/grub\n",
        },
        ("transactional-update.timer",),
    ),
    "ubuntu-core": Machine(
        bare,
        release("6.8.0-60-generic", "ubuntu-core", "Ubuntu Core 24")
        | {
            "proc/cmdline": "snapd_recovery_mode=run console=ttyS0 panic=-1\n",
            "var/lib/snapd/modeenv": "mode=run\n",
        },
        ("snapd.service",),
    ),
    "raspberry-pi-without-dynticks": Machine(
        bare,
        ARM
        | release("6.12.25+rpt-rpi-2712", "debian", "Raspberry Pi OS")
        | {
            "boot/config-6.12.25+rpt-rpi-2712": _RPI_CONFIG,
            "boot/firmware/cmdline.txt": "console=tty1 root=PARTUUID=1 rootwait\n",
            "boot/firmware/config.txt": "# comment\narm_64bit=1\n[all]\n",
            "sys/firmware/devicetree/base/model": "Raspberry Pi 5 Model B Rev 1.0\0",
        },
    ),
}
