"""One Latencies IP: its registers, its statistics, its samples."""

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from latenz.errors import BadInput
from latenz.ip.clock import Clock
from latenz.ip.configuration import Configuration
from latenz.ip.link import WORD, Link, Place
from latenz.ip.registers import LATENCIES_IP_FIELDS as FIELDS
from latenz.ip.registers import LATENCIES_IP_OFFSETS as OFFSETS

Words = npt.NDArray[np.uint64]
_PATIENCE = 1_000
"""How often a bit is looked at that the circuit is going to set, before it counts as dead."""


@dataclass(frozen=True)
class Samples:
    """Some samples of a series, in their order.

    Attributes:
        latency: In cycles.
        start: Tick of the interrupt's edge, where the IP stores time stamps.
    """

    latency: Words
    start: Words | None


@dataclass(frozen=True)
class Statistics:
    """What the IP itself counted in a series; None where it was not built to.

    Attributes:
        num: Samples; `most_num` of the configuration means so many or more.
        last: Of the newest sample, in cycles, as the next two.
        max: 0 without samples.
        min: All ones without samples.
        alarm: A latency was greater than `alarm_lat`, since the alarm was cleared last.
        sum: Of the latencies.
        sum_of_squares: Of the latencies.
        orphans: Ends with nothing open.
        overlaps: Starts while something was open.
        missed: Starts that got no sample.
        saturations: Samples that were longer than fits.
        timeouts: Measurements that the watchdog gave up.
        stream_dropped: Samples that the stream lost.
        time: Tick at which this was true.
        is_whole: They are of one moment, but for `alarm`, `timeouts` and `stream_dropped`, which no
            snapshot holds: these are read beside it.
    """

    num: int
    last: int
    max: int
    min: int
    alarm: bool
    sum: int | None = None
    sum_of_squares: int | None = None
    orphans: int | None = None
    overlaps: int | None = None
    missed: int | None = None
    saturations: int | None = None
    timeouts: int | None = None
    stream_dropped: int | None = None
    time: int | None = None
    is_whole: bool = False


@dataclass(frozen=True)
class Bins:
    """The histogram in the hardware.

    Attributes:
        counts: Of each bin.
        overflow: Samples beyond the last bin.
        shift: Of a linear histogram: a bin is 2 to this power cycles wide.
    """

    counts: Words
    overflow: int
    shift: int


