"""Frames as docs/firmware.md describes them, written with Python's own base64 and zlib."""

import base64
import zlib

KINDS = {"hello": 1, "samples": 2, "file": 3, "note": 4, "fault": 5, "end": 6}
ROOM = 80


def varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def frame(kind: int, sender: int, sequence: int, payload: bytes) -> bytes:
    body = bytes([kind, sender]) + varint(sequence) + payload
    body += zlib.crc32(body).to_bytes(4, "little")
    return b"<~" + base64.b64encode(body).rstrip(b"=") + b">"


class Speaker:
    """Says messages as one sender does: a list of lines."""

    def __init__(self, sender: int = 0) -> None:
        self.sender = sender
        self.sequence = 0

    def message(self, kind: str, payload: bytes) -> list[bytes]:
        pieces = [payload[at : at + ROOM] for at in range(0, max(len(payload), 1), ROOM)]
        lines = []
        for number, piece in enumerate(pieces):
            flags = 0x80 * (number < len(pieces) - 1) + 0x40 * (number > 0)
            lines.append(frame(KINDS[kind] | flags, self.sender, self.sequence, piece))
            self.sequence += 1
        return lines

    def samples(self, stream: int, first: int, pairs: list[tuple[int, int]]) -> list[bytes]:
        packed = b"".join(varint(ticks) for pair in pairs for ticks in pair)
        return self.message("samples", varint(stream) + varint(first) + packed)

    def end(self, streams: dict[int, list[tuple[int, int]]]) -> list[bytes]:
        payload = b""
        for stream, pairs in streams.items():
            packed = b"".join(varint(ticks) for pair in pairs for ticks in pair)
            payload += varint(stream) + varint(len(pairs))
            payload += zlib.crc32(packed).to_bytes(4, "little")
        return self.message("end", payload)
