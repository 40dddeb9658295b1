"""What stacks with our firmware in them share: preparing it, and reading what it measured."""

from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path

from latenz.boards.console import Received, Stream
from latenz.boards.firmware import Parameters, image, installed
from latenz.boards.logic import ANSWER_CYCLES, CLOCK_HZ, Logic, bench_logic, check_cycles
from latenz.engines import InterruptSettings
from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.path.software import Program
from latenz.path.symbols import elf_symbols
from latenz.stacks.base import Job

_SECOND_NS = 1_000_000_000
_REAL_BOARD = "zcu102-board"
_BOARD_CLOCK_HZ = 100_000_000
"""Of the logic that hdl/vivado builds."""
WARM_UP = 10
"""Interrupts that come before the first measured one."""
_TTC_HZ = 133_000_000
"""What an emulated board's TTC counts with."""
_BENCH = "bench_latency"
"""The program with the Latencies IP."""
_WAYS = (
    ("T1", "the processor's interrupt rises at the logic", "the logic raises its interrupt"),
    ("T2", "the logic raises its interrupt", "the handler has read the first word"),
)


def firmware_settings(job: Job) -> InterruptSettings:
    """Return the settings of the firmware.

    Raises:
        BadInput: Something else measures.
    """
    settings = job.condition.engine
    if not isinstance(settings, InterruptSettings):
        raise BadInput(
            f"the engine {settings.engine!r} is not firmware", job.condition.name, "take interrupt"
        )
    return settings


def measuring_firmware(job: Job, board: str, start_after_ns: int = 0) -> Path:
    """Return the firmware for a board, with the job's parameters in it.

    Args:
        job: What to measure.
        board: The firmware's board, which need not be the bench's name.
        start_after_ns: Time from the firmware's start to its first measured interrupt.
    """
    settings = firmware_settings(job)
    parameters = Parameters(
        samples=settings.samples,
        period_ns=settings.period,
        exponential=settings.arrivals == "exponential",
        min_distance_ns=settings.min_distance,
        seed=settings.seed,
        wait_for_interrupt=settings.wait == "wfi",
        start_after_ns=start_after_ns,
        warm_up=WARM_UP,
        timer_hz=_TTC_HZ if _with_ip(settings) and job.bench != _REAL_BOARD else 0,
    )
    program = _program(settings)
    return image(board, settings.optimization, parameters, job.folder, program)


def measuring_logic(job: Job) -> Logic | None:
    """Return what the job needs in an emulated board's programmable logic; None: nothing.

    Raises:
        BadInput: It cannot be compiled.
    """
    wanted = _with_ip(firmware_settings(job)) and job.bench != _REAL_BOARD
    return bench_logic() if wanted else None


def _with_ip(settings: InterruptSettings) -> bool:
    return settings.measured_by == "latencies-ip"


def _program(settings: InterruptSettings) -> str:
    return _BENCH if _with_ip(settings) else "latency"


def firmware_program(job: Job, board: str, load_address: int = 0) -> Program:
    """Return the firmware's symbols.

    Args:
        job: What is measured.
        board: The firmware's board.
        load_address: Where a guest's image is loaded.
    """
    settings = firmware_settings(job)
    elf = installed(board, settings.optimization, _program(settings)).with_suffix(".elf")
    return Program("firmware", "firmware", elf_symbols(elf, load_address))


def firmware_sets(job: Job, received: Received, *notes: str) -> list[SampleSet]:
    """Return a sample set for each stream that the firmware sent.

    Raises:
        BadInput: It sent none.
    """
    hello = received.hello
    streams = [stream for stream in received.streams.values() if stream.latency_ticks]
    if hello is None or not streams:
        raise BadInput("the firmware sent no samples", str(job.folder / "console.log"))
    if _with_ip(firmware_settings(job)):
        return _ip_sets(job, received, notes)
    return [_sample_set(job, received, stream, notes) for stream in streams]


