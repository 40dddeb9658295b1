"""SQL over any number of runs, by DuckDB.

Two tables are visible to a query: `sample_sets`, a row for each set with what is known about it,
and `samples`, a row for each latency (or histogram cell, whose `count` is then above one).
"""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from latenz.errors import BadInput
from latenz.model import HANDLINGS, SampleSet
from latenz.store import open_sample_sets

SAMPLES = pa.schema(
    [
        ("set_id", pa.int64()),
        ("run", pa.string()),
        ("name", pa.string()),
        ("latency_ns", pa.int64()),
        ("t_ns", pa.int64()),
        ("missed", pa.int64()),
        ("handling", pa.string()),
        ("width_ns", pa.int64()),
        ("count", pa.int64()),
    ]
)
_DESCRIBED = {
    "time_base": pa.string(),
    "condition": pa.string(),
    "stack": pa.string(),
    "stressor": pa.string(),
    "bench": pa.string(),
    "cpu": pa.int64(),
    "tool": pa.string(),
    "kernel": pa.string(),
    "period_ns": pa.int64(),
    "resolution_ns": pa.int64(),
    "beyond_range": pa.int64(),
    "missed_periods": pa.int64(),
}


def query(sql: str, paths: list[Path]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run one SQL statement over runs; return column names and rows.

    Args:
        sql: What to ask of the tables `samples` and `sample_sets`.
        paths: Run folders, Parquet files or importable files.

    Raises:
        BadInput: A path cannot be read, or the SQL is wrong.
    """
    sets = [(path, sample_set) for path in paths for sample_set in open_sample_sets(path)]
    with duckdb.connect() as database:
        database.register("sample_sets", _described(sets))
        database.register("_set_names", _described(sets).select(["set_id", "run", "name"]))
        given = [_part(database, i, sample_set) for i, (_, sample_set) in enumerate(sets)]
        parts = [part for part in given if part] or [_nothing(database)]
        database.execute(f"CREATE VIEW samples AS {' UNION ALL '.join(parts)}")
        try:
            answer = database.execute(sql)
            names = [column[0] for column in answer.description or []]
            return names, answer.fetchall()
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise BadInput(reason, "SQL", "tables are samples and sample_sets") from None


def _described(sets: list[tuple[Path, SampleSet]]) -> pa.Table:
    columns: dict[str, pa.Array] = {
        "set_id": pa.array(range(len(sets)), pa.int64()),
        "run": pa.array([str(path) for path, _ in sets], pa.string()),
        "name": pa.array([s.metadata.name for _, s in sets], pa.string()),
        "form": pa.array([s.form for _, s in sets], pa.string()),
    }
    for name, kind in _DESCRIBED.items():
        values = [getattr(s.metadata, name) for _, s in sets]
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


def _part(database: duckdb.DuckDBPyConnection, set_id: int, sample_set: SampleSet) -> str | None:
    """Register one set and return the SELECT that gives its rows in the order of `SAMPLES`."""
    if sample_set.form == "summary":
        return None
    table = f"_set_{set_id}"
    if sample_set.path is not None:
        database.execute(
            f"CREATE VIEW {table} AS SELECT * FROM read_parquet({_quoted(str(sample_set.path))})"  # noqa: S608 - quoted
        )
    else:
        database.register(table, pa.Table.from_batches(sample_set.batches()))
    columns = dict.fromkeys(SAMPLES.names[3:], "NULL::BIGINT")
    columns |= {"count": "1::BIGINT", "width_ns": f"{sample_set.metadata.resolution_ns}::BIGINT"}
    columns |= {name: f'{table}."{name}"' for name in columns if name in sample_set.columns}
    words = ", ".join(map(_quoted, HANDLINGS))
    columns["handling"] = f"[{words}][{columns['handling']} + 1]"
    chosen = ", ".join(f'{value} AS "{name}"' for name, value in columns.items())
    return (
        f"SELECT n.set_id, n.run, n.name, {chosen} FROM {table}, _set_names n"  # noqa: S608 - ours
        f" WHERE n.set_id = {set_id}"
    )


def _nothing(database: duckdb.DuckDBPyConnection) -> str:
    database.register("_nothing", SAMPLES.empty_table())
    return "SELECT * FROM _nothing"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
