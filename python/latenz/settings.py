"""The kinds of values that settings in experiment files are made of."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from latenz.durations import EXAMPLES, parse_duration
from latenz.errors import BadInput, shown

_CPU_RANGE = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")
_SIZE = re.compile(r"(\d{1,12})\s*([KMG]iB)")
_SHIFTS = {"KiB": 10, "MiB": 20, "GiB": 30}
SIZES = 'write an integer (bytes) or a string such as "64 KiB" or "8 MiB"'
_CPU_LIMIT = 8192  # the most that Linux supports


class Settings(BaseModel):
    """Settings from a file: unknown keys are mistakes, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _duration(value: Any) -> int:
    try:
        return parse_duration(value)
    except BadInput as mistake:  # pydantic knows the place better
        raise ValueError(f"{mistake.what}; {mistake.remedy}") from None


def _size(value: Any) -> Any:
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match:
        return int(match[1]) << _SHIFTS[match[2]]
    if isinstance(value, str) or type(value) is not int:
        raise ValueError(f"{shown(value)} is not a size; {SIZES}")
    return value


def _whole_microseconds(duration_ns: int) -> int:
    if duration_ns % 1000:
        raise ValueError("this engine takes whole microseconds only; write for example 200 us")
    return duration_ns


def parse_cpu_list(value: Any) -> tuple[int, ...]:
    """Return the CPUs of a list as the kernel writes them ("0-3,5"), or of integers, in order.

    Raises:
        ValueError: The value is no such list, or names CPUs that no Linux has.
    """
    if isinstance(value, str):
        parts = value.split(",", _CPU_LIMIT)  # of which the last fits nothing if there are more
        matches = [_CPU_RANGE.fullmatch(part.strip()) for part in parts]
        ranges = [range(int(m[1]), int(m[2] or m[1]) + 1) for m in matches if m]
        cpus = list(set[int]().union(*ranges))
        if len(ranges) != len(matches) or not all(ranges):
            cpus = []
    elif isinstance(value, list | tuple) and all(type(cpu) is int for cpu in value):
        cpus = list(value)
    else:
        cpus = []
    if not cpus or not all(0 <= cpu < _CPU_LIMIT for cpu in cpus):
        raise ValueError(
            f'{shown(value)} is not a list of CPUs; write for example "0-3,5" or [0, 1]'
        )
    return tuple(sorted(set(cpus)))


def format_cpu_list(cpus: tuple[int, ...]) -> str:
    """Return CPUs as the kernel writes them: "0-3,5"."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(map(str, part)) for part in parts)


Time = Annotated[
    int,
    BeforeValidator(_duration),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "description": f"A duration: {EXAMPLES}.",
        }
    ),
]
"""Nanoseconds, of whatever sign; for settings whose range something else checks."""

Duration = Annotated[
    int,
    BeforeValidator(_duration),
    Field(gt=0),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "string"}],
            "description": f"A duration: {EXAMPLES}.",
        }
    ),
]
"""Nanoseconds, positive."""

WholeMicroseconds = Annotated[Duration, AfterValidator(_whole_microseconds)]
"""Nanoseconds, for programs that take microseconds."""

Size = Annotated[
    int,
    BeforeValidator(_size),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string", "examples": ["8 MiB", "64 KiB"]}],
            "description": f"A size: {SIZES}.",
        }
    ),
]
"""Bytes, of whatever sign; for settings whose range something else checks."""

CpuList = Annotated[
    tuple[int, ...],
    BeforeValidator(parse_cpu_list),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "examples": ["0-3,5"]},
                {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
            ]
        }
    ),
]
"""CPU numbers, ascending, without repetition."""

Priority = Annotated[int, Field(ge=1, le=99)]
"""A real-time priority."""
