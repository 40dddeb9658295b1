"""From a board's Latencies IPs to sample sets."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Literal

from latenz.durations import format_duration
from latenz.ip.instance import LatenciesInstance
from latenz.ip.journaled import Journaled
from latenz.ip.recorder import Freezing, Recorder, recorder
from latenz.model import Deadline, Metadata, Reported, SampleSet
from latenz.store.run import RunWriter

TOOL = "Latencies IP"
_CUT_OFF = (
    "its recording has not ended in order: what the hardware counted itself, and samples that are "
    "too long for its width, are not known"
)
Outcome = Literal["complete", "interrupted", "stalled"]


@dataclass(frozen=True)
class Plan:
    """What is to be recorded.

    Attributes:
        samples: How many of each instance, at least; None: until stopped.
        continuous: Read the memory while it is filled, even if it would hold all samples.
        alarm_ns: A latency above this raises the alarm; None leaves the IP's limit as it is.
        stall_s: Give up when no instance that still lacks samples got one for so long.
    """

    samples: int | None = 400
    continuous: bool = False
    alarm_ns: int | None = None
    stall_s: float = 30.0


class Recording:
    """Records instances of one board side by side.

    Args:
        instances: The IPs; all of one link.
        plan: What is to be recorded.

    Raises:
        BadInput: An alarm is too long for an IP.
    """

    def __init__(self, instances: Sequence[LatenciesInstance], plan: Plan) -> None:
        self.plan = plan
        self.outcome: Outcome | None = None
        self._link = instances[0].link
        for instance in instances:
            if plan.alarm_ns is not None:
                instance.set_alarm(instance.clock.to_cycles(plan.alarm_ns))
        self.recorders = [recorder(each, plan.samples, plan.continuous) for each in instances]

    def journal_in(self, writer: RunWriter) -> None:
        """Let samples that have times be in a run as soon as they are read; call before `run`."""

        def begin(recorded: Recorder) -> Path:
            metadata = _metadata(recorded, self.plan)
            return writer.begin(metadata.model_copy(update={"notes": (*metadata.notes, _CUT_OFF)}))

        for each in self.recorders:
            if each.instance.has("time_stamp") and not isinstance(each, Freezing):
                each.spool = Journaled(partial(begin, each))

    def store_in(self, writer: RunWriter) -> None:
        """Store what was recorded."""
        begun = {entry.metadata.name for entry in writer.info.sample_sets}
        for each in self.sample_sets():
            if each.metadata.name in begun:
                writer.finish(each.metadata.name, **each.metadata.model_dump(exclude={"name"}))
            else:
                writer.add(each)
        writer.info.notes += self.remarks()

    def run(self, stopped: Callable[[], bool], progress: Callable[[int], None]) -> Outcome:
        """Record until all samples are there, `stopped` says so, or nothing comes any more.

        Args:
            stopped: Asked now and then.
            progress: Told how many samples each instance has at least.
        """
        for each in self.recorders:
            each.begin()
        self.outcome = self._wait(stopped, progress)
        for each in self.recorders:
            each.stop()
        for each in self.recorders:
            each.finish()
        return self.outcome

    def _wait(self, stopped: Callable[[], bool], progress: Callable[[int], None]) -> Outcome:
        wanted = self.plan.samples
        before, changed = -1, time.monotonic()
        while True:
            counts = [each.poll() for each in self.recorders]
            lacking = sum(counts if wanted is None else (min(wanted, n) for n in counts))
            progress(min(counts))
            if wanted is not None and min(counts) >= wanted:
                return "complete"
            if stopped():
                return "interrupted"
            now = time.monotonic()
            if lacking != before:
                before, changed = lacking, now
            elif now - changed > self.plan.stall_s:
                return "stalled"
            self._link.pause()

    def sample_sets(self) -> list[SampleSet]:
        """Return what was recorded; an instance without samples has none."""
        return [found for each in self.recorders for found in _sample_sets(each, self.plan)]

    def remarks(self) -> list[str]:
        """Return what must be known beyond the sets: disagreements, instances without samples."""
        found = []
        for each in self.recorders:
            name = each.instance.name
            found += [f"{name}: {text}" for text in each.account.disagreements]
            if not each.kept and not any(told.num for told in each.account.statistics):
                found.append(f"{name}: no sample came")
        return found

    @property
    def disagrees(self) -> bool:
        """Whether the figures of some hardware and its samples contradict each other."""
        return any(each.account.disagreements for each in self.recorders)

    @property
    def alarm(self) -> bool:
        """Whether a limit that the plan set was exceeded, as the hardware saw it."""
        asked = self.plan.alarm_ns is not None
        told = (one for each in self.recorders for one in each.account.statistics)
        return asked and any(one.alarm for one in told)


def _sample_sets(recorded: Recorder, plan: Plan) -> Iterator[SampleSet]:
    if isinstance(recorded, Freezing):
        yield from _frozen_sets(recorded, plan)
    elif recorded.kept:
        metadata = _metadata(recorded, plan)
        if recorded.spool.rows:
            yield recorded.spool.sample_set(metadata)
        else:
            yield SampleSet.from_columns(metadata, latency_ns=[], width_ns=[], count=[])


def _frozen_sets(recorded: Freezing, plan: Plan) -> Iterator[SampleSet]:
    """Give the hardware's figures of all samples, and the samples around the largest one."""
    metadata = _metadata(recorded, plan)
    if not recorded.account.statistics or not recorded.account.statistics[0].num:
        return
    told = recorded.account.statistics[0]
    clock, configuration = recorded.instance.clock, recorded.instance.configuration
    counted = told.num < configuration.most_num
    is_max_known = told.max < configuration.longest and not told.timeouts
    mean_ns = None
    if told.sum is not None and counted and not told.saturations:
        mean_ns = float(Fraction(told.sum * 1_000_000_000, told.num * clock.hertz))
    figures = {
        **metadata.model_dump(),
        "beyond_range": 0,
        "beyond_range_from_ns": None,
        "missed_periods": told.missed,
        "reported": Reported(
            n=told.num if counted else None,
            mean_ns=mean_ns,
            min_ns=clock.to_ns(told.min),
            max_ns=clock.to_ns(told.max) if is_max_known else None,
        ),
        "notes": ("figures of the hardware: its memory keeps only what is around the largest",),
    }
    yield SampleSet.from_columns(Metadata.model_validate(figures))
    if recorded.spool.rows:
        beyond = recorded.account.beyond
        which = "" if recorded.trigger is None else f", which is number {recorded.trigger + 1}"
        kept = f"{recorded.kept} of {told.num} samples"
        note = f"{kept}: those around the largest{which}; not a representative sample"
        around = {
            **metadata.model_dump(),
            "name": f"{metadata.name}/around-maximum",
            "beyond_range": beyond,
            "beyond_range_from_ns": clock.to_ns(configuration.longest) if beyond else None,
            "missed_periods": None,
            "deadlines": (),
            "notes": (note,),
        }
        yield recorded.spool.sample_set(Metadata.model_validate(around))


