"""The page: verdicts, tables, figures and provenance, rendered into one self-contained file.

Names, notes and contexts come from files of unknown origin. The template escapes all of them, the
figures' data are embedded so that no text can end their element, and a Content Security Policy
admits only the three scripts of the page, by their hashes, and no request at all.
"""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup

from latenz import published
from latenz.control import Control, controls
from latenz.engines.wakeup import ACCOUNT_FILE
from latenz.errors import BadInput
from latenz.explain.model import FILE_NAME, PathFile
from latenz.explain.picture import section_for
from latenz.files import file_in, replacing
from latenz.model import Deadline, Handling, SampleSet
from latenz.provenance import Origin, all_of, moment, origins
from latenz.report import words
from latenz.report.causes import causes_by_time, traced_conditions
from latenz.report.collect import Progress, Source, View, collect
from latenz.report.control import control_figures, controlled
from latenz.report.embedded import (
    ASSETS,
    content_policy,
    json_script,
    plotly_code,
    templates,
)
from latenz.report.figures import by_time_base, figures
from latenz.report.interrupts import interrupt_figures
from latenz.report.neighbours import neighbourhoods
from latenz.report.sizes import size_figures
from latenz.statistics import QUANTILES, Summary, Verdict, views_in_words
from latenz.statistics.extrapolation import TailFit
from latenz.statistics.joint import jointly, over_runs
from latenz.statistics.mixture import MixedTail
from latenz.statistics.tail import TailRefusal
from latenz.store import check_nothing_said, open_sample_sets
from latenz.store.run import Run, RunInfo
from latenz.terminal import printable_line

_SEVERITY = {"violates": 0, "not shown": 1, "meets": 2}
_WORST_SHOWN = 20
_LARGEST_PICTURE = 4 << 20
_MOST_PICTURES = 40


def _percent(probability: str) -> str:
    """Return a probability written as a decimal in per cent, exactly: "0.999" is "99.9"."""
    return f"{Decimal(probability) * 100:f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class ReportedRun:
    """What a report is made from: a run folder, or one file without a run around it.

    Attributes:
        name: How to call it where several runs are reported together.
        sample_sets: Its sample sets.
        info: The content of its `run.json`, if it has one.
    """

    name: str
    sample_sets: Sequence[SampleSet]
    info: RunInfo | None = None
    schedules: Sequence[tuple[str, str | None, bytes]] = ()
    """Pictures of schedules (SVG), each with what it shows and its time base."""
    paths: Sequence[tuple[str, PathFile]] = ()
    """Recorded paths of interrupts, by condition."""
    controls: Sequence[tuple[str, Control]] = ()
    """How well robots were controlled, by condition."""

    @property
    def origins(self) -> list[Origin]:
        """Where its sample sets come from."""
        return origins(self.sample_sets, self.info)

    def __post_init__(self) -> None:
        """Make the name printable: a file may be called anything."""
        object.__setattr__(self, "name", printable_line(self.name))


def open_sides(a: Path, b: Path, **importing: Any) -> tuple[ReportedRun, ReportedRun]:
    """Open two runs that are compared, as "A" and "B", without published reference values.

    Raises:
        BadInput: A path cannot be read.
    """
    side_a = _open_run(a, "A", reference=False, **importing)
    return side_a, _open_run(b, "B", reference=False, **importing)


def open_runs(paths: Sequence[Path], **importing: Any) -> list[ReportedRun]:
    """Open what is to be reported; a run's published reference values come with it.

    Raises:
        BadInput: A path cannot be read, or a run names published values that do not exist.
    """
    counted = Counter(path.resolve().name for path in paths)
    return [
        _open_run(path, name if counted[name] == 1 else str(path), **importing)
        for path in paths
        for name in [path.resolve().name]
    ]


def _open_run(path: Path, name: str, *, reference: bool = True, **importing: Any) -> ReportedRun:
    if not path.is_dir() or (path / ACCOUNT_FILE).exists():
        return ReportedRun(name, open_sample_sets(path, **importing))
    check_nothing_said(path, importing)
    run = Run.open(path)
    tables = run.info.published if reference else []
    return ReportedRun(
        name,
        [*run.sample_sets, *(one for table in tables for one in published.load(table))],
        run.info,
        _schedules(path, run),
        _paths(path),
        controls(path, [each.metadata.name for each in run.sample_sets]),
    )


