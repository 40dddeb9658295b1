"""Reports of channels for people and for programs."""

import math
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from latenz.icc.layout import Channel, Field
from latenz.icc.look import Content, Value
from latenz.icc.watch import Report, SideState, Watched

_SECOND = 1_000_000_000
_STYLES = {"alive": "green", "silent": "yellow", "closed": "dim", "never there": "dim"}


def to_json(report: Report) -> dict[str, Any]:
    """Return a report as a document; what it cannot know is null."""
    return {
        "region": report.region,
        "bytes": report.size,
        "removed": report.is_removed,
        "window_s": _seconds(report.window_ns),
        "channels": [_watched_json(watched) for watched in report.watched],
        "unreadable": [
            {"offset": each.offset, "reason": each.reason} for each in report.unreadable
        ],
    }


def _watched_json(watched: Watched) -> dict[str, Any]:
    channel = watched.channel
    rate = watched.messages_per_s
    return {
        "name": channel.name,
        "kind": channel.kind.name.lower(),
        "offset": channel.offset,
        "bytes": channel.size,
        "generation": channel.generation,
        "readers": channel.readers,
        "slots": channel.slots,
        "payload_bytes": list(channel.payload_bytes),
        "fingerprints": [f"{each:#018x}" for each in channel.fingerprints],
        "fields": [[_field_json(field) for field in fields] for fields in channel.fields],
        "messages": watched.messages,
        "messages_per_s": None if rate is None else round(rate, 3),
        "last_change_s": _seconds(watched.last_change_ns),
        "sides": [_side_json(side) for side in watched.sides],
        "newest": _value_json(channel, watched.newest),
    }


def _field_json(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": field.type_name,
        "offset": field.offset,
        "stride": field.stride,
    }


def _side_json(side: SideState) -> dict[str, Any]:
    return {
        "role": side.role,
        "state": side.state,
        "epoch": side.epoch,
        "silent_s": _seconds(side.silent_ns),
        "beats": side.beats,
        "dropped": side.dropped,
    }


def _value_json(channel: Channel, value: Value | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return {
        "payload": payload_name(channel, value.payload),
        "number": value.number,
        "whole": value.is_whole,
        "fields": {name: _finite(content) for name, content in value.fields.items()},
    }


def _finite(content: Content) -> Any:
    """JSON has no infinity and no NaN: they become text."""
    if isinstance(content, list):
        return [_finite(each) for each in content]
    return str(content) if isinstance(content, float) and not math.isfinite(content) else content


def _seconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else round(time_ns / _SECOND, 3)


def payload_name(channel: Channel, payload: int) -> str:
    """Return what a payload of this channel is called."""
    return "payload" if len(channel.fields) == 1 else ("request", "reply")[payload]


def table(report: Report) -> RenderableType:
    """Return a report as a table."""
    title = f"{report.region}, {report.size} bytes"
    if report.is_removed:
        title += "; its name is gone: whoever opens it now gets other memory"
    shown = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column("channel", overflow="fold", min_width=14)
    shown.add_column("messages/s", justify="right", no_wrap=True)
    shown.add_column("age", no_wrap=True)
    shown.add_column("side", no_wrap=True)
    shown.add_column("state", no_wrap=True)
    shown.add_column("epoch", justify="right")
    shown.add_column("dropped", justify="right")
    for watched in report.watched:
        _add(shown, watched)
    notes = [
        Text(f"at {each.offset}: a channel that cannot be read: {each.reason}", style="yellow")
        for each in report.unreadable
    ]
    return Group(shown, *notes)


def _add(shown: Table, watched: Watched) -> None:
    """Add a row for each side; the first two rows tell what channel it is."""
    channel, rate, age_ns = watched.channel, watched.messages_per_s, watched.last_change_ns
    sizes = "+".join(str(size) for size in channel.payload_bytes)
    about = [Text(channel.name or "(no name)"), Text(f"{channel.kind.name.lower()} {sizes} B")]
    about[1].stylize("dim")
    sides = [_side_cells(side) for side in watched.sides]
    rows = max(len(about), len(sides))
    for row in range(rows):
        shown.add_row(
            about[row] if row < len(about) else "",
            f"{rate:,.0f}" if row == 0 and rate is not None else "",
            _age(age_ns) if row == 0 and age_ns is not None else "",
            *(sides[row] if row < len(sides) else ()),
            end_section=row + 1 == rows,
        )


def _side_cells(side: SideState) -> tuple[RenderableType, ...]:
    state = f"silent {_age(side.silent_ns)}" if side.state == "silent" else side.state
    return side.role, Text(state, style=_STYLES[side.state]), str(side.epoch), str(side.dropped)


def _age(time_ns: int) -> str:
    seconds = time_ns / _SECOND
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def values(report: Report) -> RenderableType:
    """Return the fields and newest values of each channel as tables."""
    tables: list[RenderableType] = []
    for watched in report.watched:
        for payload, fields in enumerate(watched.channel.fields):
            tables.append(_values_of(watched, payload, fields))
    return Group(*tables)


def _values_of(watched: Watched, payload: int, fields: tuple[Field, ...]) -> Table:
    channel, value = watched.channel, watched.newest
    if value is not None and value.payload != payload:
        value = None  # the slot holds the other one
    title = f"{channel.name or '(no name)'}: {payload_name(channel, payload)}"
    title += f", {channel.payload_bytes[payload]} bytes"
    if value is not None:
        title += f", number {value.number}"
        title += "" if value.is_whole else "; it changes too fast to be read whole"
    shown = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD)
    for heading in ("field", "type", "offset", "newest"):
        shown.add_column(heading, justify="right" if heading == "offset" else "left")
    contents = list(value.fields.values()) if value else [""] * len(fields)
    for field, content in zip(fields, contents, strict=True):
        shown.add_row(Text(field.name), field.type_name, str(field.offset), Text(str(content)))
    return shown
