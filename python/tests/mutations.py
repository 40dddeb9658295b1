"""Damages files at random, and guards the time that reading them takes; for the fuzzers."""

import random
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS = 10.0
"""Longest processor time one small file may take."""
TOKENS = [
    *(b"0 1 -1 9 1e999999 1e-999999 -0 +5 .5 5. nan inf NaN Infinity null true 0x10 1_0".split()),
    *(b"18446744073709551615 9223372036854775807 9223372036854775808 -9223372036854775808".split()),
    b"9" * 40,
    b"9" * 5000,
    "٣".encode(),
    "²".encode(),
    b"\0",
    b"\xff\xfe",
    b"\x1b[2;37;40m",
    b"\r",
    b"\n",
    b"\n\n",
    b'"',
    b"{",
    b"}" * 50,
    b"[" * 3000,
    b":",
    b",",
    b"#",
    b"|",
    b"$end",
    b"$comment",
    b"T: 0 ",
    b" " * 3000,
    b"\n" * 3000,
    b"a" * 300,
    b"=1+1",
    b"../../../etc/passwd",
]
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


def mutate(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Damage a file in one to four ways."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        content = _MUTATIONS[chance.randrange(len(_MUTATIONS))](content, others, chance)
    return content[:100_000]


def _place(content: bytes, chance: random.Random) -> tuple[int, int]:
    begin = chance.randrange(len(content) + 1)
    return begin, min(len(content), begin + chance.choice((1, 1, 2, 5, 30, 200)))


def _flip(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    if not content:
        return b"\0"
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def _cut(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    begin, end = _place(content, chance)
    return content[:begin] + content[end:]


def _truncate(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _repeat(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    begin, end = _place(content, chance)
    return content[:end] + content[begin:end] * chance.choice((1, 1, 2, 50)) + content[end:]


def _insert(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    begin, _ = _place(content, chance)
    return content[:begin] + chance.choice(TOKENS) + content[begin:]


def _number(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    numbers = list(NUMBER.finditer(content))
    if not numbers:
        return content
    found = chance.choice(numbers)
    new = chance.choice(TOKENS) if chance.random() < 0.6 else b"%d" % chance.randrange(1 << 20)
    return content[: found.start()] + new + content[found.end() :]


def _swap_lines(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def _splice(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others)
    begin, _ = _place(content, chance)
    from_other, _ = _place(other, chance)
    return content[:begin] + other[from_other:]


_MUTATIONS = (
    _flip,
    _flip,
    _cut,
    _truncate,
    _repeat,
    _insert,
    _number,
    _number,
    _swap_lines,
    _splice,
)


class TooSlowError(Exception):
    """A file took longer than the time guard allows."""


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TooSlowError


@contextmanager
def time_guard() -> Iterator[None]:
    """Raise TooSlowError if what is done inside takes too much processor time."""
    signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def check_refusal(refusal: str, places: tuple[str, ...]) -> None:
    """Fail unless a refusal is one line that names one of the places."""
    if "\n" in refusal or not any(place in refusal for place in places):
        raise RuntimeError(f"unclear: {refusal}")
