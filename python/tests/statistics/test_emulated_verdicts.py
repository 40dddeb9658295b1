"""What is met in emulated or simulated time only never ends as a success of silicon."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from latenz.model import Deadline, Metadata, SampleSet, TimeBase
from latenz.statistics import summarize
from latenz.statistics.joint import jointly
from latenz.store.run import RunWriter

pytestmark = pytest.mark.boots

_PERIOD_NS = 1_000_000
_N = 20_000  # 20 s: more than what showing 1/s takes
_WIDE = "1ms@1/s"


def latenz(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "latenz", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
    )


def made(name: str, time_base: TimeBase, latency_ns: int = 4_000) -> SampleSet:
    metadata = Metadata(
        name=name, time_base=time_base, period_ns=_PERIOD_NS, missed_periods=0, tool="made"
    )
    times = [i * _PERIOD_NS for i in range(_N)]
    return SampleSet.from_columns(metadata, latency_ns=[latency_ns] * _N, t_ns=times)


def run_of(folder: Path, *sets: SampleSet) -> Path:
    writer = RunWriter(folder)
    for each in sets:
        writer.add(each)
    writer.close()
    return folder


@pytest.mark.parametrize("base", [TimeBase.VIRTUAL, TimeBase.SIMULATED])
def test_met_in_emulated_time_is_not_shown_unless_accepted(base: TimeBase, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", made("load/cpu0", base))
    page = tmp_path / "page.html"
    for code, option in ((3, []), (0, ["--accept-emulated"])):
        shown = latenz("show", run, "--deadline", _WIDE, *option)
        assert shown.returncode == code, shown.stdout + shown.stderr
        assert "meets, emulated" in shown.stdout
        assert "shows nothing of silicon" in shown.stdout.splitlines()[-1]
        told = latenz("report", run, "-o", page, "--deadline", _WIDE, *option)
        assert told.returncode == code, told.stderr
        assert "shows nothing of silicon" in told.stderr
        joint = json.loads(
            latenz("show", run, "--deadline", _WIDE, "--json", *option).stdout.replace("\n", " ")
        )["joint"]
        assert (joint["meets"], joint["emulated"]) == (1, 1)
        assert joint["verdict"] == ("not shown" if code else "meets")


def test_the_page_is_neutral_about_emulated_time(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", made("load/cpu0", TimeBase.VIRTUAL))
    page = tmp_path / "page.html"
    latenz("report", run, "-o", page, "--deadline", _WIDE, "--accept-emulated")
    text = page.read_text(encoding="utf-8")
    marks = re.findall(r'class="(?:verdict|overall) ([\w-]+)"', text)
    assert set(marks) == {"emulated"}


def test_silicon_is_judged_as_before_and_a_violation_counts_anywhere(tmp_path: Path) -> None:
    silicon = run_of(tmp_path / "silicon", made("a", TimeBase.SILICON))
    assert latenz("show", silicon, "--deadline", _WIDE).returncode == 0
    late = run_of(tmp_path / "late", made("a", TimeBase.VIRTUAL, latency_ns=40_000))
    for option in ([], ["--accept-emulated"]):
        assert latenz("show", late, "--deadline", "30us@0", *option).returncode == 1


def test_one_emulated_verdict_among_those_of_silicon_is_named() -> None:
    deadline = Deadline(name="d", limit_ns=1_000_000, allowed="1/s")
    bases = (TimeBase.SILICON, TimeBase.VIRTUAL, TimeBase.SILICON)
    summaries = [summarize(made(f"s{i}", base), [deadline]) for i, base in enumerate(bases)]
    verdicts = [verdict for each in summaries for verdict in each.deadlines]
    assert [each.verdict for each in verdicts] == ["meets"] * 3
    assert [each.emulated for each in verdicts] == [False, True, False]
    joint = jointly(verdicts)
    assert joint is not None
    assert (joint.verdict, joint.emulated, joint.meets) == ("not shown", 1, 3)
    assert "1 of these in emulated time only" in joint.sentence
    accepted = jointly(verdicts, accept_emulated=True)
    assert accepted is not None
    assert accepted.verdict == "meets"
    alone = jointly([verdicts[0], verdicts[2]])
    assert alone is not None
    assert (alone.verdict, alone.emulated) == ("meets", 0)
    assert "silicon" not in alone.sentence


def test_a_deadline_judges_the_sets_that_it_is_for(tmp_path: Path) -> None:
    slow = made("hv/can1", TimeBase.SILICON, latency_ns=500_000)
    run = run_of(tmp_path / "run", made("hv/can0", TimeBase.SILICON), slow)
    tight = "--deadline=30us@0"
    assert latenz("show", run, tight).returncode == 1
    assert latenz("show", run, tight, "--for", "*/can0").returncode == 3  # as none is allowed
    both = ("--deadline=wide=1ms@1/s", "--for=*/can1", tight, "--for=*/can0")
    shown = latenz("show", run, *both, "--json")
    assert shown.returncode == 3
    judged = {
        each["name"]: [verdict["name"] for verdict in each["deadlines"]]
        for each in json.loads(shown.stdout)["sample_sets"]
    }
    assert judged == {"hv/can0": ["30us"], "hv/can1": ["wide"]}
    page = tmp_path / "page.html"
    assert latenz("report", run, "-o", page, tight, "--for", "*/can0").returncode == 3


def test_mistakes_about_sets_get_one_line(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", made("hv/can0", TimeBase.SILICON))
    for arguments, told in (
        (["--deadline=1ms", "--for=can9*"], "no sample set is called 'can9*'"),
        (["--for=*"], "1 patterns for 0 deadlines"),
        (["--deadline=1ms", "--for=a", "--for=b"], "2 patterns for 1 deadlines"),
    ):
        for command in (["show", run], ["report", run, "-o", tmp_path / "r.html"]):
            done = latenz(*command, *arguments)
            assert done.returncode == 2, done.stdout
            assert told in done.stderr
            assert done.stderr.count("\n") == 1
    assert not (tmp_path / "r.html").exists()


def test_undecided_samples_are_counted_with_the_late_ones(tmp_path: Path) -> None:
    """Whole microseconds at the limit itself may be late or not."""
    metadata = Metadata(
        name="a",
        time_base=TimeBase.SILICON,
        period_ns=_PERIOD_NS,
        missed_periods=0,
        resolution_ns=1_000,
    )
    values = [3_000] * 24 + [4_000] + [1_000] * 975
    run = run_of(tmp_path / "run", SampleSet.from_columns(metadata, latency_ns=values))
    assert " 1 to 25 " in latenz("show", run, "--deadline", "3us").stdout
