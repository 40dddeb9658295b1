"""What becomes of guests that do what they may not do, or do nothing any more: health tables."""

from typing import TYPE_CHECKING, Literal, get_args

from latenz.errors import shown
from latenz.system.fields import BadField, check_whole
from latenz.system.processors import slots_of

if TYPE_CHECKING:
    from latenz.system.hosting import Partition
    from latenz.system.model import System

OnFault = Literal["stop", "restart", "report"]
"""What becomes of a guest's fault: it is stopped, restarted, or told of the failed access."""
MOST_TIMED_RESTARTS = 16
"""The hypervisor remembers the times of so many."""
_MOST_RESTARTS = 2**32 - 1


def check_health(partition: "Partition") -> None:
    """Tell what is wrong with a partition's row of the health table, if anything.

    Raises:
        BadField: A reaction, a count or a time is none, or they contradict each other.
    """
    for name in ("on_fault", "on_watchdog"):
        wanted = getattr(partition, name)
        if wanted not in get_args(OnFault) and not (name == "on_watchdog" and wanted is None):
            what = f"{shown(wanted)} is not a valid on_fault"
            raise BadField(partition, (name,), what, " or ".join(get_args(OnFault)))
    check_whole(partition, "restarts", 0, _MOST_RESTARTS, "")
    check_whole(partition, "restart_window_ns", 0)
    check_whole(partition, "watchdog_ns", 0)
    if partition.restart_window_ns and partition.restarts > MOST_TIMED_RESTARTS:
        what = f"of {partition.restarts} restarts within a time not all are remembered"
        remedy = f"write at most {MOST_TIMED_RESTARTS}, or leave the window out"
        raise BadField(partition, ("restarts",), what, remedy)
    if partition.restart_window_ns and "restart" not in (partition.on_fault, partition.on_watchdog):
        what = "nothing restarts the guest"
        raise BadField(partition, ("restart_window_ns",), what, 'write on_fault = "restart"')
    if partition.on_watchdog and not partition.watchdog_ns:
        what = "there is no watchdog"
        raise BadField(partition, ("on_watchdog",), what, 'give its time, such as watchdog = "1 s"')


def check_watchdog(system: "System", at: int) -> None:
    """Tell why the hypervisor could not look at a partition's watchdog in time, if it could not.

    Args:
        system: Whose partition it is.
        at: Its place among those that are hosted.

    Raises:
        BadField: The partition has no slot, or its slots begin further apart than the watchdog.
    """
    partition = system.hosted[at]
    if not partition.watchdog_ns:
        return
    place = ("hosted", at, "watchdog_ns")
    starts_ns, begin_ns = [], 0
    for slot in slots_of(system, partition.cpu):
        if slot.partition == partition.name:
            starts_ns.append(begin_ns)
        begin_ns += slot.length_ns
    if not starts_ns:
        what = f"a watchdog is looked at when slots begin, and {partition.name!r} has none"
        raise BadField(system, place, what, "leave it out")
    behind_ns = [*starts_ns[1:], starts_ns[0] + begin_ns]
    apart_ns = max(after - before for before, after in zip(starts_ns, behind_ns, strict=True))
    if partition.watchdog_ns < apart_ns:
        what = f"{partition.watchdog_ns} ns is shorter than from one of its slots to the next"
        raise BadField(system, place, what, f"write at least {apart_ns} ns")
