"""`latenz import` and `latenz export` as people use them."""

import json
import subprocess
import sys
from pathlib import Path

import examples
import pytest

DATA = Path(__file__).parent.parent / "data" / "importers"


def latenz(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latenz", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_import_show_export_and_back(tmp_path):
    source = DATA / "cyclictest-v2.4-hist.json"
    imported = latenz("import", source, "-o", tmp_path / "run")
    assert imported.returncode == 0, imported.stderr
    assert imported.stdout == ""
    shown = json.loads(latenz("show", tmp_path / "run", "--json").stdout)
    direct = json.loads(latenz("show", source, "--json").stdout)
    assert shown == direct
    first = shown["sample_sets"][0]
    assert (first["name"], first["n"], first["beyond_range"]) == ("cpu0", 2000, 25)
    assert (first["min_ns"], first["max_ns"]) == (3_000, 5_512_000)
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    metadata = run["sample_sets"][0]["metadata"]
    assert metadata["source"] == "cyclictest-v2.4-hist.json, read as cyclictest"
    assert run["status"] == "complete"
    for to in ("csv", "parquet", "cyclictest-json"):
        out = tmp_path / f"out.{to}"
        exported = latenz("export", tmp_path / "run", "--to", to, "-o", out)
        assert exported.returncode == 0, exported.stderr
        assert json.loads(latenz("show", out, "--json").stdout) == direct
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "out.csv",
        "out.cyclictest-json",
        "out.parquet",
        "run",
    ]


def test_import_of_a_wave_form(tmp_path):
    (tmp_path / "wave.vcd").write_text(examples.VCD)
    signals = ("--start", "top.irq", "--end", "ack", "--overlap", "queue")
    imported = latenz("import", tmp_path / "wave.vcd", *signals, "-o", tmp_path / "run")
    assert imported.returncode == 0, imported.stderr
    (shown,) = json.loads(latenz("show", tmp_path / "run", "--json").stdout)["sample_sets"]
    assert (shown["n"], shown["max_ns"], shown["time_base"]) == (2, 11, "simulated")
    assert (shown["overlaps"], shown["orphan_ends"], shown["open_at_end"]) == (0, 0, 0)


def test_every_command_that_reads_files_takes_the_options_of_import(tmp_path):
    wave = tmp_path / "wave.vcd"
    wave.write_text(examples.VCD)
    signals = ("--start", "top.irq", "--end", "ack", "--overlap", "queue")
    imported = latenz("import", wave, *signals, "-o", tmp_path / "run")
    assert imported.returncode == 0, imported.stderr
    shown = json.loads(latenz("show", wave, *signals, "--json").stdout)
    assert shown == json.loads(latenz("show", tmp_path / "run", "--json").stdout)
    sql = "SELECT t_ns, latency_ns FROM samples ORDER BY t_ns"
    asked = [latenz("query", sql, each, "--json", *signals) for each in (wave, tmp_path / "run")]
    assert asked[0].stdout == asked[1].stdout != ""
    for verb in (
        ("report", wave, "-o", tmp_path / "report.html"),
        ("compare", wave, wave, "-o", tmp_path / "compared.html"),
        ("export", wave, "--to", "csv", "-o", tmp_path / "out.csv"),
    ):
        done = latenz(*verb, *signals)
        assert done.returncode == 0, done.stderr
    assert (
        latenz("show", wave, "--unit", "m").stderr
        == "latenz: --unit: 'm' is not a known unit; ns, us, ms, s\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("absent.txt",), "absent.txt: cannot be read (No such file or directory)"),
        (
            (DATA / "README.md",),
            "the content is of no format that Latenz reads; formats: latenz-wakeup, parquet",
        ),
        (
            (DATA / "oslat-v2.4.json", "--format", "pdf"),
            "'pdf' is not a format; formats: latenz-wakeup, parquet",
        ),
        ((DATA / "oslat-v2.4.json", "--format", "vcd"), "oslat-v2.4.json:1 (vcd): '{' stands"),
        ((DATA / "oslat-v2.4.json", "--unit", "h"), "'h' is not a known unit; ns, us, ms, s"),
        (
            (DATA / "oslat-v2.4.json", "--time-base", "x"),
            "--time-base: 'x' is not a known time base",
        ),
    ],
)
def test_mistakes_get_one_line_and_leave_nothing(tmp_path, arguments, message):
    answer = latenz("import", *arguments, "-o", tmp_path / "run")
    assert answer.returncode == 2
    assert message in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_existing_run_is_not_touched(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("kept")
    answer = latenz("import", DATA / "oslat-v2.4.json", "-o", tmp_path / "run")
    assert answer.returncode == 2
    assert "exists and is not empty; name a new folder with -o" in answer.stderr
    assert [p.name for p in tmp_path.rglob("*")] == ["run", "mine"]


def test_an_empty_folder_will_do(tmp_path):
    (tmp_path / "run").mkdir()
    answer = latenz("import", DATA / "oslat-v2.4.json", "-o", tmp_path / "run")
    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "run" / "cpu1" / "samples.parquet").exists()


def test_a_wave_form_with_a_wrong_policy(tmp_path):
    (tmp_path / "wave.vcd").write_text(examples.VCD)
    signals = ("--start", "top.irq", "--end", "ack", "--overlap", "ignore")
    answer = latenz("import", tmp_path / "wave.vcd", *signals, "-o", tmp_path / "run")
    assert answer.returncode == 2
    assert "'ignore' is not an overlap policy; drop, restart, queue" in answer.stderr


def test_the_time_base_of_an_emulated_machine(tmp_path):
    source = DATA / "signaltest-v2.4.json"
    latenz("import", source, "--time-base", "virtual", "-o", tmp_path / "run")
    shown = json.loads(latenz("show", tmp_path / "run", "--json").stdout)
    assert {s["time_base"] for s in shown["sample_sets"]} == {"virtual"}
