"""Why something cannot be done on this machine, and what changes that."""

import errno
import os
from dataclasses import dataclass

from latenz.affinity import enterable_cpus
from latenz.errors import BadInput
from latenz.machine import measured_machine
from latenz.programs import own_program
from latenz.refusal import Rights, why_refused
from latenz.settings import format_cpu_list


@dataclass(frozen=True)
class Obstacle:
    """Why something cannot be done on this machine.

    Attributes:
        reason: What is missing, as a clause.
        fix: The command that changes it; empty if none can.
    """

    reason: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.reason} (fix: {self.fix})" if self.fix else self.reason


def missing_program(program: str, fix: str) -> Obstacle | None:
    """Return an obstacle if a program is not on the PATH."""
    found = measured_machine().find_program(program)
    return None if found else Obstacle(f"{program} is not installed", fix)


def missing_own_program(program: str) -> Obstacle | None:
    """Return an obstacle if a native program of ours has not been built."""
    try:
        own_program(program)
    except BadInput as mistake:
        return Obstacle(f"{program} {mistake.what}", mistake.remedy)
    return None


def forbidden_cpus(cpus: tuple[int, ...]) -> Obstacle | None:
    """Return an obstacle if this process cannot enter all of the CPUs."""
    enterable = enterable_cpus()
    if set(cpus) <= enterable:
        return None
    outside = format_cpu_list(tuple(set(cpus) - enterable))
    others = format_cpu_list(tuple(enterable))
    return Obstacle(
        f"CPU {outside} cannot be entered (absent, offline or outside of the cpuset); {others} can"
    )


def forbidden_priority(policy: int, priority: int) -> Obstacle | None:
    """Return an obstacle if this process may not take a real-time priority.

    It is tried, because many things can forbid it.
    """
    code = measured_machine().priority_error(policy, priority)
    if code == 0:
        return None
    if code != errno.EPERM:
        return Obstacle(f"real-time priority {priority} is refused ({os.strerror(code)})")
    reason, fix = why_refused(Rights.read(), priority)
    return Obstacle(f"real-time priority {priority} is refused: {reason}", fix)


def own_real_time_obstacle(
    program: str, cpus: tuple[int, ...], priority: int | None
) -> Obstacle | None:
    """Return an obstacle if a native program of ours cannot measure as it is asked to.

    Args:
        program: Its name.
        cpus: Where it is to run; none: anywhere.
        priority: Of its real-time threads; None: it has none.
    """
    obstacle = missing_own_program(program) or forbidden_cpus(cpus)
    if obstacle or priority is None:
        return obstacle
    return forbidden_priority(os.SCHED_FIFO, priority)
