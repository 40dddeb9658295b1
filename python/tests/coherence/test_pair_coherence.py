"""A pair's Cortex-A53 is quiet from its start on, and so is its second core, which makes load."""

import pytest

from latenz.boards.pair_firmware import PairTask, image
from latenz.boards.setup import ensure_boards
from latenz.coherence import Machine, check


@pytest.mark.parametrize(
    ("load", "memory"), [("none", "ddr-cci"), ("spin", "ocm"), ("memory", "ddr")]
)
def test_pair_is_quiet(tmp_path, load, memory):
    assert ensure_boards() is None
    task = PairTask(samples=20, load=load, memory=memory)
    a53, r5 = (image(side, task, tmp_path) for side in ("a53", "r5"))
    checked = check(Machine(a53, "zcu102", real_time=r5))
    assert not checked.places
    assert "the program switched the board off" in checked.notes
