"""A user's own domain: what tunings decide is changed, the rest stays, byte by byte.

Judges: libvirt's schema, libvirt's own parser, and difflib.
"""

import difflib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import virtual_machines
from hypothesis import given
from hypothesis import settings as rounds
from lxml import etree
from test_vm_libvirt import schema, virsh, xml_of

from latenz.errors import BadInput
from latenz.vm.own_domain import read_domain, settings_for, tuned_domain
from latenz.vm.settings import ALTERNATIVES

OWN = Path(__file__).parents[1] / "data/vm/own-domain.xml"
GONE = [
    "<domain type='kvm' id='7'>",
    "<cpu mode='custom' match='exact' check='partial'>",
    "<model fallback='allow'>Skylake-Client</model>",
    "<timer name='hpet' present='yes'/>",
    "<controller type='usb' index='0' model='qemu-xhci'/>",
    "<memballoon model='virtio'>",
    "<address type='pci' domain='0x0000' bus='0x05' slot='0x00' function='0x0'/>",
    "</memballoon>",
]


def tuned(text, folder, cpus="1-3", **more):
    path = folder / "own.xml"
    path.write_text(text)
    document = read_domain(path)
    known = {"tuned": True, "with_": (), "without": (), **more}
    return tuned_domain(document, settings_for(document, path, cpus=cpus, **known))


def valid(text):
    assert schema().validate(etree.fromstring(text.encode())), schema().error_log.last_error


def latenz(*words):
    command = [sys.executable, "-m", "latenz", "vm", "xml", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_command_changes_what_tunings_decide_and_says_each_change():
    before = OWN.read_text()
    done = latenz("--domain", OWN, "--cpus", "1-3")
    assert done.returncode == 0, done.stderr
    valid(before)
    valid(done.stdout)
    difference = list(difflib.ndiff(before.splitlines(), done.stdout.splitlines()))
    assert [each[2:].strip() for each in difference if each[0] == "-"] == GONE
    changed = re.findall(r"^changed: (.*)  \(([a-z0-9-]+)\)$", done.stderr, re.MULTILINE)
    assert f"{OWN}: {len(changed)} changes; all else is as it was" in done.stderr
    assert ("clock/timer hpet present: yes -> no", "qemu-no-hpet") in changed
    assert ("cputune/vcpupin 2 cpuset: nothing -> 3", "vcpu-pinning") in changed
    assert "isolcpus=managed_irq,domain,2" in done.stderr  # it boots by its own loader
    document = json.loads(latenz("--domain", OWN, "--cpus", "1-3", "--json").stdout)
    assert document["xml"] == done.stdout
    assert [(each["what"], each["tuning"]) for each in document["changes"]] == changed


def test_libvirts_parser_takes_the_tuned_domain(tmp_path):
    path = tmp_path / "tuned.xml"
    text = tuned(OWN.read_text(), tmp_path, without=["qemu-cpu-pm"]).text
    path.write_text(text)
    told = virsh(
        "-q", "-c", "test:///default", f'define --validate {path}; dumpxml "plc & \\"line\\" 3"'
    )
    for expected in ("scheduler='fifo' priority='1'", "<hint-dedicated state='on'/>"):
        assert expected in told
    assert "memballoon model='none'" in told


@given(virtual_machines.settings)
@rounds(max_examples=60, deadline=None)
def test_whatever_the_domain_the_tuned_one_is_valid_and_there_is_nothing_left_to_change(
    tmp_path_factory, machine
):
    folder = tmp_path_factory.mktemp("domain")
    machine = machine.model_copy(update={"accelerator": "kvm"})
    text = xml_of(machine).replace("<devices>", "<!-- <mine> -->\n  <devices>")
    alternatives = machine.tunings & ALTERNATIVES.keys()
    made = tuned(text, folder, cpus="0-7", with_=sorted(alternatives))
    valid(made.text)
    assert "<!-- <mine> -->" in made.text
    again = tuned(made.text, folder, cpus="0-7", with_=sorted(alternatives))
    assert (again.text, again.changes) == (made.text, [])


def test_nothing_is_changed_where_nothing_is_asked_for(tmp_path):
    made = tuned(OWN.read_text(), tmp_path, tuned=False)
    assert made.text == OWN.read_text()
    assert made.changes == []


def test_words_of_the_kernel_and_usb_that_are_the_users_own_stay(tmp_path):
    boot = "<kernel>/k</kernel><cmdline>root=/dev/vda isolcpus=1 a=&quot;b &amp; c&quot;</cmdline>"
    text = OWN.read_text().replace("<boot dev='hd'/>", boot)
    text = text.replace("<disk ", "<input type='tablet' bus='usb'/>\n    <disk ", 1)
    made = tuned(text, tmp_path)
    valid(made.text)
    assert 'root=/dev/vda isolcpus=1 a="b &amp; c" irqaffinity=0-1' in made.text
    assert "<controller type='usb' index='0' model='qemu-xhci'/>" in made.text
    left = dict(made.left[::-1])
    assert "os/cmdline has its own isolcpus=; ours is isolcpus=managed_irq,domain,2" in left
    assert any("USB" in each for each in left)


def test_one_virtual_cpu_has_nobody_to_leave_the_rest_to(tmp_path):
    made = tuned(OWN.read_text().replace(">3</vcpu>", ">1</vcpu>"), tmp_path, cpus="3")
    assert "vcpus='0'" in made.text
    assert not [each for each, _ in made.left if "isolcpus" in each]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "own.xml: is empty; write to another file"),
        ("name = 1", "own.xml:1: is not XML: "),
        ("<domain type='kvm'><vcpu>1</domain>", "own.xml:1: is not XML: mismatched tag"),
        ("<network/>", "own.xml: its element is <network>, not <domain>"),
        ("<domain type='qemu'/>", "its type is 'qemu', and what is tuned is KVM"),
        ("<domain type='kvm'><os><type arch='aarch64'/></os></domain>", "'aarch64'"),
        ("<domain type='kvm'><vcpu>0</vcpu></domain>", "'0' is not a number of virtual CPUs"),
        ("<domain type='kvm'><vcpu>٣</vcpu></domain>", "is not a number of virtual CPUs"),
        ("<!DOCTYPE d [<!ENTITY e 'x'>]><domain type='kvm'>&e;</domain>", "own.xml:1: a document"),
        ("<!DOCTYPE d SYSTEM 'file:///etc/passwd'><domain type='kvm'/>", "a document type is not"),
        ("<domain type='kvm'>&e;</domain>", "is not XML: undefined entity"),
        ("<a>" * 3000, "elements lie too deep"),
    ],
)  # fmt: skip
def test_what_is_no_domain_of_ours_is_refused_in_one_line(text, told, tmp_path):
    with pytest.raises(BadInput) as refused:
        tuned(text, tmp_path)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--memory", "2048"], "--memory: the domain says that itself; leave the option out"),
        (["--vcpus", "4"], "--vcpus: the domain says that itself"),
        (["--cpus", "1"], "3 vCPUs need a host CPU each"),
        (["--with", "guest-haltpol"], "did you mean 'guest-haltpoll'"),
    ],
)
def test_mistakes_in_options_are_one_line(words, told):
    done = latenz("--domain", OWN, *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
