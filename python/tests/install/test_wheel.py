"""Latenz installed from a wheel: no clone, no compiler, the user's own folder."""

import json
import re
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

_IMPORT_ALL = """
import importlib, pkgutil, sys, sysconfig
import latenz
for module in pkgutil.walk_packages(latenz.__path__, "latenz."):
    if module.name not in ("latenz.__main__", "latenz.importers.mdf_reader"):
        importlib.import_module(module.name)
allowed = (sys.prefix, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
for name, module in sorted(sys.modules.items()):
    file = getattr(module, "__file__", None)
    if file and not file.startswith(allowed):
        print("from elsewhere:", name, file)
print(len([name for name in sys.modules if name.startswith("latenz")]))
"""


def states(answer):
    return {each["id"]: each["state"] for each in json.loads(answer.stdout)["checks"]}


def test_the_wheel_is_for_every_python_from_3_11_on(wheel):
    assert re.search(r"-cp311-abi3-linux_\w+\.whl$", wheel.name)
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    for wanted in (
        "latenz/_core.abi3.so",
        "latenz/bin/latenz-wakeup",
        "latenz/experiments/quick.toml",
        "latenz/experiments/systems/can-gateway.toml",
        "latenz/experiments/systems/system.schema.json",
        "latenz/experiments/traces/ecu.csv",
        "latenz/firmware/virt-O2/latency.elf",
        "latenz/linux-arm64/bin/latenz-wakeup",
    ):
        assert wanted in names
    assert any(name.startswith("latenz/firmware/hypervisor/") for name in names)
    assert not [name for name in names if not re.match(r"latenz(-[^/]+\.dist-info)?/", name)]


def test_the_clone_is_out_of_sight(installed):
    answer = installed("python", "-c", f"import os; print(os.listdir({str(ROOT)!r}))")
    assert answer.stdout == "[]\n"


def test_every_module_comes_from_its_own_tree(installed):
    answer = installed("python", "-I", "-c", _IMPORT_ALL)
    assert answer.returncode == 0, answer.stderr
    [count] = answer.stdout.split()
    assert int(count) > 300


def test_it_is_whole_and_needs_no_compiler(installed):
    answer = installed("latenz", "self-check", "--json")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = json.loads(answer.stdout)
    assert (found["kind"], found["whole"]) == ("installed", True)
    checks = {each["id"]: each for each in found["checks"]}
    assert checks["compiler"]["found"] == "none needed (none on this machine)"
    assert [checks[name]["state"] for name in ("files", "core", "programs", "images")] == ["ok"] * 4
    assert checks["qemu-aarch64"]["state"] == "limited"  # it is not on this PATH
    assert "qemu-system-aarch64" in checks["qemu-aarch64"]["found"]


def test_it_measures_and_reports_by_name_from_any_folder(installed, tmp_path):
    run, page = tmp_path / "run", tmp_path / "run.html"
    arguments = ("quick", "--only", "idle-wakeup", "--duration", "1s", "-o", str(run), "--json")
    measured = installed("latenz", "run", *arguments)
    assert measured.returncode in (0, 1, 3), measured.stderr
    assert json.loads(measured.stdout)["conditions"][0]["state"] == "measured"
    reported = installed("latenz", "report", str(run), "-o", str(page))
    assert reported.returncode == 0, reported.stderr
    assert page.stat().st_size > 1_000_000


def test_it_computes_from_a_system_by_name(installed):
    answer = installed("latenz", "bound", "can-gateway", "--json")
    assert answer.returncode == 0, answer.stderr


def test_its_version_is_told_without_git(installed):
    answer = installed("latenz", "--version")
    assert re.fullmatch(r"latenz \d+\.\d+\.\d+[\w.+]*\n", answer.stdout)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["ip", "read", "sim:latency_bench", "-o", "x"], "clone Latenz and run ./latenz there"),
        (["icc", "try", "programs"], "clone Latenz and run ./latenz there"),
        (["run", "quick", "--only", "standalone", "-o", "x"], "qemu-system-aarch64"),
        (["hypervisor", "run", "can-gateway", "--irqs", "10"], "qemu-system-aarch64"),
        (["vm", "run", "-o", "x"], "qemu-system-x86_64"),
        (["show", "a.mf4"], "pip install 'latenz[mdf]'"),
    ],
)
def test_what_needs_more_is_refused_in_one_line(installed, tmp_path, arguments, told):
    programs = tmp_path / "programs"
    programs.mkdir()
    for side in ("a53", "r5"):
        (programs / f"{side}.cpp").write_text("int main() { return 0; }\n")
    (tmp_path / "a.mf4").write_bytes(b"MDF     4.10    test    " + bytes(200))
    places = {"programs": str(programs), "x": str(tmp_path / "x"), "a.mf4": str(tmp_path / "a.mf4")}
    answer = installed("latenz", *(places.get(word, word) for word in arguments))
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert told in answer.stderr
    assert answer.stderr.count("\n") == 1
