"""Options of every command that reads files of other tools: what such a file cannot tell."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from latenz.errors import BadInput

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME_BASES = ("silicon", "virtual", "simulated")
_PANEL = "Files of other tools"


def _option(text: str, *names: str) -> Any:
    return Annotated[
        str | None, typer.Option(*names, help=text, rich_help_panel=_PANEL, show_default=False)
    ]


_OPTIONS = {
    "format_name": _option("Format; found out from the content if absent.", "--format"),
    "time_base": _option("Clock the values were read from: silicon, virtual or simulated."),
    "unit": _option("Unit of a file that prints none: ns, us, ms or s."),
    "start": _option("VCD, ILA, CSV of levels: signal that starts a latency; SIGNAL:fall too."),
    "end": _option("VCD, ILA, CSV of levels: signal that ends a latency; SIGNAL:fall too."),
    "overlap": _option(
        "With --start: a start while one is open is: drop (default), restart, queue."
    ),
    "clock_period": _option('ILA: period of its clock, such as "10 ns".'),
    "machine": _option("What the file was measured on, such as 'relay 7, Cortex-A53'."),
    "measured": _option("When it was measured, such as 2026-11-21 or 2026-11-21T14:30Z."),
    "note": _option("What else a reader of its figures must know."),
}


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of what is imported, as its last ones.

    The command has a parameter `importing`, which gets them as `latenz.importers.read` takes them:
    those that were given.
    """
    given = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    own = [
        each.replace(annotation=hints[each.name])
        for each in given.parameters.values()
        if each.name != "importing"
    ]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _OPTIONS.items()
    ]

    @wraps(command)
    def with_options(**values: Any) -> None:
        told = {name: values.pop(name) for name in _OPTIONS}
        command(**values, importing=_checked(told))

    del with_options.__wrapped__  # typer asks it for the parameters
    with_options.__signature__ = given.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in (*own, *added)}
    return with_options


def _checked(told: dict[str, str | None]) -> dict[str, Any]:
    """Return the options that were given, in the importers' terms."""
    from latenz.model import TimeBase

    found: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    if (time_base := found.get("time_base")) is not None:
        found["time_base"] = TimeBase(_one_of(time_base, "time base", "--time-base", _TIME_BASES))
    if (unit := found.pop("unit", None)) is not None:
        found["unit_ns"] = _UNITS[_one_of(unit, "unit", "--unit", tuple(_UNITS))]
    if (measured := found.get("measured")) is not None:
        found["measured"] = _moment(measured)
    return found


def _moment(text: str) -> str:
    """Return a date, or a date with a time, as it was written."""
    from datetime import datetime

    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(
            f"{text!r} is not a date", "--measured", "write 2026-11-21 or 2026-11-21T14:30Z"
        ) from None
    return text


def _one_of(text: str, what: str, option: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise BadInput(f"{text!r} is not a known {what}", option, ", ".join(known))
    return text
