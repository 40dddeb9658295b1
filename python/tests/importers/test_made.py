"""Formats of which no file of a real tool is kept, and what each parser refuses."""

from pathlib import Path

import examples
import pytest
from test_samples import DATA, cells, columns, figures

from latenz import importers
from latenz.errors import BadInput
from latenz.importers.rtla import bucket_size
from latenz.model import Deadline
from latenz.statistics import summarize


def read(folder: Path, text: str | bytes, **options: object):
    file = folder / "file"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return {s.metadata.name: s for s in importers.read(file, **options)}


def refusal(folder: Path, text: str | bytes, **options: object) -> str:
    with pytest.raises(BadInput) as refused:
        read(folder, text, **options)
    return str(refused.value)


ILA = {"start": "irq", "end": "ack", "clock_period": "10 ns"}


def test_ila(tmp_path):
    sets = read(tmp_path, examples.ILA, **ILA)
    (only,) = sets.values()
    assert columns(only) == {"t_ns": [10, 50], "latency_ns": [20, 10]}
    known = only.metadata
    assert (known.overlaps, known.orphan_ends, known.open_at_end) == (0, 0, 0)
    assert (known.time_base, known.resolution_ns) == ("silicon", 10)


def test_ila_needs_the_period_of_its_clock(tmp_path):
    assert 'such as --clock-period "10 ns"' in refusal(
        tmp_path, examples.ILA, start="irq", end="ack"
    )
    assert "'0 ns' is not a period" in refusal(
        tmp_path, examples.ILA, **ILA | {"clock_period": "0 ns"}
    )


def test_ila_levels_do_not_carry_over_windows(tmp_path):
    head = "Sample in Buffer,Sample in Window,TRIGGER,irq,ack\n"
    first = "0,0,1,0,0\n1,1,0,1,0\n"  # opens, and the window ends
    second = "2,0,1,0,0\n3,1,0,1,0\n4,2,0,1,1\n"
    (only,) = read(tmp_path, head + first + second, **ILA).values()
    assert columns(only) == {"t_ns": [30], "latency_ns": [10]}
    assert only.metadata.open_at_end == 1
    assert any("windows" in note for note in only.metadata.notes)


def test_ila_gap_rows_hide_edges(tmp_path):
    head = "Sample in Buffer,Sample in Window,TRIGGER,GAP,irq,ack\n"
    body = "0,0,0,0,0,0\n1,1,0,1,,\n2,2,0,0,1,0\n3,3,0,0,0,0\n4,4,0,0,1,0\n5,5,0,0,1,1\n"
    (only,) = read(tmp_path, head + body, **ILA).values()
    assert columns(only) == {"t_ns": [40], "latency_ns": [10]}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2,2,0,1,0,-1", "2,2,0,1", "file:5 (ila): the row has 4 cells for 6 columns"),
        (
            "2,2,0,1,0,-1",
            "2,2,0,5,0,-1",
            "file:5 (ila): top/irq is '5'; it must be a number of base 2",
        ),
        ("2,2,0,1,0,-1", "1,2,0,1,0,-1", "file:5 (ila): the sample number does not grow"),
        ("BINARY", "ASCII", "file:2 (ila): the radix of top/irq is 'ASCII'"),
        ("top/irq", "top/ack", "is ambiguous"),
    ],
)
def test_ila_damage(tmp_path, old, new, message):
    text = examples.ILA.replace(old, new)
    options = ILA | {"start": "ack"} if new == "top/ack" else ILA
    if new == "top/ack":
        text = text.replace("top/ack[1:0]", "other/ack[1:0]")
    assert message in refusal(tmp_path, text, **options)


def test_csv_units_are_exact(tmp_path):
    sets = read(tmp_path, examples.CSV)
    assert columns(sets["latency"]) == {
        "t_ns": [1_000_000, 2_000_000, 3_000_000],
        "latency_ns": [12_500, 13_062, 12_500],
    }
    assert columns(sets["other"])["latency_ns"] == [7, -9]
    assert "1 values are finer than 1 ns and were rounded down" in sets["latency"].metadata.notes


