import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.errors import BadInput
from latenz.importers.opening import open_sample_sets
from latenz.store.journal import Journal

PERIOD = 1_000_000


def frame(records):
    body = b"".join(struct.pack("<qq", *record) for record in records)
    return struct.pack("<IIII", 0x4D52464C, len(records), zlib.crc32(body), 0) + body


def journal(path, frames, period_ns=PERIOD, tail=b""):
    head = struct.pack("<8sIIqq", b"LATENZJ1", 1, 3, period_ns, 0)
    path.write_bytes(head + b"".join(frame(records) for records in frames) + tail)
    return path


def read(path):
    [sample_set] = open_sample_sets(path)
    rows = [row for batch in sample_set.batches() for row in batch.to_pylist()]
    return sample_set, rows


def test_skipped_activations_follow_from_the_due_times(tmp_path):
    path = journal(tmp_path / "j", [[(0, 5), (PERIOD, 3 * PERIOD + 7)], [(5 * PERIOD, 9)]])
    sample_set, rows = read(path)
    assert sample_set.metadata.cpu == 3
    assert [row["missed"] for row in rows] == [0, 3, 0]
    assert [row["latency_ns"] for row in rows] == [5, 3 * PERIOD + 7, 9]


def test_batches_longer_than_one_keep_the_skips_at_their_seam(tmp_path, monkeypatch):
    monkeypatch.setattr("latenz.store.journal._BATCH_RECORDS", 4)
    due = np.cumsum(np.arange(50) % 3 + 1) * PERIOD
    path = journal(tmp_path / "j", [[(int(t), i)] for i, t in enumerate(due)])
    _, rows = read(path)
    assert [row["missed"] for row in rows] == [*(np.diff(due) // PERIOD - 1), 0]


@pytest.mark.parametrize("cut", range(1, 56))
def test_a_cut_at_any_byte_loses_only_the_last_frame(tmp_path, cut):
    path = journal(tmp_path / "j", [[(0, 5)], [(PERIOD, 6), (2 * PERIOD, 7)]])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut])
    reader = Journal(path)
    assert sum(len(records) for records in reader.frames()) == (1 if cut <= 48 else 0)


@given(st.integers(32, 32 + 16 + 16 + 48 - 1), st.integers(1, 255))
def test_a_flipped_bit_never_changes_a_value_silently(tmp_path_factory, place, flip):
    path = journal(tmp_path_factory.mktemp("j") / "j", [[(0, 5)], [(PERIOD, 6), (2 * PERIOD, 7)]])
    content = bytearray(path.read_bytes())
    content[place] ^= flip
    path.write_bytes(content)
    values = [int(v) for records in Journal(path).frames() for v in records["latency_ns"]]
    assert values in ([], [5], [5, 6, 7])  # 5, 6, 7: only the frame's reserved word was hit


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "j"
    path.write_bytes(b"LATENZJ1" + bytes(24))
    with pytest.raises(BadInput, match="version 0"):
        open_sample_sets(path)
