"""The bench of a target: a Linux machine at the other end of a link, measured as if from there."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from latenz import environment
from latenz.benches.base import Assignment, Bench, TraceKind, Watch
from latenz.benches.host import Host
from latenz.errors import BadInput
from latenz.machine import measuring
from latenz.model import TimeBase
from latenz.obstacle import Obstacle
from latenz.remote import Target, TargetUrl, opened

if TYPE_CHECKING:
    from latenz.measuring.condition import Condition


class TargetBench(Host):
    """Measures on a target, with the engines and loads of the agent and those installed there.

    Args:
        at: Where the target is, or the target itself, which whoever opened it closes.
        name: What sample sets call it.
    """

    traces = False

    def __init__(self, at: TargetUrl | Target, name: str = Host.name) -> None:
        self.name = name  # type: ignore[misc]  # each target has its own
        self.url = at.url if isinstance(at, Target) else at
        self._given = at if isinstance(at, Target) else None
        self._target = self._given

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Keep an agent on the target; nothing of it is left at the end.

        Raises:
            BadInput: The target cannot be reached or measured.
        """
        if self._given:
            yield
            return
        try:
            with opened(self.url) as self._target:
                yield
        finally:
            self._target = None

    @property
    def target(self) -> Target:
        """The target, while it is opened."""
        if self._target is None:
            raise BadInput("is not opened", self.url.text)
        return self._target

    def trace_obstacle(self, kind: TraceKind) -> Obstacle | None:
        """Return that the kernel of a target is not traced."""
        what = "the kernel of a target is not traced over a link"
        if kind == "causes":
            return Obstacle(what)
        return Obstacle(what, "record there with trace-cmd, and give trace.dat to bound --linux")

    def obstacle(self, condition: "Condition") -> Obstacle | None:
        """Return why a condition cannot be measured on the target, or None if it can."""
        with measuring(self.target):
            return super().obstacle(condition)

    def describe(self) -> dict[str, Any]:
        """Return kernel, processor, clocks and memory of the target, and what reaches it."""
        target = self.target
        with measuring(target):
            described = super().describe()
        hello = target.link.hello
        return {
            **described,
            "target": {
                "url": self.url.text,
                "agent": hello.get("version"),
                "is_root": target.is_root(),
                "samples_kept_in": hello.get("kept_in"),
                "clock": target.clock_offset(),
            },
        }

    def time_base(self) -> TimeBase:
        """Return silicon, unless the target says of itself that QEMU emulates it."""
        return TimeBase.VIRTUAL if environment.is_qemu() else TimeBase.SILICON

    def measure(self, assignment: Assignment, watch: Watch) -> dict[str, Any]:
        """Measure on the target under load, store the sample sets, and return an account."""
        target = self.target
        target.given_up = lambda: watch.stopped
        began_s = time.monotonic()
        try:
            with measuring(target):
                account = super().measure(assignment, watch)
        except BadInput as mistake:
            account = {"state": "failed", "reason": str(mistake)}
        finally:
            target.given_up = lambda: False
        if target.lost:
            account |= {"state": "failed", "reason": target.lost}
        if watch.stopped:
            account["state"] = "interrupted"
        took = target.account(time.monotonic() - began_s)
        notes = [*account.get("notes", ()), *target.notes(took)]
        return {**account, "notes": notes, "link": took}


def bench_on(target: Target, name: str) -> Bench:
    """Return what measures on a target that is open what an experiment wants of a bench."""
    if name != Host.name:
        return Elsewhere(name)
    return TargetBench(target)


class Elsewhere(Bench):
    """What cannot be measured now: a bench of this machine beside a target, or one out of reach.

    Args:
        name: Of the bench or target.
        why: Why not; empty: it is a bench of this machine, and a target is measured.
    """

    stacks = ()
    engines = ()
    loads = ()

    def __init__(self, name: str, why: str = "") -> None:
        self.name = name  # type: ignore[misc]  # it stands for many
        self._why = why

    def obstacle(self, condition: "Condition") -> Obstacle | None:  # noqa: ARG002
        """Return why it cannot be measured."""
        return Obstacle(
            self._why
            or f"it runs on the bench {self.name}; on a target runs what has the bench {Host.name}"
        )

    def describe(self) -> dict[str, Any]:
        """Return nothing: it is not measured."""
        return {}

    def planned_ns(self, condition: "Condition") -> int:  # noqa: ARG002
        """Return 0: nothing is measured."""
        return 0

    def measure(self, assignment: Assignment, watch: Watch) -> dict[str, Any]:  # noqa: ARG002
        """Measure nothing."""
        return {"state": "failed", "reason": str(self.obstacle(assignment.condition))}
