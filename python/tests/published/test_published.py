import csv
import json
import math
import subprocess
import sys
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

from latenz import published
from latenz.errors import BadInput
from latenz.model import TimeBase
from latenz.published.schema import PublicationFile, number

DATA = Path(__file__).parents[1] / "data" / "published"
PUBLICATIONS = {"alonso2021", "alonso2024", "beckert2014", "coppik2025", "pamuk2024"}


def excerpt(name: str) -> list[dict[str, str]]:
    with (DATA / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def printed(name: str) -> dict[tuple[str, str], str]:
    """Every figure of a table by measurement and statistic."""
    return {(value.set_name, value.statistic): value.printed for value in published.values(name)}


def exact(name: str) -> dict[str, dict[str, Decimal]]:
    by_set: dict[str, dict[str, Decimal]] = {}
    for value in published.values(name):
        by_set.setdefault(value.set_name, {})[value.statistic] = value.exact
    return by_set


def fact(name: str, wanted: str) -> Decimal:
    [found] = [fact for fact in published.facts(name) if fact.name == wanted]
    assert found.number is not None
    return found.nanoseconds or found.number


def rounded(value: Decimal) -> Decimal:
    return value.quantize(Decimal(1), ROUND_HALF_UP)


# --- the figures, against a second reading of the publications


@pytest.mark.parametrize(
    ("table", "idle", "stress", "cpu"),
    [
        ("table1", "Linux idle, CPU ", "Linux stress, CPU ", "cpu"),
        ("table2", "Xen DomU idle, vCPU ", "Xen DomU stress, vCPU ", "cpu"),
    ],
)
def test_alonso2021_thread_latencies(table: str, idle: str, stress: str, cpu: str) -> None:
    expected = {}
    for row in excerpt(f"alonso2021.{table}"):
        for prefix, kind in ((idle, "idle"), (stress, "stress")):
            for statistic in ("mean", "max"):
                expected[prefix + row[cpu], statistic] = row[f"{kind}_{statistic}"]
    assert printed(f"alonso2021.{table}") == expected
    assert len(expected) == 16


@pytest.mark.parametrize("name", ["alonso2021.table3", "alonso2024.table4"])
def test_rows_of_interrupt_latencies(name: str) -> None:
    found: dict[str, dict[str, str]] = {}
    for value in published.values(name):
        if value.statistic != "n":
            found.setdefault(value.row, {"row": value.row})[value.statistic] = value.printed
    assert list(found.values()) == [
        {key: row[key] for key in sorted(row, key=list(found[row["row"]]).index)}
        for row in excerpt(name)
    ]


def test_coppik2025_medians_in_the_order_of_the_text() -> None:
    values = [
        value.printed
        for table in ("figure3", "figure4")
        for value in published.values(f"coppik2025.{table}")
        if value.statistic == "median"
    ]
    assert values == [row["median_ns"] for row in excerpt("coppik2025.text")]
    sets = published.load("coppik2025.figure3")
    memories = [sample_set.metadata.name.split(", ")[1] for sample_set in sets]
    assert memories == ["DDR", "OCM", "DDR/CCI", "TCM"] * 4
    first = [sample_set.metadata.name.split(", ", 2)[2] for sample_set in sets[::4]]
    assert first == [
        "APU to RPU, idle",
        "RPU to APU, idle",
        "APU to RPU, loaded",
        "RPU to APU, loaded",
    ]


def test_beckert2014_every_time_of_the_evaluation() -> None:
    in_text = sorted(int(row["us"]) for row in excerpt("beckert2014.text"))
    times = {
        int(value.exact / 1000)
        for table in ("figure6", "figure7")
        for value in published.values(f"beckert2014.{table}")
        if value.statistic != "n"
    }
    slots = {
        int(entry.nanoseconds / 1000)
        for entry in published.facts("beckert2014.facts")
        if entry.nanoseconds is not None
    }
    assert sorted(times | slots) == in_text


def test_pamuk2024_xenomai_statistics() -> None:
    for row in excerpt("pamuk2024.tables"):
        table = row["table"].replace("Table ", "table")
        [value] = [v for v in published.values(f"pamuk2024.{table}") if v.column == row["column"]]
        assert value.printed == row["us"]
        assert value.exact == Decimal(row["us"]) * 1000
        assert value.unit == "µs"
    assert len(excerpt("pamuk2024.tables")) == 8


# --- the figures, against each other


@pytest.mark.parametrize(
    ("name", "sets", "label"),
    [
        ("table1", "Linux idle", "Linux idle, mean of the {} of four CPUs"),
        ("table1", "Linux stress", "Linux stress, mean of the {} of four CPUs"),
        ("table2", "Xen DomU idle", "Xen DomU idle, mean of the {} of four virtual CPUs"),
        ("table2", "Xen DomU stress", "Xen DomU stress, mean of the {} of four virtual CPUs"),
    ],
)
def test_alonso2021_average_rows_are_means_over_the_cpus(name: str, sets: str, label: str) -> None:
    rows = [row for key, row in exact(f"alonso2021.{name}").items() if key.startswith(sets + ",")]
    assert len(rows) == 4
    for statistic, word in (("mean", "averages"), ("max", "maxima")):
        mean_us = sum(row[statistic] for row in rows) / 4 / 1000
        assert rounded(mean_us) * 1000 == fact("alonso2021.facts", label.format(word))


def test_alonso2021_table3_is_in_nanoseconds() -> None:
    rows = exact("alonso2021.table3")
    above = {key: row["max"] - row["mean"] for key, row in rows.items()}
    assert above["OpenAMP, standalone R5"] == fact(
        "alonso2021.facts", "OpenAMP without stress, maximum above the average"
    )
    assert above["Xen, standalone DomU"] == fact(
        "alonso2021.facts", "Xen without stress, maximum above the average"
    )
    limit = fact("alonso2021.facts", "Limit for GOOSE and SV messages")
    assert all(row["max"] < limit for row in rows.values())
    assert any(row["max"] * 1000 > limit for row in rows.values()), "as µs it would break the limit"
    for sample_set in published.load("alonso2021.table3"):
        assert any("unit corrected from µs to ns" in note for note in sample_set.metadata.notes)


def test_alonso2024_jitter_is_the_greater_deviation_except_where_flagged() -> None:
    for key, row in exact("alonso2024.table4").items():
        above = row["max"] - row["mean"]
        below = row["mean"] - row["jitter"]  # the minimum, if the jitter is mean - min
        [jitter] = [
            value
            for value in published.values("alonso2024.table4")
            if value.set_name == key and value.statistic == "jitter"
        ]
        if jitter.corrected is not None:
            assert key == "OpenAMP"
            assert row["jitter"] < above
            assert jitter.corrected == above
            assert below % 10 == 0
        elif row["jitter"] != above:
            assert key in {"Standalone A53", "Standalone R5"}
            assert jitter.remark
            assert row["jitter"] > above
            assert key == "Standalone A53" or below % 10 == 0


def test_alonso2024_flags_averages_that_400_samples_cannot_have() -> None:
    step = Decimal(10) / 400
    flagged, impossible = set(), set()
    for value in published.values("alonso2024.table4"):
        if value.statistic != "mean":
            continue
        nearest = (value.exact / step).to_integral_value() * step
        if abs(nearest - value.exact) > Decimal("0.005"):
            impossible.add(value.set_name)
        if value.remark:
            flagged.add(value.set_name)
    assert flagged == impossible == {"Xen", "Jailhouse, stress", "OpenAMP"}


@pytest.mark.parametrize("name", published.names())
def test_statistics_can_belong_to_one_sample(name: str) -> None:
    """Laws that hold for every sample: order of the figures, and how far apart they can be."""
    for key, row in exact(name).items():
        ordered = [row[statistic] for statistic in ("min", "mean", "max") if statistic in row]
        assert ordered == sorted(ordered), key
        if "median" in row and "max" in row:
            assert row["median"] <= row["max"]
        if {"median", "stdev"} <= row.keys():
            assert abs(row["mean"] - row["median"]) <= row["stdev"], key  # Hotelling and Solomons
        if {"n", "stdev", "max"} <= row.keys():
            reach = float(row["stdev"]) * (float(row["n"]) - 1) / math.sqrt(row["n"])
            assert float(row["max"] - row["mean"]) <= reach, key  # Samuelson


def test_beckert2014_sizes_and_shares_add_up() -> None:
    def value(name: str) -> Decimal:
        return fact("beckert2014.facts", name)

    parts = ("the changed TDMA scheduler", "the changed top handler", "the monitor")
    assert sum(value(f"Code of {part}") for part in parts) == value(
        "Code of the whole mechanism in the hypervisor"
    )
    assert (
        value("Direct interrupts without monitor") + value("Delayed interrupts without monitor")
        == 100
    )
    with_monitor = ("Direct", "Interposed", "Delayed")
    assert sum(value(f"{kind} interrupts with monitor") for kind in with_monitor) == 100
    rows = exact("beckert2014.figure6")
    own, other = "each of the two application partitions", "the housekeeping partition"
    assert rows["no monitor"]["max"] == value(f"Slot of {own}") + value(f"Slot of {other}")
    gain = (
        rows["no monitor"]["mean"]
        / rows["monitor, all interrupts obey the minimum distance"]["mean"]
    )
    assert int(gain) == value(
        "Average latency without monitor over average when all obey the minimum distance"
    )


# --- the loader


def test_every_publication_is_there_and_loads_as_published_summaries() -> None:
    assert {file.publication.key for file in published.publications()} == PUBLICATIONS
    seen = set()
    for name in published.names():
        for sample_set in published.load(name):
            metadata = sample_set.metadata
            assert metadata.time_base is TimeBase.PUBLISHED
            assert sample_set.form == "summary"
            assert metadata.reported is not None
            assert metadata.source
            assert metadata.condition
            assert metadata.name not in seen
            seen.add(metadata.name)
    assert "alonso2021 Table 1, Linux idle, CPU 0" in seen


def test_sample_sets_carry_the_corrected_figure_and_say_so() -> None:
    [amp] = [
        sample_set
        for sample_set in published.load("alonso2024.table4")
        if sample_set.metadata.condition == "amp"
    ]
    reported = amp.metadata.reported
    assert reported is not None
    assert reported.jitter_ns == 521.16
    assert reported.mean_ns == 2228.84
    assert reported.max_ns == 2750
    assert any("288.84 corrected to 521.16" in note for note in amp.metadata.notes)


def test_lower_bound_of_the_clipped_deviation_is_noted() -> None:
    [machine] = published.load("pamuk2024.table3")
    assert any("lower bound" in note for note in machine.metadata.notes)


@pytest.mark.parametrize(
    ("text", "value"),
    [("109,592", "109592"), ("~2500", "2500"), ("638.15", "638.15"), ("1,000", "1000"), ("0", "0")],
)
def test_printed_numbers(text: str, value: str) -> None:
    assert number(text) == Decimal(value)


@pytest.mark.parametrize(
    "text", ["109.592.1", "1,00", "12, 5", "-3", "", "1e3", "Disabled", "\u0661"]
)
def test_not_numbers(text: str) -> None:
    assert number(text) is None


def test_unknown_names_tell_the_nearest() -> None:
    with pytest.raises(BadInput, match=r"alonso2024\.table4"):
        published.load("alonso2024.tabel4")
    with pytest.raises(BadInput, match=r"beckert2014\.facts"):
        published.facts("becker2014.facts")
    with pytest.raises(BadInput):
        published.load("")


def test_a_comment_on_a_missing_figure_is_refused() -> None:
    document = {
        "publication": {"key": "some2000", "authors": "A", "title": "T", "venue": "V"},
        "table": [
            {
                "key": "table1",
                "place": "Table 1",
                "title": "T",
                "headings": {},
                "unit_printed": "µs",
                "unit": "us",
                "from_event": "a",
                "to_event": "b",
                "tool": "t",
                "machine": "m",
                "set": [{"name": "s", "row": "r", "condition": "c", "mean": "1"}],
            }
        ],
    }
    PublicationFile.model_validate(document)
    table = document["table"][0]
    table["set"][0]["remarks"] = {"max": "odd"}
    with pytest.raises(ValueError, match="comments on"):
        PublicationFile.model_validate(document)
    del table["set"][0]["remarks"]
    table["unit"] = "ns"
    with pytest.raises(ValueError, match="unit_correction"):
        PublicationFile.model_validate(document)


# --- the command


def latenz(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "latenz", "published", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_command_lists_all_tables() -> None:
    tables = json.loads(latenz("--json").stdout)["tables"]
    assert [table["name"] for table in tables] == published.names() + published.fact_names()
    assert {table["name"]: table["values"] for table in tables}["alonso2024.table4"] == 48


def test_command_shows_printed_and_corrected_values() -> None:
    document = json.loads(latenz("alonso2024.table4", "--json").stdout)
    [jitter] = [
        value
        for value in document["values"]
        if value["set"] == "OpenAMP" and value["statistic"] == "jitter"
    ]
    assert jitter["printed"] == "288.84"
    assert jitter["value_ns"] == 288.84
    assert jitter["corrected_value_ns"] == 521.16
    shown = latenz("alonso2024.table4").stdout
    assert "288.84" in shown
    assert "521.16" in shown


def test_command_shows_facts() -> None:
    document = json.loads(latenz("beckert2014.facts", "--json").stdout)
    by_name = {entry["name"]: entry for entry in document["facts"]}
    assert by_name["C_Mon, running the monitor"]["value"] == 128
    assert by_name["Slot of the housekeeping partition"]["value_ns"] == 2_000_000
    assert "1120" in latenz("beckert2014.facts").stdout


def test_command_refuses_unknown_names_in_one_line() -> None:
    run = latenz("alonso2021.table9")
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.count("\n") == 1
    assert "alonso2021.table" in run.stderr
