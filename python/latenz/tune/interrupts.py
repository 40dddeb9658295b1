"""Which interrupts reach which CPUs: where they may go, where they go, and what can be moved.

The publication's Code 8 (`pamuk2024`) shows affinities alone; here the effective affinity and the
counts decide, and what cannot be moved says why.
"""

import re
from dataclasses import dataclass
from typing import Literal

from latenz.settings import parse_cpu_list
from latenz.tune.root import Root

Movable = Literal["yes", "no", "maybe"]

_ROW = re.compile(r" *([A-Za-z0-9_]+): *(.*)")
_PER_CPU: dict[str, tuple[str, tuple[str, ...]]] = {
    "LOC": ("the CPU's own timer: tick, timers", ("cmdline-nohz-full", "cmdline-rcu-nocbs")),
    "RES": ("another CPU woke a thread here", ("cmdline-isolcpus", "host-no-user-tasks-on-iso")),
    "CAL": (
        "another CPU had a function called here",
        ("cmdline-rcu-normal-after-boot", "cmdline-kvmclock-sync"),
    ),
    "TLB": ("another CPU unmapped memory", ("host-numa-balancing-off", "host-thp", "host-ksm-off")),
    "IWI": ("work that an interrupt left for later", ("cmdline-rcu-nocbs",)),
    "NMI": ("not maskable: watchdog, profiling", ("cmdline-nmi-watchdog",)),
    "PMI": ("a performance counter overflowed", ("cmdline-nmi-watchdog",)),
    "MCP": ("the poll for corrected hardware errors", ("host-mce-poll-off",)),
    "MCE": ("a hardware error", ()),
    "TRM": ("the processor is too hot", ("host-thermald-off",)),
    "THR": ("a threshold of hardware errors", ()),
    "DFR": ("a deferred hardware error", ()),
    "RTR": ("a read of the timer was repeated", ()),
    "SPU": ("spurious", ()),
    "PIN": ("a virtual machine's interrupt, posted", ()),
    "NPI": ("a nested virtual machine's interrupt, posted", ()),
    "PIW": ("a halted virtual CPU was woken by a posted interrupt", ()),
    "HYP": ("the hypervisor called", ()),
    "HRE": ("Hyper-V told of an event", ()),
    "HVS": ("Hyper-V's timer", ()),
}
"""Interrupts that each CPU has for itself: what they are for, and the entries that make fewer."""
_OF_ALL_CPUS = ("ERR", "MIS")  # one number, for the machine
_IPI = re.compile(r"IPI\d+")
_PRIVATE = re.compile(r"GIC\S{0,80} {1,80}(?:1[6-9]|2\d|3[01]) ")
"""Of Arm's interrupt controllers, 16 to 31 are each core's own: one number, one counter a CPU."""
_MANAGED_NAME = re.compile(
    r"nvme\d{1,9}q\d|-(?:input|output|req)\.\d|mlx5_comp|virtio\d{1,9}-.{0,80}queue"
)
_MANAGED = "IRQD_AFFINITY_MANAGED"
_BOUND = ("IRQD_PER_CPU", "IRQD_NO_BALANCING")


@dataclass(frozen=True)
class Interrupt:
    """An interrupt, as a row of /proc/interrupts and the files of /proc/irq tell of it.

    Attributes:
        id: Its number, or the kernel's letters for those that every CPU has for itself.
        name: Device or purpose.
        counts: How often it was handled by each CPU since boot.
        affinity: Where it may go; None if that is no matter of affinity or cannot be read.
        effective: Where the interrupt controller sends it; None as for `affinity`.
        movable: Whether its affinity can be changed; `maybe` if only writing it would tell.
        why: Why it can or cannot be moved, and what helps instead.
        entries: Ids of the tunings that keep it away.
    """

    id: str
    name: str
    counts: dict[int, int]
    affinity: frozenset[int] | None
    effective: frozenset[int] | None
    movable: Movable
    why: str
    entries: tuple[str, ...]

    def reaches(self, cpus: frozenset[int]) -> bool:
        """Return whether it can be handled by one of these CPUs as things are set now."""
        if self.effective is not None:
            return bool(self.effective & cpus)
        if self.affinity is not None:
            return bool(self.affinity & cpus)
        return any(self.counts.get(cpu, 0) for cpu in cpus)


