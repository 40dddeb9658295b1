"""Proofs: no claim without an effect, and every byte as before whatever ends them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from proofs import ONE, begun, latenz, value, wait_for, words
from small_machines import debian, planned
from test_tune_transaction import killed_at
from trees_at_random import fingerprint, revert_all, set_boot

from latenz.experiment.ordering import interleave
from latenz.importers.opening import open_sample_sets
from latenz.model import Metadata, SampleSet, TimeBase
from latenz.proving.proof import (
    CONFIDENCE,
    FIGURES,
    Record,
    Trial,
    acts_now,
    changes_of,
    groups_of,
    judge_trial,
    judged_sets,
    repetitions_for,
    statements_of,
)
from latenz.tune.applying import carry_out, take_back
from latenz.tune.catalogue import load
from latenz.tune.places import Place
from latenz.tune.transaction import find

pytestmark = pytest.mark.proofs

NEEDS_RESTART = "cmdline-skew-tick"


# --- What samples say -------------------------------------------------------------------------


class Machine:
    """A machine at random: each run has its own level, phases of lateness, and it drifts.

    None of this is what the intervals assume: latencies follow each other, the level of a run is
    skewed, and what is measured later is slower.
    """

    def __init__(self, seed: int, drift: float) -> None:
        self.random = np.random.default_rng(seed)
        self.drift = drift

    def runs(self, order: list[tuple[bool, int]], gain: float) -> list[list[SampleSet]]:
        """Return the sample sets without and with a setting that takes `gain` ns away."""
        sides: list[list[SampleSet]] = [[], []]
        for place, (with_it, repetition) in enumerate(order):
            level = 20_000 + 3_000 * self.random.exponential() + self.drift * place
            latencies = level - gain * with_it + self.random.gamma(2, 2_000, 400)
            for start in self.random.integers(0, 400, self.random.poisson(2)):
                latencies[start : start + 20] += 15_000
            sides[with_it].append(sample_set(f"idle-r{repetition}/cpu1", latencies, 1))
        return sides


def sample_set(name: str, latencies: np.ndarray, cpu: int) -> SampleSet:
    metadata = Metadata(name=name, time_base=TimeBase.SILICON, cpu=cpu)
    return SampleSet.from_columns(metadata, latency_ns=np.rint(latencies).astype(np.int64))


def claims(
    count: int, gain: float, *, drift: float = 0, in_turns: bool = True, repetitions: int = 4
) -> int:
    """Return in how many of so many trials anything is said of the setting."""
    said = 0
    for seed in range(count):
        order = interleave((False, True), repetitions, seed)
        if not in_turns:
            order.sort()
        without, with_ = Machine(seed, drift).runs(order, gain)
        trial = judge_trial(("an-entry",), without, with_, "mean", CONFIDENCE)
        said += trial.outcome != "not shown"
    return said


@pytest.mark.parametrize(("drift", "repetitions"), [(0, 3), (0, 6), (300, 4)])
def test_a_setting_without_effect_is_not_shown_in_95_percent_of_trials(drift, repetitions):
    # 5 % of 300, and three standard deviations of that: a true rate of 5 % fails once in a thousand
    assert claims(300, 0, drift=drift, repetitions=repetitions) <= 15 + 3 * 3.8


def test_a_drift_would_be_taken_for_an_effect_if_it_were_not_measured_in_turns():
    assert claims(60, 0, drift=3_000, in_turns=False) > 30
    assert claims(60, 0, drift=3_000, in_turns=True) <= 6


def test_an_effect_is_shown():
    assert claims(40, 15_000) > 36


def test_no_proof_of_ten_settings_without_effect_claims_anything_in_95_percent():
    statements = statements_of(10, later=False, sets=1)
    repetitions = repetitions_for(statements, 1)
    confidence = 1 - (1 - CONFIDENCE) / statements
    wrong = alone = 0
    for proof in range(30):
        machine = Machine(proof, 0)
        outcomes = [[], []]
        for entry in range(10):
            runs = machine.runs(interleave((False, True), repetitions, entry), 0)
            for which, level in enumerate((confidence, CONFIDENCE)):
                outcomes[which].append(judge_trial(("x",), *runs, "mean", level).outcome)
        wrong += set(outcomes[0]) != {"not shown"}
        alone += set(outcomes[1]) != {"not shown"}
    assert wrong <= 5, alone  # 1.5 expected at the most
    assert alone > wrong  # and this is what it is for


def test_repetitions_are_as_many_as_can_tell_anything():
    for statements in (1, 2, 13, 100):
        repetitions = repetitions_for(statements, 1)
        order = interleave((False, True), repetitions, 1)
        runs = Machine(1, 0).runs(order, 15_000)
        level = 1 - (1 - CONFIDENCE) / statements
        told = judge_trial(("x",), *runs, "mean", level).gains[0]
        assert told.low_ns is not None
        fewer = [side[: repetitions - 1] for side in runs]
        gain = judge_trial(("x",), *fewer, "mean", level).gains[0]
        assert (gain.low_ns is None) == (repetitions > 3) or repetitions == 3
    assert repetitions_for(1, 10) == 10


@pytest.mark.parametrize("figure", FIGURES)
def test_each_figure_can_be_judged(figure):
    order = interleave((False, True), 5, 1)
    runs = Machine(1, 0).runs(order, 15_000)
    [gain] = judge_trial(("x",), *runs, figure, CONFIDENCE).gains
    if figure in ("p99.9", "p99.99"):  # of 400 samples, nobody knows
        assert gain.why_no_interval
    else:
        assert gain.high_ns < 0


def test_better_on_one_cpu_and_worse_on_another_is_mixed():
    order = interleave((False, True), 4, 1)
    first, second = Machine(1, 0).runs(order, 15_000), Machine(2, 0).runs(order, -15_000)
    second = [
        [
            each.with_metadata(name=each.metadata.name.replace("cpu1", "cpu2"), cpu=2)
            for each in side
        ]
        for side in second
    ]
    sides = [one + other for one, other in zip(first, second, strict=True)]
    assert judge_trial(("x",), *sides, "mean", CONFIDENCE).outcome == "mixed"
    assert judge_trial(("x",), *second, "mean", CONFIDENCE).outcome == "harms"
    only = [judged_sets(side, frozenset({1})) for side in sides]
    assert judge_trial(("x",), *only, "mean", CONFIDENCE).outcome == "helps"


# --- What is tried ----------------------------------------------------------------------------


def test_everything_that_is_planned_is_in_one_group_or_takes_a_restart(folder):
    found = planned(debian(folder))
    groups, later = groups_of(found, load())
    names = [entry for group in groups for entry in group]
    assert sorted([*names, *later]) == sorted({e for c in found.changes for e in c.entries})
    assert len(names) == len(set(names))
    order = [entry.id for entry in load()]
    assert [order.index(group[0]) for group in groups] == sorted(
        order.index(group[0]) for group in groups
    )
    assert NEEDS_RESTART in later
    for group in groups:  # and what is tried of one is all of it, and nothing of another's
        others = set(names) - set(group)
        tried = [each for each in changes_of(found, group) if acts_now(each)]
        assert tried
        assert not any(others & set(each.entries) for each in tried)


def test_what_is_not_named_is_not_tried(folder):
    found = planned(debian(folder))
    offers = {entry.id for entry in found.offers}
    groups, later = groups_of(found, load())
    assert offers
    assert not offers & {entry for group in groups for entry in group}
    assert not offers & set(later)


@pytest.mark.parametrize("torn", [False, True])
def test_a_kill_in_any_moment_of_switching_back_and_forth_is_taken_back(folder, torn):
    root = debian(folder / "root") if (folder / "root").mkdir() is None else folder
    found = planned(root)
    groups, _ = groups_of(found, load())
    states = [[], changes_of(found, groups[0]), changes_of(found, (*groups[0], *groups[1]))]
    before = fingerprint(root)

    def switching() -> None:
        place = Place(root)
        for state in (*states, states[0]):
            take_back(place)
            carry_out(place, state, "2-3", "kvm-host", proof="/somewhere")
        take_back(place)

    count, step = 1, 7 if not torn else 3
    while killed_at(count, switching, torn=torn):
        transaction = find(Place(root))
        assert transaction is None or transaction.journal.head.proof == "/somewhere"
        revert_all(root)
        assert fingerprint(root) == before
        count += step
    assert count > 20
    assert fingerprint(root) == before


# --- By the command line ----------------------------------------------------------------------


def test_a_proof_leaves_the_tree_as_it_was_and_tells_all(experiment, tree, folder):
    before = fingerprint(tree)
    done = latenz(*words(experiment, tree, folder / "proof", f"--only={ONE}", "--json"))
    assert done.returncode in (0, 3), done.stderr
    assert done.stderr == ""
    assert fingerprint(tree) == before
    told = json.loads(done.stdout)
    [trial] = told["trials"]
    assert (told["state"], told["figure"], told["kept"]) == ("ended", "mean", False)
    assert trial["entries"] == [ONE]
    assert trial["costs"][0]["risk"]
    [gain] = trial["sets"]
    low, high = gain["difference_low_ns"], gain["difference_high_ns"]
    assert low <= gain["with_ns"] - gain["without_ns"] <= high
    assert trial["outcome"] == ("helps" if high < 0 else "harms" if low > 0 else "not shown")
    assert done.returncode == (3 if trial["outcome"] == "not shown" else 0)
    # The two runs are ordinary ones: others find the same in them.
    runs = folder / "proof" / trial["folder"]
    compared = subprocess.run(
        [sys.executable, "-m", "latenz", "compare", runs / "without", runs / "with", "--json"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    mean = json.loads(compared.stdout)["pairs"][0]["statistics"]["mean_ns"]
    assert (mean["a"], mean["b"]) == (gain["without_ns"], gain["with_ns"])
    assert (mean["difference_low_ns"], mean["difference_high_ns"]) == pytest.approx((low, high))


def test_of_several_each_is_tried_and_a_pipe_gets_a_line_for_each(experiment, tree, folder):
    both = (f"--only={ONE}", "--only=host-thp")
    done = latenz(*words(experiment, tree, folder / "proof", *both))
    assert done.returncode in (0, 1, 3), done.stderr
    lines = done.stderr.splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == [ONE, "host-thp"] or len(lines) >= 2
    assert "The machine is as before." in done.stdout
    assert "without" not in done.stderr


def test_ctrl_c_keeps_the_samples_and_takes_all_back_and_it_can_go_on(experiment, tree, folder):
    before, output = fingerprint(tree), folder / "proof"
    running = begun(words(experiment, tree, output, f"--only={ONE}", "--json"))
    wait_for(lambda: value(tree) == "10" and any(output.glob("01-*/with/*/cpu0")))
    running.send_signal(signal.SIGINT)
    printed, _ = running.communicate(timeout=600)
    assert running.returncode == 130
    assert json.loads(printed)["state"] == "interrupted"
    assert fingerprint(tree) == before
    assert open_sample_sets(output / "before")
    assert (output / "01-host-stat-interval").is_dir()

    done = latenz("prove", "--resume", "--root", tree, "-o", output, "--json")
    assert done.returncode in (0, 3), done.stderr
    assert [each["folder"] for each in json.loads(done.stdout)["trials"]] == [f"01-{ONE}.2"]
    assert fingerprint(tree) == before
    again = latenz("prove", "--resume", "--root", tree, "-o", output)
    assert again.returncode == 2
    assert "has ended" in again.stderr


def test_after_a_kill_status_tells_and_revert_restores_every_byte(experiment, tree, folder):
    before, output = fingerprint(tree), folder / "proof"
    running = begun(words(experiment, tree, output, f"--only={ONE}"))
    wait_for(lambda: value(tree) == "10")
    running.kill()
    running.communicate(timeout=600)
    status = latenz("status", "--root", tree, "--json")
    assert json.loads(status.stdout)["proof"] == str(output)
    refused = latenz("apply", "--root", tree, "--cpus=2-3", "--yes")
    assert refused.returncode == 2
    assert "a proof is under way" in refused.stderr
    refused = latenz(*words(experiment, tree, folder / "another"))
    assert refused.returncode == 2
    assert latenz("revert", "--root", tree).returncode == 0
    assert fingerprint(tree) == before
    # What a tree of somebody else's names is not followed: the user has to name it.
    assert latenz("prove", "--resume", "--root", tree).returncode == 2
    done = latenz("prove", "--resume", "--root", tree, "-o", output, "--json")
    assert done.returncode in (0, 3), done.stderr
    assert fingerprint(tree) == before


def test_what_somebody_changes_meanwhile_is_not_overwritten(experiment, tree, folder):
    before, output = fingerprint(tree), folder / "proof"
    running = begun(words(experiment, tree, output, f"--only={ONE}"))
    wait_for(lambda: value(tree) == "10" and any(output.glob("01-*/*/*/cpu0")))
    (tree / "proc/sys/vm/stat_interval").write_text("77\n")
    _, told = running.communicate(timeout=600)
    assert running.returncode == 2
    assert "changed by somebody since: /proc/sys/vm/stat_interval" in told
    assert value(tree) == "77"
    [trial] = Record.read(output).trials
    assert trial.outcome == "not measured"
    assert latenz("revert", "--root", tree).returncode == 2
    assert latenz("revert", "--root", tree, "--force").returncode == 0
    assert fingerprint(tree) == before


def test_a_restart_is_waited_for_and_measured_last(experiment, tree, folder):
    before, output = fingerprint(tree), folder / "proof"
    done = latenz(*words(experiment, tree, output, f"--only={NEEDS_RESTART}", "--restart"))
    assert done.returncode == 3, done.stderr
    assert "Restart the machine" in done.stdout
    assert f"Need a restart, tried last, together: {NEEDS_RESTART}" in done.stdout
    assert "skew_tick=1" in (tree / "etc/default/grub.d/latenz.cfg").read_text()
    resume = ("prove", "--resume", "--root", tree, "-o", output, "--json")
    early = latenz(*resume)
    assert early.returncode == 2
    assert "not restarted yet" in early.stderr
    set_boot(tree, "second")
    done = latenz(*resume)
    assert done.returncode in (0, 3), done.stderr
    [trial] = json.loads(done.stdout)["trials"]
    assert trial["entries"] == [NEEDS_RESTART]
    assert "not in effect after the restart" in trial["reason"]  # as GRUB does not run in a tree
    set_boot(tree, "first")
    assert fingerprint(tree) == before


def test_without_being_asked_for_nothing_that_takes_a_restart_is_written(experiment, tree, folder):
    before = fingerprint(tree)
    done = latenz(*words(experiment, tree, folder / "proof", f"--only={NEEDS_RESTART}"))
    assert done.returncode == 0
    assert f"Need a restart (--restart tries them last, together): {NEEDS_RESTART}" in done.stdout
    assert fingerprint(tree) == before


def test_what_helps_is_kept_as_apply_would(experiment, tree, folder):
    before, output = fingerprint(tree), folder / "proof"
    latenz(*words(experiment, tree, output, f"--only={ONE}"))
    helping = Record.read(output).with_(
        trials=(Trial(entries=(ONE,), outcome="helps"),), together=None, state="under way"
    )
    helping.save(output)  # as if it had been killed at the very end
    resume = ("prove", "--resume", "--root", tree, "-o", output, "--keep", "--json")
    (output / "proof.json").chmod(0o666)
    done = latenz(*resume)
    assert done.returncode == 2
    assert "could be written by others" in done.stderr
    (output / "proof.json").chmod(0o644)
    done = latenz(*resume)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kept"] is True
    assert value(tree) == "10"
    assert "stat_interval" in (tree / "etc/sysctl.d/99-latenz.conf").read_text()
    assert latenz("status", "--root", tree).returncode == 0
    assert latenz("revert", "--root", tree).returncode == 0
    assert fingerprint(tree) == before


def test_bad_input_is_one_line_and_changes_nothing(experiment, tree, folder):
    before, output = fingerprint(tree), folder / "proof"
    board = folder / "board.toml"
    board.write_text('name = "b"\n[[condition]]\nname = "c"\nbench = "virt"\nprobe = "interrupt"\n')
    one = f"--only={ONE}"
    for given in (
        words(board, tree, output, one),
        words(experiment, tree, output, "--figure=p42", one),
        words(experiment, tree, folder / "few", "--figure=p99", one),  # of 60 samples
        words(experiment, tree, output, "--duration=0s", one),
        words(experiment, tree, output, "--condition=none", one),
        words(experiment, tree, output, "--resume", one),
        words(experiment, tree, folder, one),  # is not empty
        [each for each in words(experiment, tree, output, one) if each != "--yes"],
        ["prove", "--root", tree, "--yes"],
        ["prove", "--resume", "--root", tree, "-o", output],
    ):
        done = latenz(*given)
        assert done.returncode == 2, (given, done.stderr)
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert fingerprint(tree) == before


# --- On the machine that the tests run on -----------------------------------------------------


@pytest.mark.skipif(
    os.geteuid() != 0 or (os.cpu_count() or 1) < 2,
    reason="changing the kernel's values takes root, isolating a CPU takes two of them",
)
@pytest.mark.usefixtures("alone")
def test_here_a_value_goes_back_and_forth_and_is_as_before(experiment, folder):
    path = Path("/proc/sys/vm/stat_interval")
    before = path.read_text()
    if int(before) >= 10 or find(Place(Path("/"))):
        pytest.skip("this machine is tuned already")
    given = ("--cpus=1", "--profile=host", f"--only={ONE}", "--yes", "--figure=mean", "--json")
    running = begun(["prove", experiment, *given, "-o", folder / "proof"])
    seen = []
    while running.poll() is None:
        now = path.read_text().strip()
        seen += [now] if seen[-1:] != [now] else []
        time.sleep(0.002)
    assert running.returncode in (0, 3), running.stderr and running.stderr.read()
    assert path.read_text() == before
    assert seen[0] == seen[-1] == before.strip()
    assert seen.count("10") >= 2  # tried, and taken back in between
    assert find(Place(Path("/"))) is None
