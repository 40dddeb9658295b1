"""The histogram, simulated: its scales, its read-and-clear among samples, its sweep."""

from pathlib import Path

import pytest

from verification.passing import passes


@pytest.mark.parametrize(
    "generics",
    [
        {"bins_g": "64"},
        {"bins_g": "8", "latency_width_g": "48"},
        {"bins_g": "64", "kind_g": "log-linear", "sub_bits_g": "2"},
        {"bins_g": "128", "kind_g": "log-linear", "latency_width_g": "48", "sub_bits_g": "1"},
    ],
    ids=lambda generics: "-".join(generics.values()),
)
def test_histogram_does_what_its_page_says(tmp_path: Path, generics: dict[str, str]) -> None:
    passes("latency_histogram", generics, tmp_path, cases=8)


def test_counts_stop(tmp_path: Path) -> None:
    passes("latency_histogram", {"bins_g": "8", "count_bits_g": "5"}, tmp_path, cases=1)