def read_interrupts(root: Root) -> tuple[Interrupt, ...]:
    """Return all interrupts in the order of /proc/interrupts; none if that cannot be read."""
    lines = (root.read("/proc/interrupts") or "").splitlines()
    if not lines:
        return ()
    cpus = [int(word[3:]) for word in lines[0].split() if re.fullmatch(r"CPU\d{1,5}", word)]
    rows = (_ROW.fullmatch(line) for line in lines[1:])
    return tuple(
        _interrupt(root, match[1], match[2], cpus)
        for match in rows
        if match and match[1] not in _OF_ALL_CPUS
    )


def since(before: tuple[Interrupt, ...], after: tuple[Interrupt, ...]) -> dict[str, dict[int, int]]:
    """Return how often each interrupt was handled by each CPU between two readings."""
    old = {each.id: each.counts for each in before}
    return {
        each.id: {
            cpu: count - old.get(each.id, {}).get(cpu, 0) for cpu, count in each.counts.items()
        }
        for each in after
    }


def _interrupt(root: Root, id_: str, rest: str, cpus: list[int]) -> Interrupt:
    words = rest.split()
    numbers = 0
    while numbers < min(len(words), len(cpus)) and words[numbers].isdecimal():
        numbers += 1
    counts = dict(zip(cpus, map(int, words[:numbers]), strict=False))
    name = " ".join(words[numbers:])
    if not id_.isdecimal():
        purpose, entries = _PER_CPU.get(id_, (name or "unknown", ()))
        if _IPI.fullmatch(id_):
            purpose = f"between CPUs: {name}"
        why = f"every CPU's own ({purpose})"
        return Interrupt(id_, name, counts, None, None, "no", why, entries)
    if _is_each_cpus_own(root, id_, name, counts):
        of_timer = _PER_CPU["LOC"][1] if "timer" in name else ()
        return Interrupt(id_, name, counts, None, None, "no", "every CPU's own", of_timer)
    affinity = _cpus(root, id_, "smp_affinity_list")
    effective = _cpus(root, id_, "effective_affinity_list")
    movable, why = _movable(root, id_, name, affinity)
    entries = ("cmdline-managed-irq",) if "managed" in why else ("host-irq-affinity",)
    return Interrupt(id_, name, counts, affinity, effective, movable, why, entries)


def _is_each_cpus_own(root: Root, number: str, name: str, counts: dict[int, int]) -> bool:
    """Return whether a numbered interrupt is one of each CPU, as timers are on Arm and RISC-V.

    It is sent nowhere: its effective affinity is empty although several CPUs handled it, and what
    stands in `smp_affinity` means nothing.
    """
    if _PRIVATE.match(name):
        return True
    effective = root.read(f"/proc/irq/{number}/effective_affinity_list")
    return effective is not None and not effective.strip() and sum(map(bool, counts.values())) > 1


def _movable(
    root: Root, number: str, name: str, affinity: frozenset[int] | None
) -> tuple[Movable, str]:
    flags = root.read(f"/sys/kernel/debug/irq/irqs/{number}") or ""
    if _MANAGED in flags:
        return "no", "managed: the kernel spreads the device's queues; isolcpus=managed_irq steers"
    if any(flag in flags for flag in _BOUND):
        return "no", "bound to its CPU by its driver or controller"
    if affinity is None:
        return "no", "has no affinity (not in use, or no file in /proc/irq)"
    if flags:
        return "yes", "its affinity can be written"
    if _MANAGED_NAME.search(name):
        return "maybe", "may be managed: a queue of a device"
    return "maybe", ""


def _cpus(root: Root, number: str, file: str) -> frozenset[int] | None:
    text = (root.read(f"/proc/irq/{number}/{file}") or "").strip()
    try:
        return frozenset(parse_cpu_list(text)) if text else None
    except ValueError:
        return None
