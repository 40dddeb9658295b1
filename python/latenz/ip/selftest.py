"""Does a Latencies IP work where it is? Its registers, its clock, and delays known to the cycle."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from latenz.ip.instance import LatenciesInstance
from latenz.ip.link import NotAnswered
from latenz.ip.registers import LATENCIES_IP_OFFSETS as OFFSETS
from latenz.ip.tally import Tally
from latenz.model import TimeBase

Result = Literal["right", "wrong", "not there"]
_PATTERNS = (0x0000_0000, 0xFFFF_FFFF, 0x5555_5555, 0xAAAA_AAAA, 0x0000_0001)
_FIRST_DELAYS = (0, 1, 100)
_PAIRS = 16
_ABSENT = 0x1C
_SECOND_NS = 1_000_000_000
_PARTS_OF_A_SECOND = 4
_CLOCK_TOLERANCE_PPM = 1_000
"""What two crystals, and a wall clock that is being corrected, may differ by."""
_READ_ONLY = ("last", "max", "min", "num")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at, and what was found."""

    instance: str
    check: str
    result: Result
    found: str


def checks(instance: LatenciesInstance) -> Iterator[Check]:
    """Carry out all checks that an IP and its link allow; the series that runs is ended.

    What is not there is asked for on simulated boards only: on a real bus such an access can end
    the program, or stop the processor.
    """
    name, configuration = instance.name, instance.configuration

    def check(what: str, found: list[str], right: str = "as it must be") -> Check:
        return Check(name, what, "wrong" if found else "right", "; ".join(found) or right)

    kind = "with additions" if configuration.extended else "as published"
    features = ", ".join(sorted(configuration.features)) or "no features"
    sizes = f"{configuration.latency_width} bits, {configuration.depth} samples"
    yield check("identification", [], f"{kind}, {sizes}, {features}")
    instance.stop()  # else its latencies would exceed the limits that are tried
    yield check("alarm_lat holds what is written", _holds(instance))
    yield check("a new series is empty", _empty(instance))
    if instance.link.board.time_base == TimeBase.SIMULATED:
        yield check("what is absent or read only answers SLVERR", _refuses(instance))
    else:
        yield clock_check(instance)
    if not instance.has("self_test"):
        yield Check(
            name, "known delays", "not there", "built without self_test_g: delays are not checked"
        )
        return
    for delay in _FIRST_DELAYS:
        until = delay + _PAIRS - 1
        found = _known_delays(instance, delay)
        yield check(f"delays of {delay} to {until} cycles", found, f"{_PAIRS} samples, exact")


def clock_check(
    instance: LatenciesInstance,
    now_ns: Callable[[], int] = time.monotonic_ns,
    cycles: int | None = None,
) -> Check:
    """Hold the frequency by which cycles become nanoseconds against another clock.

    Everything the IP tells in nanoseconds rests on a number that somebody wrote down.

    Args:
        instance: The IP.
        now_ns: The other clock: this machine's.
        cycles: How long it is watched, at least; None: a quarter of a second.
    """
    what = "its clock is as fast as is said"
    if not instance.has("time_stamp"):
        found = "built without time_stamp_g: its clock is not checked"
        return Check(instance.name, what, "not there", found)

    def reading() -> tuple[int, int, int]:
        before = now_ns()
        low = instance.register("time_low")  # holds the high half
        after = now_ns()
        return before, instance.register("time_high") << 32 | low, after

    told = instance.clock.hertz
    first = reading()
    instance.link.wait(cycles or -(-told // _PARTS_OF_A_SECOND))
    last = reading()
    passed = last[1] - first[1]
    # the two readings are this far apart at least, and at most
    least_ns, most_ns = max(1, last[0] - first[2]), max(1, last[2] - first[0])
    slowest = passed * _SECOND_NS // most_ns
    fastest = -(-passed * _SECOND_NS // least_ns)
    margin = told * _CLOCK_TOLERANCE_PPM // 1_000_000
    fits = slowest - margin <= told <= fastest + margin
    found = f"{told} Hz are said, {slowest} to {fastest} Hz are counted by this machine's clock"
    return Check(instance.name, what, "right" if fits else "wrong", found)


def _holds(instance: LatenciesInstance) -> list[str]:
    longest = instance.configuration.longest
    masks = {"alarm_lat": longest & 0xFFFF_FFFF, "alarm_lat_high": longest >> 32}
    wrong = []
    for name, mask in masks.items():
        if not mask:
            continue
        before = instance.register(name)
        for pattern in _PATTERNS:
            instance.set_register(name, pattern & mask)
            if (found := instance.register(name)) != pattern & mask:
                wrong.append(f"{name}: {found:#x} for {pattern & mask:#x}")
        instance.set_register(name, before)
    return wrong


def _empty(instance: LatenciesInstance) -> list[str]:
    """A series that has just begun has no samples, unless interrupts already come."""
    instance.start()
    measuring = instance.register("we") & 1
    instance.stop()
    told = instance.statistics()
    wrong = [] if measuring else ["we is 0 after 1 was written"]
    if instance.register("we") & 1:
        wrong.append("we is 1 after 0 was written")
    if told.num == 0 and (told.max, told.min) != (0, instance.configuration.longest):
        wrong.append(f"without samples, max is {told.max} and min is {told.min}")
    return wrong


def _refuses(instance: LatenciesInstance) -> list[str]:
    place, link = instance.place, instance.link
    wrong = []
    try:
        link.read(place.s01, _ABSENT)
        wrong.append(f"a read of {_ABSENT:#x} is answered")
    except NotAnswered:
        pass
    writes = {name: (place.s01, OFFSETS[name]) for name in _READ_ONLY} | {"S00": (place.s00, 0)}
    for name, (window, address) in writes.items():
        try:
            link.write(window, address, 1)
            wrong.append(f"a write to {name} is accepted")
        except NotAnswered:
            pass
    return wrong


@contextmanager
def _undisturbed(instance: LatenciesInstance) -> Iterator[None]:
    """Let no setting of its user end or move what is measured: no time-out, no half that freezes.

    Each delay is a new maximum: with the largest `post_trigger`, none of them ends a half.
    """
    features = {"watchdog": ("timeout", 0), "freeze": ("post_trigger", 0xFFFF_FFFF)}
    wanted = dict(setting for feature, setting in features.items() if instance.has(feature))
    before = {name: instance.register(name) for name in wanted}
    for name, value in wanted.items():
        instance.set_register(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            instance.set_register(name, value)


def _known_delays(instance: LatenciesInstance, delay: int) -> list[str]:
    """Let the IP measure delays that it makes itself; say what it found otherwise."""
    configuration = instance.configuration
    pairs = min(_PAIRS, configuration.depth // (2 if instance.has("freeze") else 1))
    with _undisturbed(instance):
        instance.start()
        try:
            instance.run_self_test(delay, pairs)
        finally:
            instance.stop()
    told = instance.statistics()
    read = instance.read_samples(0, min(told.num, configuration.depth))
    expected = list(range(delay, delay + pairs))
    wrong = []
    if (found := read.latency.tolist()) != expected:
        wrong.append(f"found {found}, made {expected}")
    shift = instance.register("histogram_shift") if instance.has("histogram") else 0
    tally = Tally(configuration, shift, alarm_limit=None)  # interrupts before the test may be late
    tally.add(read.latency)
    bins = instance.read_bins() if instance.has("histogram") else None
    return wrong + tally.disagreements(told, bins, 0)
