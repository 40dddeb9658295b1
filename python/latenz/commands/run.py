"""`latenz run`: carry out an experiment."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from latenz.commands.consent import StartPrograms, require_consent
from latenz.commands.judging import AcceptEmulated, exit_code
from latenz.commands.on import On, target_of
from latenz.commands.shipped import ExperimentFile

if TYPE_CHECKING:
    from latenz.benches.base import TraceKind
    from latenz.benches.late import OnLate
    from latenz.measuring.condition import Condition
    from latenz.remote import TargetUrl
    from latenz.statistics import Summary


class Command(TyperCommand):
    """Lets `--trace` stand alone, as it may before the name of an experiment."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of a command line."""
        return super().parse_args(ctx, _with_kinds(args))


def _with_kinds(words: list[str]) -> list[str]:
    """Return a command line in which every `--trace` says for what."""
    made: list[str] = []
    rest = deque(words)
    while rest and rest[0] != "--":
        word = rest.popleft()
        if word == "--trace":
            is_kind = bool(rest) and rest[0] == "windows"
            word = f"--trace={rest.popleft() if is_kind else 'causes'}"
        made.append(word)
    return [*made, *rest]


def command(
    experiment: ExperimentFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="New run folder (default: results/<experiment>-<time>)."
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Measure only conditions that match, such as 'idle*'; several times."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Print the conditions' names.")] = False,
    bench: Annotated[
        str | None, typer.Option(help="Run every condition on this bench instead.")
    ] = None,
    on: On = None,
    duration: Annotated[
        str | None, typer.Option(help="Measure each condition this long instead, such as 24h.")
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="[windows]",
            help="Also record a kernel trace and explain the worst samples; with windows, record"
            " what latenz bound --linux needs.",
        ),
    ] = None,
    late: Annotated[
        str | None, typer.Option(help="A latency above this is late, such as 100us.")
    ] = None,
    on_late: Annotated[
        str | None,
        typer.Option(help="Run this command, once for each measurement, when one is late."),
    ] = None,
    stop_late: Annotated[
        bool, typer.Option("--stop-late", help="End a measurement when one is late.")
    ] = False,
    start_programs: StartPrograms = False,
    accept_emulated: AcceptEmulated = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Measure every condition of an experiment and judge it by its deadlines.

    Ends with 0 if all deadlines are met, 1 if one is violated, 3 if one could not be shown or is
    met in emulated time only, and 130 if interrupted; what was measured so far is kept.

    Latencies are looked at once a second for --late. The command of --on-late is told the latency
    by LATENZ_LATENCY_NS, and LATENZ_LIMIT_NS, LATENZ_CONDITION and LATENZ_FOLDER.

    With --trace windows the kernel's own events of masking, scheduling, interrupts and idle are
    recorded on the measured CPUs, in a bounded ring that keeps the newest: latenz bound --linux RUN
    then tells what they bound, and which term this kernel leaves open.

    With --on, the machine that is measured is another: nothing needs to be installed there.

    Example: latenz run quick --only 'idle*' -o results/mine
    """
    from latenz.experiment.progress import Progress
    from latenz.experiment.runner import run_experiment, select
    from latenz.experiment.schema import Experiment
    from latenz.show import print_targets

    kind = _kind_of_trace(trace)
    target = _target(on, bench)
    read = Experiment.read(experiment, bench)
    chosen = _shortened(select(read, only or ()), duration)
    if list_:
        _print_names([each.name for each in chosen], json)
        return 0
    require_consent(chosen, start_programs)
    wish = _on_late(late, on_late, stop_late)
    folder = output or _default_folder(read.file.name)
    required = only == [chosen[0].name]
    with Progress(wanted=not json, lines=True) as progress:
        writer = run_experiment(read, folder, chosen, progress, required, kind, wish, target)
    summaries = _summaries(folder, read.file.confidence)
    accounts = writer.info.conditions
    if json:
        targets = {each.target: each.target_url for each in chosen if each.target}
        _print_json(folder, writer.info.status, writer.info.seed, accounts, summaries, targets)
    else:
        print_targets(chosen, writer.info.environment)
        print_tables(folder, accounts, [*summaries, *_published(read.file.published)])
        for name in read.file.published:
            typer.echo(f"notes on the published values: latenz published {name}")
    return _exit_code(writer.info.status, accounts, exit_code(summaries, None, accept_emulated))


def _kind_of_trace(told: str | None) -> "TraceKind | None":
    from latenz.errors import BadInput, shown

    if told is None:
        return None
    if told == "windows":
        return "windows"
    if told == "causes":
        return "causes"
    raise BadInput(f"{shown(told)} is none of them", "--trace", "write --trace or --trace windows")


def _target(on: str | None, bench: str | None) -> "TargetUrl | None":
    from latenz.errors import BadInput

    if on is not None and bench not in (None, "host"):
        raise BadInput(f"the bench {bench} is on this machine", "--on", "leave one of them out")
    return target_of(on)


def _on_late(late: str | None, command: str | None, stops: bool) -> "OnLate | None":
    """Return what to do once a latency passes a limit; None: nothing.

    Raises:
        BadInput: The limit is missing or none, or the command cannot be run.
    """
    import shlex
    import shutil

    from latenz.benches.late import OnLate
    from latenz.durations import parse_duration
    from latenz.errors import BadInput

    if late is None:
        if command is None and not stops:
            return None
        option = "--stop-late" if command is None else "--on-late"
        raise BadInput("needs to know what is late", option, "add for example --late 100us")
    if command is None and not stops:
        raise BadInput("does nothing by itself", "--late", "add --on-late COMMAND or --stop-late")
    limit_ns = parse_duration(late, "--late")
    if limit_ns <= 0:
        raise BadInput(f"{late!r} is not positive", "--late", "write for example 100us")
    try:
        words = tuple(shlex.split(command or ""))
    except ValueError as error:
        raise BadInput(f"cannot be split into words ({error})", "--on-late") from None
    if command is not None and (not words or shutil.which(words[0]) is None):
        what = f"{words[0] if words else command!r} is not a program that can be run"
        raise BadInput(what, "--on-late", "name a program; for a shell: sh -c '...'")
    return OnLate(limit_ns, words, stops)


def _shortened(conditions: "Sequence[Condition]", duration: str | None) -> "list[Condition]":
    from latenz.durations import parse_duration
    from latenz.errors import BadInput

    if duration is None:
        return list(conditions)
    duration_ns = parse_duration(duration, "--duration")
    if duration_ns <= 0:
        raise BadInput(f"{duration!r} is not positive", "--duration", 'write for example "10 s"')
    if not any(each.duration_ns for each in conditions):
        raise BadInput(
            "these conditions last until their last interrupt", "--duration", "leave it out"
        )
    return [replace(each, duration_ns=each.duration_ns and duration_ns) for each in conditions]


def _default_folder(experiment: str) -> Path:
    from datetime import datetime

    now = datetime.now().astimezone()
    return Path("results") / f"{experiment}-{now:%Y%m%d-%H%M%S}"


_TRACED = ("traces", "trace_notes", "causes", "windows_trace", "windows_notes")
_TOLD = ("condition", "repetition", "state", "reason", "notes", *_TRACED)


def _summaries(folder: Path, confidence: float) -> "list[Summary]":
    from latenz.statistics import summarize
    from latenz.store.run import Run

    return [summarize(each, confidence=confidence) for each in Run.open(folder).sample_sets]


def _published(names: "Sequence[str]") -> "list[Summary]":
    from latenz import published
    from latenz.statistics import summarize

    sets = [each for name in names for each in published.load(name)]
    return [replace(summarize(each), notes=(), deadlines=()) for each in sets]


def _print_names(names: list[str], json: bool) -> None:
    import json as json_module

    typer.echo(json_module.dumps({"conditions": names}) if json else "\n".join(names))


def _print_json(
    folder: Path,
    status: str,
    seed: int | None,
    accounts: list[dict[str, Any]],
    summaries: "list[Summary]",
    targets: dict[str, str],
) -> None:
    import json as json_module

    from latenz.robot_account import controls

    document: dict[str, Any] = {
        "run": str(folder),
        "status": status,
        "seed": seed,
        "conditions": [
            {key: each.get(key) for key in _TOLD if key in each or key not in _TRACED}
            for each in accounts
        ],
        "sample_sets": [summary.to_json() for summary in summaries],
    }
    if targets:
        document["targets"] = targets
    if robots := controls(folder, [summary.name for summary in summaries]):
        document["control"] = [control.to_json(name) for name, control in robots]
    typer.echo(json_module.dumps(document))


def print_tables(folder: Path, accounts: list[dict[str, Any]], summaries: "list[Summary]") -> None:
    """Print what a run found, as `latenz run` ends with it."""
    from latenz.robot_account import controls
    from latenz.show import print_controls, print_summaries

    print_summaries(summaries)
    print_controls(controls(folder, [summary.name for summary in summaries]))
    for account in accounts:
        if account["state"] != "measured":
            reason = account.get("reason", "; ".join(account.get("notes", [])))
            typer.echo(f"{account['condition']}: {account['state']}{': ' * bool(reason)}{reason}")
    if any("traces" in account for account in accounts):
        from latenz.traces.show import print_accounts

        print_accounts(accounts)
    for account in accounts:
        for note in account.get("windows_notes", ()):
            typer.echo(f"{account['condition']}: {note}")
    if any("windows_trace" in account for account in accounts):
        typer.echo(f"for the bound: latenz bound --linux {folder}")
    typer.echo(f"run folder: {folder}")


def _exit_code(status: str, accounts: list[dict[str, Any]], judged: int) -> int:
    from latenz.errors import EXIT_INTERRUPTED, EXIT_NOT_SHOWN

    if status == "interrupted":
        return EXIT_INTERRUPTED
    unmeasured = any(account["state"] != "measured" for account in accounts)
    return judged or (EXIT_NOT_SHOWN if unmeasured else 0)
