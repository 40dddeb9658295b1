"""The layers of `python/latenz`: what the configuration says is checked, and the map shows it."""

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def layers() -> list[str]:
    """Return the top-level names of the layers, from the top."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (each for each in config["contracts"] if each["id"] == "layers")
    return [name for layer in contract["layers"] for name in re.findall(r"\w+", layer)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of the package beside its configuration."""
    shutil.copytree(
        ROOT / "python" / "latenz",
        tmp_path / "latenz",
        ignore=shutil.ignore_patterns("__pycache__", "*.so", "bin", "assets"),
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def linted(tree: Path) -> subprocess.CompletedProcess[str]:
    # without site's hooks, which would find the installed package in place of the copy
    return subprocess.run(
        [sys.executable, "-S", "-c", LINT, "--no-cache", "--no-logo"],
        cwd=tree,
        env={"PYTHONPATH": f"{tree}:{sysconfig.get_path('purelib')}"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("module", "planted", "told"),
    [
        ("store/run.py", "from latenz.report.page import write_report", "latenz.store"),
        ("model.py", "def f():\n    from latenz import statistics", "latenz.model"),
        ("system/fields.py", "from latenz.system import schema", "latenz.system"),
        ("stray.py", "", "stray"),
    ],
    ids=["upwards", "upwards and lazily", "in a circle", "in no layer"],
)
def test_a_planted_import_is_found(tree, module, planted, told):
    assert linted(tree).returncode == 0, "the unchanged tree is not clean"
    path = tree / "latenz" / module
    path.write_text((path.read_text() if path.exists() else "") + f"\n{planted}\n")

    found = linted(tree)

    assert found.returncode == 1
    assert told in found.stdout


def test_the_map_names_every_module_of_every_layer():
    page = (ROOT / "docs" / "architecture.md").read_text()
    modules = {
        each.stem if each.suffix else each.name
        for each in (ROOT / "python" / "latenz").iterdir()
        if each.suffix == ".py" or (each / "__init__.py").exists()
    } - {"__init__"}

    assert modules == set(layers())
    assert not [name for name in modules if f"`{name}/`" not in page and f"`{name}.py`" not in page]


def test_the_drawing_is_of_the_layers(tmp_path):
    script = ROOT / "docs" / "make_layers_picture.py"

    subprocess.run([sys.executable, script, "-o", tmp_path / "layers.svg"], check=True)

    assert (tmp_path / "layers.svg").read_text() == (ROOT / "docs" / "layers.svg").read_text()


def test_no_two_files_of_tests_have_the_same_name():
    # pytest imports them by their base names: the second one would end the whole suite
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    names = Counter(
        each.name for place in config["testpaths"] for each in (ROOT / place).rglob("test_*.py")
    )

    assert not [name for name, count in names.items() if count > 1]
