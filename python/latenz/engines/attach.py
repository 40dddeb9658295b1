"""The engine `attach`: a running program's own threads, measured as they are, cycle by cycle."""

import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from latenz.affinity import enterable_cpus, isolated_cpus
from latenz.attach.account import ACCOUNT_FILE, Account, Thread
from latenz.attach.calls import call_name
from latenz.attach.causes import priority_in_words, worst_causes
from latenz.attach.findings import Finding, Task, findings
from latenz.attach.surroundings import Gathered
from latenz.attach.targets import Target, find_target, find_unit
from latenz.engines.base import Engine
from latenz.errors import BadInput
from latenz.keeper import KeptProgram
from latenz.machine import measured_machine
from latenz.measuring.settings import EngineSettings
from latenz.model import SampleSet, WorstSample
from latenz.obstacle import Obstacle, missing_own_program
from latenz.programs import own_program
from latenz.settings import Duration

_PROGRAM = "latenz-attach"
_CAP_SYS_ADMIN, _CAP_PERFMON, _CAP_BPF = 21, 38, 39
_FIRST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel
_STARTED = "program"
_STARTING, _STARTING_S = 50, 0.2


class AttachSettings(EngineSettings):
    """Which running program is measured; `cpus` says nothing here, it runs where it runs."""

    engine: Literal["attach"]
    process: Annotated[str, Field(max_length=4096)] = ""
    """Number of a process or thread, or its name."""
    unit: Annotated[str, Field(max_length=255)] = ""
    """A service of systemd instead, such as "robot.service"."""
    command: tuple[str, ...] = ()
    """A program with its arguments instead, which is started and ended with the measurement."""
    trace: Annotated[str, Field(max_length=4096)] = ""
    """A recorded trace of the kernel instead of the running one; `process` is then the number of a
    thread in it, a name, or left out for every periodic thread."""
    thread: Annotated[str, Field(max_length=255)] = ""
    """Measure only threads whose names match, such as "rt*"; empty: all periodic ones."""
    begin: Annotated[str, Field(max_length=4096)] = ""
    """Where in the program a cycle begins: "PROGRAM:FUNCTION", "PROGRAM:FUNCTION%return" or
    "PROGRAM:PROVIDER:PROBE"; empty: with the thread's wake-up, or as the program marks it."""
    end: Annotated[str, Field(max_length=4096)] = ""
    """Where a cycle ends, written like `begin`; empty: when the thread falls asleep, or as the
    program marks it."""
    learning: Duration = 10_000_000_000
    """The longest time in which a period must show itself."""
    worst: int = Field(default=10, ge=0, le=100)
    """How many of the worst cycles of each thread to keep with all that happened in them."""

    @model_validator(mode="after")
    def _names_one(self) -> "AttachSettings":
        named = sum(map(bool, (self.process, self.unit, self.command)))
        if self.trace and (self.unit or self.command):
            raise ValueError("a trace has threads only; name one by process, or none")
        if self.trace and (self.begin or self.end):
            raise ValueError("a trace does not tell when a program comes to a place")
        if not self.trace and named != 1:
            raise ValueError("name what to measure: one of process, unit and command")
        return self

    @property
    def started(self) -> tuple[str, ...]:
        """The program that is started and ended with the measurement."""
        return self.command

    def target(self) -> Target:
        """Return the processes that are meant, which must run.

        Raises:
            BadInput: There are none, or several of that name.
        """
        if self.trace:
            return Target(self.process or Path(self.trace).stem, ())
        return find_unit(self.unit) if self.unit else find_target(self.process)


