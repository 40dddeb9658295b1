"""The sample stream, simulated."""

from pathlib import Path

from verification.passing import passes


def test_stream_does_what_its_page_says(tmp_path: Path) -> None:
    passes("sample_stream", {"channel_g": "165"}, tmp_path, cases=3)
