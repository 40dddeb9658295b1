"""What stacks with our firmware in them share: preparing it, and reading what it measured."""

from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path

from latenz.boards.console import Received, Stream
from latenz.boards.firmware import Parameters, image, installed
from latenz.engines import InterruptSettings
from latenz.errors import BadInput
from latenz.explain.software import Program
from latenz.explain.symbols import elf_symbols
from latenz.model import SampleSet
from latenz.stacks.base import Job

_SECOND_NS = 1_000_000_000
WARM_UP = 10
"""Interrupts that come before the first measured one."""


def firmware_settings(job: Job) -> InterruptSettings:
    """Return the settings of the firmware.

    Raises:
        BadInput: Something else measures.
    """
    settings = job.condition.engine
    if not isinstance(settings, InterruptSettings):
        raise BadInput(
            f"the engine {settings.engine!r} is no firmware", job.condition.name, "take interrupt"
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
    )
    return image(board, settings.optimization, parameters, job.folder)


def firmware_program(job: Job, board: str, load_address: int = 0) -> Program:
    """Return the firmware's symbols.

    Args:
        job: What is measured.
        board: The firmware's board.
        load_address: Where a guest's image is loaded.
    """
    settings = firmware_settings(job)
    elf = installed(board, settings.optimization).with_suffix(".elf")
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
    return [_sample_set(job, received, stream, notes) for stream in streams]


def ticks_ns(received: Received) -> tuple[list[int], float]:
    """Return the latencies of the first stream in nanoseconds, and the timer's tick.

    Raises:
        BadInput: The firmware sent no samples.
    """
    streams = [stream for stream in received.streams.values() if stream.latency_ticks]
    if received.hello is None or not streams:
        raise BadInput("sent no samples", "the firmware")
    hz = int(received.hello["timer_hz"])
    return _nanoseconds(streams[0].latency_ticks, hz), _SECOND_NS / hz


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
