"""`latenz ip`: Latencies IPs on boards and simulated ones."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from latenz.ip.record import Plan, Recording
    from latenz.ip.replay import Comparison, Replayed
    from latenz.ip.replay import Plan as ReplayPlan
    from latenz.ip.target import Options
    from latenz.store.run import RunWriter, Status

command = typer.Typer(
    help="Measure interrupts in an FPGA with the Latencies IP: read, watch, selftest, replay.\n\n"
    "Example, without a board: latenz ip read sim:latency_bench -o results/bench",
    no_args_is_help=True,
)

_TARGET = typer.Argument(
    help="sim:latency_bench, unix:PATH, tcp:HOST:PORT, serial:/dev/ttyUSBN, uio:/dev/uioN "
    "or mem:S00+SIZE,S01.",
    show_default=False,
)
_INSTANCE = typer.Option(help="Only the instance of this name, such as T2.")
_SEED = typer.Option(help="sim: seed of the simulated processor.")
_GENERIC = typer.Option(
    help="sim: a generic of the design, such as latency_width_g=32; may be repeated."
)
_CLOCK = typer.Option(help='uio, mem: frequency of aclk, such as "100 MHz".')
_EXTENDED = typer.Option("--extended", help="uio, mem: it has additions, with identification.")
_SECRET = typer.Option(help="tcp: file with the secret of the board's bridge, yours alone.")
_JSON = typer.Option("--json", help="Print JSON.")


@command.command()
def read(
    target: Annotated[str, _TARGET],
    output: Annotated[Path, typer.Option("-o", "--output", help="New run folder.")],
    samples: Annotated[
        int | None, typer.Option(help="Until each instance has that many (default: 400).")
    ] = None,
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Until Ctrl-C, or --samples; unlimited.")
    ] = False,
    alarm: Annotated[
        str | None, typer.Option(help="Latency above which it raises its alarm, such as 20us.")
    ] = None,
    timeout: Annotated[
        str, typer.Option(help="Give up after this long without a new sample.")
    ] = "30s",
    instance: Annotated[str | None, _INSTANCE] = None,
    seed: Annotated[int, _SEED] = 1,
    generic: Annotated[list[str] | None, _GENERIC] = None,
    clock: Annotated[str | None, _CLOCK] = None,
    extended: Annotated[bool, _EXTENDED] = False,
    secret: Annotated[Path | None, _SECRET] = None,
    json: Annotated[bool, _JSON] = False,
) -> int:
    """Start a series in each IP, and write its samples into a run folder.

    Ends with 0; 1 if the alarm was raised, or hardware and samples contradict each other; 3 if
    too few samples came, or too few to show that --alarm is met; 130 if interrupted. Samples that
    came are kept in any case.

    Example: latenz ip read sim:latency_bench --samples 400 --alarm 2us -o results/bench
    """
    from latenz.errors import BadInput
    from latenz.ip.instance import open_instances
    from latenz.ip.record import Plan, Recording
    from latenz.ip.target import open_target
    from latenz.signals import noticed_signals
    from latenz.store.run import RunWriter

    if samples is not None and samples < 1:
        raise BadInput(f"{samples} samples", "--samples", "it is at least 1")
    wanted = samples if samples is not None or continuous else 400
    plan = Plan(wanted, continuous, _above_zero(alarm, "--alarm"), _seconds(timeout, "--timeout"))
    options = _options(seed, generic, clock, extended, secret, progress=not json)
    with open_target(target, options) as link:
        recording = Recording(open_instances(link, instance), plan)
        simulated = target.startswith("sim")
        with noticed_signals() as stopped:  # before there is a run that could be left unfinished
            writer = RunWriter(output, command=sys.argv, seed=seed if simulated else None)
            _record(recording, plan, writer, stopped, json)
    return _told(recording, output, json)


def _record(
    recording: "Recording",
    plan: "Plan",
    writer: "RunWriter",
    stopped: Callable[[], bool],
    json: bool,
) -> None:
    """Record and store; what was recorded is stored even if the board goes away."""
    from latenz.progress import counting

    recording.journal_in(writer)
    try:
        with counting("recording", plan.samples, wanted=not json) as progress:
            recording.run(stopped, progress)
    finally:
        recording.store_in(writer)
        status: dict[str | None, Status] = {None: "failed", "interrupted": "interrupted"}
        writer.close(status.get(recording.outcome, "complete"))


def _told(recording: "Recording", output: Path, json: bool) -> int:
    """Print what was recorded; return the exit code."""
    from latenz.errors import EXIT_GATE_VIOLATED, EXIT_INTERRUPTED, EXIT_NOT_SHOWN
    from latenz.statistics import summarize
    from latenz.store.run import Run

    run = Run.open(output)
    summaries = [summarize(each) for each in run.sample_sets]
    if json:
        import json as json_module

        document = {
            "run": str(output),
            "status": run.info.status,
            "outcome": recording.outcome,
            "alarm": recording.alarm,
            "remarks": recording.remarks(),
            "sample_sets": [summary.to_json() for summary in summaries],
        }
        typer.echo(json_module.dumps(document))
    else:
        from latenz.show import print_summaries

        print_summaries(summaries)
        for remark in recording.remarks():
            typer.echo(remark, err=True)
        if recording.outcome == "stalled":
            typer.echo("no more samples came; see --timeout", err=True)
        typer.echo(f"run folder: {output}")
    if recording.outcome == "interrupted":
        return EXIT_INTERRUPTED
    verdicts = {verdict.verdict for summary in summaries for verdict in summary.deadlines}
    if recording.alarm or recording.disagrees or "violates" in verdicts:
        return EXIT_GATE_VIOLATED
    return EXIT_NOT_SHOWN if recording.outcome == "stalled" or "not shown" in verdicts else 0


@command.command()
def watch(
    target: Annotated[str, _TARGET],
    once: Annotated[bool, typer.Option("--once", help="One report, and end.")] = False,
    interval: Annotated[str, typer.Option(help="From one report to the next.")] = "1s",
    deadline: Annotated[str | None, typer.Option(help="A limit to judge by, such as 20us.")] = None,
    instance: Annotated[str | None, _INSTANCE] = None,
    seed: Annotated[int, _SEED] = 1,
    generic: Annotated[list[str] | None, _GENERIC] = None,
    clock: Annotated[str | None, _CLOCK] = None,
    extended: Annotated[bool, _EXTENDED] = False,
    secret: Annotated[Path | None, _SECRET] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document a report.")] = False,
) -> None:
    """Show what the IPs count, until Ctrl-C.

    Only reads registers, except that the IPs of a simulated board (sim:) are started first.

    Example: latenz ip watch tcp:zcu102:7421 --deadline 20us
    """
    from latenz.commands.watching import Printer
    from latenz.deadlines import parse_deadline
    from latenz.durations import parse_interval
    from latenz.ip.instance import open_instances
    from latenz.ip.show import table, to_json
    from latenz.ip.target import open_target
    from latenz.ip.watch import Watcher

    interval_ns = parse_interval(interval, "--interval")
    limit = parse_deadline(deadline) if deadline else None
    options = _options(seed, generic, clock, extended, secret, progress=not json)
    with open_target(target, options) as link:
        instances = open_instances(link, instance)
        if target.startswith("sim"):
            for each in instances:
                each.start()
        watcher = Watcher(instances, limit)
        printer = Printer(table, to_json, json)
        if once:
            printer.show(watcher.watch(interval_ns))
        else:
            printer.follow(watcher.report, lambda: watcher.watch(interval_ns))


@command.command()
def selftest(
    target: Annotated[str, _TARGET],
    instance: Annotated[str | None, _INSTANCE] = None,
    seed: Annotated[int, _SEED] = 1,
    generic: Annotated[list[str] | None, _GENERIC] = None,
    clock: Annotated[str | None, _CLOCK] = None,
    extended: Annotated[bool, _EXTENDED] = False,
    secret: Annotated[Path | None, _SECRET] = None,
    json: Annotated[bool, _JSON] = False,
) -> int:
    """Check registers, and let each IP measure delays that are known to the cycle.

    Ends the series that runs. Ends with 0 if all is right, 1 if not, and 3 if an IP was built
    without self test, so that its delays could not be checked.

    Example: latenz ip selftest sim:latency_bench --generic self_test_g=true
    """
    from latenz.ip.instance import open_instances
    from latenz.ip.selftest import checks
    from latenz.ip.target import open_target

    options = _options(seed, generic, clock, extended, secret, progress=not json)
    with open_target(target, options) as link:
        results = [result for each in open_instances(link, instance) for result in checks(each)]
    if json:
        import json as json_module

        document = {
            "checks": [
                {"instance": r.instance, "check": r.check, "result": r.result, "found": r.found}
                for r in results
            ]
        }
        typer.echo(json_module.dumps(document))
    else:
        from latenz.console import Console
        from latenz.ip.show import checks_table

        Console().print(checks_table(results))
    return _worst({result.result for result in results})


def _worst(results: set[str]) -> int:
    from latenz.errors import EXIT_GATE_VIOLATED, EXIT_NOT_SHOWN

    if "wrong" in results:
        return EXIT_GATE_VIOLATED
    return EXIT_NOT_SHOWN if "not there" in results else 0


def _options(
    seed: int,
    generic: list[str] | None,
    clock: str | None,
    extended: bool,
    secret: Path | None,
    progress: bool,
) -> "Options":
    from latenz.ip.target import Options

    return Options(
        seed=seed,
        generics=tuple(generic or ()),
        clock=clock,
        extended=extended,
        secret=secret,
        progress=progress,
    )


def _above_zero(text: str | None, option: str) -> int | None:
    from latenz.durations import parse_duration
    from latenz.errors import BadInput

    if text is None:
        return None
    time_ns = parse_duration(text, option)
    if time_ns <= 0:
        raise BadInput(f"{text!r} is not above zero", option)
    return time_ns


def _seconds(text: str, option: str) -> float:
    return (_above_zero(text, option) or 0) / 1_000_000_000


@command.command()
def replay(
    trace: Annotated[
        Path, typer.Argument(help="VCD file, run folder, samples.parquet or importable file.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="New run folder.")],
    start: Annotated[
        str | None, typer.Option(help="VCD: signal that starts a latency; SIGNAL:fall too.")
    ] = None,
    end: Annotated[
        str | None, typer.Option(help="VCD: signal that ends a latency; SIGNAL:fall too.")
    ] = None,
    overlap: Annotated[
        str, typer.Option(help="A start while one is open is: drop, restart or queue.")
    ] = "drop",
    clock: Annotated[
        str | None,
        typer.Option(
            help="Clock of the IP, such as 100MHz (default: fast enough that no edge is rounded)."
        ),
    ] = None,
    set_name: Annotated[
        str | None, typer.Option("--set", help="The sample set, where there are several.")
    ] = None,
    json: Annotated[bool, _JSON] = False,
) -> int:
    """Let a trace drive a simulated Latencies IP, and compare what it measures with the trace.

    Ends with 0 if both are the same to the clock cycle, 1 if not, and 130 if interrupted.

    Example: latenz ip replay waves.vcd --start irq --end ack -o results/replayed
    """
    from latenz.durations import parse_frequency
    from latenz.errors import EXIT_GATE_VIOLATED, EXIT_INTERRUPTED
    from latenz.importers.pairing import check_policy
    from latenz.ip.replay import Plan, compare, sample_set
    from latenz.ip.trace import read_trace
    from latenz.signals import noticed_signals
    from latenz.store.run import RunWriter

    check_policy(overlap)
    hertz = parse_frequency(clock, "--clock") if clock else None
    plan = Plan.of(read_trace(trace, start, end, overlap, set_name), overlap, hertz)
    if plan.announcement:
        typer.echo(plan.announcement, err=True)
    with noticed_signals() as stopped:  # before there is a run that could be left unfinished
        writer = RunWriter(output, command=sys.argv)
        measured = _replayed(plan, stopped, wanted=not json)
        if (result := sample_set(plan, measured)) is not None:
            writer.add(result)
        writer.close("complete" if measured.is_whole else "interrupted")
    if not measured.is_whole:
        return EXIT_INTERRUPTED
    comparison = compare(plan, measured)
    _print_comparison(plan, comparison, output, json)
    return 0 if comparison.identical else EXIT_GATE_VIOLATED


def _replayed(plan: "ReplayPlan", stopped: Callable[[], bool], wanted: bool) -> "Replayed":
    from latenz.ip.replay import replay as run_replay
    from latenz.progress import counting

    with counting("cycles", plan.cycles, wanted=wanted) as progress:
        return run_replay(plan, stopped, progress)


def _print_comparison(
    plan: "ReplayPlan", comparison: "Comparison", output: Path, json: bool
) -> None:
    cycle_ns, largest_ns = float(plan.cycle_ns), comparison.largest_ns
    if json:
        import json as json_module

        document = {
            "run": str(output),
            "samples": comparison.samples,
            "expected": comparison.expected,
            "in_trace": comparison.in_trace,
            "identical": comparison.identical,
            "exact": plan.sampled.is_exact,
            "cycle_ns": cycle_ns,
            "cycles": plan.cycles,
            "merged_edges": plan.sampled.merged,
            "largest_difference_ns": None if largest_ns is None else float(largest_ns),
            "differences": comparison.differences,
        }
        typer.echo(json_module.dumps(document))
        return
    typer.echo(f"{comparison.samples} samples; a clock cycle is {cycle_ns:g} ns")
    if comparison.identical and plan.sampled.is_exact:
        typer.echo("identical: each is that of the trace, to the clock cycle")
    elif comparison.identical and largest_ns is not None:
        away = f"up to {float(largest_ns):g} ns from the trace's own"
        typer.echo(f"as this clock samples the trace, {away}")
    elif comparison.identical:
        typer.echo(
            f"as this clock samples the trace, which has {comparison.in_trace} latencies itself, "
            f"some of them others: {plan.sampled.merged} edges come too soon for this clock, or in "
            "one cycle with the other signal's"
        )
    for difference in comparison.differences:
        typer.echo(f"different: {difference}")
    typer.echo(f"run folder: {output}")
