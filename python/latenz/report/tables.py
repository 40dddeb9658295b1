"""The tables of figures: one for each time base, with the columns that its sets have."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Literal

from latenz.model import Handling
from latenz.report import words
from latenz.report.collect import View
from latenz.statistics import QUANTILES, Summary, views_in_words


def _percent(probability: str) -> str:
    """Return a probability written as a decimal in per cent, exactly: "0.999" is "99.9"."""
    return f"{Decimal(probability) * 100:f}".rstrip("0").rstrip(".")


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
    finer: bool = False
    """An average: it has a decimal more than single values."""


_COLUMNS = (
    _Column(
        "n",
        "n",
        "number of activations, skipped ones included where the source counts them",
        lambda s: s.n if s.n_due is None else s.n_due,
        kind="count",
    ),
    _Column("mean_ns", "Avg.", "arithmetic mean", lambda s: s.mean_ns, finer=True),
    _Column("median_ns", "Median", "middle value", lambda s: s.median_ns),
    _Column("max_ns", "Max.", "largest latency", lambda s: s.max_ns),
    _Column(
        "jitter_ns",
        "Jitter",
        "the greater of max - mean and mean - min",
        lambda s: s.jitter_ns,
        finer=True,
    ),
    _Column(
        "stdev_ns",
        "Dev.",
        "standard deviation of the sample (n - 1)",
        lambda s: s.stdev_ns,
        finer=True,
    ),
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


def table_of(time_base: str, views: list[View]) -> dict[str, Any]:
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


def _rows(view: View) -> list[tuple[str, Summary, int]]:
    """Return a set's figures as due, and those of the samples alone where they are others."""
    summary, resolution_ns = view.summary, view.metadata.resolution_ns
    if summary.n_due in (None, summary.n):
        return [(view.label, summary, resolution_ns)]
    sampled = replace(
        summary, **vars(summary.sampled), n_due=None, missed_periods=None, elsewhere=0
    )
    return [
        (view.label, summary, resolution_ns),
        (f"{view.label}, as sampled", sampled, resolution_ns),
    ]
