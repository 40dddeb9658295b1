"""What a plan changes at run time: values of the kernel, services, threads, partitions of CPUs."""

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from latenz.machine import measured_machine
from latenz.tune.changes import (
    RestartChange,
    ServiceChange,
    ThreadChange,
    WriteChange,
    chosen_word,
    interrupt_name,
    start_ticks,
)
from latenz.tune.context import Context
from latenz.tune.cpus import parse_list, parse_mask
from latenz.tune.lasting import ByHand, Draft
from latenz.tune.model import Affinity, Entry, Partition, Policy, Restart, Service, Write
from latenz.tune.partition import add_partition_now
from latenz.tune.root import Root
from latenz.tune.services import unit_states
from latenz.tune.targets import targets
from latenz.tune.tasks import Thread

_IRQ = re.compile(r"/proc/irq/(\d+)/")
_POLICIES = {"other": os.SCHED_OTHER, "fifo": os.SCHED_FIFO, "rr": os.SCHED_RR}


def add_now(entries: Sequence[Entry], context: Context, draft: Draft) -> None:
    """Add what entries change at run time, as far as it is not so already."""
    for entry in entries:
        for action in entry.now:
            if isinstance(action, Write):
                _add_writes(entry, action, context, draft)
            elif isinstance(action, Service):
                _add_stop(entry, action, context.root, draft)
            elif isinstance(action, Partition):
                add_partition_now(entry, context, draft)
            elif isinstance(action, Restart):
                _add_restart(entry, action, context.root, draft)
            else:
                _add_threads(entry, action, context, draft)


def _add_writes(entry: Entry, action: Write, context: Context, draft: Draft) -> None:
    root = context.root
    found = targets(action, context)
    if not found:
        draft.note(f"{entry.id}: nothing to write to, there is no {action.write}")
    for path, value in found:
        old = root.read_bytes(path)
        if old is None:
            draft.note(f"{entry.id}: {path} cannot be read ({root.problem(path)}), nor given back")
        elif root.running and not root.permissions(path) & 0o222:
            draft.note(f"{entry.id}: {path} cannot be written while the kernel runs")
        elif not is_as_wanted(path, chosen_word(old).decode("utf-8", "replace"), value):
            irq = _IRQ.match(path)
            name = interrupt_name(root, irq[1]) if irq else None
            draft.changes.append(
                WriteChange(path=path, value=value, interrupt=name, entries=(entry.id,))
            )


def is_as_wanted(path: str, found: str, wanted: str) -> bool:
    """Return whether a value of the kernel needs no change: sets of CPUs are compared as sets.

    An interrupt that may go to some of the wanted CPUs only is left where somebody put it.
    """
    if found.split() == wanted.split():
        return True
    name = path.rpartition("/")[2]
    if "affinity" not in name and "cpu" not in name:
        return False
    try:
        parse = parse_list if name.endswith(("_list", "_cpulist")) else parse_mask
        one, other = parse(found), parse(wanted)
    except ValueError:
        return False
    return one == other or bool(one and one < other and _IRQ.match(path))


def _add_stop(entry: Entry, action: Service, root: Root, draft: Draft) -> None:
    for unit, state, _ in unit_states(root, action.service) or ():
        if "active" not in state:
            continue
        if root.running and root.is_folder("/run/systemd/system"):
            draft.changes.append(ServiceChange(unit=unit, entries=(entry.id,)))
        elif root.running:
            draft.by_hand.append(
                ByHand((entry.id,), entry.title, f"stop {unit}: no systemd runs here")
            )
        else:
            draft.note(f"{entry.id}: {unit} is stopped on the machine itself only")


def _add_restart(entry: Entry, action: Restart, root: Root, draft: Draft) -> None:
    for unit, state, _ in unit_states(root, action.restart) or ():
        if "active" not in state:
            continue
        if root.running and root.is_folder("/run/systemd/system"):
            draft.changes.append(RestartChange(unit=unit, entries=(entry.id,)))
        else:
            draft.note(f"{entry.id}: start {unit} again, so that it reads its settings")


def _add_threads(entry: Entry, action: Affinity | Policy, context: Context, draft: Draft) -> None:
    if not context.root.running:
        draft.note(f"{entry.id}: threads are changed on the machine itself only")
        return
    calls = measured_machine().system_calls()
    for thread in context.threads:
        start = start_ticks(calls, thread.tid)
        if start is None:
            continue
        change = ThreadChange(
            tid=thread.tid, start=start, name=thread.name, entries=(entry.id,)
        ).noted(calls)
        if isinstance(action, Affinity):
            cpus = parse_list(context.expand(action.cpus)) & context.online
            if cpus and thread.allowed != cpus and _is_meant(thread, action):
                draft.changes.append(change.model_copy(update={"cpus": tuple(sorted(cpus))}))
        elif fnmatchcase(thread.name, action.threads):
            policy = (_POLICIES[action.policy], action.priority)
            draft.changes.append(change.model_copy(update={"policy": policy}))


def _is_meant(thread: Thread, action: Affinity) -> bool:
    kind = "kernel" if thread.kernel else "user"
    named = fnmatchcase(thread.name, action.affinity)
    return named and action.of in ("any", kind) and thread.movable == "yes"
