"""Tuning a target: as exact as here, whatever becomes of the link and of the agent.

The target is this machine, with `/etc`, `/boot` and `/var` of its own: what takes the place of ssh
mounts folders of a tree there, for the agent alone.
"""

import contextlib
import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from emulated_targets import OWN
from remote_targets import FAKE_SSH, after_call, eventually, latenz, left_folders

sys.path.insert(0, str(Path(__file__).parents[1] / "tune"))

from proofs import EXPERIMENT
from trees_at_random import apply_all, changes_below, fingerprint, make_tree, revert_all

from latenz.errors import OutOfReach
from latenz.machine import measuring
from latenz.remote import Target, TargetUrl, opened
from latenz.remote.connection import Connection, Lost, Reply
from latenz.remote.system_calls import TargetSystemCalls
from latenz.remote.url import SSH_COMMAND
from latenz.tune.changes import AnyChange
from latenz.tune.places import Place
from latenz.tune.transaction import find

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount and tune")

HERE = Path("/")
URL = TargetUrl.parse("ssh://root@board")
STAT_INTERVAL = Path("/proc/sys/vm/stat_interval")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the tree whose folders the target has as its own."""
    root = tmp_path / "root"
    make_tree(root, Random(7))
    for name in OWN:
        (root / name).mkdir(exist_ok=True)
    mounts = " && ".join(f'mount --bind "{root}/{name}" /{name}' for name in OWN)
    program = tmp_path / "mounting-ssh"
    run = f'exec unshare -m sh -c \'{mounts} && exec sh -c "$1"\' - "$*"'
    program.write_text(FAKE_SSH.replace('exec sh -c "$*"', run))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(SSH_COMMAND, str(program))
    monkeypatch.setenv("FAKE_SSH_LOG", str(tmp_path / "hosts"))
    return root


@contextlib.contextmanager
def target() -> Iterator[Target]:
    with opened(URL) as machine, measuring(machine):
        yield machine


def changes_of(root: Path, seed: int) -> list[AnyChange]:
    """Return random changes of what the target has as its own."""
    return changes_below(root, seed, OWN)


@pytest.mark.parametrize("seed", range(3))
def test_a_target_is_the_same_after_random_changes_were_taken_back(tree: Path, seed: int) -> None:
    before = fingerprint(tree)
    changes = changes_of(tree, seed)
    assert len(changes) > 3
    with target():
        apply_all(HERE, changes)
        changed = fingerprint(tree)
        assert find(Place(HERE)) is not None
        revert_all(HERE)
    assert changed != before
    assert fingerprint(tree) == before


def test_what_is_applied_to_a_target_is_what_is_applied_here(tree: Path, tmp_path: Path) -> None:
    """The agent's system calls against those of this machine, on a copy of the same tree."""
    twin = tmp_path / "twin"
    make_tree(twin, Random(7))
    for name in OWN:
        (twin / name).mkdir(exist_ok=True)
    assert fingerprint(twin) == fingerprint(tree)
    changes = changes_of(tree, 5)
    apply_all(twin, changes)
    with target():
        apply_all(HERE, changes)
    kept = "var/lib/latenz"
    there, here = (
        {name: told for name, told in fingerprint(root).items() if not name.startswith(kept)}
        for root in (tree, twin)
    )
    assert there == here


def cutting(monkeypatch: pytest.MonkeyPatch, every: int, *, answered: bool) -> list[int]:
    """Cut the link at every n-th exchange, before it is made or once it was; return the cuts."""
    real = Connection.exchange
    count = [0, 0]

    def exchange(
        self: Connection, requests: Sequence[tuple[str, Sequence[str | bytes]]], longest_s: float
    ) -> list[Reply]:
        count[0] += 1
        cut = count[0] % every == 0
        if cut and not answered:
            count[1] += 1
            raise Lost("cut")
        replies = real(self, requests, longest_s)
        if cut:
            count[1] += 1
            raise Lost("cut")
        return replies

    monkeypatch.setattr(Connection, "exchange", exchange)
    return count


@pytest.mark.parametrize("answered", [False, True])
def test_a_link_that_is_cut_again_and_again_changes_nothing_twice(
    tree: Path, monkeypatch: pytest.MonkeyPatch, answered: bool
) -> None:
    before = fingerprint(tree)
    with target():
        count = cutting(monkeypatch, 29, answered=answered)
        apply_all(HERE, changes_of(tree, 1))
        assert fingerprint(tree) != before
        revert_all(HERE)
    assert count[1] > 4
    assert fingerprint(tree) == before


def check_killed(tree: Path, count: int) -> bool:
    """Kill at the n-th call of applying; return whether it came to that."""
    before = fingerprint(tree)
    changes = changes_of(tree, 1)[:6]
    told: OutOfReach | None = None
    with target() as machine:
        agent = int(machine.link.hello["process"])
        after_call(machine, count, lambda: os.kill(agent, signal.SIGKILL))
        try:
            apply_all(HERE, changes)
        except OutOfReach as mistake:
            told = mistake
    if told is not None:
        assert "was ended" in str(told)
        assert "latenz tune status --on ssh://root@board" in str(told)
    with target():  # as after a power cut: a new agent, which knows only what lies there
        transaction = find(Place(HERE))
        assert transaction is None or transaction.phase in ("applying", "applied")
        revert_all(HERE)
    assert fingerprint(tree) == before
    return told is not None


