"""One IP with its ring writer, simulated."""

from pathlib import Path

import pytest

from verification.passing import passes

OTHERS = ("watchdog", "snapshot", "sums", "histogram", "self_test")


@pytest.mark.parametrize(
    "generics",
    [
        {"channel_g": "165", "synchroniser_stages_g": "0"},
        {
            "channel_g": "3",
            "latency_width_g": "32",
            "depth_g": "64",
            "synchroniser_stages_g": "2",
            "overlap_policy_g": "queue",
            "clock_frequency_hz_g": "125000000",
            **{f"{name}_g": "true" for name in OTHERS},
        },
    ],
    ids=lambda generics: generics["channel_g"],
)
def test_samples_go_through_it(tmp_path: Path, generics: dict[str, str]) -> None:
    passes("latency_stream", generics, tmp_path, cases=4)
