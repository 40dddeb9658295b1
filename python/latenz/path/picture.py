"""Paths as a picture and tables for the report: one bar a stack, cut by the terms of Eq. (1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from latenz.path.calibration import Calibration, Comparison, calibrations, compare
from latenz.path.model import InterruptPath, PathFile, Segment
from latenz.path.software import Term

EQUATION = (Term.IRQ, Term.HYP, Term.OS, Term.USER)
_COLOURS = {
    Term.HYP: "var(--c1, #d55e00)",
    Term.OS: "var(--c0, #0072b2)",
    Term.USER: "var(--c2, #009e73)",
    Term.OTHER_CPU: "var(--soft, #888888)",
    Term.UNKNOWN: "var(--c7, #40474f)",
}
_BAR, _GAP, _LABEL, _WIDTH, _VALUE = 26, 14, 190, 560, 110
_NARROWEST = 0.75


@dataclass(frozen=True)
class Shown:
    """The usual path of one condition.

    Attributes:
        label: What it is called.
        path: The path most of its interrupts took.
        interrupts: How many were recorded.
        different: How many different paths they took.
    """

    label: str
    path: InterruptPath
    interrupts: int
    different: int


def shown(label: str, file: PathFile) -> Shown:
    """Return the usual path of a condition."""
    interrupts = sum(path.interrupts for path in file.paths)
    return Shown(label, file.paths[0], interrupts, len(file.paths))


def section_for(files: Mapping[str, PathFile]) -> Markup:
    """Return the picture, the tables, and the model beside published rows, for a report.

    Args:
        files: What was recorded, by the names of the conditions.
    """
    usual = {name: file.paths[0] for name, file in files.items()}
    cores = calibrations()
    compared = {name: compare(core, usual) for name, core in cores.items()}
    return section([shown(name, file) for name, file in files.items()], compared, cores)


@dataclass(frozen=True)
class _Piece:
    """A part of a bar, in the units of the picture."""

    x: float
    width: float
    colour: str
    opacity: float
    told: str


@dataclass(frozen=True)
class _Bar:
    shown: Shown
    y: int
    pieces: list[_Piece]
    end: float

    @property
    def terms(self) -> str:
        """The terms that are not 0, in words."""
        return ", ".join(f"{term} {count:,}" for term, count in self.shown.path.terms().items())


def section(
    paths: Sequence[Shown],
    compared: Mapping[str, Sequence[Comparison]] | None = None,
    cores: Mapping[str, Calibration] | None = None,
) -> Markup:
    """Return the picture and its tables as HTML that holds no script.

    Args:
        paths: What is shown, in this order.
        compared: For each calibration, by its name, what it says about published rows.
        cores: The calibrations, by their names.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    longest = max((each.path.instructions for each in paths), default=1)
    bars = [_bar(each, number, longest) for number, each in enumerate(paths)]
    text = environment.get_template("path.html.j2").render(
        paths=paths,
        bars=bars,
        equation=EQUATION,
        other=[term for term in Term if any(_count(each, term) for each in paths)],
        colours=_COLOURS,
        bar=_BAR,
        label=_LABEL,
        width=_LABEL + _WIDTH + _VALUE,
        height=len(bars) * (_BAR + _GAP) + _GAP,
        compared={name: rows for name, rows in (compared or {}).items() if rows},
        cores=cores or {},
    )
    return Markup(text)  # noqa: S704 - rendered with escaping


def _count(each: Shown, term: Term) -> int:
    return each.path.terms().get(term, 0) if term not in EQUATION else 0


def _bar(each: Shown, number: int, longest: int) -> _Bar:
    x = float(_LABEL)
    pieces = []
    for index, segment in enumerate(each.path.categories()):
        width = max(_NARROWEST, _WIDTH * segment.instructions / longest)
        colour = _COLOURS.get(segment.term, _COLOURS[Term.UNKNOWN])
        pieces.append(_Piece(x, width, colour, 1.0 if index % 2 == 0 else 0.72, _told(segment)))
        x += width
    return _Bar(each, _GAP + number * (_BAR + _GAP), pieces, x)


def _told(segment: Segment) -> str:
    return (
        f"{segment.program}: {segment.category}, {segment.instructions:,} instructions"
        f" ({segment.term})"
    )
