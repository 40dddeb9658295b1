"""A system: partitions that own TDMA slots, and interrupt sources with their handlers.

All times are integers in nanoseconds. Every object is checked when it is built and never changes;
a mistake is a `latenz.errors.BadInput` that names the attribute.
"""

from dataclasses import dataclass
from typing import get_args

from latenz.errors import closest, shown
from latenz.system.consistency import check_channels, check_hosting
from latenz.system.contents import Contents, LatencyFrom, Mode
from latenz.system.fields import LONGEST_NS, BadField
from latenz.system.processors import check_one_processor

_MODES: tuple[str, ...] = get_args(Mode)
_LATENCIES_FROM: tuple[str, ...] = get_args(LatencyFrom)


@dataclass(frozen=True, slots=True)
class System(Contents):
    """Slots and sources on one processor, or on several that each have a cycle of their own.

    It has what `Contents` says.
    """

    def __post_init__(self) -> None:
        if self.slots.__class__ is not tuple:
            object.__setattr__(self, "slots", tuple(self.slots))
        if self.sources.__class__ is not tuple:
            object.__setattr__(self, "sources", tuple(self.sources))
        object.__setattr__(self, "hosted", tuple(self.hosted))
        object.__setattr__(self, "shared", tuple(self.shared))
        object.__setattr__(self, "channels", tuple(self.channels))
        self._check_slots()
        self._check_sources()
        if self.mode not in _MODES:
            raise BadField(self, ("mode",), f"{shown(self.mode)} is not a mode", ", ".join(_MODES))
        if self.latency_from not in _LATENCIES_FROM:
            what = f"{shown(self.latency_from)} is no place where latencies begin"
            raise BadField(self, ("latency_from",), what, ", ".join(_LATENCIES_FROM))
        check_channels(self)
        check_hosting(self)

    @property
    def cycle_ns(self) -> int:
        """The length of one TDMA cycle.

        Raises:
            BadInput: Several processors have slots, each a cycle of its own.
        """
        if self.hosted:
            check_one_processor(self)
        return sum(slot.length_ns for slot in self.slots)

    def _check_slots(self) -> None:
        switch_ns = self.platform.slot_switch_ns
        if not self.slots:
            raise BadField(self, ("slots",), "there is no slot", "give at least one")
        cycle_ns = 0
        for slot in self.slots:
            cycle_ns += slot.length_ns
            if slot.length_ns <= switch_ns:
                raise BadField(
                    self,
                    ("slots", self.slots.index(slot), "length_ns"),
                    f"{slot.length_ns} ns is used up by the slot switch, {switch_ns} ns",
                    "a slot must be longer than that",
                )
        if cycle_ns > LONGEST_NS:
            what = "the TDMA cycle does not fit in 64 bits"
            raise BadField(self, ("slots",), what, "the longest is 292 years")

    def _check_sources(self) -> None:
        if not self.sources:
            raise BadField(self, ("sources",), "there is no source", "give at least one")
        platform = self.platform
        partitions = {slot.partition for slot in self.slots}
        longest_ns = LONGEST_NS - platform.monitor_ns - platform.schedule_ns
        longest_ns -= 2 * platform.context_switch_ns
        names = set()
        for source in self.sources:
            names.add(source.name)
            if source.partition not in partitions:
                raise BadField(
                    self,
                    ("sources", self.sources.index(source), "partition"),
                    f"{source.partition!r} has no slot for the bottom handler of {source.name!r}",
                    closest(source.partition, self.partitions),
                )
            if source.top_ns + source.bottom_ns > longest_ns:
                raise BadField(
                    self,
                    ("sources", self.sources.index(source), "bottom_ns"),
                    "top and bottom handler with the platform's costs do not fit in 64 bits",
                    "the longest is 292 years",
                )
        if len(names) < len(self.sources):
            raise self._twice()

    def _twice(self) -> BadField:
        names = [source.name for source in self.sources]
        at = next(at for at, name in enumerate(names) if name in names[:at])
        what = f"a second source is named {names[at]!r}"
        return BadField(self, ("sources", at, "name"), what, "give each its own name")
