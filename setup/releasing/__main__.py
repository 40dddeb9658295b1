"""The command line of `setup/release`."""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from releasing import debian, materials, stage
from releasing.stage import Failed, say

ROOT = Path(__file__).resolve().parents[2]
SUMS = "SHA256SUMS"


def main() -> int:
    """Build what is asked for; 1: the two builds differ; 2: it cannot be built."""
    options = _options()
    try:
        return _release(options)
    except Failed as failure:
        sys.stderr.write(f"setup/release: {failure}\n")
        return 2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="setup/release",
        description="Builds a release of the last commit, twice in different folders, and checks"
        " that both gave the same bytes. Example: setup/release -o dist",
    )
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build/release/dist")
    parser.add_argument("--once", action="store_true", help="build once: nothing is compared")
    parser.add_argument(
        "--without-debs", action="store_true", help="no Debian packages, which take minutes"
    )
    parser.add_argument(
        "--processor",
        action="append",
        choices=sorted(stage.PROCESSORS),
        help="of wheels; several; default: all",
    )
    return parser.parse_args()


def _release(options: argparse.Namespace) -> int:
    _check_checkout()
    output = options.output.absolute()
    if output.exists() and any(output.iterdir()):
        raise Failed(f"{output}: holds something; name a new or empty folder by -o")
    processors = options.processor or sorted(stage.PROCESSORS)
    builds = 1 if options.once else 2
    with ExitStack() as kept:
        built = [
            _build(number, builds, processors, options, kept) for number in range(1, builds + 1)
        ]
        differing = _differing(built)
        output.mkdir(parents=True, exist_ok=True)
        for path in sorted(built[0].iterdir()):
            shutil.move(path, output / path.name)
    for name in differing:
        sys.stderr.write(f"setup/release: {name}: the two builds differ\n")
    told = "not compared" if options.once else "not reproducible" if differing else "reproducible"
    say(f"{output}: {len(list(output.iterdir()))} files, {told}")
    return 1 if differing else 0


def _check_checkout() -> None:
    changed = subprocess.run(
        ["git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no"],
        capture_output=True,
        text=True,
        check=False,
    )
    if changed.returncode:
        raise Failed(f"{ROOT}: is not a git checkout, so a release of it would have no version")
    if changed.stdout:
        raise Failed("files differ from the last commit; commit or undo the changes first")


def _build(
    number: int, of: int, processors: list[str], options: argparse.Namespace, kept: ExitStack
) -> Path:
    """Build everything in a new folder of its own, and return the folder of the results."""
    say(f"build {number} of {of}")
    # folders whose names differ in length: a path that gets into a file is then seen
    prefix = f"latenz-release{'-again' * (number - 1)}-"
    place = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix=prefix)))
    results = place / "dist"
    results.mkdir()
    made = stage.Stage(ROOT, place, results)
    archive = made.source_archive()
    wheels = [made.wheel(archive, processor) for processor in processors]
    if not options.without_debs:
        for wheel in wheels:
            debian.build(made, wheel)
    materials.write(made)
    _write_sums(results)
    return results


def _write_sums(folder: Path) -> None:
    lines = [f"{_sha256(path)}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / SUMS).write_text("".join(lines))


def _differing(folders: list[Path]) -> list[str]:
    names = sorted({path.name for folder in folders for path in folder.iterdir()} - {SUMS})
    found = []
    for name in names:
        digests = {
            _sha256(folder / name) if (folder / name).is_file() else "" for folder in folders
        }
        if len(digests) > 1:
            found.append(name)
    return found


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
