"""Checks as terminal tables, and one entry in full."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from latenz.console import Console
from latenz.tune.check import Check
from latenz.tune.context import Context, NotKnown
from latenz.tune.cpus import format_list
from latenz.tune.model import (
    Affinity,
    BootAction,
    CmdlineToken,
    CpuAffinity,
    Entry,
    File,
    ModuleOption,
    NowAction,
    Partition,
    Policy,
    Restart,
    Service,
    Sysctl,
    SysfsWrite,
    Write,
)

_PIPE_WIDTH = 200  # where no terminal says how wide it is, little need be cut
_NARROWEST = 12
_GROUPS = (("wrong", "red"), ("unknown", "yellow"), ("ok", "green"))
_CHOICE = "a choice about security: wrong for latency only"


def print_checks(checks: Sequence[Check], context: Context, console: Console | None = None) -> None:
    """Print one line a check, grouped by state, greatest expected effect first."""
    console = console or _console()
    for state, colour in _GROUPS:
        group = [each for each in checks if each.state == state and not each.is_choice]
        _print_group(console, state, colour, group)
    _print_group(console, _CHOICE, "magenta", [each for each in checks if each.is_choice])
    none = [each for each in checks if each.state == "not applicable"]
    if none and len(none) == len(checks):
        _print_group(console, "not applicable", "dim", none)
    isolated = format_list(context.isolated) or "none"
    counts = {state: sum(each.state == state for each in checks) for state, _ in _GROUPS}
    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    console.print(
        f"{told}, {len(none)} not applicable; profile {context.profile}, isolated CPUs: {isolated}",
        highlight=False,
    )
    console.print("latenz tune check --why ID tells all about one", style="dim", highlight=False)


def _console() -> Console:
    console = Console()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    return console


def _print_group(console: Console, title: str, colour: str, group: Sequence[Check]) -> None:
    if not group:
        return
    table = Table(
        title=f"{title} ({len(group)})",
        title_justify="left",
        title_style=colour,
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for name in ("id", "effect"):
        table.add_column(name, no_wrap=True)
    for name in ("found", "wanted", "why, or where"):
        table.add_column(name, overflow="fold", min_width=_NARROWEST)
    for each in group:
        table.add_row(
            Text(each.id, style=colour),
            each.entry.effect,
            Text(each.found or "-"),
            Text(each.wanted or "-"),
            Text(each.reason) if each.reason else Text(each.where, style="dim"),
        )
    console.print(table)


def print_entry(check: Check, context: Context, console: Console | None = None) -> None:
    """Print everything about one entry: its check, why, risk, source, and what changes it."""
    console = console or _console()
    entry = check.entry
    console.print(Text(f"{entry.id}: {entry.title}", style="bold"))
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in (
        ("state", f"{check.state}: {check.reason}" if check.reason else check.state),
        ("found", check.found or "-"),
        ("wanted", check.wanted or "-"),
        ("where", check.where or "-"),
        ("why", entry.why),
        ("risk", entry.risk),
        ("gives up", entry.consent),
        ("correction", entry.correction),
        *_changes(entry, context),
        ("revert", entry.revert),
        ("by hand", entry.advice),
        ("besides", entry.besides),
        ("source", entry.source),
        ("Linux", entry.linux),
        ("layer", f"{entry.layer}; for {', '.join(entry.profiles)}; effect {entry.effect}"),
    ):
        if text:
            table.add_row(name, Text(text))
    console.print(table)


def _changes(entry: Entry, context: Context) -> list[tuple[str, str]]:
    named = [("now", action) for action in entry.now] + [
        ("at boot", action) for action in entry.boot
    ]
    return [(name, described(action, context)) for name, action in named]


def described(action: NowAction | BootAction, context: Context | None = None) -> str:
    """Return what an action does, in words; placeholders stay without a context to fill them."""

    def filled(value: object) -> str:
        try:
            return str(value) if context is None else context.expand(str(value))
        except NotKnown:
            return str(value)

    fields = {name: filled(getattr(action, name)) for name in type(action).model_fields}
    text = _IN_WORDS[type(action)].format(**fields)
    if isinstance(action, Write | SysfsWrite) and action.beside:
        text += f", where {action.beside.file} is above {action.beside.above}"
    return text


_IN_WORDS: dict[type, str] = {
    Write: "{value} > {write}",
    SysfsWrite: "{value} > {sysfs}",
    Service: "stop, or disable, {service}",
    Partition: "CPU {partition} for latenz.slice alone (an isolated cpuset partition)",
    Restart: "{restart} reads its settings anew",
    Affinity: "threads {affinity} on CPU {cpus} only",
    Policy: "threads {threads}: policy {policy}, priority {priority}",
    Sysctl: "sysctl {sysctl} = {value}",
    CmdlineToken: "kernel command line: {cmdline}",
    ModuleOption: "options {modprobe} {option}={value} (modprobe.d)",
    File: "a file {file}",
    CpuAffinity: "CPUAffinity={cpuaffinity} (systemd)",
}
