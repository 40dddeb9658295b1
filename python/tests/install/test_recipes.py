"""The recipes of Yocto and Buildroot, read by the tools of their own fields."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import kconfiglib
import pytest

ROOT = Path(__file__).parents[3]
BUILDROOT = ROOT / "packaging/buildroot"
LAYER = ROOT / "packaging/yocto/meta-latenz"
RECIPE = next(LAYER.glob("recipes-latenz/latenz-agent/latenz-agent_*.bb"))
LICENSE = (ROOT / "LICENSE").read_bytes()
_UNWANTED = {
    "oelint.var.mandatoryvar.HOMEPAGE",  # the project has none yet
    "oelint.var.suggestedvar.BUGTRACKER",
    "oelint.var.bbclassextend",  # it is of no use on the machine that builds the image
}


def next_release():
    command = [sys.executable, "-c", "import own_version; print(own_version.next_release())"]
    done = subprocess.run(command, cwd=ROOT / "setup", capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_recipe_satisfies_the_linter_of_bitbake_recipes():
    linter = Path(sys.executable).with_name("oelint-adv")
    command = [linter, "--quiet", RECIPE, LAYER / "conf/layer.conf"]
    done = subprocess.run(command, capture_output=True, text=True)
    found = set(re.findall(r":(?:info|warning|error):([\w.]+):", done.stdout + done.stderr))
    assert "oelint.var.mandatoryvar.HOMEPAGE" in found, done.stdout + done.stderr  # it did look
    assert found - _UNWANTED == set()


def test_the_linter_finds_a_mistake(tmp_path):
    recipe = tmp_path / "recipes-latenz/latenz-agent" / RECIPE.name
    recipe.parent.mkdir(parents=True)
    recipe.write_text(RECIPE.read_text().replace("do_install()", "do_instal()"))
    linter = Path(sys.executable).with_name("oelint-adv")
    done = subprocess.run([linter, "--quiet", recipe], capture_output=True, text=True)
    assert "oelint.task.docstrings" in done.stdout + done.stderr  # it is taken for a new task


def test_both_name_the_licence_and_the_version_that_we_have():
    recipe = RECIPE.read_text()
    assert f"md5={hashlib.md5(LICENSE).hexdigest()}" in recipe
    assert 'LICENSE = "Apache-2.0"' in recipe
    assert RECIPE.stem == f"latenz-agent_{next_release()}"
    hashes = (BUILDROOT / "package/latenz-agent/latenz-agent.hash").read_text()
    assert f"sha256  {hashlib.sha256(LICENSE).hexdigest()}  LICENSE" in hashes


def test_buildroots_menu_is_sound(monkeypatch):
    monkeypatch.setenv("BR2_EXTERNAL_LATENZ_PATH", str(BUILDROOT))
    menu = kconfiglib.Kconfig(str(BUILDROOT / "Config.in"), warn_to_stderr=False)
    assert menu.warnings == []
    names = {symbol.name for symbol in menu.unique_defined_syms}
    assert names == {"BR2_PACKAGE_LATENZ_AGENT", "BR2_PACKAGE_LATENZ_AGENT_SITE"}
    help_text = menu.syms["BR2_PACKAGE_LATENZ_AGENT"].nodes[0].help
    assert max(map(len, help_text.splitlines())) <= 62  # as Buildroot's check-package wants it


@pytest.fixture
def variables(tmp_path):
    """The variables of Buildroot's package as GNU Make reads them, and what it installs."""
    makefile = tmp_path / "Makefile"
    names = [
        *("VERSION", "SOURCE", "SITE", "LICENSE", "LICENSE_FILES", "CONF_OPTS", "BUILD_OPTS"),
        "SUPPORTS_IN_SOURCE_BUILD",
    ]
    told = ",".join(f'"{name}": "$(LATENZ_AGENT_{name})"' for name in names)
    makefile.write_text(
        f"""
BR2_EXTERNAL_LATENZ_PATH = {BUILDROOT}
BR2_PACKAGE_LATENZ_AGENT_SITE = "file:///srv/latenz"
qstrip = $(strip $(subst ",,$(1)))
INSTALL = /usr/bin/install
LATENZ_AGENT_BUILDDIR = build
TARGET_DIR = target
cmake-package = evaluated := yes
include $(BR2_EXTERNAL_LATENZ_PATH)/external.mk
$(if $(evaluated),,$(error the package is not given to Buildroot))
install: ; $(LATENZ_AGENT_INSTALL_TARGET_CMDS)
variables: ; @echo '{{{told}}}'
"""
    )

    def make(target):
        command = ["make", "--no-print-directory", "-C", tmp_path, target]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    (tmp_path / "build/agent").mkdir(parents=True)
    (tmp_path / "build/agent/latenz-agent").write_text("a program\n")
    make("install")
    return json.loads(make("variables")), tmp_path / "target"


def test_gnu_make_reads_buildroots_package(variables):
    read, target = variables
    assert read["VERSION"] == next_release()
    assert read["SOURCE"] == f"latenz-{next_release()}.tar.gz"
    assert read["SITE"] == "file:///srv/latenz"
    assert (read["LICENSE"], read["LICENSE_FILES"]) == ("Apache-2.0", "LICENSE")
    assert re.search(r"--target latenz-agent\b", read["BUILD_OPTS"])
    installed = target / "usr/bin/latenz-agent"
    assert (installed.read_text(), installed.stat().st_mode & 0o777) == ("a program\n", 0o755)
