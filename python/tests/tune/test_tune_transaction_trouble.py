"""What goes wrong around a transaction: others, full disks, damage, restarts."""

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from small_machines import debian, fedora, planned
from trees_at_random import apply_all, fingerprint, never, quiet, revert_all, set_boot

import latenz
from latenz.errors import BadInput
from latenz.tune.applying import apply, revert
from latenz.tune.changes import AnyChange, FileChange, FolderChange, LinkChange, WriteChange
from latenz.tune.places import Place
from latenz.tune.plan_show import is_intact, status_document
from latenz.tune.transaction import STATE, find, locked

CHANGES: list[AnyChange] = [
    FolderChange(path="/etc/new.d"),
    FileChange(path="/etc/new.d/made", content=b"made\n"),
    FileChange(path="/etc/there", content=b"after\n"),
    LinkChange(path="/etc/link", target="elsewhere"),
    WriteChange(path="/sys/value", value="1"),
]


def tree(root: Path) -> Path:
    (root / "etc").mkdir(parents=True)
    (root / "etc/there").write_text("before\n")
    (root / "sys").mkdir()
    (root / "sys/value").write_text("0\n")
    set_boot(root, "first")
    return root


def test_only_one_at_a_time_changes_a_machine(folder: Path) -> None:
    root = tree(folder / "root")
    before = fingerprint(root)
    with locked(Place(root)):
        with pytest.raises(BadInput, match="another latenz tune is at work"):
            apply_all(root, CHANGES)
        with pytest.raises(BadInput, match="another latenz tune is at work"):
            revert_all(root)
    assert fingerprint(root) == before


def test_what_is_applied_is_not_applied_twice(folder: Path) -> None:
    root = tree(folder / "root")
    apply_all(root, CHANGES)
    with pytest.raises(BadInput, match=r"tunings are applied since .* revert .*first"):
        apply_all(root, CHANGES)


def test_reverting_without_a_transaction_does_nothing(folder: Path) -> None:
    root = tree(folder / "root")
    before = fingerprint(root)
    assert revert_all(root) == []
    assert fingerprint(root) == before


def test_stopped_in_the_middle_it_can_be_finished_or_taken_back(folder: Path) -> None:
    for finish in (True, False):
        root = tree(folder / str(finish))
        before = fingerprint(root)
        left = iter([False, False, True])
        apply(Place(root), CHANGES, "1", "host", lambda at=left: next(at), quiet)
        transaction = find(Place(root))
        assert transaction is not None
        assert transaction.phase == "applying"
        assert [step.state for step in transaction.steps()] == ["done"] * 2 + ["not begun"] * 3
        assert not is_intact(transaction)
        if finish:
            assert is_intact(apply_all(root, []))
            assert (root / "etc/there").read_text() == "after\n"
        left = iter([False, True])
        assert revert(Place(root), False, lambda at=left: next(at), quiet) is None
        with pytest.raises(BadInput, match="a revert was interrupted"):
            apply_all(root, CHANGES)
        revert_all(root)
        assert fingerprint(root) == before


@pytest.mark.parametrize("path", ["etc/there", "etc/new.d/made", "etc/link", "sys/value"])
def test_what_somebody_changed_since_is_overwritten_only_by_force(folder: Path, path: str) -> None:
    root = tree(folder / "root")
    before = fingerprint(root)
    apply_all(root, CHANGES)
    changed = root / path
    if changed.is_symlink():
        changed.unlink()
        changed.symlink_to("somewhere")
    else:
        changed.write_text("7\n")
    applied = fingerprint(root)
    transaction = find(Place(root))
    assert transaction is not None
    states = {each["what"]: each["now"] for each in status_document(transaction, False)["changes"]}
    assert states["/" + path] == "changed since"
    assert not is_intact(transaction)
    with pytest.raises(BadInput, match=f"changed by somebody since: /{path}; .*--force"):
        revert_all(root)
    assert fingerprint(root) == applied
    outcomes = {each.change.what: each.outcome for each in revert_all(root, force=True)}
    assert outcomes["/" + path] == "overwritten"
    assert fingerprint(root) == before


def test_a_changed_mode_counts_and_a_removed_file_of_ours_does_not(folder: Path) -> None:
    root = tree(folder / "root")
    before = fingerprint(root)
    apply_all(root, CHANGES)
    (root / "etc/new.d/made").unlink()
    (root / "etc/there").chmod(0o600)
    with pytest.raises(BadInput, match="since: /etc/there;"):
        revert_all(root)
    revert_all(root, force=True)
    assert fingerprint(root) == before