def _metadata(recorded: Recorder, plan: Plan) -> Metadata:
    instance, account = recorded.instance, recorded.account
    board, configuration = instance.link.board, instance.configuration
    at_least = [*account.at_least, *([configuration.longest] if account.beyond else [])]
    return Metadata(
        name=instance.name,
        time_base=board.time_base,
        from_event=instance.place.from_event,
        to_event=instance.place.to_event,
        tool=TOOL,
        tool_version=f"1.{configuration.minor}" if configuration.extended else "as published",
        machine=board.board,
        resolution_ns=instance.clock.resolution_ns,
        beyond_range=account.beyond + len(account.at_least),
        beyond_range_from_ns=instance.clock.to_ns(min(at_least)) if at_least else None,
        missed_periods=_missed(recorded),
        overlaps=account.total("overlaps"),
        orphan_ends=account.total("orphans"),
        open_at_end=account.open_at_end,
        deadlines=() if plan.alarm_ns is None else (_deadline(plan.alarm_ns),),
        source=instance.link.name,
        notes=tuple(_notes(recorded)),
    )


def _missed(recorded: Recorder) -> int | None:
    """Return the starts without a latency of their own; None if nothing tells.

    What is known to be long at least is not among them.
    """
    account = recorded.account
    missed = account.total("missed")
    if missed is None and not account.unread:
        return None
    return max(0, (missed or 0) + account.unread - len(account.at_least))


def _deadline(alarm_ns: int) -> Deadline:
    return Deadline(name=f"alarm {format_duration(alarm_ns)}", limit_ns=alarm_ns, allowed="0")


def _notes(recorded: Recorder) -> list[str]:
    instance, account = recorded.instance, recorded.account
    clock = instance.clock
    notes = []
    if not clock.is_whole:
        notes.append(
            f"a cycle of its {clock.hertz} Hz is not a whole number of nanoseconds: latencies are "
            "rounded down"
        )
    if account.unread:
        largest = max(told.max for told in account.statistics)
        notes.append(
            f"{account.unread} samples were measured and not read, because {recorded.memory} was "
            f"full; they count as missed. The largest of all was {clock.to_ns(largest)} ns"
        )
    if account.series > 1:
        notes.append(
            f"{account.series} series: what happened between them, while the memory was read, "
            "was not measured"
        )
    if account.num_stopped:
        most = instance.configuration.most_num
        notes.append(f"there were more samples than {most}, which the hardware cannot count")
    if account.beyond:
        notes.append(
            f"{account.beyond} samples are all ones: these latencies are known only to be that long"
        )
    return notes + [f"the hardware disagrees: {text}" for text in account.disagreements]
