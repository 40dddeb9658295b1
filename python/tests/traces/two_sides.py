"""Traces of a guest and of its host, of one small world that this file plays by itself.

A real-time thread of a guest with one CPU wakes up by its timer every millisecond. Its virtual CPU
is a thread on CPU 1 of a host, halted while the guest is idle; CPU 0 of the host is busy with
something else. In one cycle something is planted that makes the thread late, by far the longest.
What Latenz is to find is known from how it was made: nothing of Latenz is used here.
"""

import json
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hostile import NAMES, Hostile, event_format, fields, number, option, page

CYCLES, WORST_CYCLE, CYCLE_NS = 60, 30, 1_000_000
GUEST_ID, HOST_ID = 0x1234567, 0xFEDCBA987
VCPU = ("CPU 0/KVM", 2001, 120)
RT = ("rt", 50, 9)
WORKER = ("worker", 71, 120)
URGENT = ("urgent", 3001, 0)
QEMU = ("qemu-main", 2000, 120)
_IDLE = ("swapper", 0, 120)
_BEGIN_NS = 2_000_000_000_000

Thread = tuple[str, int, int]
Values = dict[str, int | str]
Order = Literal["little", "big"]

_SWITCH = [("prev_comm", 16), ("prev_pid", 4), ("prev_prio", 4), ("prev_state", 8)]
_SWITCH += [("next_comm", 16), ("next_pid", 4), ("next_prio", 4)]
FIELDS: dict[str, list[tuple[str, int]]] = {
    "sched_switch": _SWITCH,
    "sched_waking": [("comm", 16), ("pid", 4), ("prio", 4), ("target_cpu", 4)],
    "local_timer_entry": [("vector", 4)],
    "local_timer_exit": [("vector", 4)],
    "irq_handler_entry": [("irq", 4)],
    "irq_handler_exit": [("irq", 4), ("ret", 4)],
    "hrtimer_start": [("hrtimer", 8), ("function", 8), ("expires", 8), ("softexpires", 8)],
    "hrtimer_expire_entry": [("hrtimer", 8), ("now", 8), ("function", 8)],
    "hrtimer_expire_exit": [("hrtimer", 8)],
    "cpu_idle": [("state", 4), ("cpu_id", 4)],
    "kvm_entry": [("vcpu_id", 4)],
    "kvm_exit": [("exit_reason", 4), ("isa", 4), ("vcpu_id", 4)],
    "kvm_userspace_exit": [("reason", 4), ("errno", 4)],
    "kvm_nested_vmexit": [("exit_reason", 4)],
    "kvm_write_tsc_offset": [("vcpu_id", 4), ("previous_tsc_offset", 8), ("next_tsc_offset", 8)],
}
_TEXT = {
    "sched_switch": "prev_comm={prev_comm} prev_pid={prev_pid} prev_prio={prev_prio} "
    "prev_state={prev_state} ==> next_comm={next_comm} next_pid={next_pid} next_prio={next_prio}",
    "sched_waking": "comm={comm} pid={pid} prio={prio} target_cpu={target_cpu:03}",
    "hrtimer_start": "hrtimer={hrtimer:016x} function=hrtimer_wakeup expires={expires} "
    "softexpires={expires} mode=ABS",
    "hrtimer_expire_entry": "hrtimer={hrtimer:016x} function=hrtimer_wakeup now={now}",
    "kvm_entry": "vcpu {vcpu_id}, rip 0x1000",
    "kvm_exit": "vcpu {vcpu_id} reason {exit_reason} rip 0x1000 info1 0x0 info2 0x0 "
    "intr_info 0x0 error_code 0x0",
    "kvm_userspace_exit": "reason KVM_EXIT_IO ({reason})",
    "kvm_nested_vmexit": "rip: 0x1000 reason: {exit_reason}",
}
_REASONS = {"EXTERNAL_INTERRUPT": 1, "HLT": 12, "IO_INSTRUCTION": 30, "VMLAUNCH": 20}


@dataclass
class Event:
    t_ns: int
    cpu: int
    thread: Thread
    name: str
    values: Values


