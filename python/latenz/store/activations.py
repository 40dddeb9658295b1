"""The rows of a query's table `activations`: samples, and skipped activations as they were due."""

import duckdb
import pyarrow as pa

from latenz.model import SampleSet
from latenz.statistics import Activations
from latenz.statistics.scan import known_period

COLUMNS = 'set_id, run, name, latency_ns, t_ns, skipped, handling, width_ns, "count"'
"""Those of the table; `skipped` is 0 for a sample, k for the k-th activation skipped after it."""
_MOST = 1 << 26
"""Most skipped activations of a set: DuckDB makes lists of them."""


def activations_part(
    database: duckdb.DuckDBPyConnection, set_id: int, sample_set: SampleSet, part: str
) -> str:
    """Return the SELECT that gives all activations of a set as due, in the order of `COLUMNS`.

    A latency that nobody knows cannot be given, and leaving it out would make a run look better
    than it was: such a set ends the query with an error.

    Args:
        database: Takes the cells of a histogram.
        set_id: The set's number.
        sample_set: Samples or a histogram.
        part: The SELECT that gives the set's samples.
    """
    if sample_set.form == "histogram":
        return _cells(database, set_id, sample_set)
    samples = f"SELECT {_columns(skipped='0::BIGINT')} FROM ({part})"  # noqa: S608 - ours
    counted = sample_set.metadata.missed_periods or 0
    if "missed" not in sample_set.columns:
        return f"{samples} WHERE {_unknown(sample_set)} IS NULL" if counted else samples
    period_ns = known_period(sample_set.metadata)
    explained = f"latency_ns // {period_ns}" if period_ns else "0"
    total = f"(SELECT sum(missed) FROM ({part}))"  # noqa: S608 - ours
    late = (
        "SELECT *, CASE"  # noqa: S608 - ours
        f" WHEN missed NOT BETWEEN 0 AND {explained} OR {total} < {counted}"
        f" THEN {_unknown(sample_set)}"
        f" WHEN {total} > {_MOST} THEN error('more than {_MOST} skipped activations; ask samples')"
        f" ELSE missed END AS after FROM ({part}) WHERE missed <> 0"
    )
    columns = _columns(
        latency_ns=f"latency_ns - k * {period_ns}",
        t_ns=f"t_ns + k * {period_ns}",
        skipped="k",
        handling="NULL::VARCHAR",
    )
    skipped = f"SELECT *, UNNEST(range(1, after + 1)) AS k FROM ({late})"  # noqa: S608 - ours
    return f"{samples} UNION ALL SELECT {columns} FROM ({skipped})"  # noqa: S608 - ours


def _columns(**values: str) -> str:
    """Return `COLUMNS` with other values for some."""
    names = COLUMNS.split(", ")
    return ", ".join(f"{values[name]} AS {name}" if name in values else name for name in names)


def _unknown(sample_set: SampleSet) -> str:
    name = quoted(sample_set.metadata.name)
    return f"error('nobody knows how late the skipped ones of ' || {name} || ' were; ask samples')"


def _cells(database: duckdb.DuckDBPyConnection, set_id: int, sample_set: SampleSet) -> str:
    activations = Activations(sample_set)
    ((lowest, width, count),) = activations
    table = f"_cells_{set_id}"
    cells = {"latency_ns": lowest, "width_ns": width, "count": count}
    database.register(table, pa.table({name: pa.array(each) for name, each in cells.items()}))
    columns = _columns(t_ns="NULL::BIGINT", skipped="NULL::BIGINT", handling="NULL::VARCHAR")
    known = f" AND {_unknown(sample_set)} IS NULL" if activations.unknown else ""
    return f"SELECT {columns} FROM {table}, _set_names WHERE set_id = {set_id}{known}"  # noqa: S608 - ours


def quoted(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"
