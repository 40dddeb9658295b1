"""What Latencies IPs count, looked at again and again."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from latenz.ip.instance import LatenciesInstance, Statistics
from latenz.model import Deadline, TimeBase
from latenz.statistics import Evidence, Verdict, judge

_SECOND = 1_000_000_000


@dataclass(frozen=True)
class Watched:
    """One IP at one moment; times in nanoseconds, None where there is no sample or no counter.

    Attributes:
        name: Of the instance.
        num: Samples of the series.
        num_stopped: So many, or more.
        samples_per_s: Since the last report, by the clock of the board; None where it cannot be
            told: a simulated board without time stamps and snapshots.
        last_ns: Of the newest sample.
        min_ns: The shortest.
        mean_ns: Where the IP adds them up.
        max_ns: The longest; at least that if `is_longest`.
        is_longest: The longest is all ones: it may have been longer.
        jitter_ns: The larger distance of mean and longest, mean and shortest.
        alarm: A latency was above the IP's limit.
        statistics: All that the IP counts.
        is_measuring: Samples are taken.
        verdict: On the deadline that was asked for.
    """

    name: str
    num: int
    num_stopped: bool
    samples_per_s: float | None
    last_ns: int | None
    min_ns: int | None
    mean_ns: float | None
    max_ns: int | None
    is_longest: bool
    jitter_ns: float | None
    alarm: bool
    statistics: Statistics
    is_measuring: bool
    verdict: Verdict | None


@dataclass(frozen=True)
class Report:
    """All watched IPs of a board."""

    board: str
    time_base: TimeBase
    watched: tuple[Watched, ...]


class Watcher:
    """Watches instances of one board: reads their registers, and lets them take snapshots.

    Args:
        instances: The IPs.
        deadline: What they are judged by.
    """

    def __init__(
        self, instances: Sequence[LatenciesInstance], deadline: Deadline | None = None
    ) -> None:
        self._instances = instances
        self._deadline = deadline
        self._before: dict[str, tuple[int, int]] = {}
        self._since: dict[str, int] = {}

    def watch(self, window_ns: int) -> Report:
        """Let some time pass here and on the board, and report."""
        if not self._before:
            self.report()  # the rate of the first report is since now
        link = self._instances[0].link
        end_ns = time.monotonic_ns() + window_ns
        while (left_ns := end_ns - time.monotonic_ns()) > 0:
            if link.board.time_base == TimeBase.SIMULATED:
                link.pause()
            else:
                time.sleep(left_ns / _SECOND)
        return self.report()

    def report(self) -> Report:
        """Return what there is now."""
        board = self._instances[0].link.board
        watched = tuple(self._watched(instance) for instance in self._instances)
        return Report(board.board, TimeBase(board.time_base), watched)

    def _watched(self, instance: LatenciesInstance) -> Watched:
        told = instance.statistics()
        clock, configuration = instance.clock, instance.configuration
        some = told.num > 0
        is_longest = some and told.max == configuration.longest
        mean_ns = None
        if told.sum is not None and some and told.num < configuration.most_num and not is_longest:
            mean_ns = float(Fraction(told.sum * _SECOND, told.num * clock.hertz))
        max_ns, min_ns = clock.to_ns(told.max), clock.to_ns(told.min)
        jitter_ns = None if mean_ns is None else max(max_ns - mean_ns, mean_ns - min_ns)
        return Watched(
            name=instance.name,
            num=told.num,
            num_stopped=told.num == configuration.most_num,
            samples_per_s=self._rate(instance, told),
            last_ns=clock.to_ns(told.last) if some else None,
            min_ns=min_ns if some else None,
            mean_ns=mean_ns,
            max_ns=max_ns if some else None,
            is_longest=is_longest,
            jitter_ns=jitter_ns,
            alarm=told.alarm,
            statistics=told,
            is_measuring=bool(instance.register("we") & 1),
            verdict=self._judged(instance, told),
        )

    def _now_ns(self, instance: LatenciesInstance, told: Statistics) -> int | None:
        """Return the board's time where it tells it, else ours if they run alike."""
        if told.time is not None:
            return instance.clock.to_ns(told.time)
        if instance.link.board.time_base == TimeBase.SILICON:
            return time.monotonic_ns()
        return None

    def _rate(self, instance: LatenciesInstance, told: Statistics) -> float | None:
        """Return samples a second since the last report."""
        now_ns = self._now_ns(instance, told)
        if now_ns is None:
            return None
        self._since.setdefault(instance.name, now_ns)
        num_before, before_ns = self._before.get(instance.name, (told.num, now_ns))
        self._before[instance.name] = (told.num, now_ns)
        if told.num < num_before:  # a new series
            self._since[instance.name] = now_ns
        if told.num < num_before or now_ns <= before_ns:
            return None
        return (told.num - num_before) * _SECOND / (now_ns - before_ns)

    def _observed_ns(self, instance: LatenciesInstance, told: Statistics) -> int | None:
        """How long the series has been watched: it may have begun before, but no later."""
        now_ns, since_ns = self._now_ns(instance, told), self._since.get(instance.name)
        return None if now_ns is None or since_ns is None else max(now_ns - since_ns, 0)

    def _judged(self, instance: LatenciesInstance, told: Statistics) -> Verdict | None:
        """Judge by what is sure: only the largest latency is known, not how many were late."""
        if self._deadline is None or not told.num:
            return None
        clock, limit_ns = instance.clock, self._deadline.limit_ns
        trials = told.num + (told.missed or 0)
        late = clock.to_ns(told.max) > limit_ns
        unsure = (
            told.max == instance.configuration.longest
            or clock.to_ns(told.max) + clock.resolution_ns - 1 > limit_ns
            or bool(told.timeouts)
        )
        evidence = Evidence(
            exceeding=int(late),
            undecided=trials - int(late) if late or unsure else 0,
            trials=trials,
            time_ns=self._observed_ns(instance, told),
        )
        return judge(self._deadline, evidence, clock.to_ns(told.max))
