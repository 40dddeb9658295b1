# SPDX-License-Identifier: Apache-2.0
"""Our register blocks beside those that PeakRDL generates from the same maps."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cocotb_tools.runner import get_runner

from verification.register_blocks.oracle import Wrapper, elaborate

pytestmark = pytest.mark.proofs

EVERYTHING: dict[str, bool | int] = dict.fromkeys(
    (
        "extended_g",
        "counters_g",
        "watchdog_g",
        "time_stamp_g",
        "snapshot_g",
        "sums_g",
        "histogram_g",
        "stream_g",
        "freeze_g",
        "self_test_g",
    ),
    True,
)
CASES: list[tuple[str, dict[str, bool | int], int]] = [
    ("latencies_ip", {}, 7),
    ("latencies_ip", {"latency_width_g": 48}, 11),
    ("latencies_ip", {"extended_g": True, "watchdog_g": True, "snapshot_g": True}, 23),
    ("latencies_ip", {**EVERYTHING, "latency_width_g": 48}, 58),
    ("random_data_generator", {"words_g": 37}, 7),
    ("stream_ring_writer", {"address_width_g": 40}, 9),
    ("stream_ring_writer", {"address_width_g": 64}, 9),
]


@pytest.mark.parametrize(("name", "generics", "registers"), CASES)
def test_register_block_does_what_peakrdls_does(
    tmp_path: Path, name: str, generics: dict[str, bool | int], registers: int
) -> None:
    offsets = [node.absolute_address for node in elaborate(name, generics).registers()]
    assert len(offsets) == registers
    wrapper = Wrapper(name, generics)
    runner = get_runner("ghdl")
    runner.build(
        sources=wrapper.write(tmp_path),
        hdl_toplevel="side_by_side",
        build_args=["--std=08", "-frelaxed"],
        build_dir=tmp_path / "build",
        log_file=tmp_path / "build.log",
        always=True,
    )
    results = runner.test(
        hdl_toplevel="side_by_side",
        test_module="verification.register_blocks.compare",
        test_args=["--std=08", "-frelaxed"],
        plusargs=["--ieee-asserts=disable-at-0"],
        build_dir=tmp_path / "build",
        log_file=tmp_path / "test.log",
        extra_env={
            "LATENZ_OFFSETS": json.dumps(offsets),
            "LATENZ_FIELDS": json.dumps(
                [(part.ours, part.node.width) for part in wrapper.values()]
            ),
            "LATENZ_TRANSACTIONS": "400",
        },
    )
    cases = ElementTree.parse(results).findall(".//testcase")
    assert [case.attrib["name"] for case in cases] == [
        "no_more_than_the_map",
        "random_transactions",
    ]
    wrong = [case for case in cases for kind in ("failure", "error") if case.find(kind) is not None]
    assert not wrong, (tmp_path / "test.log").read_text()[-3000:]
