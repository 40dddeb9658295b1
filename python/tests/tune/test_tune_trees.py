"""Each entry of the catalogue against two collected machines: right where right, wrong where wrong.

A collected tree is what a booted Linux showed; README.md in data/tune tells how they were made, and
cases.toml in what each variation differs.
"""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from collected_trees import BASES, LAYOUTS, Variation, unpacked, variations, varied

from latenz.tune.catalogue import load
from latenz.tune.check import check
from latenz.tune.context import Context
from latenz.tune.model import Entry, ManualProbe, Profile
from latenz.tune.root import Root

ENTRIES = {entry.id: entry for entry in load()}
VARIATIONS = variations()
ONLY_A_PERSON = {
    "bios-power-profile",
    "host-jetson-power-mode",
    "host-mlock-app",
    "host-net-coalescing",
    "host-net-launch-time",
    "host-net-xdp",
    "host-power-cap",
    "other-kernel-tuning-talks",
}
"""What no program can read."""


@pytest.fixture(scope="module")
def trees() -> Iterator[Path]:
    with unpacked() as folder:
        yield folder


def usual_profile(entry: Entry) -> Profile:
    return "kvm-host" if "kvm-host" in entry.profiles else entry.profiles[0]


def test_every_entry_has_a_case_and_every_case_an_entry() -> None:
    assert {each.id for each in VARIATIONS} == set(ENTRIES)


def test_what_only_a_person_can_see_is_known() -> None:
    manual = {id_ for id_, entry in ENTRIES.items() if isinstance(entry.probe, ManualProbe)}
    assert manual == ONLY_A_PERSON
    assert all(ENTRIES[id_].advice for id_ in manual)
    undecided = {each.id for each in VARIATIONS if each.state not in ("ok", "wrong")}
    assert undecided == ONLY_A_PERSON


@pytest.mark.parametrize(
    "variation", VARIATIONS, ids=lambda each: f"{each.id}-{each.layout}-{each.side}"
)
def test_the_state_is_seen(variation: Variation, trees: Path) -> None:
    entry = ENTRIES[variation.id]
    with varied(trees, variation, usual_profile(entry)) as context:
        (found,) = check(context, [entry])
    assert found.state == variation.state, (found.found, found.wanted, found.where, found.reason)
    if found.state == "wrong":
        assert found.found is not None or found.reason
        assert found.where


@pytest.mark.parametrize("profile", get_args(Profile))
def test_entries_of_other_machines_do_not_apply(profile: Profile, trees: Path) -> None:
    others = [entry for entry in ENTRIES.values() if profile not in entry.profiles]
    with varied(trees, Variation("none", "debian12", "wrong", {}), profile) as context:
        found = check(context, others)
    assert others
    assert {each.state for each in found} == {"not applicable"}
    assert all(each.reason for each in found)


def test_nothing_is_claimed_about_an_empty_tree(tmp_path: Path) -> None:
    """Nothing is there: some entries may say that they do not apply, none may say ok or wrong."""
    context = Context.of(Root(tmp_path), profile="kvm-host")
    claims = [each.id for each in check(context, load()) if each.state in ("ok", "wrong")]
    assert claims == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_looking_and_varying_leave_the_trees_as_they_were(layout: str, trees: Path) -> None:
    folder = trees / BASES[layout, "wrong"]
    before = digest(folder)
    for variation in VARIATIONS:
        if (variation.layout, variation.side) == (layout, "wrong"):
            with varied(trees, variation, usual_profile(ENTRIES[variation.id])):
                pass
    assert digest(folder) == before


def digest(folder: Path) -> str:
    state = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        state.update(str(path.relative_to(folder)).encode())
        if path.is_symlink():
            state.update(bytes(path.readlink()))
        elif path.is_file():
            state.update(path.read_bytes())
    return state.hexdigest()


@pytest.mark.parametrize("verb", ["check", "plan"])
def test_a_folder_that_is_no_machines_is_refused(verb, tmp_path):
    (tmp_path / "README.md").write_text("no machine")
    done = subprocess.run(
        [sys.executable, "-m", "latenz", "tune", verb, "--root", tmp_path],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 2
    assert "holds no machine's files" in done.stderr
    assert done.stderr.count("\n") == 1
