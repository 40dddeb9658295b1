"""What two runs say of themselves that is not the same: the settings behind a comparison."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from latenz.store.run import RunInfo

_LONGEST = 200
UNSAID = "not said"


@dataclass(frozen=True)
class Setting:
    """One setting with its values; `UNSAID` where a side does not have it."""

    name: str
    a: str
    b: str


def differing_settings(a: RunInfo | None, b: RunInfo | None) -> list[Setting] | None:
    """Return the settings that differ, in the order of A; None if a side says nothing at all."""
    if a is None or b is None:
        return None
    told_a, told_b = _told(a), _told(b)
    names = dict.fromkeys([*told_a, *told_b])
    return [
        Setting(name, told_a.get(name, UNSAID), told_b.get(name, UNSAID))
        for name in names
        if told_a.get(name, UNSAID) != told_b.get(name, UNSAID)
    ]


def _told(info: RunInfo) -> dict[str, str]:
    """Return the command, the environment and the experiment of a run, flat."""
    whole = {
        "command": " ".join(info.command),
        "environment": info.environment,
        "experiment": info.experiment or {},
    }
    return dict(_flat("", whole))


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), part)
    else:
        text = str(value)
        yield name, text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
