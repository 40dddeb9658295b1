"""Whole numbers between numpy and Arrow, by buffers that both share.

`pyarrow.array` and `to_numpy` import pandas wherever it is installed, to see that what they are
given is none of its objects: half a second, most of what a short command takes.
"""

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa


def int64_column(values: Any) -> "pa.Array":
    """Return whole numbers as a column; an array of int64 without gaps is shared, not copied.

    Args:
        values: A sequence or a numpy array of whole numbers.

    Raises:
        TypeError: A value is not a whole number.
        OverflowError: A value does not fit in 64 bits.
    """
    import pyarrow as pa

    if not isinstance(values, np.ndarray):
        values = np.frombuffer(array("q", values), dtype=np.int64)
    elif values.dtype != np.int64:
        values = np.frombuffer(array("q", values.tolist()), dtype=np.int64)
    whole = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)])


def as_numpy(column: "pa.Array") -> "npt.NDArray[Any]":
    """Return a column of numbers as a read-only array that shares its memory.

    Raises:
        pyarrow.ArrowInvalid: It cannot be shared: a field is empty, or holds no number.
    """
    import pyarrow as pa

    kind = column.type
    if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.asarray(column.to_numpy())  # which says what is wrong
    return np.from_dlpack(column)
