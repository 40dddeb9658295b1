"""Series of a Latencies IP, read while or after they are measured, as samples in nanoseconds.

Nothing is read twice, and what is not read is counted: a sample is in the set, or among `unread`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from latenz.errors import BadInput
from latenz.importers.sets import Spool
from latenz.ip.instance import Bins, LatenciesInstance, Samples, Statistics
from latenz.ip.journaled import Journaled
from latenz.ip.link import Ring, Window
from latenz.ip.ring import (
    RECORD_BYTES,
    SEQUENCES,
    WRITER_BYTES,
    Gaps,
    Records,
    RegisterRingWriter,
    RingReader,
)
from latenz.ip.tally import Tally

_MOST_RECORDS = 8_192
"""Taken out of a ring at once: then their places are handed back."""
_MOST_SENT = 0xFFFF_FFFF


@dataclass
class Account:
    """What became of one instance's series.

    Attributes:
        series: How many there were.
        unread: Samples that were measured, and not read: the memory was full, or overwritten, or
            the ring was full.
        beyond: Samples that are all ones: that long at least. Not among the rows.
        at_least: Latencies that are not among the rows, and how many cycles each has at least:
            measurements that the watchdog gave up, and the longest of the unread ones.
        statistics: Of each series, as the hardware counted it.
        disagreements: Where hardware and samples contradict each other.
        open_at_end: Whether something was open when the last series ended; None: not known.
        num_stopped: A series had more samples than `num` can count.
    """

    series: int = 0
    unread: int = 0
    beyond: int = 0
    at_least: list[int] = field(default_factory=list)
    statistics: list[Statistics] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)
    open_at_end: int | None = None
    num_stopped: bool = False

    def total(self, name: str) -> int | None:
        """Return a counter's total over all series; None if the IP does not count it."""
        counts = [getattr(each, name) for each in self.statistics]
        return None if None in counts or not counts else sum(counts)


class Recorder(ABC):
    """Records one instance.

    Args:
        instance: The IP.

    Attributes:
        spool: The samples, in nanoseconds.
        account: What became of them.
        memory: What holds the samples that were not read yet.
    """

    memory = "the memory"

    def __init__(self, instance: LatenciesInstance) -> None:
        self.instance = instance
        self.account = Account()
        columns = ("t_ns", "latency_ns") if instance.has("time_stamp") else ("latency_ns",)
        self.spool: Spool | Journaled = Spool(*columns)
        self._shift = instance.register("histogram_shift") if instance.has("histogram") else 0
        self._alarm_limit = instance.latency_register("alarm_lat")
        instance.check_width(alarm_lat=self._alarm_limit)
        self._tally = self._new_tally()
        self._num = 0

    @property
    def kept(self) -> int:
        """Samples read so far."""
        return self.spool.rows + self.account.beyond

    @abstractmethod
    def begin(self) -> None:
        """Begin to measure."""

    @abstractmethod
    def poll(self) -> int:
        """Look at the IP and read what has to be read; return the samples there are so far."""

    @abstractmethod
    def finish(self) -> None:
        """Read the rest of a series that has been stopped."""

    def _new_tally(self) -> Tally:
        return Tally(self.instance.configuration, self._shift, self._alarm_limit)

    def _keep(self, samples: Samples) -> None:
        self._tally.add(samples.latency)
        clock, longest = self.instance.clock, np.uint64(self.instance.configuration.longest)
        within = samples.latency != longest
        self.account.beyond += int(len(within) - within.sum())
        latency = clock.all_to_ns(samples.latency[within]).tolist()
        if samples.start is None:
            for value in latency:
                self.spool.append(value)
            return
        start = clock.all_to_ns(samples.start[within]).tolist()
        for row in zip(start, latency, strict=True):
            self.spool.append(*row)
        if isinstance(self.spool, Journaled):
            self.spool.settle()

    def stop(self) -> None:
        """End the series; its samples stay in the memory."""
        instance = self.instance
        if not instance.configuration.extended:
            instance.stop()
            self._num = instance.register("num")
            return
        before, is_open = instance.register("num"), instance.status("open")
        instance.stop()
        self._num = instance.register("num")
        unknown = self._num != before or (is_open and instance.configuration.policy == "queue")
        self.account.open_at_end = None if unknown else int(is_open)

    def _begin_anew(self) -> None:
        self.stop()
        self.finish()
        self.begin()

    def _close(self, unread: int) -> None:
        """Hold the samples of the series against the hardware's figures, once all are read."""
        told = self.instance.statistics()
        bins: Bins | None = self.instance.read_bins() if self.instance.has("histogram") else None
        account, most = self.account, self.instance.configuration.most_num
        account.num_stopped = account.num_stopped or self._num == most
        account.series += 1
        account.unread += unread
        if unread and told.max > self._tally.max:
            account.at_least.append(told.max)
        if told.timeouts:
            account.at_least += [self.instance.register("timeout")] * told.timeouts
        account.statistics.append(told)
        account.disagreements += self._tally.disagreements(told, bins, unread)
        self._tally = self._new_tally()


