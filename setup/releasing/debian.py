"""Debian packages: a private environment with all Python packages, for one release of Debian each.

Debian has no pyarrow, DuckDB or Plotly, so the package brings what Latenz needs, as pinned by
setup/python-base.lock, in /usr/lib/latenz; Debian's own Python runs it.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from releasing.stage import PROCESSORS, Stage, fresh, say

_PRIVATE = Path("usr/lib/latenz")
_OLDEST_GLIBC, _MODE, _MODE_RUN = 5, 0o644, 0o755


@dataclass(frozen=True)
class Release:
    """A release that a package is for.

    Attributes:
        name: What the package's version ends with.
        python: The minor version of its Python 3.
        glibc: The minor version of its glibc 2.
    """

    name: str
    python: int
    glibc: int


RELEASES = (Release("deb12", 11, 36), Release("deb13", 13, 41), Release("ubuntu24.04", 12, 39))


def build(stage: Stage, wheel: Path) -> list[Path]:
    """Build the packages of a wheel, and return them."""
    return [_package(stage, wheel, release) for release in RELEASES]


def _package(stage: Stage, wheel: Path, release: Release) -> Path:
    processor = next(name for name in PROCESSORS if wheel.name.endswith(f"_{name}.whl"))
    architecture = PROCESSORS[processor].debian
    version = f"{stage.version.replace('.dev', '~dev')}-1+{release.name}"
    name = f"latenz_{version}_{architecture}"
    say(f"Debian package {name}")
    tree = fresh(stage.results.parent / "deb")
    _install(stage, wheel, release, processor, tree)
    _write_files(stage, tree, release)
    _write_control(stage, tree, version, architecture, release)
    _settle(tree, int(stage.epoch))
    package = stage.results / f"{name}.deb"
    stage.run(
        *("dpkg-deb", "--root-owner-group", "--threads-max=2", "-Zxz", "-z2", "--build"),
        *(tree, package),
    )
    shutil.rmtree(tree)
    return package


def _install(stage: Stage, wheel: Path, release: Release, processor: str, tree: Path) -> None:
    """Make a virtual environment, as `python3 -m venv` does, for a Python that is not here."""
    private = tree / _PRIVATE
    packages = private / f"lib/python3.{release.python}/site-packages"
    packages.mkdir(parents=True)
    (private / "bin").mkdir()
    (private / "bin/python3").symlink_to("../../../bin/python3")
    (private / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.{release.python}\n"
    )
    tags = [
        f"--platform=manylinux_2_{minor}_{processor}"
        for minor in range(release.glibc, _OLDEST_GLIBC - 1, -1)
    ]
    tags += [f"--platform=manylinux{year}_{processor}" for year in ("2014", "2010")]
    pip = (
        *(sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps"),
        *("--disable-pip-version-check", "--only-binary=:all:", "--implementation=cp", "--upgrade"),
        *(f"--python-version=3.{release.python}", f"--abi=cp3{release.python}", "--abi=abi3"),
        *("--abi=none", *tags, f"--target={packages}"),
    )
    stage.run(*pip, "--require-hashes", "-r", stage.checkout / "setup/python-base.lock")
    stage.run(*pip, wheel)
    shutil.rmtree(packages / "bin", ignore_errors=True)  # commands of what we only import
    for record in packages.glob("*.dist-info/direct_url.json"):
        record.unlink()  # where the wheel lay
    for record in packages.glob("*.dist-info/RECORD"):
        lines = record.read_text("utf-8").splitlines(keepends=True)
        gone = ("../../bin/", "bin/", "../../../bin/")
        kept = [
            line for line in lines if not line.startswith(gone) and "/direct_url.json," not in line
        ]
        record.write_text("".join(kept), "utf-8")


def _write_files(stage: Stage, tree: Path, release: Release) -> None:
    ours = stage.checkout / "packaging/debian"
    documents = tree / "usr/share/doc/latenz"
    for folder in ("usr/bin", "usr/share/lintian/overrides", "usr/share/man/man1"):
        (tree / folder).mkdir(parents=True)
    documents.mkdir(parents=True)
    shutil.copyfile(ours / "latenz", tree / "usr/bin/latenz")
    shutil.copyfile(ours / "copyright", documents / "copyright")
    shutil.copyfile(ours / "lintian-overrides", tree / "usr/share/lintian/overrides/latenz")
    changes = (stage.checkout / "CHANGELOG.md").read_text("utf-8")
    _write_packed(documents / "changelog.gz", changes)
    when = formatdate(int(stage.epoch))
    version = f"{stage.version.replace('.dev', '~dev')}-1+{release.name}"
    text = (
        f"latenz ({version}) unstable; urgency=medium\n\n"
        "  * See changelog.gz for what changed.\n\n"
        f" -- The Latenz developers <latenz@localhost>  {when}\n"
    )
    _write_packed(documents / "changelog.Debian.gz", text)
    _write_packed(tree / "usr/share/man/man1/latenz.1.gz", (ours / "latenz.1").read_text("utf-8"))


def _write_packed(path: Path, text: str) -> None:
    """Write a file packed by gzip, with no time in it."""
    done = subprocess.run(["gzip", "-9n"], input=text.encode(), stdout=subprocess.PIPE, check=True)
    path.write_bytes(done.stdout)


def _write_control(
    stage: Stage, tree: Path, version: str, architecture: str, release: Release
) -> None:
    ours = stage.checkout / "packaging/debian"
    control = fresh(tree / "DEBIAN")
    sizes = (path.lstat().st_size for path in tree.rglob("*") if path.is_file())
    text = (ours / "control.in").read_text("utf-8")
    for name, value in {
        "version": version,
        "architecture": architecture,
        "installed_size": str(sum(-(-size // 1024) for size in sizes)),
        "python": f"3.{release.python}",
        "next_python": f"3.{release.python + 1}",
    }.items():
        text = text.replace(f"@{name}@", value)
    (control / "control").write_text(text, "utf-8")
    for script in ("postinst", "prerm"):
        shutil.copyfile(ours / script, control / script)
        (control / script).chmod(_MODE_RUN)
    _write_checksums(tree, control)


def _write_checksums(tree: Path, control: Path) -> None:
    files = sorted(
        path
        for path in tree.rglob("*")
        if path.is_file() and not path.is_symlink() and control not in path.parents
    )
    names = [os.fspath(path.relative_to(tree)) for path in files]
    done = subprocess.run(
        ["xargs", "-0", "md5sum"],
        input="\0".join(names).encode(),
        cwd=tree,
        stdout=subprocess.PIPE,
        check=True,
    )
    (control / "md5sums").write_bytes(done.stdout)


def _settle(tree: Path, epoch: int) -> None:
    """Give all files the modes that Debian wants, and the time of the commit."""
    for path in [tree, *sorted(tree.rglob("*"))]:
        if path.is_symlink():
            os.utime(path, (epoch, epoch), follow_symlinks=False)
            continue
        runs = path.is_dir() or _is_program(tree, path)
        path.chmod(_MODE_RUN if runs else _MODE)
        os.utime(path, (epoch, epoch))


def _is_program(tree: Path, path: Path) -> bool:
    """Tell whether a file is to be executed: modules, libraries and texts are not."""
    place = path.relative_to(tree)
    if place.parts[0] == "DEBIAN":
        return path.name in ("postinst", "prerm")
    if place.parts[:2] == ("usr", "bin"):
        return True
    if not path.stat().st_mode & 0o111 or path.suffix == ".py" or ".so" in path.suffixes:
        return False
    with path.open("rb") as file:
        return file.read(4).startswith((b"#!", b"\x7fELF"))
