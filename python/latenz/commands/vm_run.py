"""`latenz vm run`: measures in a virtual machine, stores what comes back, and prints it."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from latenz.commands.judging import exit_code

if TYPE_CHECKING:
    from pathlib import Path

    from latenz.stacks.base import Job
    from latenz.statistics import Summary
    from latenz.vm.guest import Guest
    from latenz.vm.run import Measured
    from latenz.vm.settings import VmSettings

NESTED = "kvm-in-tcg"
"""Real KVM on an emulated host, in virtual time."""


@dataclass(frozen=True)
class Plan:
    """What is measured, and by what.

    Attributes:
        settings: The machine.
        made: What it boots; None: on an emulated host, which is given its own.
        reason: Why not by KVM; empty with KVM.
        job: What to measure, for how long, and where files go.
        trace: Also record what the kernels do, and explain.
    """

    settings: "VmSettings"
    made: "Guest | None"
    reason: str
    job: "Job"
    trace: bool


def check(plan: Plan) -> None:
    """Tell what this host lacks, before anything is written.

    Raises:
        BadInput: A device, memory, or the kernel's tracer is not there.
    """
    from latenz.errors import BadInput
    from latenz.vm.host import check_host

    if plan.made is None:
        _check_nested(plan.settings)
        return
    check_host(plan.settings)
    if plan.trace and plan.settings.accelerator == "kvm":
        from latenz.traces.ring import obstacle

        if missing := obstacle():
            raise BadInput(missing.reason, "--trace", missing.fix or "leave it out")


def _check_nested(settings: "VmSettings") -> None:
    """Refuse what this host has and an emulated one has not."""
    from latenz.errors import BadInput

    given = {
        "--disk": settings.disk,
        "--tap": settings.tap,
        "--passthrough": settings.passthrough,
    }
    for option, value in given.items():
        if value is not None:
            raise BadInput(f"an emulated host has no {value}", option, "leave it out")


def measured(plan: Plan, json: bool) -> "tuple[Measured, list[Summary]]":
    """Measure, store and print; return what came, and the figures."""
    import sys

    from latenz import environment
    from latenz.errors import BadInput
    from latenz.model import TimeBase
    from latenz.store.run import RunWriter

    is_silicon = plan.made is not None and plan.settings.accelerator == "kvm"
    base = TimeBase.SILICON if is_silicon else TimeBase.VIRTUAL
    metadata = plan.job.metadata.model_copy(update={"time_base": base})
    folder = plan.job.folder.parent
    writer = RunWriter(
        folder.absolute(), command=sys.argv, environment={"host": environment.describe()}
    )
    job = replace(plan.job, metadata=metadata, folder=writer.folder / plan.job.folder.name)
    plan = replace(plan, job=job)
    status: Any = "failed"
    try:
        found = _boot(plan, json)
        for each in found.sets:
            writer.add(each)
        status = "interrupted" if found.stopped else "failed" if found.trouble else "complete"
        writer.info.conditions.append(_told(plan, found, writer.folder))
    finally:
        writer.close(status)
    if found.trouble and not found.sets:
        raise BadInput(found.trouble, str(job.folder / "console.log"))
    return _report(folder, plan, found, json)


def _boot(plan: Plan, json: bool) -> "Measured":
    from latenz.benches.vm import nested_planned_ns
    from latenz.experiment.progress import Progress
    from latenz.signals import noticed_signals
    from latenz.vm.run import measure, measure_nested, planned_ns

    settings, job = plan.settings, plan.job
    if plan.reason:
        typer.echo(f"latenz: emulated, in virtual time: {plan.reason}", err=True)
    lasts_ns = planned_ns(settings, job) if plan.made else nested_planned_ns(job.condition)
    with noticed_signals() as stopped, Progress(wanted=not json) as progress:
        progress.planned(lasts_ns)
        progress.measuring(job.condition.name, lasts_ns)

        def tell(phase: str) -> None:
            progress.update(phase, None)

        if plan.made is None:
            return measure_nested(settings, job, trace=plan.trace, stopped=stopped, tell=tell)
        return measure(settings, plan.made, job, trace=plan.trace, stopped=stopped, tell=tell)


def _told(plan: Plan, found: "Measured", folder: "Path") -> dict[str, Any]:
    """Return what the run keeps of how it was measured."""
    state = "interrupted" if found.stopped else "failed" if found.trouble else "measured"
    condition = plan.job.condition
    return {
        "condition": condition.name,
        "state": state,
        **({"reason": found.trouble} if found.trouble else {}),
        "accelerator_reason": plan.reason,
        "engine": {"name": condition.engine.engine, "settings": condition.engine.model_dump()},
        "load": {"name": condition.load.kind, "settings": condition.load.model_dump()},
        "sample_sets": [each.metadata.name for each in found.sets],
        **found.account,
        **(_causes(plan, found, folder) if plan.trace else {}),
    }


def _causes(plan: Plan, found: "Measured", folder: "Path") -> dict[str, Any]:
    """Return why the worst moments were late, and which side's trace is missing."""
    from latenz.traces.recording import explained

    if found.recorded is None:
        return {"traces": [], "causes": [], "trace_notes": ["nothing was recorded"]}
    told = explained(found.recorded, folder)
    if plan.made is not None and plan.settings.accelerator == "tcg":
        alone = "emulation has no exits, and time of its own: only the guest was recorded"
        told["trace_notes"] = [alone, *told["trace_notes"]]
    return told


def _report(
    folder: "Path", plan: Plan, found: "Measured", json: bool
) -> "tuple[Measured, list[Summary]]":
    from latenz.statistics import summarize
    from latenz.store.run import Run

    run = Run.open(folder)
    summaries = [summarize(each) for each in run.sample_sets]
    [account] = run.info.conditions
    if json:
        _print_json(plan, account, {"run": str(folder), "status": run.info.status}, summaries)
    else:
        _print_tables(account, found, summaries)
        typer.echo(f"run folder: {folder}")
    return found, summaries


_TRACED = ("traces", "guest_traces", "causes", "trace_notes")


def _print_json(
    plan: Plan, account: dict[str, Any], run: dict[str, Any], summaries: "list[Summary]"
) -> None:
    import json

    document = {
        **run,
        "accelerator": account["accelerator"],
        "accelerator_reason": plan.reason,
        "time_base": str(plan.job.metadata.time_base),
        "boot_wall_ns": account["boot_wall_ns"],
        "without_effect": account["without_effect"],
        "guest": account.get("guest"),
        "sample_sets": [summary.to_json() for summary in summaries],
        **{key: account[key] for key in _TRACED if key in account},
    }
    typer.echo(json.dumps(document, indent=1))


def _print_tables(account: dict[str, Any], found: "Measured", summaries: "list[Summary]") -> None:
    from latenz.console import say
    from latenz.show import print_summaries
    from latenz.traces.show import print_accounts

    print_summaries(summaries)
    print_accounts([account])
    if found.trouble:
        typer.echo(f"ended early: {found.trouble}", err=True)
    elif not found.sets:
        typer.echo("interrupted before anything was measured", err=True)
    if account["without_effect"] and account["accelerator"] != "kvm":
        say(f"without effect here: {', '.join(account['without_effect'])}")


def code(found: "Measured", summaries: "list[Summary]", accept_emulated: bool) -> int:
    """Return what the command ends with."""
    from latenz.errors import EXIT_INTERRUPTED, EXIT_NOT_SHOWN

    if found.stopped:
        return EXIT_INTERRUPTED
    judged = exit_code(summaries, None, accept_emulated)
    return judged or (EXIT_NOT_SHOWN if found.trouble else 0)
