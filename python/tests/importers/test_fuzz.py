"""A few hundred mutations of every format; `fuzz.py` runs as many as one likes."""

import fuzz
import pytest

from latenz import importers


@pytest.mark.parametrize("name", [name for name in importers.FORMATS if name != "parquet"])
def test_mutations_are_read_or_refused(name, tmp_path):
    read, refused = fuzz.fuzz(name, 300, 1, tmp_path)
    assert read + refused == 300
    assert read > 0
    assert refused > 0
