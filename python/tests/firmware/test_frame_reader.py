import random
from itertools import pairwise
from typing import Any

from frame_lines import Speaker, frame
from hypothesis import given
from hypothesis import strategies as st

from latenz._core import EndFrame, FileFrame, FrameReader, SamplesFrame, TextFrame

PAIRS = [(1, 15625), (2**40, 0), (0, 2**62), (300, 1)]


def conversation() -> list[bytes]:
    speaker = Speaker(2)
    return [
        *speaker.message("hello", b'{"program": "latency", "board": "virt"}' * 5),
        *speaker.samples(0, 0, PAIRS),
        *speaker.message("note", "Überlauf".encode()),
        *speaker.message("file", b"\x07log.txt" + bytes(range(256))),
        *speaker.message("fault", b"undefined instruction"),
        *speaker.end({0: PAIRS}),
    ]


def plain(found: Any) -> Any:
    match found:
        case SamplesFrame():
            ticks = (found.latency_ticks.tolist(), found.interarrival_ticks.tolist())
            return ("samples", found.stream, found.first, list(zip(*ticks, strict=True)))
        case TextFrame():
            return (found.kind, found.sender, found.text)
        case FileFrame():
            return ("file", found.name, found.offset, found.data, found.last)
        case EndFrame():
            return ("end", found.samples, found.complete)
    return found


def read(data: bytes, cuts: tuple[int, ...] = ()) -> tuple[list[Any], FrameReader]:
    reader = FrameReader()
    borders = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    found = []
    for start, stop in pairwise(borders):
        found += reader.feed(data[start:stop])
    found += reader.finish()
    return [plain(one) for one in found], reader


def test_everything_a_sender_says_arrives() -> None:
    found, reader = read(b"\n".join(conversation()) + b"\n")
    assert (reader.damaged, reader.missing, reader.duplicates) == (0, 0, 0)
    texts = [one for one in found if isinstance(one, tuple) and one[0] != "file"]
    assert texts == [
        ("hello", 2, '{"program": "latency", "board": "virt"}' * 5),
        ("samples", 0, 0, PAIRS),
        ("note", 2, "Überlauf"),
        ("fault", 2, "undefined instruction"),
        ("end", {0: 4}, True),
    ]
    pieces = [one for one in found if one[0] == "file"]
    assert {name for _, name, *_ in pieces} == {"log.txt"}
    assert b"".join(data for *_, data, _ in pieces) == bytes(range(256))
    assert [last for *_, last in pieces] == [False] * (len(pieces) - 1) + [True]
    assert [offset for _, _, offset, *_ in pieces] == [0, 72, 152, 232]
    assert len(found) == len(texts) + len(pieces)


LOG = st.text(st.characters(exclude_characters="\n\r", codec="utf-8"), max_size=30).filter(
    lambda text: "<~" not in text and text != ""
)


@given(
    st.lists(st.tuples(st.integers(0, 20), LOG), max_size=10),
    st.lists(st.integers(0, 10**6), max_size=20),
    st.sampled_from([b"", b"(d1) ", b"(XEN) DOM1: ", b"DOM12: "]),
    st.sampled_from([b"\n", b"\r\n"]),
)
def test_log_lines_prefixes_and_chunks_change_nothing(
    log: list[tuple[int, str]], cuts: list[int], prefix: bytes, line_end: bytes
) -> None:
    frames, _ = read(b"\n".join(conversation()))
    lines = [(place, prefix + line) for place, line in enumerate(conversation())]
    lines += [(place - 0.5, text.encode()) for place, text in log]
    lines.sort(key=lambda line: line[0])
    data = b"".join(line + line_end for _, line in lines)
    found, reader = read(data, tuple(cuts))
    assert [one for one in found if isinstance(one, tuple)] == frames
    assert [one for one in found if isinstance(one, str)] == [
        text.decode() for place, text in lines if isinstance(place, float)
    ]
    assert (reader.damaged, reader.missing, reader.duplicates) == (0, 0, 0)


def test_text_around_a_frame_on_its_line_is_kept() -> None:
    line = frame(4, 0, 0, b"hi")
    found, _ = read(b"stress-ng: in" + line + b"fo: done\n" + b"\n" + b"last")
    assert found == [("note", 0, "hi"), "stress-ng: info: done", "", "last"]


@given(st.integers(0, 10**6), st.integers(1, 255), st.booleans())
def test_a_damaged_byte_never_gives_wrong_content(place: int, change: int, drop: bool) -> None:
    data = bytearray(b"\n".join(conversation()))
    place %= len(data)
    if drop:
        del data[place]
    else:
        data[place] ^= change
    whole = read(b"\n".join(conversation()))[0]
    found, reader = read(bytes(data))
    frames = [one for one in found if isinstance(one, tuple)]
    lost = [one for one in whole if one not in frames]
    assert [one for one in frames if one not in whole and one != ("end", {0: 4}, False)] == []
    ended = any(one[0] == "end" for one in frames)
    assert not lost or reader.missing or reader.damaged or not ended
    assert not lost or not any(one == ("end", {0: 4}, True) for one in frames)


def test_lost_repeated_and_restarted_frames_are_counted() -> None:
    lines = conversation()
    found, reader = read(b"\n".join(lines[:3] + lines[4:]))
    assert reader.missing == 1
    assert found[-1] == ("end", {0: 4}, False)
    found, reader = read(b"\n".join(line for line in lines for _ in range(2)))
    assert reader.duplicates == len(lines)
    assert [one for one in found if isinstance(one, tuple)] == read(b"\n".join(lines))[0]
    found, reader = read(b"\n".join(lines + lines))
    assert (reader.missing, reader.duplicates) == (0, 0)
    assert found.count(("end", {0: 4}, True)) == 2


def test_a_message_cut_off_is_missing() -> None:
    lines = conversation()
    found, reader = read(lines[0] + b"\n" + lines[1][:40])
    assert reader.missing == 1
    assert found == [lines[1][:40].decode()]


def test_senders_are_told_apart() -> None:
    board, guest = Speaker(0), Speaker(1)
    first = board.message("hello", b"a" * 200)
    second = guest.message("note", b"b" * 200)
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    found, reader = read(b"\n".join(mixed))
    assert found == [("hello", 0, "a" * 200), ("note", 1, "b" * 200)]
    assert reader.missing == 0


def test_right_checksum_but_senseless_payload_is_damage() -> None:
    numbers = random.Random(3)
    for kind in (2, 3, 6):
        for _ in range(300):
            payload = numbers.randbytes(numbers.randrange(20))
            read(frame(kind, 0, 0, payload))
    assert read(frame(2, 0, 0, b"\x00\x00\x05"))[1].damaged == 1
    assert read(frame(3, 0, 0, b"\x09abc"))[1].damaged == 1
    assert read(frame(6, 0, 0, b"\x00\x01\x02"))[1].damaged == 1
    assert read(frame(9, 0, 0, b""))[1].damaged == 1


def test_an_endless_line_is_cut() -> None:
    found, _ = read(b"x" * 10_000)
    assert [len(line) for line in found] == [4096, 4096, 1808]
