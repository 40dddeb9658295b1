import json
import subprocess

import pytest
from test_journal import PERIOD, journal

from latenz.errors import BadInput
from latenz.model import Metadata, Reported, SampleSet, TimeBase
from latenz.sql import query
from latenz.store.run import RunWriter


@pytest.fixture
def runs(tmp_path):
    for number in (1, 2):
        writer = RunWriter(tmp_path / f"it's run {number}")
        for cpu in (0, 1):
            metadata = Metadata(name=f"idle/cpu{cpu}", time_base=TimeBase.SILICON, cpu=cpu)
            values = [number * 100 + cpu, number * 1000]
            writer.add(SampleSet.from_columns(metadata, latency_ns=values, t_ns=[5, 6]))
        cells = Metadata(name="cells", time_base=TimeBase.SILICON)
        writer.add(SampleSet.from_columns(cells, latency_ns=[7], width_ns=[2], count=[9]))
        printed = Metadata(name="p", time_base=TimeBase.PUBLISHED, reported=Reported(max_ns=1))
        writer.add(SampleSet.from_columns(printed))
        folder = writer.begin(Metadata(name="live", time_base=TimeBase.SILICON))
        journal(folder / "samples.journal", [[(0, 5), (3 * PERIOD, 6)]])
    return sorted(tmp_path.iterdir())


def test_samples_of_all_runs_and_forms(runs):
    names, rows = query(
        "SELECT run, name, sum(count), max(latency_ns), sum(missed) FROM samples"
        " GROUP BY ALL ORDER BY ALL",
        runs,
    )
    assert names[:2] == ["run", "name"]
    assert len(rows) == 8
    assert (str(runs[1]), "idle/cpu1", 2, 2000, None) in rows
    assert (str(runs[0]), "cells", 9, 7, None) in rows
    assert (str(runs[0]), "live", 2, 6, 2) in rows


def test_sets_describe_themselves(runs):
    _, rows = query("SELECT time_base, count(*) FROM sample_sets GROUP BY 1 ORDER BY 1", runs)
    assert rows == [("published", 2), ("silicon", 8)]


def test_wrong_sql_is_one_line(runs):
    with pytest.raises(BadInput, match="latency_us"):
        query("SELECT latency_us FROM samples", runs)


def test_the_command_prints_json(runs):
    answer = subprocess.run(
        ["./latenz", "query", "SELECT count(*) AS n FROM samples", str(runs[0]), "--json"],
        check=True,
        capture_output=True,
    )
    assert json.loads(answer.stdout) == {"columns": ["n"], "rows": [[7]]}


