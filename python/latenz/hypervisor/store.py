"""Runs of the hypervisor as run folders, and back."""

import sys
from importlib.metadata import version
from pathlib import Path

from latenz.analysis.simulate import BEGINNINGS
from latenz.analysis.timeline import drawable, schedule_picture, telling_part
from latenz.boards.places import emulator
from latenz.errors import BadInput
from latenz.files import file_in
from latenz.hypervisor.build import Built
from latenz.hypervisor.configuration import BOARDS
from latenz.hypervisor.results import Measured, measured, off_the_grid
from latenz.hypervisor.run import Boot
from latenz.hypervisor.schedule import each_processor, timeline_of
from latenz.hypervisor.trace import (
    STATISTICS_FILE,
    TRACE_FILE,
    read_records,
    read_statistics,
    trace_file,
)
from latenz.model import HANDLINGS, Metadata, SampleSet, TimeBase
from latenz.store.run import Run, RunWriter
from latenz.system import System, read_system, write_system
from latenz.system.writer import write_arrivals

_SYSTEM_FILE, _ARRIVALS_FILE = "system.toml", "arrivals.csv"


def new_run(folder: Path, bench: str) -> RunWriter:
    """Begin a run folder.

    Raises:
        BadInput: It exists and is not empty, or cannot be written.
    """
    return RunWriter(
        folder.absolute(),
        command=sys.argv,
        environment={bench: emulator()} if bench in BOARDS else {},
    )


def keep(writer: RunWriter, name: str, built: Built, boot: Boot, bench: str) -> None:
    """Store a run: a sample set for each source, the trace, and what was run.

    Args:
        writer: The run folder, with the board's logs.
        name: What the samples are to be called by.
        built: What was run.
        boot: What it brought.
        bench: Where.

    Raises:
        BadInput: Something cannot be written.
    """
    run, folder = boot.measured, writer.folder
    for processor, trace in boot.traces.items():
        (folder / trace_file(processor)).write_bytes(trace)
    if boot.statistics:
        (folder / STATISTICS_FILE).write_bytes(boot.statistics)
    write_system(built.stamped, folder / _SYSTEM_FILE)
    names = [source.name for source in built.system.sources]
    times_ns = built.arrivals.by_source(built.system, run.irqs)
    write_arrivals(dict(zip(names, times_ns, strict=True)), folder / _ARRIVALS_FILE)
    sets = [
        _sample_set(name, number, built, run, bench)
        for number, figures in enumerate(run.outcome.sources)
        if figures.n
    ]
    for each in sets:
        writer.add(each)
    for system, own in each_processor(built.system, run):
        part = timeline_of(system, own, *telling_part(system, own.irqs))
        picture = schedule_picture(drawable(part))
        (folder / _picture(own.processor)).write_text(picture, encoding="utf-8")
    writer.info.conditions.append(
        {
            "condition": name,
            "repetition": 1,
            "state": "measured" if run.outcome.complete else "interrupted",
            "bench": bench,
            "mode": built.mode,
            "command": list(boot.command),
            "costs_ns": run.costs and run.costs.to_json(),
            "statistics": run.statistics.model_dump(),
            "sample_sets": [each.metadata.name for each in sets],
        }
    )
    writer.close("complete" if run.outcome.complete else "interrupted")


def _picture(processor: int) -> str:
    return f"schedule-{processor}.svg" if processor else "schedule.svg"


def _sample_set(name: str, number: int, built: Built, run: Measured, bench: str) -> SampleSet:
    irqs, figures = run.irqs, run.outcome.sources[number]
    own = irqs.source == number
    begin_ns = irqs.top_start_ns if run.outcome.latency_from == "top" else irqs.arrival_ns
    shares = (figures.direct, figures.interposed, figures.delayed)
    notes = [] if run.outcome.complete else ["not all interrupts had ended"]
    notes += off_the_grid(built.system, run)
    if built.processors > 1:
        notes.append("other processors ran, and the emulator counts their instructions, too")
    metadata = Metadata(
        name=f"{name}/{figures.name}",
        time_base=TimeBase.VIRTUAL,
        bench=bench,
        stack=f"hypervisor, mode {built.mode}",
        condition=name,
        from_event=BEGINNINGS[run.outcome.latency_from],
        to_event="end of the bottom handler",
        tool="latenz hypervisor",
        tool_version=version("latenz"),
        handled={each: n / figures.n for each, n in zip(HANDLINGS, shares, strict=True)},
        resolution_ns=run.clock.at_least_ns(1),
        source=f"source {figures.name}",
        notes=tuple(notes),
    )
    return SampleSet.from_columns(
        metadata,
        latency_ns=(irqs.end_ns - begin_ns)[own],
        t_ns=irqs.arrival_ns[own],
        handling=irqs.handling[own],
    )


def stored(folder: Path) -> tuple[System, Measured]:
    """Return what was run, and what it showed, from a run folder.

    Raises:
        BadInput: It is none that `latenz hypervisor run` wrote.
    """
    Run.open(folder)
    file_in(folder, TRACE_FILE)  # refused if it lies elsewhere, before it is missed
    told = read_statistics(_content(folder, STATISTICS_FILE), str(folder / STATISTICS_FILE))
    traces = {}
    for each in told.processors:
        name = trace_file(each.cpu)
        traces[each.cpu] = read_records(_content(folder, name), str(folder / name))
    file_in(folder, _ARRIVALS_FILE)  # which the system names: refused if it lies elsewhere
    system = read_system(file_in(folder, _SYSTEM_FILE) or folder / _SYSTEM_FILE)
    return system, measured(system, system.mode, traces, told)


def _content(folder: Path, name: str) -> bytes:
    path = file_in(folder, name)
    if path is None:
        remedy = "give one that `latenz hypervisor run -o` wrote"
        raise BadInput(f"has no {name}", str(folder), remedy)
    return path.read_bytes()
