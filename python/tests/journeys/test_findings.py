"""What stopped the first five users, finding by finding, and the tests that would see it again."""

from pathlib import Path

import pytest
from conftest import ROOT, Latenz

TESTS = ROOT / "python/tests"
FINDINGS = {
    "1 an output replaces anything, its own input too": (
        "files/test_outputs.py::test_inputs_stay_even_when_forced",
        "files/test_outputs.py::test_what_others_wrote_stays_unless_forced",
    ),
    "2 tables lose names, digits and units on narrow terminals": (
        "files/test_every_screen.py::test_nothing_is_cut_on_any_terminal",
    ),
    "3 what the probe writes alone is not read": (
        "importers/test_probe_folder.py::test_every_command_takes_the_folder",
    ),
    "4 a deadline cannot say how rarely, nor for what": (
        "journeys/test_findings.py::test_a_deadline_says_how_rarely_and_for_what",
    ),
    "5 provenance of imported files is another's, or dropped": (
        "importers/test_provenance.py::test_one_files_machine_does_not_stand_for_all",
        "importers/test_provenance.py::test_unknown_is_said_and_the_import_is_no_measurement",
        "importers/test_provenance.py::test_a_clock_of_a_virtual_machine_is_named",
    ),
    "6 printed from a wide window the deadline is cut away": (
        "report/test_browser.py::test_printed_from_a_wide_window_every_label_is_on_paper",
    ),
    "7 a report of two runs does not compare them": (
        "journeys/test_findings.py::test_two_runs_become_one_page_that_compares_them",
    ),
    "8 reports of many sets are endless": (
        "report/test_many_sets.py::test_forty_sets_are_short_on_screen_and_on_paper",
    ),
    "9 a gate fails by chance, and cannot match": (
        "compare/test_compare_alike.py::test_a_gate_over_many_sets_is_not_violated_by_chance",
        "compare/test_compare_runs.py::test_files_of_one_tool_match_in_order_where_no_name_does",
    ),
    "10 files of the commonest instruments are not read": (
        "importers/test_levels.py::test_changes_as_saleae_exports_them",
        "learn/test_can_logs.py::test_candump",
        "files/test_wrong_kinds.py::test_what_is_compressed_is_read",
    ),
    "11 messages point to options that the command does not have": (
        "journeys/test_findings.py::test_what_a_message_asks_for_the_command_has",
    ),
    "12 an emulated result passes as a success": (
        "journeys/test_journeys.py::test_a_hypervisor_engineer_goes_from_a_log_to_a_booted_system",
    ),
    "13 explain names ids, each again and again": (
        "journeys/test_findings.py::test_a_cause_comes_with_what_to_do",
    ),
    "14 tune check does not say what to do": (
        "journeys/test_findings.py::test_an_entry_says_what_it_is_and_what_to_do",
    ),
    "15 no way from a change to whether it helped": (
        "vm/test_vm_own_domain.py::test_the_command_changes_what_tunings_decide_and_says_each_change",
    ),
    "16 bound and measurement never meet": (
        "journeys/test_findings.py::test_what_is_not_bounded_by_a_deadline_is_no_success",
    ),
    "17 quantiles of few samples are facts": (
        "journeys/test_findings.py::test_quantiles_stand_only_where_samples_carry_them",
    ),
    "18 notes are told once for each set": (
        "test_cli.py::test_a_note_of_several_sets_is_told_once_and_the_verdict_last",
    ),
    "19 undecided samples are hidden": (
        "journeys/test_findings.py::test_undecided_samples_are_counted",
    ),
    "20 report says nothing and ends with 0": (
        "report/test_report_command.py::test_it_writes_one_file_and_judges_as_show_does",
    ),
    "21 a file of another kind gets a riddle": (
        "files/test_wrong_kinds.py::test_files_of_ours_name_their_command",
        "files/test_wrong_kinds.py::test_a_slip_of_the_pen_hides_that_its_key_is_missing",
        "files/test_wrong_kinds.py::test_every_mistake_stands_in_the_line",
    ),
    "22 an interrupted run looks finished": (
        "journeys/test_findings.py::test_an_interrupted_run_says_so_first",
    ),
    "23 icc's first program hides why": (
        "icc/test_readme_programs.py::test_they_run_as_printed_and_a_type_that_differs_is_named",
    ),
    "24 long work starts unannounced": (
        "ip/test_ip_replay_length.py::test_a_replay_of_an_hour_is_refused_before_anything_is_written",
    ),
    "25 first steps stumble": (
        "test_cli.py::test_the_version_is_that_of_the_package",
        "journeys/test_findings.py::test_a_short_trace_and_a_share_are_understood",
    ),
}
"""Each finding with the tests of its commands."""


def test_every_finding_has_a_test_that_exists() -> None:
    assert [int(each.split()[0]) for each in FINDINGS] == list(range(1, 26))
    for test in (each for tests in FINDINGS.values() for each in tests):
        file, name = test.split("::")
        assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8"), test


