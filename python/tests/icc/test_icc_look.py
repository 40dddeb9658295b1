"""What the headers have written is what Python reads: the constants of both cannot drift apart."""

import json
import struct
import subprocess
import time

import pytest

from latenz.icc import Kind, Watcher, find_channels, look, newest, open_region
from latenz.icc.layout import LINE, MAGIC, Channel

STATE = {
    "time_ns": 1_700_000_000_000_000_001,
    "gain": -0.5,
    "joints.angle": [1.5, 2.5, -3.5],
    "joints.ticks": [-3, 4, 32767],
    "error": -7,
    "mode": 1,
    "label": "servo",
}


@pytest.fixture
def region(filled):
    with open_region(str(filled)) as opened:
        yield opened


@pytest.fixture
def named(region):
    found = find_channels(region)
    assert not found.unreadable
    return {channel.name: channel for channel in found.channels}


def test_every_channel_is_found_with_its_kind(named):
    assert {name: channel.kind for name, channel in named.items()} == {
        "mailbox": Kind.MAILBOX,
        "exchange, answered": Kind.EXCHANGE,
        "exchange, asked": Kind.EXCHANGE,
        "latest": Kind.LATEST,
        "ring": Kind.RING,
        "nothing yet": Kind.LATEST,
    }


def test_sizes_are_those_of_the_headers_for_every_payload(channels):
    text = subprocess.run([channels, "sizes"], check=True, capture_output=True, text=True).stdout
    rows = json.loads(text)[:-1]
    assert len(rows) == 6 * 130
    for row in rows:
        kind = Kind[row["kind"].upper()]
        sizes = (4, row["payload"]) if kind == Kind.EXCHANGE else (row["payload"],)
        shape = Channel(
            offset=0,
            size=row["bytes"],
            name="",
            kind=kind,
            generation=1,
            readers=row["readers"],
            slots=row["slots"],
            payload_bytes=sizes,
            fingerprints=(),
            fields=tuple((None,) for _ in sizes),  # type: ignore[arg-type]  # one field each
        )
        assert shape.expected_size() == row["bytes"], row


def test_fields_are_read_as_they_were_written(region, named):
    for name in ("mailbox", "latest", "ring"):
        value = newest(region, named[name])
        assert value is not None
        assert value.is_whole
        assert value.fields == STATE, name
    types = [field.type_name for field in named["mailbox"].fields[0]]
    assert types == ["uint64", "float64", "float32[3]", "int16[3]", "int8", "uint8", "byte[6]"]


def test_an_exchange_shows_request_or_reply(region, named):
    answered = newest(region, named["exchange, answered"])
    assert (answered.payload, answered.number) == (1, 1)
    assert answered.fields == {"numbers": list(range(1000, 1050)), "last": -9}
    asked = newest(region, named["exchange, asked"])
    assert (asked.payload, asked.number, asked.fields) == (0, 1, {"value": 77})


def test_what_was_never_written_has_no_value(region, named):
    assert newest(region, named["nothing yet"]) is None


def test_counts_epochs_and_departures(region, named):
    def seen(name):
        now = look(region, named[name])
        sides = [(side.epoch, side.open, side.dropped, side.beats) for side in now.sides]
        return now.messages, sides

    assert seen("mailbox") == (2, [(1, False, 0, 0), (2, True, 0, 1)])
    assert seen("exchange, answered") == (1, [(1, True, 0, 0), (1, True, 0, 0)])
    assert seen("exchange, asked") == (0, [(1, True, 0, 0), (0, False, 0, 0)])
    never = (0, False, 0, 0)
    assert seen("latest") == (3, [(1, True, 0, 0), never, (1, True, 0, 0), never])
    assert seen("ring") == (6, [(1, True, 0, 0), never, never])


def test_states_are_told_apart(region):
    (mailbox, _, asked, *_) = Watcher(region).watch(100_000_000).watched
    assert [side.state for side in mailbox.sides] == ["closed", "silent"]
    assert [side.state for side in asked.sides] == ["silent", "never there"]
    assert mailbox.messages_per_s == 0
    assert mailbox.last_change_ns is None


