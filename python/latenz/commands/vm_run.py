"""`latenz vm run`: an experiment of one condition, in the machine that the options describe."""

from typing import TYPE_CHECKING, Any

import typer

from latenz.commands.judging import exit_code

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from latenz.benches.vm import MachineSetup
    from latenz.experiment.schema import Experiment
    from latenz.measuring.condition import Condition
    from latenz.model import Deadline
    from latenz.statistics import Summary


def measured(
    setup: "MachineSetup",
    condition: "Condition",
    deadlines: "Sequence[Deadline]",
    output: "Path",
    trace: bool,
    json: bool,
    accept_emulated: bool,
) -> int:
    """Measure, store and print; return what the command ends with.

    Raises:
        BadInput: This host lacks something, or nothing came back.
    """
    from latenz.benches.vm import OneMachine
    from latenz.commands.run import print_tables
    from latenz.console import say
    from latenz.errors import EXIT_INTERRUPTED, EXIT_NOT_SHOWN, BadInput
    from latenz.experiment.progress import Progress
    from latenz.experiment.runner import run_experiment
    from latenz.statistics import summarize
    from latenz.store.run import Run

    if setup.reason:
        typer.echo(f"latenz: emulated, in virtual time: {setup.reason}", err=True)
    with Progress(wanted=not json, lines=True) as progress:
        writer = run_experiment(
            _experiment(condition, deadlines),
            output,
            [condition],
            progress,
            required=True,
            trace="causes" if trace else None,
            on=OneMachine(setup),
        )
    [account] = writer.info.conditions
    trouble = account["state"] == "failed" and account.get("reason")
    if trouble and not account.get("sample_sets"):
        raise BadInput(trouble, str(output / condition.name))
    summaries = [summarize(each) for each in Run.open(output).sample_sets]
    if json:
        document = {"run": str(output), "status": writer.info.status}
        _print_json(document, setup, account, summaries)
    else:
        if account["without_effect"] and account["accelerator"] != "kvm":
            say(f"without effect here: {', '.join(account['without_effect'])}")
        print_tables(output, [account], summaries)
    if writer.info.status == "interrupted":
        return EXIT_INTERRUPTED
    judged = exit_code(summaries, None, accept_emulated)
    return judged or (EXIT_NOT_SHOWN if trouble else 0)


def _experiment(condition: "Condition", deadlines: "Sequence[Deadline]") -> "Experiment":
    """Return the experiment that a file would have asked for."""
    from pathlib import Path

    from latenz.experiment.schema import ConditionSettings, Experiment, ExperimentFile

    file = ExperimentFile.model_validate(
        {
            "name": "vm-run",
            "probe": {condition.probe: condition.engine},
            "deadline": [
                {
                    "name": each.name,
                    "limit": each.limit_ns,
                    "allowed": each.allowed,
                    "burst": each.burst_ns,
                    "sets": each.sets,
                }
                for each in deadlines
            ],
            "condition": [
                ConditionSettings(
                    name=condition.name,
                    bench=condition.bench,
                    stressor=condition.stressor,
                    probe=condition.probe,
                    duration=condition.duration_ns,
                )
            ],
        }
    )
    return Experiment(Path("vm run"), file, [condition])


_TRACED = ("traces", "guest_traces", "causes", "trace_notes")


def _print_json(
    document: dict[str, Any],
    setup: "MachineSetup",
    account: dict[str, Any],
    summaries: "list[Summary]",
) -> None:
    import json

    document |= {
        "accelerator": account["accelerator"],
        "accelerator_reason": setup.reason,
        "time_base": str(setup.time_base),
        "boot_wall_ns": account["boot_wall_ns"],
        "without_effect": account["without_effect"],
        "guest": account.get("guest"),
        "sample_sets": [summary.to_json() for summary in summaries],
        **{key: account[key] for key in _TRACED if key in account},
    }
    typer.echo(json.dumps(document, indent=1))