def test_what_somebody_put_into_our_folders_stays(folder: Path) -> None:
    root = tree(folder / "root")
    apply_all(root, CHANGES)
    (root / "etc/new.d/theirs").write_text("theirs\n")
    (root / "var/lib/latenz/theirs").write_text("theirs\n")
    outcomes = {each.change.what: each for each in revert_all(root)}
    assert outcomes["/etc/new.d/"].outcome == "left"
    assert "somebody put files into it" in outcomes["/etc/new.d/"].reason
    assert [path.name for path in (root / "etc/new.d").iterdir()] == ["theirs"]
    assert [path.name for path in (root / "var/lib/latenz").iterdir()] == ["theirs"]
    assert not (root / STATE.lstrip("/")).exists()


def test_a_change_that_somebody_makes_first_stops_the_whole(folder: Path) -> None:
    root = tree(folder / "root")
    before = fingerprint(root)
    meddled = iter([False, False, True])

    def meddle() -> bool:
        if next(meddled):
            (root / "etc/there").write_text("theirs\n")
        return False

    with pytest.raises(BadInput, match=r"etc/there: was changed meanwhile; .*all is as before"):
        apply(Place(root), CHANGES, "1", "host", meddle, quiet)
    assert (root / "etc/there").read_text() == "theirs\n"
    (root / "etc/there").write_text("before\n")
    assert fingerprint(root) == before


def test_what_somebody_wrote_while_the_plan_was_read_is_not_lost(folder: Path) -> None:
    """A boot entry is written anew while the user is asked: what came in would be lost."""
    root = fedora(folder / "root")
    plan = planned(root)
    entry = root / "boot/loader/entries/abc-6.1.conf"
    entry.write_text(entry.read_text().replace("rhgb", "rhgb crashkernel=256M"))
    before = fingerprint(root)
    with pytest.raises(BadInput, match=r"abc-6\.1\.conf: was changed since it was planned"):
        apply_all(root, plan.changes)
    assert fingerprint(root) == before
    apply_all(root, planned(root).changes)
    assert "crashkernel=256M" in entry.read_text()
    revert_all(root)
    assert fingerprint(root) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("closed", [False, True])
def test_somebody_who_may_not_look_is_told_in_one_line(folder: Path, closed: bool) -> None:
    root = debian(folder / "root")
    apply_all(root, planned(root).changes)
    folder.chmod(0o755)
    for each in (root, *root.rglob("*")):
        if each.is_dir() and not each.is_relative_to(root / STATE.lstrip("/")):
            each.chmod(0o755)
        os.chown(each, 65534, 65534, follow_symlinks=False)
    root.chmod(0o700 if closed else 0o755)
    # The user whose program this is, who may read it wherever it lies; but the tree is another's.
    user = Path(latenz.__file__).stat().st_uid
    strange = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    strange += ["--bounding-set=-dac_override,-dac_read_search"]
    for verb in ("apply", "status", "revert", "plan"):
        ended = subprocess.run(
            [*strange, sys.executable, "-m", "latenz", "tune", verb, "--root", str(root)]
            + (["--cpus", "2-3"] if verb in ("apply", "plan") else []),
            capture_output=True,
            text=True,
            timeout=600,
        )
        told = ended.stderr.splitlines()
        assert len(told) == 1, told
        if verb == "plan" and not closed:
            assert (ended.returncode, "on top of what is applied" in told[0]) == (0, True)
        else:
            assert ended.returncode == 2, told


def test_files_with_several_names_are_refused(folder: Path) -> None:
    root = tree(folder / "root")
    (root / "etc/other").hardlink_to(root / "etc/there")
    before = fingerprint(root)
    with pytest.raises(BadInput, match="has 2 hard links"):
        apply_all(root, CHANGES)
    assert fingerprint(root) == before


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system takes root")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills_up_at_any_point_leaves_all_as_it_was(folder: Path) -> None:
    changes = [*CHANGES, FileChange(path="/etc/large", content=bytes(30_000))]
    failures = 0
    for free_pages in range(30):
        root = folder / "disk"
        root.mkdir()
        with mounted(root, "size=512k"):
            tree(root / "root")
            before = fingerprint(root / "root")
            free = os.statvfs(root).f_bavail * os.statvfs(root).f_frsize
            (root / "filler").write_bytes(bytes(free - free_pages * 4096))
            try:
                apply_all(root / "root", changes)
            except BadInput as mistake:
                if "No space left on device" not in str(mistake):
                    raise
                failures += 1
                if "could not be taken back" in str(mistake):
                    (root / "filler").unlink()
            else:
                assert (root / "root/etc/large").stat().st_size == 30_000
            revert_all(root / "root")
            assert fingerprint(root / "root") == before
        root.rmdir()
    assert 10 < failures < 30


