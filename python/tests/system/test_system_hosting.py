"""What system files say to the hypervisor: what is sound, and that each mistake has its line."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from latenz.analysis import bound, simulate
from latenz.errors import BadInput
from latenz.system import (
    Device,
    Learning,
    Monitor,
    Partition,
    Periodic,
    Platform,
    SharedMemory,
    Slot,
    Source,
    System,
    read_system,
)

SOUND = """\
[[slot]]
partition = "P1"
length = "6 ms"
[[slot]]
partition = "P2"
length = "8 ms"
[[source]]
name = "can"
partition = "P1"
top = "5 us"
bottom = "40 us"
arrival = { kind = "periodic", period = "5 ms", min_distance = "1 ms" }
monitor = { distances = ["1 ms"] }
interrupt = 70
learn = { events = 1000, length = 3 }
[[source]]
name = "lin"
partition = "P1"
top = "5 us"
bottom = "40 us"
arrival = { kind = "periodic", period = "5 ms" }
[[partition]]
name = "P2"
guest = "guests/mine.elf"
memory = "4 MiB"
on_fault = "restart"
[[partition]]
name = "alone"
cpu = 1
devices = [{ physical = 0xff110000, size = "8 KiB", interrupts = [68, 69] }]
[[shared]]
name = "mailbox"
size = "64 KiB"
partitions = ["P1", "alone"]
address = 0x70000000
"""


def read(tmp_path, text=SOUND):
    path = tmp_path / "system.toml"
    path.write_text(text)
    return read_system(path)


def test_a_file_says_what_it_says(tmp_path):
    system = read(tmp_path)
    assert system.hosted == (
        Partition("P2", str(tmp_path / "guests/mine.elf"), 4 << 20, 0, "restart"),
        Partition("alone", cpu=1, devices=(Device(0xFF11_0000, 8192, (68, 69)),)),
    )
    assert system.hosted[1].guest == "worker"
    assert system.hosted[1].memory == 8 << 20
    assert system.shared == (SharedMemory("mailbox", 65536, ("P1", "alone"), 0x7000_0000),)
    can, lin = system.sources
    assert (can.learning, lin.learning) == (Learning(1000, 3), None)
    assert [system.interrupt_of(number) for number in range(2)] == [70, 65]


def test_analyses_do_without_it(tmp_path):
    system = read(tmp_path)
    plain = System(
        system.platform,
        system.slots,
        tuple(replace(each, interrupt=None, learning=None) for each in system.sources),
    )
    assert bound(system) == bound(plain)
    assert simulate(system, irqs=500) == simulate(plain, irqs=500)


MISTAKES = [
    ("interrupt = 70", "interrupt = 31", ":14: source[1].interrupt: is 31; give 32 or more"),
    ("interrupt = 70", "interrupt = 1020", ":14: source[1].interrupt: is 1020; give at most 1019"),
    ("interrupt = 70", "interrupt = 33", ":14: source[1].interrupt: 33 is the interrupt of every"),
    ("interrupt = 70", "interrupt = 65", ":16: source[2].interrupt: 65 is the interrupt of 'can'"),
    ("interrupt = 70", "interupt = 70", "unknown key 'interupt'; did you mean 'interrupt'?"),
    ("events = 1000", "events = 1", ":15: source[1].learn.events: is 1; give 2 or more"),
    ("length = 3", "length = 65", ":15: source[1].learn.length: is 65; give at most 64"),
    (
        '["1 ms"]',
        "[5, 9, 12, 20]",
        ":15: source[1].learn.length: is less than the monitor has distances; learn at least 4",
    ),
    ('monitor = { distances = ["1 ms"] }\n', "", "source[1].learn: there is no monitor that"),
    ('"guests/mine.elf"', '""', ":24: partition[1].guest: '' is not a guest"),
    ('"guests/mine.elf"', '"a\\u0000b"', ":24: partition[1].guest: 'a\\x00b' is not a guest"),
    ('"4 MiB"', '"5 MiB"', ":25: partition[1].memory: 0x500000 is not a multiple of 2 MiB; write"),
    ('"4 MiB"', "0", ":25: partition[1].memory: is 0 bytes; give 2097152 bytes or more"),
    ('"4 MiB"', '"4 MB"', ":25: partition[1].memory: '4 MB' is not a size; write an integer"),
    ('"4 MiB"', "true", ":25: partition[1].memory: True is not a size"),
    ('"4 MiB"', '"1000 GiB"', ":25: partition[1].memory: is 1073741824000 bytes; give at most"),
    ('"restart"', '"panic"', ":26: partition[1].on_fault: 'panic' is wrong"),
    ('"restart"', '"restart"\nrestarts = -1', ":27: partition[1].restarts: is -1; give 0 or more"),
    ('"restart"', '"stop"\nrestart_window = 5', ":27: partition[1].restart_window: nothing restar"),
    ('"restart"', '"stop"\nwatchdog = "1 us"', ":27: partition[1].watchdog: 1000 ns is shorter"),
    ("cpu = 1", "cpu = 1\nwatchdog = 5", ":30: partition[2].watchdog: a watchdog is looked at whe"),
    (
        'name = "P2"\n',
        'name = "P2"\ncpu = 1\n',
        ":30: partition[2].cpu: 'alone' has no slot on processor 1, which has slots; give it a",
    ),
    ("cpu = 1", "cpu = 0", ":29: partition[2].cpu: 'alone' has neither a slot nor a processor"),
    ("cpu = 1", "cpu = 4", ":29: partition[2].cpu: is 4; give at most 3"),
    ('name = "P2"', 'name = "alone"', ":28: partition[2].name: a second one is named 'alone'"),
    ('name = "P2"', 'name = "other"\ncpu = 1', ":30: partition[2].cpu: 'other' has processor 1"),
    (
        "0xff110000",
        "0xff110800",
        ":30: partition[2].devices[1].physical: 0xff110800 is not a multi",
    ),
    ("0xff110000", "0x08000000", "0x8000000 to 0x8001fff lies over the interrupt controller"),
    ("0xff110000", "0x09000000", "lies over the console of 'alone'"),
    ("0xff110000", "0x40000000", "lies over the memory of 'alone', 0x40000000 to 0x407fffff"),
    ("0xff110000", "-4096", "partition[2].devices[1].physical: is -4096 bytes; give 0 bytes"),
    ('"8 KiB"', '"1 KiB"', "partition[2].devices[1].size: is 1024 bytes; give 4096 bytes or"),
    ("[68, 69]", "[68, 31]", "partition[2].devices[1].interrupts[2]: is 31; give 32 or more"),
    ("[68, 69]", "[68, 68]", "devices[1].interrupts[2]: 68 belongs to 'alone' already"),
    ("[68, 69]", "[33]", "devices[1].interrupts[1]: 33 is the interrupt of every guest's console"),
    ('"64 KiB"', '"65 KB"', ":33: shared[1].size: '65 KB' is not a size"),
    ('"64 KiB"', "100", ":33: shared[1].size: is 100 bytes; give 4096 bytes or more"),
    ("0x70000000", "0x70000001", ":35: shared[1].address: 0x70000001 is not a multiple of 4 KiB"),
    ("0x70000000", "0x40001000", ":35: shared[1].address: 0x40001000 to 0x40010fff lies over the"),
    ("0x70000000", "0xff111000", ":35: shared[1].address: 0xff111000 to 0xff120fff lies over a de"),
    ('["P1", "alone"]', '["P1"]', ":34: shared[1].partitions: 1 partition cannot share; name two"),
    ('["P1", "alone"]', '["P1", "P1", "P2"]', "partitions[2]: 'P1' is named twice"),
    ('["P1", "alone"]', '["P1", "alne"]', "partitions[2]: 'alne' is not a partition; did you mean"),
    ('name = "mailbox"', 'name = "?"', ":32: shared[1].name: '?' is not a name"),
]


@pytest.mark.parametrize(("right", "wrong", "says"), MISTAKES)
def test_mistakes(tmp_path, right, wrong, says):
    assert SOUND.count(right) >= 1
    with pytest.raises(BadInput) as mistake:
        read(tmp_path, SOUND.replace(right, wrong, 1))
    message = str(mistake.value)
    assert re.search(r"system\.toml:\d+: ", message)
    assert says in message
    assert "\n" not in message


def test_devices_have_one_owner(tmp_path):
    device = "devices = [{ physical = 0xff111000, size = 4096, interrupts = [69] }]\n"
    with pytest.raises(BadInput, match="69 belongs to 'P2' already; an interrupt has one owner"):
        read(tmp_path, SOUND.replace('on_fault = "restart"\n', device))
    with pytest.raises(BadInput, match="0xff110000 belongs to 'P2' already; a device has one"):
        read(tmp_path, SOUND.replace('on_fault = "restart"\n', device.replace("[69]", "[80]")))


def test_sources_may_have_an_interrupt_of_another_partitions_device(tmp_path):
    system = read(tmp_path, SOUND.replace("interrupt = 70", "interrupt = 68"))
    assert system.interrupt_of(0) == 68
    assert not system.is_device(0)


def test_sources_may_be_devices_of_their_partition(tmp_path):
    own = (
        '[[partition]]\nname = "P1"\nguest = "driver.elf"\n'
        "devices = [{ physical = 0x10000, size = 4096, interrupts = [70, 90] }]\n[[shared]]"
    )
    text = SOUND.replace("[[shared]]", own)
    system = read(tmp_path, text)
    assert [system.is_device(number) for number in range(2)] == [True, False]
    for right, wrong, says in (
        ("[70, 90]", "[70, 65]", "system.toml:16: source[2].interrupt: 65, its usual number, is"),
        ('guest = "driver.elf"\n', "", "70 is the interrupt of a device, which 'worker' does not"),
    ):
        with pytest.raises(BadInput) as mistake:
            read(tmp_path, text.replace(right, wrong))
        assert says in str(mistake.value)


def test_from_python():
    sources = (Source("s", "P", 0, 1, Periodic(5), Monitor((5,)), learning=Learning(2, 1)),)
    slots = (Slot("P", 10),)
    assert System(Platform(), slots, sources, hosted=[Partition("P")]).hosted == (Partition("P"),)
    with pytest.raises(BadInput, match=r"Partition.devices\[0\]: 5 is not a device"):
        Partition("P", devices=(5,))
    with pytest.raises(BadInput, match=r"Source.learning: 5 is not a learning phase"):
        replace(sources[0], learning=5)


def test_a_path_is_relative_to_the_file(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    (tmp_path / "system.toml").write_text(SOUND.replace("guests/mine.elf", "../x.bin"))
    guest = read_system(Path("../system.toml")).hosted[0].guest
    assert guest == str(tmp_path.parent / "x.bin")
