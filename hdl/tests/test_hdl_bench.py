"""The publication's bench, simulated: T1 and T2 against the pins."""

from pathlib import Path

import pytest

from verification.passing import passes

EXTENDED = {
    "latency_width_g": "32",
    "counters_g": "true",
    "time_stamp_g": "true",
    "snapshot_g": "true",
    "sums_g": "true",
}


@pytest.mark.parametrize(
    ("generics", "tests"),
    [
        ({"words_g": "16", "synchroniser_stages_g": "0"}, 3),
        ({"words_g": "4", "synchroniser_stages_g": "2"} | EXTENDED, 5),
        ({"words_g": "1", "synchroniser_stages_g": "3", "overlap_policy_g": "queue"} | EXTENDED, 5),
    ],
)
def test_bench_measures_what_the_pins_show(
    tmp_path: Path, generics: dict[str, str], tests: int
) -> None:
    passes("latency_bench", generics, tmp_path, cases=tests)
