"""What files say of their measurement is kept and shown; what they do not say is not made up."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from latenz import importers

DATA = Path(__file__).parent.parent / "data/importers"
JSON = DATA / "cyclictest-v2.4-hist-rt.json"
RTLA = DATA / "rtla-timerlat-hist-v6.1.txt"


def latenz(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "latenz", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
    )


def origins(*arguments: object) -> list[dict[str, object]]:
    shown = latenz("show", *arguments, "--json")
    assert shown.returncode == 0, shown.stderr
    found: list[dict[str, object]] = json.loads(shown.stdout)["provenance"]
    return found


def test_json_of_cyclictest_tells_command_start_interval_and_priority() -> None:
    document = json.loads(JSON.read_text())
    for each in importers.read(JSON):
        known = each.metadata
        assert known.command == document["cmdline:"]
        assert known.measured == "2026-11-21T02:01:44+00:00"  # Sat, 21 Nov 2026 02:01:44 +0000
        assert (known.period_ns, known.priority) == (1_000_000, 80)
        assert known.time_base_assumed


@pytest.mark.parametrize("name", ["oslat-v2.4.json", "ptsematest-v2.4.json"])
def test_all_of_rt_tests_tell_command_machine_and_start(name: str) -> None:
    document = json.loads((DATA / name).read_text())
    for each in importers.read(DATA / name):
        assert each.metadata.command == document["cmdline:"]
        assert each.metadata.machine == document["sysinfo"]["machine"]
        assert str(document["sysinfo"]["release"]) in str(each.metadata.kernel)
        assert str(each.metadata.measured).startswith("2026-11-21T0")


def test_status_lines_tell_each_threads_priority() -> None:
    text = (DATA / "cyclictest-v2.4-quiet.txt").read_text()
    printed = [int(found) for found in re.findall(r"P: *(\d+)", text)]
    read = importers.read(DATA / "cyclictest-v2.4-quiet.txt")
    assert [each.metadata.priority for each in read] == printed != []


def test_threads_that_differ_get_no_common_interval(tmp_path: Path) -> None:
    """Without -S, cyclictest gives each thread its own interval and priority."""
    document = json.loads(JSON.read_text())
    document["cmdline:"] = "cyclictest --json=ct.json -h 100 -i 1000 -p 80 -t 2"
    (tmp_path / "ct.json").write_text(json.dumps(document))
    known = [each.metadata for each in importers.read(tmp_path / "ct.json")]
    assert [(each.period_ns, each.priority) for each in known] == [(None, None)] * 2


@pytest.mark.parametrize("start", ["", "yesterday", "Sat, 99 Nov 2026 02:01:44 +0000", "x" * 9999])
def test_a_start_that_is_no_date_does_no_harm(start: str, tmp_path: Path) -> None:
    document = json.loads(JSON.read_text())
    document["start_time"] = start
    (tmp_path / "ct.json").write_text(json.dumps(document))
    (told,) = {each.metadata.measured for each in importers.read(tmp_path / "ct.json")}
    assert told == (start[:4096] or None)


def test_unknown_is_said_and_the_import_is_no_measurement(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert latenz("import", RTLA, "-o", run).returncode == 0
    (known,) = origins(run)
    assert (known["machine"], known["kernel"], known["measured"]) == (None, None, None)
    assert "silicon" in str(known["clock"])
    shown = latenz("show", run).stdout
    assert "not known: machine, kernel, when; imported 20" in " ".join(shown.split())


def test_what_the_user_says_is_kept(tmp_path: Path) -> None:
    said = ("--machine", "relay 7", "--measured", "2026-11-20", "--note", "fan off")
    run = tmp_path / "run"
    assert latenz("import", RTLA, "-o", run, *said, "--title", "Relay bench").returncode == 0
    for place in ((run,), (RTLA, *said)):
        (known,) = origins(*place)
        assert (known["machine"], known["measured"]) == ("relay 7", "2026-11-20")
        assert "fan off" in latenz("show", *place).stdout
    page = tmp_path / "page.html"
    assert latenz("report", run, "-o", page).returncode == 0
    assert "<h1>Relay bench</h1>" in page.read_text()
    assert latenz("report", run, "-o", page, "--title", "Two <b>").returncode == 0
    assert "<h1>Two &lt;b&gt;</h1>" in page.read_text()


def test_one_files_machine_does_not_stand_for_all(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert latenz("report", JSON, RTLA, "-o", page).returncode == 0
    facts = dict(re.findall(r"<dt>(\w+)</dt><dd>(.*?)</dd>", page.read_text()))
    assert facts["Machine"] == "x86_64; not known for 1 of 2 sources"
    assert facts["Measured"].startswith("2026-11-21 02:01 UTC; not known for 1")
    assert "Recorded" not in facts


def test_a_clock_of_a_virtual_machine_is_named(tmp_path: Path) -> None:
    """As doctor finds it; made here by a run whose environment says so."""
    run = tmp_path / "run"
    assert latenz("import", JSON, "-o", run).returncode == 0
    info = json.loads((run / "run.json").read_text())
    info["environment"] = {"host": {"kernel": {"virtualization": "kvm"}}}
    for each in info["sample_sets"]:
        each["metadata"] |= {"bench": "host", "time_base_assumed": False}
    (run / "run.json").write_text(json.dumps(info))
    (known,) = origins(run)
    assert known["clock"] == "clock of a virtual machine (kvm)"


def test_mistakes_get_one_line(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert latenz("import", JSON, "-o", run).returncode == 0
    for arguments, told in (
        (("show", JSON, "--measured", "last week"), "'last week' is not a date"),
        (("show", run, "--machine", "relay 7"), "give it with `latenz import`"),
        (("report", run, "-o", tmp_path / "p.html", "--note", "x"), "latenz import"),
    ):
        done = latenz(*arguments)
        assert done.returncode == 2, done.stdout
        assert told in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "p.html").exists()


def test_what_is_said_cannot_steer_a_terminal(tmp_path: Path) -> None:
    shutil.copy(RTLA, tmp_path / "a\x1b[2Jb.txt")
    done = latenz("show", tmp_path / "a\x1b[2Jb.txt", "--machine", "m\x1b[2J", "--note", "\x07n")
    assert done.returncode == 0, done.stderr
    assert not set("\x1b\x07") & set(done.stdout)
