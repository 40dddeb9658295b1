"""The register map of S01, copied by hand from the specification.

Not generated: the generator's own source is one of the things that this map checks.
"""

from collections.abc import Callable
from dataclasses import dataclass

from verification.model.configuration import POLICIES, Configuration

WORD = 2**32 - 1
IDENTIFICATION = 0x4C5A0100


@dataclass(frozen=True)
class Register:
    """One register.

    Attributes:
        name: As in the specification.
        address: Byte offset.
        access: "rw", "ro", "w1c" (reads a flag, a written 1 clears it) or "command" (reads 0).
        mask: Bits that exist.
        reset: Its value after a reset while nothing has been measured; None: depends on time.
    """

    name: str
    address: int
    access: str
    mask: int
    reset: int | None


@dataclass(frozen=True)
class _Row:
    name: str
    address: int
    access: str
    present: Callable[[Configuration], bool]
    mask: Callable[[Configuration], int] = lambda _: WORD
    reset: Callable[[Configuration], int | None] = lambda _: 0


def _low(c: Configuration) -> int:
    return c.latency_max & WORD


def _high(c: Configuration) -> int:
    return c.latency_max >> 32


def _log2(value: int) -> int:
    return value.bit_length() - 1


def configuration_word(c: Configuration) -> int:
    """What the register `configuration` reads."""
    word = c.latency_width | _log2(c.depth) << 8
    word |= POLICIES.index(c.overlap_policy) << 16 | c.synchroniser_stages << 18
    if c.histogram:
        word |= _log2(c.histogram_bins) << 20
    return word | c.histogram_sub_bits << 25 | c.log_linear << 29


def features_word(c: Configuration) -> int:
    """What the register `features` reads."""
    flags = (
        *(c.counters, c.watchdog, c.time_stamp, c.snapshot, c.sums, c.histogram),
        *(c.stream, c.freeze, c.self_test, c.num_width == 32, c.shared_time),
    )
    return sum(flag << bit for bit, flag in enumerate(flags))


def _always(_: Configuration) -> bool:
    return True


def _extended(c: Configuration) -> bool:
    return c.extended


def _wide(c: Configuration) -> bool:
    return c.latency_width > 32


def _snapshot(feature: str) -> Callable[[Configuration], bool]:
    return lambda c: c.snapshot and bool(getattr(c, feature))


def _feature(feature: str) -> Callable[[Configuration], bool]:
    return lambda c: bool(getattr(c, feature))


def _bits(count: int) -> Callable[[Configuration], int]:
    return lambda _: 2**count - 1


_ROWS = (
    _Row("we", 0x00, "rw", _always, _bits(1)),
    _Row("alarm_lat", 0x04, "rw", _always, _low, _low),
    _Row("last", 0x08, "ro", _always),
    _Row("max", 0x0C, "ro", _always),
    _Row("min", 0x10, "ro", _always, _low, _low),
    _Row("num", 0x14, "ro", _always),
    _Row("alarm", 0x18, "w1c", _always, _bits(1)),
    _Row("identification", 0x20, "ro", _extended, reset=lambda _: IDENTIFICATION),
    _Row("configuration", 0x24, "ro", _extended, reset=configuration_word),
    _Row("features", 0x28, "ro", _extended, reset=features_word),
    _Row("clock_frequency_hz", 0x2C, "ro", _extended, reset=lambda c: c.clock_frequency_hz),
    _Row("mode", 0x30, "rw", _extended, _bits(3)),
    _Row("command", 0x34, "command", _extended, _bits(2)),
    _Row("status", 0x38, "ro", _extended, reset=lambda _: None),
    _Row("alarm_lat_high", 0x3C, "rw", _wide, _high, _high),
    _Row("last_high", 0x40, "ro", _wide),
    _Row("max_high", 0x44, "ro", _wide),
    _Row("min_high", 0x48, "ro", _wide, _high, _high),
    _Row("orphans", 0x4C, "ro", _feature("counters")),
    _Row("overlaps", 0x50, "ro", _feature("counters")),
    _Row("missed", 0x54, "ro", _feature("counters")),
    _Row("saturations", 0x58, "ro", _feature("counters")),
    _Row("timeout", 0x5C, "rw", _feature("watchdog")),
    _Row("timeouts", 0x60, "ro", _feature("watchdog")),
    _Row("interrupt_status", 0x64, "w1c", _extended, _bits(4)),
    _Row("interrupt_enable", 0x68, "rw", _extended, _bits(4)),
    _Row("write_position", 0x6C, "ro", _extended),
    _Row("post_trigger", 0x70, "rw", _feature("freeze")),
    _Row("trigger_position", 0x74, "ro", _feature("freeze"), reset=lambda _: None),
    _Row("frozen_end", 0x78, "ro", _feature("freeze"), reset=lambda _: None),
    _Row("frozen_count", 0x7C, "ro", _feature("freeze"), reset=lambda _: None),
    _Row("snapshot_num", 0x80, "ro", _feature("snapshot")),
    _Row("snapshot_last", 0x84, "ro", _feature("snapshot")),
    _Row("snapshot_last_high", 0x88, "ro", lambda c: c.snapshot and c.latency_width > 32),
    _Row("snapshot_max", 0x8C, "ro", _feature("snapshot")),
    _Row("snapshot_max_high", 0x90, "ro", lambda c: c.snapshot and c.latency_width > 32),
    _Row("snapshot_min", 0x94, "ro", _feature("snapshot"), reset=lambda _: None),
    _Row(
        "snapshot_min_high",
        0x98,
        "ro",
        lambda c: c.snapshot and c.latency_width > 32,
        reset=lambda _: None,
    ),
    _Row("snapshot_sum", 0x9C, "ro", _snapshot("sums")),
    _Row("snapshot_sum_high", 0xA0, "ro", _snapshot("sums")),
    *(
        _Row(f"snapshot_sum_of_squares_{i}", 0xA4 + 4 * i, "ro", _snapshot("sums"))
        for i in range(4)
    ),
    _Row("snapshot_time", 0xB4, "ro", _snapshot("time_stamp"), reset=lambda _: None),
    _Row("snapshot_time_high", 0xB8, "ro", _snapshot("time_stamp"), reset=lambda _: None),
    _Row("snapshot_orphans", 0xBC, "ro", _snapshot("counters")),
    _Row("snapshot_overlaps", 0xC0, "ro", _snapshot("counters")),
    _Row("snapshot_missed", 0xC4, "ro", _snapshot("counters")),
    _Row("snapshot_saturations", 0xC8, "ro", _snapshot("counters")),
    _Row("histogram_overflow", 0xCC, "ro", _feature("histogram")),
    _Row("histogram_shift", 0xD0, "rw", _feature("histogram"), _bits(6)),
    _Row("stream_dropped", 0xD4, "ro", _feature("stream")),
    _Row("stream_sent", 0xD8, "ro", _feature("stream")),
    _Row("self_test_delay", 0xE0, "rw", _feature("self_test")),
    _Row("self_test_count", 0xE4, "rw", _feature("self_test")),
    _Row("time_low", 0xE8, "ro", _feature("time_stamp"), reset=lambda _: None),
    _Row("time_high", 0xEC, "ro", _feature("time_stamp"), reset=lambda _: None),
)

ADDRESS = {row.name: row.address for row in _ROWS}


def registers(configuration: Configuration) -> list[Register]:
    """The registers that exist; every other address answers SLVERR."""
    return [
        Register(
            row.name,
            row.address,
            row.access,
            row.mask(configuration),
            row.reset(configuration),
        )
        for row in _ROWS
        if row.present(configuration)
    ]
