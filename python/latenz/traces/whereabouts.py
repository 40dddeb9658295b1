"""Where the thread of a virtual CPU was: in its guest, in the kernel, or in user space."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from latenz.traces.model import Event

_NESTED = ("kvm_nested_vmexit", "kvm_nested_vmexit_inject", "kvm_nested_intr_vmexit")
_NESTED_ENTRIES = ("kvm_nested_vmenter", "kvm_nested_vmrun")


class Segment(NamedTuple):
    """Where the thread was, from an event of KVM on."""

    start_ns: int
    kind: str  # "guest", "exit" in the kernel, or "user" space
    reason: str
    entered_ns: int
    is_nested: bool


class Whereabouts:
    """When a virtual CPU's thread was in its guest, and else for which exit out of it.

    Args:
        events: All of a stretch of the host's trace, in the order of their times.
        pid: The thread.
    """

    def __init__(self, events: "Sequence[Event]", pid: int) -> None:
        self._segments: list[Segment] = []
        for event in events:
            if event.pid == pid and event.name.startswith("kvm_"):
                self._take(event)
        self._starts = [each.start_ns for each in self._segments]

    def _take(self, event: "Event") -> None:
        before = self._segments[-1] if self._segments else None
        if event.name == "kvm_exit":
            reason = str(event.fields.get("reason", "unknown"))
            self._add(Segment(event.t_ns, "exit", reason, event.t_ns, False), "guest")
        elif event.name == "kvm_entry":
            self._add(Segment(event.t_ns, "guest", "", event.t_ns, False), "exit")
        elif event.name == "kvm_userspace_exit":
            told = before or Segment(event.t_ns, "exit", "unknown", event.t_ns, False)
            self._add(told._replace(start_ns=event.t_ns, kind="user"), "exit")
        elif event.name in (*_NESTED, *_NESTED_ENTRIES) and before and before.kind != "guest":
            place = len(self._segments) - 1
            while place >= 0 and self._segments[place].entered_ns == before.entered_ns:
                if self._segments[place].is_nested:
                    break  # so are those before it
                self._segments[place] = self._segments[place]._replace(is_nested=True)
                place -= 1

    def _add(self, segment: Segment, kind_before: str) -> None:
        if not self._segments:  # the first event tells where the thread had been until then
            began = Segment(-(2**63), kind_before, "unknown", segment.start_ns, False)
            self._segments.append(began)
        self._segments.append(segment)

    def between(self, start_ns: int, end_ns: int) -> list[tuple[int, int, Segment]]:
        """Return where it was in a window, in order and without gaps: from, until, where.

        Of a thread without any events of KVM it is taken that it was in its guest.
        """
        if not self._segments:
            return [(start_ns, end_ns, Segment(start_ns, "guest", "", start_ns, False))]
        found = []
        place = max(0, bisect_right(self._starts, start_ns) - 1)
        while place < len(self._segments) and self._starts[place] < end_ns:
            after = self._starts[place + 1] if place + 1 < len(self._starts) else end_ns
            first, last = max(start_ns, self._starts[place]), min(end_ns, after)
            if last > first:
                found.append((first, last, self._segments[place]))
            place += 1
        return found

    def at(self, t_ns: int) -> Segment:
        """Return where it was right before a moment."""
        return self.between(t_ns - 1, t_ns)[0][2]
