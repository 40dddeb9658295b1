"""The command line: `latenz VERB ...`, one module of `latenz.commands` for each verb."""

import sys
from importlib import import_module

import typer

from latenz.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, BadInput

VERBS = (
    "show",
    "query",
)
"""In the order of the help screen. `import` stands in the module `import_`."""


def main() -> None:
    """Run one command; a mistake in the input is one line on standard error and exit code 2."""
    try:
        _application(sys.argv[1:])(prog_name="latenz")
    except BadInput as mistake:
        print(f"latenz: {mistake}", file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_BAD_INPUT)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has gone, as `latenz ... | head` does
        sys.stderr.close()
        sys.exit(EXIT_BAD_INPUT)


def _application(arguments: list[str]) -> typer.Typer:
    """Load the one command that is asked for, or all of them to list them in the help."""
    application = typer.Typer(
        name="latenz",
        help="Tells how late a real-time system can be, and makes it less late.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback()(lambda: None)
    asked = arguments[0] if arguments and arguments[0] in VERBS else None
    for verb in (asked,) if asked else VERBS:
        module = import_module("latenz.commands." + verb.replace("import", "import_"))
        application.command(name=verb)(module.command)
    return application
