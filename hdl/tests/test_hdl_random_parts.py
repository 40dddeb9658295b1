"""Random traffic through each part around the core, against a model; no situation is left out.

A part's report of its situations is build/hdl/coverage_<part>.md.
"""

from pathlib import Path

import pytest

from simulation.vhdl_sources import HDL
from verification.passing import passes
from verification.random_parts import bins

STREAMED = {"depth_g": "16", "stream_g": "true", "time_stamp_g": "true"}
RUNS: dict[str, tuple[dict[str, str], ...]] = {
    "stream_merger": ({"inputs_g": "3"}, {"inputs_g": "16"}),
    "axi_lite_selector": ({"channels_g": "3"}, {"channels_g": "1", "window_bits_g": "4"}),
    "ring_writer": ({},),
    "random_data_generator": (
        {"words_g": "4", "fifo_depth_g": "8", "synchroniser_stages_g": "0"},
        {"words_g": "1", "fifo_depth_g": "4", "synchroniser_stages_g": "3"},
    ),
    "latencies_ip_channels": (
        STREAMED | {"channels_g": "3", "synchroniser_stages_g": "0"},
        STREAMED | {"channels_g": "2", "chained_g": "true"},
    ),
    "uart_axi_bridge": ({"cycles_per_bit_g": "10", "silence_bits_g": "32"},),
}
DEAR = ("latencies_ip_channels", "uart_axi_bridge")


@pytest.mark.parametrize(
    "entity",
    [pytest.param(each, marks=pytest.mark.long if each in DEAR else ()) for each in RUNS],
)
def test_random_traffic_is_as_the_model_says_and_reaches_every_situation(
    entity: str, tmp_path: Path
) -> None:
    files = []
    for number, generics in enumerate(RUNS[entity]):
        place = tmp_path / str(number)
        place.mkdir()
        module = f"verification.random_parts.{entity}"
        passes(entity, generics, place, cases=1, module=module)
        files.append(place / "bins.json")
    hits = bins.merged(files)
    report = HDL.parent / f"build/hdl/coverage_{entity}.md"
    report.write_text(
        "| part | situation | hits |\n| --- | --- | --: |\n" + bins.table(entity, hits)
    )
    assert not bins.missed(hits)


def test_a_situation_that_nothing_reaches_is_told(tmp_path: Path) -> None:
    for number, text in enumerate(('{"a": 1, "b": 0}', '{"a": 2, "b": 0}')):
        (tmp_path / str(number)).write_text(text)
    hits = bins.merged(tmp_path / str(number) for number in range(2))
    assert (hits["a"], bins.missed(hits)) == (3, ["b"])
