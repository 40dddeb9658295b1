# SPDX-License-Identifier: Apache-2.0
"""The lists of VHDL sources, read in one place for all that is written in Python."""

from pathlib import Path

HDL = Path(__file__).resolve().parents[1]
MEASURING = "sources.txt"
"""The list of the Latencies IP alone."""
ALL = (MEASURING, "bench_sources.txt")
"""The lists of everything."""


def listed(*lists: str) -> list[Path]:
    """Return the files of some lists below hdl/, in compile order; `#` begins a comment."""
    lines = [line for name in lists for line in (HDL / name).read_text().splitlines()]
    files = [line.split("#")[0].strip() for line in lines]
    return [HDL / file for file in files if file]