class LatenciesInstance:
    """One Latencies IP behind a link.

    Args:
        link: The way to its registers.
        place: Where it is, and whether it has additions.

    Attributes:
        configuration: What it was built with.
        clock: The clock it counts.

    Raises:
        BadInput: What is there is no Latencies IP.
    """

    def __init__(self, link: Link, place: Place) -> None:
        self.link = link
        self.place = place
        self.name = place.name
        self.where = f"{link.name}, {place.name}"
        self.configuration = Configuration()
        hertz = link.board.clock_hz
        if not place.published:
            first, second, third, hertz = link.read(place.s01, OFFSETS["identification"], 4)
            self.configuration = Configuration.decode(first, second, third, self.where)
        if hertz != link.board.clock_hz:
            raise BadInput(
                f"its clock has {hertz} Hz, that of its board {link.board.clock_hz} Hz",
                self.where,
                "correct one of the two",
            )
        self.clock = Clock(hertz, self.where)

    def check_width(self, **registers: int) -> None:
        """Refuse an IP that cannot tell what it is, and whose registers are not the published ones.

        Args:
            registers: What some that hold latencies were read as, by their names.

        Raises:
            BadInput: One has more bits than a latency of this configuration.
        """
        wider = [name for name, value in registers.items() if value > self.configuration.longest]
        if wider and not self.configuration.extended:
            raise BadInput(
                f"{wider[0]} has more than 16 bits, unlike the published IP",
                self.where,
                "build it with identification_g, so that its sizes are known",
            )

    def has(self, feature: str) -> bool:
        """Whether it was built with a feature of `FEATURES`."""
        return feature in self.configuration.features

    def register(self, name: str) -> int:
        """Return the value of a register."""
        return self.link.read(self.place.s01, OFFSETS[name])[0]

    def set_register(self, name: str, value: int) -> None:
        """Write a register."""
        self.link.write(self.place.s01, OFFSETS[name], value)

    def latency_register(self, name: str) -> int:
        """Return a latency in cycles; one of 48 bits is read until both of its words fit."""
        if self.configuration.latency_width <= 32:
            return self.register(name)
        high = self.register(f"{name}_high")
        for _ in range(_PATIENCE):
            low, again = self.register(name), self.register(f"{name}_high")
            if again == high:
                break
            high = again
        return high << 32 | low

    def status(self, bit: str) -> bool:
        """Return a bit of the status; only where there are additions."""
        return bool(FIELDS[f"status_{bit}"].of(self.register("status")))

    def set_alarm(self, cycles: int) -> None:
        """Set the latency that must not be exceeded; no alarm is pending afterwards.

        Raises:
            BadInput: It is longer than the IP can measure.
        """
        if not 0 <= cycles <= self.configuration.longest:
            longest = self.clock.to_ns(self.configuration.longest)
            raise BadInput(
                f"{cycles} cycles do not fit in {self.configuration.latency_width} bits",
                f"alarm of {self.where}",
                f"the longest latency here is {longest} ns",
            )
        if self.configuration.latency_width > 32:
            self.set_register("alarm_lat_high", cycles >> 32)
        self.set_register("alarm_lat", cycles & 0xFFFF_FFFF)
        self.set_register("alarm", 1)

    def start(self, wrap: bool = False) -> None:
        """Begin a new series; everything of the last one is forgotten.

        Args:
            wrap: The memory is a ring; otherwise it stops when full. Needs additions.
        """
        self.stop()
        if self.configuration.extended:
            ring = FIELDS["mode_wrap"].at(1)
            mode = self.register("mode") & ~ring
            self.set_register("mode", mode | ring if wrap else mode)
        self.set_register("alarm", 1)
        self.set_register("we", 1)
        if self.configuration.extended:
            self._until("ready", wanted=True)
        else:
            self.check_width(min=self.register("min"))  # all ones: nothing was measured yet

    def stop(self) -> None:
        """End the series; what is open is forgotten, samples and statistics stay."""
        self.set_register("we", 0)

    def run_self_test(self, delay: int, count: int) -> None:
        """Let the IP measure pairs of known distance: delay cycles, delay + 1, ...; wait for it."""
        self.set_register("self_test_delay", delay)
        self.set_register("self_test_count", count)
        self.set_register("command", FIELDS["command_self_test"].at(1))
        self._until("self_test_running", wanted=False)

    def _until(self, bit: str, wanted: bool) -> None:
        for _ in range(_PATIENCE):
            if self.status(bit) == wanted:
                return
            self.link.pause()
        raise BadInput(f"its status bit {bit} stays {int(not wanted)}", self.where, "is it reset?")

    def statistics(self) -> Statistics:
        """Return what the IP counted, of one moment where it has snapshots.

        Raises:
            BadInput: Others take snapshots faster than this one can be read.
        """
        alarm = bool(self.register("alarm") & 1)
        if self.has("snapshot"):
            return self._snapshot(alarm)
        told = self._statistics("", alarm)
        self.check_width(max=told.max, min=told.min)
        return told

    def _snapshot(self, alarm: bool) -> Statistics:
        """Take a snapshot and read it, again if another program took one meanwhile."""
        for _ in range(_PATIENCE):
            self.set_register("command", FIELDS["command_snapshot"].at(1))
            told = self._statistics("snapshot_", alarm)
            time = self._time() if told.time is not None else None
            if (self.register("snapshot_num"), time) == (told.num, told.time):
                return told
        raise BadInput("its snapshots are taken by another program", self.where, "end that one")

    def _statistics(self, prefix: str, alarm: bool) -> Statistics:
        taken = bool(prefix)
        counters = ("orphans", "overlaps", "missed", "saturations")
        counted = {name: self.register(prefix + name) for name in counters if self.has("counters")}
        return Statistics(
            num=self.register(f"{prefix}num"),
            last=self.latency_register(f"{prefix}last"),
            max=self.latency_register(f"{prefix}max"),
            min=self.latency_register(f"{prefix}min"),
            alarm=alarm,
            sum=self._long("snapshot_sum", 2) if self.has("sums") else None,
            sum_of_squares=self._long("snapshot_sum_of_squares", 4) if self.has("sums") else None,
            timeouts=self.register("timeouts") if self.has("watchdog") else None,
            stream_dropped=self.register("stream_dropped") if self.has("stream") else None,
            time=self._time() if taken and self.has("time_stamp") else None,
            is_whole=taken,
            **counted,
        )

    def _long(self, name: str, words: int) -> int:
        return sum(self.register(f"{name}_{word}") << 32 * word for word in range(words))

    def _time(self) -> int:
        return self.register("snapshot_time_high") << 32 | self.register("snapshot_time")

    def read_samples(self, first: int, count: int, half: int | None = None) -> Samples:
        """Return samples from the memory.

        Args:
            first: Index in the memory, or in one of its halves.
            count: How many; behind the last index follows index 0.
            half: 0 or 1 with `freeze_g`; None: the whole memory.
        """
        depth = self.configuration.depth // (1 if half is None else 2)
        begin = depth * (half or 0)
        before_end = min(count, depth - first)
        parts = [(begin + first, before_end), (begin, count - before_end)]
        latency = self._pair(0, self.configuration.latency_width > 32, parts)
        start = self._pair(2, True, parts) if self.has("time_stamp") else None
        return Samples(latency, start)

    def read_frozen(self) -> tuple[Samples, int] | None:
        """Return what is around the largest latency, and which of it that is; None if nothing.

        Only with `freeze_g`, and only while nothing is measured.
        """
        if not self.status("frozen"):
            return None
        count, end = self.register("frozen_count"), self.register("frozen_end")
        size = self.configuration.depth // 2
        first = (end - count) % size
        trigger = (self.register("trigger_position") - first) % size
        return self.read_samples(first, count, int(self.status("frozen_half"))), trigger

    def _pair(self, region: int, has_high: bool, parts: list[tuple[int, int]]) -> Words:
        low = self._region(region, parts)
        if not has_high:
            return low
        return cast(Words, low | self._region(region + 1, parts) << np.uint64(32))

    def _region(self, region: int, parts: list[tuple[int, int]]) -> Words:
        begin = WORD * region * self.configuration.region_words
        words: list[int] = []
        for first, count in parts:
            if count:
                words += self.link.read(self.place.s00, begin + WORD * first, count)
        return np.array(words, dtype=np.uint64)

    def read_bins(self) -> Bins:
        """Return the histogram; the bins are of one moment only if nothing is measured."""
        counts = self._region(4, [(0, self.configuration.bins)])
        return Bins(counts, self.register("histogram_overflow"), self.register("histogram_shift"))


def open_instances(link: Link, name: str | None = None) -> list[LatenciesInstance]:
    """Return the IPs of a board, or the one of a name.

    Raises:
        BadInput: There is none of that name.
    """
    from latenz.errors import closest

    places = link.board.instances
    if len({place.name for place in places}) < len(places):
        raise BadInput("two of its instances have one name", link.name)
    rings = [place.ring.registers for place in places if place.ring]
    if len(set(rings)) < len(rings):
        raise BadInput("two of its instances have one ring", link.name)
    chosen = [place for place in places if name in (None, place.name)]
    if not chosen:
        names = [place.name for place in places]
        raise BadInput(f"there is no instance {name!r}", link.name, closest(name or "", names))
    return [LatenciesInstance(link, place) for place in chosen]
