"""Domains against libvirt's own schema, its parser, and its own translation into QEMU's options."""

import functools
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
import virtual_machines
from hypothesis import example, given
from hypothesis import settings as rounds
from lxml import etree

from latenz.boards.packages import fetch
from latenz.tune.qemu import QemuProcess
from latenz.vm.command import arguments, command, host_cpu, kernel_options
from latenz.vm.libvirt import domain
from latenz.vm.settings import EXPRESSED, TUNED, VmSettings

SCHEMA = Path("/usr/share/libvirt/schemas/domain.rng")
NOBODY = 65534
OFFERED = """mount -t tmpfs none "$1" && mknod -m 666 "$1/kvm" c "$2" "$3" &&
mount --bind "$1/kvm" /dev/kvm && shift 3 && exec "$@"
"""
"""Runs a program for which /dev/kvm is everybody's, whatever it is on this machine."""
FULL = {
    "cpus": "2-3",
    "housekeeping": "0-1",
    "tap": "tap0",
    "disk": Path("/var/lib/disk.raw"),
    "passthrough": "0000:03:00.1",
}


def xml_of(settings):
    return domain(settings, Path("/boot/vmlinuz"), Path("/boot/initrd"), 'latenz.load="a & <b>"')


@functools.cache
def schema():
    return etree.RelaxNG(etree.parse(SCHEMA))


@given(virtual_machines.settings)
@example(VmSettings())
@example(VmSettings(tunings=TUNED, **FULL))
@example(VmSettings(tunings=frozenset(EXPRESSED), **FULL))
@rounds(max_examples=150, deadline=None)
def test_every_domain_is_valid_by_libvirts_schema(settings):
    found = etree.fromstring(xml_of(settings))
    assert schema().validate(found), schema().error_log.last_error


@given(virtual_machines.settings)
@rounds(max_examples=150, deadline=None)
def test_domain_and_command_are_the_same_machine(settings):
    root = ElementTree.fromstring(xml_of(settings))
    options = QemuProcess(0, tuple(arguments(command(settings, virtual_machines.boot()))[1:]))
    words = [part.text for part in kernel_options(settings)]
    assert root.findtext("./os/cmdline") == " ".join([*words, 'latenz.load="a & <b>"'])
    assert int(root.findtext("./vcpu")) == settings.processors
    assert int(root.findtext("./memory")) << 20 == options.memory_bytes
    locked = {each["mem-lock"] for each in options.given("overcommit") if "mem-lock" in each}
    assert (root.find("./memoryBacking/locked") is not None) == ("on" in locked)
    pinned = {each.get("vcpu"): each.get("cpuset") for each in root.iter("vcpupin")}
    if settings.on("vcpu-pinning") and settings.cpus:
        count = range(settings.processors)
        assert pinned == {str(number): str(host_cpu(settings, number)) for number in count}
    else:
        assert pinned == {}