@pytest.fixture
def talking(channels, tmp_path):
    path = tmp_path / "talking"
    path.write_bytes(bytes(16384))
    writer = subprocess.Popen([channels, "talk", path])
    try:
        limit = time.monotonic() + 60
        while path.read_bytes().count(MAGIC.to_bytes(4, "little")) < 2:
            assert time.monotonic() < limit
            time.sleep(0.01)
        yield path, writer
    finally:
        writer.kill()
        writer.wait()


def watched_until(watcher, rate_and_states):
    """Watch window after window until the channels are as they should be; return them."""
    limit = time.monotonic() + 60
    while True:
        watched = watcher.watch(300_000_000).watched
        found = [(bool(each.messages_per_s), [s.state for s in each.sides]) for each in watched]
        if found == rate_and_states:
            return watched
        assert time.monotonic() < limit, found


def test_a_stream_is_alive_until_its_writer_is_killed(talking):
    path, writer = talking
    with open_region(str(path)) as region:
        before = look(region, find_channels(region).channels[0]).messages
        watcher = Watcher(region)
        # Its writer may be held up, and so may the reader of letters that leaves.
        stream, _ = watched_until(watcher, [(True, ["alive"]), (False, ["silent", "closed"])])
        after = look(region, find_channels(region).channels[0]).messages
        assert before < stream.messages <= after
        writer.kill()
        writer.wait()
        watcher.look()  # at what was written until then
        assert watcher.watch(600_000_000).watched[0].sides[0].state == "silent"
        assert watcher.watch(100_000_000).watched[0].messages_per_s == 0


def test_a_value_that_is_called_whole_is_whole(talking):
    with open_region(str(talking[0])) as region:
        stream = find_channels(region).channels[0]
        seen = [value for _ in range(2000) if (value := newest(region, stream))]
        whole = [value for value in seen if value.is_whole]
        for value in whole:
            assert set(value.fields["numbers"]) == {value.fields["last"]}, value


def test_a_channel_formatted_anew_is_another_one(filled):
    with open_region(str(filled)) as region:
        watcher = Watcher(region)
        content = bytearray(filled.read_bytes())
        generation = struct.unpack_from("<I", content, 12)[0]
        struct.pack_into("<I", content, 12, generation + 1)
        filled.write_bytes(content)
        first = watcher.watch(50_000_000).watched[0]
        assert first.channel.generation == generation + 1
        assert first.messages_per_s is None


def test_numbers_wrap(filled):
    """The 24 bits of a Mailbox: three messages over the edge."""
    with open_region(str(filled)) as region:
        mailbox = find_channels(region).channels[0]
        at = mailbox.data_offset + mailbox.slot_bytes - 4
        watcher = Watcher(region)
        for written in (0xFFFFFE, 0x000001):
            watcher.report()
            content = bytearray(filled.read_bytes())
            struct.pack_into("<I", content, at, 0x01000000 | written)
            with filled.open("r+b") as file:
                file.write(content)
            watcher.look()
        watched = watcher.report().watched[0]
        assert watched.messages == 1
        assert watched.messages_per_s > 0


def test_random_bytes_in_headers_are_refused_and_never_crash(filled):
    """Each word of the identity and the fields, replaced by troublesome numbers, one at a time."""
    original = filled.read_bytes()
    with open_region(str(filled)) as region:
        mailbox = find_channels(region).channels[0]
        header = mailbox.sides_offset
        for at in range(0, header, 4):
            for number in (0, 1, 3, 0x7F, 0x8000, 0x10001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
                content = bytearray(original)
                struct.pack_into("<I", content, at, number)
                filled.write_bytes(content)
                found = find_channels(region)
                assert all(each.offset + each.size <= region.size for each in found.channels)
                for channel in found.channels:
                    look(region, channel)
                    newest(region, channel)


def test_a_header_at_the_end_of_a_region_is_refused(tmp_path):
    path = tmp_path / "end"
    path.write_bytes(bytes(4 * LINE) + MAGIC.to_bytes(4, "little") + bytes(LINE - 4))
    with open_region(str(path)) as region:
        found = find_channels(region)
        assert found.channels == ()
        assert [each.reason for each in found.unreadable] == [
            "its header does not fit into the region"
        ]
