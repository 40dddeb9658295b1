"""However a proof ends, it is told what is left, and the exit code says it."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from proofs import ONE, command, latenz, value, wait_for, words
from trees_at_random import fingerprint, revert_all

from latenz.cli import main
from latenz.proving.proof import Outcome, Record, Trial, Wanted, digest_of
from latenz.tune.places import Place
from latenz.tune.transaction import find

pytestmark = pytest.mark.proofs

VALUE = Path("/proc/sys/vm/stat_interval")
TWO = "host-thp"
ROOT_ALONE = pytest.mark.skipif(
    os.geteuid() != 0 or (os.cpu_count() or 1) < 2,
    reason="changing the kernel's values takes root, isolating a CPU takes two of them",
)


def noted(experiment: Path, output: Path, *given: Outcome) -> Record:
    """Let a proof of ONE, and of TWO, be at its very end with these outcomes."""
    ids = (ONE, TWO)[: min(len(given), 2)]
    trials = tuple(Trial(entries=(i,), outcome=o) for i, o in zip(ids, given, strict=False))
    record = Record(
        wanted=Wanted(
            experiment=str(experiment),
            digest=digest_of(experiment),
            cpus="2-3",
            profile="kvm-host",
            only=ids,
        ),
        began="2026-01-01T00:00:00+00:00",
        isolated="2-3",
        profile="kvm-host",
        groups=tuple((i,) for i in ids),
        later=(),
        statements=1,
        repetitions=3,
        seed=1,
        trials=trials,
        together=Trial(entries=ids, outcome=given[2]) if len(given) > 2 else None,
    )
    output.mkdir()
    record.save(output)
    return record


def forked(
    given: list[object], printed: Path, when: Callable[[bytes], bool] = lambda _: False
) -> int:
    """Run the command in a process that gets SIGINT when it notes something; its exit code."""
    child = os.fork()
    if child == 0:
        real = os.pwrite

        def noting(descriptor: int, content: bytes, place: int) -> int:
            if when(content):
                os.kill(os.getpid(), signal.SIGINT)
            return real(descriptor, content, place)

        os.pwrite = noting
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = ["latenz", "tune", *map(str, given)]
        sys.stdout = printed.open("w")
        code = 99
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 99
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["helps"], 0),
        (["harms"], 0),
        (["harms", "refused"], 0),
        (["mixed", "harms"], 0),
        (["refused"], 3),
        (["refused", "refused"], 3),
        (["refused", "not measured"], 3),
        (["harms", "not shown"], 3),
        (["helps", "refused"], 0),
        (["helps", "helps", "helps"], 0),
        (["helps", "helps", "refused"], 3),
        (["helps", "helps", "not measured"], 3),
        (["helps", "helps", "not shown"], 3),
        (["helps", "helps", "harms"], 1),
    ],
)
def test_exit_codes_and_what_is_kept(experiment, tree, folder, outcomes, code):
    before, output = fingerprint(tree), folder / "proof"
    noted(experiment, output, *outcomes)
    given = ["prove", "--resume", "--root", tree, "-o", output, "--keep", "--json"]
    assert forked(given, folder / "printed") == code
    told = json.loads((folder / "printed").read_text())
    is_kept = "helps" in outcomes and outcomes[2:] in ([], ["helps"], ["not shown"])
    assert told["kept"] is is_kept
    assert (value(tree) == "10") is is_kept
    revert_all(tree)
    assert fingerprint(tree) == before


def test_what_was_refused_all_along_is_no_gain_and_no_harm(experiment, tree, folder):
    noted(experiment, folder / "proof", "refused", "refused")
    done = latenz("prove", "--resume", "--root", tree, "-o", folder / "proof")
    assert "the kernel refused all of it" in done.stdout
    assert "Nothing helps" not in done.stdout


def test_with_nothing_to_try_the_document_has_the_same_keys(experiment, tree, folder):
    nothing = latenz(*words(experiment, tree, folder / "a", "--only=cmdline-skew-tick", "--json"))
    assert nothing.returncode == 0
    noted(experiment, folder / "b", "harms")
    some = latenz("prove", "--resume", "--root", tree, "-o", folder / "b", "--json")
    told, other = json.loads(nothing.stdout), json.loads(some.stdout)
    assert list(told) == list(other)
    assert told["state"] == "nothing to try"
    assert told["after_restart"] == ["cmdline-skew-tick"]
    assert told["isolated"] == other["isolated"] == "2-3"
    assert (told["proof"], told["repetitions"], told["trials"]) == (None, None, [])
    assert not (folder / "a").exists()


# --- Answers at a terminal --------------------------------------------------------------------


def answered(given: list[object], question: str, answer: bytes) -> tuple[int, str]:
    """Run the command at a terminal; return its exit code, and what it printed."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        command(*given), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    printed = b""
    try:
        while True:
            asked = question.encode() in printed
            printed += os.read(ours, 65536)
            if not asked and question.encode() in printed:
                if answer == b"\x03":
                    time.sleep(0.5)  # until it waits for the answer
                    running.send_signal(signal.SIGINT)
                else:
                    os.write(ours, answer)
    except OSError:  # it has ended
        pass
    os.close(ours)
    return running.wait(timeout=600), printed.decode()


