"""The writer of a stream into a ring in memory, simulated."""

from pathlib import Path

from verification.passing import passes


def test_writer_does_what_its_page_says(tmp_path: Path) -> None:
    passes("stream_ring_writer", {}, tmp_path, cases=12)