class Filling(Recorder):
    """Lets the memory fill up, reads it, and begins anew if more samples are wanted.

    Nothing but `num` is read while a series is measured. What happens between two series is not
    measured.

    Args:
        instance: The IP.
        wanted: Samples; None: as many as come.
    """

    def __init__(self, instance: LatenciesInstance, wanted: int | None) -> None:
        super().__init__(instance)
        self._wanted = wanted

    def begin(self) -> None:
        """Begin to measure."""
        self.instance.start()

    def poll(self) -> int:
        """Look whether the memory is full; return the samples there are so far."""
        num, depth = self.instance.register("num"), self.instance.configuration.depth
        ready = min(num, depth)
        enough = self._wanted is not None and self.kept + ready >= self._wanted
        if ready == depth and not enough:
            self._begin_anew()
            return self.kept
        return self.kept + ready

    def finish(self) -> None:
        """Read the memory."""
        count = min(self._num, self.instance.configuration.depth)
        self._keep(self.instance.read_samples(0, count))
        self._close(self._num - count)


class Draining(Recorder):
    """Reads the memory as a ring while it is filled, without a gap; needs additions.

    `num` tells what is new. A sample is overwritten when the one a whole memory later is stored;
    `num`, read once more after the samples, tells which of them that may have hit: they are
    counted as unread. A `num` of 16 bits would stop: the series is begun anew before.
    """

    def __init__(self, instance: LatenciesInstance) -> None:
        super().__init__(instance)
        self._taken = 0
        self._unread = 0

    def begin(self) -> None:
        """Begin to measure."""
        self._taken = self._unread = 0
        self.instance.start(wrap=True)

    def poll(self) -> int:
        """Read what is new; return the samples read so far."""
        num, most = self.instance.register("num"), self.instance.configuration.most_num
        self._take(num, running=True)
        if num > most // 2 and (not self.instance.status("open") or num > most // 8 * 7):
            self._begin_anew()
        return self.kept

    def finish(self) -> None:
        """Read the rest."""
        self._take(self._num, running=False)
        self._close(self._unread)

    def _take(self, num: int, running: bool) -> None:
        depth = self.instance.configuration.depth
        first = max(self._taken, num - depth)
        samples = self.instance.read_samples(first % depth, num - first)
        if running:
            after = self.instance.register("num")
            overwritten = min(max(0, after - depth - first), num - first)
            first += overwritten
            samples = Samples(
                samples.latency[overwritten:],
                None if samples.start is None else samples.start[overwritten:],
            )
        self._unread += first - self._taken
        self._taken = num
        self._keep(samples)


