"""What other packages add: the examples of docs/extending.md, installed as a user installs them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "extending"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all examples are installed in."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run(
        [*pip, "--no-build-isolation", f"--target={folder}", *_copies(tmp_path_factory)], check=True
    )
    return folder


def _copies(factory: pytest.TempPathFactory) -> list[Path]:
    """Return copies, since building leaves files beside the sources."""
    top = factory.mktemp("sources")
    subprocess.run(["cp", "-r", f"{EXAMPLES}/.", str(top)], check=True)
    return [each for each in top.iterdir() if each.is_dir()]


def latenz(installed: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "latenz", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )


def experiment(folder: Path, probe: str, more: str = "") -> Path:
    path = folder / "experiment.toml"
    path.write_text(f'name = "added"\nduration = "1 s"\n{more}\n[matrix]\n{probe}\n')
    return path


def test_an_engine_and_a_load_measure(installed, tmp_path):
    path = experiment(tmp_path, 'probe = ["pmqtest"]\nstressor = ["forks"]')
    path.write_text(path.read_text() + '[stressor.forks]\nkind = "forks"\nsettle = "100 ms"\n')

    done = latenz(installed, "run", path, "-o", tmp_path / "run", "--json")

    assert done.returncode in (0, 1, 3), done.stderr
    shown = json.loads(latenz(installed, "show", tmp_path / "run", "--json").stdout)
    assert shown["sample_sets"]
    assert all(each["n"] > 0 for each in shown["sample_sets"])


def test_an_importer_reads(installed, tmp_path):
    path = tmp_path / "measured"
    path.write_text("# ticks of 10 ns\n5\n7\n300\n")

    shown = json.loads(latenz(installed, "show", path, "--json").stdout)

    (one,) = shown["sample_sets"]
    assert (one["n"], one["min_ns"], one["max_ns"]) == (3, 50, 3000)
    path.write_text("# ticks of 10 ns\n5\nx\n")
    wrong = latenz(installed, "show", path)
    assert wrong.returncode == 2
    assert f"{path}:3" in wrong.stderr


@pytest.mark.boots
def test_a_stack_boots(installed, tmp_path):
    where = 'bench = ["virt"]\nstack = ["linux-rt-skewed"]\n'
    path = experiment(tmp_path, where + 'probe = ["cyclictest"]')

    done = latenz(installed, "run", path, "-o", tmp_path / "run", "--json")

    assert done.returncode in (0, 1, 3), done.stderr
    (account,) = json.loads((tmp_path / "run" / "run.json").read_text())["conditions"]
    assert "skew_tick=1" in json.dumps(account)


def test_an_entry_of_a_catalogue_is_checked(installed, tmp_path):
    place = tmp_path / "sys" / "class" / "watchdog" / "watchdog0"
    place.mkdir(parents=True)
    (place / "timeout").write_text("1\n")

    found = json.loads(latenz(installed, "tune", "check", "--root", tmp_path, "--json").stdout)

    (own,) = (each for each in found["checks"] if each["id"] == "host-ourboard-watchdog-period")
    assert (own["state"], own["found"]) == ("wrong", "1")


BROKEN = {
    "that cannot be imported": ("missing_module:Engine", "cannot be imported: ModuleNotFoundError"),
    "that is not an engine": ("json:JSONDecoder", "does not name a class derived from"),
    "of another name": ("latenz.engines.oslat:Oslat", "names a class whose name is 'oslat'"),
}


@pytest.mark.parametrize(("value", "told"), BROKEN.values(), ids=BROKEN)
def test_a_broken_package_is_named_in_one_line(tmp_path, value, told):
    folder = tmp_path / "broken-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[latenz.engines]\nmine = {value}\n")

    done = latenz(tmp_path, "run", experiment(tmp_path, 'probe = ["wakeup"]'))

    assert done.returncode == 2
    assert told in done.stderr
    assert "mend or uninstall broken" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_is_not_taken_from_latenz(tmp_path):
    folder = tmp_path / "thief-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: thief\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[latenz.engines]\noslat = latenz.engines.oslat:Oslat\n"
    )

    done = latenz(tmp_path, "run", experiment(tmp_path, 'probe = ["wakeup"]'))

    assert done.returncode == 2
    assert "the name 'oslat' is taken" in done.stderr


def test_the_page_prints_the_examples():
    page = (EXAMPLES.parent / "extending.md").read_text()
    printed = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.DOTALL)

    for path in EXAMPLES.rglob("*"):
        if path.suffix in (".py", ".toml") and path.name not in ("__init__.py",):
            text = path.read_text()
            assert any(text.strip() == each.strip() for each in printed), path
            code = [line for line in text.splitlines() if line.strip()]
            assert len(code) <= 36, f"{path} is longer than the page says"
