"""The page: verdicts, tables, figures and provenance, rendered into one self-contained file.

Names, notes and contexts come from files of unknown origin. The template escapes all of them, the
figures' data are embedded so that no text can end their element, and a Content Security Policy
admits only the three scripts of the page, by their hashes, and no request at all.
"""

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from markupsafe import Markup

from latenz.errors import BadInput
from latenz.files import replacing
from latenz.model import Deadline
from latenz.page.embedded import ASSETS, content_policy, json_script, plotly_code, templates
from latenz.path.picture import section_for
from latenz.provenance import all_of, moment
from latenz.report import words
from latenz.report.attached import attached_programs
from latenz.report.bounds import Model, bounds_section
from latenz.report.causes import traced_conditions
from latenz.report.collect import Progress, View, collect
from latenz.report.contexts import in_words
from latenz.report.control import control_figures, controlled
from latenz.report.figures import Figure, by_time_base, figures
from latenz.report.interrupts import interrupt_figures
from latenz.report.neighbours import neighbourhoods
from latenz.report.pools import choices, cpus, lines_of
from latenz.report.runs import ReportedRun, sources_of
from latenz.report.sizes import size_figures
from latenz.report.tables import table_of
from latenz.report.tails import told_tails
from latenz.report.verdicts import first_numbers, judged_deadlines, overall
from latenz.statistics.joint import over_runs
from latenz.terminal import printable_line

_WORST_SHOWN = 20
_FEWER_SHOWN = 5
_MANY_SETS = 40
_SCRIPTS = ("numbers", "looks", "distributions", "figures", "drawing", "choosing", "tables")
"""The parts of the page's own script, in their order."""


def _path_section(runs: Sequence[ReportedRun]) -> Markup | None:
    """Return the picture of all recorded paths, and a model of silicon beside published rows."""
    found = {
        f"{run.name}: {name}" if len(runs) > 1 else name: file
        for run in runs
        for name, file in run.paths
    }
    return section_for(found) if found else None


def write_report(
    runs: Sequence[ReportedRun],
    output: Path,
    deadlines: Sequence[Deadline] = (),
    confidence: float = 0.95,
    progress: Progress = lambda _label: None,
    title: str | None = None,
    model: Model | None = None,
) -> list[View]:
    """Write one HTML file about all sample sets of some runs; return what it shows.

    Args:
        runs: What to report.
        output: The file to write; it appears only when it is whole.
        deadlines: Deadlines to judge besides those of the sets themselves.
        confidence: One-sided confidence level of the exceedance bounds.
        progress: Told when the work on a sample set starts.
        title: What the page is called; the runs' own titles if None.
        model: Bounds to show beside what was seen; None without a system.

    Raises:
        BadInput: There is no sample set, a set is damaged, or the file cannot be written.
    """
    sources = sources_of(runs)
    if not sources:
        raise BadInput("holds no sample set", ", ".join(run.name for run in runs), "record some")
    with replacing(output) as page:
        views = collect(sources, deadlines, confidence, progress)
        shown = content(runs, views)
        shown["title"] = printable_line(title) if title else shown["title"]
        shown["bounds"] = model and bounds_section(model, views)
        page.write_text(render(shown), encoding="utf-8")
    return views


def render(shown: dict[str, Any], template: str = "report.html.j2") -> str:
    """Return the page.

    Args:
        shown: What it shows, as `content` returns it.
        template: The page's own, or one that extends it.
    """
    scripts = {
        "theme": (ASSETS / "theme.js").read_text(encoding="utf-8"),
        "report": _own_script(),
        "plotly": plotly_code(),
    }
    environment = templates()
    environment.filters.update(
        count=words.count,
        duration=words.duration,
        exact=words.exact,
        in_unit=words.in_unit,
        one_in=words.one_in,
        percent=words.percent,
        without=_without,
        json_script=json_script,
    )
    return environment.get_template(template).render(
        **shown,
        policy=content_policy(scripts),
        scripts={name: Markup(text) for name, text in scripts.items()},  # noqa: S704 - our own files
        style=Markup((ASSETS / "report.css").read_text(encoding="utf-8")),  # noqa: S704 - ours
        version=version("latenz"),
        made=moment(datetime.now(UTC).isoformat()),
    )


