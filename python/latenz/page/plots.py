"""Pages of plots, with the look and the safety of the report."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from latenz.files import replacing
from latenz.page.embedded import ASSETS, content_policy, json_script, plotly_code, templates


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot.

    Attributes:
        title: Stands above it.
        caption: What it shows, in words; also read to those who cannot see it.
        traces: Plotly traces. Names and texts must be plain text: see `plain`.
        x: Plotly's attributes of the horizontal axis, such as title and type.
        y: The same for the vertical axis.
    """

    title: str
    caption: str
    traces: Sequence[dict[str, Any]]
    x: dict[str, Any]
    y: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlotTable:
    """A table below the plots.

    Attributes:
        title: Stands above it.
        caption: What it shows, in words.
        headings: One for each column.
        rows: Their texts, the first of each being its name; a text may have several lines.
        figures: How many columns after the names hold figures.
    """

    title: str
    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: int


def plain(text: str) -> str:
    """Return a text of unknown origin such that plotly takes none of it for markup."""
    return str(escape(text))


def write_plots(
    output: Path,
    title: str,
    notes: Sequence[str],
    plots: Sequence[Plot],
    tables: Sequence[PlotTable] = (),
) -> None:
    """Write one self-contained HTML file.

    Args:
        output: The file; it appears only when it is whole.
        title: Of the page.
        notes: What a reader must know, above all plots.
        plots: In their order.
        tables: In theirs.

    Raises:
        BadInput: The file cannot be written.
    """
    scripts = {
        "theme": (ASSETS / "theme.js").read_text(encoding="utf-8"),
        "plotly": plotly_code(),
        "plots": (ASSETS / "plots.js").read_text(encoding="utf-8"),
    }
    environment = templates()
    environment.filters["json_script"] = json_script
    page = environment.get_template("plots.html.j2").render(
        title=title,
        notes=notes,
        plots=plots,
        tables=tables,
        policy=content_policy(scripts),
        scripts={name: Markup(text) for name, text in scripts.items()},  # noqa: S704 - our own files
        style=Markup((ASSETS / "report.css").read_text(encoding="utf-8")),  # noqa: S704 - ours
        version=version("latenz"),
    )
    with replacing(output) as partial:
        partial.write_text(page, encoding="utf-8")