def virsh(*words, **more):
    done = subprocess.run(["virsh", *words], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("ids", [frozenset(), TUNED, frozenset(EXPRESSED)])
def test_libvirts_parser_keeps_what_we_wrote(ids, tmp_path):
    text = xml_of(VmSettings(tunings=ids, **FULL))
    path = tmp_path / "domain.xml"
    path.write_text(text)
    told = virsh("-q", "-c", "test:///default", f"define --validate {path}; dumpxml latenz")
    kept = ElementTree.fromstring(told[told.index("<domain") :])
    for element in ElementTree.fromstring(text).iter():
        if element.tag in ("memory", "domain", "qemu:commandline"):
            continue  # the unit is changed, and the test driver knows no options of QEMU
        same = [each for each in kept.iter(element.tag) if _within(element, each)]
        assert same or element.tag.startswith("{"), ElementTree.tostring(element)


def _within(written, kept):
    """All attributes are there; a type of a machine or a number of a page may be more exact."""
    text = (written.text or "").strip()
    return written.attrib.items() <= kept.attrib.items() and text in (kept.text or "")


@pytest.fixture(scope="module")
def translate(tmp_path_factory):
    """libvirt's QEMU driver without its daemon: from a domain to QEMU's options.

    From this release's packages, as an ordinary user: nothing of it is installed, nothing runs on.
    """
    place = Path(tempfile.mkdtemp(prefix="latenz-libvirt-"))
    place.chmod(0o755)
    home, huge = place / "home", place / "huge"
    wanted = ("libvirt0", "libvirt-daemon", "libvirt-daemon-driver-qemu")
    for package in fetch(wanted, architecture="amd64"):
        subprocess.run(["dpkg-deb", "-x", package.path, place], check=True)
    library = place / "usr/lib/x86_64-linux-gnu"
    (home / "etc").mkdir(parents=True)
    (home / "etc/qemu.conf").write_text(f'hugetlbfs_mount = "{huge}"\n')
    huge.mkdir()
    os.chown(home, NOBODY, NOBODY)
    kvm = Path("/dev/kvm").stat().st_rdev
    (place / "device").mkdir()
    user = ["unshare", "--mount", "sh", "-c", OFFERED, "sh", place / "device"]
    user += [str(os.major(kvm)), str(os.minor(kvm))]
    user += ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    known = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "LD_LIBRARY_PATH": str(library),
        "LIBVIRT_DRIVER_DIR": str(library / "libvirt/connection-driver"),
    }
    subprocess.run(["mount", "-t", "hugetlbfs", "-o", "mode=1777", "none", huge], check=True)

    def native(text):
        path = place / "domain.xml"
        path.write_text(text)
        uri = f"qemu:///embed?root={home}"
        line = [*user, "virsh", "-c", uri, "domxml-to-native", "qemu-argv", path]
        done = subprocess.run(line, env=known, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return QemuProcess(0, tuple(shlex.split(done.stdout)))

    yield native
    subprocess.run(["umount", huge], check=True)
    shutil.rmtree(place)


def merged(process, name):
    """All that the options of a name say together."""
    found = {}
    for each in process.given(name):
        found |= each
    return found


@pytest.mark.skipif(not virtual_machines.kvm_there(), reason="libvirt offers KVM only where it is")
@pytest.mark.parametrize("case", ["default", "tuned", "all"])
def test_libvirt_starts_qemu_with_the_options_of_our_command(translate, case, tmp_path):
    disk = tmp_path / "disk.raw"
    disk.touch()
    ids = {"default": frozenset(), "tuned": TUNED, "all": frozenset(EXPRESSED)}[case]
    settings = VmSettings(tunings=ids, disk=disk, cpus="0-1", housekeeping="0-1")
    # The network card would be opened for the translation.
    text = re.sub(r"<interface.*?</interface>", "", xml_of(settings), flags=re.DOTALL)
    theirs = translate(text)
    ours = QemuProcess(0, tuple(arguments(command(settings, virtual_machines.boot()))[1:]))
    machine = merged(theirs, "machine") | {"accel": merged(theirs, "accel")["accel"]}
    chosen = merged(ours, "machine")
    assert machine.pop("type").startswith("pc-i440fx-")
    assert (chosen.pop("type"), chosen.pop("memory-backend", "ram")) == ("pc", "ram")
    assert chosen.items() <= machine.items()
    assert merged(ours, "cpu") == merged(theirs, "cpu")
    counts = {side.arguments[side.arguments.index("-smp") + 1] for side in (ours, theirs)}
    assert {count.partition(",")[0] for count in counts} == {str(settings.processors)}
    assert merged(ours, "global") == merged(theirs, "global")
    assert {"mem-lock": "off"} | merged(ours, "overcommit") == merged(theirs, "overcommit")
    [words] = [option for option in theirs.arguments if option.startswith("console=ttyS0")]
    assert words.startswith(" ".join(part.text for part in kernel_options(settings)))
    _compare_memory(ours, theirs)
    _compare_devices(ours, theirs)


def _compare_memory(ours, theirs):
    [backing] = [each for each in theirs.given("object") if "memory" in each["qom-type"]]
    for mine in (each for each in ours.given("object") if "memory" in each["qom-type"]):
        assert backing["qom-type"] == mine["qom-type"]
        assert backing.get("prealloc", "off") == mine.get("prealloc", "off")
        assert backing.get("policy") == mine.get("policy")
        assert ("mem-path" in backing) == ("mem-path" in mine)
    assert theirs.memory_bytes == ours.memory_bytes


def _compare_devices(ours, theirs):
    mine, their = ({each["driver"] for each in side.given("device")} for side in (ours, theirs))
    assert mine - {"e1000", "virtio-net-pci"} <= their
    added = their - mine - {"isa-serial"}
    if ours.given("nodefaults"):
        assert added == set()
    else:  # what libvirt adds to each domain that does not forbid it, and QEMU's own VGA
        assert added == {"VGA", "piix3-usb-uhci", "virtio-balloon-pci"}
    [disk] = [
        each for each in theirs.given("device") if each["driver"] in ("ide-hd", "virtio-blk-pci")
    ]
    [same] = [each for each in ours.given("device") if each["driver"] == disk["driver"]]
    assert ("iothread" in disk) == ("iothread" in same)