@pytest.mark.parametrize(
    "name", ["latency_ns=7", "g[12]", "*", "a?", "{a,b}", "_hidden", ".hidden", "x=1/y=2", "ü 'q'"]
)
@pytest.mark.parametrize("place", ["run", "set"])
def test_names_of_folders_change_no_figure(name, place, tmp_path):
    run = tmp_path / name if place == "run" else tmp_path / "r"
    decoy = tmp_path / "g1"
    for folder, latest in ((run, 50_000), (decoy, 999_999_000)):
        writer = RunWriter(folder)
        writer.add(
            SampleSet.from_columns(
                Metadata(name="s", time_base="silicon"), latency_ns=[1000, 2000, latest]
            )
        )
        writer.close()
    if place == "set":
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / "s").rename(run / name)
        text = (run / "run.json").read_text()
        (run / "run.json").write_text(text.replace('"folder": "s"', f'"folder": "{name}"'))
    _, rows = query("SELECT min(latency_ns), max(latency_ns), count(*) FROM samples", [run])
    assert rows == [(1000, 50_000, 3)]


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{}/written.csv'",
        "SELECT * FROM read_text('{}/secret')",
        "SELECT * FROM '{}/secret.csv'",
        "SELECT * FROM read_csv('{}/secret.csv')",
        "SELECT * FROM glob('{}/*')",
        "ATTACH '{}/written.db'",
        "EXPORT DATABASE '{}/written'",
        "SET enable_external_access = true",
        "SET lock_configuration = false; SELECT 1",
        "INSTALL httpfs",
        "LOAD '{}/extension'",
        "SELECT * FROM sets",
    ],
)
def test_a_query_reaches_no_file_but_the_runs(sql, runs, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "secret.csv").write_text("a\nsecret\n")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BadInput) as refusal:
        query(sql.replace("{}", str(tmp_path)), runs)
    assert "\n" not in str(refusal.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_files_may_be_allowed_but_no_extension(runs, tmp_path):
    query(f"COPY (SELECT * FROM samples) TO '{tmp_path}/written.csv'", runs, allow_files=True)
    assert (tmp_path / "written.csv").exists()
    with pytest.raises(BadInput, match="extension"):
        query("INSTALL httpfs", runs, allow_files=True)


STALLED = [9] * 90 + [10 * PERIOD + 9] + [9] * 9
MISSED = [0] * 90 + [10] + [0] * 9


def stalled(folder, **changes):
    """A run of 110 activations, ten of them skipped; as samples and as a histogram."""
    known = {"time_base": TimeBase.SILICON, "period_ns": PERIOD, **changes}
    writer = RunWriter(folder)
    due = [i * PERIOD for i in range(91)] + [(i + 10) * PERIOD for i in range(91, 100)]
    writer.add(
        SampleSet.from_columns(
            Metadata(name="samples", **known), latency_ns=STALLED, t_ns=due, missed=MISSED
        )
    )
    known["missed_periods"] = 10
    writer.add(
        SampleSet.from_columns(
            Metadata(name="cells", **known),
            latency_ns=[9, 10 * PERIOD + 9],
            width_ns=[1, 1],
            count=[99, 1],
        )
    )
    return [folder]


def test_activations_are_samples_and_what_was_skipped(tmp_path):
    run = stalled(tmp_path / "run")
    _, rows = query(
        "SELECT name, sum(count), max(latency_ns), sum(latency_ns * count), max(t_ns)"
        " FROM activations GROUP BY 1 ORDER BY 1",
        run,
    )
    total = 110 * 9 + sum(range(11)) * PERIOD
    assert rows == [
        ("cells", 110, 10 * PERIOD + 9, total, None),
        ("samples", 110, 10 * PERIOD + 9, total, 109 * PERIOD),
    ]
    _, rows = query(
        "SELECT t_ns, latency_ns FROM activations"
        " WHERE skipped > 0 AND name = 'samples' ORDER BY 1",
        run,
    )
    assert rows == [((90 + k) * PERIOD, (10 - k) * PERIOD + 9) for k in range(1, 11)]


@pytest.mark.parametrize("changes", [{"period_ns": None}, {"period_ns": 2 * PERIOD}])
def test_activations_that_nobody_knows_end_a_query(tmp_path, changes):
    run = stalled(tmp_path / "it's a run", **changes)
    for name in ("samples", "cells"):
        with pytest.raises(BadInput, match=f"nobody knows how late the skipped ones of {name}"):
            query(f"SELECT max(latency_ns) FROM activations WHERE name = '{name}'", run)
    _, rows = query("SELECT sum(count), sum(missed) FROM samples WHERE name = 'samples'", run)
    assert rows == [(100, 10)]


def test_activations_of_a_hostile_count_are_refused(tmp_path):
    writer = RunWriter(tmp_path / "run")
    known = Metadata(name="h", time_base=TimeBase.SILICON, period_ns=1)
    for i, missed in enumerate((2**62, 2**40, -1)):
        columns = {"latency_ns": [2**62] * 3, "missed": [missed] * 3}
        writer.add(SampleSet.from_columns(known.model_copy(update={"name": f"h{i}"}), **columns))
    for i in range(3):
        with pytest.raises(BadInput, match="ask samples"):
            query(f"SELECT count(*) FROM activations WHERE name = 'h{i}'", [tmp_path / "run"])


def test_activations_of_runs_without_samples_are_none(tmp_path):
    writer = RunWriter(tmp_path / "run")
    printed = Metadata(name="p", time_base=TimeBase.PUBLISHED, reported=Reported(max_ns=1))
    writer.add(SampleSet.from_columns(printed))
    assert query("SELECT count(*) FROM activations", [tmp_path / "run"])[1] == [(0,)]


def test_names_that_differ_by_case_alone_are_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"LATENCY_NS": [1], "latency_ns": [9_000_000]}), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="two columns of one name"):
        query("SELECT max(latency_ns) FROM samples", [tmp_path / "a.parquet"])


@pytest.mark.parametrize(
    "columns",
    [
        {"latency_ns": [1], "count": [1]},
        {"latency_ns": [1], "width_ns": [1], "count": [-1]},
        {"latency_ns": [1, None]},
        {"latency_ns": [1.5]},
    ],
)
def test_a_query_refuses_what_show_refuses(columns, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(BadInput):
        query("SELECT max(latency_ns) FROM samples", [tmp_path / "a.parquet"])


def test_nothing_asked_is_one_line(runs):
    with pytest.raises(BadInput, match="no statement"):
        query("", runs)
