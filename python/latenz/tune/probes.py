"""Probes: how the values that an entry judges are read. They change nothing.

Each reader takes a probe and a context and gives a `Reading`. A reading without values says what
that means: a file that is not there tells nothing, a list of offending threads that is empty is
good news.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from latenz.tune import outputs
from latenz.tune.context import NOT_ALL_THREADS, Context, partitioned_cpus
from latenz.tune.cpus import format_list
from latenz.tune.model import (
    Absent,
    CmdlineProbe,
    ConfigProbe,
    CpusProbe,
    FileProbe,
    FlagsProbe,
    FolderProbe,
    IdleProbe,
    IrqsProbe,
    LinkProbe,
    ManualProbe,
    PartitionProbe,
    Probe,
    ServiceProbe,
    SpreadProbe,
    State,
    TasksProbe,
    TextProbe,
)
from latenz.tune.root import ABSENT, Unreadable
from latenz.tune.services import unit_states
from latenz.unpacking import Damaged, unpack

if TYPE_CHECKING:
    from latenz.tune.tasks import Thread

_LONGEST_TEXT = 2000
_FIRST_COUNTS = ("isolcpus", "nohz_full")
"""Of a parameter that is given several times the last one counts, but of these the first one:
kernel/sched/isolation.c refuses another one that differs."""
_LARGEST_CONFIG = 4 << 20


@dataclass(frozen=True)
class Value:
    """Something that was found.

    Attributes:
        text: What, without the white space around it.
        where: The file.
        label: Whose it is, such as a thread's name; empty where the file tells.
        mask: Whether a set of CPUs stands there as a mask, not as a list.
        shown: How to show it, where that is not the text.
    """

    text: str
    where: str
    label: str = ""
    mask: bool = False
    shown: str = ""


@dataclass(frozen=True)
class Reading:
    """What a probe found.

    Attributes:
        values: In the order of their places.
        where: Where it looked.
        troubles: What could not be read, and why.
        empty: What it means that there is no value.
        reason: Why.
    """

    values: tuple[Value, ...]
    where: str
    troubles: tuple[str, ...] = ()
    empty: State = "unknown"
    reason: str = ""


Reader = Callable[[Any, Context], Reading]
READERS: dict[type, Reader] = {}
"""By the class of the probe; other modules add theirs."""


def read(probe: Probe, context: Context) -> Reading:
    """Return what a probe finds.

    Raises:
        NotKnown: The probe depends on CPUs or a release that are not known.
    """
    return READERS[type(probe)](probe, context)


def reader(kind: type) -> Callable[[Reader], Reader]:
    """Make a function the reader of a class of probes."""

    def register(reads: Reader) -> Reader:
        READERS[kind] = reads
        return reads

    return register


@reader(FileProbe)
def _file(probe: FileProbe, context: Context) -> Reading:
    def values(path: str, text: str) -> Iterable[Value]:
        return [Value(found, path) for found in _found(probe.regex, text)]

    return _of_files(probe.path, context, probe.if_absent, values)


@reader(CpusProbe)
def _cpus(probe: CpusProbe, context: Context) -> Reading:
    def values(path: str, text: str) -> Iterable[Value]:
        mask = probe.format == "mask"
        return [Value(found, path, mask=mask) for found in _found(probe.regex, text)]

    reading = _of_files(probe.path, context, probe.if_absent, values)
    if not probe.union or not reading.values:
        return reading
    listed = [each.text for each in reading.values if each.text not in ("", "(null)")]
    if not listed:
        return replace(reading, values=(), empty="wrong", reason="no CPU is listed")
    return replace(reading, values=(Value(",".join(listed), reading.where),))


def _found(regex: str, text: str) -> list[str]:
    """Return what the group of an expression matches; without one, the whole text."""
    matches = [match[1] for match in re.finditer(regex, text, re.MULTILINE)] if regex else [text]
    return [match.strip()[:_LONGEST_TEXT] for match in matches]


@reader(SpreadProbe)
def _spread(probe: SpreadProbe, context: Context) -> Reading:
    readings = []
    for cpu in sorted(context.cpus("iso")):
        paths = tuple(path.replace("{iso_cpu}", str(cpu)) for path in probe.path)
        reading = _of_files(paths, context, probe.if_absent, lambda at, text: [Value(text, at)])
        numbers = [int(value.text) for value in reading.values if value.text.strip().isdecimal()]
        if len(numbers) == len(reading.values) and numbers:
            label = f"CPU {cpu}: {min(numbers)} to {max(numbers)}"
            spread = Value(str(max(numbers) - min(numbers)), reading.where, label)
            reading = Reading((spread,), reading.where, reading.troubles)
        readings.append(reading)
    return _joined(readings)


@reader(FolderProbe)
def _folder(probe: FolderProbe, context: Context) -> Reading:
    found = []
    patterns = [each for path in probe.path for each in context.paths(path)]
    folders = [at for each in patterns for at in context.root.glob(each)]
    for folder in folders:
        names = context.root.names(folder)
        found += [Value(name, folder) for name in names if fnmatchcase(name, probe.names)]
    where = ", ".join(patterns)
    if folders or _has_top(context, patterns):
        return _nothing_means(tuple(found), where, probe.if_absent, "wrong", "there is none")
    return Reading((), where, reason=ABSENT)


@reader(LinkProbe)
def _link(probe: LinkProbe, context: Context) -> Reading:
    patterns = [each for path in probe.path for each in context.paths(path)]
    found = []
    for path in (at for each in patterns for at in context.root.glob(each)):
        target = context.root.link(path)
        if target is not None:
            found.append(Value(target.rstrip("/").rpartition("/")[2], path))
    where = ", ".join(patterns)
    absent = probe.if_absent if _has_top(context, patterns) else None
    return _nothing_means(tuple(found), where, absent, "unknown", "there is no such link")


@reader(CmdlineProbe)
def _cmdline(probe: CmdlineProbe, context: Context) -> Reading:
    where = "/proc/cmdline"
    if context.parameters is None:
        trouble = f"{where}: {context.root.problem(where)}"
        return Reading((), where, (trouble,))
    name = probe.parameter.replace("-", "_")
    given = [
        Value(probe.same.get(known, value), where, shown=f"{known}={value}" if value else known)
        for known, value in context.parameters
        if known == name or known in probe.same
    ]
    values = tuple(given[:1] if name in _FIRST_COUNTS else given[-1:])
    if probe.optional:
        reason = f"{probe.parameter} is not given: {probe.optional}"
        return Reading(values, where, empty="ok", reason=reason)
    return Reading(values, where, empty="wrong", reason=f"{probe.parameter} is not given")


@reader(PartitionProbe)
def _partition(probe: PartitionProbe, context: Context) -> Reading:
    del probe
    where = context.expand("/{groups}/**/cpuset.cpus.partition")
    if not context.root.is_folder("/sys"):
        return Reading((), where, reason=ABSENT)
    cpus = partitioned_cpus(context.root)
    values = (Value(format_list(cpus), where),) if cpus else ()
    return Reading(values, where, empty="wrong", reason="no cpuset partition isolates a CPU")


@reader(FlagsProbe)
def _flags(probe: FlagsProbe, context: Context) -> Reading:
    del probe
    where = "/proc/cpuinfo"
    text = context.root.read(where)
    if text is None:
        return Reading((), where, (f"{where}: {context.root.problem(where)}",))
    each = re.findall(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    if not each:
        return Reading((), where, reason="names no flags")
    common = set.intersection(*(set(flags.split()) for flags in each))
    return Reading((Value(" ".join(sorted(common)), where),), where)


@reader(ServiceProbe)
def _service(probe: ServiceProbe, context: Context) -> Reading:
    values = []
    troubles: list[str] = []
    for unit in probe.units:
        found = unit_states(context.root, unit, context.running)
        if found is None:
            troubles.append("neither processes nor services can be seen")
            break
        values += [Value(state, at, name) for name, state, at in found]
    if context.threads and not context.sees_all_threads:
        troubles.append(f"/proc: {NOT_ALL_THREADS}")
    where = "/sys/fs/cgroup, /etc/systemd/system, /proc/*/comm"
    return Reading(tuple(values), where, tuple(troubles), "wrong", "none is active or enabled")


@reader(TasksProbe)
def _tasks(probe: TasksProbe, context: Context) -> Reading:
    where = "/proc/*/task/*"
    if not context.threads:
        return Reading((), where, ("/proc: holds no threads that can be read",))
    isolated = context.cpus("iso") if probe.on_iso or probe.only_iso else frozenset()
    values = []
    for each in context.threads:
        if (
            not _is_asked_for(each, probe)
            or (probe.on_iso and each.allowed.isdisjoint(isolated))
            or (probe.only_iso and not each.allowed <= isolated)
        ):
            continue
        shown = {
            "affinity": format_list(each.allowed),
            "policy": each.policy,
            "priority": str(each.priority or 0),
            "name": each.name,
        }
        at = f"/proc/{each.pid}/task/{each.tid}"
        label = "" if probe.show == "name" else f"{each.name} ({each.tid})"
        values.append(Value(shown[probe.show], at, label))
    troubles = () if context.sees_all_threads else (f"/proc: {NOT_ALL_THREADS}",)
    reason = "there is no such thread"
    return Reading(tuple(values), where, troubles, empty="ok", reason=reason)


def _is_asked_for(thread: "Thread", probe: TasksProbe) -> bool:
    return (
        _matches(thread.name, probe.names)
        and not _matches(thread.name, probe.except_names)
        and (probe.of == "any" or thread.kernel == (probe.of == "kernel"))
        and (probe.bound is None or (thread.movable == "no") == probe.bound)
        and (not probe.policies or thread.policy in probe.policies)
        and thread.policy not in probe.except_policies
    )


@reader(IrqsProbe)
def _irqs(probe: IrqsProbe, context: Context) -> Reading:
    where = "/proc/irq/*/effective_affinity_list"
    values = []
    for each in context.interrupts:
        cpus = each.effective if each.effective is not None else each.affinity
        if cpus is not None and _matches(each.name, probe.names):
            file = "smp" if each.effective is None else "effective"
            at = f"/proc/irq/{each.id}/{file}_affinity_list"
            values.append(Value(format_list(cpus), at, f"{each.id} ({each.name})"))
    if not context.interrupts:
        return Reading(
            (), where, (f"/proc/interrupts: {context.root.problem('/proc/interrupts')}",)
        )
    if not values and not context.root.names("/proc/irq"):
        return Reading((), where, ("/proc/irq: cannot be read",))
    return Reading(tuple(values), where, empty="ok", reason="no interrupt can be steered")


@reader(IdleProbe)
def _idle(probe: IdleProbe, context: Context) -> Reading:
    del probe
    cpu_folder = "/sys/devices/system/cpu"
    where = f"{cpu_folder}/cpu*/cpuidle/state*"
    if not context.root.names(cpu_folder):
        return Reading((), where, (f"{cpu_folder}: {ABSENT}",))
    values = []
    for cpu in sorted(context.cpus("iso")):
        for state in context.root.glob(f"{cpu_folder}/cpu{cpu}/cpuidle/state*"):
            latency = (context.root.read(f"{state}/latency") or "").strip()
            if (context.root.read(f"{state}/disable") or "0").strip() == "0":
                name = (context.root.read(f"{state}/name") or "?").strip()
                values.append(Value(latency, state, f"CPU {cpu} {name}"))
    return Reading(tuple(values), where, empty="ok", reason="no idle state can be entered")


@reader(ConfigProbe)
def _config(probe: ConfigProbe, context: Context) -> Reading:
    text, where = _config_text(context)
    if text is None and probe.if_absent:
        return Reading((), where, empty=probe.if_absent.state, reason=probe.if_absent.reason)
    if text is None:
        return Reading((), where, (f"{where}: cannot be read",))
    match = re.search(rf'^{probe.option}="?([^"\n]*)', text, re.MULTILINE)
    return Reading((Value(match[1] if match else "n", where, probe.option),), where)


def _config_text(context: Context) -> tuple[str | None, str]:
    packed = context.root.read_bytes("/proc/config.gz")
    if packed is not None:
        with suppress(Damaged):
            return unpack(packed, _LARGEST_CONFIG).decode("ascii", "replace"), "/proc/config.gz"
    where = context.expand("/boot/config-{release}")
    return context.root.read(where), where


@reader(TextProbe)
def _text(probe: TextProbe, context: Context) -> Reading:
    title = outputs.title(probe.name)
    try:
        text = outputs.read(context.root, probe.name)
    except outputs.NotTold as reason:
        return Reading((), title, (f"{title}: {reason}",))
    values = tuple(Value(each, title) for each in _found(probe.regex, text))
    return Reading(values, title, empty="wrong", reason="tells of no such thing")


@reader(ManualProbe)
def _manual(probe: ManualProbe, context: Context) -> Reading:
    del probe, context
    return Reading((), "a person must look", reason="no program can read this")


def _of_files(
    paths: tuple[str, ...],
    context: Context,
    if_absent: Absent | None,
    values: Callable[[str, str], Iterable[Value]],
) -> Reading:
    """Return the values in all files that the patterns stand for."""
    patterns = [each for path in paths for each in context.paths(path)]
    found: list[Value] = []
    troubles = []
    was_read = False
    for path in (at for each in patterns for at in context.root.glob(each)):
        try:
            text = context.root.content(path).decode("utf-8", "replace")
        except Unreadable as reason:
            if str(reason) != ABSENT:  # it may have gone since, and some say so on being read
                troubles.append(f"{path}: {reason}")
            continue
        was_read = True
        found += values(path, text)
    absent = if_absent if _has_top(context, patterns) else None
    otherwise: tuple[State, str] = ("unknown", ABSENT)
    if was_read:
        otherwise = ("wrong", "is not in the file")
    reading = _nothing_means(tuple(found), ", ".join(patterns), absent, *otherwise)
    return Reading(reading.values, reading.where, tuple(troubles), reading.empty, reading.reason)


def _nothing_means(
    values: tuple[Value, ...], where: str, absent: Absent | None, state: State, reason: str
) -> Reading:
    if absent is not None:
        return Reading(values, where, empty=absent.state, reason=absent.reason)
    return Reading(values, where, empty=state, reason=reason)


def _has_top(context: Context, patterns: Iterable[str]) -> bool:
    """Return whether the folder of the first level is there: else a file's absence says nothing."""
    return all(context.root.is_folder("/" + pattern.split("/")[1]) for pattern in patterns)


def _joined(readings: list[Reading]) -> Reading:
    first = readings[0]
    return Reading(
        tuple(value for each in readings for value in each.values),
        ", ".join(each.where for each in readings),
        tuple(trouble for each in readings for trouble in each.troubles),
        first.empty,
        first.reason,
    )


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
