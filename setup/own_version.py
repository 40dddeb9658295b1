"""The version of what is built here: the number of CMakeLists.txt, and what git says about it.

A commit with the tag `v0.1.0` is 0.1.0. Any other is a development version before it, such as
0.1.0.dev1893+g87d558c32ceb: so many commits since the last tag, and which one it is; `.dirty` is
added if files differ from it. A source archive has its version in PKG-INFO. An editable install,
whose code goes on changing, is 0.1.0.dev0; `latenz --version` there tells the revision it finds.

scikit-build-core asks for it when it builds; by itself this prints it.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


class Version:
    """Tells scikit-build-core the version."""

    _editable = False

    def build_state(self, state: str) -> None:
        """Learn what is built: `wheel`, `sdist`, `editable` ..."""
        self._editable = state.endswith("editable")

    def dynamic_metadata(
        self, settings: Mapping[str, object], project: Mapping[str, object]
    ) -> dict[str, str]:
        """Return the field `version`.

        Raises:
            RuntimeError: As `own_version`.
        """
        del settings, project
        return {"version": f"{next_release()}.dev0" if self._editable else own_version()}


def own_version() -> str:
    """Return the version of this folder's content.

    Raises:
        RuntimeError: The tag of this commit is of another version than CMakeLists.txt, which has
            to be raised in the commit that is tagged.
    """
    return _of_archive() or _of_checkout() or f"{next_release()}.dev0+unknown"


def next_release() -> str:
    """Return the version that is released next, or now: the one place where it stands."""
    text = (_ROOT / "CMakeLists.txt").read_text("utf-8")
    found = re.search(r"^project\(latenz VERSION (\d+\.\d+\.\d+)", text, re.MULTILINE)
    if found is None:
        raise RuntimeError("CMakeLists.txt: has no project(latenz VERSION ...)")
    return found[1]


def _of_archive() -> str | None:
    try:
        text = (_ROOT / "PKG-INFO").read_text("utf-8")
    except OSError:
        return None
    found = re.search(r"^Version: (\S+)$", text, re.MULTILINE)
    return found[1] if found else None


def _of_checkout() -> str | None:
    if _git("rev-parse", "--show-toplevel") != str(_ROOT):
        return None  # inside somebody's project, whose history is not ours
    version = next_release()
    modified = bool(_git("status", "--porcelain", "--untracked-files=no"))
    tag = _git("describe", "--tags", "--exact-match", "--match", "v[0-9]*")
    last = _git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    if tag is not None and tag != f"v{version}":
        raise RuntimeError(f"the tag {tag} is of another version than CMakeLists.txt: {version}")
    if tag is not None and not modified:
        return version
    if last == f"v{version}":  # released: nobody has raised the number yet
        major, minor, patch = version.split(".")
        version = f"{major}.{minor}.{int(patch) + 1}"
    commits = _git("rev-list", "--count", f"{last}..HEAD" if last else "HEAD")
    commit = _git("rev-parse", "--short=12", "HEAD")
    return f"{version}.dev{commits}+g{commit}{'.dirty' if modified else ''}"


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(_ROOT), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{own_version()}\n")
    except RuntimeError as mistake:
        sys.exit(f"own_version: {mistake}")
