"""Random edges and AXI transactions by the hundred thousand, on the synthesised netlist.

The full number, a million pairs for each configuration:
`PYTHONPATH=hdl python -m verification.mass.whole`.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from verification.latencies_ip.runner import BUILD, HDL, analysed, command, sources
from verification.mass import cxxrtl, edges
from verification.model.configuration import FULL, PUBLISHED, Configuration

pytestmark = [pytest.mark.proofs, pytest.mark.long]

PAIRS = 200_000
TRANSACTIONS = 200_000
PAIRS_IN_GHDL = 100_000


@pytest.mark.parametrize("name", cxxrtl.CONFIGURATIONS)
def test_random_pairs_agree_with_the_model(name: str) -> None:
    ip = cxxrtl.CONFIGURATIONS[name]
    seed = cxxrtl.seed(ip)
    run = edges.run(seed, PAIRS)
    assert cxxrtl.compare(ip, run, BUILD / "mass" / name) > PAIRS // 2


@pytest.mark.parametrize(
    ("name", "ip"), [("published", PUBLISHED), ("full", FULL)], ids=["published", "full"]
)
def test_random_transactions_are_answered_and_have_no_side_effect(
    name: str, ip: Configuration
) -> None:
    done = cxxrtl.transactions(ip, TRANSACTIONS, 1, BUILD / "transactions" / name)
    assert sum(done) >= TRANSACTIONS
    assert min(done) > TRANSACTIONS // 4


def _in_ghdl(name: str, run: list[edges.Series], ip: Configuration = PUBLISHED) -> None:
    """The same comparison with the VHDL itself, by a testbench in VHDL."""
    place = BUILD / "mass" / f"ghdl-{name}"
    place.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    words = iter(np.concatenate([series.words for series in run]).tolist())
    for word in words:
        limit = f" {next(words)}" if word & 7 == edges.BEGIN else ""
        lines.append(f"{word >> 3} {word & 7}{limit}")
    (place / "edges.txt").write_text("\n".join(lines) + "\n")
    work = analysed([*sources(), HDL / "verification/mass/mass_tb.vhd"])
    files = ("-gedges_file_g=edges.txt", "-gread_file_g=read.txt")
    command(
        *("ghdl", "-r", "--std=08", f"--workdir={work}", "mass_tb", *files),
        "--ieee-asserts=disable",
        cwd=place,
        seconds=250,
    )
    read = [int(line) for line in (place / "read.txt").read_text().split()]
    expected = [word for series in run for word in (*cxxrtl.expected(ip, series), 0)]
    assert read == expected


def test_random_pairs_agree_in_the_vhdl_simulator_as_well() -> None:
    _in_ghdl("random", edges.run(99, PAIRS_IN_GHDL))


def test_case_06_num_stops_at_its_largest_value() -> None:
    # the memory keeps the first ones, also when num's highest bit is the only one
    kept = np.arange(65_600) < PUBLISHED.depth
    ticks = 10 + 2 * np.arange(65_600) + 2 * ~kept
    acks = ticks + kept
    series = edges.of_edges(ticks, acks, 65_535)
    assert cxxrtl.expected(PUBLISHED, series)[3] == 65_535
    _in_ghdl("num", [series])


def test_a_difference_is_found_and_told(tmp_path: Path) -> None:
    run = edges.run(1, 2_000)
    wrong = replace(run[2], acks=run[2].acks + (np.arange(len(run[2].acks)) == 7))
    with pytest.raises(cxxrtl.DifferenceError, match="series 2"):
        cxxrtl.compare(PUBLISHED, [*run[:2], wrong, *run[3:]], tmp_path)