class Attach(Engine[AttachSettings]):
    """Runs `latenz-attach`, which finds the periodic threads and records into the run folder.

    A condition has one sample set for each periodic thread, from the time a cycle is due until it
    runs, with the columns of `latenz.model.CYCLE_COLUMNS` beside.
    """

    name = "attach"
    settings_type = AttachSettings
    measures = "cycles of a running program's own threads: due, woken, running, done"
    output_file = "attach.out"

    def __init__(self, settings: AttachSettings, task: Any) -> None:
        super().__init__(settings, task)
        self._target: Target | None = None
        self._started: KeptProgram | None = None
        self._announced: dict[int, str] = {}
        self._gathered = Gathered()
        self._seen: tuple[int, int] | None = None
        self._collected: Account | None = None
        self._isolated: frozenset[int] = frozenset()

    @classmethod
    def needed(cls) -> dict[str, Any]:
        """Return a process that surely runs: this one, or a target's agent."""
        stat = (measured_machine().content("/proc/self/stat") or b"").split()
        return {"process": stat[0].decode("ascii", "replace") if stat else "1"}

    @classmethod
    def obstacle(cls, settings: AttachSettings) -> Obstacle | None:
        """Return why running programs cannot be measured here, or None if they can."""
        obstacle = missing_own_program(_PROGRAM)
        if (settings.trace or settings.command) and not measured_machine().is_here:
            what = "on a target, attach measures what runs there"
            return Obstacle(what, "start the program there, and name it by process or unit")
        if settings.trace:
            if Path(settings.trace).is_file():
                return obstacle
            return Obstacle(f"there is no trace {settings.trace}", "name a recorded one")
        obstacle = obstacle or missing_rights()
        if obstacle or settings.command:
            return obstacle
        try:
            settings.target()
        except BadInput as mistake:
            return Obstacle(mistake.what, mistake.remedy)
        return None

    @classmethod
    def planned_ns(cls, settings: AttachSettings, duration_ns: int) -> int:  # noqa: ARG003
        """Return about how long it takes, finding the period included."""
        return duration_ns + cls.start_up_ns

    @classmethod
    def longest_ns(cls, settings: AttachSettings, duration_ns: int) -> int:
        """Return after how long it is ended if it does not end by itself."""
        return super().longest_ns(settings, duration_ns) + settings.learning

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        if self.settings.trace:
            return self._reading()
        target = self._found()
        only = [f"--threads={','.join(map(str, target.threads))}"] if target.threads else []
        named = [f"--thread-names={self.settings.thread}"] if self.settings.thread else []
        return [
            *own_program(_PROGRAM),
            f"--output={self.place}",
            f"--processes={','.join(map(str, target.processes))}",
            *only,
            *named,
            *([f"--begin={self.settings.begin}"] if self.settings.begin else []),
            *([f"--end={self.settings.end}"] if self.settings.end else []),
            f"--duration={self.task.duration_ns}",
            f"--learning={self.settings.learning}",
            f"--worst={self.settings.worst}",
        ]

    def _reading(self) -> list[str]:
        """Return the program with its arguments where it reads a recorded trace."""
        process, thread = self.settings.process, self.settings.thread
        only = [f"--threads={process}"] if process.isdecimal() else []
        name = thread or ("" if process.isdecimal() else process)
        return [
            *own_program(_PROGRAM),
            f"--output={self.folder}",
            f"--trace={Path(self.settings.trace).absolute()}",
            *only,
            *([f"--thread-names={name}"] if name else []),
            f"--worst={self.settings.worst}",
        ]

    def measured(self) -> frozenset[int]:
        """Return the CPUs that the program's threads are kept on, if they leave others free."""
        with suppress(BadInput):
            if self.settings.command or self.settings.trace:
                return frozenset()
            target = self._found()
            tasks = Task.read_all((pid, pid) for pid in target.processes)
            masks = [each.allowed for each in tasks.values()]
            theirs = frozenset(cpu for mask in masks if mask for cpu in mask)
            return theirs if theirs < enterable_cpus() else frozenset()
        return frozenset()

    def start(self) -> None:
        """Start the program if it is ours to start, and watch it."""
        if not self.settings.trace:
            self._isolated = frozenset(isolated_cpus())
        if self.settings.command:
            self._started = KeptProgram(
                list(self.settings.command),
                self.folder / f"{_STARTED}.out",
                self.folder / f"{_STARTED}.log",
                cpus=self.cpus,
            )
        super().start()

    @property
    def alive(self) -> bool:
        """Whether it still measures; on the way, threads that were found are announced."""
        self._look()
        return super().alive

    def stop(self) -> int:
        """End the measurement, look a last time, and end what was started."""
        status = super().stop()
        self._look()
        if self._started:
            self._started.stop()
        return status

    def maximum_ns(self) -> int | None:
        """Return the largest latency so far, as the program's account of the last second has it."""
        account = self._account()
        known = [each.largest_ns for each in account.recorded] if account else []
        return max((each for each in known if each is not None), default=None)

    def collect(self) -> list[SampleSet]:
        """Turn the recordings into sample sets, with what was learned of each thread.

        Raises:
            BadInput: Nothing was recorded; the program says why.
        """
        account = self._account()
        if account is None or not account.recorded:
            raise BadInput(self.last_words().removeprefix(f"{_PROGRAM}: "))
        self._collected = account
        found = []
        for thread in account.recorded:
            if thread.tid not in self._announced:
                continue
            sample_set = self.task.writer.finish(
                self._announced[thread.tid],
                tool_version=account.program_version,
                worst=tuple(_worst(story) for story in _latest(thread)),
                notes=(*_notes(account, thread), *self.notes),
                **_place(thread),
            )
            if sample_set is not None:
                found.append(sample_set)
        return found

    def account(self) -> dict[str, Any]:
        """Return the threads, why the worst cycles were late, and what was seen of the program."""
        account = self._collected
        if account is None:
            return {}
        recorded = account.recorded
        causes = worst_causes(recorded, self._gathered.told(recorded))
        return {
            "traces": [],
            "causes": causes,
            "trace_notes": [each["sentence"] for each in causes[:3]],
            "attach": {
                "program": self._found().name,
                "source": account.source,
                "lost": account.lost,
                "absent": list(account.absent),
                "notes": list(account.notes),
                "threads": [self._described(each) for each in recorded],
                "others": [
                    {
                        "tid": each.tid,
                        "comm": each.comm,
                        "wakes": each.wakes,
                        "period_ns": each.grid.period_ns if each.grid else None,
                    }
                    for each in account.threads
                    if not each.folder
                ],
                "findings": [each.to_json() for each in self._findings(recorded)],
            },
        }

    def _found(self) -> Target:
        if self._target is None:
            if self._started:
                self._target = _started_target(self._started, self.settings.command[0])
            else:
                self._target = self.settings.target()
        return self._target

    def _account(self) -> Account | None:
        try:
            return Account.of(self.folder)
        except BadInput:
            return None

    def _look(self) -> None:
        """Announce new threads, and keep what only a running program tells."""
        if not self.command:
            return
        with suppress(OSError):
            found = (self.folder / ACCOUNT_FILE).stat()
            if (found.st_mtime_ns, found.st_ino) == self._seen:
                return
            self._seen = (found.st_mtime_ns, found.st_ino)
            account = self._account()
            threads = account.recorded if account else ()
            if threads and not self.settings.trace:
                self._gathered.look(threads)
            for thread in threads:
                self._announce(thread)

    def _announce(self, thread: Thread) -> None:
        if thread.tid in self._announced:
            return
        elsewhere: dict[str, Any] = {"machine": None, "kernel": None, "bench": None}
        if not self.settings.trace:
            task = self._gathered.before.get(thread.tid)
            elsewhere = {"priority": (task.priority if task else None) or None}
        name = f"{self.task.metadata.name}/{thread.folder}"
        known = {"name": name, "tool": _PROGRAM, **_what(thread), **elsewhere}
        # What the program recorded into is where the set belongs.
        self.task.writer.begin(self.task.metadata.model_copy(update=known))
        self._announced[thread.tid] = name

    def _described(self, thread: Thread) -> dict[str, Any]:
        task = self._gathered.before.get(thread.tid)
        grid = thread.grid
        known = thread.model_dump(exclude={"worst", "grid", "sleeps", "calls"})
        return {
            **known,
            "set": self._announced.get(thread.tid),
            "period_ns": grid.period_ns if grid else None,
            "phase_ns": grid.phase_ns if grid else None,
            "due_from": source_in_words(thread),
            "scheduler": task.scheduler if task else "not known",
            "cpus_allowed": list(task.allowed or ()) if task else [],
            "calls": {call_name(number): n for number, n in sorted(thread.calls.items())},
        }

    def _findings(self, threads: Iterable[Thread]) -> list[Finding]:
        found = []
        for each in threads:
            before = self._gathered.before.get(each.tid)
            if before is not None:
                calls = {call_name(number): n for number, n in each.calls.items()}
                after = self._gathered.after.get(each.tid, before)
                found += findings(each, before, after, calls, self._isolated)
        return found


