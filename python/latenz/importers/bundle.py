"""How several sample sets stand in one file that Latenz exports (CSV and Parquet).

Each set is described by its form, its columns and its metadata; the rows of all sets follow one
another, told apart by a column `sample_set` if there are several.
"""

import json
from dataclasses import dataclass
from typing import get_args

from pydantic import ValidationError

from latenz.importers.sets import check_bounds
from latenz.importers.source import Source
from latenz.model import CYCLE_COLUMNS, Form, Metadata, SampleSet

COLUMNS = ("t_ns", "latency_ns", "missed", *CYCLE_COLUMNS, "width_ns", "count")
_NEEDED = {"samples": {"latency_ns"}, "histogram": {"latency_ns", "width_ns", "count"}}


@dataclass(frozen=True)
class Described:
    """One set of a bundle: what it is, and which columns its rows have."""

    metadata: Metadata
    form: Form
    columns: tuple[str, ...]


def describe(sample_set: SampleSet) -> str:
    """Return the description of a set as one line of JSON."""
    return json.dumps(
        {
            "form": sample_set.form,
            "columns": list(sample_set.columns),
            "metadata": sample_set.metadata.model_dump(mode="json", exclude_defaults=True),
        },
        ensure_ascii=True,
    )


def described(source: Source, text: str, line: int | None) -> Described:
    """Read the description of a set."""
    damaged = source.bad("the description of a sample set is damaged", line)
    try:
        value = json.loads(text)
        metadata = Metadata.model_validate(value["metadata"])
        form, columns = value["form"], tuple(value["columns"])
        fits = form in get_args(Form) and set(columns) <= set(COLUMNS)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise source.bad(f"the metadata is wrong at {place} ({first['msg']})", line) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged from None
    if (
        not fits
        or len(set(columns)) != len(columns)
        or not _NEEDED.get(form, set()) <= set(columns)
    ):
        raise damaged
    if form == "summary" and columns:
        raise damaged
    if metadata.reported:
        low, high = metadata.reported.min_ns, metadata.reported.max_ns
        check_bounds(source, low, high, line, metadata.name)
    if source.options.time_base:
        metadata = metadata.model_copy(update={"time_base": source.options.time_base})
    return Described(metadata, form, columns)
