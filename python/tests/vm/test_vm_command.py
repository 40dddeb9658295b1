"""The command line against the catalogue, against QEMU itself, and against a shell."""

import contextlib
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import virtual_machines
from hypothesis import given
from hypothesis import settings as rounds
from hypothesis import strategies as st

from latenz.boards import images
from latenz.errors import BadInput
from latenz.tune.catalogue import load
from latenz.tune.check import check
from latenz.tune.context import Context
from latenz.tune.root import Root
from latenz.vm import choice, guest, host
from latenz.vm.command import (
    VCPU_PRIORITY,
    arguments,
    command,
    host_cpu,
    kernel_options,
    steps,
)
from latenz.vm.guest import flavour
from latenz.vm.settings import ALTERNATIVES, EXPRESSED, NEEDS_KVM, NOT_EXPRESSED, TUNED, VmSettings

pytestmark = pytest.mark.timeout(1500)  # the first use fetches packages and makes the guest
needs_kvm = pytest.mark.skipif(not virtual_machines.kvm_there(), reason="this host has no KVM")
SMALL = {"memory_mib": 256, "cpus": "0-1", "housekeeping": "0-1"}
HUGE = frozenset({"qemu-hugepages", "libvirt-locked"})


def parts(settings):
    """Each part with the option that it stands in."""
    boot = replace(virtual_machines.boot(), kernel=Path("/nowhere", flavour(settings)))
    return {
        (piece.arguments[0], part.text): part.entries
        for piece in command(settings, boot)
        for part in piece.parts
    }


def made(*ids, **more):
    return VmSettings(tunings=frozenset(ids), **{**SMALL, **more})


def test_every_entry_of_these_layers_is_expressed_or_has_a_reason():
    catalogue = {entry.id: entry.layer for entry in load()}
    for known in (EXPRESSED, NOT_EXPRESSED, ALTERNATIVES):
        assert set(known) <= set(catalogue)
    wanted = {entry for entry, layer in catalogue.items() if layer in ("qemu", "libvirt", "guest")}
    assert wanted == set(EXPRESSED) | set(NOT_EXPRESSED)
    assert not set(EXPRESSED) & set(NOT_EXPRESSED)
    assert set(EXPRESSED) >= NEEDS_KVM


OF_THE_GUEST = {"detection", "protection", "time"}
"""What may be given up in a guest that Latenz makes for one measurement: nobody relies on it."""


def test_what_needs_consent_is_never_on_unasked():
    given_up = {entry.id: (entry.layer, entry.consent) for entry in load() if entry.consent}
    on = {given_up[each] for each in TUNED if each in given_up}
    assert on == {("guest", consent) for consent in OF_THE_GUEST}


@given(virtual_machines.settings, virtual_machines.tunings)
@rounds(max_examples=300, deadline=None)
def test_two_machines_differ_by_tunings_alone(one, tunings):
    other = one.model_copy(update={"tunings": tunings})
    first, second = parts(one), parts(other)
    for part in first.keys() ^ second.keys():
        entries = first.get(part) or second.get(part)
        assert any(one.on(entry) != other.on(entry) for entry in entries), part
    ids = {entry.id for entry in load()}
    assert set(chain.from_iterable(chain(first.values(), second.values()))) <= ids


FULL = {
    "cpus": "2-3",
    "housekeeping": "0-1",
    "tap": "tap0",
    "disk": Path("/d"),
    "passthrough": "0000:03:00.0",
}
TOGETHER = {  # what another one asks for as well, or cannot be without
    "vcpu-non-rt-spare": virtual_machines.SPARE,
    "qemu-hugepages": {"libvirt-locked"},
    "qemu-mem-lock": {"libvirt-locked"},
}


@pytest.mark.parametrize("entry", sorted(EXPRESSED))
def test_turning_one_off_changes_what_is_tagged_with_it_and_nothing_else(entry):
    with_all = VmSettings(tunings=frozenset(EXPRESSED), **FULL)
    off = {entry} | TOGETHER.get(entry, set())
    without = with_all.model_copy(update={"tunings": frozenset(EXPRESSED) - off})
    assert entry not in without.without_effect()
    first, second = parts(with_all), parts(without)
    before = {(step.entry, step.text) for step in steps(with_all)}
    changed = before ^ {(step.entry, step.text) for step in steps(without)}
    tagged = [set(first.get(part) or second[part]) for part in first.keys() ^ second.keys()]
    assert any(entry in entries for entries in tagged) or changed
    assert all(entries & off for entries in tagged)
    if entry != "vcpu-non-rt-spare":
        assert {each for each, _ in changed} <= {entry}


