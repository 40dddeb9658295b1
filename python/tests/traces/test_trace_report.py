"""The report tells why the worst samples of a traced run were late."""

from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import planting
import pytest

from latenz.errors import BadInput
from latenz.model import Metadata, SampleSet, TimeBase
from latenz.report import open_runs, write_report
from latenz.store.run import RunWriter
from latenz.traces.causes import Cause
from latenz.traces.explaining import explain
from latenz.traces.opening import open_trace

_HOSTILE = "</td><script>alert(1)</script>"


def _reported(folder: Path, causes: list[dict[str, Any]]) -> str:
    """Write a run of one traced condition and its report; return the page."""
    writer = RunWriter(folder / "run")
    metadata = Metadata(name="idle/cpu1", time_base=TimeBase.SILICON, cpu=1, condition="idle")
    writer.add(SampleSet.from_columns(metadata, latency_ns=[5, 6, 7], t_ns=[1000, 2000, 3000]))
    notes = [f"a note {_HOSTILE}"]
    writer.info.conditions.append(
        {
            "condition": "idle",
            "repetition": 1,
            "state": "measured",
            "traces": ["idle/trace.dat"],
            "causes": causes,
            "trace_notes": notes,
        }
    )
    writer.close()
    page = folder / "report.html"
    write_report(open_runs([folder / "run"]), page)
    return page.read_text(encoding="utf-8")


@pytest.fixture
def cause(tmp_path: Path) -> Cause:
    trace = planting.trace_with("preempted", 5)
    return explain(open_trace(trace.write(tmp_path / "trace.txt")), 1).causes[0]


def test_causes_stand_in_the_report_with_shares_and_tunings(tmp_path: Path, cause: Cause) -> None:
    page = _reported(tmp_path, [cause.to_json()])
    section = page.partition('id="causes"')[2].partition("</section>")[0]
    assert "Why the worst were late" in section
    assert cause.first.evidence in unescape(section)
    for share in cause.shares:
        assert f">{share.cause}</span>" in section
    for tuning in cause.first.tunings:
        assert f"<code>{tuning}</code>" in section


def test_a_doubtful_cause_has_what_else_it_could_be_and_what_would_tell(
    tmp_path: Path, cause: Cause
) -> None:
    doubt = {
        "confidence": "likely",
        "alternatives": ["a lock", f"an {_HOSTILE}"],
        "record": ["ipi:ipi_send_cpu", "preemptirq:preempt_disable"],
    }
    page = _reported(tmp_path, [{**cause.to_json(), **doubt}])
    assert _HOSTILE not in page
    told = unescape(page)
    assert f"Or: a lock, or an {_HOSTILE}" in told
    assert "To know: record ipi:ipi_send_cpu, preemptirq:preempt_disable" in told


def test_runs_that_tell_neither_can_still_be_read(tmp_path: Path, cause: Cause) -> None:
    told = cause.to_json()
    del told["alternatives"], told["record"]
    assert "To know: record" not in _reported(tmp_path, [told])


def test_names_from_a_trace_stay_text(tmp_path: Path, cause: Cause) -> None:
    hostile = replace(cause, what=_HOSTILE)
    page = _reported(tmp_path, [hostile.to_json()])
    assert _HOSTILE not in page
    assert _HOSTILE in unescape(page)


def test_a_run_without_a_trace_has_no_such_section(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    metadata = Metadata(name="idle/cpu1", time_base=TimeBase.SILICON)
    writer.add(SampleSet.from_columns(metadata, latency_ns=[5, 6, 7]))
    writer.close()
    page = tmp_path / "report.html"
    write_report(open_runs([tmp_path / "run"]), page)
    assert 'id="causes"' not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("broken", [{}, {"latency_ns": "long"}, {"shares": 1}])
def test_a_damaged_account_is_one_line(
    tmp_path: Path, cause: Cause, broken: dict[str, Any]
) -> None:
    told = {**cause.to_json(), **broken} if broken else {}
    with pytest.raises(BadInput, match="tells causes that cannot be read"):
        _reported(tmp_path, [told])
