"""Sections of known length in a trace: the windows between events, to the nanosecond."""

import random
import re
from dataclasses import dataclass, field

import pytest
from traced_kernel import Kernel

from latenz.linux_bound.evidence import linux_bound, observations_of

LONG = 60_000
STAMP = re.compile(r" (\d+)\.(\d{9}): ")


@dataclass
class WithSections(Kernel):
    """A kernel whose longest sections by far are of one kind, and stand where they are known."""

    kind: str = "masked"
    sections: list[tuple[int, int]] = field(default_factory=list)
    """The first and the last event of each, as places in `lines`."""

    def section(self) -> None:
        if self.rng.random() > 0.1:
            self.work(self.rng.randint(50, 3000))
            return
        self.brief()
        if self.kind == "counted":
            self.disable("_raw_spin_lock")
        first = len(self.lines)
        self.mask("_raw_spin_lock_irq")
        self.work(LONG)
        self.sections.append((first, len(self.lines)))
        self.unmask("_raw_spin_unlock_irq")
        if self.kind == "counted":
            self.enable("_raw_spin_unlock")
        self.brief()
        self.work(LONG // 2)

    def brief(self) -> None:
        """Print events close by: a window is from the one before to the one after."""
        self.mask("_raw_spin_lock_irq")
        self.unmask("_raw_spin_unlock_irq")


def bound_of(tmp_path, kind):
    kernel = WithSections(random.Random(5), busy=True, kind=kind)
    path = tmp_path / "trace.txt"
    path.write_text(kernel.run(60))
    [observation] = found = observations_of([path], "rt")
    return kernel, linux_bound(found, claimed="rt"), observation.windows.trace


def time_of(line: str) -> int:
    matched = STAMP.search(line)
    assert matched
    return int(matched[1]) * 10**9 + int(matched[2])


def test_a_masked_section_is_from_the_event_before_to_the_event_after(tmp_path):
    kernel, found, trace = bound_of(tmp_path, "masked")
    times = [time_of(line) for line in kernel.lines]
    inside = [(first, last) for first, last in kernel.sections if last + 1 < len(times)]
    assert found.terms.blocking in {times[last + 1] - times[first - 1] for first, last in inside}
    assert trace.inner_ns["blocking"] in {times[last] - times[first] for first, last in inside}
    assert trace.inner_ns["blocking"] > LONG


@pytest.mark.parametrize("kind", ["masked", "counted"])
def test_a_section_ends_at_its_point(kind, tmp_path):
    _, found, _ = bound_of(tmp_path, kind)
    assert LONG < found.terms.blocking < LONG + 2000


@dataclass
class WithEntries(Kernel):
    """A kernel that is long in user mode, and long masks interrupts when it comes from there."""

    sections: list[tuple[int, int]] = field(default_factory=list)

    def section(self) -> None:
        self.work(self.rng.randint(50, 3000))

    def other_thread(self) -> None:
        self.work(3 * LONG)
        super().other_thread()

    def enter(self) -> None:
        self.user = False
        self.masked = True
        self.changed()
        self.work(self.rng.randint(20, 80))
        first = len(self.lines)
        self.place("irq_disable", "enter_from_user_mode", "do_syscall_64")
        self.work(LONG)
        self.sections.append((first, len(self.lines)))
        self.unmask("syscall_enter_from_user_mode", "do_syscall_64")
        self.mask("_raw_spin_lock_irq")
        self.unmask("_raw_spin_unlock_irq")


def entries(tmp_path, preemptible: bool):
    kernel = WithEntries(random.Random(6), busy=True, preemptible=preemptible)
    path = tmp_path / "trace.txt"
    path.write_text(kernel.run(40))
    mode = "rt" if preemptible else "voluntary"
    [observation] = found = observations_of([path], mode)
    return kernel, linux_bound(found, claimed=mode), observation.windows.trace


def test_a_section_from_user_mode_begins_the_longest_way_in_before_its_first_event(tmp_path):
    kernel, found, trace = entries(tmp_path, True)
    times = [time_of(line) for line in kernel.lines]
    inside = [(first, last) for first, last in kernel.sections if last + 1 < len(times)]
    assert found.terms.blocking in {
        times[last + 1] - times[first] + trace.entry_ns for first, last in inside
    }


def test_user_mode_is_in_no_window_of_a_kernel_that_preempts_at_points(tmp_path):
    _, found, _ = entries(tmp_path, False)
    assert LONG < found.terms.blocking < 2 * LONG
