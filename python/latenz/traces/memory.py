"""What memory and the clock frequency cost a thread that runs: faults, reclaim, a slow CPU."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from latenz.traces.occupancy import number

if TYPE_CHECKING:
    from latenz.traces.model import Event

_FAULTS = ("page_fault_user", "page_fault_kernel")
_RECLAIMS = ("mm_vmscan_direct_reclaim", "mm_vmscan_memcg_reclaim", "mm_compaction")


class Memory:
    """Page faults, reclaim and clock frequencies in a stretch of a trace.

    Args:
        events: In the order of their times.
    """

    def __init__(self, events: "Sequence[Event]") -> None:
        self._faults: dict[int, list[int]] = defaultdict(list)
        self._reclaims: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._khz: dict[int, list[tuple[int, int]]] = defaultdict(list)
        begun: dict[int, int] = {}
        for each in events:
            if each.name in _FAULTS:
                self._faults[each.pid].append(each.t_ns)
            elif each.name == "cpu_frequency":
                cpu = number(each, "cpu_id", each.cpu)
                self._khz[cpu].append((each.t_ns, number(each, "state", 0)))
            elif each.name.startswith(_RECLAIMS) and each.name.endswith("_begin"):
                begun[each.pid] = each.t_ns
            elif each.name.startswith(_RECLAIMS) and each.name.endswith("_end"):
                start_ns = begun.pop(each.pid, each.t_ns)
                self._reclaims[each.pid].append((start_ns, each.t_ns))
        for pid, start_ns in begun.items():
            self._reclaims[pid].append((start_ns, 2**63))

    def faults(self, pid: int, start_ns: int, end_ns: int) -> int:
        """Return how many page faults a thread had in a window."""
        times = self._faults.get(pid, [])
        return bisect_right(times, end_ns) - bisect_left(times, start_ns)

    def reclaims(self, pid: int, start_ns: int, end_ns: int) -> bool:
        """Return whether a thread freed memory all through a window."""
        spans = self._reclaims.get(pid, ())
        return any(first <= start_ns and end_ns <= last for first, last in spans)

    def slow(self, cpu: int, t_ns: int) -> str:
        """Return how slow a CPU was then, if less than half its fastest; empty: it was not."""
        rows = self._khz.get(cpu, [])
        place = bisect_right(rows, t_ns, key=lambda row: row[0]) - 1
        fastest = max((khz for _, khz in rows), default=0)
        if place < 0 or 2 * rows[place][1] >= fastest:
            return ""
        return f"at {rows[place][1] // 1000} MHz of {fastest // 1000} MHz"
