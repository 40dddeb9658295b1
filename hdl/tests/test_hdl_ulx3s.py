"""What runs on a ULX3S, simulated; test_hdl_long_ulx3s.py reads it through a terminal."""

from pathlib import Path

from verification.passing import passes

SIMULATED = {
    "clock_frequency_hz_g": "100000000",
    "cycles_per_bit_g": "8",
    "stimulus_bits_g": "9",
    "depth_g": "64",
    "bins_g": "64",
}


def test_design_does_what_its_page_says(tmp_path: Path) -> None:
    passes("ulx3s_bench", SIMULATED, tmp_path, cases=4)