def _schedules(folder: Path, run: Run) -> list[tuple[str, str | None, bytes]]:
    """Return the pictures of schedules in a run, in the order of its sample sets' time bases."""
    bases = {
        each.metadata.name.partition("/")[0]: each.metadata.time_base.value
        for each in run.sample_sets
    }
    ranks = list(words.TIME_BASES)
    found = [
        (_scene(picture.relative_to(folder)), bases.get(picture.parent.name), picture)
        for picture in folder.rglob("schedule*.svg")
        if _is_small(folder, picture)
    ]
    found.sort(key=lambda each: (ranks.index(each[1]) if each[1] else -1, _by_number(each[0])))
    return [(scene, base, file.read_bytes()) for scene, base, file in found[:_MOST_PICTURES]]


def _scene(picture: Path) -> str:
    """Return what a picture is of: its condition, and its system if there are several."""
    system = picture.stem.removeprefix("schedule").removeprefix("-")
    return "/".join(each for each in (picture.parent.as_posix(), system) if each)


def _by_number(text: str) -> list[tuple[str, int]]:
    """Return a key that sorts load-5 before load-10."""
    parts = re.findall(r"([^0-9]*)([0-9]{0,9})", text)
    return [(word, int(number or 0)) for word, number in parts]


def _paths(folder: Path) -> list[tuple[str, PathFile]]:
    """Return the paths of interrupts that boards left in their run."""
    return [
        (found.parent.name, PathFile.load(found))
        for found in sorted(folder.glob(f"*/{FILE_NAME}"))
        if _is_small(folder, found)
    ][:_MOST_PICTURES]


def _is_small(folder: Path, found: Path) -> bool:
    path = file_in(folder, str(found.relative_to(folder)))
    return path is not None and path.stat().st_size <= _LARGEST_PICTURE


def _path_section(runs: Sequence[ReportedRun]) -> Markup | None:
    """Return the picture of all recorded paths, and a model of silicon beside published rows."""
    found = {
        f"{run.name}: {name}" if len(runs) > 1 else name: file
        for run in runs
        for name, file in run.paths
    }
    return section_for(found) if found else None


@dataclass(frozen=True)
class Judgement:
    """One verdict, with the sample set it is about."""

    view: View
    verdict: Verdict


@dataclass
class JudgedDeadline:
    """A deadline and its verdicts, the most severe first."""

    name: str
    limit_ns: int
    judgements: list[Judgement] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The most severe of its verdicts."""
        return min((j.verdict.verdict for j in self.judgements), key=lambda v: _SEVERITY[v])

    @property
    def emulated(self) -> bool:
        """Met, but not everywhere in a time of silicon."""
        return self.verdict == "meets" and any(j.verdict.emulated for j in self.judgements)

    @property
    def headline(self) -> str:
        """Say how many of the sample sets have the most severe verdict."""
        worst = self.verdict
        found = sum(j.verdict.verdict == worst for j in self.judgements)
        sets = len(self.judgements)
        who = f"{found} of {sets} sample sets" if sets > 1 else "The sample set"
        does = {
            "meets": "meets it" if sets == 1 else "meet it",
            "violates": "violates it" if found == 1 else "violate it",
            "not shown": "does not show that it is met"
            if found == 1
            else "do not show that it is met",
        }
        return f"{who} {does[worst]}."


def write_report(
    runs: Sequence[ReportedRun],
    output: Path,
    deadlines: Sequence[Deadline] = (),
    confidence: float = 0.95,
    progress: Progress = lambda _label: None,
    title: str | None = None,
) -> list[View]:
    """Write one HTML file about all sample sets of some runs; return what it shows.

    Args:
        runs: What to report.
        output: The file to write; it appears only when it is whole.
        deadlines: Deadlines to judge besides those of the sets themselves.
        confidence: One-sided confidence level of the exceedance bounds.
        progress: Told when the work on a sample set starts.
        title: What the page is called; the runs' own titles if None.

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
        page.write_text(render(shown), encoding="utf-8")
    return views


def sources_of(runs: Sequence[ReportedRun]) -> list[Source]:
    """Give every set a name that no other set of the report has."""
    taken: Counter[str] = Counter()
    sources = []
    for run in runs:
        of_run = f"{run.name}: " if len(runs) > 1 else ""
        for sample_set in run.sample_sets:
            metadata = sample_set.metadata
            label = of_run + metadata.name
            taken[label] += 1
            if taken[label] > 1:
                label = f"{label} ({taken[label]})"
            group = metadata.condition or metadata.name.rpartition("/")[0]
            known = causes_by_time(run.info.conditions, metadata.cpu) if run.info else {}
            sources.append(Source(label, of_run + group if group else run.name, sample_set, known))
    return sources


