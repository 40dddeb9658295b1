import json
import subprocess

import pytest
from test_journal import PERIOD, journal

from latenz.errors import BadInput
from latenz.model import Metadata, Reported, SampleSet, TimeBase
from latenz.store.query import query
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
