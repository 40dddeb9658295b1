"""A second, slow simulator of the execution rules R1 to R7, to hold the fast one against.

It shares no code with Latenz. It is one state machine: what is pending, one rule for what runs, one
for what happens when that is finished, one for a slot switch, one for an arrival. All times are
integer nanoseconds. A system is the plain dictionary of `data/beckert2014/counterexamples.json`.

R1 Top handlers and slot switches form one first-in-first-out queue with the highest priority.
R2 Then come interposed jobs, first in, first out: C_sched + C_ctx, up to C_BH of execution of the
   partition's queue, C_ctx.
R3 Then the queue of the partition that owns the slot; bottom handlers resume across slots.
R4 One first-in-first-out queue per partition, shared by its sources.
R5 An interposed job not yet started when its own partition's slot begins is dropped.
R6 At equal times: completion first, then slot switch, then arrival.
R7 An interrupt that comes before its source's event model allows it masks the source (C_lim), until
   the first slot start at which the model allows it; there it arrives.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

MODES = ("plain", "paper", "carry")


class Record(NamedTuple):
    """One served interrupt; `end_ns` is when its bottom handler finished."""

    arrival_ns: int
    top_start_ns: int
    end_ns: int
    kind: str  # direct | interposed | delayed


class Stretch(NamedTuple):
    """What the processor did from `start_ns` to `end_ns`, without interruption."""

    start_ns: int
    end_ns: int
    what: str  # switch | top | interposed | bottom
    whose: str  # partition of a switch, bottom handler or interposed job; source of a top handler


@dataclass
class Monitor:
    """Accepts an event if it keeps delta-minus(2), (3), ... to the events accepted before."""

    distances_ns: Sequence[int]
    accepted_ns: list[int] = field(default_factory=list)

    def accepts(self, arrival_ns: int) -> bool:
        newest_first = reversed(self.accepted_ns)
        for distance_ns, earlier_ns in zip(self.distances_ns, newest_first, strict=False):
            if arrival_ns - earlier_ns < distance_ns:
                return False
        self.accepted_ns.append(arrival_ns)
        return True


@dataclass
class Irq:
    """One interrupt from its arrival to the end of its bottom handler."""

    source: Mapping[str, Any]
    arrival_ns: int
    in_own_slot: bool
    accepted: bool  # by the monitor of its source; False if that was not asked
    bottom_left_ns: int
    job_started: bool = False
    top_start_ns: int = -1
    end_ns: int = -1

    @property
    def partition(self) -> str:
        return str(self.source["partition"])

    @property
    def kind(self) -> str:
        if self.in_own_slot:
            return "direct"
        return "interposed" if self.accepted else "delayed"


@dataclass
class Switch:
    """The switch into a slot of `partition`."""

    partition: str
    left_ns: int
    begun: bool = False


@dataclass
class TopHandler:
    """The top handler of one interrupt, the monitor's time included."""

    irq: Irq
    left_ns: int
    begun: bool = False


@dataclass
class Mask:
    """The masking of a source that exceeds its limit."""

    source: str
    left_ns: int
    begun: bool = False


@dataclass
class Job:
    """An interposed job: it enters (C_sched + C_ctx), serves up to its budget, leaves (C_ctx)."""

    irq: Irq  # whose budget it spends; what it serves is the head of the partition's queue
    budget_ns: int
    phase: str = "enter"
    left_ns: int = 0  # of the phase; while serving, until the budget or the queue's head is done


