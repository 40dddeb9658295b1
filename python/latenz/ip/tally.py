"""What samples add up to, held against what the hardware counted itself."""

from collections.abc import Iterator

import numpy as np

from latenz.ip.configuration import Configuration
from latenz.ip.instance import Bins, Statistics, Words


class Tally:
    """Adds up the samples of one series as they are read.

    Args:
        configuration: What the IP was built with.
        shift: Of a linear histogram.
        alarm_limit: What `alarm_lat` was during the series, in cycles; None: other samples than
            these may have raised the alarm.

    Attributes:
        n: Samples.
        longest: Samples that are all ones: these latencies are known only to be that long at least.
    """

    def __init__(self, configuration: Configuration, shift: int, alarm_limit: int | None) -> None:
        self._configuration = configuration
        self._shift = shift
        self._alarm_limit = alarm_limit
        self.n = 0
        self.longest = 0
        self.max = 0
        self.min = configuration.longest
        self._last = 0
        self._sum = 0
        self._sum_of_squares = 0
        self._bins = np.zeros(configuration.bins, dtype=np.uint64)
        self._overflow = 0

    def add(self, latency: Words) -> None:
        """Add samples, in cycles."""
        values = latency.tolist()
        if not values:
            return
        self.n += len(values)
        self._last = values[-1]
        self.max = max(self.max, *values)
        self.min = min(self.min, *values)
        self.longest += values.count(self._configuration.longest)
        if "sums" in self._configuration.features:
            self._sum += sum(values)
            self._sum_of_squares += sum(value * value for value in values)
        if self._configuration.bins:
            self._add_to_bins(values)

    def _add_to_bins(self, values: list[int]) -> None:
        for value in values:
            index = self._configuration.bin_of(value, self._shift)
            if index < self._configuration.bins:
                self._bins[index] += np.uint64(1)
            else:
                self._overflow += 1

    def disagreements(self, told: Statistics, bins: Bins | None, unread: int) -> list[str]:
        """Return what the hardware says otherwise, a sentence each.

        Args:
            told: The hardware's statistics of the whole series.
            bins: Its histogram, if it has one.
            unread: Samples of the series that were not added, because they were not kept.
        """
        most = self._configuration.most_num
        expected = {"num": (min(self.n + unread, most), told.num)}
        if unread:
            return [*_differences(expected), *self._bounds(told)]
        if self.n:
            expected |= {"last": (self._last, told.last)}
        expected |= {"max": (self.max, told.max), "min": (self.min, told.min)}
        if told.sum is not None:
            expected["sum"] = (self._sum, told.sum)
        if told.sum_of_squares is not None:
            expected["sum of squares"] = (self._sum_of_squares, told.sum_of_squares)
        found = [*_differences(expected), *self._alarm_difference(told)]
        if bins is not None:
            found += self._bin_differences(bins)
        return found

    def _alarm_difference(self, told: Statistics) -> Iterator[str]:
        if self._alarm_limit is None or (told.alarm and self.longest):
            return
        if told.alarm != (self.max > self._alarm_limit):
            state = "on" if told.alarm else "off"
            limit = f"the limit {self._alarm_limit} cycles"
            yield f"the alarm is {state}, the largest sample {self.max}, {limit}"

    def _bounds(self, told: Statistics) -> Iterator[str]:
        if self.n and told.max < self.max:
            yield f"max is {told.max} there, but {self.max} is among the samples"
        if self.n and told.min > self.min:
            yield f"min is {told.min} there, but {self.min} is among the samples"

    def _bin_differences(self, bins: Bins) -> Iterator[str]:
        # A saturated sample counts as overflow, though its value may have a bin.
        last = self._configuration.bin_of(self._configuration.longest, self._shift)
        different = np.flatnonzero(bins.counts != self._bins)
        if self.longest and last < self._configuration.bins:
            different = different[different != last]
        elif bins.overflow != self._overflow:
            told = f"the overflow of its histogram is {bins.overflow}"
            yield f"{told}, by the samples {self._overflow}"
        for index in different[:3].tolist():
            yield (
                f"bin {index} of its histogram is {bins.counts[index]}, "
                f"that of the samples {self._bins[index]}"
            )
        if bins.counts.sum() + bins.overflow != self.n:
            yield f"its histogram holds {bins.counts.sum() + bins.overflow} samples of {self.n}"


def _differences(expected: dict[str, tuple[int, int]]) -> list[str]:
    return [
        f"{name} is {told} there, {read} by the samples"
        for name, (read, told) in expected.items()
        if read != told
    ]