def asking(experiment: Path, tree: Path, output: Path) -> list[object]:
    given = words(experiment, tree, output, f"--only={ONE}", "--duration=20ms")
    return [each for each in given if each != "--yes"]


@pytest.mark.parametrize("exists", [False, True])
def test_after_the_answer_no_nothing_is_left(experiment, tree, folder, exists):
    before, output = fingerprint(tree), folder / "proof"
    if exists:
        output.mkdir()
    code, printed = answered(asking(experiment, tree, output), "Try?", b"n\n")
    assert code == 0
    assert "nothing is changed" in printed
    assert fingerprint(tree) == before
    assert output.exists() is exists
    assert not exists or not any(output.iterdir())


def test_ctrl_c_at_the_question_keeps_what_was_measured(experiment, tree, folder):
    before, output = fingerprint(tree), folder / "proof"
    code, printed = answered(asking(experiment, tree, output), "Try?", b"\x03")
    assert code == 130
    assert "Nothing was changed; what was measured is in" in printed
    assert fingerprint(tree) == before
    assert (output / "before" / "run.json").is_file()


def test_ctrl_c_at_the_last_question_keeps_nothing_and_says_how_to(experiment, tree, folder):
    before, output = fingerprint(tree), folder / "proof"
    noted(experiment, output, "helps")
    given = ["prove", "--resume", "--root", tree, "-o", output]
    code, printed = answered(given, "Keep what helps?", b"\x03")
    assert code == 130
    assert "The machine is as before." in printed
    again = f"latenz tune apply --root {tree} --cpus 2-3 --profile kvm-host --only {ONE}"
    assert again in printed
    assert fingerprint(tree) == before


def test_a_run_that_cannot_tell_leaves_no_folder(experiment, tree, folder):
    given = words(experiment, tree, folder / "few", f"--only={ONE}", "--figure=p99.99")
    done = latenz(*given)
    assert done.returncode == 2
    assert "too short to tell" in done.stderr
    assert not (folder / "few").exists()


# --- Ctrl-C at a moment of its journal --------------------------------------------------------


@pytest.mark.parametrize("event", [b'"begin"', b'"done"'])
def test_ctrl_c_while_it_is_kept_can_be_finished_or_taken_back(experiment, tree, folder, event):
    before, output = fingerprint(tree), folder / "proof"
    noted(experiment, output, "helps")
    given = ["prove", "--resume", "--root", tree, "-o", output, "--keep"]
    assert forked(given, folder / "printed", lambda content: event in content) == 130
    told = (folder / "printed").read_text()
    assert "stopped after 1 change" in told
    assert re.search(r"latenz tune apply( --root \S+)? finishes", told)
    assert json.loads(latenz("status", "--root", tree, "--json").stdout)["state"] == "applying"
    assert latenz("apply", "--root", tree, "--yes").returncode == 0
    assert value(tree) == "10"
    assert latenz("revert", "--root", tree).returncode == 0
    assert fingerprint(tree) == before


