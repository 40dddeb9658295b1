"""Probes of virtual machines: what QEMU is told, where its threads run, what libvirt's domains say.

Where there is no virtual machine, nothing of this applies.
"""

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from latenz.tune.context import Context
from latenz.tune.cpus import format_list
from latenz.tune.model import (
    DomainProbe,
    PassthroughProbe,
    QemuMemoryProbe,
    QemuProbe,
    QemuThreadsProbe,
    StealProbe,
)
from latenz.tune.probes import Reading, Value, reader
from latenz.tune.qemu import Option, QemuProcess, size_bytes, word

if TYPE_CHECKING:
    from latenz.tune.tasks import Thread

_PROCESSES = "/proc/*/cmdline"
_DOMAINS = "/etc/libvirt/qemu"
_NO_PROCESS = "no QEMU process uses KVM"
_NO_DOMAIN = "libvirt has no domain"
_NO_NAMES = (
    "its threads have no names: start QEMU with -name NAME,debug-threads=on, as libvirt does"
)
_LISTS = ("device", "drive", "netdev", "object")
"""Options each of which is a thing of its own; of others that are given again the last counts."""
_DEVICE = re.compile(r"(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_STEAL_FIELD = 7  # of a line of /proc/stat after its name: proc(5)
_PAGES = ((1 << 30, "1G"), (1 << 20, "2M"))
_ADDRESS = ("domain", "bus", "slot", "function")


@reader(QemuProbe)
def _qemu(probe: QemuProbe, context: Context) -> Reading:
    def texts(process: QemuProcess) -> Iterable[str]:
        return _of_option(process.given(probe.option), probe)

    return _of_processes(context, "cmdline", texts, f"no virtual machine has such a {probe.option}")


def _of_option(options: list[Option], probe: QemuProbe) -> list[str]:
    key = probe.key.replace("_", "-")  # as in `parse_option`
    if probe.of:
        kinds = [
            option
            for option in options
            if any(fnmatchcase(next(iter(option.values()), ""), each) for each in probe.of)
        ]
        return [word(option.get(key, probe.otherwise)) for option in kinds]
    if not key:
        return ["given" if options else probe.otherwise]
    found = [word(option[key]) for option in options if key in option]
    if not found:
        return [probe.otherwise]
    return found if probe.option in _LISTS else found[-1:]


@reader(QemuMemoryProbe)
def _qemu_memory(probe: QemuMemoryProbe, context: Context) -> Reading:
    if probe.show == "page":
        return _of_processes(context, "cmdline", lambda each: _pages(each, context), "")
    file, keys = {
        "locked": ("status", ("VmLck",)),
        "huge": ("smaps_rollup", ("Shared_Hugetlb", "Private_Hugetlb")),
    }[probe.show]

    def texts(process: QemuProcess) -> Iterable[str] | None:
        text = context.root.read(f"/proc/{process.pid}/{file}")
        if text is None:
            return None
        rows = dict(re.findall(r"^(\w+):\s*(\d{1,15}) kB$", text, re.MULTILINE))
        if not any(key in rows for key in keys):
            return None
        found = sum(int(rows.get(key, 0)) for key in keys)
        memory = process.memory_bytes >> 10
        return ["all" if found >= memory else f"{found} of {memory} kB"]

    return _of_processes(context, file, texts, "")


def _pages(process: QemuProcess, context: Context) -> list[str]:
    """Return the page size of each part of a guest's memory."""
    found = []
    for option in process.given("object"):
        kind = option.get("qom-type", "")
        if kind == "memory-backend-file":
            found.append(_page_of_path(option.get("mem-path", ""), context))
        elif kind.startswith("memory-backend-"):
            huge = word(option.get("hugetlb", "")) == "on"
            found.append(_page(size_bytes(option.get("hugetlbsize", "")), context, huge))
    if not found:
        paths = [next(iter(option), "") for option in process.given("mem-path")]
        found = [_page_of_path(path, context) for path in paths]
    return found or ["4K"]


def _page_of_path(path: str, context: Context) -> str:
    """Return the page size of the file system that a file is in."""
    rows = [row.split() for row in (context.root.read("/proc/mounts") or "").splitlines()]
    rows = [row for row in rows if len(row) > 3 and f"{path}/".startswith(row[1].rstrip("/") + "/")]
    mount = max(rows, key=lambda row: len(row[1]), default=["", "", "", ""])
    size = re.search(r"\bpagesize=(\w+)", mount[3])
    return _page(size_bytes(size[1]) if size else 0, context, mount[2] == "hugetlbfs")


def _page(size: int, context: Context, huge: bool) -> str:
    if huge and not size:
        default = re.search(
            r"^Hugepagesize:\s*(\d{1,12}) kB", context.root.read("/proc/meminfo") or "", re.M
        )
        size = int(default[1]) << 10 if default else 0
    return next((name for least, name in _PAGES if huge and size >= least), "4K")


@reader(QemuThreadsProbe)
def _qemu_threads(probe: QemuThreadsProbe, context: Context) -> Reading:
    where = "/proc/*/task/*"
    processes = context.processes
    if not processes:
        return _no_process(context, where)
    vcpus = {each.pid: each.vcpus(context.threads) for each in processes}
    troubles = tuple(f"{each.name}: {_NO_NAMES}" for each in processes if not vcpus[each.pid])
    all_vcpus = [thread for each in vcpus.values() for thread in each]
    shown: dict[str, Callable[[Thread], str]] = {
        "affinity": lambda thread: format_list(thread.allowed),
        "pinning": lambda thread: _pinning(thread, all_vcpus, context.cpus("iso")),
        "policy": lambda thread: thread.policy,
        "priority": lambda thread: str(thread.priority or 0),
    }
    watched = [
        thread
        for thread in context.threads
        if vcpus.get(thread.pid) and (thread in vcpus[thread.pid]) == (probe.which == "vcpu")
    ]
    values = tuple(
        Value(
            shown[probe.show](each), f"/proc/{each.pid}/task/{each.tid}", f"{each.name} {each.tid}"
        )
        for each in watched
    )
    return Reading(values, where, troubles)


def _pinning(thread: "Thread", vcpus: "list[Thread]", isolated: frozenset[int]) -> str:
    if len(thread.allowed) != 1:
        return f"may run on CPU {format_list(thread.allowed)}"
    if not thread.allowed <= isolated:
        return f"CPU {format_list(thread.allowed)}, which is not isolated"
    if any(thread.allowed & each.allowed for each in vcpus if each.tid != thread.tid):
        return f"shares CPU {format_list(thread.allowed)} with another vCPU"
    return "one isolated CPU"


@reader(PassthroughProbe)
def _passthrough(probe: PassthroughProbe, context: Context) -> Reading:
    del probe
    where = f"{_PROCESSES}, {_DOMAINS}/*.xml"
    handed = {
        option["host"]
        for process in context.processes
        for option in process.given("device")
        if option.get("driver") == "vfio-pci" and "host" in option
    }
    domains, troubles = _domains(context)
    for _, _, domain in domains:
        for address in domain.iterfind("./devices/hostdev[@type='pci']/source/address"):
            parts = [address.get(key, "0").removeprefix("0x") for key in _ADDRESS]
            handed.add(f"{parts[0]:0>4}:{parts[1]:0>2}:{parts[2]:0>2}.{parts[3]}")
    values = []
    for device in sorted(each for each in handed if _DEVICE.fullmatch(each)):
        full = device if device.count(":") == 2 else f"0000:{device}"
        path = f"/sys/bus/pci/devices/{full}/driver"
        driver = (context.root.link(path) or "no driver").rpartition("/")[2]
        values.append(Value(driver, path, full))
    reason = "no virtual machine is given a PCI device"
    return Reading(tuple(values), where, troubles, "not applicable", reason)


@reader(DomainProbe)
def _domain(probe: DomainProbe, context: Context) -> Reading:
    where = f"{_DOMAINS}/*.xml"
    domains, troubles = _domains(context)
    values = []
    for path, name, domain in domains:
        found = domain.findall(probe.path)
        values += [Value(_said(element, probe.attribute), path, name) for element in found] or [
            Value("not given", path, name)
        ]
    return Reading(tuple(values), where, troubles, "not applicable", _NO_DOMAIN)


def _said(element: Element, attribute: str) -> str:
    if attribute:
        return element.get(attribute, "not given")
    return (element.text or "").strip() or "given"


def _domains(context: Context) -> tuple[list[tuple[str, str, Element]], tuple[str, ...]]:
    """Return file, name and content of each domain, and what could not be read."""
    domains, troubles = [], []
    for path in context.root.glob(f"{_DOMAINS}/*.xml"):
        text = context.root.read(path)
        domain = None if text is None else _parsed(text)
        if domain is None or domain.tag != "domain":
            why = context.root.problem(path) or "is not a domain of libvirt"
            troubles.append(f"{path}: {why}")
        else:
            domains.append((path, domain.findtext("name", "?"), domain))
    return domains, tuple(troubles)


def _parsed(text: str) -> Element | None:
    """Return the root of an XML text; None if it is none or declares entities: libvirt does not."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        return None
    parser = XMLParser(target=TreeBuilder())  # noqa: S314 - without declarations nothing expands
    try:
        parser.feed(text)
        return parser.close()
    except (ParseError, ValueError):
        return None


@reader(StealProbe)
def _steal(probe: StealProbe, context: Context) -> Reading:
    del probe
    where = "/proc/stat"
    text = context.root.read(where)
    if text is None:
        return Reading((), where, (f"{where}: {context.root.problem(where)}",))
    values = []
    for cpu in sorted(context.cpus("iso")):
        row = re.search(rf"^cpu{cpu}((?: \d+)+)$", text, re.MULTILINE)
        fields = row[1].split() if row else []
        if len(fields) > _STEAL_FIELD:
            values.append(Value(fields[_STEAL_FIELD], where, f"CPU {cpu}"))
    return Reading(tuple(values), where, reason="tells nothing of the isolated CPUs")


def _of_processes(
    context: Context,
    file: str,
    texts: Callable[[QemuProcess], Iterable[str] | None],
    nothing: str,
) -> Reading:
    """Return what is found for each QEMU process; None stands for a file that cannot be read."""
    processes = context.processes
    if not processes:
        return _no_process(context, f"/proc/*/{file}")
    values, troubles = [], []
    for process in processes:
        path = f"/proc/{process.pid}/{file}"
        found = texts(process)
        if found is None:
            troubles.append(f"{path}: {context.root.problem(path) or 'does not tell'}")
        else:
            values += [Value(text, path, process.name) for text in found]
    return Reading(tuple(values), f"/proc/*/{file}", tuple(troubles), "not applicable", nothing)


def _no_process(context: Context, where: str) -> Reading:
    if not any(name.isdecimal() for name in context.root.names("/proc")):
        return Reading((), where, ("/proc: holds no processes that can be read",))
    return Reading((), where, empty="not applicable", reason=_NO_PROCESS)