@pytest.mark.parametrize(
    ("header", "factor"),
    [
        ("latency_ns", 1),
        ("latency_us", 1000),
        ("latency (us)", 1000),
        ("latency [µs]", 1000),
        ("latency_ms", 10**6),
        ("round trip (s)", 10**9),
        ("us", 1000),
        ("\ufefflatency_us", 1000),
    ],
)
def test_csv_headers(tmp_path, header, factor):
    (only,) = read(tmp_path, f"{header}\n7\n-2\n").values()
    assert columns(only)["latency_ns"] == [7 * factor, -2 * factor]


WHOLE_US = (12, 13, 15, 12, 40)


@pytest.mark.parametrize(
    ("header", "values", "resolution_ns"),
    [
        ("latency_us", WHOLE_US, 1000),
        ("latency_us", ["12.0", "13.000", "15", "40"], 1000),
        ("latency_ns", [1000 * value for value in WHOLE_US], 1000),
        ("latency_ns", [-2000, 0, 1000, 5000], 1000),
        ("latency_ms", [f"0.{value:03}" for value in WHOLE_US], 1000),
        ("latency_ms", WHOLE_US, 1_000_000),
        ("latency_us", [1000 * value for value in WHOLE_US], 1000),
        ("latency_us", [12, 13, 12, 13], 1),
        ("latency_us", [*WHOLE_US, 41.5], 1),
        ("latency_ns", [*(1000 * value for value in WHOLE_US), 41_001], 1),
        ("latency_us", [*WHOLE_US, "41.0001"], 1),
    ],
)
def test_csv_of_whole_microseconds_has_that_resolution(tmp_path, header, values, resolution_ns):
    text = "\n".join([header, *map(str, values), ""])
    (only,) = read(tmp_path, text).values()
    assert only.metadata.resolution_ns == resolution_ns
    told = [note for note in only.metadata.notes if "whole multiples of" in note]
    assert len(told) == (resolution_ns > 1)


def test_csv_of_whole_microseconds_leaves_a_value_at_the_limit_undecided(tmp_path):
    limits = [Deadline(name=str(us), limit_ns=1000 * us, allowed="0.5") for us in (12, 13, 39, 40)]
    (only,) = read(tmp_path, "latency_us\n" + "12\n13\n40\n" * 40).values()
    found = {v.name: (v.exceeding, v.undecided) for v in summarize(only, limits).deadlines}
    assert found == {"12": (80, 40), "13": (40, 40), "39": (40, 0), "40": (0, 40)}


def test_csv_large_values_do_not_pass_through_floating_point(tmp_path):
    text = "latency_s\n9007199.254740993\n0.1\n4.35\n"
    (only,) = read(tmp_path, text).values()
    assert columns(only)["latency_ns"] == [9_007_199_254_740_993, 100_000_000, 4_350_000_000]


def test_exported_csv_with_a_missing_row(tmp_path):
    lines = examples.EXPORTED.splitlines(keepends=True)
    assert len(read(tmp_path, examples.EXPORTED)) == 2
    cut = "".join([*lines[:2], *lines[3:]])
    assert "cpu0: the rows hold 6 of 9 samples" in refusal(tmp_path, cut)


