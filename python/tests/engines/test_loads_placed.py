"""Loads that scale with the CPUs, and run where one wants them."""

import os
import time
from pathlib import Path

import pytest

from latenz.affinity import enterable_cpus, inherited_cpus, kept_off
from latenz.loads import STRESSORS
from latenz.loads.kernel_compile import SOURCE

LAST = max(enterable_cpus())
KINDS = ("stress-ng-cpu", "hackbench", "network", "disk", "memory")
MAKEFILE = """\
defconfig: ; @touch $(O)/.config
vmlinux: ; @test -e $(O)/.config && seq 200000 | sort -R > $(O)/vmlinux
clean: ; @rm -f $(O)/vmlinux
"""


def load(folder, kind, **settings):
    stressor = STRESSORS[kind]
    model = stressor.settings_type.model_validate({"kind": kind, **settings})
    return stressor(model, Path(folder), 3_000_000_000)


def processes(parent):
    """Return all descendants of a process."""
    found = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        try:
            children = [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *processes(child)] if Path(f"/proc/{child}").exists() else []
    return found


def masks_of(name):
    """Return where the processes of a program that we have started may run."""
    masks = []
    for each in processes(os.getpid()):
        try:
            if name in Path(f"/proc/{each}/comm").read_text():
                masks.append(frozenset(os.sched_getaffinity(each)))
        except OSError:
            continue
    return masks


def wait_until(condition):
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_a_load_runs_where_it_is_placed_and_leaves_nothing_behind(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    folder.mkdir()
    stressor = load(folder, kind, cpus=[LAST])
    name = {"hackbench": "hackbench", "memory": "latenz-memory"}.get(kind, "stress-ng")
    stressor.start()
    try:
        wait_until(lambda: masks_of(name))
        time.sleep(0.5)
        assert stressor.alive, stressor.last_words()
        assert set(masks_of(name)) == {frozenset({LAST})}
    finally:
        stressor.stop()
    assert [each.name for each in tmp_path.iterdir()] == ["run"]
    assert stressor.account()


def test_loads_scale_with_the_cpus_they_run_on(tmp_path):
    all_cpus = len(inherited_cpus())
    assert f"--cpu={all_cpus}" in load(tmp_path, "stress-ng-cpu").arguments()
    assert "--cpu=1" in load(tmp_path, "stress-ng-cpu", cpus=[LAST]).arguments()
    assert "--cpu=4" in load(tmp_path, "stress-ng-cpu", instances=4).arguments()
    assert f"-g{all_cpus}" in load(tmp_path, "hackbench").arguments()


@pytest.mark.skipif(len(inherited_cpus()) < 2, reason="needs a CPU to keep off")
def test_a_load_does_not_follow_latenz_off_the_measured_cpus(tmp_path):
    stressor = load(tmp_path, "hackbench", groups=1)
    with kept_off(frozenset({LAST})):
        stressor.start()
        try:
            wait_until(lambda: masks_of("hackbench"))
            assert set(masks_of("hackbench")) == {inherited_cpus() | {LAST}}
        finally:
            stressor.stop()


@pytest.mark.parametrize("kind", sorted(STRESSORS))
def test_a_cpu_that_is_not_there_is_told(kind):
    stressor = STRESSORS[kind]
    model = stressor.settings_type.model_validate({"kind": kind, "cpus": [8000]})
    obstacle = stressor.obstacle(model)
    assert obstacle is not None
    assert "8000" in obstacle.reason or kind == "kernel-compile"


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "hackbench", "through": "--fifo"},
        {"kind": "hackbench", "groups": "all"},
        {"kind": "stress-ng-cpu", "instances": "--job=x"},
        {"kind": "disk", "file_size": "1 KiB"},
        {"kind": "kernel-compile", "source": "/tmp/evil"},
        {"kind": "network", "cpus": "0;1"},
    ],
)
def test_what_could_reach_a_command_line_is_checked(wrong):
    with pytest.raises(ValueError, match="validation error"):
        STRESSORS[wrong["kind"]].settings_type.model_validate(wrong)


def test_a_disk_that_is_too_small_is_told():
    kind = STRESSORS["disk"]
    model = kind.settings_type.model_validate({"kind": "disk", "file_size": "1023 GiB"})
    assert "MiB free" in kind.obstacle(model).reason


def test_a_kernel_is_compiled_over_and_over(tmp_path, monkeypatch):
    source = tmp_path / "linux"
    source.mkdir()
    (source / "Makefile").write_text(MAKEFILE)
    monkeypatch.setenv(SOURCE, str(source))
    folder = tmp_path / "run"
    folder.mkdir()
    stressor = load(folder, "kernel-compile")
    assert stressor.missing() is None
    stressor.start()
    wait_until(lambda: stressor.account()["compiled"] >= 2)
    assert stressor.alive
    stressor.stop()
    assert [each.name for each in source.iterdir()] == ["Makefile"]


def test_sources_of_a_kernel_are_the_users_own(tmp_path, monkeypatch):
    missing = STRESSORS["kernel-compile"].missing
    monkeypatch.delenv(SOURCE, raising=False)
    assert SOURCE in missing().fix
    monkeypatch.setenv(SOURCE, str(tmp_path))
    assert "no Makefile" in missing().reason
    (tmp_path / "Makefile").write_text(MAKEFILE)
    tmp_path.chmod(0o777)
    assert "others than root and you" in missing().reason
