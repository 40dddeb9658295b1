"""Interrupts that one CPU sends another, and who sent them."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from latenz.settings import parse_cpu_list
from latenz.traces.occupancy import number

if TYPE_CHECKING:
    from latenz.traces.model import Event
    from latenz.traces.occupancy import Stretch

_LONGEST_WAY_NS = 1_000_000  # from sending to the handler, if the receiver has interrupts off
_NAMES = ("function call interrupt", "reschedule interrupt", "interrupt from another CPU")
_MASK = re.compile(r"[0-9a-f]{1,8}(?:,[0-9a-f]{8})+|[0-9a-f]{8,16}")


class _Sent(NamedTuple):
    t_ns: int
    by: str
    function: str


def is_interprocessor(stretch: "Stretch") -> bool:
    """Return whether an interrupt came from another CPU."""
    return stretch.name.startswith(_NAMES)


class Senders:
    """Who sent interrupts to which CPU.

    It is told by the events ipi_send_cpu and ipi_send_cpumask since Linux 6.4, and on Arm by
    ipi_raise.

    Args:
        events: In the order of their times.
    """

    def __init__(self, events: "Sequence[Event]") -> None:
        self._sent: dict[int, list[_Sent]] = defaultdict(list)
        self._shootdowns: dict[int, list[int]] = defaultdict(list)
        self.are_known = False
        """Were such events recorded at all?"""
        for each in events:
            if each.name in ("ipi_send_cpu", "ipi_send_cpumask", "ipi_raise"):
                self._take(each)
            elif each.name == "tlb_flush" and "remote shootdown" in _reason(each):
                self._shootdowns[each.cpu].append(each.t_ns)

    def named(self, cpu: int, stretch: "Stretch") -> str:
        """Return an interrupt's name with who sent it, if that is known."""
        sent = self._of(cpu, stretch)
        if sent is None:
            return stretch.name
        function = f" for {sent.function}" if sent.function else ""
        return f"{stretch.name} from {sent.by}{function}"

    def is_shootdown(self, cpu: int, stretch: "Stretch") -> bool:
        """Return whether it made a CPU forget translations of addresses."""
        sent = self._of(cpu, stretch)
        if sent is not None and "flush_tlb" in sent.function:
            return True
        times = self._shootdowns[cpu]
        return bisect_right(times, stretch.end_ns) > bisect_left(times, stretch.entered_ns)

    def _of(self, cpu: int, stretch: "Stretch") -> _Sent | None:
        sent = self._sent.get(cpu, [])
        place = bisect_right(sent, stretch.entered_ns, key=lambda each: each.t_ns) - 1
        if place < 0 or stretch.entered_ns - sent[place].t_ns > _LONGEST_WAY_NS:
            return None
        return sent[place]

    def _take(self, event: "Event") -> None:
        self.are_known = True
        function = str(event.fields.get("callback", "")).split("+")[0]
        function = "" if function in ("0", "0x0") else function
        by = f"{event.comm}-{event.pid} on CPU {event.cpu}"
        for cpu in _targets(event):
            self._sent[cpu].append(_Sent(event.t_ns, by, function))


def _reason(event: "Event") -> str:
    """Return why translations were flushed; recorded in binary it is a number, 1 if remote."""
    if number(event, "reason", -1) == 1:
        return "remote shootdown"
    return str(event.fields.get("text", event.fields.get("reason", ""))).lower()


def _targets(event: "Event") -> frozenset[int]:
    if event.name == "ipi_send_cpu":
        return frozenset({number(event, "cpu", -1)})
    told = str(event.fields.get("cpumask", event.fields.get("target_mask", ""))).split(" ")[0]
    if event.name == "ipi_raise" and _MASK.fullmatch(told):
        mask = int(told.replace(",", ""), 16)
        return frozenset(place for place in range(mask.bit_length()) if mask >> place & 1)
    try:
        return frozenset(parse_cpu_list(told)) if told else frozenset()
    except ValueError:
        return frozenset()
