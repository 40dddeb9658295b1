"""Running programs that were measured: threads, findings, and the worst cycle as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from latenz.durations import format_duration
from latenz.errors import BadInput
from latenz.model import Count, Line, Nanoseconds

WIDTH, _LEFT, _BAR, _LANE = 900, 150, 26, 40
_MOST_PIECES = 200
_NARROWEST = 1.0
_LETTER = 8  # of the picture's width
_LANES = {
    "late": ("not woken yet", "var(--c3, #cc79a7)"),
    "ready": ("ready, no CPU", "var(--c1, #d55e00)"),
    "run": ("runs", "var(--c2, #009e73)"),
    "blocked": ("blocked", "var(--c0, #0072b2)"),
}


class _Told(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Segment(_Told):
    what: Literal["late", "ready", "run", "blocked"]
    t_ns: Nanoseconds
    length_ns: Nanoseconds
    comm: Line = ""
    tid: int = 0


class _Cycle(_Told):
    sentence: Line
    what: Line
    t_ns: Nanoseconds
    response_ns: Nanoseconds
    segments: tuple[_Segment, ...] = Field(max_length=1000)


class _Finding(_Told):
    id: Line
    state: Literal["ok", "wrong", "unknown", "not applicable"]
    found: Line | None
    wanted: Line
    where: Line
    remedy: Line


class _Thread(_Told):
    comm: Line
    tid: int
    period_ns: Nanoseconds | None
    due_from: Line
    scheduler: Line
    n: Count
    missed: Count
    partial: Count
    usual_run_ns: Nanoseconds
    usual_response_ns: Nanoseconds
    largest_response_ns: Nanoseconds | None


class _Attached(_Told):
    program: Line
    threads: tuple[_Thread, ...]
    findings: tuple[_Finding, ...]


class _Account(_Told):
    attach: _Attached
    causes: tuple[_Cycle, ...] = ()


@dataclass(frozen=True)
class Piece:
    """A stretch of the worst cycle, in the units of the picture.

    Attributes:
        x: Where it begins.
        y: Where its row is.
        width: How long it is.
        colour: Of its bar.
        told: All of it in words.
        label: Who had the CPU or ended the wait, where there is room for the name; else empty.
    """

    x: float
    y: int
    width: float
    colour: str
    told: str
    label: str


@dataclass(frozen=True)
class Picture:
    """The worst cycle: when it ran, waited and was blocked.

    Attributes:
        sentence: Why it was late.
        pieces: Where to draw what.
        lanes: Height and name of each row.
        ticks: Place and time of each mark.
        height: Of the whole.
    """

    sentence: str
    pieces: tuple[Piece, ...]
    lanes: tuple[tuple[int, str], ...]
    ticks: tuple[tuple[float, str], ...]
    height: int

    @property
    def width(self) -> int:
        """Of the whole."""
        return WIDTH

    @property
    def bar(self) -> int:
        """Height of a row's bars."""
        return _BAR

    @property
    def left(self) -> int:
        """Where time 0 is."""
        return _LEFT


@dataclass(frozen=True)
class AttachedProgram:
    """What a report shows of one condition.

    Attributes:
        label: Its name, with the run's if there are several.
        threads: Those that were measured.
        findings: What was looked at, wrong ones first.
        picture: Of the worst cycle; None if there is none.
        sentences: Why the worst were late.
    """

    label: str
    threads: tuple[_Thread, ...]
    findings: tuple[_Finding, ...]
    picture: Picture | None
    sentences: tuple[str, ...]


def attached_programs(prefix: str, conditions: Sequence[dict[str, Any]]) -> list[AttachedProgram]:
    """Return the conditions of a run that measured a running program.

    Raises:
        BadInput: What stands there is no account of one.
    """
    found = []
    for account in conditions:
        if "attach" not in account:
            continue
        label = prefix + str(account.get("condition"))
        try:
            told = _Account.model_validate(account)
        except ValidationError:
            raise BadInput("tells of a program what cannot be read", f"run.json: {label}") from None
        order = {"wrong": 0, "unknown": 1, "ok": 2, "not applicable": 3}
        found.append(
            AttachedProgram(
                label,
                told.attach.threads,
                tuple(sorted(told.attach.findings, key=lambda each: order[each.state])),
                _picture(told.causes[0]) if told.causes else None,
                tuple(each.sentence for each in told.causes),
            )
        )
    return found


def _picture(cycle: _Cycle) -> Picture | None:
    if not cycle.segments or cycle.response_ns <= 0:
        return None
    scale = (WIDTH - _LEFT - 20) / cycle.response_ns
    pieces = []
    for each in cycle.segments[:_MOST_PIECES]:
        _, colour = _LANES[each.what]
        who = f", {each.comm} ({each.tid})" if each.comm and each.what != "run" else ""
        x = _LEFT + (each.t_ns - cycle.t_ns) * scale
        told = f"{_LANES[each.what][0]}: {format_duration(each.length_ns)}{who}"
        width = max(_NARROWEST, each.length_ns * scale)
        if not 0 <= x <= WIDTH:
            continue
        y = 10 + list(_LANES).index(each.what) * _LANE
        label = each.comm if who and width >= _LETTER * (len(each.comm) + 1) else ""
        pieces.append(Piece(x, y, min(width, WIDTH - x), colour, told, label))
    lanes = tuple((10 + i * _LANE, name) for i, (name, _) in enumerate(_LANES.values()))
    ticks = tuple(
        (
            _LEFT + cycle.response_ns * part / 4 * scale,
            format_duration(cycle.response_ns * part // 4),
        )
        for part in range(5)
    )
    return Picture(cycle.sentence, tuple(pieces), lanes, ticks, 10 + len(_LANES) * _LANE + 24)
