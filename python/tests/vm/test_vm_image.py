"""The guest's image against readelf and depmod's kernel, and one boot that is interrupted."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from latenz.boards import images
from latenz.errors import BadInput
from latenz.store.run import Run
from latenz.traces.runs import of_run
from latenz.tune.catalogue import load
from latenz.tune.check import check
from latenz.tune.context import Context
from latenz.tune.root import Root
from latenz.vm.guest import export, guest
from latenz.vm.run import MEASURING
from latenz.vm.settings import ALTERNATIVES, TUNED

# the first use fetches packages and makes the guest
pytestmark = [pytest.mark.boots, pytest.mark.timeout(1500)]


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


@pytest.fixture(scope="module")
def made():
    return guest("rt")


@pytest.fixture(scope="module")
def unpacked(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with made.initrd.path.open("rb") as file:
        subprocess.run(["cpio", "-i", "--quiet"], stdin=file, cwd=folder, check=True)
    return folder


def test_the_kernel_is_a_program_that_qemu_enters_as_it_is(made):
    assert "Advanced Micro Devices X86-64" in output("readelf", "-h", made.kernel.path)
    notes = output("readelf", "-n", made.kernel.path)
    assert re.search(r"Xen\s+0x0*8\s+Unknown note type: \(0x00000012\)", notes)  # its PVH entry
    release = made.release.encode()
    assert b"Linux version " + release + b" " in made.kernel.path.read_bytes()


def test_the_configuration_is_that_of_the_kernel():
    stock, rt = (images.kernel_config(kind, "amd64").path.read_text() for kind in ("stock", "rt"))
    assert "\nCONFIG_X86_64=y\n" in stock
    assert "\nCONFIG_PREEMPT_RT=y\n" in rt
    assert "\nCONFIG_PREEMPT_RT=y\n" not in stock


def test_every_library_that_readelf_finds_needed_is_there_and_no_other(unpacked):
    programs = [path for path in unpacked.rglob("*") if path.is_file() and not path.is_symlink()]
    there = {path.name for path in programs if ".so" in path.name}
    needed = set()
    for path in programs:
        if path.read_bytes().startswith(b"\x7fELF") and path.suffix != ".ko":
            assert "X86-64" in output("readelf", "-h", path)
            told = output("readelf", "-W", "-d", "-l", path)
            needed |= set(re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", told))
            needed |= set(re.findall(r"program interpreter: .*/([^/]+)\]", told))
    assert needed == there


def test_its_programs_run_in_it(unpacked):
    """chroot is the guest's file system without its kernel."""
    for program, told in (
        ("/usr/bin/cyclictest", "cyclictest V 2."),
        ("/usr/bin/stress-ng", "stress-ng, version"),
        ("/bin/latenz-wakeup", "latenz-wakeup"),
    ):
        asked = "--version" if "stress" in program else "--help"
        done = subprocess.run(
            ["chroot", unpacked, program, asked], capture_output=True, text=True, check=False
        )
        assert told in done.stdout + done.stderr
    assert (unpacked / "usr/bin/chrt").exists()
    for applet in ("taskset", "awk", "modprobe", "ip", "gzip", "tar", "usleep"):
        assert (unpacked / "bin" / applet).is_symlink()


def test_the_modules_are_the_kernels_and_whole(unpacked, made):
    folder = unpacked / "lib/modules" / made.release
    subprocess.run(["depmod", "-b", unpacked, made.release], check=True, capture_output=True)
    for name in ("virtio_pci", "virtio_console", "virtio_net", "virtio_blk", "e1000", "ata_piix"):
        shown = output(
            *("modprobe", "-d", unpacked, "-S", made.release, "--show-depends", name)
        ).splitlines()
        assert shown
        assert all(Path(line.split()[1]).exists() for line in shown if line.startswith("insmod"))
    assert (folder / "virtio_net.ko").exists()


def test_the_same_packages_give_the_same_files(made, tmp_path):
    again = guest("rt")
    assert (again.kernel.sha256, again.initrd.sha256) == (made.kernel.sha256, made.initrd.sha256)
    for copy, image in zip(export(made, tmp_path / "out"), (made.kernel, made.initrd), strict=True):
        assert output("sha256sum", copy).split()[0] == image.sha256


def test_a_program_for_another_processor_is_named(tmp_path):
    board = Path(sys.prefix) / "linux-arm64/bin/latenz-wakeup"
    with pytest.raises(BadInput, match=r"^/x: is for AArch64; build it for 64-bit x86$"):
        images.initrd("wrong", "#!/bin/sh", files={"/x": board}, architecture="amd64")