def _own_script() -> str:
    """Return the page's own script: its parts in a scope of their own."""
    parts = ((ASSETS / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


def content(runs: Sequence[ReportedRun], views: list[View]) -> dict[str, Any]:
    """Return what the page shows of some runs, by the names that its template knows."""
    judged = judged_deadlines([view for view in views if not view.published])
    named = [(f"{run.name}: " if len(runs) > 1 else "", run) for run in runs]
    seen = [(prefix, run, _of_run(run, runs, views)) for prefix, run in named]
    recorded = [(prefix, run, run.info, own) for prefix, run, own in seen if run.info is not None]
    robots = controlled([(prefix, run.controls, own) for prefix, run, own in seen])
    return {
        "kind": "report",
        "bounds": None,
        "title": _title(runs),
        "facts": _facts(runs, views),
        "runs": runs,
        "unfinished": [run for run in runs if run.info and run.info.status != "complete"],
        "judged": judged,
        "judged_published": judged_deadlines([view for view in views if view.published]),
        "overall": overall(judged),
        "numbers": first_numbers(judged, [view for view in views if not view.published]),
        "over_runs": over_runs(
            (view.label, view.metadata.condition, view.summary.deadlines)
            for view in views
            if not view.published
        ),
        "explained": words.EXPLAINED,
        "tables": [table_of(base, group) for base, group in by_time_base(views)],
        "time_bases": words.TIME_BASES,
        "robots": robots,
        **_pictures(
            views,
            [
                *control_figures(robots),
                *interrupt_figures(views),
                *size_figures(
                    [(prefix, info.conditions, own) for prefix, _, info, own in recorded]
                ),
            ],
        ),
        "schedules": [
            (f"{prefix}{label}", base, b64encode(picture).decode())
            for prefix, run in named
            for label, base, picture in run.schedules
        ],
        "wake_up_bounds": [
            (run.name, b64encode(run.wake_up_bounds).decode())
            for run in runs
            if run.wake_up_bounds is not None
        ],
        "neighbourhoods": [
            each
            for _, run, info, own in recorded
            for each in neighbourhoods(info.conditions, own, dict(run.paths))
        ],
        "paths": _path_section(runs),
        "tails": told_tails(views),
        "traced": [
            each
            for prefix, _, info, _ in recorded
            for each in traced_conditions(prefix, info.conditions)
        ],
        "attached": [
            each
            for prefix, _, info, _ in recorded
            for each in attached_programs(prefix, info.conditions)
        ],
        "worst": _worst(views),
        "notes": _notes(views),
        "views": views,
    }


def _pictures(views: list[View], special: list[Figure]) -> dict[str, Any]:
    """Return the figure that carries the verdict, the others, and what a reader can choose."""
    lines = lines_of(views)
    made = figures(views)
    return {
        "hero": made[0] if made else None,
        "figures": [*special, *made[1:]],
        "choices": choices(lines),
        "chosen_runs": list(dict.fromkeys(view.run for view in views if view.run)),
        "cpus": cpus(lines),
    }


def _worst(views: list[View]) -> list[tuple[View, list[dict[str, Any]]]]:
    """Return the worst samples of each set, the latest set first; of many sets fewer each."""
    most = _FEWER_SHOWN if len(views) > _MANY_SETS else _WORST_SHOWN
    found = [(view, samples[:most]) for view in views if (samples := worst_samples(view))]
    return sorted(found, key=lambda each: -(each[0].summary.max_ns or 0))


def _without(account: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an account without what the page shows elsewhere."""
    return {key: value for key, value in account.items() if key != name}


def _of_run(run: ReportedRun, runs: Sequence[ReportedRun], views: list[View]) -> list[View]:
    """Return the views of one run's sample sets."""
    before = sum(len(each.sample_sets) for each in runs[: list(runs).index(run)])
    return views[before : before + len(run.sample_sets)]


def worst_samples(view: View) -> list[dict[str, Any]]:
    """Return the worst samples: with context if the probe kept one, else as found in the data."""
    kept = sorted(view.metadata.worst, key=lambda sample: -sample.latency_ns)[:_WORST_SHOWN]
    if kept:
        return [
            {
                "ns": s.latency_ns,
                "at": s.t_ns - (view.origin_ns or 0),
                "missed": s.missed,
                "context": in_words(s.context),
            }
            for s in kept
        ]
    return [
        {"ns": late.latency_ns, "at": late.at, "missed": late.missed, "context": []}
        for late in view.late
    ]


def _title(runs: Sequence[ReportedRun]) -> str:
    names = []
    for run in runs:
        experiment = (run.info.experiment or {}) if run.info else {}
        told = run.info.title if run.info else None
        names.append(str(told or experiment.get("title") or experiment.get("name") or run.name))
    different = list(dict.fromkeys(names))
    more = f" and {len(different) - 2} more" if len(different) > 2 else ""
    return ", ".join(different[:2]) + more


def _facts(runs: Sequence[ReportedRun], views: list[View]) -> list[tuple[str, str]]:
    """Return the few facts that belong at the top: machine, kernel, when, how much."""
    known_of = [each for run in runs for each in run.origins]
    measured = [view for view in views if not view.published]
    known = sum(view.summary.n or 0 for view in measured if not view.metadata.sums_up)
    facts = [
        ("Machine", all_of([each.machine for each in known_of])),
        ("Kernel", all_of([each.kernel for each in known_of])),
        ("Measured", all_of([each.measured for each in known_of])),
        ("Tool", all_of([each.tool for each in known_of])),
        ("Samples", f"{known:,} in {len(measured)} sets"),
    ]
    return [(name, value) for name, value in facts if value]


def _notes(views: list[View]) -> list[tuple[list[str], str]]:
    """Return each note once, with the sample sets it is about."""
    found: dict[str, list[str]] = {}
    for view in views:
        for note in view.summary.notes:
            found.setdefault(note, []).append(view.label)
    return [(labels, note) for note, labels in found.items()]
