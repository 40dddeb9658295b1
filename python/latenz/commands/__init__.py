"""One module for each verb: a function `command` that parses, calls a package, and prints.

Modules here import only the standard library and typer at the top, so that help answers at once;
what a command needs is imported inside it.
"""

from typing import Annotated

import typer

from latenz.errors import BadInput


def level(text: str | float) -> float:
    """Return a confidence level that was written as 0.95 or as 95%."""
    from latenz.importers.source import share

    if (value := share(str(text))) is None:
        raise BadInput(
            f"{text!r} is not a level between 0 and 1", "--confidence", "write 0.95 or 95%"
        )
    return float(value)


Force = Annotated[bool, typer.Option("--force", help="Replace a file that Latenz did not write.")]

Confidence = Annotated[
    float,
    typer.Option(
        parser=level, metavar="LEVEL", help="Of the bounds on lateness, one-sided: 0.95 or 95%."
    ),
]