COMPUTED_S = 6
"""Processor time in which the guest's clock surely gets past the probe's warm-up of 100 ms."""


def _computed_s(folder):
    """The processor time of the QEMU that writes into a folder."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes()
            if line.startswith(b"qemu-system-x86_64") and os.fsencode(folder) in line:
                fields = (path.parent / "stat").read_text().rpartition(")")[2].split()
                return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """Ten minutes are asked for; the run is interrupted soon after it began to measure."""
    folder = tmp_path_factory.mktemp("vm") / "run"
    command = [sys.executable, "-m", "latenz", "vm", "run", "--accelerator", "tcg", "--json"]
    command += ["--trace", "--duration", "10min", "--deadline", "50us", "-o", folder]
    console = folder / "tuned/console.log"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        began = None
        until = time.monotonic() + 600
        # By what QEMU has computed, not by the time that a busy machine took for it.
        while time.monotonic() < until and run.poll() is None:
            computed = _computed_s(folder)
            if began is None and console.exists() and MEASURING.encode() in console.read_bytes():
                began = computed
            if began is not None and computed > began + COMPUTED_S:
                break
            time.sleep(0.2)
        run.send_signal(signal.SIGINT)
        told, errors = run.communicate(timeout=600)
    assert run.returncode == 130, errors.decode()
    return json.loads(told), Run.open(folder), folder


def test_an_interrupted_run_has_what_was_measured_so_far(interrupted):
    document, run, _ = interrupted
    assert document["status"] == run.info.status == "interrupted"
    [samples] = run.sample_sets
    n = sum(len(batch) for batch in samples.batches("latency_ns"))
    assert document["sample_sets"][0]["n"] == n
    assert 0 < n < 600_000
    assert samples.metadata.cpu == 1  # the last of two
    assert samples.metadata.period_ns == 1_000_000


def test_it_says_that_time_is_virtual_and_what_had_no_effect(interrupted):
    document, run, _ = interrupted
    [samples] = run.sample_sets
    assert document["accelerator"] == "tcg"
    assert document["time_base"] == samples.metadata.time_base == "virtual"
    assert any("no effect" in note for note in samples.metadata.notes)
    assert {"qemu-cpu-pm", "qemu-hugepages", "vcpu-pinning"} <= set(document["without_effect"])
    assert samples.metadata.kernel == f"{images.kernel_release('rt', 'amd64')} PREEMPT_RT"
    [account] = run.info.conditions
    assert account["boot_wall_ns"] == document["boot_wall_ns"] > 0


def test_what_the_guest_recorded_comes_back_and_is_explained(interrupted):
    """Emulation has no exits and its own time, so that the guest's side stands alone."""
    document, run, folder = interrupted
    [account] = run.info.conditions
    assert document["traces"] == account["traces"] == ["tuned/received/trace.txt"]
    assert "only the guest was recorded" in document["trace_notes"][0]
    assert document["causes"] == account["causes"]
    [(label, _, explained)] = of_run(folder)
    assert label == "tuned"
    assert label == "received" or label
    assert len(explained.causes) == len(document["causes"]) > 0


def test_nothing_of_it_is_left(interrupted):
    _, _, folder = interrupted
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert os.fsencode(folder) not in path.read_bytes()
        except OSError:
            continue


def test_the_guest_really_was_what_was_asked_for(interrupted):
    """The catalogue's own checks read what the guest sent of its /proc and /sys."""
    document, _, folder = interrupted
    context = Context.of(Root(document["guest"]["snapshot"]))
    assert context.profile == "guest"
    assert context.isolated == {1}
    # An emulated processor has no deadline timer, and does not claim a TSC that never stops.
    emulated = {"guest-tsc-deadline", "guest-tsc-reliable"}
    wanted = {
        entry.id for entry in load() if entry.layer == "guest" and entry.id in TUNED - emulated
    }
    found = {each.id: each.state for each in check(context, load())}
    assert {entry: found[entry] for entry in wanted} == dict.fromkeys(wanted, "ok")
    assert found["guest-tsc-reliable"] == "not applicable"
    assert found["guest-steal-time"] == "ok"
    assert found["guest-idle-poll"] == "wrong"
    assert set(ALTERNATIVES) >= {"guest-idle-poll"}
    words = (folder / "tuned/received/guest.tar").stat().st_size
    assert words > 100_000


def test_interrupts_of_the_measured_vcpu_come_back(interrupted):
    document, _, _ = interrupted
    counted = document["guest"]["interrupts"]
    [samples] = document["sample_sets"]
    timer = next(count for name, count in counted.items() if name.startswith("LOC"))
    assert timer > 0
    assert samples["n"] > 0
    assert document["guest"]["steal_ns"] == 0