def test_a_root_that_cannot_be_written_is_told(folder: Path) -> None:
    with mounted(folder, "size=1m"):
        root = tree(folder / "root")
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        with pytest.raises(BadInput, match=r"Read-only file system.*nothing is changed"):
            apply_all(root, CHANGES)
        assert find(Place(root)) is None
        assert revert_all(root) == []


def line(record: object) -> bytes:
    body = json.dumps(record).encode()
    return b"%08x %b\n" % (zlib.crc32(body), body)


def journal_of(root: Path) -> tuple[Path, bytes, dict[str, object]]:
    """Apply, and return the journal's path, its bytes and its first record."""
    apply_all(root, CHANGES)
    path = root / STATE.lstrip("/") / "journal"
    content = path.read_bytes().rstrip(b"\0")
    return path, content, json.loads(content.split(b"\n")[0][9:])


@pytest.mark.parametrize(
    "path",
    ["/etc/../../../outside", "../outside", "/proc/sysrq-trigger", "/dev/sda", "/etc/./x", ""],
)
def test_a_journal_that_names_what_no_plan_would_is_refused(folder: Path, path: str) -> None:
    root = tree(folder / "root")
    (folder / "outside").write_text("theirs\n")
    journal, content, head = journal_of(root)
    changes = head["changes"]
    assert isinstance(changes, list)
    changes[1]["path"] = path
    journal.write_bytes(line(head) + content.split(b"\n", 1)[1])
    with pytest.raises(BadInput, match=r"is no|holds"):
        revert_all(root, force=True)
    assert (folder / "outside").read_text() == "theirs\n"


def test_names_that_no_journal_could_hold_are_one_line(folder: Path) -> None:
    root = debian(folder / "root")
    place = root / "sys/devices/virtual/workqueue/a\x1b[31m\n"
    place.mkdir()
    (place / "cpumask").write_text("f\n")
    with pytest.raises(BadInput, match=r"a\\x1b\[31m ?/cpumask: has a name that cannot be noted"):
        planned(root)


def test_links_in_a_tree_lead_nowhere_outside_of_it(folder: Path) -> None:
    root = tree(folder / "root")
    outside = folder / "outside"
    outside.mkdir()
    (outside / "file").write_text("theirs\n")
    (root / "etc/out").symlink_to(outside)
    (root / "etc/up").symlink_to("../../../../../../" + str(outside).lstrip("/"))
    changes: list[AnyChange] = [
        FileChange(path=f"/etc/{name}/file", content=b"ours\n") for name in ("out", "up")
    ]
    with pytest.raises(BadInput):
        apply_all(root, changes)
    assert (outside / "file").read_text() == "theirs\n"
    (root / str(outside).lstrip("/")).mkdir(parents=True)
    apply_all(root, changes[:1])
    assert (outside / "file").read_text() == "theirs\n"
    assert (root / str(outside / "file").lstrip("/")).read_text() == "ours\n"


def test_damaged_journals_are_told_in_one_line(folder: Path) -> None:
    root = tree(folder / "root")
    journal, content, head = journal_of(root)
    lines = content.splitlines(keepends=True)
    for damaged in (
        b"",
        b"nonsense\n",
        content.replace(b"/etc/there", b"/etc/their"),
        lines[0] + lines[2][:20] + b"\n" + b"".join(lines[3:]),
        line(head | {"made": 9}),
        line(head | {"changes": [{"kind": "command", "run": "reboot"}]}),
        line(head) + line({"event": "done", "change": 99}),
        line([[]]),
    ):
        journal.write_bytes(damaged)
        with pytest.raises(BadInput, match=r"journal: .*by hand, see docs/tune-apply\.md"):
            revert_all(root)
    journal.write_bytes(b"")
    os.truncate(journal, 1 << 40)
    with pytest.raises(BadInput, match="has more than"):
        revert_all(root)
    journal.unlink()
    journal.symlink_to("/etc/passwd")
    with pytest.raises(BadInput, match="is not a journal"):
        revert_all(root)


