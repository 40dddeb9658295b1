"""Corner cases and AXI of the published configuration; test_hdl_long_latencies has the others."""

import pytest

from verification.latencies_ip.suite import run


@pytest.mark.parametrize("module", ["corner_cases", "axi_cases"])
def test_published_configuration(module: str) -> None:
    result = run(module, "published")
    assert not result.failed, result.log[-6000:]
    assert result.passed