@pytest.fixture
def latencies(tmp_path: Path) -> str:
    """200 latencies in a CSV, as most instruments write them."""
    rows = [f"{1_000_000 * n},{1000 * (n % 17 + 3)}" for n in range(200)]
    (tmp_path / "mine.csv").write_text("\n".join(["t_ns,latency_ns", *rows, ""]))
    return "mine.csv"


def test_a_deadline_says_how_rarely_and_for_what(latenz: Latenz, latencies: str) -> None:
    latenz(f"show {latencies} --deadline 3ms@1e-6", 3, "1e-6", "not shown")
    latenz(f"show {latencies} --deadline trip=3ms@1/s", 3, "trip", "3 ms")
    latenz(f"show {latencies} --deadline 10us@0 --for latency", 1, "violates")
    latenz(f"show {latencies} --deadline 3ms --for can1*", 2, "there are: latency")
    latenz(f"show {latencies} --deadline 3", 2, "'3' has no unit")
    latenz("bound SYSTEM --deadline 500us", 3, "door: not shown to meet 500 µs")
    latenz("bound SYSTEM --deadline can-engine=500us", 0, "can-engine: meets 500 µs")


def test_two_runs_become_one_page_that_compares_them(
    latenz: Latenz, latencies: str, tmp_path: Path
) -> None:
    latenz(f"import {latencies} -o a", 0)
    latenz(f"import {latencies} -o b", 0)
    latenz('compare a b --fail-if "p90 > +10%" -o ab.html', 0, "passed", "comparison: ab.html")
    latenz("report a b --compare -o compared.html", 0, "comparison: compared.html")
    assert "forest" in Path(tmp_path / "compared.html").read_text(encoding="utf-8")
    latenz("report a --compare -o one.html", 2, "--compare: takes two runs, not 1")
    latenz("report a b --compare --deadline 3ms -o two.html", 2, "does not go with --deadline")


def test_what_a_message_asks_for_the_command_has(latenz: Latenz, tmp_path: Path) -> None:
    head = "Sample in Buffer,Sample in Window,TRIGGER,irq,ack\n"
    rows = "".join(f"{n},{n},0,{int(n > 3)},{int(n > 7)}\n" for n in range(12))
    (tmp_path / "ila.csv").write_text(head + "Radix - UNSIGNED,UNSIGNED,UNSIGNED,HEX,HEX\n" + rows)
    (tmp_path / "plain.csv").write_text("latency\n12\n13\n")
    latenz("show ila.csv --start irq --end ack", 2, "--clock-period")
    latenz('show ila.csv --start irq --end ack --clock-period "10 ns"', 0, "40")
    latenz("show plain.csv", 2, "--unit")
    latenz("show plain.csv --unit us", 0, "13")
    latenz("report plain.csv --unit us -o plain.html", 0, "report: plain.html")


def test_a_cause_comes_with_what_to_do(latenz: Latenz) -> None:
    answer = latenz("explain DATA/traces/planted/throttled.dat", 0, "fair-server", "53.85 ms")
    assert answer.count("host-rt-throttling-off") == 1
    assert "echo 0" in answer


def test_an_entry_says_what_it_is_and_what_to_do(latenz: Latenz) -> None:
    latenz("tune check --root DOCS", 2, "holds no machine's files", "give the tree's root")
    latenz("tune plan --root DOCS", 2, "holds no machine's files")


def test_what_is_not_bounded_by_a_deadline_is_no_success(latenz: Latenz) -> None:
    latenz("bound SYSTEM --deadline door=20ms", 0, "door: meets 20 ms")
    latenz("bound SYSTEM --deadline door=1ms", 3, "the bound is 6.502 ms")


def test_quantiles_stand_only_where_samples_carry_them(latenz: Latenz, latencies: str) -> None:
    import json

    (found,) = json.loads(latenz(f"show {latencies} --json", 0))["sample_sets"]
    told = found["quantiles_ns"]
    assert told["0.9"] is not None
    assert told["0.9999"] is None
    assert told["0.99999"] is None


def test_undecided_samples_are_counted(latenz: Latenz) -> None:
    latenz("show DATA/importers/cyclictest-v2.4-hist-smp.txt --deadline 3ms", 3, "1 to 25")


def test_an_interrupted_run_says_so_first(latenz: Latenz, latencies: str, tmp_path: Path) -> None:
    latenz(f"import {latencies} -o run", 0)
    about = tmp_path / "run/run.json"
    about.write_text(about.read_text().replace('"status": "complete"', '"status": "interrupted"'))
    assert "interrupted" in latenz("show run", 0).splitlines()[0]


def test_a_short_trace_and_a_share_are_understood(latenz: Latenz) -> None:
    latenz("learn DATA/learn/can.btf --length 2", 2, "--fraction 1")
    latenz("learn DATA/learn/can.btf --length 2 --fraction 1 --allow 25%", 0)
    latenz("explore SYSTEM --deadline door=9ms --share diagnosis=0.1 --candidates 20 -o x", 0)