class Simulation:
    """One run of `system` with the arrival times `arrivals` of each source.

    `distance`, if given, tells the delta-minus of a source's model, to which R7 keeps it. A
    source's `tops`, if it has them, are what its top handlers take one after the other instead of
    `c_th`.
    """

    def __init__(
        self,
        system: Mapping[str, Any],
        arrivals: Mapping[str, Sequence[int]],
        mode: str,
        distance: Callable[[Mapping[str, Any], int], int] | None = None,
    ) -> None:
        assert mode in MODES
        self.mode = mode
        self.system = system
        self.distance = distance
        self.taken_ns: dict[str, list[int]] = {source["name"]: [] for source in system["sources"]}
        self.waiting: dict[str, deque[int]] = {
            source["name"]: deque() for source in system["sources"]
        }
        self.masked: set[str] = set()
        self.monitors = {
            source["name"]: Monitor(source["monitor"])
            for source in system["sources"]
            if source["monitor"] is not None
        }
        # arrivals at equal times come in the order of the sources in the file: sorted() is stable
        self.future_arrivals = deque(
            sorted(
                (
                    (time_ns, source)
                    for source in system["sources"]
                    for time_ns in arrivals.get(source["name"], ())
                ),
                key=lambda arrival: arrival[0],
            )
        )
        self.future_switches = self.all_switches()
        self.next_switch_ns, self.next_slot = next(self.future_switches)
        self.now_ns = 0
        self.slot_at_arrival = ""  # the owner by the clock: R6's half-open slots
        self.owner = ""  # the owner by the switches served so far
        self.supervisor: deque[Switch | TopHandler | Mask] = deque()
        self.jobs: deque[Job] = deque()
        self.queues: dict[str, deque[Irq]] = {
            slot["partition"]: deque() for slot in system["slots"]
        }
        self.irqs: dict[str, list[Irq]] = {source["name"]: [] for source in system["sources"]}
        self.unfinished = len(self.future_arrivals)
        self.timeline: list[Stretch] = []

    def all_switches(self) -> Iterator[tuple[int, str]]:
        start_ns = 0
        for index in count():
            slot = self.system["slots"][index % len(self.system["slots"])]
            yield start_ns, slot["partition"]
            start_ns += slot["length"]

    # --- time -------------------------------------------------------------------------------------

    def run(self, until_ns: int | None = None) -> "Simulation":
        """Runs until every interrupt is served, or to `until_ns`."""
        self.happen()
        while self.unfinished and (until_ns is None or self.now_ns < until_ns):
            running = self.what_runs()
            pauses = [self.next_switch_ns]
            if self.future_arrivals:
                pauses.append(self.future_arrivals[0][0])
            if running is not None:
                pauses.append(self.now_ns + self.left_ns(running))
            self.execute(running, min(pauses) - self.now_ns)
            # R6: completion first, then slot switch, then arrival
            if running is not None and self.left_ns(running) == 0:
                self.complete(running)
            self.happen()
        return self

    def happen(self) -> None:
        """The slot switch and the arrivals of this very instant join the supervisor's queue."""
        if self.next_switch_ns == self.now_ns:
            self.slot_at_arrival = self.next_slot
            self.supervisor.append(Switch(self.next_slot, self.system["c_switch"]))
            self.next_switch_ns, self.next_slot = next(self.future_switches)
            self.masked = {
                source["name"]
                for source in self.system["sources"]
                if source["name"] in self.masked and not self.permits(source)
            }
        while self.future_arrivals and self.future_arrivals[0][0] == self.now_ns:
            self.waiting[self.future_arrivals.popleft()[1]["name"]].append(self.now_ns)
        for source in self.system["sources"]:
            name = source["name"]
            while self.waiting[name] and name not in self.masked:
                self.come(source)

    def permits(self, source: Mapping[str, Any]) -> bool:
        """Whether one more interrupt now keeps the source's model, by all distances to others."""
        if self.distance is None:
            return True
        newest_first = reversed(self.taken_ns[source["name"]])
        return all(
            self.now_ns - earlier_ns >= self.distance(source["model"], events)
            for events, earlier_ns in enumerate(newest_first, start=2)
        )

    def come(self, source: Mapping[str, Any]) -> None:
        """The first interrupt that waits at the controller arrives, or masks its source."""
        name = source["name"]
        if self.permits(source):
            self.taken_ns[name].append(self.now_ns)
            self.arrive(source, self.waiting[name].popleft())
        else:
            self.masked.add(name)
            self.supervisor.append(Mask(name, self.system.get("c_lim", 0)))

    def arrive(self, source: Mapping[str, Any], raised_ns: int) -> None:
        """The monitor decides with the arrival's stamp; the top handler waits its turn."""
        in_own_slot = self.slot_at_arrival == source["partition"]
        monitor = self.monitors.get(source["name"])
        asked = monitor is not None and (
            self.mode == "carry" or (self.mode == "paper" and not in_own_slot)
        )
        accepted = asked and monitor.accepts(self.now_ns)
        irq = Irq(source, raised_ns, in_own_slot, accepted, source["c_bh"])
        self.irqs[source["name"]].append(irq)
        before = len(self.irqs[source["name"]]) - 1
        top_ns = source["tops"][before] if "tops" in source else source["c_th"]
        cost_ns = top_ns + (self.system["c_mon"] if asked else 0)
        self.supervisor.append(TopHandler(irq, cost_ns))

    # --- what runs --------------------------------------------------------------------------------

    def what_runs(self) -> Switch | TopHandler | Mask | Job | Irq | None:
        if self.supervisor:  # R1
            head = self.supervisor[0]
            if not head.begun:
                head.begun = True
                if isinstance(head, Switch):
                    self.change_owner(head.partition)
                elif isinstance(head, TopHandler):
                    head.irq.top_start_ns = self.now_ns
            return head
        if self.jobs:  # R2
            job = self.jobs[0]
            if not job.irq.job_started:
                job.irq.job_started = True
                job.left_ns = self.system["c_sched"] + self.system["c_ctx"]
            return job
        if self.queues[self.owner]:  # R3, R4
            return self.queues[self.owner][0]
        return None

    def left_ns(self, running: Switch | TopHandler | Mask | Job | Irq) -> int:
        return running.bottom_left_ns if isinstance(running, Irq) else running.left_ns

    def execute(
        self, running: Switch | TopHandler | Mask | Job | Irq | None, duration_ns: int
    ) -> None:
        start_ns, self.now_ns = self.now_ns, self.now_ns + duration_ns
        if isinstance(running, Irq):
            running.bottom_left_ns -= duration_ns
            self.note(start_ns, "bottom", running.partition)
        elif isinstance(running, Job):
            running.left_ns -= duration_ns
            if running.phase == "serve":
                running.budget_ns -= duration_ns
                self.queues[running.irq.partition][0].bottom_left_ns -= duration_ns
            self.note(start_ns, "interposed", running.irq.partition)
        elif isinstance(running, TopHandler):
            running.left_ns -= duration_ns
            self.note(start_ns, "top", running.irq.source["name"])
        elif isinstance(running, Mask):
            running.left_ns -= duration_ns
            self.note(start_ns, "top", running.source)
        elif isinstance(running, Switch):
            running.left_ns -= duration_ns
            self.note(start_ns, "switch", running.partition)

    def note(self, start_ns: int, what: str, whose: str) -> None:
        if self.now_ns > start_ns:
            self.timeline.append(Stretch(start_ns, self.now_ns, what, whose))

    # --- what happens when it is finished ---------------------------------------------------------

    def complete(self, running: Switch | TopHandler | Mask | Job | Irq) -> None:
        if isinstance(running, Irq):
            self.finish_head(running.partition)
        elif isinstance(running, Job):
            self.next_phase(running)
        else:
            self.supervisor.popleft()
            if isinstance(running, TopHandler):
                self.end_top_handler(running.irq)

    def end_top_handler(self, irq: Irq) -> None:
        self.queues[irq.partition].append(irq)
        if irq.accepted and not irq.in_own_slot:
            self.interpose(irq)

    def interpose(self, irq: Irq) -> None:
        self.jobs.append(Job(irq, irq.source["c_bh"]))

    def next_phase(self, job: Job) -> None:
        if job.phase == "leave":
            self.jobs.popleft()
            return
        queue = self.queues[job.irq.partition]
        if job.phase == "serve" and queue[0].bottom_left_ns == 0:
            self.finish_head(job.irq.partition)
        # work of length zero always fits into the budget
        if queue and (job.budget_ns > 0 or queue[0].bottom_left_ns == 0):
            job.phase = "serve"
            job.left_ns = min(job.budget_ns, queue[0].bottom_left_ns)
        else:
            job.phase = "leave"
            job.left_ns = self.system["c_ctx"]

    def finish_head(self, partition: str) -> None:
        self.queues[partition].popleft().end_ns = self.now_ns
        self.unfinished -= 1

    # --- slots ------------------------------------------------------------------------------------

    def change_owner(self, partition: str) -> None:
        """One slot ends and the next begins, when the supervisor's queue comes to the switch."""
        if self.mode == "carry" and self.owner:
            assert not any(
                job.irq.partition == self.owner and not job.irq.job_started for job in self.jobs
            )
            for irq in self.queues[self.owner]:
                if irq.accepted and not irq.job_started:
                    self.interpose(irq)
        self.owner = partition
        self.jobs = deque(  # R5
            job for job in self.jobs if job.irq.partition != partition or job.irq.job_started
        )

    # --- results ----------------------------------------------------------------------------------

    def records(self) -> dict[str, list[Record]]:
        """The served interrupts of each source in the order of their arrival."""
        return {
            name: [
                Record(irq.arrival_ns, irq.top_start_ns, irq.end_ns, irq.kind)
                for irq in irqs
                if irq.end_ns >= 0
            ]
            for name, irqs in self.irqs.items()
        }


def simulate(
    system: Mapping[str, Any],
    arrivals: Mapping[str, Sequence[int]],
    mode: str,
    distance: Callable[[Mapping[str, Any], int], int] | None = None,
) -> dict[str, list[Record]]:
    """Every interrupt of `arrivals`, served by the rules, per source in the order of arrival."""
    return Simulation(system, arrivals, mode, distance).run().records()


def highest_latency(records: Sequence[Record]) -> int:
    """From arrival to the end of the bottom handler."""
    return max(record.end_ns - record.arrival_ns for record in records)
