"""The corner cases and additions again, on netlists in Icarus Verilog.

What synthesis makes of the VHDL must behave as the VHDL does. Saturation is left out for its 65,536
cycles: its proof (formal/core_properties.sv) is on the same netlist.
"""

from dataclasses import replace

import pytest

from synthesis.resimulate import simulate
from verification.model.configuration import FULL, PUBLISHED

pytestmark = pytest.mark.proofs

# Those that need no addition: a filter would run the others, too.
WITHOUT_ADDITIONS = "case_(01|02_second|03|04|06_memory_full|07|08|09|11|12|13|14|19)"


def test_corner_cases_pass_on_the_published_netlist() -> None:
    passed, failed = simulate("corner_cases", PUBLISHED, "published", WITHOUT_ADDITIONS)
    assert failed == ""
    cases = {name[:7] for name in passed}
    assert {f"case_{number:02}" for number in (1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14, 19)} <= cases


@pytest.mark.parametrize("policy", ["restart", "queue"])
def test_corner_cases_of_the_other_policies(policy: str) -> None:
    ip = replace(PUBLISHED, overlap_policy=policy)
    passed, failed = simulate("corner_cases", ip, f"published-{policy}", WITHOUT_ADDITIONS)
    assert failed == ""
    assert len(passed) >= 15


def test_additions_of_the_full_configuration() -> None:
    passed, failed = simulate("additions", FULL, "full")
    assert failed == ""
    assert len(passed) == 10