def missing_rights() -> Obstacle | None:
    """Return which right is missing that watching other programs needs."""
    machine = measured_machine()
    if "[confidentiality]" in _text("/sys/kernel/security/lockdown"):
        return Obstacle(
            "the kernel is locked down (confidentiality), which forbids BPF to read it",
            "boot with lockdown=integrity, or without lockdown",
        )
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", _text("/proc/self/status"), re.MULTILINE)
    capable = int(match[1], 16) if match else 0
    if not (
        capable >> _CAP_SYS_ADMIN & 1 or (capable >> _CAP_BPF & 1 and capable >> _CAP_PERFMON & 1)
    ):
        what = "other programs may not be watched: CAP_BPF and CAP_PERFMON are missing"
        if machine.is_here:
            return Obstacle(what, "run as root, as in: sudo ./latenz attach ...")
        return Obstacle(
            f"{what} on the target",
            "reach it as root: ssh://root@HOST, or ?sudo after the URL; or attach from the host of"
            " the container",
        )
    if machine.link_text("/proc/self/ns/pid") not in (None, _FIRST_PID_NAMESPACE):
        return Obstacle(
            "processes have other numbers here than the kernel's (a PID namespace of a container)",
            "attach from the container's host, or start the container with --pid=host",
        )
    return None