@dataclass
class Side:
    """The tracer of one machine, with who runs on its CPUs."""

    events: list[Event] = field(default_factory=list)
    running: dict[int, Thread] = field(default_factory=dict)

    def add(self, t_ns: int, cpu: int, name: str, **values: int | str) -> None:
        self.events.append(Event(t_ns, cpu, self.running[cpu], name, values))

    def switch(self, t_ns: int, cpu: int, to: Thread, state: str = "S") -> None:
        comm, pid, prio = self.running[cpu]
        self.add(
            t_ns,
            cpu,
            "sched_switch",
            prev_comm=comm,
            prev_pid=pid,
            prev_prio=prio,
            prev_state="R" if pid == 0 else state,
            next_comm=to[0],
            next_pid=to[1],
            next_prio=to[2],
        )
        self.running[cpu] = to

    def wake(self, t_ns: int, cpu: int, whom: Thread, target: int) -> None:
        self.add(
            t_ns, cpu, "sched_waking", comm=whom[0], pid=whom[1], prio=whom[2], target_cpu=target
        )

    def timer(self, t_ns: int, cpu: int, whom: Thread, target: int, behind_ns: int = 0) -> int:
        """A timer's interrupt that wakes a thread, its clock behind; return when it is over."""
        self.add(t_ns, cpu, "local_timer_entry", vector=236)
        self.add(
            t_ns + 300,
            cpu,
            "hrtimer_expire_entry",
            hrtimer=0x1000 + cpu,
            now=t_ns + 300 - behind_ns,
        )
        self.wake(t_ns + 600, cpu, whom, target)
        self.add(t_ns + 900, cpu, "hrtimer_expire_exit", hrtimer=0x1000 + cpu)
        self.add(t_ns + 1200, cpu, "local_timer_exit", vector=236)
        return t_ns + 1200


class World:
    """A host and a guest, from now on.

    Args:
        seed: Decides all that is random.
        offset_ns: How far the host's clock is ahead of the guest's.
        vcpu: The thread of the virtual CPU.
        host: The tracer of a host that has guests already.
        cpu: On which CPU of the host the virtual CPU runs.
    """

    def __init__(
        self,
        seed: int,
        offset_ns: int,
        vcpu: Thread = VCPU,
        host: Side | None = None,
        cpu: int = 1,
    ) -> None:
        self.noise = random.Random(seed)
        self.planted_ns = self.noise.randrange(300_000, 800_000)
        self.offset_ns = offset_ns
        self.vcpu, self.cpu = vcpu, cpu
        self.host = host or Side(running={0: ("busy", 70, 120)})
        self.host.running[cpu] = vcpu
        self.guest = Side(running={0: _IDLE})
        self.now_ns = _BEGIN_NS + self.noise.randrange(50_000)
        self.preempted_by = URGENT
        self.exits_on_waking = 0
        """How often a guest that wakes up leaves again before the first event that it writes."""
        self.truth: tuple[int, int] = (0, 0)
        """When the worst wait began and ended, by the host's clock."""

    def step(self, least_ns: int, most_ns: int) -> int:
        self.now_ns += self.noise.randrange(least_ns, most_ns)
        return self.now_ns

    def in_guest(self, name: str, **values: int | str) -> None:
        self.guest.add(self.now_ns, 0, name, **values)

    def exit(self, reason: str, **_: int) -> None:
        self.host.add(
            self.step(300, 900), self.cpu, "kvm_exit", exit_reason=reason, isa=1, vcpu_id=0
        )

    def enter(self) -> None:
        self.host.add(self.step(400, 1500), self.cpu, "kvm_entry", vcpu_id=0)
        self.step(300, 900)

    def interrupt(self, length_ns: int) -> None:
        """An interrupt of the host's own, in the guest's time."""
        self.exit("EXTERNAL_INTERRUPT")
        self.host.add(self.step(100, 300), self.cpu, "irq_handler_entry", irq=24)
        self.now_ns += length_ns
        self.host.add(self.now_ns, self.cpu, "irq_handler_exit", irq=24, ret=1)
        self.enter()

    def halt(self) -> None:
        self.exit("HLT")
        self.host.switch(self.step(500, 900), self.cpu, _IDLE)
        self.host.add(self.step(100, 300), self.cpu, "cpu_idle", state=1, cpu_id=self.cpu)

    def wake_up(self, due_ns: int, planted: "Planter | None" = None) -> None:
        """The host's timer of the halted guest expires."""
        self.now_ns = due_ns + self.noise.randrange(500, 2000)
        self.host.add(self.now_ns, self.cpu, "cpu_idle", state=2**32 - 1, cpu_id=self.cpu)
        self.now_ns = self.host.timer(self.step(100, 300), self.cpu, self.vcpu, self.cpu)
        if planted:
            planted(self)
        self.host.switch(self.step(500, 1500), self.cpu, self.vcpu)
        self.enter()
        for _ in range(self.exits_on_waking):
            self.step(1_000, 2_000)
            self.exit("IO_INSTRUCTION")
            self.step(4_000, 5_000)
            self.enter()

    def cycle(self, due_ns: int, cause: str = "") -> None:
        """One wake-up of the guest's real-time thread."""
        guest, noise = self.guest, self.noise
        expires = due_ns - self.offset_ns
        self.in_guest("hrtimer_start", hrtimer=0x1000, function=0, expires=expires, softexpires=0)
        if cause in _WHILE_BUSY:
            self.now_ns = due_ns - 30_000
            guest.switch(self.now_ns, 0, WORKER)
            self.now_ns = due_ns
            _WHILE_BUSY[cause](self)
        else:
            self.step(200, 400)
            self.in_guest("cpu_idle", state=1, cpu_id=0)
            self.halt()
            self.wake_up(due_ns, _WHILE_READY.get(cause))
            self.in_guest("cpu_idle", state=2**32 - 1, cpu_id=0)
        self.now_ns = guest.timer(self.step(200, 400), 0, RT, 0, self.offset_ns)
        if noise.random() < 0.3:
            self.interrupt(noise.randrange(1_000, 6_000))
        if cause in _BEFORE_THE_SWITCH:
            _BEFORE_THE_SWITCH[cause](self)
        guest.switch(self.step(500, 2000), 0, RT, "R")
        if cause:
            self.truth = (due_ns, self.now_ns)
        guest.switch(self.step(5_000, 20_000), 0, _IDLE)
        self.step(200, 500)

    def run(self, cause: str, cycles: int = CYCLES, busy: bool = True) -> "World":
        """Play so many cycles, with a cause planted in the worst one."""
        self.enter()
        for each in range(cycles):
            due_ns = _BEGIN_NS + CYCLE_NS * (each + 1) + self.noise.randrange(200_000)
            self.cycle(due_ns, cause if each == WORST_CYCLE else "")
        self.halt()
        if busy:
            self._keep_cpu_0_busy(cause)
        return self

    def _keep_cpu_0_busy(self, cause: str) -> None:
        t_ns, (start_ns, end_ns) = _BEGIN_NS, self.truth
        while t_ns < self.now_ns:
            t_ns += self.noise.randrange(4_000, 40_000)
            if cause != "smi-like-gap" or not start_ns - 4_000 < t_ns < end_ns - 8_000:
                self.host.add(t_ns, 0, "irq_handler_entry", irq=9)
                self.host.add(t_ns + 1_500, 0, "irq_handler_exit", irq=9, ret=1)


