"""The processor's structure, for choosing the CPUs to isolate: caches, siblings, kinds of cores."""

import re
from dataclasses import dataclass
from typing import Literal

from latenz.settings import parse_cpu_list
from latenz.tune.root import Root

Kind = Literal["performance", "efficiency", ""]
_CPUS = "/sys/devices/system/cpu"
_SIZE = re.compile(r"(\d+)([KMG])")
_SHIFTS = {"K": 10, "M": 20, "G": 30}


@dataclass(frozen=True)
class Cache:
    """A cache.

    Attributes:
        level: 1 to 4.
        kind: Data, Instruction or Unified.
        bytes: Its size; None if that is not told.
        cpus: The CPUs that share it.
    """

    level: int
    kind: str
    bytes: int | None
    cpus: frozenset[int]


@dataclass(frozen=True)
class Cpu:
    """A logical CPU.

    Attributes:
        number: As the kernel counts.
        package: Number of its package (socket).
        node: Number of its NUMA node; None if there are none.
        siblings: The CPUs of its core, itself among them.
        kind: Of its core, on processors with unlike ones.
    """

    number: int
    package: int
    node: int | None
    siblings: frozenset[int]
    kind: Kind


@dataclass(frozen=True)
class Topology:
    """A machine's CPUs and caches.

    Attributes:
        cpus: Those online, by number.
        caches: Each once, largest level first.
        isolated: Those isolated at boot.
        boot_cpu: The one that started the machine, which keeps time and cannot be `nohz_full`.
    """

    cpus: tuple[Cpu, ...]
    caches: tuple[Cache, ...]
    isolated: frozenset[int]
    boot_cpu: int

    @property
    def nodes(self) -> dict[int | None, list[Cpu]]:
        """The CPUs of each NUMA node."""
        found: dict[int | None, list[Cpu]] = {}
        for cpu in self.cpus:
            found.setdefault(cpu.node, []).append(cpu)
        return found

    @property
    def cores(self) -> tuple[frozenset[int], ...]:
        """The CPUs of each core, by the number of its first."""
        return tuple(sorted({cpu.siblings for cpu in self.cpus}, key=min))

    def shared_with(self, cpus: frozenset[int], level: int) -> frozenset[int]:
        """Return the other CPUs that share a cache of a level with some of these."""
        sharing = [each.cpus for each in self.caches if each.level == level and each.cpus & cpus]
        return frozenset().union(*sharing) - cpus


def read_topology(root: Root) -> Topology:
    """Return what /sys tells; CPUs without a topology stand alone."""
    online = _list(root, f"{_CPUS}/online") or frozenset({0})
    performance = _list(root, "/sys/devices/cpu_core/cpus")
    efficiency = _list(root, "/sys/devices/cpu_atom/cpus")
    nodes = {
        cpu: int(name[4:])
        for name in root.names("/sys/devices/system/node")
        if re.fullmatch(r"node\d{1,5}", name)
        for cpu in _list(root, f"/sys/devices/system/node/{name}/cpulist")
    }
    slowest, fastest = _capacities(root, online)

    def kind(cpu: int) -> Kind:
        if cpu in performance or cpu in fastest:
            return "performance"
        return "efficiency" if cpu in efficiency or cpu in slowest else ""

    cpus = tuple(
        Cpu(
            number,
            _number(root, f"{_CPUS}/cpu{number}/topology/physical_package_id"),
            nodes.get(number),
            _list(root, f"{_CPUS}/cpu{number}/topology/thread_siblings_list") & online
            or frozenset({number}),
            kind(number),
        )
        for number in sorted(online)
    )
    isolated = _list(root, f"{_CPUS}/isolated")
    return Topology(cpus, _caches(root, online), isolated, min(online))


def advice(topology: Topology) -> list[str]:
    """Return what to mind when choosing the CPUs to isolate, one sentence each."""
    told = [f"leave CPU {topology.boot_cpu} to the system: it keeps the time"]
    shared = [core for core in topology.cores if len(core) > 1]
    if shared:
        told.append(
            "isolate whole cores, or switch SMT off: CPUs "
            + " and ".join(str(cpu) for cpu in sorted(shared[-1]))
            + " share one core's pipeline and caches"
        )
    slow = [cpu.number for cpu in topology.cpus if cpu.kind == "efficiency"]
    if slow:
        told.append(f"isolate cores of one kind; CPUs {_joined(slow)} are efficiency cores")
    if len([node for node in topology.nodes if node is not None]) > 1:
        told.append("isolate CPUs of one NUMA node: that of the device and of the memory")
    last = max((each.level for each in topology.caches), default=0)
    groups = {each.cpus for each in topology.caches if each.level == last}
    if last >= 2 and len(groups) > 1:
        told.append(
            f"CPUs that share no L{last} cache disturb each other least: there are"
            f" {len(groups)} such groups"
        )
    elif last >= 2:
        told.append(f"all CPUs share one L{last} cache: neighbours can evict what is in it")
    return told


def _joined(cpus: list[int]) -> str:
    from latenz.settings import format_cpu_list

    return format_cpu_list(tuple(cpus))


def _capacities(root: Root, online: frozenset[int]) -> tuple[frozenset[int], frozenset[int]]:
    """Return the slowest and the fastest CPUs, of Arm's unlike cores; none if all are alike."""
    found = {cpu: _number(root, f"{_CPUS}/cpu{cpu}/cpu_capacity") for cpu in online}
    low, high = min(found.values()), max(found.values())
    if low == high:
        return frozenset(), frozenset()
    return (
        frozenset(cpu for cpu, capacity in found.items() if capacity == low),
        frozenset(cpu for cpu, capacity in found.items() if capacity == high),
    )


def _caches(root: Root, online: frozenset[int]) -> tuple[Cache, ...]:
    found: dict[tuple[int, str, frozenset[int]], int | None] = {}
    for cpu in sorted(online):
        for name in root.names(f"{_CPUS}/cpu{cpu}/cache"):
            folder = f"{_CPUS}/cpu{cpu}/cache/{name}"
            sharing = _list(root, f"{folder}/shared_cpu_list") & online
            kind = (root.read(f"{folder}/type") or "").strip()
            if name.startswith("index") and sharing and kind:
                size = _SIZE.fullmatch((root.read(f"{folder}/size") or "").strip())
                key = (_number(root, f"{folder}/level"), kind, sharing)
                found[key] = int(size[1]) << _SHIFTS[size[2]] if size else None
    ordered = sorted(found, key=lambda key: (-key[0], min(key[2]), key[1]))
    return tuple(Cache(*key[:2], found[key], key[2]) for key in ordered)


def _list(root: Root, path: str) -> frozenset[int]:
    try:
        return frozenset(parse_cpu_list((root.read(path) or "").strip()))
    except ValueError:
        return frozenset()


def _number(root: Root, path: str) -> int:
    text = (root.read(path) or "").strip()
    return int(text) if re.fullmatch(r"\d{1,9}", text) else 0