class Freezing(Recorder):
    """Waits; then reads the samples around the largest one, which is all that `freeze_g` keeps.

    The rows are these samples; the hardware's own statistics are of all.

    Attributes:
        trigger: Which row is the largest one; None: nothing has been frozen.
    """

    def begin(self) -> None:
        """Begin to measure; as many samples are kept after the largest one as before it."""
        self.trigger: int | None = None
        self.instance.set_register("post_trigger", self.instance.configuration.depth // 4)
        self.instance.start()

    def poll(self) -> int:
        """Return the samples there are so far."""
        return self.instance.register("num")

    def finish(self) -> None:
        """Read the half that was frozen."""
        if (frozen := self.instance.read_frozen()) is not None:
            samples, self.trigger = frozen
            self._keep(samples)
        self._close(self._num - self._tally.n)


class Streaming(Recorder):
    """Reads the ring in memory into which a stream_ring_writer puts every sample.

    What finds no place there is dropped by the IP and counted: as unread. The numbers of the
    records must show as many gaps, and the IP must have sent as many samples as were read.

    Args:
        instance: The IP; it has a stream.
        ring: Where the ring is.

    Raises:
        BadInput: The IP has no stream.
    """

    memory = "the ring"

    def __init__(self, instance: LatenciesInstance, ring: Ring) -> None:
        if not instance.has("stream"):
            raise BadInput("it has no stream, but a ring behind it", instance.where)
        super().__init__(instance)
        self._ring = ring
        self._memory = Window(instance.link, ring.memory, RECORD_BYTES << ring.size_log2)
        self._writer = RegisterRingWriter(Window(instance.link, ring.registers, WRITER_BYTES))

    def begin(self) -> None:
        """Begin to measure; what waits in the IP is of the last series, and thrown away."""
        self.instance.stop()
        pause = self.instance.link.pause
        consumed = self._writer.begin(self._ring.base, self._ring.size_log2, pause)
        self._reader = RingReader(self._memory, self._writer, consumed)
        for _ in self._rest():
            pass
        self._channels: set[int] = set()
        self._gaps = Gaps(first=0)
        self.instance.start()

    def poll(self) -> int:
        """Read what is new; return the samples read so far."""
        self._take(self._reader.read(_MOST_RECORDS))
        return self.kept

    def finish(self) -> None:
        """Read the rest, also what still waits in the IP."""
        for records in self._rest():
            self._take(records)
        self._writer.stop(self.instance.link.pause)
        self.account.disagreements += self._stream_differences()
        self._close(self.instance.register("stream_dropped"))

    def _stream_differences(self) -> Iterator[str]:
        sent, read = self.instance.register("stream_sent"), self._tally.n
        if sent != min(read, _MOST_SENT):
            yield f"stream_sent is {sent} there, {read} were in the ring"
        dropped = self.instance.register("stream_dropped")
        counted = self._num < self.instance.configuration.most_num
        gaps = self._gaps.until(self._num) if counted else self._gaps.dropped
        if gaps > dropped or (counted and (dropped - gaps) % SEQUENCES):
            yield f"stream_dropped is {dropped} there, {gaps} by the numbers of the records"

    def _rest(self) -> Iterator[Records]:
        """Give records until none comes any more."""
        while True:
            self.instance.link.pause()
            records = self._reader.read(_MOST_RECORDS)
            if not len(records):
                return
            yield records

    def _take(self, records: Records) -> None:
        self._channels.update(np.unique(records.channel).tolist())
        if len(self._channels) > 1:
            raise BadInput(
                f"records of several IPs are in it: channels {sorted(self._channels)}",
                f"ring of {self.instance.where}",
                "latenz ip reads rings of one IP; see docs/ip.md for others",
            )
        self._gaps.add(records)
        timed = self.instance.has("time_stamp")
        self._keep(Samples(records.latency, records.start if timed else None))
        if self._writer.bus_error:
            raise BadInput(
                "the memory refuses its records",
                f"ring of {self.instance.where}",
                f"is there memory at {self._ring.base:#x}, as the board says?",
            )


def recorder(instance: LatenciesInstance, wanted: int | None, continuous: bool) -> Recorder:
    """Return what suits: the memory is filled once if that is enough, else a ring is read.

    That is the ring in the board's memory if there is one, else the IP's own memory.

    Args:
        instance: The IP.
        wanted: Samples; None: as many as come.
        continuous: Read while it is measured, even if the memory would do.
    """
    configuration, ring = instance.configuration, instance.place.ring
    fits = wanted is not None and wanted <= configuration.depth
    if ring is not None and (continuous or not fits or instance.has("freeze")):
        return Streaming(instance, ring)
    if instance.has("freeze"):
        return Freezing(instance)
    if configuration.extended and (continuous or not fits):
        return Draining(instance)
    return Filling(instance, wanted)
