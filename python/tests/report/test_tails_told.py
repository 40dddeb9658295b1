"""What a report says of tails: levels in activations and in time, or a reason and a remedy."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from latenz.errors import BadInput
from latenz.model import Metadata, SampleSet, TimeBase
from latenz.report import ReportedRun, write_report
from latenz.report.causes import causes_by_time
from latenz.report.collect import Source, View, collect
from latenz.report.tails import told_tails
from latenz.statistics.tail import TailRefusal

PERIOD_NS = 1_000_000
N = 20_000


def told(values: np.ndarray, folder: Path) -> str:
    metadata = Metadata(name="set", time_base=TimeBase.SIMULATED, period_ns=PERIOD_NS)
    sample_set = SampleSet.from_columns(metadata, latency_ns=values.astype(np.int64))
    page = folder / "page.html"
    write_report([ReportedRun("run", [sample_set])], page)
    table = page.read_text(encoding="utf-8").split('<table class="tails">')[1].split("</table>")[0]
    return " ".join(re.sub(r"<[^>]+>", " ", table).split())


def test_a_fitted_tail_is_told_for_activations_and_for_times(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    told_of = told(10_000 + 5000 * rng.exponential(1, N), tmp_path)
    level = r"[\d.]+ µs \([\d.]+ µs to [\d.]+ µs\)"
    assert re.search(rf"exceeded once in 200,000 activations: {level}", told_of)
    assert re.search(rf"largest in an hour: {level}", told_of)
    assert "largest in a day" not in told_of  # 4320 times as long as was measured
    assert re.search(r"Clusters Extremal index Shape Scale", told_of)
    assert "Refused" not in told_of


def test_a_refused_tail_is_one_sentence_that_tells_what_helps(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    told_of = told(10_000 + 5000 * rng.exponential(1, N) * np.linspace(1, 2, N), tmp_path)
    sentence = told_of.split("Refused.")[1].partition(" \N{EN DASH} ")[0].strip()
    assert sentence.startswith("stationary rate: ")
    assert "hold the load steady, or measure 4 times as long (80 s)" in sentence
    assert sentence.endswith(".")
    assert ". " not in sentence


def test_causes_are_those_of_the_cpu_and_not_doubtful() -> None:
    def cause(t_ns: int, cpu: int, confidence: str) -> dict[str, object]:
        return {"t_ns": t_ns, "cpu": cpu, "cause": "irq", "confidence": confidence, "rank": 1}

    conditions = [
        {"condition": "idle", "causes": [cause(5, 1, "certain"), cause(6, 0, "certain")]},
        {"condition": "busy", "causes": [cause(7, 1, "perhaps"), cause(8, 1, "likely")]},
        {"condition": "not traced"},
    ]
    assert causes_by_time(conditions, 1) == {5: "irq", 8: "irq"}
    assert causes_by_time(conditions, None) == {}
    with pytest.raises(BadInput, match="causes that cannot be read"):
        causes_by_time([{"causes": [{"t_ns": "x"}]}], 1)


def test_many_refusals_stay_one_short_sentence() -> None:
    def refused(number: int) -> View:
        view = collect([Source(f"s{number}", "s", few(number))])[0]
        return replace(view, tail=TailRefusal(f"why {number}", ()))

    told = told_tails([refused(number) for number in range(50)])["refused"]
    assert told.startswith("No extrapolation for 50 of 50 sets: why 0 (s0); ")
    assert told.endswith("47 more for reasons of their own, told below.")


def few(number: int) -> SampleSet:
    metadata = Metadata(name=f"s{number}", time_base=TimeBase.SIMULATED)
    return SampleSet.from_columns(metadata, latency_ns=[1, 2, 3])