Planter = Callable[[World], None]


def _preempted(world: World) -> None:
    world.host.switch(world.step(300, 900), world.cpu, world.preempted_by)
    world.now_ns += world.planted_ns


def _slow_to_wake(world: World) -> None:
    """Nobody polled: the thread sleeps, its CPU is idle, and takes its time."""
    world.now_ns += world.planted_ns // 6


def _storm(world: World) -> None:
    end_ns = world.now_ns + world.planted_ns
    while world.now_ns < end_ns:
        world.interrupt(world.noise.randrange(15_000, 30_000))
        world.step(500, 2_000)


def _qemu_lock(world: World) -> None:
    world.exit("IO_INSTRUCTION")
    world.host.add(world.step(300, 900), world.cpu, "kvm_userspace_exit", reason=2, errno=0)
    world.host.switch(world.step(2_000, 5_000), world.cpu, _IDLE)
    before = world.host.running[0]
    world.now_ns += world.planted_ns
    world.host.running[0] = QEMU
    world.host.wake(world.now_ns, 0, world.vcpu, world.cpu)
    world.host.running[0] = before
    world.host.switch(world.step(1_000, 3_000), world.cpu, world.vcpu)
    world.step(1_000, 3_000)
    world.enter()


def _nested(world: World) -> None:
    world.exit("VMLAUNCH")
    world.host.add(world.step(300, 900), world.cpu, "kvm_nested_vmexit", exit_reason=20)
    world.now_ns += world.planted_ns
    world.enter()


def _stands_still(world: World) -> None:
    world.now_ns += world.planted_ns


def _interrupts_off(world: World) -> None:
    """The guest takes no interrupt; the host has its own ones meanwhile, short ones."""
    for _ in range(4):
        world.now_ns += world.planted_ns // 4
        world.interrupt(2_000)


_WHILE_READY: dict[str, Planter] = {"vcpu-preempted": _preempted, "halt-wakeup": _slow_to_wake}
_BEFORE_THE_SWITCH: dict[str, Planter] = {
    "interrupt-storm": _storm,
    "qemu-lock": _qemu_lock,
    "nested-exit": _nested,
}
_WHILE_BUSY: dict[str, Planter] = {"smi-like-gap": _stands_still, "irqs-off": _interrupts_off}
CAUSES = {
    **dict.fromkeys((*_WHILE_READY, *_BEFORE_THE_SWITCH, "smi-like-gap"), "host"),
    "irqs-off": "guest",
}
"""What can be planted, and on which side it is."""


