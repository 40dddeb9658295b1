"""Whole numbers as Arrow columns: what pyarrow itself makes of the same values."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.columns import as_numpy, int64_column

INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(INT64))
def test_a_column_is_what_pyarrow_makes_of_it(values):
    expected = pa.array(values, type=pa.int64())
    forms = values, tuple(values), np.array(values, dtype=np.int64)
    for given_values in forms:
        column = int64_column(given_values)
        column.validate(full=True)
        assert column.equals(expected)
    assert as_numpy(expected).tolist() == values


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "uint64", ">i8"])
def test_other_widths_and_gaps(dtype):
    values = np.arange(100).astype(dtype)[::-3]
    assert int64_column(values).to_pylist() == values.tolist()


@pytest.mark.parametrize("values", [[1.5], [None], ["1"], np.array([1.5])])
def test_what_is_no_whole_number_is_refused(values):
    with pytest.raises(TypeError):
        int64_column(values)


def test_what_does_not_fit_is_refused():
    for values in ([2**63], np.array([2**63], dtype=np.uint64)):
        with pytest.raises(OverflowError):
            int64_column(values)


def test_an_array_is_shared_and_outlives_its_name():
    column = int64_column(np.arange(1000)[500:])
    assert as_numpy(column[10:20]).tolist() == list(range(510, 520))
    assert not as_numpy(column).flags.writeable


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.uint64(), pa.float64()])
def test_columns_of_other_numbers(kind):
    column = pa.array([3, 1, 2], kind)
    read = as_numpy(column)
    assert read.dtype == kind.to_pandas_dtype()
    assert read.tolist() == [3, 1, 2]


@pytest.mark.parametrize("column", [pa.array([1, None]), pa.array(["a"]), pa.array([True])])
def test_what_cannot_be_shared_is_refused(column):
    with pytest.raises(pa.ArrowInvalid):
        as_numpy(column)


@pytest.mark.parametrize("verb", ["show", "compare"])
def test_short_commands_do_not_wait_for_pandas(tmp_path, verb):
    pytest.importorskip("pandas")  # else there is nothing to wait for
    path = tmp_path / "latencies.csv"
    path.write_text("latency_us\n" + "\n".join(map(str, range(100, 400))))
    files = [path] * (2 if verb == "compare" else 1)
    command = [sys.executable, "-X", "importtime", "-I", "-m", "latenz", verb, *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr[-2000:]
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "pyarrow" in imported
    assert not imported & {"pandas", "pyarrow.compute", "scipy.stats"}
