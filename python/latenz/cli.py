"""The command line: `latenz VERB ...`, one module of `latenz.commands` for each verb."""

import errno
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

from latenz.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, EXIT_READER_GONE, BadInput
from latenz.terminal import guarded

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_GROUPS = {
    "Measure": "run attach vm ip",
    "Judge and show": "show report compare query sample-size import export published",
    "Compute": "bound simulate check explore learn",
    "Look inside": "explain coherence doctor self-check schema",
    "Change": "tune hypervisor icc",
}
"""The help screen. `import` stands in the module `import_`, a `-` becomes a `_`."""
_GROUP_OF = {verb: group for group, verbs in _GROUPS.items() for verb in verbs.split()}
VERBS = tuple(_GROUP_OF)
"""In the order of the help screen."""


def main() -> None:
    """Run one command; a mistake in the input is one line on standard error and exit code 2."""
    _open_what_is_closed()
    with guarded():
        code = _run(sys.argv[1:] or ["--help"])
    sys.exit(code)


def _open_what_is_closed() -> None:
    """Let what is written go nowhere where the caller has closed an output, as `>&-` does."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _run(arguments: list[str]) -> int:
    try:
        code: int | None = _application(arguments)(
            arguments, prog_name="latenz", standalone_mode=False
        )
        sys.stdout.flush()
    except BadInput as mistake:
        code = _refuse(str(mistake))
    except TyperException as mistake:
        context = getattr(mistake, "ctx", None)
        program = context.command_path if context else "latenz"
        code = _refuse(f"{mistake.format_message().rstrip('.')}; see {program} --help")
    except (BrokenPipeError, SystemExit):  # the reader has gone, as in `latenz ... | head`
        _drop_output()
        code = EXIT_READER_GONE
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _drop_output()
        place = error.filename or "standard output"
        code = _refuse(f"{place}: cannot be written ({error.strerror}); make room, or name another")
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    return code or 0


def _drop_output() -> None:
    """Let Python, which writes what is left when it ends, write it to nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse(line: str) -> int:
    print(f"latenz: {' '.join(line.split())}", file=sys.stderr)  # noqa: T201
    return EXIT_BAD_INPUT


def _application(arguments: list[str]) -> typer.Typer:
    """Load the one command that is asked for, or all of them to list them in the help."""
    application = typer.Typer(
        name="latenz",
        help="Tells how late a real-time system can be, and makes it less late.",
        pretty_exceptions_enable=False,
        add_completion=_home_is_ours(),
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback()(_common)
    asked = arguments[0] if arguments and arguments[0] in VERBS else None
    for verb in (asked,) if asked else VERBS:
        module = import_module("latenz.commands." + _module_name(verb))
        if isinstance(module.command, typer.Typer):
            application.add_typer(module.command, name=verb, rich_help_panel=_GROUP_OF[verb])
        else:
            kind = getattr(module, "Command", None)
            panel = _GROUP_OF[verb]
            application.command(name=verb, cls=kind, rich_help_panel=panel)(module.command)
    return application


def _tell_version(asked: bool) -> None:
    if asked:
        from latenz.environment import own_version

        own = own_version()
        revision = f" (git {str(own['revision'])[:12]}{', modified' if own['modified'] else ''})"
        typer.echo(f"latenz {own['version']}{revision if own['revision'] else ''}")
        raise typer.Exit


def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Hold the options before the verb."""


def _home_is_ours() -> bool:
    """Completion is written into the shell's start-up file: root's own, never another user's."""
    with suppress(OSError, RuntimeError):
        return Path.home().stat().st_uid == os.geteuid()
    return False


def _module_name(verb: str) -> str:
    return "import_" if verb == "import" else verb.replace("-", "_")
