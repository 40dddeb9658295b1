"""Boots systems under the hypervisor and takes what it tells."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from latenz.boards.payload import Payload
from latenz.boards.places import environment_of
from latenz.boards.setup import ensure_boards
from latenz.errors import BadInput, closest
from latenz.files import scratch_place
from latenz.hypervisor.build import Built
from latenz.hypervisor.configuration import BOARDS
from latenz.hypervisor.results import Measured, measured
from latenz.hypervisor.trace import (
    MOST_TICKS,
    RECORD,
    STATISTICS_FILE,
    Kind,
    PartitionStatistics,
    ProcessorStatistics,
    Records,
    SourceStatistics,
    Statistics,
    read_records,
    read_statistics,
    trace_file,
)

if TYPE_CHECKING:
    from latenz.boards.console import Received

SENDER = 3
"""The hypervisor's number in frames."""

MEMORY_MIB = {"virt": 1024, "virt-gicv3": 1024, "zcu102": 2048, "raspi4b": 2048}
"""Memory of each bench's board."""
_KINDS = {"raspi4b": "img"}
"""Of images: its firmware, and the emulator in its place, enters no other at EL2."""
_TICK_US = 1  # turns of other cores: longer ones use up the budgets of jobs
_BOOT_S, _WALL_S_A_SECOND, _RECORDS_A_SECOND = 120, 30, 1000
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Boot:
    """What one boot brought.

    Attributes:
        measured: What it showed.
        traces: The file of each processor's trace.
        statistics: The file `statistics.json`; empty if the run was cut off before it.
        command: What the board was started with.
        console: The last lines of the board's console.
    """

    measured: Measured
    traces: dict[int, bytes]
    statistics: bytes
    command: tuple[str, ...]
    console: tuple[str, ...]


def environment_for(bench: str) -> Path:
    """Return the environment of a bench that the hypervisor runs on.

    Raises:
        BadInput: It does not run there.
    """
    if bench not in BOARDS:
        what = f"{bench!r} is not a bench for the hypervisor"
        raise BadInput(what, "--bench", closest(bench, BOARDS))
    return environment_of(bench)


def ensure_built() -> None:
    """Build emulator, hypervisor and guests unless that was done.

    Raises:
        BadInput: Something is missing.
    """
    if obstacle := ensure_boards():
        raise BadInput(obstacle.reason, "hypervisor", obstacle.fix and f"run {obstacle.fix}")


def boot(
    built: Built,
    bench: str,
    folder: Path | None = None,
    *,
    stopped: Callable[[], bool] = lambda: False,
    report: Callable[[int], None] = lambda _records: None,
) -> Boot:
    """Boot an image and take what it tells; return what that showed.

    Args:
        built: The image.
        bench: One of `BOARDS`.
        folder: Takes the board's logs; None: nobody does.
        stopped: Asked now and then; True ends the run, and what has come so far counts.
        report: Called now and then with how many records of the trace have come.

    Raises:
        BadInput: The board failed, said something damaged, or was stopped before it told anything.
    """
    received, command = received_from(
        built, bench, folder, stopped, lambda found: report(_records(found))
    )
    return _taken(built, received, command, cut_off=not is_done(received))


