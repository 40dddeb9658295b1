"""What of the host a virtual machine takes: CPUs, huge pages, locked memory."""

import os
import resource
from pathlib import Path

from pydantic import ValidationError

from latenz.errors import BadInput
from latenz.settings import format_cpu_list, parse_cpu_list
from latenz.vm.command import has_huge_pages, has_locked_memory
from latenz.vm.settings import VmSettings

_CPUS = Path("/sys/devices/system/cpu")
_HUGE = Path("/sys/kernel/mm/hugepages")


def made_settings(**wanted: object) -> VmSettings:
    """Return a machine's settings.

    Args:
        wanted: As `VmSettings` has them.

    Raises:
        BadInput: They contradict each other, or one is out of its range.
    """
    try:
        return VmSettings.model_validate(wanted)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the virtual machine"
        raise BadInput(first["msg"].removeprefix("Value error, "), where) from None


def placed(settings: VmSettings) -> VmSettings:
    """Return a machine on the CPUs that this host isolates, if it names none itself.

    The last ones are taken, one for each vCPU; the other threads get what is not isolated. Where
    too few CPUs are isolated none are taken, as the host would run other tasks on them.
    """
    isolated = _listed(_CPUS / "isolated")
    cpus = settings.cpus
    if cpus is None and len(isolated) >= settings.processors:
        cpus = isolated[-settings.processors :]
    if cpus is None:
        return settings
    online = _listed(_CPUS / "online")
    others = tuple(cpu for cpu in online if cpu not in {*isolated, *cpus})
    known = {
        "cpus": cpus,
        "housekeeping": settings.housekeeping or others or None,
        "node": _node(cpus[-1]),
    }
    return settings.model_copy(update=known)


def check_devices(settings: VmSettings) -> None:
    """Tell which device of a machine this host does not have, whatever runs the machine.

    Raises:
        BadInput: A disk, network interface or PCI device is not there.
    """
    if settings.disk is not None and not settings.disk.exists():
        raise BadInput("is not there", str(settings.disk), "name a disk image")
    if settings.tap is not None and not Path("/sys/class/net", settings.tap).exists():
        remedy = f"ip tuntap add dev {settings.tap} mode tap"
        raise BadInput("is not a network interface", settings.tap, remedy)
    if settings.on("vfio-passthrough") and settings.passthrough:
        _check_passthrough(settings.passthrough)


def check_host(settings: VmSettings) -> None:
    """Tell what this host lacks for a machine, before it is started.

    Raises:
        BadInput: Huge pages are missing, memory may not be locked, a CPU or a device is not there.
    """
    check_devices(settings)
    if settings.accelerator != "kvm":
        return
    _check_cpus(settings)
    if has_locked_memory(settings):
        _check_locking()
    if has_huge_pages(settings):
        _check_huge_pages(settings)


def _listed(path: Path) -> tuple[int, ...]:
    """Return the CPUs that a file of the kernel lists; none if it is empty or not there."""
    try:
        return parse_cpu_list(path.read_text().strip())
    except (OSError, ValueError):
        return ()


def _node(cpu: int) -> int:
    nodes = [path.name.removeprefix("node") for path in (_CPUS / f"cpu{cpu}").glob("node[0-9]*")]
    return int(nodes[0]) if nodes else 0


def _check_cpus(settings: VmSettings) -> None:
    online = _listed(_CPUS / "online")
    for cpus in (settings.cpus, settings.housekeeping):
        if missing := tuple(cpu for cpu in cpus or () if cpu not in online):
            what = f"CPU {format_cpu_list(missing)} is not online"
            raise BadInput(what, "--cpus", f"choose among {format_cpu_list(online)}")


def _check_passthrough(address: str) -> None:
    driver = Path("/sys/bus/pci/devices", address, "driver")
    if not driver.parent.exists():
        raise BadInput("is not a PCI device of this host", address, "lspci -D lists them")
    if not driver.exists() or driver.resolve().name != "vfio-pci":
        raise BadInput("is not bound to vfio-pci", address, "see vfio-passthrough in tune check")


def _check_locking() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if os.geteuid() != 0 and soft != resource.RLIM_INFINITY:
        what = f"only {soft >> 10} KiB of memory may be locked"
        raise BadInput(what, "RLIMIT_MEMLOCK", "run as root, or raise it with ulimit -l unlimited")


def _check_huge_pages(settings: VmSettings) -> None:
    """Tell how many huge pages are missing, and the command that makes them."""
    place = settings.huge_pages
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    if not any(fields[1] == str(place) and fields[2] == "hugetlbfs" for fields in mounts):
        remedy = f"mkdir -p {place} && mount -t hugetlbfs none {place}"
        raise BadInput("no huge pages are mounted there", str(place), remedy)
    page_kib = os.statvfs(place).f_bsize >> 10
    wanted = -(-settings.memory_mib * 1024 // page_kib)
    pool = _HUGE / f"hugepages-{page_kib}kB"
    if settings.on("vm-numa-local"):
        pool = Path(f"/sys/devices/system/node/node{settings.node}/hugepages", pool.name)
    free, total = (int((pool / name).read_text()) for name in ("free_hugepages", "nr_hugepages"))
    if free < wanted:
        what = (
            f"{wanted - free} huge pages of {page_kib} KiB are missing"
            f" ({settings.memory_mib} MiB need {wanted}, {free} are free)"
        )
        remedy = f"echo {total + wanted - free} > {pool / 'nr_hugepages'}"
        raise BadInput(what, str(pool), f"{remedy}, or --without qemu-hugepages,libvirt-locked")
