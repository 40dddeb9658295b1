"""`latenz bound`: the worst-case latency of every interrupt source of a system, or of Linux."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.errors import EXIT_GATE_VIOLATED, EXIT_NOT_SHOWN
from latenz.installation import file_or_shipped

if TYPE_CHECKING:
    from latenz.analysis import Bounds, Printed
    from latenz.analysis.judge import BoundVerdict
    from latenz.hypervisor.configuration import Where
    from latenz.system import Mode, System


def command(
    system: Annotated[
        list[Path],
        typer.Argument(
            help="A system file (TOML), or the name of one that comes with Latenz; with --linux,"
            " runs, files of windows, or traces of a kernel."
        ),
    ],
    mode: Annotated[
        str | None, typer.Option(help="plain, paper or carry, instead of the file's.")
    ] = None,
    deadline: Annotated[
        list[str] | None,
        typer.Option(
            help="Judge by this: [SOURCE=]LIMIT[@ALLOWED], as in 5ms or can=300us@0; may be given"
            " several times. Without SOURCE it is every source's."
        ),
    ] = None,
    horizon: Annotated[
        str | None,
        typer.Option(help="Give up busy windows that are longer than this. (default: 1s)"),
    ] = None,
    linux: Annotated[
        bool,
        typer.Option("--linux", help="Bound Linux' wake-up latency from recorded windows."),
    ] = False,
    interrupts: Annotated[
        str | None,
        typer.Option(
            help="With --linux, what is taken of interrupts: joint (windows of all together),"
            " sources, curves or wcet. (default: joint)"
        ),
    ] = None,
    preemption: Annotated[
        str | None,
        typer.Option(
            help="With --linux, how the kernel preempts: rt, preempt, lazy, voluntary or none; what"
            " was recorded must agree."
        ),
    ] = None,
    to_user: Annotated[
        bool,
        typer.Option("--to-user", help="With --linux, until the thread has read the clock."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Bound the latency of every interrupt source, and say what the bound is made of.

    Each source has two bounds: one if all sources keep their event models, and one that is
    enforced whatever sources of other partitions do. Limits are held against the first.

    With --deadline the exit code is 0 if every bound is within its limit, and 3 if not: a bound
    above a limit does not show that the limit can be exceeded. It is 1 if that is proven and no
    lateness is allowed (@0).

    With --linux it is the wake-up latency of a real-time thread of Linux, under the observed maxima
    of a run that recorded its kernel's windows (windows = true). The exit code is 3 also if a
    condition of the theorem is open, or the maxima are not saturated; see docs/linux-bound.md.

    A system file with a table [linux] has real-time threads of one CPU: how late each can end, and
    chains of them, from a bound of the wake-up latency; see docs/linux-bound.md.

    Example: latenz bound experiments/systems/beckert2014.toml --mode carry

    Example: latenz bound --linux results/linux-bound --deadline 100us
    """
    _check_options(linux, system, mode, horizon, interrupts, preemption, to_user)
    if linux:
        return _bound_linux(system, deadline or [], interrupts, preemption, to_user, json)
    file = file_or_shipped(system[0], "system")
    from latenz.linux_bound.thread_file import has_threads

    if has_threads(file):
        return _bound_threads(file, mode, deadline or [], horizon, json)
    return _bound_system(file, mode, deadline, horizon, json)


def _bound_threads(
    file: Path, mode: str | None, deadlines: "list[str]", horizon: str | None, json: bool
) -> int:
    from latenz.analysis.options import horizon_of
    from latenz.deadlines import parse_deadline
    from latenz.errors import BadInput
    from latenz.linux_bound.judging import judged
    from latenz.linux_bound.show_threads import document, print_responses
    from latenz.linux_bound.thread_file import read_linux_system
    from latenz.linux_bound.threads import response_times

    if mode is not None:
        raise BadInput("is of partitions; threads of Linux have none", "--mode", "leave it out")
    wanted = []
    for text in deadlines:
        name, _, limit = text.rpartition("=")
        wanted.append((name, parse_deadline(limit)))
    system = read_linux_system(file)
    found = response_times(system.threads, system.kernel, system.interrupts, horizon_of(horizon))
    is_open = system.evidence is not None and system.evidence.is_open
    verdicts = judged(found, wanted, is_open)
    if json:
        import json as json_module

        typer.echo(json_module.dumps(document(system, found, verdicts), indent=1))
    else:
        print_responses(system, found, verdicts)
    not_shown = is_open or any(each.verdict == "not shown" for each in verdicts)
    return EXIT_NOT_SHOWN if not_shown or any(each.response is None for each in found) else 0


