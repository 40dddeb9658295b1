"""A virtual machine's command line for people and for programs."""

import shlex
from collections.abc import Sequence
from typing import Any

from latenz.vm.choice import left_out
from latenz.vm.command import Piece, arguments, steps
from latenz.vm.settings import VmSettings


def as_script(settings: VmSettings, pieces: Sequence[Piece]) -> str:
    """Return a command line that a shell takes, and comments on where its parts come from."""
    words = [" ".join(shlex.quote(word) for word in piece.arguments) for piece in pieces]
    lines = [" \\\n  ".join(words)]
    if after := steps(settings):
        lines += ["", "# Then, to its threads; QMP's query-cpus-fast tells those of the vCPUs:"]
        lines += [f"#   {step.text}  # {step.entry}" for step in after]
    parts = _decided(settings, pieces)
    width = max(len(text) for text, _ in parts)
    lines += ["", "# What tunings decide; those with - are off:"]
    lines += [f"#   {text:{width}}  {entries}" for text, entries in parts]
    for title, told in (
        ("On, but without effect; it would need:", settings.without_effect()),
        ("Off unless named with --with:", left_out(settings.tunings)),
    ):
        if told:
            lines += ["", f"# {title}"]
            lines += [f"#   {entry}: {reason}" for entry, reason in told.items()]
    return "\n".join(lines) + "\n"


def to_json(settings: VmSettings, pieces: Sequence[Piece]) -> dict[str, Any]:
    """Return a command line with the tunings of each part."""
    return {
        "arguments": arguments(pieces),
        "pieces": [
            {
                "arguments": list(piece.arguments),
                "parts": [{"text": p.text, "tunings": list(p.entries)} for p in piece.parts],
            }
            for piece in pieces
        ],
        "after_start": [{"tuning": step.entry, "command": step.text} for step in steps(settings)],
        "tunings": sorted(settings.tunings),
        "without_effect": settings.without_effect(),
        "left_out": left_out(settings.tunings),
    }


def _decided(settings: VmSettings, pieces: Sequence[Piece]) -> list[tuple[str, str]]:
    """Return the parts that tunings decide on, and those tunings."""
    return [
        (
            f"{piece.arguments[0]} {part.text}"[:70],
            ", ".join(entry if settings.on(entry) else f"-{entry}" for entry in part.entries),
        )
        for piece in pieces
        for part in piece.parts
        if part.entries
    ]