def test_the_default_machine_is_what_one_types_first():
    line = arguments(command(VmSettings(), virtual_machines.boot()))
    named = dict(pairwise(line))
    assert named["-machine"] == "pc,accel=kvm"
    assert (named["-cpu"], named["-smp"]) == ("qemu64", "1")
    assert "e1000,netdev=network" in line
    assert named["-append"] == "console=ttyS0 quiet panic=-1"
    assert not {"-nodefaults", "-overcommit", "-object", "-global"} & set(line)


def test_the_guests_kernel_gets_the_words_of_the_catalogue():
    ids = [entry for entry in EXPRESSED if entry.startswith("guest-")]
    settings = VmSettings(vcpus=4, tunings=frozenset([*ids, "vcpu-non-rt-spare"]))
    words = {}
    for part in kernel_options(settings):
        for entry in part.entries:
            words.setdefault(entry, set()).add(part.text)
    wanted = {}
    for entry in load():
        for action in entry.boot if entry.id in ids else ():
            if token := getattr(action, "cmdline", None):
                filled = {"{iso}": "3", "{hk}": "0-2", "{domain}": "domain,"}
                for placeholder, text in filled.items():
                    token = token.replace(placeholder, text)
                wanted.setdefault(entry.id, set()).add(token)
    assert len(wanted) >= 8
    assert {entry: words[entry] for entry in wanted} == wanted


def test_the_priority_of_vcpus_is_the_catalogues():
    [entry] = [entry for entry in load() if entry.id == "vcpu-sched-fifo"]
    assert [action.priority for action in entry.now] == [VCPU_PRIORITY]


@given(virtual_machines.settings)
@rounds(deadline=None)
def test_each_vcpu_has_a_cpu_of_its_own_the_last_one_the_last(settings):
    if settings.cpus:
        chosen = [host_cpu(settings, number) for number in range(settings.processors)]
        assert len(set(chosen)) == settings.processors
        assert chosen[-1] == settings.cpus[-1]


@pytest.mark.parametrize("layer", ["qemu", "libvirt", "guest"])
def test_layers_are_those_of_the_catalogue(layer):
    found = choice.chosen(frozenset(), [layer])
    assert found == {e.id for e in load() if e.layer == layer} & TUNED
    assert choice.chosen(TUNED, removed=[layer]) == TUNED - found


def real_kernel():
    return {"kernel": images.linux("stock", "amd64").path, "initrd": Path("/etc/os-release")}


def refusals(folder):
    """What QEMU said, without what only this host's CPU or an emulated one lacks."""
    lines = (folder / "errors").read_text().splitlines()
    harmless = ("doesn't support requested feature", "has no peer")
    return [line for line in lines if not any(each in line for each in harmless)]


@pytest.fixture
def disk(tmp_path):
    path = tmp_path / "disk.raw"
    path.write_bytes(b"\0" * (1 << 20))
    return path


