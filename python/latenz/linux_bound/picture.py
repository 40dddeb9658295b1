"""A picture of bounds: of each observation what its bound is made of, and the largest seen."""

from collections.abc import Sequence
from html import escape

from latenz.durations import format_duration
from latenz.linux_bound.evidence import LinuxBound, Observation, linux_bound
from latenz.terminal import printable_line

_WIDTH, _LEFT, _RIGHT = 960, 230, 190
_ROW, _BAR, _HEAD = 24, 14, 46
_COLOURS = {"held": "#0072b2", "scheduler": "#e69f00", "interrupts": "#b9b9b9", "seen": "#d55e00"}
_FULL = 100_000  # what the axis of a kernel is divided into: positions are integers
_LONGEST_NAME = 34


def bound_picture(observations: Sequence[Observation]) -> str:
    """Return an SVG: a group of rows for each kernel, which has its own scale.

    Each row's bar is the bound under the observed maxima of one observation, from the left the term
    that holds an arrival, the scheduler's and that of interrupts; a mark is the largest wake-up
    that was seen. An observation without a bound has the mark alone.

    Args:
        observations: At least one.
    """
    kernels: dict[str, list[LinuxBound]] = {}
    for each in observations:
        kernels.setdefault(each.windows.kernel, []).append(linux_bound([each]))
    parts: list[str] = []
    top = _legend(parts)
    for kernel, found in sorted(kernels.items()):
        top = _group(parts, top, kernel, found)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" role="img" '
        'font-family="sans-serif" font-size="12">\n'
        "<title>Bounds of Linux' wake-up latency under the observed maxima</title>\n"
        f'<rect width="{_WIDTH}" height="{top}" fill="#fff"/>'
    )
    return "\n".join([head, *parts, "</svg>\n"])


def _legend(parts: list[str]) -> int:
    told = {
        "held": "until a point: blocking, switching or idle",
        "scheduler": "scheduler",
        "interrupts": "interrupts",
        "seen": "largest seen",
    }
    left = 12
    for name, text in told.items():
        width = 3 if name == "seen" else 12
        parts.append(_box(left, 10, width, 12, name))
        parts.append(f'<text x="{left + 18}" y="20">{text}</text>')
        left += 40 + 7 * len(text)
    return 30


def _group(parts: list[str], top: int, kernel: str, found: Sequence[LinuxBound]) -> int:
    """Draw the observations of one kernel; return where the next one begins."""
    longest = max(max(each.bound.bound_ns or 0, each.longest_ns) for each in found)
    parts.append(
        f'<text x="12" y="{top + 22}" font-weight="bold">{escape(printable_line(kernel))}: 0 to'
        f" {format_duration(longest)}</text>"
    )
    top += _HEAD - 12
    for each in found:
        _row(parts, top, each, max(longest, 1))
        top += _ROW
    return top + 8


def _row(parts: list[str], top: int, found: LinuxBound, longest: int) -> None:
    made = found.bound
    [observation] = found.observations
    name = printable_line(observation.windows.load or observation.name)[:_LONGEST_NAME]
    parts.append(f'<text x="{_LEFT - 8}" y="{top + 12}" text-anchor="end">{escape(name)}</text>')
    at = 0
    if made.bound_ns is not None:
        for kind, ns in (
            ("held", made.holding_ns),
            ("scheduler", made.scheduler_ns),
            ("interrupts", made.interrupts_ns),
        ):
            parts.append(
                _box(_x(at, longest), top, _x(at + ns, longest) - _x(at, longest), _BAR, kind)
            )
            at += ns
    parts.append(_box(_x(found.longest_ns, longest) - 1, top - 3, 3, _BAR + 6, "seen"))
    parts.append(f'<text x="{_WIDTH - _RIGHT + 12}" y="{top + 12}">{_words(found)}</text>')


def _words(found: LinuxBound) -> str:
    seen = format_duration(found.longest_ns)
    bound_ns = found.bound.bound_ns
    return f"{seen} of {format_duration(bound_ns) if bound_ns is not None else 'no bound'}"


def _x(ns: int, longest: int) -> int:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (ns * _FULL // longest) // _FULL


def _box(left: int, top: int, width: int, height: int, kind: str) -> str:
    return f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="{_COLOURS[kind]}"/>'
