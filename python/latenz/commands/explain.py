"""`latenz explain`: where the time of a trace went, and why its worst moments were late."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.commands import Force

if TYPE_CHECKING:
    from latenz.traces.explaining import Explained
    from latenz.traces.model import Summary, Trace


def command(
    trace: Annotated[
        Path,
        typer.Argument(
            help="trace.dat; perf.data; folder of CTF (LTTng); text of ftrace, trace-cmd report, "
            "perf script or perf kvm stat report; or the folder of a traced run."
        ),
    ],
    guests: Annotated[
        list[Path] | None,
        typer.Argument(help="Traces of guests that ran meanwhile; then the first is the host's."),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(help="Explain the worst samples of this run, measured meanwhile."),
    ] = None,
    worst: Annotated[int, typer.Option(min=0, max=1000, help="How many to explain.")] = 10,
    timeline: Annotated[
        Path | None, typer.Option(help="Write a timeline for Perfetto or Chrome (JSON).")
    ] = None,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Tell where the time of a trace went, and why its worst moments were late.

    Exits of virtual CPUs are counted by reason; idle time stands apart from time that was lost.
    Of a damaged or cut trace, what can be read is told, and where that ended.

    With traces of guests, late moments of the guests are explained, down to what the host did.

    Example: latenz explain trace.dat --timeline timeline.json
    """
    from latenz.traces.ctf import is_ctf

    if guests:
        _refuse_options(samples, timeline)
        return _explain_guests(trace, guests, worst, json)
    if trace.is_dir() and not is_ctf(trace):
        _refuse_options(samples, timeline)
        return _explain_run(trace, worst, json)
    from latenz.outputs import check_output
    from latenz.traces.explaining import Explained, explain
    from latenz.traces.opening import open_trace

    check_output(timeline, (trace, samples), force=force)
    opened = open_trace(trace)
    summary = opened.summary(worst)
    explained = explain(opened, worst, samples) if worst and summary.names else Explained(())
    if timeline:
        _write_timeline(opened, summary, timeline, explained)
    if json:
        _print_json(_document(summary, explained))
        return 0
    from latenz.traces.exits import print_exits
    from latenz.traces.show import print_causes

    print_exits(summary)
    print_causes(explained)
    return 0


def _explain_guests(path: Path, guests: list[Path], worst: int, json: bool) -> int:
    from latenz.errors import BadInput
    from latenz.traces.ctf import is_ctf
    from latenz.traces.exits import print_exits
    from latenz.traces.guests import explain_guests, open_guests
    from latenz.traces.opening import open_trace
    from latenz.traces.reader import RecordedTrace
    from latenz.traces.show import print_causes

    host = None if path.is_dir() and not is_ctf(path) else open_trace(path)
    if not isinstance(host, RecordedTrace):
        raise BadInput("has no events", str(path), "give the recorded trace of the host first")
    opened = open_guests(host, guests, worst)
    explained = explain_guests(host, opened, worst)
    summary = host.summary(worst)
    if json:
        _print_json(_document(summary, explained) | {"guests": [each.to_json() for each in opened]})
        return 0
    print_exits(summary)
    print_causes(explained, "why the worst of the guests were late")
    return 0


def _explain_run(folder: Path, worst: int, json: bool) -> int:
    from dataclasses import replace

    from latenz.traces.exits import print_exits
    from latenz.traces.opening import open_trace
    from latenz.traces.runs import of_run
    from latenz.traces.show import print_causes

    explained = [
        (label, open_trace(path).summary(), replace(why, causes=why.causes[:worst]))
        for label, path, why in of_run(folder)
    ]
    if json:
        conditions = [{"condition": label} | _document(one, why) for label, one, why in explained]
        _print_json({"conditions": conditions})
        return 0
    for label, summary, why in explained:
        typer.echo(f"{label}:")
        print_exits(summary)
        print_causes(why)
    return 0


def _refuse_options(samples: Path | None, timeline: Path | None) -> None:
    from latenz.errors import BadInput

    for name, given in (("--samples", samples), ("--timeline", timeline)):
        if given:
            raise BadInput(
                "needs one trace, not the folder of a run or several", name, "give one trace file"
            )


def _write_timeline(trace: "Trace", summary: "Summary", path: Path, explained: "Explained") -> None:
    from latenz.errors import BadInput
    from latenz.traces.timeline import write_timeline

    if not summary.names:
        raise BadInput("a timeline needs events, and this file has none", "--timeline")
    slices = write_timeline(trace, path, explained.causes)
    typer.echo(f"{path}: {slices} slices; open it at https://ui.perfetto.dev", err=True)


def _document(summary: "Summary", explained: "Explained") -> dict[str, Any]:
    from dataclasses import asdict

    from latenz.traces.exits import exits_json, remarks

    document = asdict(summary)
    document["exits"] = exits_json(summary)
    document["causes"] = [cause.to_json() for cause in explained.causes]
    document["has_exit_events"] = summary.has_exit_events
    document["remarks"] = remarks(summary)
    document["cause_notes"] = list(explained.notes)
    first = ("events", "exits", "truncated_at", "causes")
    return {name: document.pop(name) for name in first} | document


def _print_json(document: dict[str, Any]) -> None:
    import json as json_module

    typer.echo(json_module.dumps(document, indent=1))
