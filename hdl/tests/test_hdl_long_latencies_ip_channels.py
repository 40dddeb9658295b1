"""Several Latencies IPs behind one pair of slaves, simulated; chained, the parts add up."""

from pathlib import Path

import pytest

from verification.passing import passes

pytestmark = pytest.mark.proofs

COMMON = {
    "depth_g": "64",
    "stream_g": "true",
    "time_stamp_g": "true",
    "synchroniser_stages_g": "0",
}


@pytest.mark.parametrize(
    ("generics", "cases"),
    [
        ({"channels_g": "3"}, 8),
        ({"channels_g": "16"}, 7),
        ({"channels_g": "2", "chained_g": "true"}, 7),
        ({"channels_g": "3", "chained_g": "true", "synchroniser_stages_g": "2"}, 8),
        ({"channels_g": "3", "chained_g": "true", "synchroniser_stages_g": "3"}, 8),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else "",
)
def test_channels_do_what_their_page_says(
    tmp_path: Path, generics: dict[str, str], cases: int
) -> None:
    passes("latencies_ip_channels", {**COMMON, **generics}, tmp_path, cases=cases)