def _check_options(
    linux: bool,
    paths: "list[Path]",
    mode: str | None,
    horizon: str | None,
    interrupts: str | None,
    preemption: str | None,
    to_user: bool,
) -> None:
    from latenz.errors import BadInput

    of_linux = {"--interrupts": interrupts, "--preemption": preemption, "--to-user": to_user}
    of_systems = {"--mode": mode, "--horizon": horizon}
    for option, value in (of_systems if linux else of_linux).items():
        if value:
            what = "does not go with --linux" if linux else "goes with --linux only"
            raise BadInput(what, option, "leave it out")
    if not linux and len(paths) > 1:
        raise BadInput("one system file is bounded at a time", str(paths[1]), "leave it out")


def _bound_linux(
    paths: "list[Path]",
    deadlines: "list[str]",
    interrupts: str | None,
    preemption: str | None,
    to_user: bool,
    json: bool,
) -> int:
    from typing import cast, get_args

    from latenz.deadlines import parse_deadline
    from latenz.errors import BadInput, closest, shown
    from latenz.linux_bound.evidence import linux_bound, observations_of
    from latenz.linux_bound.layout import Preemption
    from latenz.linux_bound.model import INTERRUPTS, Interrupts
    from latenz.linux_bound.show import document, print_bound

    for option, value, known in (
        ("--interrupts", interrupts, INTERRUPTS),
        ("--preemption", preemption, get_args(Preemption)),
    ):
        if value is not None and value not in known:
            raise BadInput(f"{shown(value)} is none of them", option, closest(value, known))
    wanted = [parse_deadline(text) for text in deadlines]
    found = linux_bound(
        observations_of(paths, cast("Preemption | None", preemption)),
        cast("Interrupts", interrupts or "joint"),
        to_user=to_user,
        claimed=cast("Preemption | None", preemption),
    )
    verdicts = [found.judged(each) for each in wanted]
    if json:
        import json as json_module

        typer.echo(json_module.dumps(document(found, verdicts), indent=1))
    else:
        print_bound(found, verdicts)
    outcomes = {each.verdict for each in verdicts}
    if "violates" in outcomes:
        return EXIT_GATE_VIOLATED
    return EXIT_NOT_SHOWN if found.is_open or "not shown" in outcomes else 0


def _bound_system(
    system: Path, mode: str | None, deadline: "list[str] | None", horizon: str | None, json: bool
) -> int:
    from latenz.analysis import printed_equations
    from latenz.analysis.judge import judged
    from latenz.analysis.options import deadlines_of, horizon_of, mode_of
    from latenz.system.schema import read_system_file

    described, text = read_system_file(system)
    deadlines = deadlines_of(deadline or [], described)
    horizon_ns = horizon_of(horizon)
    described, bounds = _bounds(described, mode_of(mode), horizon_ns, text.where)
    printed = printed_equations(described, horizon_ns=horizon_ns)
    verdicts = [[judged(x, source) for x in deadlines[source.name]] for source in bounds.sources]
    if json:
        import json as json_module

        typer.echo(json_module.dumps(_document(bounds, printed, verdicts), indent=1))
    else:
        from latenz.analysis.show import print_bounds

        print_bounds(described, bounds, printed, verdicts)
    outcomes = {each.verdict for of_source in verdicts for each in of_source}
    if "violates" in outcomes:
        return EXIT_GATE_VIOLATED
    return EXIT_NOT_SHOWN if "not shown" in outcomes else 0


def _bounds(
    system: "System", mode: "Mode | None", horizon_ns: int, where: "Where"
) -> "tuple[System, Bounds]":
    """Return a system as the hypervisor sees it, and its bounds."""
    from dataclasses import replace

    from latenz.analysis import bound

    if not system.hosted:  # no devices: the hypervisor sees the arrivals themselves
        return system, bound(system, mode, horizon_ns=horizon_ns)
    from latenz.hypervisor.stamps import as_stamped, stamp_assumptions

    seen = as_stamped(system, mode or system.mode, where)
    bounds = bound(seen, mode, horizon_ns=horizon_ns)
    told = stamp_assumptions(system, mode or system.mode)
    return seen, replace(bounds, assumptions=bounds.assumptions + told)


def _document(
    bounds: "Bounds", printed: "tuple[Printed, ...]", verdicts: "list[list[BoundVerdict]]"
) -> dict[str, Any]:
    from dataclasses import asdict

    sources = []
    for source, equations, of_source in zip(bounds.sources, printed, verdicts, strict=True):
        evidence = asdict(source)
        head = {key: evidence.pop(key) for key in ("name", "verdict", "wcrt_ns", "enforced_ns")}
        reason = evidence.pop("reason")
        evidence["shares"] = [share._asdict() for share in source.shares]
        evidence["deadlines"] = [each.to_json() for each in of_source]
        sources.append(
            {**head, "as_printed_ns": _as_printed(equations), "reason": reason, **evidence}
        )
    return {
        "mode": bounds.mode,
        "sources": sources,
        "partitions": [asdict(partition) for partition in bounds.partitions],
        "assumptions": bounds.assumptions,
    }


def _as_printed(equations: "Printed") -> dict[str, int | None]:
    return {"eq11": equations.eq11_ns, "eq16": equations.eq16_ns}