@pytest.mark.parametrize("ran", [False, True])
def test_csv_with_missed_tells_its_period_by_its_times(tmp_path, ran):
    def period(*due_and_missed: tuple[int, int]) -> int | None:
        rows = "".join(
            f"{due + (late if ran else 0)},{late},{missed}\n"
            for (due, missed), late in zip(due_and_missed, (7, 2500, 11, 5), strict=False)
        )
        (only,) = read(tmp_path, f"t_ns,latency_ns,missed\n{rows}").values()
        return only.metadata.period_ns

    assert period((5, 0), (1005, 2), (4005, 0), (5005, 0)) == 1000
    assert period((5, 0), (1005, 1), (4005, 0), (5005, 0)) is None  # one more was left out
    assert period((5, 0), (1005, 2), (4006, 0), (5006, 0)) is None
    assert period((5, 0), (5, 0), (5, 0)) is None
    assert period((5, 0), (1005, 0)) is None  # too few to tell what the times are
    assert period((5, 0)) is None


def test_csv_without_missed_or_times_tells_no_period(tmp_path):
    for text in ("t_ns,latency_ns\n0,5\n1000,6\n", "latency_ns,missed\n5,0\n6,0\n"):
        (only,) = read(tmp_path, text).values()
        assert only.metadata.period_ns is None


def test_csv_histogram_and_missed(tmp_path):
    (only,) = read(tmp_path, examples.CSV_HISTOGRAM).values()
    assert cells(only) == {3000: 10, 4000: 7, 9000: 1}
    assert columns(only)["width_ns"] == [1000] * 3
    (only,) = read(tmp_path, "t_ns,latency_us,missed\n0,5,0\n1000,2500,2\n").values()
    assert columns(only) == {"t_ns": [0, 1000], "latency_ns": [5000, 2_500_000], "missed": [0, 2]}


def test_csv_without_a_unit_needs_one(tmp_path):
    assert "no column of latencies has a unit (latency)" in refusal(tmp_path, "latency\n5\n")
    (only,) = read(tmp_path, "latency\n5\n", format_name="csv", unit_ns=1000).values()
    assert columns(only)["latency_ns"] == [5000]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("latency_us\nfast\n", "file:2 (csv): latency is 'fast'; it must be a number"),
        ("latency_us\n1e999\n", "file:2 (csv): latency is '1e999'"),
        ("latency_us\n1e99\n", "must fit in 64 bits"),
        ("latency_us\n1,2\n", "file:2 (csv): the row has 2 cells for 1 columns"),
        ("latency_us,latency_us\n1,2\n", "file:1 (csv): two columns have the same name"),
        ("latency_us,latency_ns\n1,2\n", "file:1 (csv): two columns of latencies"),
        ("latency_us,count\n1,-2\n", "file:2 (csv): count is -2; it must not be negative"),
        ("latency_us,t_s\n1,\n", "file:2 (csv): time is missing"),
        ("latency_us\n", "holds no samples"),
        (
            "latency_ns,latenz_metadata\n1,{}\n",
            "file:2 (csv): the description of a sample set is damaged",
        ),
        ("latency_ns,latenz_metadata\n1,\n", "file:2 (csv): the first row has no description"),
    ],
)
def test_csv_damage(tmp_path, text, message):
    assert message in refusal(tmp_path, text)


def test_xenomai_histogram(tmp_path):
    (only,) = read(tmp_path, examples.XENOMAI_HISTOGRAM).values()
    assert cells(only) == {0: 1200, 1000: 17_800, 3000: 998}
    known = only.metadata
    assert (known.beyond_range, known.beyond_range_from_ns) == (2, 299_000)
    assert figures(only) == (20_000, 853, 1712.0, 412_002)
    assert known.missed_periods == 1
    assert known.from_event == "in-kernel timer handler due"


def test_xenomai_histogram_of_other_width_is_left_out(tmp_path):
    text = examples.XENOMAI_HISTOGRAM.replace("avg|   0 -  1", "avg|   8 -  9")
    (only,) = read(tmp_path, text).values()
    assert only.form == "summary"
    assert any("not 1 us wide" in note for note in only.metadata.notes)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("|        2\n---", "|        \n---", "file:10 (xenomai): the row is damaged"),
        ("17800", "17801", "the histogram holds 20001 samples, HSS says 20000"),
        ("avg|   3 -  4", "avg|   1 -  2", "file:14 (xenomai): the cell comes twice"),
        ("RTS|      0.853", "RTS|    999.853", "the minimum 999853 ns is above the maximum"),
        ("RTS|      0.853|      1.712", "RTS|      0.853|      1.7", "the row is damaged"),
    ],
)
def test_xenomai_damage(tmp_path, old, new, message):
    assert message in refusal(tmp_path, examples.XENOMAI_HISTOGRAM.replace(old, new))


