"""`latenz attach`: measure a running program's own threads, and explain them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.commands.judging import Globs, Limits
from latenz.commands.on import On

if TYPE_CHECKING:
    from latenz.engines.attach import AttachSettings
    from latenz.experiment.schema import Experiment
    from latenz.model import Deadline

_DEFAULT_DURATION, _WATCHED_DURATION = "10s", "24h"


def command(
    target: Annotated[
        str | None,
        typer.Argument(help="Number of a process or thread, or its name.", show_default=False),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="A service of systemd instead, such as robot.service.")
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", help="A recorded trace (trace.dat, text) instead of what runs now."),
    ] = None,
    thread: Annotated[
        str | None, typer.Option(help="Measure only threads whose names match, such as 'rt*'.")
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            help="Where a cycle begins: PROGRAM:FUNCTION, PROGRAM:FUNCTION%return or"
            " PROGRAM:PROVIDER:PROBE (a static probe)."
        ),
    ] = None,
    end: Annotated[
        str | None, typer.Option(help="Where a cycle ends, written like --begin.")
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            help="How long to measure; ends earlier with the program, or by Ctrl-C.",
            show_default=f"{_DEFAULT_DURATION}; with --watch {_WATCHED_DURATION}",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show each second what was measured so far.")
    ] = False,
    deadline: Limits = None,
    for_: Globs = None,
    on: On = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="New run folder (default: results/<program>-<time>)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Measure how late the cycles of a running program's threads are, and tell why.

    The program is not changed. Its periodic threads are found by their wake-ups; each cycle is
    recorded from when it was due until it is done. Deadlines judge the time until it runs.

    Ends with 0 if all deadlines are met, 1 if one is violated, 3 if one could not be shown, and 130
    if interrupted; what was measured so far is kept.

    With --watch, a table of the threads changes on the terminal, with the cause of the last late
    cycle of each; a pipe gets a line a second.

    With --on, the program runs on another machine: nothing needs to be installed there.

    Example: latenz attach ros2_control_node --thread 'rt*' --duration 60s --deadline 200us
    """
    import shutil

    from latenz.commands.attach_show import print_attached
    from latenz.commands.attach_watch import AttachWatch
    from latenz.commands.judging import asked_deadlines, exit_code
    from latenz.commands.on import asking, target_at
    from latenz.engines.attach import AttachSettings, missing_rights
    from latenz.errors import EXIT_INTERRUPTED, BadInput
    from latenz.experiment.progress import Progress
    from latenz.experiment.runner import run_experiment
    from latenz.statistics import summarize
    from latenz.store.run import Run

    if from_ is not None and on is not None:
        raise BadInput("is a file of this machine", "--from", "leave --on out")
    if from_ is not None and unit is not None:
        raise BadInput("has no units", "--from", "name a thread in it, or none for all of them")
    if (target is None) == (unit is None) and from_ is None:
        what = "names nothing to measure" if target is None else "names two things to measure"
        raise BadInput(what, "attach", "give a process, thread or name, or --unit SERVICE")
    if target is not None and not target.strip():
        raise BadInput("is empty", "attach", "give the number or name of a process")
    _check_places(from_, begin, end)
    settings = AttachSettings(
        engine="attach",
        process=target or "",
        unit=unit or "",
        thread=thread or "",
        begin=begin or "",
        end=end or "",
        trace="" if from_ is None else str(from_),
    )
    deadlines = asked_deadlines(deadline, for_)
    with target_at(on) as machine:
        with asking(machine):
            if from_ is None and (obstacle := missing_rights()):
                raise BadInput(obstacle.reason, on or "attach", obstacle.fix)
            length = duration or (_WATCHED_DURATION if watch else _DEFAULT_DURATION)
            experiment = _experiment(settings, length, deadlines)
        name = experiment.conditions[0].name
        folder = output or _default_folder(name)
        is_new = not folder.exists()
        watching = AttachWatch(folder, name, is_trace=from_ is not None, json=json)
        with watching if watch else Progress(wanted=not json) as observer:
            writer = run_experiment(
                experiment, folder, experiment.conditions, observer, required=True, on=machine
            )
    (account,) = writer.info.conditions
    sample_sets = Run.open(folder).sample_sets
    if not sample_sets and account["state"] == "failed":
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise BadInput(account["reason"], target or unit or str(from_ or ""))
    summaries = [summarize(each, confidence=experiment.file.confidence) for each in sample_sets]
    if json:
        _print_json(folder, writer.info.status, account, [each.to_json() for each in summaries])
    else:
        print_attached(account, summaries)
        typer.echo(f"run folder: {folder}")
    if writer.info.status == "interrupted":
        return EXIT_INTERRUPTED
    return exit_code(summaries)


def _check_places(trace: Path | None, begin: str | None, end: str | None) -> None:
    from latenz.errors import BadInput

    if trace is not None and (begin or end):
        option = "--begin" if begin else "--end"
        raise BadInput("is not told by a trace", option, "leave it out, or leave --from out")


def _experiment(
    settings: "AttachSettings", duration: str, deadlines: "list[Deadline]"
) -> "Experiment":
    """Return what `latenz run` would read from a file."""
    from latenz.durations import parse_duration
    from latenz.errors import BadInput
    from latenz.experiment.schema import (
        ConditionSettings,
        DeadlineSettings,
        Experiment,
        ExperimentFile,
    )
    from latenz.loads.none import NoneSettings
    from latenz.measuring.condition import Condition

    duration_ns = parse_duration(duration, "--duration")
    if duration_ns <= 0:
        raise BadInput(f"{duration!r} is not positive", "--duration", 'write for example "10 s"')
    name = _condition_name(settings.target().name)
    names = [each.name for each in deadlines]
    if twice := next((each for each in names if names.count(each) > 1), None):
        raise BadInput(f"two deadlines are named {twice!r}", "--deadline", "name them: a=1ms b=2ms")
    file = ExperimentFile(
        name=name,
        duration=duration_ns,
        probe={name: settings},
        deadline=tuple(
            DeadlineSettings(
                name=each.name, limit=each.limit_ns, allowed=each.allowed, sets=each.sets
            )
            for each in deadlines
        ),
        condition=(ConditionSettings(name=name, probe=name),),
    )
    condition = Condition(
        name=name,
        bench="host",
        stack="linux",
        system=None,
        stressor="none",
        load=NoneSettings(kind="none"),
        probe=name,
        engine=settings,
        duration_ns=duration_ns,
        folder=Path(),
    )
    return Experiment(Path("attach"), file, [condition])


def _condition_name(program: str) -> str:
    import re

    safe = re.sub(r"[^A-Za-z0-9._+-]+", "-", program).strip("-._+")[:60]
    return safe or "program"


def _default_folder(name: str) -> Path:
    from datetime import datetime

    now = datetime.now().astimezone()
    return Path("results") / f"{name}-{now:%Y%m%d-%H%M%S}"


def _print_json(
    folder: Path, status: str, account: dict[str, Any], sample_sets: list[dict[str, Any]]
) -> None:
    import json as json_module

    attached = account.get("attach", {})
    document = {
        "run": str(folder),
        "status": status,
        "sample_sets": sample_sets,
        "threads": attached.get("threads", []),
        "others": attached.get("others", []),
        "causes": account.get("causes", []),
        "findings": attached.get("findings", []),
        "lost": attached.get("lost"),
        "notes": [*account.get("notes", []), *attached.get("notes", [])],
    }
    typer.echo(json_module.dumps(document))