def render(shown: dict[str, Any], template: str = "report.html.j2") -> str:
    """Return the page.

    Args:
        shown: What it shows, as `content` returns it.
        template: The page's own, or one that extends it.
    """
    scripts = {
        "theme": (ASSETS / "theme.js").read_text(encoding="utf-8"),
        "report": (ASSETS / "report.js").read_text(encoding="utf-8"),
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


def content(runs: Sequence[ReportedRun], views: list[View]) -> dict[str, Any]:
    """Return what the page shows of some runs, by the names that its template knows."""
    judged = judged_deadlines([view for view in views if not view.published])
    robots = controlled(
        [
            (f"{run.name}: " if len(runs) > 1 else "", run.controls, _of_run(run, runs, views))
            for run in runs
        ]
    )
    sizes = size_figures(
        [
            (
                f"{run.name}: " if len(runs) > 1 else "",
                run.info.conditions,
                _of_run(run, runs, views),
            )
            for run in runs
            if run.info is not None
        ]
    )
    return {
        "kind": "report",
        "title": _title(runs),
        "facts": _facts(runs, views),
        "runs": runs,
        "unfinished": [run for run in runs if run.info and run.info.status != "complete"],
        "judged": judged,
        "judged_published": judged_deadlines([view for view in views if view.published]),
        "overall": _overall(judged),
        "over_runs": over_runs(
            (view.label, view.metadata.condition, view.summary.deadlines)
            for view in views
            if not view.published
        ),
        "explained": words.EXPLAINED,
        "tables": [_table(base, group) for base, group in by_time_base(views)],
        "time_bases": words.TIME_BASES,
        "robots": robots,
        "figures": [
            *control_figures(robots),
            *interrupt_figures(views),
            *sizes,
            *figures(views),
        ],
        "schedules": [
            (f"{run.name}: {label}" if len(runs) > 1 else label, base, b64encode(picture).decode())
            for run in runs
            for label, base, picture in run.schedules
        ],
        "neighbourhoods": [
            each
            for run in runs
            if run.info is not None
            for each in neighbourhoods(
                run.info.conditions, _of_run(run, runs, views), dict(run.paths)
            )
        ],
        "paths": _path_section(runs),
        "tails": [_tail_row(view, view.tail) for view in views if view.tail is not None],
        "traced": [
            each
            for run in runs
            if run.info is not None
            for each in traced_conditions(
                f"{run.name}: " if len(runs) > 1 else "", run.info.conditions
            )
        ],
        "worst": [(view, found) for view in views if (found := worst_samples(view))],
        "notes": _notes(views),
        "views": views,
    }


def _without(account: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an account without what the page shows elsewhere."""
    return {key: value for key, value in account.items() if key != name}


def _of_run(run: ReportedRun, runs: Sequence[ReportedRun], views: list[View]) -> list[View]:
    """Return the views of one run's sample sets."""
    before = sum(len(each.sample_sets) for each in runs[: list(runs).index(run)])
    return views[before : before + len(run.sample_sets)]


def judged_deadlines(views: list[View]) -> list[JudgedDeadline]:
    """Return each deadline with all its verdicts, the most severe first."""
    found: dict[tuple[str, int], JudgedDeadline] = {}
    for view in views:
        for verdict in view.summary.deadlines:
            key = (verdict.name, verdict.limit_ns)
            found.setdefault(key, JudgedDeadline(*key)).judgements.append(Judgement(view, verdict))
    for deadline in found.values():
        deadline.judgements.sort(key=lambda j: _SEVERITY[j.verdict.verdict])
    return sorted(found.values(), key=lambda d: (_SEVERITY[d.verdict], d.limit_ns))


def worst_samples(view: View) -> list[dict[str, Any]]:
    """Return the worst samples: with context if the probe kept one, else as found in the data."""
    kept = sorted(view.metadata.worst, key=lambda sample: -sample.latency_ns)[:_WORST_SHOWN]
    if kept:
        return [
            {
                "ns": s.latency_ns,
                "at": s.t_ns - (view.origin_ns or 0),
                "missed": s.missed,
                "context": s.context,
            }
            for s in kept
        ]
    return [
        {"ns": late.latency_ns, "at": late.at, "missed": late.missed, "context": {}}
        for late in view.late
    ]


def _tail_row(view: View, tail: TailFit | MixedTail | TailRefusal) -> dict[str, Any]:
    """Return what the table of tails says about one set."""
    row: dict[str, Any] = {"view": view, "diagnostics": tail.diagnostics, "fits": {}}
    if isinstance(tail, TailRefusal):
        return {**row, "reason": tail.reason}
    fits = tail.parts if isinstance(tail, MixedTail) else {"": tail}
    return {**row, "fits": fits, "estimates": words.tail_estimates(tail, view.summary.deadlines)}


def _overall(judged: list[JudgedDeadline]) -> tuple[str, str]:
    """Return the most severe verdict of all, and a sentence about all deadlines.

    It is `emulated` where all are met, but not all of them on silicon.
    """
    all_of_them = [each for deadline in judged for each in deadline.judgements]
    together = jointly([each.verdict for each in all_of_them])
    if together is None:
        return "none", "Nothing was judged: give a limit with --deadline, such as 3ms."
    emulated = together.meets == together.verdicts and together.emulated
    return "emulated" if emulated else together.verdict, together.sentence


def _quantile(probability: str, summary: Summary) -> int | None:
    return summary.quantiles_ns.get(probability)


def _share(handling: Handling, summary: Summary) -> float | None:
    return (summary.handled or {}).get(handling)


@dataclass(frozen=True)
class _Column:
    key: str
    heading: str
    meaning: str
    value: Callable[[Summary], float | None]
    kind: Literal["time", "count", "share"] = "time"
    always: bool = True
    """Shown also where no sample set of the table has a value."""


_COLUMNS = (
    _Column(
        "n",
        "n",
        "number of activations, skipped ones included where the source counts them",
        lambda s: s.n if s.n_due is None else s.n_due,
        kind="count",
    ),
    _Column("mean_ns", "Avg.", "arithmetic mean", lambda s: s.mean_ns),
    _Column("median_ns", "Median", "middle value", lambda s: s.median_ns),
    _Column("max_ns", "Max.", "largest latency", lambda s: s.max_ns),
    _Column(
        "jitter_ns", "Jitter", "the greater of max - mean and mean - min", lambda s: s.jitter_ns
    ),
    _Column("stdev_ns", "Dev.", "standard deviation of the sample (n - 1)", lambda s: s.stdev_ns),
    *(
        _Column(
            f"{handling}_share",
            handling.capitalize(),
            f"share of the interrupts that were {meaning}",
            partial(_share, handling),
            kind="share",
            always=False,
        )
        for handling, meaning in words.HANDLED.items()
    ),
    _Column("min_ns", "Min.", "smallest latency", lambda s: s.min_ns, always=False),
    *(
        _Column(
            f"p{_percent(p)}_ns",
            f"{_percent(p)} %",
            f"quantile: the ceil({p} n)-th smallest latency, where one of n is expected beyond it",
            partial(_quantile, p),
            always=False,
        )
        for p in QUANTILES[1:]
    ),
    _Column(
        "missed_periods",
        "Missed",
        "activations without a sample of their own because the previous one was late",
        lambda s: s.missed_periods,
        kind="count",
        always=False,
    ),
    _Column(
        "beyond_range",
        "Beyond range",
        "samples known only to lie at or beyond the end of the tool's histogram",
        lambda s: s.beyond_range,
        kind="count",
        always=False,
    ),
    _Column(
        "elsewhere",
        "Elsewhere",
        "samples taken on other CPUs than the one that the set is named after",
        lambda s: s.elsewhere,
        kind="count",
        always=False,
    ),
)
"""From Avg. to Dev. the layout of Table 4 of Alonso et al., Electronics 2024, 13, 1626."""


def _table(time_base: str, views: list[View]) -> dict[str, Any]:
    """Return the summary table of one time base."""
    unit, size = words.table_unit([v.summary.mean_ns or v.summary.max_ns or 0 for v in views])
    columns = [
        column
        for column in _COLUMNS
        if column.always or any(column.value(view.summary) for view in views)
    ]
    return {
        "time_base": time_base,
        "unit": unit,
        "size": size,
        "columns": columns,
        "rows": [row for view in views for row in _rows(view)],
        "samples_only": views_in_words([(view.label, view.summary.view) for view in views]),
    }


def _rows(view: View) -> list[tuple[str, Summary]]:
    """Return a set's figures as due, and those of the samples alone where they are others."""
    summary = view.summary
    if summary.n_due in (None, summary.n):
        return [(view.label, summary)]
    sampled = replace(
        summary, **vars(summary.sampled), n_due=None, missed_periods=None, elsewhere=0
    )
    return [(view.label, summary), (f"{view.label}, as sampled", sampled)]


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
