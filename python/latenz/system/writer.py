"""Writes systems as the files that `read_system` reads."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from latenz.files import replacing
from latenz.system.arrivals import Arrival, Distances, Exponential, Periodic, RecordedTrace
from latenz.system.channels import Channel
from latenz.system.contents import Source
from latenz.system.hosting import PROGRAMS, Partition
from latenz.system.model import System
from latenz.system.trace import COLUMNS, Times

_UNITS = (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1))


def write_system(system: System, path: Path, comment: str = "", arrivals: str = "") -> None:
    """Write a system file; read again, it gives an equal system.

    Recorded traces go into one file beside it, named like it but ending in `.arrivals.csv`. Paths
    of guests become relative to it.

    Args:
        system: What to write.
        path: The TOML file; it appears only when it is whole.
        comment: Lines to begin the file with.
        arrivals: A file beside it that holds its recorded traces already.

    Raises:
        BadInput: A file cannot be written.
    """
    trace = path.with_suffix(".arrivals.csv")
    recorded = {
        source.name: source.arrival.times_ns
        for source in system.sources
        if isinstance(source.arrival, RecordedTrace)
    }
    if recorded and not arrivals:
        write_arrivals(recorded, trace)
    with replacing(path) as partial:
        text = _text(system, arrivals or trace.name, path.parent, comment)
        partial.write_text(text, encoding="utf-8")


def _text(system: System, trace: str, folder: Path, comment: str) -> str:
    platform = system.platform
    lines = [*(f"# {line}".rstrip() for line in comment.splitlines()), ""] if comment else []
    lines += [
        "[platform]",
        f"slot_switch = {_time(platform.slot_switch_ns)}",
        f"monitor = {_time(platform.monitor_ns)}",
        f"schedule = {_time(platform.schedule_ns)}",
        f"context_switch = {_time(platform.context_switch_ns)}",
        f"limit = {_time(platform.limit_ns)}",
        "",
        "[policy]",
        f'mode = "{system.mode}"',
        f'latency_from = "{system.latency_from}"',
    ]
    for slot in system.slots:
        lines += ["", "[[slot]]", f"partition = {_quoted(slot.partition)}"]
        lines += [f"length = {_time(slot.length_ns)}"]
    for source in system.sources:
        lines += ["", "[[source]]", *_source(source, trace)]
    for partition in system.hosted:
        lines += ["", "[[partition]]", *_partition(partition, folder)]
    for memory in system.shared:
        names = ", ".join(map(_quoted, memory.partitions))
        lines += ["", "[[shared]]", f"name = {_quoted(memory.name)}", f"size = {memory.size:#x}"]
        lines += [f"partitions = [{names}]", f"address = {memory.address:#x}"]
    for channel in system.channels:
        lines += ["", "[[channel]]", *_channel(channel)]
    return "\n".join(lines) + "\n"


def _source(source: Source, trace: str) -> list[str]:
    lines = [
        f"name = {_quoted(source.name)}",
        f"partition = {_quoted(source.partition)}",
        f"top = {_time(source.top_ns)}",
        f"bottom = {_time(source.bottom_ns)}",
        f"arrival = {{ {_arrival(source.arrival, trace)} }}",
    ]
    if source.top_sums_ns is not None:
        lines.insert(3, f"top_sums = {distances_text(source.top_sums_ns)}")
    if source.monitor is not None:
        lines.append(f"monitor = {{ distances = {distances_text(source.monitor.distances_ns)} }}")
    if source.interrupt is not None:
        lines.append(f"interrupt = {source.interrupt}")
    if source.learning is not None:
        events, length = source.learning.events, source.learning.length
        lines.append(f"learn = {{ events = {events}, length = {length} }}")
    return lines


def _partition(partition: Partition, folder: Path) -> list[str]:
    guest = partition.guest
    if guest not in PROGRAMS:
        guest = os.path.relpath(guest, folder)
    lines = [
        f"name = {_quoted(partition.name)}",
        f"guest = {_quoted(guest)}",
        f"memory = {partition.memory:#x}",
        f"cpu = {partition.cpu}",
        f'on_fault = "{partition.on_fault}"',
        f"restarts = {partition.restarts}",
    ]
    if partition.restart_window_ns:
        lines.append(f"restart_window = {_time(partition.restart_window_ns)}")
    if partition.watchdog_ns:
        lines.append(f"watchdog = {_time(partition.watchdog_ns)}")
    if partition.on_watchdog:
        lines.append(f'on_watchdog = "{partition.on_watchdog}"')
    for device in partition.devices:
        lines += ["", "[[partition.devices]]", f"physical = {device.physical:#x}"]
        lines += [f"size = {device.size:#x}", f"interrupts = {list(device.interrupts)}"]
        lines += ["edge = true"] * device.edge
    return lines


def _channel(channel: Channel) -> list[str]:
    return [
        f"name = {_quoted(channel.name)}",
        f"from = {_quoted(channel.sender)}",
        f"to = {_quoted(channel.receiver)}",
        f"size = {channel.size:#x}",
        f"address = {channel.address:#x}",
        f"doorbell = {_quoted(channel.doorbell)}",
    ]


def _arrival(arrival: Arrival, trace: str) -> str:
    match arrival:
        case Periodic(period, jitter, distance):
            return (
                f'kind = "periodic", period = {_time(period)}, jitter = {_time(jitter)}, '
                f"min_distance = {_time(distance)}"
            )
        case Distances(distances):
            return f'kind = "distances", distances = {distances_text(distances)}'
        case Exponential(mean, distance, seed):
            return (
                f'kind = "exponential", mean = {_time(mean)}, min_distance = {_time(distance)}, '
                f"seed = {seed}"
            )
        case RecordedTrace(length=length):
            return f'kind = "trace", file = {_quoted(trace)}, length = {length}'


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # what JSON escapes, TOML reads alike


def _time(nanoseconds: int) -> str:
    """Return a duration in the largest unit that takes it as a whole number."""
    unit, size = next((unit, size) for unit, size in _UNITS if nanoseconds % size == 0)
    return f'"{nanoseconds // size} {unit}"' if nanoseconds else "0"


def distances_text(distances_ns: tuple[int, ...]) -> str:
    """Return minimum distances as a system file takes them."""
    return f"[{', '.join(map(_time, distances_ns))}]"


def write_arrivals(times_by_source: Mapping[str, Times], path: Path) -> None:
    """Write arrivals as CSV, sorted by time; at equal times in the order of the sources.

    Raises:
        BadInput: The file cannot be written.
    """
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    sources = [np.full(len(times), number) for number, times in enumerate(times_by_source.values())]
    times = np.concatenate(list(times_by_source.values()))
    order = np.argsort(times, kind="stable")
    names = pa.array(list(times_by_source)).take(pa.array(np.concatenate(sources)[order]))
    table = pa.table([names, pa.array(times[order])], names=list(COLUMNS))
    with replacing(path) as partial:
        csv.write_csv(table, partial, csv.WriteOptions(quoting_style="needed"))
