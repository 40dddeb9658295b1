"""The bridge from a serial line to AXI4-Lite, simulated."""

from pathlib import Path

from verification.passing import passes


def test_bridge_does_what_its_page_says(tmp_path: Path) -> None:
    generics = {"cycles_per_bit_g": "10", "silence_bits_g": "64"}
    passes("uart_axi_bridge", generics, tmp_path, cases=7)