def test_a_journal_that_others_could_have_written_is_not_believed(folder: Path) -> None:
    root = tree(folder / "root")
    journal, _, _ = journal_of(root)
    journal.chmod(0o602)
    with pytest.raises(BadInput, match="could be written by others"):
        revert_all(root)


def test_a_damaged_copy_is_not_restored(folder: Path) -> None:
    root = tree(folder / "root")
    journal, _, _ = journal_of(root)
    (journal.parent / "2").write_text("else\n")
    with pytest.raises(BadInput, match="the copy to restore from is damaged"):
        revert_all(root)
    assert (root / "etc/there").read_text() == "after\n"


def interrupt(root: Path, number: int, name: str, row: str, cpus: str) -> None:
    (root / f"proc/irq/{number}/{name}").mkdir(parents=True)
    (root / f"proc/irq/{number}/smp_affinity_list").write_text(cpus + "\n")
    with (root / "proc/interrupts").open("a") as file:
        file.write(f" {number}:  10  20  PCI-MSIX-{row}  {name}\n")


def test_after_a_restart_values_go_to_the_interrupts_of_the_same_name(folder: Path) -> None:
    root = tree(folder / "root")
    (root / "proc/interrupts").write_text("       CPU0  CPU1\n")
    interrupt(root, 24, "nvme0q0", "0000:00:01.0 0-edge", "0-1")
    interrupt(root, 25, "eth0", "0000:00:02.0 0-edge", "1")
    interrupt(root, 26, "twin", "0000:00:03.0 0-edge", "0-1")
    interrupt(root, 27, "twin", "0000:00:04.0 0-edge", "1")
    changes: list[AnyChange] = [
        WriteChange(
            path=f"/proc/irq/{number}/smp_affinity_list",
            value="0",
            interrupt=(f"PCI-MSIX-0000:00:0{number - 23}.0 0-edge {name}", name),
        )
        for number, name in ((24, "nvme0q0"), (25, "eth0"), (26, "twin"), (27, "twin"))
    ]
    for name in ("kept", "reset", "else"):
        (root / f"sys/{name}").write_text("old\n")
        changes.append(WriteChange(path=f"/sys/{name}", value="new"))
    apply_all(root, changes)

    for number in range(24, 28):
        (root / f"proc/irq/{number}/smp_affinity_list").unlink()
        next((root / f"proc/irq/{number}").iterdir()).rmdir()
        (root / f"proc/irq/{number}").rmdir()
    (root / "proc/interrupts").write_text("       CPU0  CPU1\n")
    interrupt(root, 24, "eth0", "0000:00:02.0 0-edge", "0")  # what lasts has set it again
    interrupt(root, 30, "nvme0q0", "0000:00:11.0 0-edge", "0")  # in another slot: by its name
    interrupt(root, 31, "twin", "0000:00:13.0 0-edge", "0")  # which of the two cannot be told
    interrupt(root, 32, "twin", "0000:00:14.0 0-edge", "0")
    (root / "sys/reset").write_text("old\n")
    (root / "sys/else").write_text("what the kernel sets at boot\n")
    set_boot(root, "second")
    outcomes = [(each.change.what, each.outcome) for each in revert_all(root)]
    assert [outcome for _, outcome in outcomes] == [
        "restored", "restored", "gone", "gone", "restored", "was as before", "left",
    ]  # fmt: skip
    read = {
        number: (root / f"proc/irq/{number}/smp_affinity_list").read_text().strip()
        for number in (24, 30, 31, 32)
    }
    assert read == {24: "1", 30: "0-1", 31: "0", 32: "0"}
    assert (root / "sys/kept").read_text() == "old\n"
    assert (root / "sys/else").read_text() == "what the kernel sets at boot\n"


def test_an_apply_that_a_restart_cut_short_is_taken_back_first(folder: Path) -> None:
    root = tree(folder / "root")
    before = fingerprint(root)
    left = iter([False, False, False, True])
    apply(Place(root), CHANGES, "1", "host", lambda: next(left), quiet)
    set_boot(root, "second")
    with pytest.raises(BadInput, match="the machine was restarted in the middle"):
        apply(Place(root), CHANGES, "1", "host", never, quiet)
    revert_all(root)
    set_boot(root, "first")
    assert fingerprint(root) == before
