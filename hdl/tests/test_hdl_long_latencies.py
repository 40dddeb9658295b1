"""Every corner case of the Latencies IP, random traffic, and how much of it was reached."""

from pathlib import Path

import pytest

from verification.latencies_ip import coverage
from verification.latencies_ip.runner import BUILD, HDL
from verification.latencies_ip.suite import RUNS, run

pytestmark = [pytest.mark.proofs, pytest.mark.long]


@pytest.mark.parametrize(("module", "name"), RUNS)
def test_all_cases_pass(module: str, name: str) -> None:
    result = run(module, name)
    assert not result.failed, result.log[-6000:]
    assert result.passed


def test_each_corner_case_has_a_test_that_ran() -> None:
    ran = {test for module, name in RUNS for test in run(module, name).passed}
    page = (HDL / "verification/README.md").read_text()
    for number in range(1, 20):
        if number in (17, 18):
            continue  # of the bench with two IPs and the generator
        tests = [test for test in ran if test.startswith(f"case_{number:02}_")]
        assert tests, number
        for test in tests:
            assert f"`{test}`" in page, test


def test_every_bin_of_the_functional_coverage_is_reached() -> None:
    files: list[Path] = []
    for module, name in RUNS:
        run(module, name)
        files.append(BUILD / "runs" / f"{module}-{name}" / "coverage.json")
    text, missed = coverage.report(files)
    (BUILD.parent / "coverage.md").write_text(text)
    assert not missed