def test_xenomai_plot_counts_are_one_too_high_and_its_ends_are_no_samples(tmp_path):
    (only,) = read(tmp_path, examples.XENOMAI_PLOT).values()
    assert cells(only) == {1000: 17, 3000: 600, 4000: 2}
    assert only.metadata.beyond_range == 0
    assert only.metadata.reported.n == 619


def test_xenomai_plot_that_reaches_the_last_cell(tmp_path):
    text = "298 1\n298.5 3\n299.5 9\n300 1\n"
    (only,) = read(tmp_path, text).values()
    assert cells(only) == {298_000: 2}
    assert (only.metadata.beyond_range, only.metadata.beyond_range_from_ns) == (8, 299_000)


@pytest.mark.parametrize("cut", ["1 1\n1.5 18\n2.5 1\n", "1 1\n1.5 18\n2.5 1\n7.5 601\n5 1\n"])
def test_xenomai_plot_damage(tmp_path, cut):
    assert "(xenomai)" in refusal(tmp_path, cut)


def test_rtla_nanoseconds_user_column_and_block_of_all(tmp_path):
    sets = read(tmp_path, examples.RTLA_ALL)
    assert list(sets) == ["cpu1/irq", "cpu1/thread", "cpu1/user"]
    assert cells(sets["cpu1/thread"]) == {500: 700, 1000: 290, 1500: 7}
    assert set(columns(sets["cpu1/thread"])["width_ns"]) == {500}
    known = sets["cpu1/user"].metadata
    assert (known.beyond_range, known.beyond_range_from_ns, known.resolution_ns) == (29, 2000, 1)
    assert figures(sets["cpu1/user"]) == (1000, 991, 1400.0, 9120)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("over:  ", "ovr:   ", "file:9 (rtla): is not a histogram row; the file is damaged"),
        (
            "1500          0         7        90",
            "1500          0         7",
            "file:8 (rtla): the row has 2",
        ),
        ("count:     1000", "count:     1001", "cpu1/irq: the rows and `over:` hold 1000 samples"),
        ("1000         90", "500          90", "file:7 (rtla): the row does not follow"),
        ("# Time unit is nanoseconds (ns)\n", "", "the row `# Time unit is` is missing"),
        ("min:        481", "min:       9481", "the minimum 9481 ns is above the maximum"),
    ],
)
def test_rtla_damage(tmp_path, old, new, message):
    assert message in refusal(tmp_path, examples.RTLA_ALL.replace(old, new, 1))


def test_rtla_cut_before_its_end(tmp_path):
    cut = examples.RTLA_ALL[: examples.RTLA_ALL.index("over:")]
    assert "file:8 (rtla): the row `over:` is missing" in refusal(tmp_path, cut)


@pytest.mark.parametrize(
    ("indexes", "extremes", "size", "certain"),
    [
        ([10, 20, 30, 50], [], 10, True),
        ([0, 1, 2, 7], [], 1, True),
        ([56, 154], [], 1, False),
        ([56, 154], [(57, 56)], 2, False),
        ([100], [(149, 100)], 50, False),
        ([3, 7, 1000], [], 1, True),
    ],
)
def test_rtla_bucket_size(indexes, extremes, size, certain):
    assert bucket_size(indexes, extremes) == (size, certain)


