"""SQL over any number of runs, by DuckDB.

Three tables are visible to a query: `sample_sets`, a row for each set with what is known about it;
`samples`, a row for each latency (or histogram cell, whose `count` is then above one); and
`activations`, the same with a row for each activation that was skipped, too, by how long it waited.

A run may come from a stranger. Its files are read by their literal paths, here and not by DuckDB,
which takes folder names such as `latency_ns=7` for columns and `[12]` for a pattern. And a query
reads those runs only: it reaches no other file, writes none, and loads no extension.
"""

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import dataset
from pyarrow.fs import LocalFileSystem

from latenz.errors import BadInput
from latenz.files import scratch_place
from latenz.importers.opening import open_sample_sets
from latenz.model import CYCLE_COLUMNS, HANDLINGS, SampleSet
from latenz.statistics.cells import read_cells
from latenz.store.activations import COLUMNS as ACTIVATION_COLUMNS
from latenz.store.activations import activations_part, quoted
from latenz.store.parquet import read_schema
from latenz.terminal import printable_line

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
        *((name, pa.int64()) for name in CYCLE_COLUMNS),
    ]
)
_CONFINED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # names of our own variables are no tables
}
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


def query(
    sql: str, paths: list[Path], allow_files: bool = False, **importing: Any
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run SQL over runs; return column names and rows.

    Args:
        sql: What to ask of the tables `samples`, `activations` and `sample_sets`.
        paths: Run folders, Parquet files or importable files.
        allow_files: Let the SQL read and write other files, too.
        importing: What an importable file cannot tell, as `latenz.importers.read` takes it.

    Raises:
        BadInput: A path cannot be read, the SQL is wrong, or it reaches for a file.
    """
    sets = [
        (path, sample_set) for path in paths for sample_set in open_sample_sets(path, **importing)
    ]
    with (
        tempfile.TemporaryDirectory(prefix="latenz-query-", dir=scratch_place()) as scratch,
        duckdb.connect(config=_CONFINED) as database,
    ):
        database.execute(f"SET temp_directory = {quoted(scratch)}")  # not the current folder
        database.register("sample_sets", _described(sets))
        database.register("_set_names", _described(sets).select(["set_id", "run", "name"]))
        parts = {i: _part(database, i, each) for i, (_, each) in enumerate(sets)}
        given = [part for part in parts.values() if part] or [_nothing(database)]
        database.execute(f"CREATE VIEW samples AS {' UNION ALL '.join(given)}")
        due = [
            activations_part(database, i, sets[i][1], part) for i, part in parts.items() if part
        ] or [f"SELECT {ACTIVATION_COLUMNS} FROM (SELECT *, missed AS skipped FROM samples)"]  # noqa: S608 - ours
        database.execute(f"CREATE VIEW activations AS {' UNION ALL '.join(due)}")
        if not allow_files:
            database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")
        try:
            _refuse_extensions(database, sql)
            answer = database.execute(sql)
            names = [column[0] for column in answer.description or []]
            return names, answer.fetchall()
        except duckdb.PermissionException:
            raise BadInput(
                "the query reaches for files or settings",
                "SQL",
                "it may read the runs that are named; --allow-files lets it use other files",
            ) from None
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise BadInput(
                reason, "SQL", "tables are samples, activations and sample_sets"
            ) from None


def _described(sets: list[tuple[Path, SampleSet]]) -> pa.Table:
    columns: dict[str, pa.Array] = {
        "set_id": pa.array(range(len(sets)), pa.int64()),
        "run": pa.array([printable_line(str(path)) for path, _ in sets], pa.string()),
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
    _check(sample_set)
    if sample_set.path is not None:
        database.register(table, _literally(sample_set.path))
    else:
        database.register(table, pa.Table.from_batches(sample_set.batches()))
    columns = dict.fromkeys(SAMPLES.names[3:], "NULL::BIGINT")
    columns |= {"count": "1::BIGINT", "width_ns": f"{sample_set.metadata.resolution_ns}::BIGINT"}
    columns |= {name: f'{table}."{name}"' for name in columns if name in sample_set.columns}
    words = ", ".join(map(quoted, HANDLINGS))
    number = columns["handling"]
    columns["handling"] = f"CASE WHEN {number} >= 0 THEN [{words}][{number} + 1] END"
    chosen = ", ".join(f'{value} AS "{name}"' for name, value in columns.items())
    return (
        f"SELECT n.set_id, n.run, n.name, {chosen} FROM {table}, _set_names n"  # noqa: S608 - ours
        f" WHERE n.set_id = {set_id}"
    )


def _check(sample_set: SampleSet) -> None:
    """Refuse what every other reader refuses: DuckDB would answer all the same."""
    if sample_set.form == "histogram":
        read_cells(sample_set)
    else:
        for _ in sample_set.batches():
            pass


def _refuse_extensions(database: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Code from the network or from a file does not become part of Latenz."""
    statements = database.extract_statements(sql)
    if not statements:
        raise BadInput("there is no statement", "SQL", "ask for example: SELECT * FROM sample_sets")
    for statement in statements:
        if statement.type == duckdb.StatementType.LOAD:
            raise BadInput("the query loads an extension", "SQL", "use what is built in")


def _literally(path: Path) -> dataset.Dataset:
    """One Parquet file, whatever its folders are called."""
    return dataset.FileSystemDataset.from_paths(
        [str(path.absolute())],
        schema=read_schema(path),
        format=dataset.ParquetFileFormat(),
        filesystem=LocalFileSystem(),
    )


def _nothing(database: duckdb.DuckDBPyConnection) -> str:
    database.register("_nothing", SAMPLES.empty_table())
    return "SELECT * FROM _nothing"