CASES = {
    "default": frozenset(),
    "tuned": TUNED - HUGE,
    "all": frozenset(EXPRESSED) - HUGE,
    **dict.fromkeys(("qemu", "libvirt", "guest")),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("accelerator", ["tcg", pytest.param("kvm", marks=needs_kvm)])
def test_qemu_takes_the_command_line(case, accelerator, tmp_path, disk):
    tunings = CASES[case]
    if tunings is None:
        tunings = virtual_machines.with_spare(choice.chosen(frozenset(), [case])) - HUGE
    machine = made(*tunings, accelerator=accelerator, disk=disk)
    with virtual_machines.paused(machine, tmp_path, **real_kernel()) as ask:
        assert ask("query-kvm")["enabled"] == (accelerator == "kvm")
        assert len(ask("query-cpus-fast")) == machine.processors
        assert ask("query-memory-size-summary")["base-memory"] == 256 << 20
        properties = {each["name"] for each in ask("qom-list", path="/machine")}
        assert {"usb", "hpet", "vmport"} <= properties
        seen = {
            name: ask("qom-get", path="/machine", property=name)
            for name in ("usb", "hpet", "vmport", "mem-merge")
        }
        kinds = {
            device["class_info"]["class"] for bus in ask("query-pci") for device in bus["devices"]
        }
        ports = ask("query-chardev")
    assert seen["hpet"] is not machine.on("qemu-no-hpet")
    assert seen["mem-merge"] is not machine.on("libvirt-locked")
    assert seen["vmport"] == ("off" if machine.on("qemu-minimal-devices") else "on")
    assert (0x300 in kinds) is not machine.on("qemu-minimal-devices")  # graphics
    assert {port["label"] for port in ports} >= {"console", "results"}
    assert refusals(tmp_path) == []


@needs_kvm
@pytest.mark.parametrize("wanted", ["tuned", "default"])
def test_tune_check_sees_in_the_running_qemu_what_was_turned_on(wanted, tmp_path, disk):
    """The catalogue's own probes read the process that our command line started."""
    tunings = TUNED - HUGE if wanted == "tuned" else frozenset()
    machine = made(*tunings, disk=disk)
    seen = (
        *("qemu-cpu-pm", "qemu-cpu-host", "qemu-pmu-off", "qemu-hint-dedicated", "qemu-kvm-pit"),
        *("qemu-no-hpet", "qemu-minimal-devices", "qemu-iothread"),
    )
    with virtual_machines.paused(machine, tmp_path, **real_kernel()) as ask:
        tree = _process_tree(tmp_path / "tree", ask.pid)
    online = frozenset(range(os.cpu_count() or 1))
    context = Context(Root(tree), frozenset({1}), online, "kvm-host")
    found = {each.id: each for each in check(context, [e for e in load() if e.id in seen])}
    states = {entry: found[entry].state for entry in seen}
    expected = dict.fromkeys(seen, "ok" if wanted == "tuned" else "wrong")
    if wanted == "default":
        expected["qemu-iothread"] = "not applicable"  # an IDE disk can have none
    assert states == expected, found


def _process_tree(tree, pid):
    """The files of one process, as a snapshot of a machine where only it runs."""
    for source in [*Path(f"/proc/{pid}").glob("task/*"), Path(f"/proc/{pid}")]:
        folder = tree / source.relative_to("/")
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("cmdline", "status", "stat", "comm", "smaps_rollup", "smaps"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread may end
                (folder / name).write_bytes((source / name).read_bytes())
    (tree / "sys/module/kvm/parameters").mkdir(parents=True)
    return tree


@pytest.fixture
def huge(tmp_path):
    """A file system of huge pages; none of the host's are set aside for it."""
    folder = tmp_path / "huge"
    folder.mkdir()
    subprocess.run(["mount", "-t", "hugetlbfs", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_missing_huge_pages_are_one_line_with_the_command(huge):
    machine = made("qemu-hugepages", memory_mib=1 << 20, huge_pages=huge)
    with pytest.raises(BadInput) as error:
        host.check_host(machine)
    line = str(error.value)
    pool = r"/sys/kernel/mm/hugepages/hugepages-(\d+)kB"
    found = re.match(pool + r": (\d+) huge pages of \1 KiB are missing", line)
    assert found
    size_kib, missing = map(int, found.groups())
    pages = Path(f"/sys/kernel/mm/hugepages/hugepages-{size_kib}kB")
    assert missing == (1 << 30) // size_kib - int((pages / "free_hugepages").read_text())
    assert f"> {pages}/nr_hugepages, or --without qemu-hugepages" in line


@needs_kvm
def test_memory_of_huge_pages(huge, tmp_path):
    """Set aside for the time of the test, if the host has as many in a row."""
    pages = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
    before = pages.read_text()
    machine = made(*TUNED, huge_pages=huge)
    try:
        pages.write_text(str(int(before) + 128))
        if int(pages.read_text()) < int(before) + 128:
            pytest.skip("this host's memory is in pieces")
        host.check_host(machine)
        with virtual_machines.paused(machine, tmp_path, **real_kernel()) as ask:
            [ram] = ask("query-memdev")
            status = Path(f"/proc/{ask.pid}/status").read_text()
        locked = int(re.search(r"VmLck:\s+(\d+) kB", status)[1])
    finally:
        pages.write_text(before)
    assert (ram["size"], ram["prealloc"], ram["merge"]) == (256 << 20, True, False)
    assert (ram["policy"], ram["host-nodes"]) == ("bind", [0])
    assert locked >= 256 << 10
    assert refusals(tmp_path) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"vcpus": 1}, "vcpus: Input should be greater than or equal to 2"),
        ({"tunings": ["guest-mlock"]}, "guest-mlock cannot be turned on here: the measuring"),
        ({"tunings": ["nonsense"]}, "nonsense cannot be turned on here: it is not a tuning"),
        ({"tunings": ["guest-irqaffinity"]}, "guest-irqaffinity needs vcpu-non-rt-spare"),
        ({"tunings": ["vcpu-non-rt-spare"], "cpus": "3"}, "2 vCPUs need a host CPU each"),
        ({"cpus": "x"}, "'x' is not a list of CPUs"),
        ({"tap": "a,b"}, "tap: String should match"),
        ({"passthrough": "3:0.0"}, "passthrough: String should match"),
        ({"disk": "/a,b"}, "is not an absolute path without a comma"),
        ({"memory_mib": 3}, "memory_mib: Input should be a multiple of 2"),
    ],
)
def test_a_mistake_is_one_line(wrong, told):
    with pytest.raises(BadInput) as error:
        host.made_settings(**wrong)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("machine", "told"),
    [
        ({"disk": "/nowhere/disk"}, "/nowhere/disk: is not there"),
        ({"tap": "no-such-tap"}, "no-such-tap: is not a network interface"),
        ({"cpus": "4000-4001"}, "--cpus: CPU 4000-4001 is not online"),
        (
            {"tunings": {"vfio-passthrough"}, "passthrough": "ffff:ff:1f.7"},
            "ffff:ff:1f.7: is not a PCI device of this host",
        ),
        (
            {"tunings": {"qemu-hugepages"}, "huge_pages": "/proc"},
            "/proc: no huge pages are mounted",
        ),
    ],
)
def test_what_the_host_lacks_is_told_before_the_start(machine, told):
    with pytest.raises(BadInput) as error:
        host.check_host(host.made_settings(**machine))
    assert told in str(error.value)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--disk", "/nowhere/disk"],
        ["--tap", "no-such-tap"],
        ["--passthrough", "ffff:ff:1f.7"],
        ["--memory", "100"],
        ["--period", "1ns"],
        ["--engine", "robot", "--period", "1s"],
    ],
)
def test_a_run_that_is_refused_leaves_no_folder(wrong, tmp_path):
    command = [sys.executable, "-m", "latenz", "vm", "run", "--accelerator", "tcg"]
    done = subprocess.run(
        [*command, *wrong, "-o", tmp_path / "run"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_copy_of_the_guest_leaves_nothing_half_written(tmp_path, monkeypatch):
    image = tmp_path / "image"
    image.write_bytes(b"new")
    folder = tmp_path / "guest"
    made = SimpleNamespace(
        kernel=SimpleNamespace(path=image), initrd=SimpleNamespace(path=image), release=""
    )
    guest.export(made, folder)

    def interrupted(source, copy):
        Path(copy).write_bytes(b"n")
        raise KeyboardInterrupt

    monkeypatch.setattr(guest.shutil, "copyfile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        guest.export(made, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "vmlinuz": b"new",
        "initrd.cpio": b"new",
    }


def test_a_name_that_is_none_is_told_with_the_nearest():
    with pytest.raises(BadInput, match=r"--with: 'qemu-cpupm' is .*; did you mean 'qemu-cpu-pm'"):
        choice.chosen(frozenset(), ["qemu-cpupm"])
    with pytest.raises(BadInput, match="guest-mlock cannot be turned on here"):
        choice.chosen(frozenset(), ["guest-mlock"])
    assert "guest-rt-kernel" not in choice.chosen(TUNED, kernel="stock")
    assert choice.chosen(frozenset(), kernel="rt") == {"guest-rt-kernel"}


def latenz(*words):
    return subprocess.run(
        [sys.executable, "-m", "latenz", "vm", *words], capture_output=True, text=True
    )


@pytest.mark.boots
def test_a_shell_takes_the_printed_command_as_it_is(tmp_path):
    options = ("--without", "guest", "--cpus", "0-1")
    printed, document = latenz("command", *options), latenz("command", *options, "--json")
    assert printed.returncode == document.returncode == 0, printed.stderr
    known = json.loads(document.stdout)
    program = tmp_path / "qemu-system-x86_64"
    program.write_text("""#!/bin/sh\nprintf '%s\\0' "$@"\n""")
    program.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    given = subprocess.run(["sh"], input=printed.stdout, text=True, env=path, capture_output=True)
    assert given.stdout.rstrip("\0").split("\0") == known["arguments"][1:]
    texts = {part["text"]: part["tunings"] for p in known["pieces"] for part in p["parts"]}
    assert texts["hpet=off"] == ["qemu-no-hpet"]
    assert "taskset --pid --cpu-list 1 TID_OF_VCPU0" in printed.stdout
    assert "guest-mitigations: gives up security" in printed.stdout


def test_an_option_that_is_wrong_ends_with_2():
    for words in (
        ("xml", "--kernel", "new", "--with", "qemu"),
        ("run", "--load", "memory", "-o", "/nowhere/run"),
        ("run", "--duration", "-1s", "-o", "/nowhere/run"),
    ):
        done = latenz(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1, done.stderr


@given(st.sets(st.sampled_from(sorted(EXPRESSED))))
@rounds(deadline=None)
def test_what_has_no_effect_is_told(ids):
    machine = VmSettings(accelerator="tcg", tunings=virtual_machines.with_spare(ids))
    untold = machine.tunings - set(machine.without_effect())
    tagged = set(chain.from_iterable(parts(machine).values()))
    tagged |= {step.entry for step in steps(machine)}
    assert untold <= tagged