def source_in_words(thread: Thread) -> str:
    """Return what the due time of a thread's cycles is taken from."""
    grid = thread.grid
    if grid is None:
        return "not known"
    if grid.by == "deadline":
        return "the period of its SCHED_DEADLINE reservation"
    if grid.by == "mark":
        return "the wake-up before the mark that begins a cycle"
    name = call_name(grid.call)
    slept = f", asleep in {name}" if name else ""
    if grid.by == "timer":
        clock = f" on CLOCK_{grid.clock.upper()}"
        handler = f" ({grid.function})" if grid.function else ""
        return f"the expiry of its own timer{handler}{clock}{slept}"
    return f"its waking by {grid.waker_name} ({grid.waker}){slept}"


def _what(thread: Thread) -> dict[str, Any]:
    grid = thread.grid
    woken = grid is not None and grid.by == "event"
    exact = grid is not None and grid.is_exact
    marked = grid is not None and grid.by == "mark"
    due = "due by the wake-up before" if marked else "timer expiry due"
    return {
        "from_event": f"woken by {grid.waker_name}" if grid and woken else due,
        "to_event": "marked begin" if marked else "thread runs",
        "period_ns": grid.period_ns if grid and exact else None,
    }


def _place(thread: Thread) -> dict[str, Any]:
    """Return where a thread ran, as metadata."""
    if len(thread.ran_on) == 1:
        return {"cpu": next(iter(thread.ran_on))}
    return {"ran_on": thread.ran_on or None}


def _latest(thread: Thread) -> list[Any]:
    return sorted(thread.worst, key=lambda story: -story.latency_ns)


def _worst(story: Any) -> WorstSample:
    told = {
        "response_ns": story.response_ns,
        "execution_ns": story.run_ns,
        "ready_ns": story.ready_ns,
        "blocked_ns": story.blocked_ns,
        "timer_late_ns": story.timer_late_ns,
        "preemptions": story.preemptions,
        "page_faults": story.faults,
    }
    return WorstSample(t_ns=story.due_ns, latency_ns=story.latency_ns, context=told)


def _notes(account: Account, thread: Thread) -> tuple[str, ...]:
    notes = [f"due is {source_in_words(thread)}"]
    grid = thread.grid
    if grid is not None and not grid.is_exact:
        notes.append(
            f"the due times lie on no grid, about {grid.period_ns} ns apart: missed cycles cannot"
            " be told"
        )
    if unseen := thread.partial - thread.unended:
        notes.append(
            f"{unseen} cycles are partial, as the kernel did not report all of their"
            f" events: they are no samples, {thread.n} are"
        )
    if thread.unended:
        notes.append(
            f"{thread.unended} cycles are partial, as nothing marked their end: they are no"
            f" samples, {thread.n} are"
        )
    if thread.inferred:
        notes.append(f"of {thread.inferred} cycles the due time is inferred")
    if account.lost:
        notes.append(f"{account.lost} events found no room: cycles around them are partial")
    if account.status == "ended":
        notes.append("the program ended before the measurement")
    return (*notes, *account.notes)


def _started_target(program: KeptProgram, name: str) -> Target:
    """Return the process of a program that we started."""
    for _ in range(_STARTING):
        time.sleep(_STARTING_S)
        processes = tuple(sorted(program.processes()))
        if processes or not program.alive:
            break
    if not processes:
        raise BadInput("ended at once", name, "see what it printed in the run's folder")
    return Target(Path(name).name, processes)


def _text(path: str) -> str:
    return (measured_machine().content(path) or b"").decode("utf-8", "replace")


__all__ = ["Attach", "AttachSettings", "missing_rights", "priority_in_words", "source_in_words"]
