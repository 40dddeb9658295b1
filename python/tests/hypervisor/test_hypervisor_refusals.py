"""What cannot be booted is refused in one line that says where and why."""

import json
import re
import struct
import subprocess
from pathlib import Path

import pytest

from latenz.errors import BadInput
from latenz.hypervisor.build import build

LATENZ = Path(__file__).parents[3] / "latenz"
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
arrival = { kind = "periodic", period = "5 ms" }
monitor = { distances = ["1 ms"] }
"""
DEVICE = '[[partition]]\nname = "P2"\ndevices = [{ physical = %s, size = "1 MiB" }]\n'
GUEST = '[[partition]]\nname = "P2"\nmemory = "2 MiB"\nguest = "guest"\n'


def refusal(tmp_path, text, **options) -> str:
    path = tmp_path / "system.toml"
    path.write_text(text)
    with pytest.raises(BadInput) as mistake:
        build(path, **{"irqs": 10, **options})
    message = str(mistake.value)
    assert "\n" not in message
    return message


def test_the_sound_one_is_taken(tmp_path):
    (tmp_path / "system.toml").write_text(SOUND)
    assert len(build(tmp_path / "system.toml", irqs=10).arrivals) == 10


@pytest.mark.parametrize(
    ("arrival", "mode", "reason"),
    [
        ('"periodic", period = "90 us"', None, "is unbounded in mode plain: overload"),
        ('"periodic", period = "80 us"', "carry", "is unbounded in mode carry: overload"),
        ('"periodic", period = "90 us"', "carry", "is past horizon in mode carry: the form slots"),
        ('"exponential", mean = "90 us"', None, "is unbounded in mode plain: overload"),
        ('"periodic", period = "105.1 us", jitter = "30 s"', None, "is past horizon"),
    ],
)
def test_unschedulable_systems_are_refused_with_the_reason(tmp_path, arrival, mode, reason):
    text = SOUND.replace('"periodic", period = "5 ms"', arrival)
    message = refusal(tmp_path, text, mode=mode)
    assert re.search(r"system\.toml:7: source\[1\]: 'can' is ", message)
    assert reason in message


def test_what_is_served_in_time_once_it_was_learned_is_taken(tmp_path):
    text = SOUND.replace('"periodic", period = "5 ms"', '"periodic", period = "90 us"')
    text = text.replace('["1 ms"] }', '["90 us"] }\nlearn = { events = 50, length = 1 }')
    (tmp_path / "system.toml").write_text(text)
    assert len(build(tmp_path / "system.toml", mode="carry", irqs=10).arrivals) == 10


def test_random_arrivals_without_a_worst_case_are_judged_by_their_mean(tmp_path):
    text = SOUND.replace('"periodic", period = "5 ms"', '"exponential", mean = "5 ms"')
    (tmp_path / "system.toml").write_text(text)
    assert len(build(tmp_path / "system.toml", irqs=10).arrivals) == 10


def slots(names):
    return "".join(f'[[slot]]\npartition = "{name}"\nlength = "1 ms"\n' for name in names)


def source(name, monitor=1):
    arrival = 'arrival = { kind = "periodic", period = "500 ms" }'
    distances = [10**6 * (1 + at) for at in range(monitor)]
    head = f'[[source]]\nname = "{name}"\npartition = "P1"\ntop = 1\nbottom = "1 us"\n'
    return f"{head}{arrival}\nmonitor = {{ distances = {distances} }}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (slots([f"P{n}" for n in range(1, 10)]) + source("s"), "9 partitions are too many; the"),
        (slots(["P1", "P2"] * 33) + source("s"), "slot: 66 slots are too many; the hypervisor"),
        (
            slots(["P1"]) + "".join(source(f"s{n}") for n in range(33)),
            "source: 33 sources are too many; the hypervisor takes 32",
        ),
        (
            slots(["P1"]) + "".join(source(f"s{n}", 60) for n in range(18)),
            "source: 1080 distances of monitors and limits are too many; the hypervisor takes 1024",
        ),
        (
            slots(["P1", "P2"])
            + source("s")
            + "".join(
                f'[[shared]]\nname = "m{n}"\nsize = 4096\npartitions = ["P1", "P2"]\n'
                f"address = {0x7000_0000 + n * 4096}\n"
                for n in range(17)
            ),
            "34 devices and views of memory are too many; the hypervisor takes 32",
        ),
        (
            slots(["P1", "P2"])
            + source("s")
            + '[[partition]]\nname = "P2"\ndevices = [{ physical = 0, size = 4096, interrupts = ['
            + f"{', '.join(str(n) for n in range(34, 67))}] }}]\n",
            "partition: 33 interrupts are too many; the hypervisor takes 32",
        ),
    ],
)
def test_limits(tmp_path, text, says):
    assert says in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("physical", "says"),
    [
        ("0x9000000", None),
        ("0x8020000", "0x8020000 lies over the interrupt controller, 0x8000000 to 0x8ffffff"),
        ("0xf9040000", "0xf9040000 lies over the interrupt controller"),
        ("0xff000000", "0xff000000 lies over the hypervisor's console"),
        ("0x7fff0000", "0x7fff0000 lies over memory, 0x40000000 to 0x7fffffff; a guest cannot"),
    ],
)
def test_devices_that_the_hypervisor_needs(tmp_path, physical, says):
    message = refusal(tmp_path, SOUND + DEVICE % physical)
    assert "partition[1].devices[1].physical: " in message
    assert (says or "lies over the console of 'P2'") in message


def elf(tmp_path, **changes) -> bytes:
    """A small program, with fields of its header and of its only segment changed."""
    fields = {"machine": 183, "kind": 2, "entry": 0x4000_0000, "address": 0x4000_0000, "bits": 2}
    fields |= {"size": 64, **changes}
    identity = b"\x7fELF" + bytes([fields["bits"], 1, 1]).ljust(12, b"\0")
    sizes = (64, 56, changes.get("segments", 1), 0, 0, 0)
    head = struct.pack(
        "<16s2HI3QI6H", identity, fields["kind"], fields["machine"], 1, fields["entry"], 64, 0, 0,
        *sizes,
    )  # fmt: skip
    size = fields["size"]
    segment = struct.pack("<2I6Q", 1, 7, 64 + 56, 0, fields["address"], size, size, 1)
    return head + segment * changes.get("segments", 1) + bytes(64)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "there is no such file; give worker, victim, a raw binary or an ELF file"),
        (b"", "is empty"),
        (bytes(2 << 20) + b"1", "0x40000000 to 0x4020003f is not in the memory of 'P2'"),
        (b"\x7fELF short", "is not a whole ELF file"),
        ({"machine": 62}, "is for x64; build it for 64-bit Arm"),
        ({"kind": 3}, "is not a program (ET_DYN); link it to fixed addresses"),
        ({"address": 0x8000_0000}, "0x80000000 to 0x8000003f is not in the memory of 'P2'"),
        ({"address": 0x3FFF_FFF0}, "is not in the memory of 'P2'"),
        ({"entry": 0x100}, "begins at 0x100, outside its memory"),
        ({"segments": 5}, "has 5 segments to load; link it into 1 to 4"),
        ({"size": 99999}, "is not a whole ELF file"),
        ({"size": 0}, "has 0 segments to load"),
    ],
)
def test_guests(tmp_path, content, says):
    if content is not None:
        whole = elf(tmp_path, **content) if isinstance(content, dict) else content
        (tmp_path / "guest").write_bytes(whole)
    message = refusal(tmp_path, SOUND + GUEST)
    assert re.search(r"system\.toml:17: partition\[1\]\.guest: /", message)
    assert says in message


def test_a_folder_is_no_guest(tmp_path):
    (tmp_path / "guest").mkdir()
    assert "is not a file" in refusal(tmp_path, SOUND + GUEST)


def test_guests_that_are_taken(tmp_path):
    (tmp_path / "system.toml").write_text(SOUND + GUEST)
    for content in (b"\0" * 100, elf(tmp_path), elf(tmp_path, address=0x4000_0010, segments=1)):
        (tmp_path / "guest").write_bytes(content)
        segments = build(tmp_path / "system.toml", irqs=10).segments
        assert all(len(each.content) % 64 == 0 for each in segments[-2:])


def test_more_than_the_memory_has(tmp_path):
    text = SOUND + '[[partition]]\nname = "P1"\nmemory = "1000 MiB"\n'
    text += '[[partition]]\nname = "P2"\nmemory = "20 MiB"\n'
    message = refusal(tmp_path, text)
    assert "the memory of P2 does not fit into the board's 1024 MiB" in message
    assert "the memory of P1 has 1000 MiB" in message
    assert "interrupts are too many" in refusal(tmp_path, SOUND, irqs=1 << 30)


def test_options(tmp_path):
    (tmp_path / "arrivals.csv").write_text("source,time_ns\nlin,0\n")
    listed = tmp_path / "arrivals.csv"
    assert "'lin' is not a source" in refusal(tmp_path, SOUND, listed=listed, irqs=None)
    assert "exclude each other" in refusal(tmp_path, SOUND, listed=listed)
    assert "0 is not a number of interrupts" in refusal(tmp_path, SOUND, irqs=0)


def latenz(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([LATENZ, "hypervisor", *arguments], capture_output=True, text=True)


def test_the_command_line_refuses_in_one_line(tmp_path):
    system = tmp_path / "system.toml"
    system.write_text(SOUND)
    for arguments, says in (
        (["run", system, "--bench", "host"], "--bench: 'host' is not a bench for the hypervisor"),
        (["run", system, "--mode", "fast"], "--mode: 'fast' is not a known mode"),
        (["run", tmp_path / "none.toml"], "there is no such file"),
        (["run", system, "-o", tmp_path], "exists and is not empty"),
        (["build", system], "Missing option"),
        (["trace", tmp_path, "-o", tmp_path / "t.json"], "is not a run folder"),
    ):
        done = latenz(*arguments)
        assert done.returncode == 2, done
        assert says in done.stderr
        told = [x for x in done.stderr.splitlines() if not x.startswith("latenz set-up: ")]
        assert len(told) == 1, told


def test_the_command_line_builds(tmp_path):
    (tmp_path / "system.toml").write_text(SOUND)
    done = latenz("build", tmp_path / "system.toml", "-o", tmp_path / "x.elf", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["irqs"] == 10_000
    assert (tmp_path / "x.elf").read_bytes().startswith(b"\x7fELF")
