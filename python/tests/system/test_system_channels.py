"""Channels in system files: what is sound, each mistake with its line, what bounds make of it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from latenz.analysis import bound, simulate
from latenz.errors import BadInput
from latenz.system import Channel, read_arrivals, read_system, write_system

TEXT = Path("docs/systems.md").read_text()
[SOUND] = [
    content
    for content in re.findall(r"^```toml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    if "[[channel]]" in content
]


def read(folder, text=SOUND):
    path = folder / "system.toml"
    path.write_text(text)
    return read_system(path)


def test_a_file_says_what_it_says(tmp_path):
    system = read(tmp_path)
    assert system.channels == (
        Channel("frames", "camera", "control", 16384, 0x7000_0000, "frame ready"),
    )
    assert system.is_raised_by_guest(0)
    assert not system.is_device(0)
    write_system(system, tmp_path / "again.toml")
    assert read_system(tmp_path / "again.toml") == system


def test_a_doorbell_is_a_source_like_any_other(tmp_path):
    system = read(tmp_path)
    plain = replace(system, channels=())
    for mode in ("plain", "paper", "carry"):
        assert bound(system, mode) == bound(plain, mode)
    assert simulate(system, irqs=500) == simulate(plain, irqs=500)
    listed = tmp_path / "arrivals.csv"
    listed.write_text("source,time_ns\nframe ready,100\n")
    assert [times.tolist() for times in read_arrivals(listed, system)] == [[100]]


ALONE = SOUND + '[[partition]]\nname = "alone"\ncpu = 1\n'
DEVICE = SOUND.replace("[[channel]]", "interrupt = 70\n[[channel]]") + (
    '[[partition]]\nname = "control"\nguest = "own.bin"\n'
    'devices = [{ physical = 0xff110000, size = "4 KiB", interrupts = [70] }]\n'
)
SECOND = SOUND + SOUND[SOUND.index("[[channel]]") :].replace("0x70000000", "0x71000000")
ARRIVAL = re.search(r"arrival = .*", SOUND)[0]
MISTAKES = [
    (SOUND, '"camera"\nto', '"camra"\nto', "channel[1].from: 'camra' is not a partition; did"),
    (SOUND, 'to = "control"', 'to = "camera"', "channel[1].to: 'camera' is the sender, too"),
    (SOUND, '"camera"\nto = "control"', '"control"\nto = "camera"', "a source of 'control'; take"),
    (SOUND, 'doorbell = "frame ready"', 'doorbell = "frame"', "doorbell: 'frame' is not a source"),
    (SOUND, 'doorbell = "frame ready"', "", "the key 'doorbell' is missing"),
    (SOUND, "from =", "form =", "unknown key 'form'; did you mean 'from'?"),
    (SOUND, '"16 KiB"', '"1 KiB"', "channel[1].size: is 1024 bytes; give 4096 bytes or more"),
    (SOUND, "0x70000000", "0x70000800", "channel[1].address: 0x70000800 is not a multiple of"),
    (SOUND, "0x70000000", "0x40000000", "channel[1].address: 0x40000000 to 0x40003fff lies over"),
    (ALONE, 'from = "camera"', 'from = "alone"', "channel[1].from: 'alone' has no slot; both ends"),
    (ALONE, '"alone"', '"camera"', "channel[1].from: 'camera' has processor 1, 'control' 0; both"),
    (DEVICE, "", "", "channel[1].doorbell: 'frame ready' is a device's; take another source"),
    (SECOND, "", "", "channel[2].name: a second one is named 'frames'"),
    (SOUND, ARRIVAL, 'arrival = { kind = "exponential", mean = "1 ms" }',
     "channel[1].doorbell: 'frame ready' may ring at any rate; give its arrival a min_distance"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new", "told"), MISTAKES)
def test_each_mistake_is_told_in_a_line(tmp_path, text, old, new, told):
    assert old in text
    with pytest.raises(BadInput) as caught:
        read(tmp_path, text.replace(old, new, 1))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_doorbell_has_one_channel(tmp_path):
    with pytest.raises(BadInput, match="'frame ready' is another channel's; give each its own"):
        read(tmp_path, SECOND.replace('name = "frames"', 'name = "more"', 1))