def test_oslat_last_cell_of_each_core(tmp_path):
    sets = read(tmp_path, examples.OSLAT_CORES)
    # core 1 never exceeded 4 us, so that its last cell is exact; core 2 did
    assert cells(sets["cpu1"]) == {1000: 500, 2000: 3, 4000: 1}
    assert sets["cpu1"].metadata.beyond_range == 0
    assert cells(sets["cpu2"]) == {1000: 600, 3000: 2}
    known = sets["cpu2"].metadata
    assert (known.beyond_range, known.beyond_range_from_ns) == (7, 4000)


def test_cyclictest_repeated_status_lines_count_once(tmp_path):
    line = "T: 0 (12510) P:80 I:1000 C:{:7} Min:      3 Act:    5 Avg:   27 Max:{:8}\n"
    text = f"{line.format(10, 40)}\x1b[1A{line.format(20, 50)}"
    (only,) = read(tmp_path, text).values()
    assert figures(only) == (20, 3000, 27_000.0, 50_000)


def test_cyclictest_status_lines_tell_the_unit_of_a_histogram(tmp_path):
    """As `cyclictest -N -h 3000` prints them without -q."""
    text = (
        "T: 0 (12518) P:80 I:500 C:   1000 Min:   2998 Act:    5592 Avg:   17457 Max: 1914347\n"
        "# Histogram\n002998 000001\n002999 000000\n# Total: 000000001\n"
        "# Min Latencies: 02998\n# Avg Latencies: 17457\n# Max Latencies: 1914347\n"
        "# Histogram Overflows: 00999\n"
    )
    (only,) = read(tmp_path, text).values()
    assert cells(only) == {2998: 1}
    assert (only.metadata.resolution_ns, only.metadata.period_ns) == (1, 500_000)
    assert (only.metadata.beyond_range, only.metadata.beyond_range_from_ns) == (999, 3000)


def test_cyclictest_json_with_all_samples_beyond(tmp_path):
    text = (DATA / "cyclictest-v2.4-nsec.json").read_text().replace(" -N ", " -N -h 100 ")
    only = read(tmp_path, text)["cpu0"]
    assert (only.metadata.beyond_range, only.metadata.beyond_range_from_ns) == (1000, 3245)


def test_cyclicdeadline(tmp_path):
    """As rt-tests 2.4 prints it: no priority, and no word on missed periods."""
    text = "T: 0 (16444) I:10000 C:    101 Min:      2 Act:   19 Avg:   17 Max:     205\n"
    (only,) = read(tmp_path, text).values()
    assert figures(only) == (101, 2_000, 17_000.0, 205_000)
    assert (only.metadata.tool, only.metadata.notes) == ("cyclicdeadline", ())


