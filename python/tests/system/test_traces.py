"""Recorded arrivals: what is read, and that each mistake is told with its line or row."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latenz.errors import BadInput
from latenz.system import Periodic, Platform, Slot, Source, System, read_arrivals
from latenz.system.trace import read_times

NAMES = ("can", "lin", "Motor (left)")
SYSTEM = System(
    Platform(), (Slot("P", 9),), tuple(Source(name, "P", 0, 1, Periodic(5)) for name in NAMES)
)
HEADER = "source,time_ns\n"


def read(tmp_path, text):
    path = tmp_path / "trace.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return [times.tolist() for times in read_arrivals(path, SYSTEM)]


def table(names, times):
    return pa.table({"source": pa.array(names), "time_ns": pa.array(times)})


rows = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 2**63 - 1) | st.integers(0, 5)), max_size=30
).map(lambda found: sorted(found, key=lambda row: row[1]))


@settings(deadline=None)
@given(rows)
def test_both_formats_hold_what_was_written(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("traces")
    names, times = [name for name, _ in rows], [time for _, time in rows]
    expected = [[time for name, time in rows if name == wanted] for wanted in NAMES]
    assert read(folder, HEADER + "".join(f"{name},{time}\n" for name, time in rows)) == expected
    text, whole = pa.array(names, pa.string()), pa.array(times, pa.int64())
    for source in (text, text.dictionary_encode(), text.cast(pa.large_string())):
        pq.write_table(
            pa.table({"time_ns": whole, "source": source}), folder / "t.parquet", row_group_size=7
        )
        found = read_arrivals(folder / "t.parquet", SYSTEM)
        assert [part.tolist() for part in found] == expected
        assert {part.dtype for part in found} == {np.dtype("int64")}


def test_a_file_of_several_pieces(tmp_path):
    """The order within each source is kept, and pieces are checked against each other."""
    count = 600_000
    times = np.arange(count) * 1_000_003
    path = tmp_path / "large.csv"
    lines = [f"{NAMES[at % 3]},{time}" for at, time in enumerate(times.tolist())]
    path.write_text(HEADER + "\n".join(lines))
    assert path.stat().st_size > 2 * (1 << 22)
    found = read_arrivals(path, SYSTEM)
    for at, part in enumerate(found):
        assert np.array_equal(part, times[at::3])
    lines[count // 2] = "can,4"
    path.write_text(HEADER + "\n".join(lines))
    before = times[count // 2 - 1]
    with pytest.raises(BadInput, match=f"large.csv:{count // 2 + 2}: 4 ns comes after {before} ns"):
        read_arrivals(path, SYSTEM)


def test_what_csv_may_look_like(tmp_path):
    assert read(tmp_path, HEADER) == [[], [], []]
    assert read(tmp_path, HEADER.strip()) == [[], [], []]
    assert read(tmp_path, HEADER + "\r\n\n") == [[], [], []]
    assert read(tmp_path, "\ufeff" + HEADER + "can,1") == [[1], [], []]
    assert read(tmp_path, '"source","time_ns"\r\n"can","1"\r\n\r\nlin, 2\r\n') == [[1], [2], []]


def test_a_choice_of_sources_and_all_of_them(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + "b,1\na,2\nb,3\nc,3\n")
    chosen = {name: times.tolist() for name, times in read_times(path, ["a", "c", "none"]).items()}
    assert chosen == {"a": [2], "c": [3], "none": []}
    every = {name: times.tolist() for name, times in read_times(path).items()}
    assert every == {"b": [1, 3], "a": [2], "c": [3]}


MISTAKES = [
    # (text, line, what must be said)
    ("", 1, "is not a trace of arrivals; the first line of a CSV trace is source,time_ns"),
    ("can,5\n", 1, "is not a trace of arrivals"),
    ("\r" + HEADER + "can,5\n", 1, "is not a trace of arrivals"),
    ("\ufeff\ufeff" + HEADER + "can,5\n", 1, "is not a trace of arrivals"),
    ("time_ns,source\n5,can\n", 1, "is not a trace of arrivals"),
    (HEADER + "can,5\nlin,4\n", 3, "4 ns comes after 5 ns; sort the rows by time"),
    (HEADER + "can,5\n\n\nlin,4\n", 5, "4 ns comes after 5 ns; sort the rows by time"),
    (HEADER + "can,-5\n", 2, "-5 ns is negative; times count from the start of the first TDMA"),
    (HEADER + "can,5\ncam,6\n", 3, "'cam' is not a source of the system; did you mean 'can'?"),
    (
        HEADER + "can,5\nx,6\n",
        3,
        "'x' is not a source of the system; choose one of: can, lin, Motor",
    ),
    (HEADER + "can,1.5\n", 2, "'1.5' is not a time; give an integer of 64 bits, nanoseconds"),
    (HEADER + "can,1 ms\n", 2, "'1 ms' is not a time"),
    (HEADER + "can,\n", 2, "'' is not a time"),
    (HEADER + "can,NA\n", 2, "'NA' is not a time"),
    (HEADER + "can,9223372036854775808\n", 2, "'9223372036854775808' is not a time"),
    (HEADER + "can\n", 2, "'can' is not an arrival; give source,time_ns"),
    (HEADER + "can,1,2\n", 2, "'can,1,2' is not an arrival"),
    (HEADER + "can;1\n", 2, "'can;1' is not an arrival"),
    (HEADER + 'can,1\n"can,2\n', 3, "is not readable CSV (unexpected end of data)"),
    (HEADER + "can,1\n\udcff,2\n", 3, "is not text in UTF-8"),
    (HEADER + "can,1\n" + "x" * 100_000 + ",2\n", 3, "'xxx"),
    (HEADER + "can,1\n\x1b[2J,2\n", 3, r"'\x1b[2J' is not a source"),
]


@pytest.mark.parametrize(("text", "line", "says"), MISTAKES)
def test_each_mistake_in_csv_is_told_with_its_line(tmp_path, text, line, says):
    with pytest.raises(BadInput) as mistake:
        read(tmp_path, text)
    assert str(mistake.value).startswith(f"{tmp_path}/trace.csv:{line}: {says}")
    assert len(str(mistake.value)) < 400


PARQUET_MISTAKES = [
    (table(["can", "can"], [5, 4]), ": row 2: 4 ns comes after 5 ns"),
    (table(["can"], [-4]), ": row 1: -4 ns is negative"),
    (table(["cam"], [4]), "'cam' is not a source of the system; did you mean 'can'?"),
    (table(["can", None], [4, 5]), "has empty cells"),
    (table(["can", "can"], [4, None]), "has empty cells"),
    (table(["can"], [4.0]), "the column time_ns holds double; give integers"),
    (table([7], [4]), "the column source holds int64; give text"),
    (table(["can"], pa.array([2**63], pa.uint64())), "is not a sound Parquet file"),
    (pa.table({"time_ns": [4]}), "the column source is missing"),
]


@pytest.mark.parametrize(("content", "says"), PARQUET_MISTAKES)
def test_each_mistake_in_parquet_is_told(tmp_path, content, says):
    path = tmp_path / "trace.parquet"
    pq.write_table(content, path)
    with pytest.raises(BadInput) as mistake:
        read_arrivals(path, SYSTEM)
    assert str(path) in str(mistake.value)
    assert says in str(mistake.value)


def test_a_truncated_parquet_file(tmp_path):
    path = tmp_path / "trace.parquet"
    pq.write_table(table(["can"] * 500, list(range(500))), path)
    whole = path.read_bytes()
    for size in (4, 5, 20, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(BadInput, match="is not a sound Parquet file"):
            read_arrivals(path, SYSTEM)


def test_what_is_no_file(tmp_path):
    for path in (tmp_path, tmp_path / "none", tmp_path / ("a" * 5000)):
        with pytest.raises(BadInput, match="there is no such file"):
            read_arrivals(path, SYSTEM)
