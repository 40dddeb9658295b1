"""On the machine that the tests run on: really applied, seen by others, really reverted.

Only values of the running kernel are changed, for less than a second, and no file.
"""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from trees_at_random import never, quiet

from latenz.errors import BadInput
from latenz.system_calls import OwnSystemCalls
from latenz.tune.applying import apply, revert
from latenz.tune.catalogue import load
from latenz.tune.changes import AnyChange, ThreadChange, WriteChange, start_ticks
from latenz.tune.check import check
from latenz.tune.context import Context
from latenz.tune.cpus import format_list
from latenz.tune.places import Place
from latenz.tune.plan import Choice, plan
from latenz.tune.plan_show import is_intact, values
from latenz.tune.root import Root
from latenz.tune.transaction import STATE, Transaction, find

HERE = Path("/")
ENTRIES = (
    "host-irq-affinity",
    "host-workqueue-mask",
    "host-rt-throttling-off",
    "host-rcu-stall-suppress",
)
VALUES = {
    "/sys/devices/virtual/workqueue/cpumask": "1",
    "/proc/sys/kernel/sched_rt_runtime_us": "-1",
    "/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress": "1",
}

pytestmark = [
    pytest.mark.usefixtures("alone"),
    pytest.mark.skipif(
        os.geteuid() != 0 or (os.cpu_count() or 1) < 2,
        reason="changing the kernel's values takes root, isolating a CPU takes two of them",
    ),
]


def planned() -> list[AnyChange]:
    """Return the values of the kernel that isolating CPU 1 would change here."""
    context = Context.of(Root(HERE), "1", "host")
    found = plan(context, check(context, load()), Choice(only=ENTRIES))
    return [change for change in found.changes if isinstance(change, WriteChange)]


def text(path: str) -> str:
    return Path(path).read_text().strip()


def effective(path: str) -> str:
    """Return where an interrupt really goes; nothing for what is none."""
    file = Path(path).with_name("effective_affinity_list")
    return file.read_text().strip() if file.exists() else ""


def affinities() -> dict[str, str]:
    files = Path("/proc/irq").glob("*/smp_affinity_list")
    return {str(file): file.read_text().strip() for file in files}


@contextlib.contextmanager
def applied(changes: Sequence[AnyChange]) -> Iterator[Transaction]:
    """Apply on this machine for a moment; wait for others who do the same."""
    for _ in range(100):
        try:
            transaction = apply(Place(HERE), changes, "1", "host", never, quiet)
            break
        except BadInput as busy:
            if "at work" not in str(busy) and "are applied" not in str(busy):
                raise
            time.sleep(0.1)
    else:
        pytest.skip("tunings are applied on this machine; they are not touched")
    try:
        yield transaction
    finally:
        take_back()


def take_back() -> None:
    """Revert, and fail if that takes force."""
    try:
        revert(Place(HERE), False, never, quiet)
    except BadInput:
        revert(Place(HERE), True, never, quiet)
        raise


def test_values_are_changed_and_restored() -> None:
    changes = planned()
    if not changes:
        pytest.skip("this machine is tuned already")
    wanted = {path: value for path, value in VALUES.items() if Path(path).exists()}
    wanted = {path: wanted[path] for path in wanted if path in {each.what for each in changes}}
    before = {path: text(path) for path in wanted} | affinities()
    was_effective = {each.what: effective(each.what) for each in changes}
    had_folder = Path(STATE).parent.exists()
    with applied(changes) as transaction:
        steps = transaction.steps()
        assert {path: int(text(path), 0 if "sched" in path else 16) for path in wanted} == {
            path: int(value) for path, value in wanted.items()
        }
        if "/proc/sys/kernel/sched_rt_runtime_us" in wanted:
            said = subprocess.check_output(
                ["sysctl", "-n", "kernel.sched_rt_runtime_us"], text=True
            )
            assert said.strip() == "-1"
        moved = [
            step.change.what
            for step in steps
            if step.change.what.startswith("/proc/irq/") and step.state == "done"
        ]
        assert {path: text(path) for path in moved} == dict.fromkeys(moved, "0")
        for path in moved:  # an interrupt moves when it comes next
            assert effective(path) in ("0", was_effective[path])
        refused = [step for step in steps if step.state == "refused"]
        assert all(step.reason for step in refused)
        assert any(step.state == "done" for step in steps)
    assert {path: text(path) for path in before} == before
    assert Path(STATE).parent.exists() == had_folder
    assert not Path(STATE).exists()


def test_threads_get_their_cpus_and_policies_back() -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        start = start_ticks(OwnSystemCalls(), sleeper.pid)
        assert start is not None
        changes = [
            ThreadChange(tid=sleeper.pid, start=start, name="sleep", cpus=(0,)),
            ThreadChange(tid=sleeper.pid, start=start, name="sleep", policy=(os.SCHED_FIFO, 7)),
            ThreadChange(tid=sleeper.pid, start=start + 1, name="another", cpus=(0,)),
        ]
        cpus = os.sched_getaffinity(sleeper.pid)
        shown = [values(change.noted(OwnSystemCalls()), Root(HERE)) for change in changes[:2]]
        now = f"on CPUs {format_list(frozenset(cpus))}"
        assert shown == [(now, "on CPUs 0"), ("OTHER 0", "FIFO 7")]
        with applied(changes) as transaction:
            states = [(step.state, step.reason) for step in transaction.steps()]
            assert states == [("done", ""), ("done", ""), ("refused", "is no more")]
            assert os.sched_getaffinity(sleeper.pid) == {0}
            if chrt := shutil.which("chrt"):
                said = subprocess.check_output([chrt, "-p", str(sleeper.pid)], text=True)
                assert "SCHED_FIFO" in said
                assert said.split()[-1] == "7"
        assert os.sched_getaffinity(sleeper.pid) == cpus
        assert os.sched_getscheduler(sleeper.pid) == os.SCHED_OTHER
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_value_that_the_kernel_refuses_is_reported_and_no_failure() -> None:
    changes: list[AnyChange] = [
        WriteChange(path="/proc/sys/kernel/sched_rt_runtime_us", value="-7"),
        WriteChange(path="/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress", value="1"),
    ]
    before = {change.what: text(change.what) for change in changes}
    with applied(changes) as transaction:
        refused, done = transaction.steps()
        assert (refused.state, refused.reason) == ("refused", "Invalid argument (EINVAL)")
        assert done.state == "done"
    assert {path: text(path) for path in before} == before


def test_a_value_that_the_kernel_takes_and_does_not_heed_is_reported() -> None:
    """The kernel goes on with its clock, without a word, if it has none of that name."""
    path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    before = text(path)
    with applied([WriteChange(path=path, value="no-such-clock")]) as transaction:
        [step] = transaction.steps()
        assert (step.state, step.now) == ("refused", "as before")
        assert "did not heed it" in step.reason
        assert is_intact(transaction)
    assert text(path) == before


def test_what_a_killed_apply_changed_in_the_kernel_is_restored() -> None:
    path = "/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress"
    change = WriteChange(path=path, value="1")
    before = text(path)
    with applied([change]):
        pass
    child = os.fork()
    if child == 0:
        # stopped before its second change, and killed: as far as the first it came
        with contextlib.suppress(BaseException):
            stops = iter([False])
            apply(Place(HERE), [change, change], "1", "host", lambda: next(stops), quiet)
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    transaction = find(Place(HERE))
    if transaction is None:
        pytest.skip("somebody else changes this machine right now")
    try:
        assert transaction.phase == "applying"
        assert text(path) != before or before == "1"
    finally:
        take_back()
    assert text(path) == before