def told_together(host: Path, guest: Path) -> dict[str, Any]:
    """What `latenz explain` tells of both."""
    command = [sys.executable, "-m", "latenz", "explain", host, guest, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def write_text(side: Side, path: Path, earlier_ns: int = 0) -> Path:
    """Write a trace as trace-cmd would print it, its clock that much behind."""
    lines = ["# tracer: nop", "#", "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION"]
    for each in sorted(side.events, key=lambda event: event.t_ns):
        comm, pid, _ = each.thread
        t_ns = each.t_ns - earlier_ns
        stamp = f"{t_ns // 10**9}.{t_ns % 10**9:09}"
        form = _TEXT.get(each.name) or " ".join(f"{key}={{{key}}}" for key in each.values)
        name = "<idle>" if pid == 0 else comm
        details = form.format(**each.values)
        lines.append(f"{name:>16}-{pid:<7} [{each.cpu:03}] d..2. {stamp}: {each.name}: {details}")
    path.write_text("\n".join(lines) + "\n")
    return path


def write_dat(
    side: Side, path: Path, stamp_of: Callable[[int], int] = int, options: bytes = b""
) -> Path:
    """Write a trace.dat of version 7; a time becomes what the clock showed by `stamp_of`."""
    ids = {name: 100 + place for place, name in enumerate(FIELDS)}
    dat = Hostile()
    dat.formats(*(event_format(name, ids[name], format_of(name)) for name in ids))
    threads = {each.thread[1]: each.thread[0] for each in side.events}
    listed = "".join(f"{pid} {comm}\n" for pid, comm in threads.items()).encode()
    dat.part(NAMES, number(len(listed), 8) + listed)
    contents = []
    for cpu in range(max(side.running) + 1):
        own = sorted((each for each in side.events if each.cpu == cpu), key=lambda one: one.t_ns)
        contents.append(_pages([(stamp_of(each.t_ns), content_of(each, ids)) for each in own]))
    dat.data(*contents)
    dat.options += options
    return dat.write(path)


def format_of(name: str) -> str:
    """What the kernel tells of an event's fields."""
    kinds = {16: "char {}[16]", 8: "u64 {}", 4: "int {}"}
    text = fields(*((kinds[size].format(each), size) for each, size in FIELDS[name]))
    if name == "kvm_exit":
        pairs = ", ".join(f'{{ {value}, "{reason}" }}' for reason, value in _REASONS.items())
        text += f'\nprint fmt: "reason %s", __print_symbolic(REC->exit_reason, {pairs})\n'
    return text


def content_of(event: Event, ids: dict[str, int], order: Order = "little") -> bytes:
    """An event's own record, as a kernel of that byte order writes it."""
    mark = "<" if order == "little" else ">"
    content = struct.pack(f"{mark}HBBi", ids[event.name], 0, 0, event.thread[1])
    for name, size in FIELDS[event.name]:
        value = event.values.get(name, 0)
        if size == 16:
            content += str(value).encode().ljust(16, b"\0")[:16]
        else:
            content += (_number(value) & (1 << 8 * size) - 1).to_bytes(size, order)
    return content + b"\0" * (-len(content) % 4)


def _number(value: int | str) -> int:
    if isinstance(value, int):
        return value
    return {"R": 0, "S": 1, "D": 2}.get(value, _REASONS.get(value, 0))


def _pages(records: list[tuple[int, bytes]]) -> bytes:
    """Pages of the ring buffer, with the time that has gone in each event's header."""
    made, here, start, before = [], b"", 0, 0
    for stamp, content in records:
        if not here or len(here) + len(content) + 12 > 4080:
            if here:
                made.append(page(here, start))
            here, start, before = b"", stamp, stamp
        delta = stamp - before
        if delta >= 1 << 27:
            here += struct.pack("<II", 30 | (delta & (1 << 27) - 1) << 5, delta >> 27)
            delta = 0
        here += struct.pack("<I", len(content) // 4 | delta << 5) + content
        before = stamp
    return b"".join([*made, page(here, start)])


def host_options(*guests: tuple[str, int, dict[int, int]]) -> bytes:
    """What trace-cmd writes into the file of a host: its id, and each guest's name, id, vCPUs."""
    listed = b""
    for name, trace_id, vcpus in guests:
        pairs = b"".join(struct.pack("<II", *each) for each in vcpus.items())
        content = name.encode() + b"\0" + struct.pack("<QI", trace_id, len(vcpus)) + pairs
        listed += option(13, content)
    return option(11, number(HOST_ID, 8)) + listed


def guest_options(samples: list[tuple[int, int, int, int]], trace_id: int = GUEST_ID) -> bytes:
    """What it writes into a guest's: time, offset, scale and fraction, of its one CPU."""
    times, offsets, scales, fractions = zip(*samples, strict=True)
    count = len(samples)
    shift = struct.pack("<QIII", HOST_ID, int(count > 1), 1, count)
    shift += struct.pack(f"<{2 * count}q{2 * count}Q", *times, *offsets, *scales, *fractions)
    return option(11, number(trace_id, 8)) + option(12, shift)
