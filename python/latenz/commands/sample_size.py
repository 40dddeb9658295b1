"""`latenz sample-size`: how many samples a claim needs, before measuring."""

from typing import Annotated

import typer


def command(
    quantile: Annotated[
        float, typer.Option(help="Share of activations that must stay within the limit.")
    ] = 0.999,
    confidence: Annotated[float, typer.Option(help="Of the claim.")] = 0.95,
    exceeding: Annotated[
        int, typer.Option(help="Samples that may exceed the limit all the same.")
    ] = 0,
    error: Annotated[
        float, typer.Option(help="Half width of the interval around a share, for Eq. (3).")
    ] = 0.05,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say how many samples a claim about latencies needs.

    Example: latenz sample-size --quantile 0.9999 --confidence 0.99
    """
    from latenz.statistics import sample_size_for_proportion, sample_size_for_quantile

    bounding = sample_size_for_quantile(quantile, confidence, exceeding)
    proportion = sample_size_for_proportion(confidence, error)
    if json:
        import json as json_module

        document = {
            "quantile": quantile,
            "confidence": confidence,
            "exceeding": exceeding,
            "error": error,
            "n_for_quantile": bounding,
            "n_for_proportion": proportion,
        }
        typer.echo(json_module.dumps(document, indent=2))
        return
    late = f"at most {exceeding} of them" if exceeding else "none of them"
    typer.echo(
        f"{bounding} independent samples, {late} over a limit, show at {confidence:.12g} confidence"
        f" that a share of {quantile:.12g} stays within it, whatever the distribution.\n"
        f"{proportion} samples give any share to within {error:.12g} at {confidence:.12g}"
        " confidence (Eq. (3) of alonso2024); that says nothing about a maximum or a quantile."
    )