def test_ctrl_c_while_it_is_kept_is_in_the_document(experiment, tree, folder):
    before, output = fingerprint(tree), folder / "proof"
    noted(experiment, output, "helps")
    given = ["prove", "--resume", "--root", tree, "-o", output, "--keep", "--json"]
    assert forked(given, folder / "printed", lambda content: b'"begin"' in content) == 130
    told = json.loads((folder / "printed").read_text())
    assert (told["state"], told["kept"], told["applied"]) == ("ended", False, "applying")
    assert latenz("revert", "--root", tree).returncode == 0
    assert fingerprint(tree) == before


def test_ctrl_c_after_the_last_sample_is_no_wish_to_keep(experiment, tree, folder):
    before, output = fingerprint(tree), folder / "proof"
    given = words(experiment, tree, output, f"--only={ONE}", "--keep", "--duration=20ms")

    def at_the_end(content: bytes) -> bool:
        is_over = (output / "proof.json").exists() and bool(Record.read(output).trials)
        return is_over and b'"revert"' in content

    assert forked(given, folder / "printed", at_the_end) == 130
    assert "The machine is as before" in (folder / "printed").read_text()
    assert fingerprint(tree) == before
    assert Record.read(output).state == "ended"


# --- What the kernel refuses to take back -----------------------------------------------------


def unwritable(process: "subprocess.Popen[str]") -> None:
    """Let the value be read-only for one process, which has mounts of its own."""
    there = ["nsenter", "-m", "-t", str(process.pid), "mount"]
    subprocess.run([*there, "--bind", VALUE, VALUE], check=True)
    subprocess.run([*there, "-o", "remount,bind,ro", VALUE], check=True)


def apart(experiment: Path, output: Path, *more: str) -> "subprocess.Popen[str]":
    """Begin a proof of ONE on this machine, with mounts of its own."""
    given = (
        "--cpus=1",
        "--profile=host",
        f"--only={ONE}",
        "--yes",
        "--figure=mean",
        "--json",
        *more,
    )
    words = command("prove", experiment, *given, "-o", output)
    return subprocess.Popen(
        ["unshare", "-m", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def needs_a_value_to_tune() -> str:
    if int(VALUE.read_text()) >= 10 or find(Place(Path("/"))):
        pytest.skip("this machine is tuned already")
    return VALUE.read_text()


@ROOT_ALONE
@pytest.mark.usefixtures("alone")
def test_what_the_kernel_does_not_take_back_is_told_and_ends_the_proof(experiment, folder):
    before, output = needs_a_value_to_tune(), folder / "proof"
    running = apart(experiment, output, "--duration=1s")
    try:
        wait_for(lambda: VALUE.read_text().strip() == "10" and any(output.glob("01-*/with/*/cpu0")))
        unwritable(running)
        printed, complaints = running.communicate(timeout=600)
        assert VALUE.read_text().strip() == "10"
    finally:
        VALUE.write_text(before)
    assert running.returncode == 1, complaints
    told = json.loads(printed)
    assert told["not_restored"] == [f"{VALUE} (Read-only file system (EROFS))"]
    assert (told["state"], told["trials"], told["left"]) == ("interrupted", [], [[ONE]])
    assert find(Place(Path("/"))) is None
    # Once it is set by hand, the proof goes on.
    done = latenz("prove", "--resume", "-o", output, "--json")
    assert done.returncode in (0, 3), done.stderr
    assert json.loads(done.stdout)["not_restored"] == []
    assert VALUE.read_text() == before


@ROOT_ALONE
@pytest.mark.usefixtures("alone")
def test_what_the_kernel_refuses_altogether_was_not_shown(experiment, folder):
    before, output = needs_a_value_to_tune(), folder / "proof"
    running = apart(experiment, output)
    wait_for(lambda: any(output.glob("before/*/cpu0")))
    unwritable(running)
    printed, complaints = running.communicate(timeout=600)
    assert running.returncode == 3, complaints
    [trial] = json.loads(printed)["trials"]
    assert trial["outcome"] == "refused"
    assert "Read-only file system" in trial["reason"]
    assert VALUE.read_text() == before
