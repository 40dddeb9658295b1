"""`latenz self-check` in a clone; what it says of an installed Latenz is in test_wheel.py."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from latenz.installation import package

ROOT = Path(__file__).parents[3]


def self_check(*arguments, **options):
    return subprocess.run(
        [ROOT / "latenz", "self-check", *arguments], capture_output=True, text=True, **options
    )


def states(answer):
    return {each["id"]: each["state"] for each in json.loads(answer.stdout)["checks"]}


def test_a_clone_is_whole():
    answer = self_check("--json")
    assert (answer.returncode, answer.stderr) == (0, "")
    found = json.loads(answer.stdout)
    assert (found["kind"], found["whole"]) == ("clone", True)
    assert found["version"].startswith("0.")
    assert {"files", "core", "programs", "experiments", "images", "agents", "tracefs", "bpf"} <= {
        each["id"] for each in found["checks"]
    }


def test_the_text_says_the_same_in_lines():
    answer = self_check()
    assert answer.returncode == 0
    for name, state in states(self_check("--json")).items():
        assert f"{state:8} {name}: " in answer.stdout


def test_a_missing_program_is_found_and_ends_with_1(tmp_path):
    folder, shadow = package() / "bin", tmp_path / "bin"
    shutil.copytree(folder, shadow, ignore=shutil.ignore_patterns("latenz-trace"))
    # the folder is exchanged for this one command, in a mount namespace of its own
    around = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-r", "--mount"]
    hidden = ["sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh"]
    answer = subprocess.run(
        [*around, *hidden, shadow, folder, ROOT / "latenz", "self-check", "--json"],
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 1, answer.stderr
    assert states(answer)["programs"] == "missing"
    assert json.loads(answer.stdout)["whole"] is False


def test_without_qemu_the_rest_is_checked_all_the_same(tmp_path):
    for name in ("sh", "env", "dirname", "readlink", "find", "head", "cat", "git"):
        found = next(p for p in ("/usr/bin", "/bin") if Path(p, name).exists())
        (tmp_path / name).symlink_to(Path(found, name))
    answer = self_check("--json", env={**os.environ, "PATH": str(tmp_path)})
    assert answer.returncode == 0, answer.stderr
    found = states(answer)
    assert found["qemu-aarch64"] == "limited"
    assert found["compiler"] == "limited"
    assert found["programs"] == "ok"
