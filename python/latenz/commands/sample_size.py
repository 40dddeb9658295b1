"""`latenz sample-size`: how long one has to measure for a claim, before measuring."""

from typing import Annotated

import typer

from latenz.commands import level


def command(
    allowed: Annotated[
        str, typer.Option(help='How much lateness is allowed, such as "1/h", "1e-3" or "0.1%".')
    ] = "1/h",
    burst: Annotated[
        str, typer.Option(help="Longest burst of lateness that is tolerated unseen.")
    ] = "1 s",
    confidence: Annotated[
        float, typer.Option(parser=level, metavar="LEVEL", help="Of the claim, one-sided.")
    ] = 0.95,
    late: Annotated[
        int, typer.Option(help="Late episodes that may be seen; for a share, bursts of lateness.")
    ] = 0,
    error: Annotated[
        float, typer.Option(help="Half width of the interval around a share, for Eq. (3).")
    ] = 0.05,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say how long to measure so that `show` can say that a deadline is met.

    Example: latenz sample-size --allowed 1/h
    """
    from latenz.allowance import parse_allowance
    from latenz.console import say
    from latenz.durations import parse_duration
    from latenz.statistics.sample_size import duration_for_allowance, sample_size_for_proportion
    from latenz.statistics.sentence import length

    burst_ns = parse_duration(burst, "--burst")
    allowance = parse_allowance(allowed, "--allowed")
    needed_s = duration_for_allowance(allowance, burst_ns, confidence, late)
    proportion = sample_size_for_proportion(confidence, error)
    if json:
        import json as json_module

        document = {
            "allowed": allowed,
            "burst_s": burst_ns / 1e9,
            "confidence": confidence,
            "late": late,
            "needed_s": needed_s,
            "error": error,
            "n_for_proportion": proportion,
        }
        typer.echo(json_module.dumps(document, indent=2))
        return
    if needed_s is None:
        say("No measurement shows that no activation is ever late; an analysis can (latenz bound).")
    else:
        seen = {0: "nothing late"}.get(late, f"at most {late:,} late")
        claim = f"to show {allowed} at {100 * confidence:.4g} % confidence"
        assumed = " if no burst of lateness is longer than " + length(burst_ns / 1e9)
        assumed = assumed if allowance.kind == "share" else ""
        say(f"{length(needed_s)} ({needed_s:,.6g} s) with {seen} {claim}{assumed}.")
    say(
        f"{proportion} independent samples give any share to within {error:.12g} at"
        f" {confidence:.12g} confidence (Eq. (3) of alonso2024); that says nothing about a maximum"
        " or a quantile."
    )
