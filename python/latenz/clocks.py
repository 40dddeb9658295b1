"""What becomes of a machine's clocks while something is measured.

CLOCK_MONOTONIC, by which latencies are measured, stands still while the machine is suspended;
CLOCK_REALTIME is set by people and programs.
"""

import time
from dataclasses import dataclass

from latenz.durations import format_duration
from latenz.machine import measured_machine

_LONGEST_READING_NS = 200_000
_MOST_TRIES = 50
_LEAST_TOLD_NS = 1_000_000


@dataclass(frozen=True)
class ClockOffsets:
    """How far the two other clocks are ahead of CLOCK_MONOTONIC at one moment.

    Attributes:
        boot_ns: CLOCK_BOOTTIME, which goes on while the machine is suspended.
        real_ns: CLOCK_REALTIME.
    """

    boot_ns: int
    real_ns: int

    @classmethod
    def read(cls) -> "ClockOffsets":
        """Read all clocks as close to one another as it gets."""
        machine = measured_machine()
        for _ in range(_MOST_TRIES):
            before_ns, boot_ns, real_ns = machine.clocks()
            if not machine.is_here or time.monotonic_ns() - before_ns <= _LONGEST_READING_NS:
                break  # a target reads them closely by itself
        return cls(boot_ns - before_ns, real_ns - before_ns)


def notes_between(before: ClockOffsets, after: ClockOffsets) -> tuple[str, ...]:
    """Return what happened to the clocks from one reading to a later one.

    What steps forth and back in between is not seen.
    """
    asleep_ns = after.boot_ns - before.boot_ns
    suspended_ns = asleep_ns if asleep_ns >= _LEAST_TOLD_NS else 0
    # The time of day goes on in a suspended machine, too.
    step_ns = after.real_ns - before.real_ns - suspended_ns
    stepped = abs(step_ns) >= _LEAST_TOLD_NS
    return clock_notes(suspended_ns, int(stepped), step_ns if stepped else 0)


def clock_notes(suspended_ns: int, steps: int, stepped_ns: int) -> tuple[str, ...]:
    """Return what a reader of latencies must know of the clocks.

    Args:
        suspended_ns: How long the machine was suspended.
        steps: How often the time of day was set.
        stepped_ns: By how much in all.
    """
    notes = []
    if suspended_ns:
        lasted = format_duration(suspended_ns)
        notes.append(f"the machine was suspended for {lasted}, in which no time was counted")
    if steps:
        times = "" if steps == 1 else f" {steps} times"
        forth = format_duration(abs(stepped_ns))
        sign = "+" if stepped_ns >= 0 else "-"
        notes.append(f"the time of day was set{times} meanwhile, by {sign}{forth} in all")
    return tuple(notes)