def test_pmqtest_prints_a_timeout(tmp_path):
    text = (
        "#0: ID16434, P0, CPU0, I1000; #1: ID16435, P0, CPU0, TO 0, Cycles 50\n"
        "#1 -> #0, Min    3, Cur    4, Avg    6, Max   65\n"
    )
    assert figures(read(tmp_path, text)["pair0"]) == (50, 3_000, 6_000.0, 65_000)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("cyclictest-v2.4.json", '"cycles": 2000', '"cycles": -1', "thread.0.cycles is -1"),
        ("cyclictest-v2.4.json", '"max": 2310', '"max": 1e999999', "thread.0.max is '1e999999'"),
        ("cyclictest-v2.4.json", '"max": 2310', '"max": 2', "the minimum 3000 ns is above"),
        ("cyclictest-v2.4.json", '"max": 2310,', "", "thread.0.max is missing"),
        (
            "cyclictest-v2.4.json",
            '"cycles": 2000,',
            '"cycles": 2000',
            "json:22 (cyclictest): is not",
        ),
        ("cyclictest-v2.4-hist.json", '"cycles": 2000', '"cycles": 1900', "holds 1975 samples"),
        ("cyclictest-v2.4-hist.json", '"4": 60', '"3": 60', "the key '3' stands twice"),
        (
            "cyclictest-v2.4-hist-smp.txt",
            "000005 000104",
            "000004 000104",
            "txt:8 (cyclictest): the row",
        ),
        (
            "cyclictest-v2.4-hist-smp.txt",
            "000104\t",
            "000104 x\t",
            "txt:8 (cyclictest): is not a hist",
        ),
        (
            "cyclictest-v2.4-hist-smp.txt",
            "000104\t",
            "000105\t",
            "hold 1976 samples, `# Total:` says 1975",
        ),
        ("cyclictest-v2.4-histofall.txt", "000111", "000112", "row 000003: the last column is not"),
        ("cyclictest-v2.4-hist-smp.txt", "# Max L", "# Mxa L", "`# Max Latencies:` is missing"),
        (
            "cyclictest-v2.4-quiet.txt",
            "C:   2000",
            "C:   2o00",
            "txt:2 (cyclictest): the status line",
        ),
        (
            "cyclictest-v2.4-verbose.txt",
            "0:       1:       6",
            "0:       1:",
            "txt:7 (cyclictest): is not a",
        ),
        (
            "cyclictest-v2.4-verbose.txt",
            "0:       1:       6",
            "0:       0:       6",
            "cycle 0 of thread 0",
        ),
        (
            "jitterdebugger-results-v3.json",
            '"version": 3',
            '"version": 9',
            "version is 9; known are 2 and",
        ),
        (
            "jitterdebugger-results-v3.json",
            '"count": 2991',
            '"count": 2',
            "the histogram holds 2989",
        ),
        ("oslat-v2.4.txt", "     Maximum:", "     Mximum:", "the row `Maximum:` is missing"),
        ("oslat-v2.4.txt", "002 (us):\t 108", "002 (us):\t", "txt:17 (oslat): the histogram row"),
        ("rtla-timerlat-top-v6.1.txt", "8371", "", "txt:4 (rtla): the row is cut or damaged"),
        ("ftrace-timerlat-raw-v6.1.txt", "35070 ns", "3507", "txt:14 (ftrace): the trace line"),
        ("hwlatdetect-samples.txt", "inner:5", "inner:", "txt:17 (hwlatdetect): the sample is"),
        ("rteval-summary-text.txt", "Max:     ", "Mox:     ", "rteval): system: Max is missing"),
        (
            "stress-ng-cyclic-0.15.06.txt",
            "min: 2437 ns",
            "min: ns",
            "txt:5 (stress-ng): the figures",
        ),
        ("signaltest-v2.4.txt", "Act: 6072", "Act:", "txt:1 (rt-tests): the line is damaged"),
    ],
)
def test_damage_of_real_files_is_named_with_its_place(tmp_path, file, old, new, message):
    content = (DATA / file).read_text()
    assert old in content
    copy = tmp_path / file
    copy.write_text(content.replace(old, new, 1))
    with pytest.raises(BadInput) as refused:
        importers.read(copy)
    assert message in str(refused.value)
    assert str(copy) in str(refused.value)


def test_jitterdebugger_cut_record_is_told(tmp_path):
    content = (DATA / "jitterdebugger-samples.raw").read_bytes()
    sets = read(tmp_path, content[:-5])
    assert sum(len(columns(s)["latency_ns"]) for s in sets.values()) == 999
    assert "the last record is cut and was left out" in sets["cpu0"].metadata.notes


def test_unreadable_files(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        importers.read(tmp_path / "absent")
    assert "the file is empty" in refusal(tmp_path, "")
    assert "not a format" in refusal(tmp_path, "x", format_name="pdf")
    deep = '{"resolution_in_ns": 0, "thread": ' + "[" * 100_000
    assert "is not readable JSON" in refusal(tmp_path, deep)


def test_the_time_base_can_be_stated(tmp_path):
    sets = read(tmp_path, "latency_us\n5\n", time_base="virtual")
    assert sets["latency"].metadata.time_base == "virtual"
