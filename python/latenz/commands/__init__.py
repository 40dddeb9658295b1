"""One module for each verb: a function `command` that parses, calls a package, and prints.

Modules here import only the standard library and typer at the top, so that help answers at once;
what a command needs is imported inside it.
"""

from typing import Annotated

import typer

Force = Annotated[bool, typer.Option("--force", help="Replace a file that Latenz did not write.")]