@pytest.mark.parametrize("count", [3, 25, 52, 77, 90, 101])
def test_a_target_that_fails_amid_its_changes_can_be_reverted(tree: Path, count: int) -> None:
    assert check_killed(tree, count)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_wherever_a_target_fails_it_can_be_reverted(tree: Path) -> None:
    count = 1
    while check_killed(tree, count):
        count += 1
    assert count > 101


def tune(*words: object) -> tuple[int, str, str]:
    asked = latenz("tune", *words)
    printed, errors = asked.communicate(timeout=300)
    return asked.returncode, printed, errors


def test_a_plan_for_a_target_ends_well(tree: Path, alone: None) -> None:
    words = ("--on", "ssh://root@board", "--only", "host-stat-interval", "--cpus", "1")
    for form in ((), ("--json",)):
        status, printed, errors = tune("plan", *words, *form)
        assert (status, errors) == (0, "")
        assert str(STAT_INTERVAL) in printed


def test_the_commands_as_a_user_gives_them(tree: Path, alone: None, tmp_path: Path) -> None:
    before, value, folders = fingerprint(tree), STAT_INTERVAL.read_text(), left_folders()
    words = ("--on", "ssh://root@board", "--only", "host-stat-interval", "--cpus", "1")
    status, printed, errors = tune("apply", *words, "--yes", "--json")
    assert status == 0, errors
    try:
        told = json.loads(printed)
        assert {each["what"] for each in told["plan"]["changes"]} >= {str(STAT_INTERVAL)}
        assert STAT_INTERVAL.read_text() != value
        assert fingerprint(tree) != before
        status, printed, errors = tune("status", "--on", "ssh://root@board", "--json")
        assert (status, json.loads(printed)["state"]) == (0, "applied"), errors
        assert not Path("/var/lib/latenz/tune").exists()  # it is noted on the target, not here
        status, _, errors = tune("apply", *words, "--yes")
        assert (status, errors.count("\n")) == (2, 1)
        assert errors.startswith("latenz: ssh://root@board: tunings are applied since")
    finally:
        status, printed, errors = tune("revert", "--on", "ssh://root@board")
    assert status == 0, errors
    assert STAT_INTERVAL.read_text() == value
    assert fingerprint(tree) == before
    assert left_folders() == folders


def test_a_proof_leaves_a_target_as_it_was(tree: Path, alone: None, tmp_path: Path) -> None:
    before, value = fingerprint(tree), STAT_INTERVAL.read_text()
    experiment = tmp_path / "short.toml"
    experiment.write_text(EXPERIMENT.replace('"60 ms"', '"40 ms"'))
    words = ("--only", "host-stat-interval", "--cpus", "1", "--figure", "mean")
    status, printed, errors = tune(
        *("prove", experiment, "--on", "ssh://root@board", *words, "--yes", "--json"),
        *("-o", tmp_path / "proof"),
    )
    assert status in (0, 1, 3), errors
    told = json.loads(printed)
    assert told["state"] == "ended"
    (trial,) = told["trials"]
    assert trial["entries"] == ["host-stat-interval"]
    # Folders of the same names in several runs are told apart on the target.
    assert trial["outcome"] in ("helps", "harms", "mixed", "not shown"), trial
    first = json.loads((tmp_path / "proof/before/run.json").read_text())
    assert first["environment"]["host"]["target"]["url"] == "ssh://root@board"
    assert STAT_INTERVAL.read_text() == value
    assert fingerprint(tree) == before


def test_two_at_once_are_told_apart(tree: Path) -> None:
    with target() as machine, machine.system_calls().locked(HERE):
        status, _, errors = tune("revert", "--on", "ssh://root@board")
    assert status == 2
    assert errors == (
        "latenz: ssh://root@board: another latenz tune is at work there; wait until it has ended\n"
    )
    eventually(lambda: tune("revert", "--on", "ssh://root@board")[0] == 0, "it is free again")


def test_a_root_and_a_target_exclude_each_other(tmp_path: Path) -> None:
    for verb in ("apply", "status", "revert"):
        status, _, errors = tune(verb, "--on", "local:", "--root", tmp_path)
        assert (status, errors.count("\n")) == (2, 1)
        assert "is of no use with --root" in errors


@pytest.mark.parametrize(
    "answer",
    [
        [b"0"],
        [b"0", b"1", b"2", b"3", b"4", b"5", b"6"],
        [b"0", b"x", b"-", b"", b"9" * 30, b"\xff"],
        [b"0", b"\xff\xfe", b"1", b"1"],
        [b"-1"],
        [b"13"],
    ],
)
def test_damaged_words_of_an_agent_are_an_error_like_others(answer: list[bytes]) -> None:
    """Whatever a target answers, nothing but what callers expect of a machine is raised."""
    calls = TargetSystemCalls(lambda *_: answer, lambda *_: (0, "", ""), 0)
    made: list[Callable[[], object]] = [
        lambda: calls.real(HERE, "/etc", follow=True),
        lambda: calls.status(HERE),
        lambda: calls.link(HERE),
        lambda: calls.names(HERE),
        lambda: calls.attributes(HERE),
        lambda: calls.content(HERE),
        lambda: calls.scheduling(1),
        lambda: calls.write_new(HERE, b"new"),
        lambda: calls.sync(HERE),
    ]
    for each in made:
        with contextlib.suppress(OSError):
            each()