def ticks_ns(received: Received) -> tuple[list[int], float]:
    """Return the latencies of the first stream in nanoseconds, and the timer's tick.

    With the Latencies IP in an emulated board: those of T2 up to the read itself.

    Raises:
        BadInput: The firmware sent no samples.
    """
    streams = [stream for stream in received.streams.values() if stream.latency_ticks]
    if received.hello is None or not streams:
        raise BadInput("sent no samples", "the firmware")
    if received.hello["program"] == _BENCH:
        return [each - ANSWER_CYCLES for each in received.streams[1].latency_ticks], 1.0
    hz = int(received.hello["timer_hz"])
    return _nanoseconds(streams[0].latency_ticks, hz), _SECOND_NS / hz


def _ip_sets(job: Job, received: Received, notes: tuple[str, ...]) -> list[SampleSet]:
    """Return T1 and T2 as the IPs' memories held them.

    Raises:
        BadInput: T2 and the instructions that the emulator executed do not agree.
    """
    emulated = job.bench != _REAL_BOARD
    hz = CLOCK_HZ if emulated else _BOARD_CLOCK_HZ
    cycles = received.streams[1].latency_ticks
    if emulated and received.streams[1].complete:
        check_cycles(job.folder, cycles)
        notes = (*notes, "every T2 equals the instructions executed meanwhile, to the clock cycle")
    return [
        _ip_set(job, received, number, hz, notes)
        for number in sorted(received.streams)
        if received.streams[number].latency_ticks
    ]


def _ip_set(
    job: Job, received: Received, number: int, hz: int, notes: tuple[str, ...]
) -> SampleSet:
    hello = received.hello or {}
    settings = firmware_settings(job)
    name, from_event, to_event = _WAYS[number]
    metadata = job.metadata.model_copy(
        update={
            "name": f"{job.metadata.name}/{name}",
            "from_event": from_event,
            "to_event": to_event,
            "tool": f"Latencies IP, firmware {settings.optimization}",
            "tool_version": hello.get("version"),
            "machine": hello.get("core"),
            "cpu": 0,
            "resolution_ns": max(1, _SECOND_NS // hz),
            "period_ns": settings.period,
            "notes": notes,
        }
    )
    latency_ns = _nanoseconds(received.streams[number].latency_ticks, hz)
    return SampleSet.from_columns(metadata, latency_ns=latency_ns)


def _sample_set(job: Job, received: Received, stream: Stream, notes: tuple[str, ...]) -> SampleSet:
    hello = received.hello or {}
    hz = int(hello["timer_hz"])
    settings = firmware_settings(job)
    doubts = [*notes]
    if not stream.complete:
        lost = settings.samples - len(stream.latency_ticks)
        doubts.append(
            f"{lost} of {settings.samples} samples did not arrive; the checksum over all of them"
            " cannot be checked"
        )
    metadata = job.metadata.model_copy(
        update={
            "name": f"{job.metadata.name}/interrupt",
            "from_event": hello.get("from_event", f"{hello['timer']} raises its interrupt"),
            "to_event": hello.get("to_event", "first action of the interrupt's handler"),
            "tool": f"latenz firmware, {settings.optimization}",
            "tool_version": hello.get("version"),
            "machine": hello.get("core"),
            "cpu": 0,
            "resolution_ns": max(1, -(-_SECOND_NS // hz)),
            "period_ns": settings.period if settings.arrivals == "periodic" else None,
            "notes": tuple(doubts),
        }
    )
    latency_ns = _nanoseconds(stream.latency_ticks, hz)
    if stream.gaps:  # nobody knows when those after a gap came
        return SampleSet.from_columns(metadata, latency_ns=latency_ns)
    t_ns = _nanoseconds(accumulate(stream.interarrival_ticks), hz)
    return SampleSet.from_columns(metadata, latency_ns=latency_ns, t_ns=t_ns)


def _nanoseconds(ticks: Iterable[int], hz: int) -> list[int]:
    """Return ticks as whole nanoseconds, to the nearest."""
    return [(each * _SECOND_NS + hz // 2) // hz for each in ticks]