def boot_counted(
    built: Built,
    bench: str,
    folder: Path | None = None,
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[Statistics, Records]:
    """Boot an image whose trace has no room for all of a run; return what it counted.

    Args:
        built: The image.
        bench: One of `BOARDS`.
        folder: Takes the board's logs; None: nobody does.
        stopped: Asked now and then; True gives the run up.

    Returns:
        The statistics, and the last records of the trace of the first processor with slots.

    Raises:
        BadInput: As `boot`; or the run was stopped.
    """
    received, _ = received_from(built, bench, folder, stopped, lambda _received: None)
    if not is_done(received):
        raise BadInput("was stopped before it told anything", "the run")
    return counted(received)


def counted(received: "Received") -> tuple[Statistics, Records]:
    """Return the statistics of a run that has told all, and the last records of its first trace.

    Raises:
        BadInput: What came is damaged.
    """
    _check_whole(received)
    statistics = read_statistics(bytes(received.files.get(STATISTICS_FILE, b"")))
    name = trace_file(statistics.cpu)
    return statistics, read_records(bytes(received.files.get(name, b"")), name)


def received_from(
    built: Built,
    bench: str,
    folder: Path | None,
    stopped: Callable[[], bool],
    tell: Callable[["Received"], None],
    memory: Path | None = None,
) -> tuple["Received", tuple[str, ...]]:
    """Boot an image; return what it said, and what the board was started with.

    Args:
        built: The image.
        bench: One of `BOARDS`.
        folder: Takes the board's logs; None: nobody does.
        stopped: Asked now and then; True ends the run.
        tell: Called now and then with what has come.
        memory: A file that is to hold the board's memory.

    Raises:
        BadInput: The board failed.
    """
    from latenz.boards.console import Collector
    from latenz.boards.environment import board_in
    from latenz.boards.reception import Listener

    environment = environment_for(bench)
    with _own_folder(folder) as logs:
        image = logs / f"image.{_KINDS.get(bench, 'elf')}"
        built.write(image, bench)
        payload = _payload(built, bench, image, memory)
        collector = Collector(payload.uarts)
        listener = Listener(is_done, stopped, tell)
        with board_in(environment) as (target, driver):
            driver.prepare(payload, logs, ())
            target.activate(driver)
            driver.on()
            trouble = listener.receive(driver, collector, payload)
            command = tuple(driver.command)
        collector.finish()
    received = collector.received
    if trouble is not None:
        raise BadInput(trouble, bench)
    return received, command


@contextmanager
def _own_folder(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder.absolute()  # the emulator runs elsewhere
        return
    with tempfile.TemporaryDirectory(prefix="latenz-hypervisor-", dir=scratch_place()) as name:
        yield Path(name)


def _payload(built: Built, bench: str, image: Path, memory: Path | None) -> Payload:
    virtual_s = built.arrivals.end_ns // _SECOND_NS + 1
    limit_s = _BOOT_S + virtual_s * _WALL_S_A_SECOND * built.processors
    limit_s += len(built.arrivals) // _RECORDS_A_SECOND
    return Payload(
        kernel=image,
        cpus=built.processors,
        memory_mib=MEMORY_MIB[bench],
        hypervisor=True,
        memory_file=memory,
        tick_us=_TICK_US if built.processors > 1 else None,
        boot_limit_s=limit_s,
        limit_s=limit_s,
    )


def is_done(received: "Received") -> bool:
    """Tell whether the hypervisor has told all."""
    return SENDER in received.ended


def _records(received: "Received") -> int:
    traces = (content for name, content in received.files.items() if name != STATISTICS_FILE)
    return sum(map(len, traces)) // RECORD.itemsize


def _taken(built: Built, received: "Received", command: tuple[str, ...], *, cut_off: bool) -> Boot:
    # Of a file only what came without a gap is kept: a line cut off in the middle does no harm.
    if not cut_off:
        _check_whole(received)
    traces = {
        processor: bytes(received.files[trace_file(processor)])
        for processor in built.kept
        if trace_file(processor) in received.files
    }
    told = bytes(received.files.get(STATISTICS_FILE, b""))
    if cut_off:
        told = b""
        traces = {at: x[: len(x) // RECORD.itemsize * RECORD.itemsize] for at, x in traces.items()}
    records = {at: read_records(content, trace_file(at)) for at, content in traces.items()}
    statistics = _so_far(built, received, records) if cut_off else read_statistics(told)
    found = measured(built.system, built.mode, records, statistics, complete=not cut_off)
    return Boot(found, traces, told, command, tuple(received.lines))


def _check_whole(received: "Received") -> None:
    if received.damaged or received.missing:
        what = f"{received.damaged} frames were damaged, {received.missing} lost"
        raise BadInput(what, "console", "run it again")


def _so_far(built: Built, received: "Received", traces: Mapping[int, Records]) -> Statistics:
    """Return what is known of a run that was stopped while it told."""
    told = [_processor_so_far(at, records) for at, records in traces.items() if _switches(records)]
    if not told or received.hello is None:
        raise BadInput("was stopped before it told anything", "the run")
    whole = np.concatenate(list(traces.values()))
    raised, completed = (
        np.bincount(
            whole["source"][whole["kind"] == kind], minlength=len(built.system.sources)
        ).tolist()
        for kind in (Kind.TOP_HANDLER, Kind.BOTTOM_END)
    )
    first, *others = told
    return Statistics(
        **first.model_dump(),
        others=tuple(others),
        counter_hz=received.hello["counter_hz"],
        sources=tuple(
            SourceStatistics(name=source.name, raised=raised[at], completed=completed[at])
            for at, source in enumerate(built.system.sources)
        ),
        partitions=tuple(
            PartitionStatistics(name=name, state="unknown") for name in built.system.partitions
        ),
    )


def _switches(records: Records) -> int:
    return int((records["kind"] == Kind.SLOT_SWITCH).sum())


def _processor_so_far(processor: int, records: Records) -> ProcessorStatistics:
    """Return what a trace shows of a processor: its first slot is the epoch."""
    first = records[records["kind"] == Kind.SLOT_SWITCH][0]
    epoch_tick = int(first["start"]) - int(first["value"])
    if abs(epoch_tick) >= MOST_TICKS:
        raise BadInput("tells a time that no counter reaches", "the trace", "run it again")
    return ProcessorStatistics(
        cpu=processor,
        epoch_tick=epoch_tick,
        cycles=0,
        trap_ticks=0,
        records_written=len(records),
        records_kept=len(records),
    )
