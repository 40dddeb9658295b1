"""Two programs on an emulated Cortex-A53 and Cortex-R5 talk to each other."""

import re
import struct
import zlib

import pytest

from latenz.boards.pair_firmware import SIDES, PairTask, carry_out, image
from latenz.boards.setup import ensure_boards
from latenz.errors import BadInput

pytestmark = pytest.mark.boots

POINTS = 150  # restarts of each kind of channel in each test
LETTERS = 1500
TICK_US = 7  # turns end in the midst of copies

ACCOUNT = re.compile(r"(\w+): (\d+) restarts, (\d+) lives, told of (\d+), (\d+) letters")
CHECKED = re.compile(r"(\w+): (\d+) letters, 0 errors, \d+ us")

FIELDS_OF_DIFFERENCES = {
    "renamed field": ("int32 'position_nm' at 4", "int32 'position_um' at 4"),
    "swapped fields": ("uint8 'flags' at 14", "uint8 'mode' at 14"),
    "integer for float": ("uint32 'torque' at 16", "float32 'torque' at 16"),
    "other sign": ("uint32 'position_um' at 4", "int32 'position_um' at 4"),
    "other array length": ("int16[2] every 2 bytes 'speed' at 8", "int16[3] every 2 bytes 'speed'"),
    "wider enumeration": ("uint16 'mode' at 14", "uint8 'mode' at 14"),
    "two words for one": ("uint32[2] every 4 bytes 'time_ns' at 20", "uint64 'time_ns' at 24"),
    "one field more": ("uint64 'age_ns' at 32", "nothing"),
    "one field less": ("nothing", "uint64 'time_ns' at 24"),
}
GENERATION, NAME, RESERVED = [3], list(range(16, 24)), list(range(24, 32))


@pytest.fixture(scope="module", autouse=True)
def _boards():
    assert ensure_boards() is None


@pytest.mark.parametrize("memory", ["ocm", "ddr"])
@pytest.mark.parametrize("direction", ["there", "back"])
def test_every_message_arrives_whole_once_and_in_order(memory, direction, tmp_path):
    task = PairTask(kind="check", samples=LETTERS, memory=memory, direction=direction)
    told = carry_out(task, tmp_path, TICK_US).notes
    seen = sorted((match[1], int(match[2])) for each in told if (match := CHECKED.fullmatch(each)))
    assert len(seen) == len(told) == 8
    for name, letters in seen:
        least = LETTERS // 4 if name == "latest" else LETTERS
        assert least <= letters <= LETTERS, name  # of `latest` each side may miss some


@pytest.mark.parametrize("restarts", ["begins", "answers"])
@pytest.mark.parametrize("direction", ["there", "back"])
def test_either_side_restarts_anywhere_and_the_other_goes_on(direction, restarts, tmp_path):
    task = PairTask(kind="restart", samples=POINTS, direction=direction, restarts=restarts)
    told = [ACCOUNT.fullmatch(each) for each in carry_out(task, tmp_path).notes]
    assert [each[1] for each in told] == ["mailbox", "exchange", "ring", "latest"]
    for account in told:
        name = account[1]
        points, lives, told_of, letters = (int(each) for each in account.groups()[1:])
        assert points == POINTS
        assert POINTS / 2 < lives <= POINTS + 1  # the others ended before they had attached
        assert letters > POINTS
        if restarts == "answers" and name in ("ring", "latest"):
            assert told_of == 0  # writers do not wait for single readers
        else:
            assert lives * 0.8 < told_of < lives  # two ends between two looks are told as one


@pytest.mark.parametrize(("direction", "memory"), [("there", "ocm"), ("back", "ddr")])
def test_unlike_types_and_damaged_memory_are_refused(direction, memory, tmp_path):
    task = PairTask(kind="unlike", direction=direction, memory=memory, seed=3)
    told = dict(each.split(": ", 1) for each in carry_out(task, tmp_path).notes)
    assert told.pop("the same") == told.pop("the same again") == "accepted"
    for name, (here, there) in FIELDS_OF_DIFFERENCES.items():
        expected = f"payload differs: here {here}"
        assert told[name].startswith(expected), name
        assert f", in memory {there}" in told[name], name
    assert told["other reply"].startswith("reply differs: here int32 ")
    assert told["other kind"].startswith("kind of channel differs")
    assert told["other slots"] == "number of slots differs: here 8, in memory 4"
    assert told["other readers"] == "number of readers differs: here 2, in memory 1"
    assert told["no such reader"].endswith("none is 1")
    assert told["nothing there"].startswith("no channel is there")
    assert told["not at a line"].startswith("memory must begin at a line of 64 bytes")
    harmless = [int(word) for word in told["accepted although damaged, words"].split()]
    assert harmless == GENERATION + NAME + RESERVED
    assert int(told["refused"]) > 300


def test_what_the_emulator_lacks_is_refused_by_the_firmware_too(tmp_path):
    with pytest.raises(BadInput, match="task memory: not on this board"):
        carry_out(PairTask(memory="tcm"), tmp_path)
    with pytest.raises(BadInput, match="task direction: who is called gets no interrupts here"):
        carry_out(PairTask(through="interrupt", direction="there"), tmp_path)
    with pytest.raises(BadInput, match="task direction: who is called gets no interrupts here"):
        carry_out(PairTask(wait="doorbell", direction="there"), tmp_path)
    with pytest.raises(BadInput, match="task wait: nobody waits for a doorbell there"):
        carry_out(PairTask(wait="doorbell", through="latest"), tmp_path)
    with pytest.raises(BadInput, match="task bytes: more than the 496"):
        carry_out(PairTask(through="rpmsg", message_bytes=512), tmp_path)


@pytest.mark.parametrize(
    ("offset", "value", "reason"),
    [
        (12, 59, "task block: not found"),
        (8, 1, "task block: not of version 2"),
        (24, 3, "task bytes: not a power of two up to 4096"),
        (36, 4, "task memory: not 0 to 3"),
        (56, 2, "task wait: not 0 or 1"),
    ],
)
def test_damaged_tasks_are_refused_by_name(offset, value, reason, tmp_path, monkeypatch):
    block = bytearray(PairTask().block())
    struct.pack_into("<I", block, offset, value)
    struct.pack_into("<I", block, len(block) - 4, zlib.crc32(block[:-4]))
    monkeypatch.setattr(PairTask, "block", lambda _: bytes(block))
    with pytest.raises(BadInput, match=reason):
        carry_out(PairTask(), tmp_path)


@pytest.mark.parametrize("side", SIDES)
def test_images_for_a_real_board_take_tasks(side, tmp_path):
    task = PairTask(memory="tcm", through="interrupt")
    made = image(side, task, tmp_path, "silicon").read_bytes()
    assert made.count(task.block()) == 1
